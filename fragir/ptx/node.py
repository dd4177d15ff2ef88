"""What makes a class a node of the syntax tree: frozen, slotted, and quick to make.

A reader makes a node for every word of a text. `dataclass(frozen=True)` sets each field by name
through `object.__setattr__`, which takes four times as long as the slots' own setters do, and
compiles six methods for each of the classes on import. So nodes are dataclasses (`fields` and
`replace` work) whose constructor is made here; the other methods are shared.
"""

from __future__ import annotations

from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from functools import cache
from operator import attrgetter
from types import CodeType, FunctionType
from typing import Any, TypeVar, cast, dataclass_transform

T = TypeVar("T")


class Frozen:
    """The methods of nodes: equality and hash by the fields that take part in comparison."""

    __slots__ = ()

    @staticmethod
    def _compared(node: object) -> Any:
        """The compared field, or a tuple of them."""
        return None

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._compared(self) == self._compared(other)

    def __hash__(self) -> int:
        return hash((type(self), self._compared(self)))

    def __repr__(self) -> str:
        own = fields(cast(Any, self))
        shown = [f"{f.name}={getattr(self, f.name)!r}" for f in own if f.repr]
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __setattr__(self, name: str, value: object) -> None:
        raise FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        return type(self), tuple(getattr(self, f.name) for f in fields(cast(Any, self)))


def position() -> int:
    """The field `at`: where the node begins in the source text, -1 where it was not read."""
    return field(default=-1, compare=False, repr=False)


@cache
def _constructor(count: int) -> CodeType:
    """A constructor of so many fields, named anew for each class: compiling costs most of it."""
    parameters = ", ".join(f"x{i}" for i in range(count))
    body = "; ".join(f"set{i}(self, x{i})" for i in range(count))
    namespace: dict[str, Any] = {}
    exec(f"def __init__(self, {parameters}): {body}", namespace)
    return namespace["__init__"].__code__


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def node(cls: type[T]) -> type[T]:
    """Class decorator: `dataclass(frozen=True, slots=True)` for a subclass of `Frozen`."""
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True)(cls)
    names = [f.name for f in fields(made)]
    compared = [f.name for f in fields(made) if f.compare]
    if compared:
        made._compared = staticmethod(attrgetter(*compared))
    setters: dict[str, Any] = {f"set{i}": getattr(made, x).__set__ for i, x in enumerate(names)}
    defaults = tuple(f.default for f in fields(made) if f.default is not MISSING)
    code = _constructor(len(names)).replace(co_varnames=("self", *names))
    made.__init__ = FunctionType(code, setters, "__init__", defaults)
    return made
