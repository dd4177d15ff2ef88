"""The error of a text that cannot be read, with its place and what could have stood there."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn

from fragir.errors import FragirError
from fragir.ptx.expected import describe
from fragir.ptx.limits import Refused, Unexpected
from fragir.ptx.tree.source import Source


@dataclass
class PtxSyntaxError(FragirError):
    """PTX text that cannot be read; `expected` names what could have stood at the place."""

    expected: tuple[str, ...] = ()


@contextmanager
def pointing_into(source: Source) -> Generator[None]:
    """What the grammar refuses becomes a PtxSyntaxError with its place."""
    try:
        yield
    except Unexpected as error:
        _raise(source, error.at, error.expected)
    except Refused as error:
        raise _error(source, error.at, error.message) from None


def _error(source: Source, at: int, message: str, expected: tuple[str, ...] = ()) -> PtxSyntaxError:
    line, col = source.place(at)
    shown = source.line(line)
    if len(shown) > 200:  # a window of a very long line
        begin = max(0, col - 100)
        shown, col = shown[begin : begin + 200], col - begin
    shown = "".join(c if c.isprintable() else " " if c == "\t" else "?" for c in shown)
    error = PtxSyntaxError(message, source.filename, line, col, shown, expected=expected)
    return error


def _raise(source: Source, at: int, terminals: frozenset[str]) -> NoReturn:
    expected = describe(terminals)
    text = source.text
    rest = text[at : at + 60]
    if not rest:
        found = "the end of the text"
    else:
        word = re.match(r"[\w$%.]+|.", rest, re.ASCII | re.DOTALL)
        found = repr(word.group()) if word else repr(rest[0])
    if rest.startswith("/*"):
        raise _error(source, at, "a comment without an end", ("'*/'",)) from None
    message = f"unexpected {found}"
    if expected:
        message += ", expected " + (
            expected[0] if len(expected) == 1 else f"{', '.join(expected[:-1])} or {expected[-1]}"
        )
    raise _error(source, at, message, expected) from None
