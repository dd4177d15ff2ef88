"""From where in a program the lines of its PTX come, for us and for debuggers and profilers."""

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


def pointer_to(place: FileLineColLoc, files: dict[str, int]) -> str:
    """A `.loc` (PTX ISA 9.2, section 11.4.2): the lines behind it come from this place.

    `files` has the number of each file's name, and gets that of a new one.
    """
    number = files.setdefault(place.filename.data, len(files) + 1)
    return f"    .loc {number} {place.line.data} {place.column.data}"


def file_directives(files: dict[str, int]) -> str:
    """The lines that name the files. ptxas takes ASCII without quotes."""
    named = (
        (number, name.encode("ascii", "replace").decode().replace('"', "'").replace("\n", " "))
        for name, number in files.items()
    )
    return "".join(f'.file {number} "{name}"\n' for number, name in named)


#: In the order of the lines; one without an origin of its own belongs to that before it.
Origins: TypeAlias = tuple[LineOrigin, ...]
