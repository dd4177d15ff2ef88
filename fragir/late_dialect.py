"""Dialects of which a process imports the operations that its program has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from xdsl.ir import Attribute, Dialect, Operation


class LateDialect(Dialect):
    """A dialect of which some operations are imported when they are first asked for.

    `late` says of each where it stands: (module, class), and `late_attributes` the same of
    attributes and types. To `Context`s of xDSL the dialect is like
    any other; `fragir.plugins.FragirContext` loads what is `early`, and finds the rest by name.
    """

    def __init__(
        self,
        name: str,
        early: Sequence[type[Operation]],
        attributes: Sequence[type[Attribute]],
        late: Mapping[str, tuple[str, str]],
        late_attributes: Mapping[str, tuple[str, str]] | None = None,
    ):
        super().__init__(name, list(early), list(attributes))
        self.late = late
        self.late_attributes = late_attributes or {}

    @property
    def early(self) -> Sequence[type[Operation]]:
        """What is imported with the dialect."""
        return self._operations

    @property
    def operations(self) -> Iterator[type[Operation]]:
        """All of them: this imports what is not there yet."""
        yield from self._operations
        yield from map(_class_in, self.late.values())

    @property
    def early_attributes(self) -> Sequence[type[Attribute]]:
        """Attributes and types that are imported with the dialect."""
        return self._attributes

    @property
    def attributes(self) -> Iterator[type[Attribute]]:
        """All attributes and types: this imports what is not there yet."""
        yield from self._attributes
        yield from map(_class_in, self.late_attributes.values())

    def find_attribute(self, name: str) -> type[Attribute] | None:
        """An attribute or type that is not early, by its name as in programs."""
        where = self.late_attributes.get(name)
        return None if where is None else _class_in(where)

    def find(self, name: str) -> type[Operation] | None:
        """An operation that is not early, by its name as in programs; None where there is none."""
        where = self.late.get(name)
        return None if where is None else _class_in(where)

    def member(self, name: str) -> type[Operation] | type[Attribute] | None:
        """An operation, attribute or type that is not early, by the name of its class."""
        for where in (*self.late.values(), *self.late_attributes.values()):
            if where[1] == name:
                return _class_in(where)
        return None


def _class_in(where: tuple[str, str]) -> Any:
    """The class that stands in a module, which is imported."""
    module, name = where
    return getattr(import_module(module), name)
