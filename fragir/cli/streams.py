"""Standard streams that are closed (`>&-`, `<&-`): Python has None in their place.

What a command wants to print or read then fails as for any file that cannot be used, and nothing
else notices: `print(..., file=None)` would write the notes of stderr to stdout, and the next file
opened would get the number of the closed stream.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from typing import Any


class _Closed(io.TextIOBase):
    """A text stream of which every use fails, its bytes (`buffer`) too."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    @property
    def buffer(self) -> _Closed:
        return self

    def _fail(self) -> OSError:
        return OSError(errno.EBADF, "it is closed", self._name)

    def read(self, size: int | None = -1, /) -> Any:
        raise self._fail()

    def readline(self, size: int = -1, /) -> Any:
        raise self._fail()

    def write(self, text: object, /) -> int:
        raise self._fail()


def stand_in() -> None:
    """Makes closed standard streams usable: stderr as if nobody read it, the others as closed."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free number, which is this one
        stream: Any = (
            open(os.devnull, "w")  # lives to the end of the process
            if name == "stderr"
            else _Closed(f"<{name}>")
        )
        setattr(sys, name, stream)


def escape_what_cannot_be_encoded() -> None:
    """A result or name that the terminal's encoding lacks is no reason to fail."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
