"""Products of batches: tiles whose first dimension counts matrices, one product for each."""

from __future__ import annotations

from fragir.builder.checks import by
from fragir.builder.places import fail
from fragir.builder.values import Tile


def leads(a: Tile, b: Tile, using: str) -> bool:
    """Whether the first dimension of the operands counts products.

    The last one does for m8n8k4.f16, which forms four at once: B ends in 4 there, and in N
    elsewhere, of which every instruction has a multiple of 8.
    """
    return b.shape[2:] != (4,) and not using.startswith("m8n8k4.f16")


def check_batch(a: Tile, b: Tile, c: Tile | None, scales: object) -> None:
    """An error at the user's line where they are no product of one batch."""
    if scales is not None:
        fail("mma: a batch has no scales", "multiply its matrices: k.mma(a[0], b[0])")
    given = [tile.shape for tile in (a, b, c) if tile is not None]
    hint = "a is batch x M x K, b is batch x K x N, c is batch x M x N"
    if any(len(shape) != 3 or shape[0] != a.shape[0] for shape in given):
        fail(f"mma: {' and '.join(map(by, given))} are no batch of products", hint)
    product = (*a.shape[:-1], b.shape[-1])
    sums = product if c is None else c.shape
    if a.shape[2] != b.shape[1] or sums != product:
        fail(f"mma: {by(a.shape)} times {by(b.shape)} plus {by(sums)}", hint)
