"""fragir: an IR for NVIDIA's tensor cores, from matrix programs to checked PTX.

>>> import fragir
>>> kernel = fragir.compile(program, target="sm_80")     # doctest: +SKIP
>>> kernel(a, b, c)                                      # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fragir.compiler import Kernel, compile, emit, lower, parse
    from fragir.errors import FragirError

__all__ = ["FragirError", "Kernel", "compile", "emit", "lower", "parse"]

_HOME = {"FragirError": "fragir.errors"}


def __getattr__(name: str) -> Any:
    """Imports xDSL only when something is compiled."""
    if name not in __all__:
        raise AttributeError(f"module 'fragir' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOME.get(name, "fragir.compiler")), name)
