"""Memory as lanes have it: allocations, views, loads and stores of tiles."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import memref
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.memory_types import collapsed_type, kept_dims, mixed_numbers
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import XorMode
from fragir.passes.lowering import copies
from fragir.passes.lowering.arithmetic import Distance, Stride, Value, times
from fragir.passes.lowering.lane_builder import Lanes, note_count
from fragir.passes.lowering.layout_arithmetic import NOWHERE
from fragir.passes.lowering.memory import (
    LaneMemory,
    MemoryPlace,
    divisor,
    low,
    shared_address,
    shared_bytes,
    shared_memory,
)
from fragir.passes.lowering.packed import BytesApart, PackedAccess
from fragir.passes.lowering.state import LoweringState
from fragir.passes.lowering.tile_access import TileAccess, join, split
from fragir.passes.remarks import allocate

# --- memory ---------------------------------------------------------------------------------------

# --- shapes and views -----------------------------------------------------------------------------


def dim(lanes: Lanes, op: memref.DimOp) -> None:
    state = lanes.state
    index = state.values[op.index]
    shape = state.memories[op.source].shape
    if not isinstance(index, int) or not 0 <= index < len(shape):
        raise FragirError("memref.dim takes a constant number of a dimension")
    state.values[op.result] = shape[index]


def expand(lanes: Lanes, op: memref.ExpandShapeOp) -> None:
    """Other sizes and strides of the same elements, in global memory."""
    memory = lanes.memory(op.src)
    if memory.layout is not None:
        raise FragirError(f"{op.src.type} keeps its shape", hint="take memory of the function")
    given = iter(lanes.state.values[value] for value in op.output_shape)
    shape = [next(given) if size < 0 else size for size in op.static_output_shape.iter_values()]
    strides: list[Stride] = [1] * len(shape)  # of dimensions of a single number, which has none
    for stride, group in zip(memory.strides, op.reassociation, strict=True):
        for dim in reversed([index.value.data for index in group]):
            strides[dim] = stride
            stride = times(shape[dim], stride)
    lanes.state.memories[op.result] = memory._replace(shape=tuple(shape), strides=tuple(strides))


def collapse(lanes: Lanes, op: memref.CollapseShapeOp) -> None:
    """Dimensions that lie behind each other as one, in global memory."""
    memory, ar, type_ = lanes.memory(op.src), lanes.state.ar, memref_type(op.src.type)
    groups = [[index.value.data for index in group] for group in op.reassociation]
    if memory.layout is not None or collapsed_type(type_, groups) is None:
        raise FragirError(
            f"{op.src.type} keeps its shape",
            hint="take memory without strides, or with such as say that rows follow each other",
        )
    shape: list[Value] = []
    for group in groups:
        size: Stride = 1
        for dim in group:
            size = times(size, memory.shape[dim])
        note_count(lanes.state, size)
        shape.append(low(ar, size) if isinstance(size, Distance) else size)
    own = type_.get_shape()
    last = [next((d for d in reversed(group) if own[d] != 1), group[-1]) for group in groups]
    strides = [memory.strides[dim] for dim in last]
    lanes.state.memories[op.result] = memory._replace(shape=tuple(shape), strides=tuple(strides))


def alloc(lanes: Lanes, op: memref.AllocOp) -> None:
    state, type_ = lanes.state, memref_type(op.memref.type)
    if not frag.is_shared(type_):
        raise FragirError(
            f"a kernel can allocate shared memory only, not {type_}",
            hint="write memref<..., #frag.shared> or <..., #frag.shared<swizzle = 128>>",
        )
    shape = type_.get_shape()
    if DYNAMIC_INDEX in shape or len(shape) < 2:
        raise FragirError("shared memory has a static shape of two dimensions or more")
    layout = frag.memory_layout(type_)
    size = shared_bytes(layout, ptx.bits(type_.element_type))
    lowered = state.ar.insert(ptx.SharedOp(size), op.memref.name_hint)
    allocate(lowered, 0, state.target)  # what no block has is not unrolled first
    state.memories[op.memref] = shared_memory(lowered.pointer, layout, shape, type_.element_type)


def dealloc(lanes: Lanes, op: memref.DeallocOp) -> None:
    """Shared memory lives as long as the block."""


def view(lanes: Lanes, op: frag.ViewOp) -> None:
    state, memory = lanes.state, lanes.memory(op.memory)
    ar, layout = lanes.state.ar, memory.layout
    assert layout is not None
    stack = Layout(layout.axes[:-2], layout.dims)
    at = state.indices(op.all_indices())
    pointer, more = shared_address(
        ar, memory, stack, MemoryPlace((NOWHERE,) * len(at), tuple(at)), (0,) * len(at)
    )
    if more:
        pointer, _ = ar.offset(pointer, ar.constant(more))
    state.memories[op.matrix] = shared_memory(
        pointer, frag.matrix_layout(layout), memory.shape[-2:], memory.element
    )


# --- tiles ----------------------------------------------------------------------------------------


def load(lanes: Lanes, op: frag.LoadOp) -> None:
    state, memory = lanes.state, lanes.memory(op.memory)
    try:
        access = _access(state, op.tile.type, op)
    except BytesApart as apart:
        state.tiles[op.tile] = _loaded_whole(state, op, apart)
        return
    turned = _without_conflicts(state, op.tile.type, op)
    if turned is not None:
        tile, width = op.tile.type, op.tile.type.chunk // 2
        pairs = _exchanged(state, tile, _pairs(state, turned, op).load())
        chunks = [pairs[at : at + width] for at in range(0, len(pairs), width)]
        state.tiles[op.tile] = [join(state.ar, chunk) for chunk in chunks]
        return
    if memory.layout is None and isinstance(access, TileAccess):
        lanes.bind_each(op.tile, access.load_chunk)
    else:
        state.tiles[op.tile] = access.load()


def store(lanes: Lanes, op: frag.StoreOp) -> None:
    tile, state = frag.tile_of(op.tile), lanes.state
    fragments = state.tiles[op.tile]
    apart = _without_conflicts(state, tile, op)
    if apart is not None:
        _pairs(state, apart, op).store_parts(_exchanged(state, tile, fragments))
        return
    try:
        _access(state, tile, op).store(fragments)
    except BytesApart as apart:
        from fragir.passes.lowering.convert import convert  # few programs need it

        _tell_apart(state, op, apart)
        moved = convert(state, tile, apart.whole, state.tiles[op.tile])
        _access(state, apart.whole, op).store(moved)


_FLIPPED = 16
"""Columns of 32 bits, half of a swizzle of 128 bytes."""


def _pairs(state: LoweringState, tile: frag.TileType, op: frag.LoadOp | frag.StoreOp) -> TileAccess:
    """An access of shared memory by pairs of neighbours."""
    return TileAccess(
        *(state.ar, state.hardware, tile, state.memories[op.memory]),
        state.indices(op.all_indices()),
        transposed=False,
        masked=False,
        target=state.target,
        chunk=2,
    )


def _without_conflicts(
    state: LoweringState, tile: frag.TileType, op: frag.LoadOp | frag.StoreOp
) -> frag.TileType | None:
    """Accumulators of 32 bits in an order in which lanes access them without conflicts; None of
    another tile.

    Four lanes have eight columns of a row, 32 bytes. With a swizzle of 128 bytes, by 16, those of
    rows 2 i and 2 i + 1 lie in the same banks. If odd rows access columns 16 to 31 while even
    ones access columns 0 to 15, four rows have all banks: a `selp` a register, half of the passes.
    """
    memory = state.memories[op.memory]
    plain = op.masked is None and op.transposed is None and len(tile.shape) == 2
    if isinstance(op, frag.LoadOp) and op.broadcast is not None:
        return None
    if memory.bits != 32 or memory.layout is None or not memory.layout.exclusive or not plain:
        return None
    layout = tile.resolve()
    if layout.exclusive or layout.where or tile.shape[1] % (2 * _FLIPPED):
        return None
    if not {"lane", "element"} <= set(layout.names):
        return None
    lane, element = layout.axis("lane"), layout.axis("element")
    if lane.modes != (Mode(4, (0, 2)), Mode(8, (1, 0))) or element.modes[:1] != (Mode(2, (0, 1)),):
        return None
    flipped = Axis("lane", (lane.modes[0], XorMode(2, (1, _FLIPPED)), Mode(4, (2, 0))))
    axes = tuple(flipped if axis is lane else axis for axis in layout.axes)
    other = tile.with_layout(frag.ExplicitLayoutAttr(Layout(axes, layout.dims, layout.offset)))
    return other if _passes(memory, other) < _passes(memory, tile) else None


def _exchanged(
    state: LoweringState, tile: frag.TileType, fragments: Sequence[SSAValue]
) -> list[SSAValue]:
    """Pairs of neighbours, those of odd rows with the ones 16 columns away in their places."""
    ar, layout = state.ar, tile.resolve()
    zeros = {axis.name: 0 for axis in layout.axes}
    pairs = [pair for fragment in fragments for pair in split(ar, fragment, 2)]
    places = [layout(**(zeros | {"element": 2 * at})) or (0, 0) for at in range(len(pairs))]
    number = {(row, column): at for at, (row, column, *_) in enumerate(places)}
    row = ar.rem(ar.div(state.hardware.axis("lane"), 4, "row"), 2)
    odd = ar.predicate(ar.below(0, row))
    assert odd is not None
    both = ar.splat(odd, 2)
    return [
        ar.insert(ptx.SelectOp(both, pairs[number[i, j ^ _FLIPPED]], pair)).result
        for (i, j, *_), pair in zip(places, pairs, strict=True)
    ]


def _passes(memory: LaneMemory, tile: frag.TileType) -> int:
    """How often shared memory is asked for the first two elements of each lane of a warp: for half
    a warp at a time, which has 128 bytes."""
    layout, at = tile.resolve(), memory.layout
    assert at is not None
    zeros = {axis.name: 0 for axis in layout.axes}
    total = 0
    for half in range(2):
        banks: dict[int, set[int]] = {}
        for lane in range(16 * half, 16 * half + 16):
            place = layout(**(zeros | {"lane": lane}))
            assert place is not None
            (word,) = at(**dict(zip((axis.name for axis in at.axes), place, strict=True))) or (0,)
            for one in (word, word + 1):
                banks.setdefault(one % 32, set()).add(one)
        total += max(map(len, banks.values()))
    return total


def _loaded_whole(state: LoweringState, op: frag.LoadOp, apart: BytesApart) -> Sequence[SSAValue]:
    """The tile from one of whole bytes."""
    from fragir.passes.lowering.convert import convert  # few programs need it

    _tell_apart(state, op, apart)
    loaded = _access(state, apart.whole, op).load()
    return convert(state, apart.whole, op.tile.type, loaded)


def _tell_apart(state: LoweringState, op: frag.LoadOp | frag.StoreOp, apart: BytesApart) -> None:
    """Says that a tile is converted on its way; BytesApart where that does not help."""
    tile = frag.tile_of(op.tile)
    if apart.whole == tile:
        raise apart
    state.remarks.append(f"{op.name} of {tile.with_layout(None)} is converted: {apart.sentence}")


def _access(
    state: LoweringState,
    tile: frag.TileType,
    op: frag.LoadOp | frag.StoreOp,
) -> TileAccess | PackedAccess:
    memory = state.memories[op.memory]
    loads = isinstance(op, frag.LoadOp)
    other = op.other if loads else None
    make = PackedAccess if memory.bits < 8 else TileAccess
    return make(
        state.ar,
        state.hardware,
        tile,
        memory,
        state.indices(op.all_indices()),
        transposed=op.transposed is not None,
        masked=op.masked is not None,
        target=state.target,
        broadcast=loads and op.broadcast is not None,
        other=None if other is None else state.scalar(other),
    )


# --- threads --------------------------------------------------------------------------------------


def barrier(lanes: Lanes, op: frag.BarrierOp) -> None:
    state = lanes.state
    if state.async_proxy:
        # wgmma reads through the async proxy, which does not see ordinary writes by itself
        # (PTX ISA 9.2, section 9.7.15.3)
        state.ar.insert(ptx.SyncOp("fence.proxy.async.shared::cta"))
    state.wait_for_all()


# --- views ----------------------------------------------------------------------------------------


def _part_of(
    lanes: Lanes, op: memref.SubviewOp | memref.ReinterpretCastOp
) -> tuple[tuple[Value, ...], ...]:
    """Offsets, sizes and strides: numbers, or what lanes have for values."""
    values = lanes.state.values
    lists = (
        mixed_numbers(op.static_offsets, op.offsets),
        mixed_numbers(op.static_sizes, op.sizes),
        mixed_numbers(op.static_strides, op.strides),
    )
    return tuple(tuple(x if isinstance(x, int) else values[x] for x in each) for each in lists)


def subview(lanes: Lanes, op: memref.SubviewOp) -> None:
    """A part of memory: a pointer to its first element, its sizes, strides times its steps."""
    memory = lanes.memory(op.source)
    offsets, sizes, steps = _part_of(lanes, op)
    declared = mixed_numbers(op.static_sizes, op.sizes)
    kept = kept_dims(declared, memref_type(op.result.type).get_shape(), op.name)
    begun = _moved_memory(lanes, memory, list(zip(offsets, memory.strides, strict=True)))
    strides = [times(x, y) for x, y in zip(memory.strides, steps, strict=True)]
    lanes.state.memories[op.result] = begun._replace(
        shape=tuple(sizes[dim] for dim in kept), strides=tuple(strides[dim] for dim in kept)
    )


def reinterpret(lanes: Lanes, op: memref.ReinterpretCastOp) -> None:
    """The same memory with sizes and strides of its own, from an element on."""
    memory = lanes.memory(op.source)
    offsets, sizes, strides = _part_of(lanes, op)
    begun = _moved_memory(lanes, memory, [(offset, 1) for offset in offsets])
    lanes.state.memories[op.result] = begun._replace(shape=sizes, strides=strides)


def cast(lanes: Lanes, op: memref.CastOp) -> None:
    """The same memory; sizes and strides that the new type states are known from here on."""
    memory, type_ = lanes.memory(op.source), memref_type(op.dest.type)
    shape = type_.get_shape()
    if len(shape) != len(memory.shape):
        raise FragirError(f"{op.name} of {op.source.type} to {type_} changes the rank")
    known = [n if n >= 0 else old for n, old in zip(shape, memory.shape, strict=True)]
    lanes.state.memories[op.dest] = memory._replace(shape=tuple(known))


def _moved_memory(
    lanes: Lanes, memory: LaneMemory, steps: list[tuple[Value, Stride]]
) -> LaneMemory:
    """Memory that begins later, by steps of some strides, in elements."""
    ar = lanes.state.ar
    if memory.layout is not None or memory.bits < 8:
        what = "shared memory" if memory.layout is not None else "elements of less than a byte"
        raise FragirError(f"no part of {what} is taken as a view", hint="load a tile of it")
    pointer, aligned, more = memory.pointer, memory.aligned, 0
    for index, stride in steps:
        pointer, known = ar.offset(pointer, index, memory.size, stride)
        more += known
        aligned = gcd(aligned, ar.divisor(index) * divisor(ar, stride) * memory.size)
    return memory._replace(pointer=ar.moved(pointer, more), aligned=aligned)


# --- the first rows -------------------------------------------------------------------------------


def head(lanes: Lanes, op: frag.HeadOp) -> None:
    state, memory = lanes.state, lanes.memory(op.memory)
    state.memories[op.result] = memory._replace(shape=(state.values[op.end], *memory.shape[1:]))


# -- copying ---------------------------------------------------------------------------------------
# Copies into shared memory, and waits for them.


def copy(lanes: Lanes, op: frag.CopyOp) -> None:
    state = lanes.state
    if op.tma is not None:
        from fragir.passes.lowering import tensor_copies  # few programs need it

        tensor_copies.copy(lanes, op)
        return
    copies.copy(
        state.ar,
        state.hardware,
        state.memories[op.source],
        state.indices(op.all_source_indices()),
        state.memories[op.target],
        state.indices(op.all_target_indices()),
        masked=op.masked is not None,
        is_async=op.is_async is not None,
        target_machine=state.target,
    )


def commit(lanes: Lanes, op: frag.CommitOp) -> None:
    if copies.has_cp_async(lanes.target):
        lanes.state.ar.insert(ptx.SyncOp("cp.async.commit_group"))


def wait(lanes: Lanes, op: frag.WaitOp) -> None:
    if copies.has_cp_async(lanes.target):
        lanes.state.ar.insert(ptx.SyncOp("cp.async.wait_group", op.pending.value.data))
