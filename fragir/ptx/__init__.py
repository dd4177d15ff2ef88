"""PTX as text: syntax tree, reader, writer, spelling. Lark is loaded by `parse` and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fragir.ptx.reader import PtxSyntaxError, expand_section, parse
    from fragir.ptx.tree import Module
    from fragir.ptx.visit import children, rename, transform, walk
    from fragir.ptx.writer import write

_HOMES = {
    "Module": "tree",
    "PtxSyntaxError": "reader",
    "children": "visit",
    "expand_section": "reader",
    "parse": "reader",
    "rename": "visit",
    "transform": "visit",
    "walk": "visit",
    "write": "writer",
}

__all__ = [
    "Module",
    "PtxSyntaxError",
    "children",
    "expand_section",
    "parse",
    "rename",
    "transform",
    "walk",
    "write",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"fragir.ptx.{home}"), name)
