"""Where in the user's program an operation was asked for, and checks of what it was given."""

from __future__ import annotations

import dis
import linecache
import os
import re
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import NoReturn, cast

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.errors import FragirError, require_whole_number

_OURS = str(Path(__file__).parent) + os.sep
_STORES = ("STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF")
_LOADS = ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF", "LOAD_FAST_BORROW")


def _frame() -> FrameType | None:
    """The innermost frame outside this package."""
    frame: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # as documented
    while frame is not None and frame.f_code.co_filename.startswith(_OURS):
        frame = frame.f_back
    return frame


class _Code:
    """What is known of a code object: where its instructions stand and what is assigned."""

    def __init__(self, code: CodeType):
        self.code = code
        self.targets = _targets(code)
        self.locations: dict[int, FileLineColLoc] = {}

    def location(self, instruction: int) -> FileLineColLoc:
        """File, line and column of the expression of an instruction."""
        found = self.locations.get(instruction)
        if found is None:
            # one position for every two bytes of byte code (PEP 657)
            line, _, col, _ = next(islice(self.code.co_positions(), instruction // 2, None))
            found = self.locations[instruction] = FileLineColLoc(
                StringAttr(self.code.co_filename),
                IntAttr(line or self.code.co_firstlineno),
                IntAttr((col or 0) + 1),
            )
        return found


# by id, as hashing a code object takes longer than everything else here; _Code keeps it alive
_known: dict[int, _Code] = {}


def _code(frame: FrameType) -> _Code:
    found = _known.get(id(frame.f_code))
    if found is None:
        if len(_known) >= 1000:
            _known.clear()
        found = _known[id(frame.f_code)] = _Code(frame.f_code)
    return found


def place() -> LocationAttr:
    """File, line and column of the expression that the user's program is at."""
    frame = _frame()
    return UnknownLoc() if frame is None else _code(frame).location(frame.f_lasti)


def place_of(traceback: TracebackType | None) -> LocationAttr | None:
    """Where the user's program had called this package when an exception came out of it; None
    where the exception is of other code.
    """
    caller: TracebackType | None = None
    found: TracebackType | None = None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_OURS):
            found = caller
        else:
            caller = traceback
        traceback = traceback.tb_next
    return None if found is None else _code(found.tb_frame).location(found.tb_lasti)


def target() -> str | None:
    """The variable or attribute that the expression is assigned to: `x = k.load(...)` gives x.

    It becomes the value's name in the IR and in the PTX.
    """
    frame = _frame()
    name = None if frame is None else _code(frame).targets.get(frame.f_lasti)
    return name if name is not None and SSAValue.is_valid_name(name) else None


def _targets(code: CodeType) -> dict[int, str]:
    """The name that is stored to right after an instruction, by the instruction's offset."""
    found: dict[int, str] = {}
    listing = list(dis.get_instructions(code))
    for first, second, third in zip(listing, listing[1:], [*listing[2:], None], strict=False):
        name: str | None = None
        if second.opname.startswith(_STORES):
            # from 3.13 on two instructions may be one, with two names
            name = second.argval if isinstance(second.argval, str) else second.argval[0]
        elif third is not None and third.opname == "STORE_ATTR" and second.opname in _LOADS:
            name = third.argval
        if name is not None:
            # while Python code is called, a frame stands at the end of the call's cache entries
            found.update(dict.fromkeys(range(first.offset, second.offset, 2), name))
    return found


def describe(location: LocationAttr) -> str:
    """`line N`, or `FILE:N` where that is another file than the user's present one."""
    if not isinstance(location, FileLineColLoc):
        return "another place"
    here = place()
    line = f"line {location.line.data}"
    same = isinstance(here, FileLineColLoc) and here.filename == location.filename
    return line if same else f"{location.filename.data}:{location.line.data}"


def error_at(location: LocationAttr, message: str, hint: str | None = None) -> FragirError:
    """An error at a place, with the text of its line."""
    if not isinstance(location, FileLineColLoc):
        return FragirError(message, hint=hint)
    file, line, col = location.filename.data, location.line.data, location.column.data
    source = linecache.getline(file, line).rstrip("\n") or None
    return FragirError(message, file, line, col, source, hint)


def fail(message: str, hint: str | None = None) -> NoReturn:
    """Raises an error at the user's present line."""
    raise error_at(place(), message, hint)


# -- checks ----------------------------------------------------------------------------------------
# Checks of what a user gives the builder: names, shapes, extents.

Size = int | str

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_EXTENT = re.compile(r"\s*([A-Za-z_]\w*|\d+)\s*(?:(?:/|by)\s*(\d+)\s*)?", re.ASCII)


def items(given: object) -> list[object] | None:
    """The items of a tuple or list, None for anything else."""
    if isinstance(given, tuple | list):
        return list(cast("Sequence[object]", given))
    return None


def require_name(name: object, what: str) -> str:
    """A name for `what`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        fail(f"{name!r} is no name for {what}", "write letters, digits and _, as in gemm_128")
    return name


def require_word(given: object, name: str) -> str:
    """A text that the operation itself judges."""
    if isinstance(given, str):
        return given
    fail(f"{name} is {given!r}, it must be a str")


def require_number(given: object, name: str, least: int | None = None) -> int:
    """A whole number of 32 bits, as the device computes with them."""
    try:
        number = require_whole_number(given, name, least)
    except FragirError as error:
        fail(error.message)
    if not -(1 << 31) <= number < 1 << 31:
        fail(f"{name} does not fit 32 bits")
    return number


def require_positive(given: object, count: int, name: str) -> list[int]:
    """So many positive numbers."""
    numbers = items(given) or []
    if len(numbers) != count:
        fail(f"{name} is {given!r}, it must be {count} positive numbers")
    return [require_number(number, name, 1) for number in numbers]


def require_strides(given: object, sizes: Sequence[Size], name: str) -> list[int | None]:
    """A stride for each size, None for what the array has."""
    strides = items(given)
    if strides is None:
        fail(f"the strides of {name} are {given!r}", "write a tuple as in (None, 1)")
    if len(strides) != len(sizes):
        fail(f"{name} has {len(sizes)} dimensions and {len(strides)} strides")
    return [None if s is None else require_number(s, f"a stride of {name}", 0) for s in strides]


def require_pair(given: object, name: str) -> tuple[int, int] | None:
    """Two positive numbers, None as it is."""
    if given is None:
        return None
    match items(given):
        case [int(m), int(n)] if min(m, n) > 0:
            return m, n
        case _:
            pass
    fail(f"{name} is {given!r}, it must be two positive numbers", f"write {name}=(2, 2)")


def require_size(size: object, name: str) -> Size:
    """A size of memory: a number or a name."""
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return size
    if isinstance(size, str) and _NAME.fullmatch(size):
        return size
    fail(f"{size!r} is no size of {name}", 'write a positive number, or a name as in "m"')


def require_divisor(number: object, name: str) -> int:
    """What a size is promised to be a multiple of."""
    if isinstance(number, int) and not isinstance(number, bool) and 0 < number < 1 << 31:
        return number
    fail(f"{name} cannot be a multiple of {number!r}", f"give a positive number, as in {name}=16")


def require_dimension(axis: object, rank: int, of: str) -> int:
    """The number of a dimension, counted from the end if it is negative."""
    number = require_number(axis, "axis")
    if not -rank <= number < rank:
        fail(f"axis is {number}, but {of} has {rank} dimension{'s' * (rank > 1)}")
    return number % rank


def require_shape(shape: object) -> list[int]:
    """Sizes that Python knows."""
    given = items(shape) or []
    sizes = [size for size in given if isinstance(size, int) and size > 0]
    if sizes and len(sizes) == len(given):
        return sizes
    fail(f"{shape!r} is no shape", "write positive numbers that Python knows, as in (128, 64)")


def by(shape: Sequence[object]) -> str:
    """The text of a shape."""
    return "x".join(map(str, shape))


def require_extent(extent: object) -> frag.Extent:
    """An extent of a grid, as in `"n / 128"`."""
    if isinstance(extent, int) and extent > 0:
        return frag.Extent(extent)
    match = _EXTENT.fullmatch(extent) if isinstance(extent, str) else None
    if match is None or int(match[2] or 1) < 1:
        fail(f"{extent!r} is no extent of a grid", 'write a number, "n" or "n / 128"')
    size = int(match[1]) if match[1].isdigit() else match[1]
    return frag.Extent(size, int(match[2] or 1))
