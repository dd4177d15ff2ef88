"""The text of layouts over F2, Triton's notation: `f2:{"lane": [[0, 2], [1, 0]]}`."""

from __future__ import annotations

import json
import re
from typing import TypeGuard, cast

from fragir.layout.modes import LayoutError, Point, default_dims

MOST_TEXT = 20_000
_KEY = re.compile(r'["\']?(?<!\w)(\w++)["\']?\s*+[:=]')
_F2 = re.compile(r"\s*f2:\s*(\{[^{}]*\})\s*(?:dims\s*\(([\w\s,]*)\)\s*)?")

Bases = tuple[Point, ...]
BasesByAxis = tuple[tuple[str, Bases], ...]


def bases_of(text: str) -> tuple[BasesByAxis, tuple[str, ...]]:
    """The bases of every axis, and the names of the dimensions. Raises LayoutError."""
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
