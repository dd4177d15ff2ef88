"""From where in a program the lines of its PTX come."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from xdsl.dialects.builtin import FileLineColLoc


class LineOrigin(NamedTuple):
    """PTX from `ptx_line` on (1-based) comes from the operation at this place of the program."""

    ptx_line: int
    file: str
    line: int
    col: int

    @classmethod
    def of(cls, ptx_line: int, place: FileLineColLoc) -> LineOrigin:
        return cls(ptx_line, place.filename.data, place.line.data, place.column.data)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}"


#: In the order of the lines; one without an origin of its own belongs to that before it.
Origins: TypeAlias = tuple[LineOrigin, ...]
