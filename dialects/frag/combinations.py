"""What a reduction may combine elements by: the words of `frag.reduce` and what they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf, nan
from typing import NamedTuple

from xdsl.ir import Attribute

from fragir.dialects.elements import NoElementError, element_name

#: Types of elements that are combined: those that arith computes with.
FLOATS = ("f16", "bf16", "f32", "f64")
INTEGERS = ("s8", "s16", "s32", "u32", "s64")
PREDICATES = ("pred",)


class Combination(NamedTuple):
    """An operation of `arith` for each kind of elements; None where there is none."""

    floats: str | None
    integers: str | None
    predicates: str | None = None
    unsigned: str | None = None
    """Of ui32, where that is another operation."""

    def operation(self, element: str) -> str | None:
        """The name of arith's operation for a type of elements."""
        if element in FLOATS:
            return self.floats
        if element in PREDICATES:
            return self.predicates
        if element == "u32" and self.unsigned is not None:
            return self.unsigned
        return self.integers if element in INTEGERS else None


COMBINATIONS = {
    "add": Combination("arith.addf", "arith.addi"),
    "mul": Combination("arith.mulf", "arith.muli"),
    "max": Combination("arith.maximumf", "arith.maxsi", unsigned="arith.maxui"),
    "min": Combination("arith.minimumf", "arith.minsi", unsigned="arith.minui"),
    "maxnum": Combination("arith.maxnumf", None),
    "minnum": Combination("arith.minnumf", None),
    "maxui": Combination(None, "arith.maxui"),
    "minui": Combination(None, "arith.minui"),
    "and": Combination(None, "arith.andi", "arith.andi"),
    "or": Combination(None, "arith.ori", "arith.ori"),
    "xor": Combination(None, "arith.xori", "arith.xori"),
}
"""The operations that combine two elements to one of the same type."""

PLACES = ("argmax", "argmin")
"""The place of the largest or smallest element along the dimension, the first of equals, as i32."""

WORDS = (*COMBINATIONS, *PLACES)


def problem(word: str, element: Attribute, words: Iterable[str] = WORDS) -> str | None:
    """Why elements of a type are not combined so; None where they are. `words` may be named."""
    try:
        name = element_name(element)
    except NoElementError:
        name = ""
    able = [other for other in words if _combines(other, name)]
    if word in able:
        return None
    if able:
        return f"{element} is not combined by {word}; it is by {', '.join(able)}"
    return f"{element} is not combined; cast the tile to f32 or i32 before"


def _combines(word: str, element: str) -> bool:
    """Whether elements of a type, by its PTX name, are combined so."""
    if word in PLACES:
        return element in (*FLOATS, *INTEGERS)
    return COMBINATIONS[word].operation(element) is not None


def neutral(word: str, element: str) -> float | int:
    """What changes no element that it is combined with; of integers as bits with a sign."""
    half = 2 ** (int(element[1:]) - 1) if element in INTEGERS else 0
    low, high = (0, -1) if element == "u32" or word.endswith("ui") else (-half, half - 1)
    if element in FLOATS:
        low, high = -inf, inf
    if element in PREDICATES:
        return word == "and"
    return {"add": 0, "mul": 1, "maxnum": nan, "minnum": nan, "and": -1, "or": 0, "xor": 0}.get(
        word, low if word.startswith("max") else high
    )
