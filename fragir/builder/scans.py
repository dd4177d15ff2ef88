"""Cumulative sums and the like: methods of tiles that become `frag.scan`."""

from __future__ import annotations

from fragir.builder.checks import dimension
from fragir.builder.places import fail
from fragir.builder.shapes import Builds
from fragir.builder.types import bf16, f16, f32
from fragir.builder.values import Tile
from fragir.dialects import frag
from fragir.dialects.frag.reductions import COMBINATIONS, problem


def scan(trace: Builds, tile: Tile, kind: str, axis: int, exclusive: bool, reverse: bool) -> Tile:
    """What all up to each element give; sums and products of 16 bits in f32."""
    dim = dimension(axis, len(tile.shape), repr(tile))
    narrow = kind in ("add", "mul") and tile.element in (f16, bf16)
    source = tile.cast(f32) if narrow else tile
    wrong = problem(kind, source.element, COMBINATIONS)
    if wrong is not None:
        fail(f"{tile!r}: {wrong}")
    op = frag.ScanOp(kind, dim, trace.use(source), exclusive=exclusive, reverse=reverse)
    found = trace.wrap(trace.insert(op).result)
    return found.cast(tile.element) if narrow else found
