"""Bulk copies and reductions of plain memory (PTX ISA 9.2, sections 9.7.9.25.4 and 9.7.9.25.5).

cp.async.bulk and cp.reduce.async.bulk between global memory, the shared memory of the block and
that of other blocks of the cluster. Each lane starts a copy of its own, in units of 16 bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Function, nothing
from fragir.emulator.instructions.atomics import flushing, operator
from fragir.emulator.machine.lanes import Mask, Row, Select, Step
from fragir.emulator.machine.memory import SHARED_WINDOW, AccessFault, DeviceMemory, no_block
from fragir.emulator.machine.transfers import Region, Transfer
from fragir.emulator.numbers.types import I64, UINT, Array, kind_of, where, width_of
from fragir.ptx.opcodes.syntax import SPACES, lines

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.ptx.tree import Instruction

UNIT = 16
REDUCTIONS = ("add", "min", "max", "inc", "dec", "and", "or", "xor")
#: The operands that are no places: sizes, the blocks and bytes chosen, the policy of a cache.
_KINDS = {"size": "u32", "left": "u32", "right": "u32", "c": "u16", "mask": "u16", "p": "b64"}
#: Which reductions there are of which types, beside what holds for all (9.7.9.25.5.2).
_LEGAL = """
    .shared::cluster.shared::cta.TX.and|or|xor.b32
    .shared::cluster.shared::cta.TX.add.u32|s32|u64
    .shared::cluster.shared::cta.TX.min|max.u32|s32
    .shared::cluster.shared::cta.TX.inc|dec.u32
    .global.shared::cta.bulk_group.and|or|xor{.HINT}.b32|b64
    .global.shared::cta.bulk_group.add{.HINT}.u32|s32|u64|f32|f64
    .global.shared::cta.bulk_group.add.noftz{.HINT}.f16|bf16
    .global.shared::cta.bulk_group.min|max{.HINT}.u32|s32|u64|s64|f16|bf16
    .global.shared::cta.bulk_group.inc|dec{.HINT}.u32
"""
_ALL_BYTES = 0xFFFF


def shared_address(address: Array) -> Array:
    """Generic addresses of shared memory may stand where shared ones do."""
    if address.dtype.itemsize == 8:
        return where(address >= SHARED_WINDOW, address - np.uint64(SHARED_WINDOW), address)
    return address


def lane_values(sel: Select, mask: Mask) -> Callable[[Row | None], Any]:
    """Reads a row's values of the lanes that take part, in one dimension; None of no row."""
    return lambda row: None if row is None else get(row, sel, mask).ravel()


def operands_by_name(d: Decoder, ins: Instruction) -> dict[str, int]:
    """Where its operands stand, by the names that its row's line has for them."""
    line, given = d.program.opcodes.find(ins.opcode, d.count(ins)).line, set(ins.opcode)
    assert line is not None
    there = (o.name for o in line.operands if not o.needs or o.needs & given)
    return {name: index for index, name in enumerate(there)}


def bulk(d: Decoder, ins: Instruction) -> Step:
    """cp.async.bulk and cp.reduce.async.bulk, but for tensors and groups."""
    function, width = _reduction(d, ins) if ins.opcode[1] == "reduce" else (None, 1)
    reduction = None if function is None else (_operation(ins), kind_of(ins.opcode))
    spaces = [word.partition("::")[0] for word in ins.opcode if word in SPACES]
    space = {**dict(zip(("[a]", "[b]"), spaces, strict=False)), "[m]": "shared"}
    operands: dict[str, Any] = {
        name: d.place(ins, at, space[name]) if name in space else d.source(ins, at, _KINDS[name])
        for name, at in operands_by_name(d, ins).items()
    }
    if "[b]" not in operands:
        return nothing  # a prefetch
    machine = d.machine

    def run(sel: Select, mask: Mask) -> None:
        _run(machine, operands, function, width, reduction, sel, mask)

    return run


def _operation(ins: Instruction) -> str:
    return next(word for word in ins.opcode if word in REDUCTIONS)


def _reduction(d: Decoder, ins: Instruction) -> tuple[Function, int]:
    """(the operation on raw bits, bytes of an element)."""
    kind = kind_of(ins.opcode)
    function = operator(_operation(ins), kind)
    if function is None or all(line.read(ins.opcode[4:]).problems for line in lines(_LEGAL)):
        raise d.error(ins, f"there is no {ins.mnemonic}")
    return flushing(function, "f32") if kind == "f32" else function, width_of(kind) // 8


def _run(
    machine: Machine,
    operands: dict[str, Any],
    function: Function | None,
    width: int,
    reduction: tuple[str, str] | None,
    sel: Select,
    mask: Mask,
) -> None:
    memory, engine = machine.memory, machine.engine

    into, source, barrier = operands["[a]"], operands["[b]"], operands.get("[m]")

    values = lane_values(sel, mask)
    lanes = values(machine.lane_ids)
    homes = values(memory.shared_home)
    groups = values(engine.bulk_committed)
    sizes, left, right, blocks, byte_masks = (
        values(operands.get(name)) for name in ("size", "left", "right", "c", "mask")
    )
    to = shared_address(into.at(sel, mask)) if into.space == "shared" else into.at(sel, mask)
    out_of = source.at(sel, mask)
    if source.space == "shared":
        out_of = shared_address(out_of)
    to, out_of = to.ravel(), out_of.ravel()
    signals = None
    if barrier is not None:
        signals = shared_address(barrier.at(sel, mask)).ravel()
    for index, lane in enumerate(lanes):
        one = slice(index, index + 1)
        size = int(sizes[index])
        try:
            if size % UNIT:
                raise AccessFault(
                    f"a bulk copy moves a multiple of {UNIT} bytes, not {size}", int(to[index]), 0
                )
            skip = (0, 0) if left is None else (int(left[index]), int(right[index]))
            begin = _region(machine, source.space, out_of[one], homes[one], size, skip)
            start = _region(machine, into.space, to[one], homes[one], size, (0, 0))
            word = -1
            if signals is not None:
                word = int(memory.locate_shared(signals[one], homes[one], 8)[0])
            if blocks is not None:
                check_mask(memory, int(blocks[index]))
        except AccessFault as fault:
            fault.index = index
            raise
        each = _ALL_BYTES if byte_masks is None else int(byte_masks[index])
        outside = None
        if "global" in (source.space, into.space):
            at = begin if source.space == "global" else start
            runs = np.array([at + skip[0]]) if each == _ALL_BYTES else _masked_bytes(at, size, each)
            outside = Region(runs, size - sum(skip) if each == _ALL_BYTES else 1)
        targets, shared = [(start, word)], outside
        if blocks is not None:
            targets = multicast_places(memory, int(homes[index]), start, word, int(blocks[index]))
        for place, signal in targets:
            act = partial(
                _move,
                machine,
                (source.space, begin),
                (into.space, place),
                size,
                each,
                function,
                width,
                skip,
            )
            writes, reads = into.space == "shared", source.space == "shared"
            engine.transfer(
                Transfer(
                    act,
                    np.array([lane]),
                    _chunks(place, size) if writes else None,
                    "cp.async.bulk",
                    group=-1 if writes else int(groups[index]),
                    reads=_chunks(begin, size) if reads else None,
                    signal=signal,
                    size=size,
                    atomic=function is not None and writes,
                    reduction=reduction,
                    exact=_masked_bytes(begin, size, each)
                    if reads and each != _ALL_BYTES
                    else None,
                    region=outside,
                    shares=shared,
                )
            )
            outside = None  # of a multicast the first copy stands for all
        machine.report.statistics.loaded[source.space] += size
        machine.report.statistics.stored[into.space] += size * len(targets)


def _chunks(start: int, size: int) -> I64:
    return np.arange(start, start + size, UNIT, dtype=np.int64)


def _masked_bytes(start: int, size: int, mask: int) -> I64:
    """The bytes of a region that the mask of .cp_mask picks out of every 16."""
    at = np.arange(start, start + size, dtype=np.int64)
    return at[np.resize([bool(mask >> i & 1) for i in range(UNIT)], size)]


def _region(
    machine: Machine, space: str, address: Array, home: Array, size: int, skip: tuple[int, int]
) -> int:
    """The byte position where a region begins; all of it must be there, but for what is skipped."""
    memory = machine.memory
    if max(skip) >= UNIT or sum(skip) > size:
        raise AccessFault(f"0 to {UNIT - 1} bytes can be ignored at an end", int(address[0]), 0)
    if size > 1 << 20:  # nonsense, most likely: its end alone tells, without an array of it all
        _region(machine, space, address + address.dtype.type(size - UNIT), home, UNIT, (0, 0))
    offsets = np.arange(0, max(size, UNIT), UNIT).astype(address.dtype)
    every = address + offsets
    if space == "shared":
        return int(memory.locate_shared(every, np.repeat(home, len(every)), UNIT)[0])
    if not any(skip):
        return int(memory.locate_global(every, UNIT)[0])
    ends = address + np.array([skip[0], size - skip[1] - 1]).astype(address.dtype)
    memory.locate_global(ends[:1] if sum(skip) == size else ends, 1)
    if int(address[0]) % UNIT:
        raise AccessFault(f"this must be a multiple of {UNIT}", int(address[0]), 0, "misaligned")
    return int(memory.locate_global(ends[:1], 1)[0]) - skip[0]


def check_mask(memory: DeviceMemory, chosen: int) -> None:
    """AccessFault for a multicast's mask that names a block which the cluster does not have."""
    if chosen >> memory.cluster:
        block = chosen.bit_length() - 1
        reason = f"the mask {chosen:#x} names {no_block(block, memory.cluster)}"
        raise AccessFault(reason, chosen, 0, "out-of-bounds")


def multicast_places(
    memory: DeviceMemory, home: int, start: int, word: int, chosen: int, pair: bool = False
) -> list[tuple[int, int]]:
    """(destination, mbarrier) in every block of the cluster that a multicast's mask names.

    `pair`: of each pair of blocks, the mbarrier of the one whose parity is that of `word`.
    """
    stride = memory.shared_stride
    parity = (word - home) // stride & 1
    result: list[tuple[int, int]] = []
    for rank in range(memory.cluster):
        if chosen >> rank & 1:
            owner = (rank & ~1 | parity) if pair else rank
            place = home + rank * stride + (start - home) % stride
            result.append((place, home + owner * stride + (word - home) % stride))
    return result


def _move(
    machine: Machine,
    source: tuple[str, int],
    into: tuple[str, int],
    size: int,
    mask: int,
    function: Function | None,
    width: int,
    skip: tuple[int, int],
    memory: DeviceMemory,
) -> None:
    """Move the bytes within a memory. Of a reduction nothing is known but on the machine's own."""
    arenas = {"shared": memory.shared, "global": memory.globals}
    first, last = skip[0], size - skip[1]
    data = arenas[source[0]].bytes[source[1] + first : source[1] + last]
    target = arenas[into[0]].bytes[into[1] + first : into[1] + last]
    if function is not None:
        if memory is machine.memory:
            cells = target.view(UINT[width])
            cells[...] = function(cells.copy(), data.view(UINT[width]).copy())
        elif into[0] == "shared":
            target[...] = 0
    elif mask != _ALL_BYTES:
        chosen = _masked_bytes(0, size, mask)
        target[chosen] = data[chosen]
    else:
        target[...] = data
