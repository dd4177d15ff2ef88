"""Products of batches: tiles whose first dimension counts matrices, one product for each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute

from fragir.builder.places import fail
from fragir.builder.trace import Trace
from fragir.builder.types import tile_element
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
    zeros: Callable[[tuple[int, ...]], Tile],
    result: Attribute | None,
    satfinite: bool,
    words: Sequence[str],
) -> Tile:
    """The product of every matrix of a and of b, and c or what `zeros` makes of a shape.

    `words` are `using`, `rounding`, `bitop` and `kind`, those of `frag.mma`.
    FragirError where they are not of one batch.
    """
    given = [tile for tile in (a, b, c) if tile is not None]
    count = a.shape[0]
    if any(len(tile.shape) != 3 or tile.shape[0] != count for tile in given):
        shapes = " and ".join(_by(tile) for tile in given)
        fail(
            f"mma: {shapes} are no batch of products",
            "a is batch x M x K, b is batch x K x N, c is batch x M x N",
        )
    shape = (count, a.shape[1], b.shape[2])
    third = zeros(shape) if c is None else c
    if a.shape[2] != b.shape[1] or third.shape != shape:
        fail(
            f"mma: {_by(a)} times {_by(b)} plus {_by(third)}",
            "a is batch x M x K, b is batch x K x N, c is batch x M x N",
        )
    total = trace.use(third)
    type_ = frag.tile_of(total)
    sums = type_ if result is None else type_.with_element(tile_element(result, "a tile"))
    using, rounding, bitop, kind = words
    op = frag.MmaBatchedOp(
        trace.use(a),
        trace.use(b),
        total,
        sums,
        using=using,
        satfinite=satfinite,
        rounding=rounding,
        bitop=bitop,
        kind=kind,
    )
    return trace.wrap(trace.insert(op).d)


def _by(tile: Tile) -> str:
    return "x".join(map(str, tile.shape))
