"""The one error type that users see: what is wrong, where, and how to go on."""

from __future__ import annotations

from dataclasses import dataclass

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
