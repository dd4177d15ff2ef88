"""Cumulative sums and the like: methods of tiles that become `frag.scan`."""

from __future__ import annotations

from typing import Protocol

from xdsl.ir import Attribute

from fragir.builder.checks import dimension
from fragir.builder.places import fail
from fragir.builder.shapes import Builds
from fragir.builder.types import bf16, f16, f32
from fragir.builder.values import Tile
from fragir.dialects import frag
from fragir.dialects.frag.combinations import COMBINATIONS, problem


class Casts(Builds, Protocol):
    """What is asked of a kernel: `fragir.builder.trace.Trace`."""

    def cast_tile(self, tile: Tile, type_: Attribute) -> Tile:
        """A tile in another element type."""
        ...


def scan(trace: Casts, tile: Tile, kind: str, axis: int, exclusive: bool, reverse: bool) -> Tile:
    """What all up to each element give; sums and products of 16 bits in f32."""
    dim = dimension(axis, len(tile.shape), repr(tile))
    narrow = kind in ("add", "mul") and tile.element in (f16, bf16)
    source = trace.cast_tile(tile, f32) if narrow else tile
    wrong = problem(kind, source.element, COMBINATIONS)
    if wrong is not None:
        fail(f"{tile!r}: {wrong}")
    op = frag.ScanOp(kind, dim, trace.use(source), exclusive=exclusive, reverse=reverse)
    found = trace.wrap(trace.insert(op).result)
    return trace.cast_tile(found, tile.element) if narrow else found
