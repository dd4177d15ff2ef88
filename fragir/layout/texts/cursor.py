"""Reading a short text from left to right; what is wrong is said with the column."""

from __future__ import annotations

import re

from fragir.layout.modes import LayoutError

MOST_TEXT = 20_000
MOST_DIGITS = 30
_BLANK = re.compile(r"\s*")
_WORD = re.compile(r"[\w'#.]+")


class Cursor:
    """A position in a text. Blanks before a pattern are skipped."""

    def __init__(self, text: str, what: str, position: int = 0) -> None:
        self.text, self.what, self.position = text, what, position
        if len(text) > MOST_TEXT:
            raise LayoutError(f"{what} has {len(text)} characters; at most {MOST_TEXT} are read.")

    def skip(self) -> None:
        """Past the blanks."""
        match = _BLANK.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    @property
    def done(self) -> bool:
        """Whether nothing but blanks is left."""
        self.skip()
        return self.position == len(self.text)

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The pattern if it stands here, and past it."""
        self.skip()
        match = pattern.match(self.text, self.position)
        if match is not None:
            self.position = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], expected: str) -> re.Match[str]:
        """The pattern, which must stand here. Raises LayoutError."""
        match = self.take(pattern)
        if match is None:
            raise self.missing(expected)
        return match

    def sign(self, sign: str) -> bool:
        """Whether these characters stand here; then past them."""
        self.skip()
        if not self.text.startswith(sign, self.position):
            return False
        self.position += len(sign)
        return True

    def need(self, sign: str, expected: str | None = None) -> None:
        """Past these characters, which must stand here. Raises LayoutError."""
        if not self.sign(sign):
            raise self.missing(expected or f"'{sign}'")

    def end(self, expected: str = "the end") -> None:
        """LayoutError unless nothing is left."""
        if not self.done:
            raise self.missing(expected)

    def missing(self, expected: str) -> LayoutError:
        """The error that something else was expected here."""
        self.skip()
        word = _WORD.match(self.text, self.position)
        here = self.text[self.position : self.position + 1]
        found = repr(word[0][:40] if word else here) if here else "the end"
        return self.error(f"Expected {expected} in {self.what}, but found {found}.")

    def error(self, message: str, at: int | None = None, hint: str | None = None) -> LayoutError:
        """An error about this place of the text, or about the one given."""
        at = self.position if at is None else at
        before = self.text[:at]
        start = before.rfind("\n") + 1
        return LayoutError(
            message,
            file="<layout>",
            line=before.count("\n") + 1,
            col=at - start + 1,
            source=self.text[start:].split("\n", 1)[0],
            hint=hint,
        )
