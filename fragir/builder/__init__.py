"""Kernels written in Python: the same IR that `.mlir` files hold.

`fragir.kernel(...)` begins one; its methods are the operations of the `frag` dialect, Python's
operators those of `arith`. `docs/python.md` is the guide.
"""

from __future__ import annotations

from fragir.builder.control import Branch, Loop, While
from fragir.builder.kernel import KernelBuilder, kernel
from fragir.builder.types import (
    NAMES,
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
    s4,
    s8,
    s32,
    s64,
    tf32,
    u4,
    u8,
    ue8m0,
)
from fragir.builder.values import Memory, Scalar, Tile

__all__ = [
    "NAMES",
    "Branch",
    "KernelBuilder",
    "Loop",
    "Memory",
    "Scalar",
    "Tile",
    "While",
    "b1",
    "bf16",
    "e2m1",
    "e2m1x2",
    "e2m3",
    "e3m2",
    "e4m3",
    "e5m2",
    "f16",
    "f32",
    "f64",
    "fragment",
    "index",
    "kernel",
    "s4",
    "s8",
    "s32",
    "s64",
    "tf32",
    "u4",
    "u8",
    "ue8m0",
]


def __dir__() -> list[str]:
    """What there is to use, without what is imported here."""
    return __all__
