"""Tiles in other shapes through shared memory.

Where no lane has what its registers are to hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from xdsl.dialects.builtin import IntegerType, i1, i32
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.regrouped import RenamingOp
from fragir.layout import Axis, Layout, Mode
from fragir.passes.lowering.elementwise import cast_op, fragments_from, words_of
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.memory import shared_bytes, shared_memory
from fragir.passes.lowering.programs import Narrow
from fragir.passes.lowering.state import LoweringState, fragments_of
from fragir.passes.lowering.tile_access import TileAccess

# -- scratch access --------------------------------------------------------------------------------
# A tile's elements in the memory that conversions pass data through, with any strides.


class ScratchAccess(TileAccess):
    """A tile at the beginning of the scratch memory, rows in order, or where `strides` and `first`,
    in elements, say."""

    def __init__(
        self,
        state: LoweringState,
        tile: frag.TileType,
        strides: Sequence[int] | None = None,
        first: int = 0,
    ):
        layout = in_memory(tile.shape, strides, first)
        super().__init__(
            state.ar,
            state.hardware,
            tile,
            shared_memory(state.scratch.pointer, layout, tile.shape, tile.element_type),
            [0] * len(tile.shape),
            transposed=False,
            masked=False,
            target=state.target,
        )

    @staticmethod
    def bytes_of(tile: frag.TileType) -> int:
        """Bytes of a tile with its rows in order."""
        return shared_bytes(in_memory(tile.shape), ptx.bits(tile.element_type))


def row_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements from one to the next along each dimension, with rows in order."""
    return tuple(prod(shape[dim + 1 :]) for dim in range(len(shape)))


def in_memory(shape: Sequence[int], strides: Sequence[int] | None = None, first: int = 0) -> Layout:
    """Where in memory the elements of a tile lie, with an axis for each dimension."""
    steps = row_strides(shape) if strides is None else strides
    axes = (
        Axis(f"d{dim}", (Mode(size, (step,)),))
        for dim, (size, step) in enumerate(zip(shape, steps, strict=True))
    )
    return Layout(tuple(axes), ("index",), (first,))


BYTE = IntegerType(8)


class Strided(NamedTuple):
    """Where a tile lies among the elements of all: the first one, and steps along dimensions."""

    strides: tuple[int, ...]
    first: int


def through_memory(lanes: Lanes, op: RenamingOp) -> None:
    """Every operand is written where its elements lie, all threads wait, every result is read."""
    state = lanes.state
    written, read = views(op)
    tiles = [frag.tile_of(value) for value in (*op.operands, *op.results)]
    stored = stored_element(tiles[0])
    shape = max((tile.shape for tile in tiles), key=_count)
    size = shared_bytes(in_memory(shape), ptx.bits(stored.element_type))
    with state.scratch.passage(size, state.scratch.whole):
        for operand, view in zip(op.operands, written, strict=True):
            tile = frag.tile_of(operand)
            access = ScratchAccess(state, stored_element(tile), *view)
            access.store(_widen(state, tile, list(state.tiles[operand])))
        state.ar.insert(state.scratch.whole.barrier())
        for result, view in zip(op.results, read, strict=True):
            tile = frag.tile_of(result)
            loaded = ScratchAccess(state, stored_element(tile), *view).load()
            state.tiles[result] = _narrow(state, tile, loaded)


def views(op: RenamingOp) -> tuple[list[Strided], list[Strided]]:
    """Where operands and results lie: what is larger has its rows in order."""
    if len(op.operands) == 1:
        shape = frag.tile_of(op.operands[0]).shape
        strides = row_strides(shape)
        return [Strided(strides, 0)], [
            _view(op, number, strides) for number in range(len(op.results))
        ]
    shape = frag.tile_of(op.results[0]).shape
    strides = row_strides(shape)
    if isinstance(op, frag.ConcatenateOp):
        behind = frag.tile_of(op.first).shape[op.along] * strides[op.along]
        return [Strided(strides, 0), Strided(strides, behind)], [Strided(strides, 0)]
    assert isinstance(op, frag.JoinOp)
    return [Strided(strides[:-1], 0), Strided(strides[:-1], 1)], [Strided(strides, 0)]


def _view(op: RenamingOp, number: int, strides: Sequence[int]) -> Strided:
    """Where a result of the only operand lies, whose elements have these strides."""
    shape = frag.tile_of(op.results[number]).shape

    def place(point: tuple[int, ...]) -> int:
        _, source = op.source_of(number, point)
        return sum(step * at for step, at in zip(strides, source, strict=True))

    first = place((0,) * len(shape))
    steps = (
        place(tuple(int(d == dim) for d in range(len(shape)))) - first if size > 1 else 0
        for dim, size in enumerate(shape)
    )
    return Strided(tuple(steps), first)


def stored_element(tile: frag.TileType) -> frag.TileType:
    """The tile with elements that have a place of their own in memory."""
    if is_predicate(tile.element_type):
        return tile.with_element(i32)
    return tile.with_element(BYTE) if ptx.bits(tile.element_type) < 8 else tile


def _widen(
    state: LoweringState, tile: frag.TileType, fragments: Sequence[SSAValue]
) -> Sequence[SSAValue]:
    """The fragments of a tile as those of `stored_element`."""
    ar, element = state.ar, tile.element_type
    if is_predicate(element):
        return [cast_op(ar, fragment, i1, i32) for fragment in fragments]
    if ptx.bits(element) >= 8:
        return fragments
    apart = Narrow(ar, ptx.bits(element)).bytes_of(words_of(ar, fragments))
    return fragments_from(ar, apart, BYTE, tile.chunk, len(fragments))


def _narrow(
    state: LoweringState, tile: frag.TileType, fragments: Sequence[SSAValue]
) -> list[SSAValue]:
    """The way back."""
    ar, element = state.ar, tile.element_type
    if is_predicate(element):
        return [
            ar.insert(ptx.CompareOp("ne", part, ar.zero(part.type))).result for part in fragments
        ]
    if ptx.bits(element) >= 8:
        return list(fragments)
    words = Narrow(ar, ptx.bits(element)).words_of(words_of(ar, fragments))
    return fragments_from(ar, words, element, tile.chunk, fragments_of(tile))


def _count(shape: Sequence[int]) -> int:
    return row_strides((1, *shape))[0]
