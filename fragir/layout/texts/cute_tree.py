"""CuTe's texts as trees: `shape:stride`, basis strides `2@1`, swizzles, parts joined by `o`.

(8,(4,2)):(16,(1,4))                      integers
((4,8),2):((2@1,1@0),1@1)                 coordinates: E<1>{} is 1@1, E<0,1>{} is 1@1@0
Sw<3,4,3> o 0 o (8,64):(64,1)             a swizzle, an offset, a layout; `S<3,4,3>` in CuTe's IR
Sw<3,4,3> o smem_ptr[16b](unset) o ...    a swizzle of bytes over elements of 16 bits
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from fragir.layout.modes import Point
from fragir.layout.texts.cursor import Cursor

_INTEGER = re.compile(r"_?(\d{1,100})(?!\d)")
_BASIS = re.compile(r"@(\d{1,9})(?!\d)")
SWIZZLE = re.compile(r"Sw?<\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*>")
_ELEMENT = re.compile(r"smem_ptr(?:_flag)?\[(\d{1,9})b\]\s*\(unset\)")
_O = re.compile(r"o(?![A-Za-z])")
_DEEPEST = 32
"""Brackets within brackets; CuTe's own layouts have four or five."""


class Leaf(NamedTuple):
    """A number, of a basis where it has a path: which coordinate, which of that one's ...."""

    value: int
    path: Point
    at: int


Tree: TypeAlias = "Leaf | tuple[Tree, ...]"


@dataclass(frozen=True)
class Term:
    """One part of a composition: the one that is set."""

    at: int
    swizzle: Point | None = None
    element_bits: int | None = None
    offset: int | None = None
    shape: Tree = ()
    stride: Tree = ()


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The numbers in order."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        for branch in tree:
            yield from leaves(branch)


def read_terms(text: str) -> tuple[Cursor, list[Term]]:
    """The parts of a text, outermost first. Raises LayoutError with the column."""
    cursor = Cursor(text, "the CuTe layout")
    if ":" not in text and "<" not in text:
        raise cursor.error(f"A CuTe layout is shape:stride, but there is no ':' in {cut(text)}.", 0)
    terms = [_term(cursor)]
    while cursor.take(_O):
        terms.append(_term(cursor))
    if not cursor.done:
        rest = text[cursor.position :]
        raise cursor.error(f"{cut(rest)} is left over in the CuTe layout.")
    return cursor, terms


def _term(cursor: Cursor) -> Term:
    cursor.skip()
    at = cursor.position
    if found := cursor.take(SWIZZLE):
        return Term(at, swizzle=(int(found[1]), int(found[2]), int(found[3])))
    if found := cursor.take(_ELEMENT):
        return Term(at, element_bits=int(found[1]))
    shape = _Trees(cursor).tree()
    if isinstance(shape, Leaf) and not cursor.sign(":"):
        return Term(at, offset=shape.value)
    if not isinstance(shape, Leaf) and not cursor.sign(":"):
        if not cursor.done:
            raise cursor.error(f"{cut(cursor.text[cursor.position :])} is left over.")
        raise cursor.error(
            f"A CuTe layout is shape:stride, but there is no ':' after {cut(cursor.text[at:])}."
        )
    return Term(at, shape=shape, stride=_Trees(cursor).tree())


class _Trees:
    """Nested tuples of numbers."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.start = cursor.position
        self.depth = 0

    def tree(self) -> Tree:
        cursor = self.cursor
        if not cursor.sign("("):
            return self.leaf()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise cursor.error(f"The CuTe layout has brackets more than {_DEEPEST} deep.")
        branches = [self.tree()]
        while cursor.sign(","):
            branches.append(self.tree())
        if not cursor.sign(")"):
            self.refuse("A comma or )")
        self.depth -= 1
        return tuple(branches)

    def leaf(self) -> Leaf:
        cursor = self.cursor
        cursor.skip()
        at = cursor.position
        if cursor.text.startswith("?", at):
            raise cursor.error(
                "'?' is a number that is known when the kernel runs.",
                at,
                hint="a layout here has numbers only",
            )
        if cursor.text.startswith("-", at):
            raise cursor.error("A stride is not negative.", at)
        number = cursor.take(_INTEGER)
        if number is None:
            self.refuse("A number or (")
        assert number is not None
        path: list[int] = []
        while basis := cursor.take(_BASIS):
            path.append(int(basis[1]))
        return Leaf(int(number[1]), tuple(reversed(path)), at)

    def refuse(self, expected: str) -> None:
        cursor = self.cursor
        here = cursor.text[cursor.position : cursor.position + 1]
        if here and here not in "(),:o@":
            raise cursor.error(f"{here!r} is not part of a CuTe layout.")
        text = cut(cursor.text[self.start :])
        raise cursor.error(f"{expected} is missing in the CuTe layout {text}.")


def cut(text: str) -> str:
    """A text in a message, cut where it is long."""
    text = text.strip()
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def modes(shape: Tree, stride: Tree, cursor: Cursor, at: int) -> Iterator[tuple[int, Leaf]]:
    """Sizes and strides in order; nesting says nothing about the function."""
    if isinstance(shape, Leaf) and isinstance(stride, Leaf):
        if shape.path:
            raise cursor.error("A size is a number, not a basis.", shape.at)
        yield shape.value, stride
        return
    if isinstance(shape, Leaf) or isinstance(stride, Leaf) or len(shape) != len(stride):
        text = cut(cursor.text[at:])
        raise cursor.error(f"Shape and stride of {text} do not have the same nesting.", at)
    for size, step in zip(shape, stride, strict=True):
        yield from modes(size, step, cursor, at)


__all__ = ["SWIZZLE", "Leaf", "Term", "Tree", "cut", "leaves", "modes", "read_terms"]
