"""The one error type that users see: what is wrong, where, and how to go on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
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

    def __str__(self) -> str:
        head = f"{self.place}: {self.message}" if self.place else self.message
        if self.hint:
            head += f" ({self.hint})"
        if self.source is None:
            return head
        caret = "" if self.col is None else "\n  " + " " * (self.col - 1) + "^"
        return f"{head}\n  {self.source}{caret}"
