"""The text that a syntax tree was read from, and places in it."""

from __future__ import annotations

from bisect import bisect_right


class Source:
    """The text that a tree was read from, for messages. The writer does not look at it."""

    __slots__ = ("_starts", "filename", "text")

    def __init__(self, text: str, filename: str = "<ptx>"):
        self.text = text
        self.filename = filename
        self._starts: list[int] | None = None

    def __repr__(self) -> str:
        return f"<{self.filename}: {len(self.text)} characters>"

    def place(self, at: int) -> tuple[int, int]:
        """Line and column, both 1-based, of an offset; (0, 0) where `at` is -1."""
        if at < 0:
            return 0, 0
        if self._starts is None:
            starts = [0]
            find = self.text.find
            while end := find("\n", starts[-1]) + 1:
                starts.append(end)
            self._starts = starts
        line = bisect_right(self._starts, at)
        return line, at - self._starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line (1-based), without its end; empty beyond the text."""
        self.place(0)
        starts = self._starts or [0]
        if not 1 <= number <= len(starts):
            return ""
        end = starts[number] if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end].rstrip("\r\n")
