"""The text of a module, which of its operations stands at which line, and what becomes of it."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from io import StringIO
from itertools import groupby
from typing import Literal, NamedTuple

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


def print_module(module: ModuleOp) -> PrintedModule:
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


# -- differences -----------------------------------------------------------------------------------
# Which lines differ between two texts, so that the one becomes the other.

Change = Literal["added", "removed", "changed", "renamed"]
_CHANGES: dict[str, Change] = {"insert": "added", "delete": "removed", "replace": "changed"}
_NUMBERS = re.compile(r"(%[A-Za-z_$.-][\w$.-]*?)_\d+\b|(%)\d+\b")
MANY = 10_000
"""Lines from which on those that are frequent are no hold for the comparison."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines `before` of the old text are lines `after` of the new one.

    Both are (first, behind the last), counted from 0, as in `old[first:behind]`. "renamed" are
    lines in which values have other numbers only, as those behind a line that was added.
    """

    change: Change
    before: tuple[int, int]
    after: tuple[int, int]


def differences(old: Sequence[str], new: Sequence[str]) -> tuple[LineChange, ...]:
    """What differs, in the order of the lines; what stands between is alike."""
    return tuple(_line_changes(old, new))


def _line_changes(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    plain = [bare(line) for line in old], [bare(line) for line in new]
    matcher = SequenceMatcher(None, *plain, autojunk=len(old) + len(new) > MANY)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "replace":
            yield from _replaced_lines(old, new, (a, b), (c, d))
            continue
        if tag != "equal":
            yield LineChange(_CHANGES[tag], (a, b), (c, d))
            continue
        at = 0
        for same, run in groupby(range(b - a), lambda i: old[a + i] == new[c + i]):
            length = len(list(run))
            if not same:
                where = (a + at, a + at + length), (c + at, c + at + length)
                yield LineChange("renamed", *where)
            at += length


def bare(line: str) -> str:
    """A line without its indentation and the numbers of its values, which the printer gives.

    >>> bare("  %12 = arith.addi %k0, %row_1 : index")
    '% = arith.addi %k0, %row : index'
    """
    return _NUMBERS.sub(r"\1\2", line.lstrip(" "))


def _replaced_lines(
    old: Sequence[str], new: Sequence[str], before: tuple[int, int], after: tuple[int, int]
) -> Iterator[LineChange]:
    """A stretch that was replaced, line by line where operations and operands are the same."""
    (a, b), (c, d) = before, after
    heads = [_head(line) for line in old[a:b]], [_head(line) for line in new[c:d]]
    for tag, i, j, k, m in SequenceMatcher(None, *heads, autojunk=False).get_opcodes():
        kind = "changed" if tag == "equal" else _CHANGES[tag]
        yield LineChange(kind, (a + i, a + j), (c + k, c + m))


def _head(line: str) -> str:
    """What an operation does to what, without its types."""
    return bare(line).partition(" : ")[0]


def counts(found: Sequence[LineChange]) -> dict[Change, int]:
    """How many lines were added, removed, changed and renamed.

    Of a stretch that was replaced by a longer one, as many lines as it had count as changed and
    the rest as added; by a shorter one, the rest as removed.
    """
    total: dict[Change, int] = {"added": 0, "removed": 0, "changed": 0, "renamed": 0}
    for one in found:
        old, new = one.before[1] - one.before[0], one.after[1] - one.after[0]
        total["renamed" if one.change == "renamed" else "changed"] += min(old, new)
        total["added"] += max(0, new - old)
        total["removed"] += max(0, old - new)
    return total


def apply_changes(old: Sequence[str], found: Sequence[LineChange], new: Sequence[str]) -> list[str]:
    """The new text, made of the old one and of those lines of the new one that differ."""
    result: list[str] = []
    at = 0
    for one in found:
        result += old[at : one.before[0]]
        result += new[one.after[0] : one.after[1]]
        at = one.before[1]
    return result + list(old[at:])
