"""fragir: an IR for NVIDIA's tensor cores, from matrix programs to checked PTX.

>>> import fragir
>>> kernel = fragir.compile(program, target="sm_80")     # doctest: +SKIP
>>> kernel(a, b, c)                                      # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fragir.builder import (
        Memory,
        Scalar,
        Tile,
        b1,
        bf16,
        e2m1,
        e2m1x2,
        e2m3,
        e3m2,
        e4m3,
        e5m2,
        f16,
        f32,
        f64,
        fragment,
        index,
        kernel,
        s4,
        s8,
        s32,
        s64,
        tf32,
        u4,
        u8,
        ue8m0,
    )
    from fragir.compiler import Kernel, compile, emit, lower, parse
    from fragir.errors import FragirError

__all__ = [
    "FragirError",
    "Kernel",
    "Memory",
    "Scalar",
    "Tile",
    "b1",
    "bf16",
    "compile",
    "e2m1",
    "e2m1x2",
    "e2m3",
    "e3m2",
    "e4m3",
    "e5m2",
    "emit",
    "f16",
    "f32",
    "f64",
    "fragment",
    "index",
    "kernel",
    "lower",
    "parse",
    "s4",
    "s8",
    "s32",
    "s64",
    "tf32",
    "u4",
    "u8",
    "ue8m0",
]

_COMPILER = ("Kernel", "compile", "emit", "lower", "parse")


def __getattr__(name: str) -> Any:
    """Imports xDSL only when something is compiled."""
    if name not in __all__:
        raise AttributeError(f"module 'fragir' has no attribute {name!r}")
    from importlib import import_module

    if name == "FragirError":
        home = "errors"
    else:
        home = "compiler" if name in _COMPILER else "builder"
    return getattr(import_module(f"fragir.{home}"), name)
