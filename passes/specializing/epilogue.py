"""Tiles that roles store leave by TMA: through shared memory of their own, piece by piece.

A `frag.store` to rows of global memory that a tensor map takes is marked (`frag.tma`) while the
kernel is still one role; what is added to it from the same memory, old C of a product, comes in
through a ring that the fetching role fills. Once the kernel is divided, each role's marked stores
write to shared memory, which the copy engine takes from there: the next tile's products do not
wait for that. What lies outside of the matrix the engine leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.kernels import is_rare
from fragir.dialects.frag.tensor_copies import APART, contiguous
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.passes.dead_memory import bytes_of_type
from fragir.passes.limits import ALIGNED, aligned
from fragir.passes.pipelining.insertion import put
from fragir.passes.scopes import WARPGROUPS, WARPS, warps_of
from fragir.passes.specializing.additions import ADDS, as_atomics, as_stores
from fragir.passes.specializing.multiples import Multiples
from fragir.passes.specializing.pieces import chain_of, cut
from fragir.passes.tiling.operand_layouts import shared_type
from fragir.ptx.machines import machine

BY_TMA = "frag.tma"
"""The attribute of a store that shall leave by TMA."""
FEWEST_COLUMNS = 32
"""Of a piece: a copy for fewer is not worth its barriers. Half of it of what is transposed."""
MOST_LOADED = 32
"""Elements for which a thread loads at once what it stores with a tile."""
CONVERSIONS = 16 << 10
"""Bytes that are left for conversions where there may be some."""


class _Outgoing(NamedTuple):
    """A store that may leave by TMA."""

    store: frag.StoreOp
    old: frag.LoadOp | None
    """What is read where it writes, and may come by TMA."""

    def bytes_of(self, pieces: int) -> int:
        """The shared memory that it takes in so many pieces."""
        tile = frag.tile_of(self.store.tile)
        rows, cols = tile.shape
        size = aligned(rows * cols // pieces * element_bits(tile.element_type) // 8)
        return size * min(2, pieces) * (1 if self.old is None else 2)


def mark(function: func.FuncOp, target: str, roles: int = 1) -> None:
    """Marks the stores of a function, still one role, that shall leave by TMA, cut to the pieces
    for which there is shared memory; `roles` is how many are going to store."""
    copies = [op for op in function.walk() if isinstance(op, frag.CopyOp)]
    if not any(op.tma is not None for op in copies):
        return
    as_stores(function)
    known = Multiples(function, copies)
    stores = [op for op in function.walk() if isinstance(op, frag.StoreOp)]
    found = [_Outgoing(op, _old(op)) for op in stores if _may_leave(op, known)]
    room = (machine(target).shared - _taken(function)) // (max(1, len(found)) * roles)
    kind, size = (WARPGROUPS, 128) if WARPGROUPS in function.attributes else (WARPS, 32)
    rows, columns = warps_of(function, kind)
    for one in found:
        for way in (one, one._replace(old=None)):
            pieces = _pieces(way, room, columns)
            if pieces is not None:
                _mark(way, pieces)
                stores.remove(one.store)
                break
    as_atomics(function, BY_TMA)
    if columns == 1:
        for store in stores:
            _cut_wide(store, size * rows)


def _old(store: frag.StoreOp) -> frag.LoadOp | None:
    """The one load of what a store writes that it takes alone."""
    loads = [op for op in chain_of(store) if isinstance(op, frag.LoadOp) and _is_old(op, store)]
    others = [use.operation for use in store.memory.uses]
    if any(isinstance(op, frag.StoreOp) and op is not store for op in others):
        return None  # the copy engine may not see what threads write
    return loads[0] if len(loads) == 1 else None


def _cut_wide(store: frag.StoreOp, threads: int) -> None:
    """Cuts what threads store from registers, if they load something for it, or test rows and
    columns of what is turned: not all at once."""
    tile = frag.tile_of(store.tile)
    turned = store.masked is not None and store.transposed is not None
    loads = any(isinstance(op, frag.LoadOp) for op in chain_of(store))
    if len(tile.shape) != 2 or not (turned or loads):
        return
    most = MOST_LOADED // 2 if turned and loads else MOST_LOADED
    pieces, rest = divmod(tile.shape[0] * tile.shape[1], most * threads)
    if pieces > 1 and not rest and tile.shape[1] % pieces == 0:
        cut(store, pieces)


def _mark(way: _Outgoing, pieces: int) -> None:
    """Marks a store, cut to pieces, and fetches what it takes from the same place."""
    apart = _is_own_tile(way.store) or APART in way.store.attributes
    adds = ADDS in way.store.attributes
    stores = cut(way.store, pieces) if pieces > 1 else [way.store]
    ring = None
    for store in stores:
        store.attributes[BY_TMA] = UnitAttr()
        if adds:
            store.attributes[ADDS] = UnitAttr()
        if not apart:
            continue
        store.attributes[APART] = UnitAttr()
        for load in [op for op in chain_of(store) if isinstance(op, frag.LoadOp)]:
            if not _is_old(load, store):
                continue
            if way.old is None:
                load.attributes[APART] = UnitAttr()
                continue
            if ring is None:
                type_ = frag.RingType([_memory_of(store)])
                before = InsertPoint.before(_outermost(store))
                ring = put(frag.RingOp(min(2, pieces), type_), before, "olds")
            _fetch(load, store, ring)


def _fetch(load: frag.LoadOp, store: frag.StoreOp, ring: SSAValue) -> None:
    """Makes a load one of a ring's slot, which is filled ahead of it."""
    at = InsertPoint.before(load)
    slot = put(frag.AcquireOp(ring), at, "free")
    part = put(frag.PartOp(slot, 0), at, load.memory.name_hint)
    copy = frag.CopyOp(load.memory, load.all_indices(), part, [], tma=True)
    copy.attributes[APART] = UnitAttr()
    copy.location = load.location
    Rewriter.insert_op(copy, at)
    Rewriter.insert_op(frag.PublishOp(slot), at)
    slot = put(frag.AwaitOp(ring), at, "slot")
    part = put(frag.PartOp(slot, 0), at, load.memory.name_hint)
    made = frag.LoadOp(
        part, [0, 0], frag.tile_of(load.tile), transposed=load.transposed is not None
    )
    made.location = load.location
    made.tile.name_hint = load.tile.name_hint
    Rewriter.replace_op(load, made)
    Rewriter.insert_op(frag.ReleaseOp(slot), InsertPoint.after(store))


def divert(function: func.FuncOp) -> None:
    """Replaces the marked stores of a function with roles: a role has shared memory of its own."""
    for roles in [op for op in function.walk() if isinstance(op, frag.RolesOp)]:
        at = InsertPoint.before(roles)
        for region in roles.bodies:
            memories: dict[Attribute, list[SSAValue]] = {}
            count: dict[Attribute, int] = {}
            stores = [op for op in region.walk() if isinstance(op, frag.StoreOp)]
            for store in (op for op in stores if BY_TMA in op.attributes):
                type_ = _memory_of(store)
                known, turn = memories.setdefault(type_, []), count.get(type_, 0)
                count[type_] = turn + 1
                if len(known) < 2:
                    known.append(put(memref.AllocOp((), (), type_), at, "leaving"))
                _divert(store, known[turn % 2])


def _divert(store: frag.StoreOp, memory: SSAValue) -> None:
    at = InsertPoint.before(store)
    transposed = store.transposed is not None
    adds = ADDS in store.attributes
    copy = frag.CopyOp(memory, [], store.memory, store.all_indices(), tma=True, add=adds)
    if APART in store.attributes:
        copy.attributes[APART] = UnitAttr()
    for op in (frag.StoreOp(store.tile, memory, [0, 0], transposed=transposed), copy):
        op.location = store.location
        Rewriter.insert_op(op, at)
    Rewriter.erase_op(store)


# --- which stores -----------------------------------------------------------------------------


def _may_leave(store: frag.StoreOp, known: Multiples) -> bool:
    """Whether a store writes a matrix to rows that the copy engine writes, and no more than them.
    What is seldom stored is not worth shared memory."""
    memory, tile = store.memory, frag.tile_of(store.tile)
    type_ = memref_type(memory.type)
    if not isinstance(memory, BlockArgument) or memory.block is not known.function.body.block:
        return False
    if is_rare(store):
        return False
    if frag.is_shared(type_) or len(tile.shape) != 2 or element_bits(type_.element_type) < 8:
        return False
    try:
        if contiguous(memory) != len(type_.get_shape()) - 1:
            return False
    except FragirError:
        return False
    return known.rows_fit(memory) and known.begins_at_unit(memory, store.all_indices()[-1])


def _is_old(load: frag.LoadOp, store: frag.StoreOp) -> bool:
    """Whether a load reads what a store writes, in place."""
    return load.memory is store.memory and load.where() == store.where() and load.other is None


def _is_own_tile(store: frag.StoreOp) -> bool:
    """Whether a store writes the tile that a loop over tiles gives it, which no other one does."""
    loop = store.parent_op()
    while loop is not None and loop.name != "frag.for_tiles":
        loop = loop.parent_op()
    if loop is None:
        return False
    assert isinstance(loop, frag.ForTilesOp)
    shape = frag.tile_of(store.tile).shape
    shape = shape if store.transposed is None else shape[::-1]
    at = store.all_indices()
    return at == loop.places and shape == tuple(loop.tile.get_values()[-2:])


def _memory_of(store: frag.StoreOp, pieces: int = 1) -> MemRefType[Attribute]:
    """Shared memory for a piece of what a store writes, as the copy engine takes it."""
    tile = frag.tile_of(store.tile)
    rows, cols = tile.shape[0], tile.shape[1] // pieces
    shape = (rows, cols) if store.transposed is None else (cols, rows)
    return shared_type(tile.element_type, [], shape, False)


# --- for how much there is room ---------------------------------------------------------------


def _taken(function: func.FuncOp) -> int:
    """Shared memory that is no more to be had."""
    taken, products = ALIGNED, 0  # mbarriers, and what names and turns need
    for op in function.walk():
        if isinstance(op, memref.AllocOp):
            taken += aligned(bytes_of_type(op.memref.type))
        elif op.name == "frag.ring":
            assert isinstance(op, frag.RingOp)
            taken += sum(aligned(op.count * bytes_of_type(part)) for part in op.ring.type.parts)
        products += op.name in ("frag.mma", "frag.wgmma", "frag.reduce", "frag.scan")
    return taken if products <= 1 else taken + CONVERSIONS


def _pieces(way: _Outgoing, room: int, columns: int) -> int | None:
    """In how few pieces a store fits into so many bytes; None where it does not.

    Columns of several warps are not cut: those of one would hold a piece.
    """
    for pieces in _counts(way.store, columns):
        if way.bytes_of(pieces) <= room and _has_boxes(way.store, pieces):
            return pieces
    return None


def _counts(store: frag.StoreOp, columns: int) -> Iterator[int]:
    yield 1
    width, pieces = frag.tile_of(store.tile).shape[1], 2
    fewest = FEWEST_COLUMNS if store.transposed is None else FEWEST_COLUMNS // 2
    while columns == 1 and width % pieces == 0 and width // pieces >= fewest:
        yield pieces
        pieces *= 2


def _has_boxes(store: frag.StoreOp, pieces: int) -> bool:
    """Whether boxes of a tensor map fill the memory of a piece."""
    memory = memref.AllocOp((), (), _memory_of(store, pieces))
    try:
        frag.CopyOp(memory, [], store.memory, store.all_indices(), tma=True).verify_()
    except VerifyException:
        return False
    return True


def _outermost(op: Operation) -> Operation:
    """The operation at the top of the function that another stands in."""
    while (parent := op.parent_op()) is not None and not isinstance(parent, func.FuncOp):
        op = parent
    return op
