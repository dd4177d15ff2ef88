"""The text of a module, which of its operations stands at which line, and what becomes of it."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from typing import NamedTuple

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.printer import Printer


@dataclass(eq=False, repr=False)
class _LinePrinter(Printer):
    """A printer that takes down where operations begin."""

    def __post_init__(self) -> None:
        self.places: list[OperationPlace] = []

    def print_op(self, op: Operation) -> None:
        self.places.append(OperationPlace(op, self._current_line + 1, self._current_column + 1))
        super().print_op(op)


class OperationPlace(NamedTuple):
    """Line and column of an operation in its module's text, counted from 1."""

    op: Operation
    line: int
    col: int


class PrintedModule(NamedTuple):
    """Lines of text, and the operations in their order."""

    lines: tuple[str, ...]
    places: tuple[OperationPlace, ...]

    def first_of_lines(self) -> Iterator[OperationPlace]:
        """The operation that a line begins with, for every line that has one."""
        last = 0
        for place in self.places:
            if place.line != last:
                yield place
            last = place.line


def printed(module: ModuleOp) -> PrintedModule:
    """The module as `fragir compile` prints it."""
    stream = StringIO()
    printer = _LinePrinter(stream)
    printer.print_op(module)
    return PrintedModule(tuple(stream.getvalue().split("\n")), tuple(printer.places))


class Traces:
    """Follows operations through a pass by the identity of their locations.

    Passes hand the location of an operation on to what they make of it. So every operation gets a
    location object of its own, and what has that very object afterwards was made of it. It is
    equal to the one that it had, so that nothing that is printed or compared changes.
    """

    def __init__(self) -> None:
        self._marked: dict[int, tuple[int, LocationAttr, LocationAttr]] = {}

    def mark(self, module: PrintedModule) -> None:
        """Takes down the lines of all operations, ahead of a pass."""
        self._marked = {}
        for op, line, _ in module.places:
            self._give(op, line, copy.copy(op.location))

    def relocate(self, module: PrintedModule, name: str) -> None:
        """As `mark`, with places in this text for locations until `restore`: what a pass says of
        an operation then names its line here, where one of the source may have become many."""
        self._marked = {}
        text = StringAttr(name)
        for op, line, col in module.places:
            self._give(op, line, FileLineColLoc(text, IntAttr(line), IntAttr(col)))

    def _give(self, op: Operation, line: int, location: LocationAttr) -> None:
        self._marked[id(location)] = line, location, op.location
        op.location = location

    def restore(self, module: ModuleOp) -> None:
        """Gives operations back the locations that they were made of."""
        for op in module.walk():
            if (known := self._marked.get(id(op.location))) is not None:
                self._marked[id(known[2])] = known[0], known[2], known[2]
                op.location = known[2]

    def line(self, op: Operation) -> int:
        """The line that an operation comes from, 0 where that is not known."""
        known = self._marked.get(id(op.location))
        return 0 if known is None else known[0]


def place_in(op: Operation, file: str | None) -> int:
    """The line of a file that an operation was written at, else 0."""
    where = op.location
    if isinstance(where, FileLineColLoc) and where.filename.data == file:
        return where.line.data
    return 0
