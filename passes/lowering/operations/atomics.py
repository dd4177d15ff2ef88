"""Atomics on tiles: one for each element, or for as many neighbours as PTX takes at once."""

from __future__ import annotations

from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.atomics import KINDS
from fragir.errors import FragirError
from fragir.isa.versions import has
from fragir.passes.lowering.access import split
from fragir.passes.lowering.indexed_access import IndexedAccess
from fragir.passes.lowering.lane_builder import Lanes


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
            from fragir.passes.lowering.told import told_to_all  # few programs need it

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
