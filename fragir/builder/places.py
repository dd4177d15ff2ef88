"""Where in the user's program an operation was asked for, and errors that say so."""

from __future__ import annotations

import dis
import linecache
import os
import sys
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc
from xdsl.ir import SSAValue

from fragir.errors import FragirError

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
