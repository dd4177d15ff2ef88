"""Tiles in registers: made, cast, mapped, converted, reduced, in other shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType, VectorType, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name, is_predicate
from fragir.dialects.frag.generated import PHILOX, WORDS
from fragir.dialects.frag.reductions import PLACES, reduced_layout
from fragir.dialects.frag.regrouped import RenamingOp
from fragir.dialects.frag.types import tile_of
from fragir.dialects.shorthands import constant_of
from fragir.errors import FragirError
from fragir.layout.regrouping import element_points
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.elementwise import (
    cast_op,
    clone_elementwise,
    fragments_from,
    is_whole,
    per_register,
    pick_elements,
    words_of,
)
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.programs import Narrow
from fragir.passes.lowering.reduction import Combining, Reduction, RegionCombining
from fragir.passes.lowering.scan import Scan
from fragir.passes.lowering.state import LoweringState, fragments_of
from fragir.passes.lowering.tile_access import join, split


def fill(lanes: Lanes, op: frag.FillOp) -> None:
    tile = op.tile.type
    vector = _splat(lanes.state, op.value, tile.chunk)
    lanes.state.tiles[op.tile] = [vector] * fragments_of(tile)


def _splat(state: LoweringState, value: SSAValue, count: int) -> SSAValue:
    constant = value.owner
    if isinstance(constant, arith.ConstantOp) and _is_zero(constant.value):
        return state.ar.zero(VectorType(value.type, [count]))
    return state.ar.splat(state.scalar(value), count)


def _is_zero(attribute: Attribute) -> bool:
    value = getattr(attribute, "value", None)
    data = getattr(value, "data", None)
    return data == 0 and str(data) != "-0.0"


def cast(lanes: Lanes, op: frag.CastOp) -> None:
    source, target = frag.tile_of(op.source), op.result.type
    first, second = source.element_type, target.element_type
    ar, fragments = lanes.state.ar, lanes.fragments(op.source)
    if source.chunk == target.chunk:
        lanes.bind_each(op.result, lambda i: cast_op(ar, fragments[i], first, second))
        return
    # elements of less than a byte in one vector, others by the instruction's
    whole = cast_op(ar, join(ar, fragments), first, second)
    parts = split(ar, whole, target.chunk)
    lanes.bind_each(op.result, lambda i: parts[i])


def map_(lanes: Lanes, op: frag.MapOp) -> None:
    state = lanes.state
    columns = [lanes.fragments(tile) for tile in op.tiles]
    chunk, block = op.result.type.chunk, op.body.block

    def make(i: int) -> SSAValue:
        values = [column[i] for column in columns]
        return clone_elementwise(state.ar, block, values, chunk, state.scalar)

    lanes.bind_each(op.result, make)


def convert(lanes: Lanes, op: frag.ConvertOp) -> None:
    from fragir.passes.lowering.convert import convert

    state, source = lanes.state, frag.tile_of(op.source)
    fragments = state.tiles[op.source]
    state.tiles[op.result] = convert(state, source, op.result.type, fragments)


# -- generated -------------------------------------------------------------------------------------
# Tiles that are made of no other: places of elements, and random numbers (Philox 4x32-10).

# --- places ---------------------------------------------------------------------------------------


def iota(lanes: Lanes, op: frag.IotaOp) -> None:
    lanes.bind(op.tile, lanes.places(op.tile.type, op.along))


# --- random numbers -------------------------------------------------------------------------------

Word: TypeAlias = SSAValue | None
"""A vector of words, None for zeros."""
Key: TypeAlias = tuple[SSAValue, SSAValue]


def random(lanes: Lanes, op: frag.RandomOp) -> None:
    ar, words = lanes.state.ar, [lanes.fragments(word) for word in op.words()]
    placement = op.first.type.placement
    assert placement is not None
    chunk, zeros = placement.chunk, [None] * (WORDS - len(words))
    vectors = Vectors(ar, chunk)
    keys = _keys(ar, lanes.scalar(op.seed))
    made = [vectors.bits([*counter, *zeros], keys) for counter in zip(*words, strict=True)]
    for number, result in enumerate(op.results):
        lanes.bind_each(result, lambda i, number=number: made[i][number])


def _keys(ar: Arithmetic, seed: SSAValue) -> list[Key]:
    """The two words of the key in each round, made once for a seed."""
    low, high = _constants(seed) or _halves(ar, seed)
    return [
        (_plus(ar, low, turn * PHILOX.steps[0]), _plus(ar, high, turn * PHILOX.steps[1]))
        for turn in range(PHILOX.rounds)
    ]


def _constants(seed: SSAValue) -> tuple[int, int] | None:
    """The key of a seed that is written in the program."""
    number = constant_of(seed)
    return None if number is None else (number, number >> 32)


def _halves(ar: Arithmetic, seed: SSAValue) -> Key:
    if seed.type == i32:
        all_bits = ar.literal(IntegerAttr(31, i32))
        sign = ar.pure(("sign", seed), (seed,), lambda: arith.ShRSIOp(seed, all_bits))
        return seed, sign
    half = ar.literal(IntegerAttr(32, i64))
    upper = ar.pure(("shrui", seed, 32), (seed,), lambda: arith.ShRUIOp(seed, half))
    low, high = (
        ar.pure(("trunci", x, i32), (x,), lambda x=x: arith.TruncIOp(x, i32)) for x in (seed, upper)
    )
    return low, high


def _plus(ar: Arithmetic, word: SSAValue | int, step: int) -> SSAValue:
    """A word of 32 bits and a number."""
    if isinstance(word, int):
        return _number(ar, word + step)
    if step == 0:
        return word
    number = _number(ar, step)
    return ar.pure(("addi", word, number), (word,), lambda: arith.AddiOp(word, number))


def _number(ar: Arithmetic, number: int) -> SSAValue:
    return ar.literal(IntegerAttr(((number + (1 << 31)) & (1 << 32) - 1) - (1 << 31), i32))


class Vectors:
    """Arithmetic on vectors of so many words; what is zero for certain takes no instruction."""

    def __init__(self, ar: Arithmetic, count: int):
        self.ar, self.count = ar, count

    def bits(self, counter: Sequence[Word], keys: Sequence[Key]) -> list[SSAValue]:
        """What a counter becomes."""
        c0, c1, c2, c3 = counter
        for low, high in keys:
            (down0, up0), (down2, up2) = (
                self.product(c, factor) for c, factor in zip((c0, c2), PHILOX.factors, strict=True)
            )
            c0, c1 = self.xor(self.xor(up2, c1), self.splat(low)), down2
            c2, c3 = self.xor(self.xor(up0, c3), self.splat(high)), down0
        found: list[SSAValue] = []
        for word in (c0, c1, c2, c3):
            assert word is not None  # two rounds reach every word
            found.append(word)
        return found

    def splat(self, scalar: SSAValue) -> SSAValue:
        return self.ar.splat(scalar, self.count)

    def product(self, x: Word, factor: int) -> tuple[Word, Word]:
        """The lower and the upper half of a product."""
        if x is None:
            return None, None
        op = arith.MulUIExtendedOp(x, self.splat(_number(self.ar, factor)))
        low, high = self.ar.insert(op).results
        return low, high

    def xor(self, x: Word, y: Word) -> Word:
        if x is None or y is None:
            return x or y
        return self.ar.insert(arith.XOrIOp(x, y)).result


# -- reductions ------------------------------------------------------------------------------------
# Tiles that lose a dimension, by words or a region, that gain one, and scans along one.

# --- reductions and repetition --------------------------------------------------------------------


def reduce(lanes: Lanes, op: frag.ReduceOp) -> None:
    kind = op.kind.data
    combining = Combining(lanes, kind, element_name(tile_of(op.source).element_type))
    found = Reduction(lanes, [op.source], op.along, combining, places=kind in PLACES).run()
    bind_reduction(lanes, op.source, op.along, op.result, found[-1])


def bind_reduction(
    lanes: Lanes, source: SSAValue, along: int, result: SSAValue, values: Sequence[SSAValue]
) -> None:
    """Gives a tile of a dimension less, or a number, its values in the order of that layout."""
    if not isinstance(result.type, frag.TileType):
        lanes.bind_scalar(result, values[0])
        return
    tile = tile_of(source)
    found = result.type.with_layout(reduced_layout(tile.layout, tile.shape, along))
    lanes.bind(result, lanes.convert(found, result.type, values))


def broadcast(lanes: Lanes, op: frag.BroadcastOp) -> None:
    """Every element is one that the lane has already, in another register or the same one."""
    source, result = tile_of(op.source), op.result.type
    layout = reduced_layout(result.layout, result.shape, op.dim)
    wanted = source.with_layout(layout)
    elements = lanes.convert(source, wanted, lanes.elements(op.source))
    held = dict(zip(lanes.points_of(wanted), elements, strict=True))
    places = (point[: op.dim] + point[op.dim + 1 :] for point in lanes.points(op.result))
    lanes.bind(op.result, [held[place] for place in places])


# --- reductions by a region -----------------------------------------------------------------------


def reduce_by(lanes: Lanes, op: frag.ReduceByOp) -> None:
    combining = RegionCombining(lanes, op.body.block)
    found = Reduction(lanes, op.tiles, op.along, combining).run()
    for tile, result, values in zip(op.tiles, op.reduced, found, strict=True):
        bind_reduction(lanes, tile, op.along, result, values)


# --- scans ----------------------------------------------------------------------------------------


def scan(lanes: Lanes, op: frag.ScanOp) -> None:
    lanes.bind(op.result, Scan(lanes, op).run())


# -- shapes ----------------------------------------------------------------------------------------
# Tiles in other shapes: elements keep their lanes, registers get other names.


def rename(lanes: Lanes, op: RenamingOp) -> None:
    if op.staged:
        from fragir.passes.lowering.staged import through_memory  # few programs need it

        through_memory(lanes, op)
        return
    state = lanes.state
    for number, result in enumerate(op.results):
        picked = elements_of(op, number)
        type_ = frag.tile_of(result)
        chunk, element = type_.chunk, type_.element_type
        sources = [list(state.tiles[operand]) for operand in op.operands]
        narrow = not is_predicate(element) and ptx.bits(element) < 8
        fragments = [fragment for source in sources for fragment in source]
        if narrow and _is_only_order(fragments, picked, chunk, ptx.bits(element)):
            state.tiles[result] = [_in_order(state, fragments[0], picked)]
        elif narrow and not _stays_whole(sources, picked, chunk, per_register(element)):
            state.tiles[result] = _by_bytes(state, op, sources, type_, picked)
        else:
            state.tiles[result] = pick_elements(state.ar, fragments, picked, chunk)


def elements_of(op: RenamingOp, number: int) -> list[int]:
    """For every element of a result in a lane its number among those of all operands.

    FragirError where a lane lacks one.
    """
    places: list[dict[tuple[int, ...], int]] = []
    count = 0
    for operand in op.operands:
        points = element_points(frag.tile_of(operand).resolve())
        places.append({point: count + at for at, point in reversed(list(enumerate(points)))})
        count += len(points)
    found: list[int] = []
    for point in element_points(frag.tile_of(op.results[number]).resolve()):
        operand, source = op.source_of(number, point)
        place = places[operand].get(source)
        if place is None:
            raise FragirError(
                f"lanes lack elements of {frag.tile_of(op.operands[operand])} for "
                f"{frag.tile_of(op.results[number])}",
                hint="run the pass frag-place first, or write frag.convert",
            )
        found.append(place)
    return found


def _is_only_order(
    fragments: Sequence[SSAValue], picked: Sequence[int], chunk: int, bits: int
) -> bool:
    """Whether elements of four bits are one vector that is in another order only, or had been."""
    if len(fragments) != 1 or chunk != len(picked) or bits != 4:
        return False
    owner = fragments[0].owner
    ordered = isinstance(owner, Operation) and owner.name == "ptx.nibbles"
    return ordered or list(picked) == list(range(ptx.length(fragments[0].type)))


def _in_order(state: LoweringState, fragment: SSAValue, picked: Sequence[int]) -> SSAValue:
    """A vector of elements of four bits in the order of `picked`."""
    if list(picked) == list(range(ptx.length(fragment.type))):
        return fragment
    owner = fragment.owner
    assert isinstance(owner, ptx.NibblesOp)
    order = owner.picked
    return state.ar.insert(ptx.NibblesOp(owner.source, [order[i] for i in picked])).result


def _stays_whole(
    sources: Sequence[Sequence[SSAValue]], picked: Sequence[int], chunk: int, per: int
) -> bool:
    lengths = [ptx.length(fragment.type) for source in sources for fragment in source]
    return not any(n % per for n in (chunk, *lengths)) and is_whole(picked, per)


def _by_bytes(
    state: LoweringState,
    op: RenamingOp,
    sources: Sequence[Sequence[SSAValue]],
    result: frag.TileType,
    picked: Sequence[int],
) -> list[SSAValue]:
    """Elements of less than a byte that part from their neighbours: with a byte for each."""
    ar, byte = state.ar, IntegerType(8)
    narrow = Narrow(ar, ptx.bits(result.element_type))
    apart: list[SSAValue] = []
    for operand, source in zip(op.operands, sources, strict=True):
        words = narrow.bytes_of(words_of(ar, source))
        size = frag.tile_of(operand).resolve().size("element")
        apart += fragments_from(ar, words, byte, size, 1)
    chunk = result.chunk
    moved = pick_elements(ar, apart, picked, chunk)
    words = narrow.words_of(words_of(ar, moved))
    return fragments_from(ar, words, result.element_type, chunk, fragments_of(result))
