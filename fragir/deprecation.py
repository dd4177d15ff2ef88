"""Old names of what has moved: they work for one more version, with a `DeprecationWarning`.

A name that another module has now, in the module that had it:

    __getattr__ = moved(__name__, {"old": "fragir.layout:new"}, gone="0.3")

A module that has moved; its old file holds nothing else:

    __getattr__ = moved_module(__name__, "fragir.layout.modes", gone="0.3")

A function that goes has `typing_extensions.deprecated("... goes in 0.3; write ...")`, which type
checkers know too. Nothing that has gone is imported until somebody asks for it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module


def moved(module: str, names: Mapping[str, str], *, gone: str) -> Callable[[str], object]:
    """A `__getattr__` for `module`, whose `names` are elsewhere now: old -> "module:name".

    `gone` is the version in which the old names go.
    """

    def __getattr__(name: str) -> object:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = names[name].partition(":")
        _warn(f"{module}.{name} is {home}.{new} now, and goes in fragir {gone}")
        return getattr(import_module(home), new)

    return __getattr__


def moved_module(module: str, to: str, *, gone: str) -> Callable[[str], object]:
    """A `__getattr__` for a module that is `to` now; its old name goes in the version `gone`."""

    def __getattr__(name: str) -> object:
        new = import_module(to)
        if name.startswith("__") or not hasattr(new, name):  # the import system asks for __path__
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(new, name)
        _warn(f"{module} is {to} now, and goes in fragir {gone}")
        return value

    return __getattr__


def _warn(message: str) -> None:
    """At the line that asks: this function, `__getattr__`, and there it is."""
    warnings.warn(message, DeprecationWarning, stacklevel=3)
