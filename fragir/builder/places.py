"""Where in the user's program an operation was asked for, and errors that say so."""

from __future__ import annotations

import linecache
import sys
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import CodeType
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc

from fragir.errors import FragirError

_OURS = str(Path(__file__).parent)


def place() -> LocationAttr:
    """File, line and column of the innermost expression outside this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # CPython's documented access
    while frame.f_code.co_filename.startswith(_OURS):
        if frame.f_back is None:
            return UnknownLoc()
        frame = frame.f_back
    return _location(frame.f_code, frame.f_lasti)


@lru_cache(maxsize=4096)
def _location(code: CodeType, instruction: int) -> FileLineColLoc:
    # one position for every two bytes of byte code (PEP 657)
    line, _, col, _ = next(islice(code.co_positions(), instruction // 2, None))
    return FileLineColLoc(
        StringAttr(code.co_filename), IntAttr(line or code.co_firstlineno), IntAttr((col or 0) + 1)
    )


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
