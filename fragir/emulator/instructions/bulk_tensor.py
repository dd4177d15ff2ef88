"""cp.async.bulk.tensor, cp.reduce.async.bulk.tensor (PTX ISA 9.2, sections 5.5 and 9.7.9.27).

Tiles, rows (gather4, scatter4) and columns (im2col), with all that a tensor map says
(`tensor_map.py`). im2col::w is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.instructions.alu import Function, nothing
from fragir.emulator.instructions.atomics import flushing, operator
from fragir.emulator.instructions.bulk import (
    REDUCTIONS,
    check_mask,
    lane_values,
    multicast_places,
    operands_by_name,
    shared_address,
)
from fragir.emulator.machine.lanes import Mask, Select, Step
from fragir.emulator.machine.memory import GLOBAL_BASE, AccessFault, DeviceMemory
from fragir.emulator.machine.tensor_map import CHUNK, MapFields, read
from fragir.emulator.machine.transfers import Region, RowOverrun, Transfer
from fragir.emulator.numbers.types import I64, UINT, distinct
from fragir.emulator.report import EmulationError
from fragir.emulator.tensor_cores.arithmetic import abilities
from fragir.emulator.tensor_cores.arithmetic import target as target_of
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine

_RANKS = ("1d", "2d", "3d", "4d", "5d")
_MODES = {
    **dict.fromkeys(("tile::gather4", "tile::scatter4"), "rows"),
    **dict.fromkeys(("im2col", "im2col_no_offs"), "im2col"),
}
#: What not every target with TMA has.
_SOME = frozenset(("tile::gather4", "tile::scatter4", "cta_group::1", "cta_group::2"))
_ROWS = 4  # of tile::gather4 and tile::scatter4
_ALIGNMENT = 128  # of a tile in shared memory


Inside: TypeAlias = "npt.NDArray[np.bool_] | None"
"""Which units of a tile are inside the array; None: all, and what is told of are chunks. Most tiles
are so, and are copied with much less work."""


@dataclass(slots=True)
class TensorCopy:
    """One decoded instruction: operands as rows, None where it has none."""

    mode: str  # tile, rows, im2col
    rank: int
    coordinates: list[Any]
    the_map: MemoryOperand
    shared: MemoryOperand | None
    pair: bool  # whether it may signal the other block of a pair
    barrier: MemoryOperand | None  # of a load
    offsets: list[Any] | None
    blocks: Any
    reduction: str | None


def tensor_copy(d: Decoder, ins: tree.Instruction) -> Step:
    form = _form(d, ins)
    if form.shared is None:
        return nothing
    machine = d.machine

    def run(sel: Select, mask: Mask) -> None:
        _run(machine, form, sel, mask)

    return run


def _form(d: Decoder, ins: tree.Instruction) -> TensorCopy:
    words, at = ins.opcode, operands_by_name(d, ins)
    needed, said = _needed(words)
    if needed and needed not in abilities(target_of(d.target_name)):
        hint = f"it needs {said}"
        raise d.error(ins, f"{ins.mnemonic}: target {d.target_name} does not have it", hint)
    rank = next(int(word[0]) for word in words if word in _RANKS)
    mode = next((_MODES[word] for word in words if word in _MODES), "tile")
    operand = d.operand(ins, at["[t]"])
    if not isinstance(operand, tree.Address) or len(operand.rest) != 1:
        raise d.error(ins, f"{ins.mnemonic} needs [map, {{coordinates}}]")
    coordinates = [d.row(ins, c, "s32") for c in d.vector(operand.rest[0])]
    wanted = 1 + _ROWS if mode == "rows" else rank
    if len(coordinates) != wanted or (mode == "rows" and rank != 2):
        raise d.error(ins, f"{ins.mnemonic} needs {wanted} coordinates, not {len(coordinates)}")
    if mode == "im2col" and rank < 3:
        raise d.error(ins, "im2col needs 3 to 5 dimensions")
    the_map = d.place_of(ins, operand, "generic")
    shared, barrier = (
        d.place(ins, at[name], "shared") if name in at else None for name in ("[a]", "[m]")
    )
    offsets = None
    if "offsets" in at:
        offsets = [d.row(ins, o, "u16") for o in d.vector(d.operand(ins, at["offsets"]))]
        if len(offsets) != rank - 2:
            raise d.error(ins, f"{ins.mnemonic} needs {rank - 2} offsets")
    blocks = d.source(ins, at["blocks"], "u16") if "blocks" in at else None
    if "p" in at:
        d.source(ins, at["p"], "b64")
    pair = "cta_group::2" in words
    reduction = next((w for w in words if w in REDUCTIONS), None)
    return TensorCopy(
        mode, rank, coordinates, the_map, shared, pair, barrier, offsets, blocks, reduction
    )


def _needed(words: tuple[str, ...]) -> tuple[str, str]:
    """What a target needs for rows and pairs, and how it is said (PTX ISA 9.2, 9.7.9.27.1.2)."""
    some = _SOME.intersection(words)
    if len(some) == 1 and {"tile::gather4", "shared::cta"}.issubset(words):
        return "sm_100", "sm_100"
    return ("sm_100f", "sm_100a, or another of its family") if some else ("", "")


def find_map(memory: DeviceMemory, address: int, form: TensorCopy) -> MapFields:
    """The tensor map at a generic address, fit for an instruction."""
    fields = read(memory, address)
    if fields is None:
        reason = f"there is no tensor map at this address{memory.astray(address)}"
        raise AccessFault(reason, address, 0)
    if address % 64:
        raise AccessFault("a tensor map must be 64-byte aligned", address, 0)
    if fields.rank != form.rank:
        raise AccessFault(f"the tensor map has {fields.rank} dimensions", address, 0)
    if (fields.im2col is not None) != (form.mode == "im2col"):
        raise AccessFault("the tensor map is of another mode than the instruction", address, 0)
    reason = fields.why_not()
    if form.mode == "rows" and fields.box[1] != 1:
        reason = "a tensor map whose rows are gathered has a box of one row"
    if reason is not None:
        raise AccessFault(reason, address, 0)
    return fields


#: By `.cta_group::2`: what is said of an mbarrier that a copy may not signal.
_ELSEWHERE = (
    "the mbarrier is another block's than the tile's, which takes .cta_group::2",
    "the mbarrier is neither of the tile's block nor of the other one of its pair",
)


def _may_signal(memory: DeviceMemory, start: int, word: int, pair: bool) -> bool:
    """Whether a copy to one place may signal an mbarrier at another (section 9.7.9.27.1.2)."""
    stride = max(memory.shared_stride, 1)
    here, there = start // stride, word // stride
    first = here - here % memory.cluster
    if not pair:
        return here == there
    return first <= there < first + memory.cluster and (here - first) ^ (there - first) < 2


def _run(machine: Machine, form: TensorCopy, sel: Select, mask: Mask) -> None:
    memory = machine.memory

    assert form.shared is not None
    values = lane_values(sel, mask)
    lanes, homes = values(machine.lane_ids), values(memory.shared_home)
    groups = values(machine.engine.bulk_committed).tolist()
    maps = form.the_map.at(sel, mask).ravel().tolist()
    places = shared_address(form.shared.at(sel, mask)).ravel()
    corners = list(zip(*(values(c).tolist() for c in form.coordinates), strict=True))
    offsets = [values(o).tolist() for o in form.offsets or ()]
    blocks, signals = values(form.blocks), None
    if form.barrier is not None:
        signals = shared_address(form.barrier.at(sel, mask)).ravel()
    rows = _ROWS if form.mode == "rows" else None
    found: dict[int, MapFields] = {}
    for index, (lane, place) in enumerate(zip(lanes.tolist(), places.tolist(), strict=True)):
        one = slice(index, index + 1)
        try:
            fields = found.get(maps[index])
            if fields is None:
                fields = found[maps[index]] = find_map(memory, maps[index], form)
            if place % _ALIGNMENT:
                raise AccessFault("a tile must be 128-byte aligned", place, 0)
            room = max(fields.room(rows), 16)
            start = memory.shared_position(places[one], homes[one], 16, room)
            word = -1
            if signals is not None:
                word = memory.shared_position(signals[one], homes[one], 8)
                if blocks is None and not _may_signal(memory, start, word, form.pair):
                    raise AccessFault(_ELSEWHERE[form.pair], int(signals[index]), 0, "mbarrier")
            if blocks is not None:
                check_mask(memory, int(blocks[index]))
            corner, offset = corners[index], [row[index] for row in offsets]
            reason = fields.why_not_at(corner[0])
            if reason is not None:
                raise AccessFault(reason, maps[index], 0, "misaligned")
            cells, inside = _cells(memory, fields, form, corner, offset)
        except AccessFault as fault:
            fault.index = index
            raise
        size = fields.bytes(rows)
        function = _reduction(fields, form.reduction)
        if form.barrier is not None:
            targets = [(start, word)]
            if blocks is not None:
                chosen = int(blocks[index])
                targets = multicast_places(
                    memory, int(homes[index]), start, word, chosen, form.pair
                )
            shares = _region(fields, cells, inside)
            region: Region | None = shares
            for to, signal in targets:
                act = partial(_fetch, machine, fields, cells, inside, to)
                _load(machine, act, room, to, signal, lane, size, region, shares)
                region = None  # of a multicast the first copy stands for all
            continue
        chunks, exact = _read(fields, inside, start, room)
        overrun, wide = None, fields.in_chunks()
        if inside is not None and wide is not None and inside.any():
            cells, inside, overrun = _to_chunks(memory, wide, form, corner, offset, inside)
        act = partial(_store, machine, fields, cells, inside, start, function)
        machine.report.statistics.stored["global"] += size
        machine.engine.transfer(
            Transfer(
                act,
                np.array([lane]),
                None,
                "cp.async.bulk.tensor",
                groups[index],
                chunks,
                size=size,
                reduction=None
                if form.reduction is None
                else (form.reduction, fields.unit.kind or ""),
                exact=exact,
                region=_region(fields, cells, inside),
                overrun=overrun,
            )
        )


def _region(fields: MapFields, cells: I64, inside: Inside) -> Region:
    """What a copy accesses of global memory."""
    return Region(cells, CHUNK) if inside is None else Region(cells[inside], fields.unit.bytes)


def _read(fields: MapFields, inside: Inside, start: int, room: int) -> tuple[I64, I64 | None]:
    """The chunks and bytes of shared memory that a store reads: those inside the array."""
    if inside is None or (inside.all() and fields.unit.room == fields.unit.bytes):
        return np.arange(start, start + room, 16, dtype=np.int64), None
    at = fields.swizzled(start, len(inside))[inside]
    exact = (at[:, None] + np.arange(fields.unit.bytes)).ravel()
    return distinct(exact >> 4) << 4, exact


def _cells(
    memory: DeviceMemory,
    fields: MapFields,
    form: TensorCopy,
    corner: Sequence[int],
    offsets: list[int],
) -> tuple[I64, Inside]:
    """(byte positions in global memory, which are inside the array) of a tile's units, flat."""
    if form.mode == "tile" and form.reduction is None:
        whole = fields.whole_tile(corner)
        if whole is not None:
            first, end = whole[0] - GLOBAL_BASE, whole[0] - GLOBAL_BASE + whole[2]
            place = memory.place_at(first)
            if place[0] <= first and end <= place[1]:
                return first + whole[1], None
    address, inside = _units(fields, form, corner, offsets)
    unit = fields.unit.bytes
    size = unit if unit in UINT else 4
    if inside.any():
        some = address[inside].astype(np.uint64)
        memory.locate_global(some, size)
        memory.locate_global(some + np.uint64(unit - size), size)
    return np.where(inside, address - GLOBAL_BASE, 0), inside


def _units(
    fields: MapFields, form: TensorCopy, corner: Sequence[int], offsets: list[int]
) -> tuple[I64, npt.NDArray[np.bool_]]:
    """(generic addresses, which are inside the array) of a tile's units, flat."""
    if form.mode == "rows":
        address, inside = fields.rows(corner)
    elif form.mode == "im2col":
        address, inside = fields.pixels(corner, offsets or [0] * (form.rank - 2))
    else:
        address, inside = fields.tile(corner)
    return address.ravel(), inside.ravel()


def _to_chunks(
    memory: DeviceMemory,
    wide: MapFields,
    form: TensorCopy,
    corner: Sequence[int],
    offsets: list[int],
    inside: npt.NDArray[np.bool_],
) -> tuple[I64, npt.NDArray[np.bool_], RowOverrun | None]:
    """What a store writes where rows end within a chunk: positions, which units, what is not the
    array's. Of what lies behind the buffer nothing is written here."""
    address, written = _units(wide, form, corner, offsets)
    cells = np.where(written, address - GLOBAL_BASE, 0)
    behind = written & ~inside
    if not behind.any():
        return cells, inside, None
    begin, end = memory.place_at(int(cells[inside][0]))
    lost = behind & ((cells < begin) | (cells + wide.unit.bytes > end))
    owned = behind & ~lost
    first = int(cells[owned if owned.any() else behind].min())
    size = int(-first % CHUNK)
    return cells, written & ~lost, RowOverrun(first, size, bool(owned.any()))


def _reduction(fields: MapFields, word: str | None) -> Function | None:
    if word is None:
        return None
    kind = fields.unit.kind or ""
    if word in ("and", "or", "xor") and kind[:1] in ("u", "s"):
        kind = f"b{kind[1:]}"
    function = operator(word, kind)
    if function is None:
        raise EmulationError(f"there is no .{word} of .{fields.unit.name} elements")
    return flushing(function, "f32") if fields.unit.ftz else function


def _load(
    machine: Machine,
    act: Callable[[DeviceMemory], None],
    room: int,
    start: int,
    word: int,
    lane: int,
    size: int,
    region: Region | None,
    shares: Region,
) -> None:
    machine.report.statistics.loaded["global"] += size
    machine.engine.transfer(
        Transfer(
            act,
            np.array([lane]),
            np.arange(start, start + room, 16, dtype=np.int64),
            "cp.async.bulk.tensor",
            signal=word,
            size=size,
            region=region,
            shares=shares,
        )
    )


def _fetch(
    machine: Machine,
    fields: MapFields,
    cells: I64,
    inside: Inside,
    start: int,
    memory: DeviceMemory,
) -> None:
    unit = fields.unit
    if inside is None:
        at = fields.chunk_places(start, len(cells)) >> 4
        memory.shared.wholes(CHUNK)[at] = memory.globals.wholes(CHUNK).take(cells >> 4)
        return
    to = fields.swizzled(start, len(cells))
    if unit.bytes != unit.room:  # with padding, which is written as zeros
        data = np.zeros((len(cells), unit.room), np.uint8)
        found = memory.globals.bytes[cells[:, None] + np.arange(unit.bytes)]
        data[:, : unit.bytes] = np.where(inside[:, None], found, 0)
        memory.shared.bytes[to[:, None] + np.arange(unit.room)] = data
        return
    shift = unit.bytes.bit_length() - 1
    view = UINT[unit.bytes].type
    filler = fields.filler() if memory is machine.memory else 0
    values = np.where(inside, memory.globals.view(unit.bytes)[cells >> shift], view(filler))
    memory.shared.view(unit.bytes)[to >> shift] = values


def _store(
    machine: Machine,
    fields: MapFields,
    cells: I64,
    inside: Inside,
    start: int,
    function: Function | None,
    memory: DeviceMemory,
) -> None:
    unit = fields.unit
    if inside is None:
        at = fields.chunk_places(start, len(cells)) >> 4
        memory.globals.wholes(CHUNK)[cells >> 4] = memory.shared.wholes(CHUNK).take(at)
        return
    out_of, cells = fields.swizzled(start, len(cells))[inside], cells[inside]
    if unit.bytes != unit.room:
        within = np.arange(unit.bytes)
        data = memory.shared.bytes[out_of[:, None] + within]
        memory.globals.bytes[cells[:, None] + within] = data
        return
    shift = unit.bytes.bit_length() - 1
    values = memory.shared.view(unit.bytes)[out_of >> shift]
    target, cells = memory.globals.view(unit.bytes), cells >> shift
    if function is not None and memory is machine.memory:
        values = function(target[cells], values)
    target[cells] = values
