"""Checks of what a user gives the builder: names, shapes, extents."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from fragir.builder.places import fail
from fragir.dialects import frag
from fragir.errors import FragirError, whole_number

Size = int | str

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EXTENT = re.compile(r"\s*([A-Za-z_]\w*|\d+)\s*(?:(?:/|by)\s*(\d+)\s*)?", re.ASCII)


def items(given: object) -> list[object] | None:
    """The items of a tuple or list, None for anything else."""
    if isinstance(given, tuple | list):
        return list(cast("Sequence[object]", given))
    return None


def named(name: object, what: str) -> str:
    """A name for `what`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        fail(f"{name!r} is no name for {what}", "write letters, digits and _, as in gemm_128")
    return name


def word(given: object, name: str) -> str:
    """A text that the operation itself judges."""
    if isinstance(given, str):
        return given
    fail(f"{name} is {given!r}, it must be a str")


def whole(given: object, name: str, least: int | None = None) -> int:
    """A whole number of 32 bits, as the device computes with them."""
    try:
        number = whole_number(given, name, least)
    except FragirError as error:
        fail(error.message)
    if not -(1 << 31) <= number < 1 << 31:
        fail(f"{name} does not fit 32 bits")
    return number


def positive(given: object, count: int, name: str) -> list[int]:
    """So many positive numbers."""
    numbers = items(given) or []
    if len(numbers) != count:
        fail(f"{name} is {given!r}, it must be {count} positive numbers")
    return [whole(number, name, 1) for number in numbers]


def strides_of(given: object, sizes: Sequence[Size], name: str) -> list[int | None]:
    """A stride for each size, None for what the array has."""
    strides = items(given)
    if strides is None:
        fail(f"the strides of {name} are {given!r}", "write a tuple as in (None, 1)")
    if len(strides) != len(sizes):
        fail(f"{name} has {len(sizes)} dimensions and {len(strides)} strides")
    return [None if s is None else whole(s, f"a stride of {name}", 0) for s in strides]


def pair(given: object, name: str) -> tuple[int, int] | None:
    """Two positive numbers, None as it is."""
    if given is None:
        return None
    match items(given):
        case [int(m), int(n)] if min(m, n) > 0:
            return m, n
        case _:
            pass
    fail(f"{name} is {given!r}, it must be two positive numbers", f"write {name}=(2, 2)")


def size_of(size: object, name: str) -> Size:
    """A size of memory: a number or a name."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    if isinstance(size, str) and _NAME.fullmatch(size):
        return size
    fail(f"{size!r} is no size of {name}", 'write a positive number, or a name as in "m"')


def divisor_of(number: object, name: str) -> int:
    """What a size is promised to be a multiple of."""
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 1 << 31:
        return number
    fail(f"{name} cannot be a multiple of {number!r}", f"give a positive number, as in {name}=16")


def dimension(axis: object, rank: int, of: str) -> int:
    """The number of a dimension, counted from the end if it is negative."""
    number = whole(axis, "axis")
    if not -rank <= number < rank:
        fail(f"axis is {number}, but {of} has {rank} dimension{'s' * (rank > 1)}")
    return number % rank


def shape_of(shape: object) -> list[int]:
    """Sizes that Python knows."""
    given = items(shape) or []
    sizes = [size for size in given if isinstance(size, int) and size > 0]
    if sizes and len(sizes) == len(given):
        return sizes
    fail(f"{shape!r} is no shape", "write positive numbers that Python knows, as in (128, 64)")


def by(shape: Sequence[object]) -> str:
    """The text of a shape."""
    return "x".join(map(str, shape))


def extent_of(extent: object) -> frag.Extent:
    """An extent of a grid, as in `"n / 128"`."""
    if isinstance(extent, int) and extent > 0:
        return frag.Extent(extent)
    match = _EXTENT.fullmatch(extent) if isinstance(extent, str) else None
    if match is None or int(match[2] or 1) < 1:
        fail(f"{extent!r} is no extent of a grid", 'write a number, "n" or "n / 128"')
    size = int(match[1]) if match[1].isdigit() else match[1]
    return frag.Extent(size, int(match[2] or 1))
