"""A conversion through shared memory as its `SharedPlan` says: store, wait, load."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue

from fragir.dialects import ptx
from fragir.passes.lowering import lanewise
from fragir.passes.lowering.lane_pointers import pointers
from fragir.passes.lowering.programs import ProgramLowering
from fragir.passes.lowering.scratch import Sharers
from fragir.passes.lowering.state import LoweringState

if TYPE_CHECKING:
    from fragir.layout.planning.access import SharedAccess
    from fragir.layout.planning.planner import Through

BYTE = IntegerType(8)
DOUBLE = 64  # bits
WARP_MASK = -1  # all lanes

Place: TypeAlias = tuple[SSAValue, int]
"""A pointer, and bytes to add."""


def through_shared(
    state: LoweringState, plan: Through, words: Sequence[SSAValue], bits: int
) -> list[SSAValue]:
    """The words of the target's fragments from those of the source's, of elements of `bits`."""
    pairs = bits == DOUBLE and _in_pairs(plan)
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


def _in_pairs(plan: Through) -> bool:
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
    group = lanewise.number(state.ar, state.hardware, meeting.number)
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
        value = state.ar.insert(ptx.BitcastOp(value, _accessed(access.size))).result
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
    type_ = _accessed(access.size)
    if pairs and access.size >= DOUBLE // 8:
        type_ = ptx.vector_type(i64, access.size * 8 // DOUBLE)
    condition = _condition(state, access)
    otherwise = None if condition is None else ar.zero(type_)
    loaded = ar.insert(ptx.LoadOp(pointer, offset, type_, condition, otherwise)).value
    if access.size < 4:
        loaded = ar.insert(ptx.BitcastOp(loaded, i32)).result
    elif type_ != _accessed(access.size):
        loaded = ar.insert(ptx.BitcastOp(loaded, _accessed(access.size))).result
    return [loaded] if access.size <= 4 else list(ar.insert(ptx.UnpackOp(loaded)).scalars)


def _accessed(size: int) -> Attribute:
    """What so many bytes are read and written as: the lowest of a register, or whole ones."""
    if size < 4:
        return ptx.vector_type(BYTE, size)
    return i32 if size == 4 else ptx.vector_type(i32, size // 4)


def _condition(state: LoweringState, access: SharedAccess) -> SSAValue | None:
    if access.unless is None:
        return None
    taken = lanewise.predicate(state.ar, state.hardware, access.unless, 0)
    return state.ar.predicate(taken)
