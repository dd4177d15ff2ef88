"""Products of batches: tiles whose first dimension counts matrices, one product for each.

Registers of a batch's matrices get other names (`frag.slice`, `frag.concat`), so nothing is moved.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce

from xdsl.ir import SSAValue

from fragir.builder.places import fail
from fragir.builder.trace import Trace
from fragir.builder.values import Tile
from fragir.dialects import frag


def leads(a: Tile, b: Tile, using: str) -> bool:
    """Whether the first dimension of the operands counts products.

    The last one does for m8n8k4.f16, which forms four at once: B ends in 4 there, and in N
    elsewhere, of which every instruction has a multiple of 8.
    """
    return b.shape[2:] != (4,) and not using.startswith("m8n8k4.f16")


def batched(
    trace: Trace,
    a: Tile,
    b: Tile,
    c: Tile | None,
    product: Callable[[Tile, Tile, Tile | None], Tile],
) -> Tile:
    """`product` of every matrix of a, of b and, where there is one, of c, behind each other.

    FragirError where they are not of one batch.
    """
    given = [tile for tile in (a, b, c) if tile is not None]
    count = a.shape[0]
    if any(len(tile.shape) != 3 or tile.shape[0] != count for tile in given):
        shapes = " and ".join("x".join(map(str, tile.shape)) for tile in given)
        fail(
            f"mma: {shapes} are no batch of products",
            "a is batch x M x K, b is batch x K x N, c is batch x M x N",
        )
    parts = [product(a[i], b[i], None if c is None else c[i])[None] for i in range(count)]

    def behind(one: SSAValue, other: SSAValue) -> SSAValue:
        return trace.insert(frag.ConcatenateOp(one, other, 0)).result

    return trace.wrap(reduce(behind, [trace.use(part) for part in parts]))
