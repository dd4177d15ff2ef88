"""Tiles that roles store leave by TMA: through shared memory of their own, piece by piece.

A `frag.store` to rows of global memory that a tensor map takes is marked (`frag.tma`) while the
kernel is still one role; what is added to it from the same memory, old C of a product, comes in
through a ring that the fetching role fills. Once the kernel is divided, each role's marked stores
write to shared memory, which the copy engine takes from there: the next tile's products do not
wait for that. What lies outside of the matrix the engine leaves out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import gcd
from typing import NamedTuple

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, UnitAttr
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.grid import Names, promises_of, size_names
from fragir.dialects.frag.kernels import is_rare
from fragir.dialects.frag.tensor_copies import ADDED, APART, UNIT, contiguous
from fragir.dialects.shorthands import constant_of, memref_type
from fragir.errors import FragirError
from fragir.passes.dead_memory import bytes_of_type
from fragir.passes.pipelining.insertion import insert_before
from fragir.passes.remarks import ALIGNED, align_buffer
from fragir.passes.scopes import WARPGROUPS, WARPS, warps_of
from fragir.passes.specializing.pieces import chain_of, cut_into_pieces
from fragir.passes.tiling.operand_layouts import shared_type
from fragir.ptx.machines import machine

# -- additions -------------------------------------------------------------------------------------
# Tiles that roles add to memory: the copy engine adds them as it stores others.
#
# While it is decided how tiles leave, a `frag.atomic add` is a store that is marked; what does not
# leave by TMA becomes an atomic again.

ADDS = "frag.adds"
"""The attribute of a store that stands for an addition."""


def as_stores(function: func.FuncOp) -> None:
    """Replaces the atomics that the copy engine can do by marked stores."""
    for op in [op for op in function.walk() if op.name == "frag.atomic"]:
        assert isinstance(op, frag.AtomicOp)
        if not _is_copied(op):
            continue
        tile, transposed = op.tile, False
        turn = tile.owner
        if isinstance(turn, frag.TransposeOp) and tile.has_one_use():
            tile, transposed = turn.source, True
        masked = op.masked is not None
        at = op.all_indices()
        made = frag.StoreOp(tile, op.memory, at, masked=masked, transposed=transposed)
        made.attributes[ADDS], made.location = UnitAttr(), op.location
        Rewriter.replace_op(op, made)
        if transposed:
            assert isinstance(turn, frag.TransposeOp)
            Rewriter.erase_op(turn)


def as_atomics(function: func.FuncOp, by_tma: str) -> None:
    """Makes atomics again of marked stores that do not leave by TMA."""
    for op in [op for op in function.walk() if isinstance(op, frag.StoreOp)]:
        if ADDS not in op.attributes or by_tma in op.attributes:
            continue
        tile, at = op.tile, InsertPoint.before(op)
        if op.transposed is not None:
            tile = insert_before(frag.TransposeOp(tile, (1, 0)), at, tile.name_hint)
        masked = op.masked is not None
        made = frag.AtomicOp("add", tile, op.memory, op.all_indices(), masked=masked)
        made.location = op.location
        Rewriter.replace_op(op, made)


def _is_copied(op: frag.AtomicOp) -> bool:
    """Whether it adds a tile to as large a part of memory, of a type that the copy engine adds."""
    return (
        op.kind.data == "add"
        and op.old is None
        and op.mask is None
        and not frag.is_shared(op.memory.type)
        and element_name(frag.tile_of(op.tile).element_type) in ADDED
        and all(isinstance(index.type, IndexType) for index in op.indices)
    )


# -- multiples -------------------------------------------------------------------------------------
# What sizes and indices known at run time are multiples of, before anything is lowered.


class Multiples:
    """Of one function: what it promises (`frag.divisible`), and what the tensor maps of `copies`
    demand of its sizes."""

    def __init__(self, function: func.FuncOp, copies: Sequence[frag.CopyOp]):
        self.function = function
        self._known = dict(promises_of(function))
        for memory in dict.fromkeys(op.source for op in copies if op.tma is not None):
            if not isinstance(memory, BlockArgument) or memory.block is not function.body.block:
                continue
            names, strides = size_names(function, memory.index)
            unit = UNIT * 8 // element_bits(memref_type(memory.type).element_type)
            for name in names[-1:] if strides is None else strides[-2:-1]:
                if isinstance(name, str):
                    old = self._known.get(name, 1)
                    self._known[name] = old * unit // gcd(old, unit)

    def rows_fit(self, memory: BlockArgument) -> bool:
        """Whether rows of memory begin, and end, at multiples of 16 bytes."""
        names, strides = size_names(self.function, memory.index)
        steps = names[-1:] if strides is None else strides[:-1]
        return self._are_units(memory, steps) and self._are_units(memory, names[-1:])

    def begins_at_unit(self, memory: BlockArgument, column: int | SSAValue) -> bool:
        """Whether a column of memory begins at a multiple of 16 bytes of its row."""
        bits = element_bits(memref_type(memory.type).element_type)
        number = column if isinstance(column, int) else divisor_of(column)
        return number * bits % (8 * UNIT) == 0

    def _are_units(self, memory: BlockArgument, sizes: Names) -> bool:
        bits = element_bits(memref_type(memory.type).element_type)
        numbers = [self._known.get(s, 1) if isinstance(s, str) else s for s in sizes]
        return DYNAMIC_INDEX not in numbers and all(n * bits % (8 * UNIT) == 0 for n in numbers)


def divisor_of(value: SSAValue) -> int:
    """A number that divides an index, 1 where nothing is known; 0 for 0."""
    number = constant_of(value)
    if number is not None:
        return abs(number)
    if isinstance(value.owner, Block):
        return _of_argument(value.owner, value)
    match value.owner:
        case arith.MuliOp(lhs=x, rhs=y):
            return divisor_of(x) * divisor_of(y)
        case arith.AddiOp(lhs=x, rhs=y) | arith.SubiOp(lhs=x, rhs=y):
            return gcd(divisor_of(x), divisor_of(y))
        case arith.SelectOp(lhs=x, rhs=y):
            return gcd(divisor_of(x), divisor_of(y))
        case arith.IndexCastOp(input=x):
            return divisor_of(x)
        case _:
            return 1


def _of_argument(block: Block, value: SSAValue) -> int:
    loop = block.parent_op()
    if isinstance(loop, scf.ForOp) and value is block.args[0]:
        return gcd(divisor_of(loop.lb), divisor_of(loop.step))
    if isinstance(loop, frag.ForTilesOp) and value in loop.places:
        dim = loop.places.index(value)
        moved = loop.ends is not None and dim == len(loop.places) - 2  # begins where a group does
        return 1 if moved else loop.tile_shape[dim]
    return 1


BY_TMA = "frag.tma"
"""The attribute of a store that shall leave by TMA."""
FEWEST_COLUMNS = 32
"""Of a piece: a copy for fewer is not worth its barriers. Half of it of what is transposed."""
LEAST_COLUMNS = 16
"""Of the last piece of several: lanes hold whole groups of them, so that it costs no conversion."""
WIDE = 64
"""Bytes of a row of a box that are wide enough: of narrower ones there would be many."""
MOST_SUMS = 64
"""Columns of sums in tensor memory that a thread takes at once."""
MOST_LOADED = 32
"""Elements for which a thread loads at once what it stores with a tile."""
CONVERSIONS = 16 << 10
"""Bytes that are left for conversions where there may be some."""


class _Outgoing(NamedTuple):
    """A store that may leave by TMA."""

    store: frag.StoreOp
    old: frag.LoadOp | None
    """What is read where it writes, and may come by TMA."""

    def bytes_of(self, widths: Sequence[int]) -> int:
        """The shared memory that it takes in pieces of so many columns: of each width twice."""
        tile = frag.tile_of(self.store.tile)
        size = tile.shape[0] * element_bits(tile.element_type) // 8
        total = sum(
            align_buffer(size * width) * min(2, count) for width, count in Counter(widths).items()
        )
        return total * (1 if self.old is None else 2)


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
    room = (machine(target).shared - _taken_bytes(function)) // (max(1, len(found)) * roles)
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


def takes_sums(store: frag.StoreOp) -> bool:
    """Whether it stores sums that lie in tensor memory."""
    return any(isinstance(op, frag.TensorLoadOp) for op in chain_of(store))


def _cut_wide(store: frag.StoreOp, threads: int) -> None:
    """Cuts what threads store from registers, if they load something for it, or test rows and
    columns of what is turned: not all at once."""
    tile = frag.tile_of(store.tile)
    turned = store.masked is not None and store.transposed is not None
    loads = any(isinstance(op, frag.LoadOp) for op in chain_of(store))
    sums = takes_sums(store)
    if len(tile.shape) != 2 or not (turned or loads or sums):
        return
    most = MOST_LOADED // 2 if turned and loads else MOST_LOADED
    most = MOST_SUMS if sums and not (turned or loads) else most
    pieces, rest = divmod(tile.shape[0] * tile.shape[1], most * threads)
    if pieces > 1 and not rest and tile.shape[1] % pieces == 0:
        cut_into_pieces(store, [tile.shape[1] // pieces] * pieces)


def _mark(way: _Outgoing, pieces: Sequence[int]) -> None:
    """Marks a store, cut to pieces, and fetches what it takes from the same place."""
    apart = _is_own_tile(way.store) or APART in way.store.attributes
    adds = ADDS in way.store.attributes
    stores = cut_into_pieces(way.store, pieces) if len(pieces) > 1 else [way.store]
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
                ring = insert_before(frag.RingOp(min(2, len(pieces)), type_), before, "olds")
            _fetch(load, store, ring)


def _fetch(load: frag.LoadOp, store: frag.StoreOp, ring: SSAValue) -> None:
    """Makes a load one of a ring's slot, which is filled ahead of it."""
    at = InsertPoint.before(load)
    slot = insert_before(frag.AcquireOp(ring), at, "free")
    part = insert_before(frag.PartOp(slot, 0), at, load.memory.name_hint)
    copy = frag.CopyOp(load.memory, load.all_indices(), part, [], tma=True)
    copy.attributes[APART] = UnitAttr()
    copy.location = load.location
    Rewriter.insert_op(copy, at)
    Rewriter.insert_op(frag.PublishOp(slot), at)
    slot = insert_before(frag.AwaitOp(ring), at, "slot")
    part = insert_before(frag.PartOp(slot, 0), at, load.memory.name_hint)
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
                    known.append(insert_before(memref.AllocOp((), (), type_), at, "leaving"))
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


def _memory_of(store: frag.StoreOp, width: int | None = None) -> MemRefType[Attribute]:
    """Shared memory for some columns of what a store writes, as the copy engine takes it."""
    tile = frag.tile_of(store.tile)
    rows, cols = tile.shape[0], width or tile.shape[1]
    shape = (rows, cols) if store.transposed is None else (cols, rows)
    return shared_type(tile.element_type, [], shape, False)


# --- for how much there is room ---------------------------------------------------------------


def _taken_bytes(function: func.FuncOp) -> int:
    """Shared memory that is no more to be had."""
    taken, products = ALIGNED, 0  # mbarriers, and what names and turns need
    for op in function.walk():
        if isinstance(op, memref.AllocOp):
            taken += align_buffer(bytes_of_type(op.memref.type))
        elif op.name == "frag.ring":
            assert isinstance(op, frag.RingOp)
            taken += sum(
                align_buffer(op.count * bytes_of_type(part))
                for part in op.ring.type.parts
                if frag.is_shared(part)
            )
        products += op.name in ("frag.mma", "frag.wgmma", "frag.reduce", "frag.scan")
    return taken if products <= 1 else taken + CONVERSIONS


def _pieces(way: _Outgoing, room: int, columns: int) -> list[int] | None:
    """The widths of as few pieces as fit into so many bytes; None where none do.

    Columns of several warps are not cut: those of one would hold a piece.
    """
    sums = takes_sums(way.store)
    for widths in _cuts(way, columns):
        if sums and columns == 1 and max(widths) > MOST_SUMS:
            continue
        if way.bytes_of(widths) <= room and all(
            _has_boxes(way.store, each) for each in set(widths)
        ):
            return widths
    return None


def _cuts(way: _Outgoing, columns: int) -> Iterator[list[int]]:
    """Into which widths a tile may be cut: halves of halves, or what boxes of a wide swizzle fill
    and a rest. What a ring brings comes in pieces that are alike."""
    tile, transposed = frag.tile_of(way.store.tile), way.store.transposed is not None
    width = tile.shape[1]
    fewest = FEWEST_COLUMNS // 2 if transposed else FEWEST_COLUMNS
    if width & (width - 1) == 0:
        yield [width]
        pieces = 2
        while columns == 1 and width // pieces >= fewest:
            yield [width // pieces] * pieces
            pieces *= 2
        return
    wide = transposed or width * element_bits(tile.element_type) % (8 * WIDE) == 0
    if wide or columns > 1:
        yield [width]
    each = 2 * FEWEST_COLUMNS
    while columns == 1 and each >= fewest:
        count, rest = divmod(width, each)
        if count and rest % LEAST_COLUMNS == 0 and not (rest and way.old):
            yield [each] * count + [rest] * bool(rest)
        each //= 2
    if not wide and columns == 1:
        yield [width]


def _has_boxes(store: frag.StoreOp, width: int) -> bool:
    """Whether boxes of a tensor map fill the memory of a piece."""
    memory = memref.AllocOp((), (), _memory_of(store, width))
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
