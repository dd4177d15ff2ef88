"""z = x + y for vectors of any length, in f32 and in f16.

All blocks but the last have a whole tile and move 16 bytes at a time; only the last one asks of
each element whether it is there.

    python examples/elementwise/vector_add.py
"""

from __future__ import annotations

import numpy as np
from xdsl.ir import Attribute

import fragir
from fragir import f16, f32
from fragir.builder import KernelBuilder

TILE = 2048


def vector_add(name: str, element: Attribute) -> KernelBuilder:
    """The kernel for one type."""
    with fragir.kernel(name, warps=(4, 1)) as k:
        x, y, z = (k.memory(name, element, ("n",)) for name in "xyz")
        k.grid(f"n / {TILE}")
        at = (k.block_id() * TILE,)

        def add(masked: bool) -> None:
            u, v = (k.load(memory, at, shape=(TILE,), masked=masked) for memory in (x, y))
            k.store(u + v, z, at, masked=masked)

        with k.if_(at[0] + TILE <= k.size("n")) as whole:
            add(masked=False)
        with whole.else_():
            add(masked=True)
    return k


k = vector_add("add_f32", f32)
halves = vector_add("add_f16", f16)


def main() -> None:
    rng = np.random.default_rng(0)
    for kernel, type_ in ((k, np.float32), (halves, np.float16)):
        add = kernel.compile()
        for n in (5000, 2048, 1):
            x, y = (rng.standard_normal(n).astype(type_) for _ in range(2))
            z = np.empty_like(x)
            add(x, y, z)
            if not (z == x + y).all():
                raise SystemExit(f"FAIL: {kernel.name}, {n}")
    print("PASS")


if __name__ == "__main__":
    main()
