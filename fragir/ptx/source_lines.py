"""From which lines of a program those of PTX were compiled, by its `.file` and `.loc`."""

from __future__ import annotations

import re
from bisect import bisect_right

_FILE = re.compile(r'^[ \t]*\.file[ \t]+(\d+)[ \t]+"([^"\n]*)"', re.MULTILINE)
_LOC = re.compile(
    r"^[ \t]*\.loc[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+)"
    r"(?:[^\n]*\binlined_at[ \t]+(\d+)[ \t]+(\d+)[ \t]+(\d+))?"
    r"|^[ \t]*\.(?:visible|extern|weak|entry|func)\b",
    re.MULTILINE,
)


class SourceLines:
    """The places that `.loc` gives to the lines of a PTX text (PTX ISA 9.2, section 11.5.2).

    A `.loc` holds to the next one, and not beyond its function.
    """

    def __init__(self, text: str) -> None:
        files: dict[str, str] = dict(_FILE.findall(text)) if ".loc" in text else {}
        self._starts: list[int] = []
        self._places: list[str] = []
        line, at = 1, 0
        for found in _LOC.finditer(text) if ".loc" in text else ():
            line += text.count("\n", at, found.start())
            at = found.start()
            parts: list[str] = []
            for file, row, col in (found.group(1, 2, 3), found.group(4, 5, 6)):
                if file:
                    place = f"{files.get(file, f'file {file}')}:{row}"
                    parts.append(place if col == "0" else f"{place}:{col}")
            self._starts.append(line)
            self._places.append(", inlined at ".join(parts))

    def place(self, line: int) -> str:
        """`k.cu:12:3`, of what is inlined `f.h:7:1, inlined at k.cu:40:7`; empty where no `.loc`
        holds."""
        index = bisect_right(self._starts, line)
        return self._places[index - 1] if index else ""
