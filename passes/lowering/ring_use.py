"""How a program uses a ring: who fills its slots, who reads them, and by what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.rings import PART, carried_values, roles_of_turn
from fragir.dialects.interfaces import WarpgroupCollective, accesses_of
from fragir.dialects.shorthands import is_memref
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Value
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.rings import READ, RingCursor
from fragir.passes.lowering.state import SharedPlace
from fragir.passes.lowering.tensor_copies import engine, statement


class RingUse(NamedTuple):
    """How the slots of a ring are filled and read."""

    tma: bool
    by_threads: bool
    """Whether threads store into them, other than by cp.async."""
    by_cp_async: bool
    by_wgmma: bool
    """Whether wgmma reads them, and nothing else does."""
    proxy: bool
    """Whether wgmma or TMA reads them, among others."""
    multicast: bool
    by_tensor_products: bool
    """Whether tcgen05.mma and tcgen05.cp read them, and nothing else does."""
    in_tensor_memory: bool
    of_products: bool
    """Whether they are of tensor memory, and products write them, not tcgen05.st of threads."""
    pair: bool
    """Whether products read or write them that are of a pair of blocks."""


def use_of(ring: SSAValue) -> RingUse:
    """How a program uses a ring."""
    writers = list(_users(ring, "frag.acquire"))
    readers = list(_users(ring, "frag.await"))
    copies = [op for op in writers if isinstance(op, frag.CopyOp)]
    tma = [op for op in copies if op.tma is not None]
    cp_async = [op for op in copies if op.is_async is not None]
    collective = [op.has_trait(WarpgroupCollective) for op in readers]
    products = [isinstance(op, frag.TensorMmaOp | frag.TensorCopyOp) for op in readers]
    in_tensor_memory = frag.is_tensor_memory(_ring_type(ring).parts.data[0])
    stores = [op for op in readers if isinstance(op, frag.CopyOp) and op.tma is not None]
    return RingUse(
        bool(tma),
        len(writers) > len(tma) + len(cp_async),
        bool(cp_async),
        bool(collective) and all(collective),
        not in_tensor_memory and (any(collective) or bool(stores) or any(products)),
        any(op.multicast is not None for op in tma),
        bool(products) and all(products),
        in_tensor_memory,
        in_tensor_memory and not any(isinstance(op, frag.TensorStoreOp) for op in writers),
        any(op.pair is not None for op in (*writers, *readers) if isinstance(op, frag.TensorMmaOp)),
    )


def _ring_type(ring: SSAValue) -> frag.RingType:
    assert isinstance(ring.type, frag.RingType)
    return ring.type


def needs_barriers(ring: SSAValue) -> bool:
    """Whether a ring has mbarriers: copies by TMA count at them, and so do products in tensor
    memory that are done; roles wait at them."""
    if any(role_of(use.operation) is not None for use in ring.uses):
        return True
    use = use_of(ring)
    return use.tma or use.in_tensor_memory


def _users(ring: SSAValue, maker: str) -> Iterator[Operation]:
    """What uses the memory of slots that were acquired, or awaited."""
    for use in ring.uses:
        if use.operation.name == maker:
            for slot in carried_values(use.operation.results[0]):
                for part in slot.uses:
                    if part.operation.name == PART:
                        yield from users_of_memory(part.operation.results[0])


def users_of_memory(memory: SSAValue) -> Iterator[Operation]:
    for use in memory.uses:
        op = use.operation
        model = accesses_of(op)
        if model is not None and model.view_of() is memory:
            for result in op.results:
                if is_memref(result.type):
                    yield from users_of_memory(result)
        else:
            yield op


# -- ring turns ------------------------------------------------------------------------------------
# Rings whose slots roles share out by turns: the place in the ring goes from role to role.
#
# The number of the next slot, and whether the round is odd, are registers of the role whose turn it
# is. Passing its turn on, one thread writes them for the role that is next, which reads them as
# soon as it has the turn. Every role has a place of its own to read from: it is written again only
# when the role has passed its turn on, so has read it. The barriers of turns order both (PTX ISA
# 9.2, section 9.7.13.1).

SUBJECT = "ring turns"
"""What `LoweringState.of_subject` knows them by."""


class SharedOutRing(NamedTuple):
    """A ring whose reading cursor goes from role to role."""

    ring: SSAValue
    turn: str
    places: SharedPlace
    """Where the cursors lie in shared memory: that of each role, in the order of turns."""


def share_out(lanes: Lanes, op: frag.RingOp, threads: list[int]) -> None:
    """Notes a ring that is read by turns, by roles of so many threads."""
    assert op.turns is not None
    if len(set(threads)) > 1:
        raise FragirError(
            "roles of different sizes share the ring's slots out",
            hint="give roles that take turns at a ring as many warps each",
        )
    readers = (use.operation for use in op.ring.uses if use.operation.name == "frag.await")
    region = next((role_of(reader) for reader in readers), None)
    if region is None:
        return  # nobody awaits it
    roles = roles_of_turn(region, op.turns.data)
    known = _shared_out_rings(lanes)
    known.append(SharedOutRing(op.ring, op.turns.data, engine(lanes).words(len(roles))))


def take(lanes: Lanes, turn: str, place: int) -> None:
    """Reads the cursors of rings that go by a turn, which the role has now."""
    state = lanes.state
    for known in _of(lanes, turn):
        pointer, offset = known.places
        words = f"ld.shared.v2.b32 {{$0, $1}}, [$2+{offset + WORD * place}]"
        read = statement(state, words, (pointer,), (IndexType(), IndexType())).results
        for name, value in zip(_cursors(known.ring), read, strict=True):
            # alike in all lanes: ptxas computes addresses once for a warp
            same = state.ar.insert(ptx.ShuffleOp(value, state.ar.value(0)), "turn")
            state.hidden[name] = same.result


def hand_on(lanes: Lanes, turn: str, place: int) -> None:
    """Writes the cursors for the role that has the turn next."""
    state = lanes.state
    for known in _of(lanes, turn):
        slot, phase = (state.hidden[name] for name in _cursors(known.ring))
        _write(lanes, known, place, slot, phase)


def begin(lanes: Lanes, turn: str) -> None:
    """Writes the cursors that the first role begins with."""
    for known in _of(lanes, turn):
        _write(lanes, known, 0, 0, 0)


WORD = 8
"""Bytes of a cursor: the slot's number and the round, 0 or 1."""


def _write(lanes: Lanes, known: SharedOutRing, place: int, slot: Value, phase: Value) -> None:
    state, (pointer, offset) = lanes.state, known.places
    ar = state.ar
    first = ar.predicate(ar.compare("eq", state.hardware.thread, 0))
    words = f"st.shared.v2.b32 [$0+{offset + WORD * place}], {{$1, $2}}"
    statement(state, words, (pointer, ar.value(slot), ar.value(phase)), predicate=first)


def _cursors(ring: SSAValue) -> tuple[RingCursor, RingCursor]:
    return RingCursor(ring, READ), RingCursor(ring, READ, phase=True)


def _shared_out_rings(lanes: Lanes) -> list[SharedOutRing]:
    found = lanes.state.of_subject.setdefault(SUBJECT, [])
    assert isinstance(found, list)
    return found  # pyright: ignore[reportUnknownVariableType]


def _of(lanes: Lanes, turn: str) -> Iterator[SharedOutRing]:
    return (known for known in _shared_out_rings(lanes) if known.turn == turn)
