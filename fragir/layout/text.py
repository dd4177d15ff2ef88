"""The text form of layouts; its grammar in a few regular expressions (no Lark: this is hot).

layout    = axis* ["offset" numbers] ["where" condition ("and" condition)*] ["dims" (names)]
            ["swizzle" "(" bits "," base "," shift ")"]  |  f2:{...} ["dims" (names)]
axis      = name "[" mode* "]"
mode      = size ":" ["^"] numbers
numbers   = n | "(" n ("," n)* ")"
condition = name ["/" n] "%" n "==" n
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from fragir.layout.modes import (
    DEFAULT_DIMS,
    Axis,
    Condition,
    LayoutError,
    Mode,
    Point,
    XorMode,
    check_parts,
    default_dims,
)

_NUMBERS = r"(?:\(\s*\d+(?:\s*,\s*\d+)*\s*\)|\d+)"
_MODE = re.compile(rf"\s*(\d+)\s*:\s*(\^\s*)?({_NUMBERS})")
_AXIS = re.compile(r"\s*([A-Za-z_]\w*)\s*\[")
_OFFSET = re.compile(rf"\s*offset\s*({_NUMBERS})")
_DIMS = re.compile(r"\s*dims\s*\(\s*([A-Za-z_]\w*(?:\s*,\s*[A-Za-z_]\w*)*)\s*\)")
_WHERE = re.compile(r"\s*where\b")
_CONDITION = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:/\s*(\d+))?\s*%\s*(\d+)\s*==\s*(\d+)")
_AND = re.compile(r"\s*and\b")
_SWIZZLE = re.compile(r"\s*swizzle\s*\(\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*\)")
_CLOSE = re.compile(r"\s*\]")
MOST_DIGITS = 100
_WORD = re.compile(r"[\w']+")


Parts: TypeAlias = "tuple[tuple[Axis, ...], tuple[str, ...] | None, Point, tuple[Condition, ...]]"
"""The axes of a layout, its dimensions (None where the text does not name them), offset, where."""


def _numbers(text: str) -> Point:
    return tuple([_number(number) for number in text.strip("()").split(",")])


def _number(text: str) -> int:
    if len(text) > MOST_DIGITS and len(text.strip()) > MOST_DIGITS:
        raise LayoutError(f"A number of {len(text.strip())} digits stands in the layout.")
    return int(text)


def text_of(
    axes: Sequence[Axis], dims: tuple[str, ...], offset: Point, where: Sequence[Condition]
) -> str:
    """The text of a layout of these parts; dimensions named as by default are left out."""
    parts = [str(axis) for axis in axes]
    if offset:
        parts.append(f"offset {_tuple(offset)}")
    if where:
        parts.append("where " + " and ".join(map(str, where)))
    shown = bool(offset) or any(axis.modes for axis in axes)
    if dims != DEFAULT_DIMS.get(len(dims) if shown else 2):
        parts.append(f"dims {_tuple(dims)}")
    return " ".join(parts)


def _tuple(values: Iterable[int | str]) -> str:
    return f"({','.join(map(str, values))})"


def parts_of(text: str) -> Parts:
    """The parts of a layout from its text. Raises LayoutError with the column."""
    if text.lstrip().startswith("f2:"):
        return _over_bits(text)
    position = 0

    def take(pattern: re.Pattern[str]) -> re.Match[str] | None:
        nonlocal position
        match = pattern.match(text, position)
        if match is not None:
            position = match.end()
        return match

    def expect(pattern: re.Pattern[str], what: str) -> re.Match[str]:
        match = take(pattern)
        if match is None:
            raise _syntax_error(text, position, what)
        return match

    axes: list[Axis] = []
    while match := take(_AXIS):
        modes: list[Mode] = []
        while mode := take(_MODE):
            kind = XorMode if mode[2] else Mode
            modes.append(kind(_number(mode[1]), _numbers(mode[3])))
        expect(_CLOSE, "a mode such as 4:(0,2), or ]")
        axes.append(Axis(match[1], tuple(modes)))
    offset: Point = ()
    where: list[Condition] = []
    dims: tuple[str, ...] | None = None
    if match := take(_OFFSET):
        offset = _numbers(match[1])
    if take(_WHERE):
        while True:
            found = expect(_CONDITION, "a condition such as lane/2%4==0")
            numbers = (_number(found[2] or "1"), _number(found[3]), _number(found[4]))
            where.append(Condition(found[1], *numbers))
            if not take(_AND):
                break
    if match := take(_DIMS):
        dims = tuple(name.strip() for name in match[1].split(","))
    swizzle = take(_SWIZZLE)
    if text[position:].strip():
        raise _syntax_error(text, position, "an axis such as lane [4:(0,2)], offset, where or dims")
    parts = tuple(axes), dims, offset, tuple(where)
    if swizzle is None:
        return parts
    return _swizzled(parts, (_number(swizzle[1]), _number(swizzle[2]), int(swizzle[3])))


def _over_bits(text: str) -> Parts:
    """The parts of a layout from its bases: exclusive-ored where they share bits."""
    from fragir.layout.bases import bases_of, check_bases
    from fragir.layout.exclusive import kernel_of

    bases, dims = bases_of(text)
    check_bases(bases, dims)
    axes = tuple(Axis(name, tuple(XorMode(2, basis) for basis in each)) for name, each in bases)
    return kernel_of(axes, (0,) * len(dims)).canonical, dims, (), ()


def _swizzled(parts: Parts, swizzle: tuple[int, int, int]) -> Parts:
    """The parts of a layout whose points are swizzled, as SharedLayout prints it."""
    from fragir.layout.exclusive import kernel_of
    from fragir.layout.fitting import swizzled_kernel

    axes, dims, offset, where = parts
    rank = next((len(m.step) for a in axes for m in a.modes), len(offset) or len(dims or " "))
    check_parts(axes, dims or default_dims(rank), offset, where)
    kernel = swizzled_kernel(kernel_of(axes, offset or (0,) * rank), axes, swizzle)
    return kernel.canonical, dims or default_dims(rank), kernel.point(kernel.start), where


def _syntax_error(text: str, position: int, expected: str) -> LayoutError:
    position += len(text[position:]) - len(text[position:].lstrip())
    word = _WORD.match(text, position)
    found = repr(word[0] if word else text[position]) if position < len(text) else "the end"
    before = text[:position]
    start = before.rfind("\n") + 1
    return LayoutError(
        f"Expected {expected} in the layout, but found {found}.",
        file="<layout>",
        line=before.count("\n") + 1,
        col=position - start + 1,
        source=text[start:].split("\n", 1)[0],
    )
