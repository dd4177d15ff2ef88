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
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias, TypeGuard, cast

from fragir.layout.modes import (
    DEFAULT_DIMS,
    WARP,
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
    return _swizzled_parts(parts, (_number(swizzle[1]), _number(swizzle[2]), int(swizzle[3])))


def _over_bits(text: str) -> Parts:
    """The parts of a layout from its bases: exclusive-ored where they share bits."""
    from fragir.layout.exclusive import kernel_of

    bases, dims = bases_of(text)
    check_bases(bases, dims)
    axes = tuple(Axis(name, tuple(XorMode(2, basis) for basis in each)) for name, each in bases)
    return kernel_of(axes, (0,) * len(dims)).canonical, dims, (), ()


def _swizzled_parts(parts: Parts, swizzle: tuple[int, int, int]) -> Parts:
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


# -- formula text ----------------------------------------------------------------------------------
# A layout printed in the notation of the PTX ISA, which `fragir.layout.formula` reads.

_THREAD_NAMES = tuple(f"thread{'_' * n}" for n in range(8))
"""What the thread of a warpgroup is called; the first that means nothing else."""

# The spellings of the axes in formulas; the first of each axis is printed.
VARIABLES = {
    "%laneid": "lane",
    "laneid": "lane",
    "%tid.x": "lane",
    "%tid": "lane",
    "%warpid": "warp",
    "warpid": "warp",
    "i": "element",
}


def formula_of(
    axes: Sequence[Axis], dims: tuple[str, ...], origin: Point, where: Sequence[Condition]
) -> str:
    """One closed formula for each dimension of a layout; `axes` as in its simplified form.

    Raises LayoutError for an axis whose name means another axis in formulas (`i`).
    """
    variables = {axis.name: _variable(axis.name) for axis in axes}
    lines: list[str] = []
    declared = dict(variables)
    lanes = next((axis.size for axis in axes if axis.name == "lane"), 0)
    if lanes > WARP:  # a warpgroup's threads: %laneid ends at 31
        taken = {*variables.values(), *dims}
        thread = next(name for name in _THREAD_NAMES if name not in taken)
        lines.append(f"{thread} = %tid.x % {lanes}")
        variables["lane"], declared["lane"] = thread, "%tid.x"
    for dim, (name, start) in enumerate(zip(dims, origin, strict=True)):
        terms = [term for axis in axes for term in _terms(axis, variables[axis.name], dim)]
        flips = [term for axis in axes for term in _flips(axis, variables[axis.name], dim)]
        if start or not terms + flips:
            terms.append(str(start))
        total = " + ".join(terms)
        flipped = [f"({total})" if flips and len(terms) > 1 else total] if terms else []
        lines.append(f"{name} = {' ^ '.join([*flipped, *flips])}")
    ranges = [f"{declared[axis.name]} = {_set(axis.size)}" for axis in axes]
    if ranges and lines:
        lines[-1] += f" for {', '.join(ranges)}"
    if where:
        conditions = [_condition_text(c, variables[c.axis]) for c in where]
        lines.append(f"held where {' && '.join(conditions)}")
    return "\n".join(lines)


def _variable(axis: str) -> str:
    spelt = next((name for name, meant in VARIABLES.items() if meant == axis), axis)
    if spelt == axis and axis in VARIABLES:
        raise LayoutError(f"In a formula {axis} means {VARIABLES[axis]}; rename the axis {axis}.")
    return spelt


def _digits(axis: Axis, variable: str) -> Iterator[tuple[Mode, str, bool]]:
    """The modes, each with its digit and whether that must be bracketed in a product or sum."""
    place = 1
    for mode in axis.modes:
        digit, loose = _quotient(variable, place)
        if place * mode.size < axis.size:
            digit = f"({digit}) % {mode.size}" if loose else f"{digit} % {mode.size}"
            loose = False
        yield mode, digit, loose
        place *= mode.size


def _terms(axis: Axis, variable: str, dim: int) -> Iterator[str]:
    """What is added."""
    for mode, digit, loose in _digits(axis, variable):
        if not mode.xor and mode.stride[dim]:
            yield _times(digit, loose, mode.stride[dim])


def _flips(axis: Axis, variable: str, dim: int) -> Iterator[str]:
    """What is exclusive-ored: the digit, moved to every bit that its column has."""
    for mode, digit, loose in _digits(axis, variable):
        column = mode.step[dim] if mode.xor else 0
        for bit in range(column.bit_length()):
            if column >> bit & 1:
                yield f"({_times(digit, loose, 1 << bit)})"


def _times(digit: str, loose: bool, factor: int) -> str:
    whole = f"({digit})" if loose else digit
    return whole if factor == 1 else f"{whole} * {factor}"


def _quotient(variable: str, place: int) -> tuple[str, bool]:
    """The variable divided by a place, and whether it must be bracketed in a product or sum."""
    if place == 1:
        return variable, False
    if place & (place - 1) == 0:
        return f"{variable} >> {place.bit_length() - 1}", True
    return f"{variable} / {place}", False


def _condition_text(condition: Condition, variable: str) -> str:
    digit, loose = _quotient(variable, condition.divisor)
    return f"{f'({digit})' if loose else digit} % {condition.modulus} == {condition.value}"


def _set(size: int) -> str:
    return "{0}" if size == 1 else f"{{0,..,{size - 1}}}"


# -- bases -----------------------------------------------------------------------------------------
# The text of layouts over F2, Triton's notation: `f2:{"lane": [[0, 2], [1, 0]]}`.

MOST_TEXT = 20_000
_KEY = re.compile(r'["\']?(?<!\w)(\w++)["\']?\s*+[:=]')
_F2 = re.compile(r"\s*f2:\s*(\{[^{}]*\})\s*(?:dims\s*\(([\w\s,]*)\)\s*)?")

Bases = tuple[Point, ...]
BasesByAxis = tuple[tuple[str, Bases], ...]


def bases_of(text: str) -> tuple[BasesByAxis, tuple[str, ...]]:
    """The bases of every axis, and the names of the dimensions. Raises LayoutError."""
    import json  # few layouts are written so

    match = _F2.fullmatch(text) if len(text) <= MOST_TEXT else None
    quoted = "" if match is None else _KEY.sub(r'"\1":', match[1])
    try:
        parsed: object = json.loads(quoted)
    except (ValueError, RecursionError):  # no JSON, a number too long, brackets too deep
        parsed = None
    if match is None or not _is_bases(parsed):
        raise LayoutError(
            f"Not a layout over F2: {text[:80]}{' ...' if len(text) > 80 else ''}.",
            hint='write f2:{"register": [[0, 1]], "lane": []}',
        )
    axes = axes_of(parsed)
    named = tuple(name.strip() for name in match[2].split(",")) if match[2] else ()
    return axes, named or dims_of(axes)


def check_bases(axes: BasesByAxis, dims: tuple[str, ...]) -> None:
    """LayoutError naming a basis that is no point of these dimensions."""
    for name, bases in axes:
        for basis in bases:
            if len(basis) != len(dims) or min(basis, default=0) < 0:
                raise LayoutError(
                    f"Basis {basis} of axis {name} is not {len(dims)} natural numbers."
                )


def axes_of(bases: dict[str, list[list[int]]]) -> BasesByAxis:
    """Bases in Triton's notation as points; `register` is the axis `element`."""
    return tuple(
        ("element" if name == "register" else name, tuple(tuple(basis) for basis in list_))
        for name, list_ in bases.items()
    )


def dims_of(axes: BasesByAxis) -> tuple[str, ...]:
    """The names of the dimensions where none are given: the length of the bases decides."""
    return default_dims(next((len(basis) for _, list_ in axes for basis in list_), 2))


def _is_bases(value: object) -> TypeGuard[dict[str, list[list[int]]]]:
    if not isinstance(value, dict):
        return False
    lists = cast("dict[object, object]", value).values()
    return all(
        isinstance(bases, list)
        and all(
            isinstance(basis, list) and all(isinstance(n, int) for n in cast("list[object]", basis))
            for basis in cast("list[object]", bases)
        )
        for bases in lists
    )
