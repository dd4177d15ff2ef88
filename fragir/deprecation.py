"""Old names of what has moved: they work for one more version, with a `DeprecationWarning`.

A name that another module has now, in the module that had it:

    __getattr__ = moved(__name__, {"old": "fragir.layout:new"}, gone="0.3")

A module that has moved; its old file holds nothing else:

    __getattr__ = moved_module(__name__, "fragir.layout.modes", gone="0.3")

A method that subclasses override, where objects of theirs are taken:

    old_methods(check, Hooks, {"on_old": "on_new"}, gone="0.3")

A call that means something else now, in the function that is called:

    warn("fragir.layout.plan of two layouts is fragir.layout.sources now, and goes in fragir 0.3")

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
        warn(f"{module}.{name} is {home}.{new} now, and goes in fragir {gone}")
        return getattr(import_module(home), new)

    return __getattr__


def moved_module(module: str, to: str, *, gone: str) -> Callable[[str], object]:
    """A `__getattr__` for a module that is `to` now; its old name goes in the version `gone`."""

    def __getattr__(name: str) -> object:
        new = import_module(to)
        if name.startswith("__") or not hasattr(new, name):  # the import system asks for __path__
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        value = getattr(new, name)
        warn(f"{module} is {to} now, and goes in fragir {gone}")
        return value

    return __getattr__


def old_methods(object_: object, base: type, names: Mapping[str, str], *, gone: str) -> None:
    """Has an object's own methods of old names called by their new ones: old -> new.

    `base` has them all. The warning is at the method; one that has the new name too says nothing.
    """
    class_ = type(object_)
    for old, new in names.items():
        method = getattr(class_, old)
        if method is getattr(base, old) or getattr(class_, new) is not getattr(base, new):
            continue
        setattr(object_, new, getattr(object_, old))
        code, where = getattr(method, "__code__", None), getattr(method, "__globals__", {})
        text = f"{class_.__qualname__}.{old} is {new} now, and goes in fragir {gone}"
        warnings.warn_explicit(
            text,
            DeprecationWarning,
            code.co_filename if code else "<unknown>",
            code.co_firstlineno if code else 0,
            where.get("__name__"),
            where.setdefault("__warningregistry__", {}),
        )


def warn(message: str) -> None:
    """At the line that asks: this function, `__getattr__` or who is called, and there it is."""
    warnings.warn(message, DeprecationWarning, stacklevel=3)
