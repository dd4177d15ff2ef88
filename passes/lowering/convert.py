"""`frag.convert`: a tile in another layout, as the cheapest plan says.

Where registers have other names only, nothing is written. Inside of a warp words are shuffled,
selected and permuted (`programs`); else they go through shared memory (`convert_shared`). Layouts
that no plan knows go there element by element (`convert_elements`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import IntegerType, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.isa.features import features_of
from fragir.layout.planning.padding import PaddedRows
from fragir.layout.planning.planner import ConversionPlan, plan_conversion
from fragir.layout.shared import swizzled_elements
from fragir.passes.lowering import lane_coordinates
from fragir.passes.lowering.arithmetic import Arithmetic
from fragir.passes.lowering.elementwise import WORD, cast_op, fragments_from, words_of
from fragir.passes.lowering.lane_coordinates import pointers
from fragir.passes.lowering.memory import shared_bytes, shared_memory
from fragir.passes.lowering.programs import Narrow, ProgramLowering
from fragir.passes.lowering.scratch import Sharers
from fragir.passes.lowering.state import LoweringState, fragments_of
from fragir.passes.lowering.tile_access import TileAccess, split

if TYPE_CHECKING:
    from fragir.layout.planning.access import SharedAccess
    from fragir.layout.planning.planner import Through


# -- convert elements ------------------------------------------------------------------------------
# Conversions of any layouts: every element through shared memory, with padded rows.


def by_elements(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    padded: PaddedRows,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Store, barrier, load: right for every pair of layouts."""
    shape = (1, *source.shape) if len(source.shape) == 1 else source.shape
    bits = ptx.bits(source.element_type)
    layout = swizzled_elements((*shape[:-1], padded.pitch), bits, 0)
    memory = shared_memory(state.scratch.pointer, layout, shape, source.element_type)

    def access(tile: frag.TileType) -> TileAccess:
        first = [0] * len(memory.shape)
        return TileAccess(
            state.ar,
            state.hardware,
            tile,
            memory,
            first,
            transposed=False,
            masked=False,
            target=state.target,
        )

    with state.scratch.passage(shared_bytes(layout, bits), state.scratch.whole):
        access(source).store(fragments)
        state.ar.insert(state.scratch.whole.barrier())
        return access(target).load()


# -- convert shared --------------------------------------------------------------------------------
# A conversion through shared memory as its `SharedPlan` says: store, wait, load.

BYTE = IntegerType(8)
DOUBLE = 64  # bits
WARP_MASK = -1  # all lanes

Place: TypeAlias = tuple[SSAValue, int]
"""A pointer, and bytes to add."""


def convert_through_shared(
    state: LoweringState, plan: Through, words: Sequence[SSAValue], bits: int
) -> list[SSAValue]:
    """The words of the target's fragments from those of the source's, of elements of `bits`."""
    pairs = bits == DOUBLE and _are_in_pairs(plan)
    ar, programs = state.ar, ProgramLowering(state.ar, state.hardware)
    stored, sharers = programs.words(plan.before, words), _sharers(state, plan)
    loaded: dict[int, SSAValue] = {}
    with state.scratch.passage(plan.scratch, sharers):
        for turn, (stores, loads) in enumerate(plan.turns):
            if turn:
                ar.insert(sharers.barrier())
            for access, place in _places(state, stores):
                _store(state, access, place, [stored[word] for word in access.words])
            ar.insert(sharers.barrier())
            for access, place in _places(state, loads):
                loaded.update(zip(access.words, _load(state, access, place, pairs), strict=True))
    return programs.run(plan.after, [loaded[word] for word in range(plan.after.inputs)])


def _are_in_pairs(plan: Through) -> bool:
    """Whether both words of every element are loaded side by side, the first of an even number."""
    first, second = plan.after.outputs[::2], plan.after.outputs[1::2]
    return all(a % 2 == 0 and b == a + 1 for a, b in zip(first, second, strict=True))


def _sharers(state: LoweringState, plan: Through) -> Sharers:
    """Who waits: the whole block where it has warps that the plan does not know of."""
    meeting, threads = plan.meeting, state.threads
    columns = meeting.number.warp
    if meeting.reach == "block" or threads > 32 << len(columns):
        return state.scratch.whole
    key = (meeting.reach, columns, plan.scratch // meeting.groups)
    if meeting.reach == "warp":
        return Sharers("warp", key, lambda: ptx.SyncOp("bar.warp.sync", WARP_MASK))
    first = state.scratch.barriers(columns, meeting.groups)
    if first is None:
        return state.scratch.whole
    group = lane_coordinates.number(state.ar, state.hardware, meeting.number)
    value = state.ar.value(state.ar.add(group, first))
    return Sharers("group", key, lambda: ptx.NamedBarrierOp(value, 32 * meeting.warps))


def _places(
    state: LoweringState, accesses: Sequence[SharedAccess]
) -> Iterator[tuple[SharedAccess, Place]]:
    """The accesses of one side, all of the same columns, each with where it goes."""
    base = state.scratch.pointer
    places = pointers(state.ar, state.hardware, base, [access.address for access in accesses])
    return zip(accesses, places, strict=True)


def _store(
    state: LoweringState, access: SharedAccess, place: Place, words: Sequence[SSAValue]
) -> None:
    pointer, offset = place
    value = words[0] if len(words) == 1 else state.ar.insert(ptx.PackOp(words)).result
    if access.kind == "stmatrix":
        if len(words) == 1:
            value = state.ar.insert(ptx.PackOp(words)).result
        state.ar.insert(ptx.StmatrixOp(value, pointer, offset, access.trans))
        return
    if access.size < 4:
        value = state.ar.insert(ptx.BitcastOp(value, _access_type(access.size))).result
    state.ar.insert(ptx.StoreOp(value, pointer, offset, _condition(state, access)))


def _load(state: LoweringState, access: SharedAccess, place: Place, pairs: bool) -> list[SSAValue]:
    """The words of one access, or where they are elements in `pairs` their halves.

    ptxas copies registers that are loaded one by one and then become one of 64 bits.
    """
    ar, (pointer, offset) = state.ar, place
    if access.kind == "ldmatrix":
        type_ = ptx.vector_type(i32, access.matrices)
        loaded = ar.insert(ptx.LdmatrixOp(pointer, offset, type_, access.trans)).value
        return list(ar.insert(ptx.UnpackOp(loaded)).scalars)
    type_ = _access_type(access.size)
    if pairs and access.size >= DOUBLE // 8:
        type_ = ptx.vector_type(i64, access.size * 8 // DOUBLE)
    condition = _condition(state, access)
    otherwise = None if condition is None else ar.zero(type_)
    loaded = ar.insert(ptx.LoadOp(pointer, offset, type_, condition, otherwise)).value
    if access.size < 4:
        loaded = ar.insert(ptx.BitcastOp(loaded, i32)).result
    elif type_ != _access_type(access.size):
        loaded = ar.insert(ptx.BitcastOp(loaded, _access_type(access.size))).result
    return [loaded] if access.size <= 4 else list(ar.insert(ptx.UnpackOp(loaded)).scalars)


def _access_type(size: int) -> Attribute:
    """What so many bytes are read and written as: the lowest of a register, or whole ones."""
    if size < 4:
        return ptx.vector_type(BYTE, size)
    return i32 if size == 4 else ptx.vector_type(i32, size // 4)


def _condition(state: LoweringState, access: SharedAccess) -> SSAValue | None:
    if access.unless is None:
        return None
    taken = lane_coordinates.predicate(state.ar, state.hardware, access.unless, 0)
    return state.ar.predicate(taken)


def convert(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """The fragments of `target` from those of `source`.

    FragirError where the layouts do not belong to the same threads.
    """
    ar, bits = state.ar, ptx.bits(source.element_type)
    if is_predicate(source.element_type):
        return _predicates(state, source, target, fragments)
    plan = plan_of_conversion(source, target, bits, state.target)
    if plan.apart is not None or (bits < 8 and plan.rows is not None):
        return _by_bytes(state, source, target, fragments)
    renaming = _renaming(plan)
    if renaming is not None:
        return _reordered_fragments(ar, fragments, renaming, _chunk(target))
    words = _converted_words(state, plan, words_of(ar, fragments))
    if words is None:
        assert plan.rows is not None
        return by_elements(state, source, target, plan.rows, fragments)
    return fragments_from(ar, words, target.element_type, _chunk(target), fragments_of(target))


def _converted_words(
    state: LoweringState, plan: ConversionPlan, words: Sequence[SSAValue]
) -> Sequence[SSAValue] | None:
    """The words of the target; None where the plan says element by element."""
    if plan.program is not None:
        return ProgramLowering(state.ar, state.hardware).run(plan.program, words)
    return (
        None
        if plan.through is None
        else convert_through_shared(state, plan.through, words, plan.bits)
    )


def _by_bytes(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Elements of less than a byte that part from their neighbours: with a byte for each."""
    ar, narrow = state.ar, Narrow(state.ar, ptx.bits(source.element_type))
    byte = IntegerType(8)
    apart = narrow.bytes_of(words_of(ar, fragments))
    bytes_ = fragments_from(ar, apart, byte, _chunk(source), fragments_of(source))
    moved = convert(state, source.with_element(byte), target.with_element(byte), bytes_)
    words = narrow.words_of(words_of(ar, moved))
    return fragments_from(ar, words, target.element_type, _chunk(target), fragments_of(target))


def plan_of_conversion(
    source: frag.TileType, target: frag.TileType, bits: int, machine: str
) -> ConversionPlan:
    """The plan of a conversion of elements of so many bits on a machine."""
    return plan_conversion(source.resolve(), target.resolve(), bits, features_of(machine))


def _predicates(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Words hold no predicates: where more than names change they go as numbers of a register."""
    ar = state.ar
    source, target = source.with_element(i32), target.with_element(i32)
    renaming = _renaming(plan_of_conversion(source, target, WORD, state.target))
    if renaming is not None:
        return _reordered_fragments(ar, fragments, renaming, _chunk(target))
    numbers = [cast_op(ar, fragment, i1, i32) for fragment in fragments]
    moved = convert(state, source, target, numbers)
    return [ar.insert(ptx.CompareOp("ne", part, ar.zero(part.type))).result for part in moved]


def _chunk(tile: frag.TileType) -> int:
    return tile.chunk


def _renaming(plan: ConversionPlan) -> Sequence[int] | None:
    """For every element of the target the source's in the same lane; None where data move."""
    if plan.permutation is not None:
        return plan.permutation
    if plan.program is None or plan.program.steps:
        return None
    outputs, bits = plan.program.outputs, plan.bits
    if bits > WORD:
        return [word // 2 for word in outputs[::2]]
    per = WORD // bits
    elements = [word * per + place for word in outputs for place in range(per)]
    return elements[: plan.target.size("element")]


def _reordered_fragments(
    ar: Arithmetic, fragments: Sequence[SSAValue], permutation: Sequence[int], chunk: int
) -> list[SSAValue]:
    """Elements picked in another order, which keeps whole registers."""
    element = ptx.scalar_type(fragments[0].type)
    width = 1 if is_predicate(element) else max(1, WORD // ptx.bits(element))
    if len(permutation) % width:  # the last register is not full
        words = words_of(ar, fragments)
        picked = [words[first // width] for first in permutation[::width]]
        return fragments_from(ar, picked, element, chunk, len(permutation) // chunk)
    parts = [part for fragment in fragments for part in split(ar, fragment, width)]
    picked = [parts[first // width] for first in permutation[::width]]
    size = chunk // width
    groups = [picked[i : i + size] for i in range(0, len(picked), size)]
    return [_join(ar, group, width) for group in groups]


def _join(ar: Arithmetic, parts: Sequence[SSAValue], width: int) -> SSAValue:
    if len(parts) == 1 and width > 1:
        return parts[0]
    return ar.insert(ptx.PackOp(parts) if width == 1 else ptx.ConcatOp(parts)).results[0]
