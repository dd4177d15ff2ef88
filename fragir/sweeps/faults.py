"""Tells a fault of fragir's from a user's mistake: what fuzzers judge by."""

from __future__ import annotations

import traceback
from pathlib import Path

from fragir.errors import FragirError

#: How messages begin or end by which fragir itself says that it has failed.
_OURS = (
    *("fault of fragir", "the emulator failed"),
    *("object has no attribute", "NoneType", "index out of range", "not subscriptable"),
)
_ROOT = str(Path(__file__).parents[2])


def fault(error: BaseException) -> str | None:
    """The fault in one line, with its place in the source; None where the input is to blame.

    A FragirError is about the input, unless its message says otherwise.
    """
    if isinstance(error, FragirError) and not any(word in error.sentence for word in _OURS):
        return None
    return error_text(error)


def error_text(error: BaseException) -> str:
    """`KeyError: 'x' (fragir/ptx/reader.py:12 in parse)`."""
    words = " ".join(str(error).split())
    what = f"{type(error).__name__}: {words[:300]}" if words else type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(_ROOT)] or frames
    if not ours:
        return what
    last = ours[-1]
    name = last.filename.removeprefix(_ROOT).lstrip("/")
    return f"{what} ({name}:{last.lineno} in {last.name})"
