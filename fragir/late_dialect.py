"""Dialects of which a process imports the operations that its program has, by rows of text.

A row says of one operation where all that belongs to it stands; nothing is imported before it is
asked for. `fragir.dialects.catalogue` has fragir's rows, a package's module has its own:

    KIT = LateDialect("kit", rows(\"\"\"
    operation     cls                lowering        meaning
    kit.row_max   row_max:RowMaxOp   row_max:lower   row_max:evaluate
    \"\"\", "tilekit"))
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any, NamedTuple

from xdsl.ir import Attribute, Dialect, Operation

from fragir.errors import FragirError


class Row(NamedTuple):
    """One operation, and where what belongs to it stands: `module:name`.

    Modules are counted from a package; without `:name` the name is the operation's last word. What
    is empty there is not, or an interface of the class says it (`fragir.dialects.interfaces`).
    """

    operation: str
    """Its name in programs: frag.reduce."""
    cls: str = ""
    """Its class; empty where that is in a dialect of xDSL's."""
    lowering: str = ""
    """What one lane does: a function of `Lanes` and the operation."""
    meaning: str = ""
    """What it means in the reference: a function of `Run` and the operation."""
    in_lanes: str = ""
    """The same in a region of `frag.lanes`: of `BlockThreads` and the operation."""
    writer: str = ""
    """How it is written as PTX: a function of `KernelText` and the operation."""
    layouts: str = ""
    """A class of `Layouts`."""
    patterns: str = ""
    """What `canonicalize` puts in its place, of a class with the trait `Canonical`: a function of
    the operation."""
    words: str = ""
    """Methods of the Python front door that make it: `k.load`, of a kernel; `t.sum`, of a tile."""
    package: str = ""
    """What modules are counted from; empty for fragir's, of which each reader has its own room."""

    @property
    def word(self) -> str:
        """The name without the dialect."""
        return self.operation.partition(".")[2]

    def place(self, column: str, room: str) -> tuple[str, str] | None:
        """Module and name that a column has; None where it is empty."""
        text = getattr(self, column)
        if not text:
            return None
        module, _, name = text.partition(":")
        return f"{self.package or room}.{module}", name or self.word


ROWS: dict[str, Row] = {}
"""Every row that is known, by its operation."""


def rows(text: str, package: str = "", *, in_rooms: bool = False) -> tuple[Row, ...]:
    """The rows of a table: a line of columns' names, then a line an operation.

    A dash is an empty cell; `column=cell` behind the last one is a column that few rows have.
    Modules are counted from `package`, `in_rooms` those of classes alone: so are fragir's own rows.
    """
    head, *lines = text.strip().splitlines()
    columns = head.split()
    found: list[Row] = []
    for line in lines:
        cells = line.split()
        given = {name: cell for name, cell in zip(columns, cells, strict=False) if cell != "-"}
        for cell in cells[len(columns) :]:
            column, _, given[column] = cell.partition("=")
        if "cls" in given:
            given["cls"] = f"{package}.{given['cls']}"
        found.append(Row(**given, package="" if in_rooms else package))
    return tuple(found)


def places(text: str, package: str) -> dict[str, str]:
    """The places of a table of names, a line a module: name -> `module:name`."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        module, *names = line.split()
        found.update((name, f"{package}.{module}:{name}") for name in names)
    return found


class LateDialect(Dialect):
    """A dialect of which operations are imported when they are first asked for.

    `rows` are of operations, `attributes` says of attributes and types where their classes stand,
    `module:name`. To `Context`s of xDSL the dialect is like any other;
    `fragir.plugins.FragirContext` loads what is `early`, classes that are there already, and finds
    the rest by name. FragirError for a row of an operation that
    has one of another package.
    """

    def __init__(
        self,
        name: str,
        rows: Iterable[Row] = (),
        attributes: Mapping[str, str] | None = None,
        *,
        early: Iterable[type[Operation]] = (),
        early_attributes: Iterable[type[Attribute]] = (),
    ):
        super().__init__(name, list(early), list(early_attributes))
        add_rows(rows)
        self.late: Mapping[str, str] = {row.operation: row.cls for row in rows if row.cls}
        self.late_attributes = attributes or {}

    @property
    def early(self) -> Sequence[type[Operation]]:
        """What is imported with the dialect."""
        return self._operations

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All of them: this imports what is not there yet."""
        yield from self._operations
        yield from map(import_named, self.late.values())

    @property
    def early_attributes(self) -> Sequence[type[Attribute]]:
        """Attributes and types that are imported with the dialect."""
        return self._attributes

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """All attributes and types: this imports what is not there yet."""
        yield from self._attributes
        yield from map(import_named, self.late_attributes.values())

    def find_attribute(self, name: str) -> type[Attribute] | None:
        """An attribute or type that is not early, by its name as in programs."""
        where = self.late_attributes.get(name)
        return None if where is None else import_named(where)

    def find(self, name: str) -> type[Operation] | None:
        """An operation that is not early, by its name as in programs; None where there is none."""
        where = self.late.get(name)
        return None if where is None else import_named(where)


def add_rows(rows: Iterable[Row]) -> None:
    """Makes rows known, the last of those that one package has of an operation.

    FragirError for a row of an operation that has one of another package's.
    """
    for row in rows:
        if ROWS.get(row.operation, row).package != row.package:
            raise FragirError(f"{row.operation} has a row already")
        ROWS[row.operation] = row


def import_named(where: str) -> Any:
    """What `module:name` says, imported; FragirError where it is not there."""
    module, _, name = where.partition(":")
    try:
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise FragirError(f"a row says {where}, which is not there: {error}") from error


def lazy_exports(
    package: str, names: Iterable[str], *others: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a package whose names are imported when they are
    used: `names` says where each stands, `module:name`; `others` are there already."""
    by_name = {where.partition(":")[2]: where for where in names}
    every = sorted([*by_name, *others])

    def find(name: str) -> Any:
        where = by_name.get(name)
        if where is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = vars(sys.modules[package])[name] = import_named(where)  # asked for once
        return found

    return find, lambda: every, every
