"""The one error type that users see: what is wrong, where, and how to go on.

Also what checks the values that a caller gives: whole numbers, extents, words of a choice.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from types import FrameType, UnionType
from typing import Any, cast

_WIDTH = 160
"""A longer source line is cut around the column that the error is about."""


def printable(text: str, kept: str = "\n\t") -> str:
    """The text with what a terminal would act on written out, as `\\x1b`: control characters,
    reversed writing, halves of characters; but for those in `kept`."""
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in kept else c.encode("unicode_escape").decode() for c in text
    )


@dataclass(eq=False)
class FragirError(Exception):
    """An error in the user's input or environment.

    `message` is one sentence. `file`, `line` and `col` (both 1-based) say where, `source` is the
    text of that line, `hint` says how to go on.
    """

    message: str
    file: str | None = None
    line: int | None = None
    col: int | None = None
    source: str | None = None
    hint: str | None = None

    @property
    def place(self) -> str:
        """`file:line:col`, as far as it is known; empty where nothing is."""
        parts = [self.file or "", *(str(n) for n in (self.line, self.col) if n is not None)]
        return ":".join(parts) if self.file or self.line else ""

    @property
    def sentence(self) -> str:
        """The message and the hint, without the place, in one line."""
        text = f"{self.message} ({self.hint})" if self.hint else self.message
        return printable(" ".join(text.split()))

    def __str__(self) -> str:
        head = f"{printable(self.place, '')}: {self.sentence}" if self.place else self.sentence
        if self.source is None:
            return head
        return "\n".join([head, *_excerpt(self.source, self.col)])


def _excerpt(source: str, col: int | None) -> list[str]:
    """The source line, printable and not too long, and a caret under column `col`."""
    shown = "".join(
        c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in source
    )
    start = 0
    if len(shown) > _WIDTH:
        start = max(0, min((col or 1) - 1 - _WIDTH // 2, len(shown) - _WIDTH))
        shown = shown[start : start + _WIDTH]
    if col is None:
        return [f"  {shown}"]
    before = shown[: max(0, col - 1 - start)].ljust(col - 1 - start)
    return [f"  {shown}", "  " + "".join("\t" if c == "\t" else " " for c in before) + "^"]


def pass_on(error: BaseException) -> None:
    """Raises what code of the caller's raised, if the error comes from that: a signal handler, or
    what was called within `callers_code`.

    To be called before an exception is taken for a mistake, of whomever: it is no one's fault.
    """
    link: BaseException | None = error
    while link is not None:
        if _is_of_a_signal(link) or getattr(link, _MARK, False):
            raise link
        link = link.__cause__


_MARK = "_fragir_is_of_the_caller"


@contextmanager
def callers_code() -> Generator[None]:
    """Within it code of the caller's is called, whose exceptions are to come out as they are."""
    try:
        yield
    except Exception as error:
        setattr(error, _MARK, True)
        raise


def _is_of_a_signal(error: BaseException) -> bool:
    """Whether it came through a function that was given a number and a frame, as handlers are."""
    step = error.__traceback__
    while step is not None:
        code, held = step.tb_frame.f_code, step.tb_frame.f_locals
        given = [held.get(name) for name in code.co_varnames[: code.co_argcount]]
        if code.co_flags & 4:  # inspect.CO_VARARGS, a slow import; behind those by keyword alone
            given += held.get(code.co_varnames[code.co_argcount + code.co_kwonlyargcount]) or ()
        for number, frame in pairwise(given):
            if isinstance(number, int) and isinstance(frame, FrameType):
                return True
        step = step.tb_next
    return False


def require_whole_number(value: object, what: str, least: int | None = None) -> int:
    """A number given as an int of any package; FragirError where it is none or less than `least`.

    A bool is no number here: it is a slip.
    """
    try:
        number = None if isinstance(value, bool) else index(cast("Any", value))
    except TypeError:
        number = None
    if number is None:
        raise FragirError(f"{what} is {_shown_value(value)}, it must be a whole number")
    if least is not None and number < least:
        raise FragirError(f"{what} is {_shown_value(number)}, it must be {least} or more")
    return number


def require_extent(value: object, what: str) -> tuple[int, int, int]:
    """Sizes in x, y and z from a number or one to three of them; FragirError for anything else."""
    given: Sequence[object] = (value,)  # a list, a tuple, an array
    if isinstance(value, Sequence) or getattr(value, "shape", ()):
        given = () if isinstance(value, str | bytes) else tuple(cast("Iterable[object]", value))
    if not 1 <= len(given) <= 3:
        shown = _shown_value(cast("object", value))
        raise FragirError(f"{what} is {shown}, it must be one to three whole numbers")
    x, y, z = (*(require_whole_number(size, what) for size in given), 1, 1)[:3]
    return x, y, z


def check_one_of(value: object, choices: Sequence[str], what: str) -> None:
    """FragirError where a word is none of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise FragirError(
            f"{what} is {_shown_value(value)}, it must be one of {', '.join(choices)}"
        )


def check_kind(value: object, kind: type | UnionType, what: str, hint: str | None = None) -> None:
    """FragirError where a value is of another type; `what` says what is asked for."""
    if not isinstance(value, kind):
        raise FragirError(f"{what}, not {kind_of(value)}", hint=hint)


def kind_of(value: object) -> str:
    """What a value is, in a message: the name of its type, or None."""
    return "None" if value is None else type(value).__name__


def _shown_value(value: object) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
    return text if len(text) <= 80 else f"{text[:77]}..."


def short_text(text: str, most: int = 110) -> str:
    """A text on one line, cut where it is long: for what a value says of itself."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 4]}...{line[-1]}"
