"""Memory by tiles of indices, and atomics."""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.atomics import KINDS
from fragir.dialects.frag.memory_layout import check_inside
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.versions import has
from fragir.passes.lowering.indexed_access import IndexedAccess
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.layout_arithmetic import NOWHERE
from fragir.passes.lowering.memory import MemoryPlace, address
from fragir.passes.lowering.tile_access import split

# --- gather and scatter ---------------------------------------------------------------------------


def load_scalar(lanes: Lanes, op: memref.LoadOp) -> None:
    """One element, at the same place for every lane of the block."""
    type_, state = memref_type(op.memref.type), lanes.state
    if frag.is_shared(type_):
        raise FragirError(
            f"a scalar is read from global memory, not from {type_}",
            hint="load a tile of it: frag.load",
        )
    if ptx.bits(type_.element_type) < 8:
        raise FragirError(f"no single {type_.element_type} is a scalar; load a tile of them")
    memory, at = lanes.memory(op.memref), [state.values[index] for index in op.indices]
    known = [index if isinstance(index, int) else value for index, value in zip(at, op.indices)]
    try:
        check_inside(op.name, type_.get_shape(), known, [1] * len(known), maskable=False)
    except VerifyException as error:
        raise FragirError(str(error).removeprefix(f"{op.name}: ")) from error
    place = MemoryPlace((NOWHERE,) * len(at), tuple(at))
    pointer, offset = address(state.ar, memory, place, (0,) * len(at))
    loaded = state.ar.insert(ptx.LoadOp(pointer, offset, type_.element_type), op.res.name_hint)
    lanes.bind_scalar(op.res, loaded.value)


def gather(lanes: Lanes, op: frag.GatherOp) -> None:
    other = None if op.other is None else lanes.scalar(op.other)
    access = IndexedAccess(lanes, op, writes=False, other=other)
    lanes.bind_each(op.tile, access.load_chunk)


def scatter(lanes: Lanes, op: frag.ScatterOp) -> None:
    IndexedAccess(lanes, op, writes=True).store_parts(lanes.fragments(op.tile))


# --- atomics --------------------------------------------------------------------------------------


def atomic(lanes: Lanes, op: frag.AtomicOp) -> None:
    element = frag.tile_of(op.tile).element_type
    access = IndexedAccess(lanes, op, writes=True)
    word = f"{op.kind.data}.{KINDS[op.kind.data][element_name(element)]}"
    space = "global" if access.memory.layout is None else "shared"
    if not has(f"red.{space}.{word}", lanes.target):
        raise FragirError(
            f"{lanes.target} has no atomic {op.kind.data} of {element}",
            hint="cast the tile to f32, and let the memory hold f32",
        )
    widths = [] if op.old is not None else _widths(word, space, lanes.target)
    width = next((w for w in widths if access.width % w == 0), 1)
    if width > 1:
        word = {"f16": f"{word}x2", "bf16": f"{word}x2"}.get(
            element_name(element), word.replace(".f32", f".v{width}.f32")
        )
    ar = lanes.state.ar
    held: list[SSAValue] = []
    values = _parts(lanes, op.tile, width)
    expected = None if op.expected is None else _parts(lanes, op.expected, width)
    for number, value in enumerate(values):
        first = number * width
        condition = access.condition(first)
        pointer, offset = access.pointer(first)
        made = ptx.AtomicOp(
            word,
            value,
            pointer,
            offset,
            expected=None if expected is None else expected[number],
            predicate=ar.predicate(condition),
            old=None if op.old is None else element,
        )
        if condition is not False or made.old is not None:
            lanes.insert(made)
        if made.old is not None:
            held.append(made.old)
    if op.old is not None:
        if not access.holders.all_are:
            from fragir.passes.lowering.reduction import told_to_all  # few programs need it

            held = told_to_all(lanes, frag.tile_of(op.old), held, access.holders)
        lanes.bind(op.old, held)


def _parts(lanes: Lanes, tile: SSAValue, width: int) -> list[SSAValue]:
    return [x for part in lanes.fragments(tile) for x in split(lanes.state.ar, part, width)]


def _widths(word: str, space: str, target: str) -> list[int]:
    """How many neighbours one instruction changes, more first."""
    if word.startswith("add.noftz"):
        return [2]
    if word == "add.f32" and space == "global" and has("red.global.add.v2.f32", target):
        return [4, 2]
    return []
