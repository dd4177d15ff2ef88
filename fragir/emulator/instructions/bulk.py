"""Bulk copies and reductions of plain memory (PTX ISA 9.2, sections 9.7.9.25.4 and 9.7.9.25.5).

cp.async.bulk and cp.reduce.async.bulk between global memory, the shared memory of the block and
that of other blocks of the cluster. Each lane starts a copy of its own, in units of 16 bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Function, nothing
from fragir.emulator.instructions.atomics import flushing, operator
from fragir.emulator.machine.lanes import Mask, Step
from fragir.emulator.machine.memory import SHARED_WINDOW, AccessFault, DeviceMemory, no_block
from fragir.emulator.machine.transfers import Region, Transfer
from fragir.emulator.numbers.types import I64, UINT, kind_of, where, width_of

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine
    from fragir.ptx.tree import Instruction

UNIT = 16
MBARRIER = "mbarrier::complete_tx::bytes"
_REDUCTIONS = {"add", "min", "max", "inc", "dec", "and", "or", "xor"}
_ALL_BYTES = 0xFFFF


def shared_address(address: Any) -> Any:
    """Generic addresses of shared memory may stand where shared ones do."""
    if address.dtype.itemsize == 8:
        return where(address >= SHARED_WINDOW, address - np.uint64(SHARED_WINDOW), address)
    return address


@dataclass(slots=True)
class BulkOperands:
    """The operands behind the addresses; None where a form has no such operand."""

    size: Any
    barrier: MemoryOperand | None = None
    blocks: Any = None  # ctaMask of a multicast
    byte_mask: Any = None
    left: Any = None  # bytes to ignore at the start and at the end
    right: Any = None


def bulk(d: Decoder, ins: Instruction) -> Step:
    """cp.async.bulk and cp.reduce.async.bulk, but for tensors and groups."""
    words = ins.opcode
    reduces = words[1] == "reduce"
    rest = words[4 if reduces else 3 :]
    if rest[0] == "prefetch":
        return _prefetch(d, ins)
    into_word, from_word = rest[0], rest[1]
    ways = {("global", "shared::cta"), ("shared::cluster", "shared::cta")}
    if not reduces:
        ways |= {("shared::cta", "global"), ("shared::cluster", "global")}
    to_global = into_word == "global"
    if (into_word, from_word) not in ways or ("bulk_group" if to_global else MBARRIER) not in words:
        raise d.error(ins, f"there is no {ins.mnemonic}")
    function, width = _reduction(d, ins) if reduces else (None, 1)
    into = d.place(ins, 0, "global" if to_global else "shared")
    source = d.place(ins, 1, "global" if from_word == "global" else "shared")
    operands = _operands(d, ins, to_global, from_word)
    machine = d.machine

    def run(sel: Any, mask: Mask) -> None:
        _run(machine, into, source, operands, function, width, sel, mask)

    return run


def _prefetch(d: Decoder, ins: Instruction) -> Step:
    hinted = "L2::cache_hint" in ins.opcode
    if d.count(ins) != 2 + hinted:
        raise d.error(ins, f"{ins.mnemonic} takes {2 + hinted} operands, not {d.count(ins)}")
    d.place(ins, 0, "global")
    d.source(ins, 1, "u32")
    return nothing


def _reduction(d: Decoder, ins: Instruction) -> tuple[Function, int]:
    """(the operation on raw bits, bytes of an element)."""
    words, kind = ins.opcode, kind_of(ins.opcode)
    word = next((w for w in words[4:] if w in _REDUCTIONS), "")
    function = operator(word, kind)
    half = kind in ("f16", "bf16")
    shared = words[4] == "shared::cluster"
    whole = kind in ("u32", "s32", "u64", "b32") if shared else width_of(kind) >= 32
    legal = (half and not shared) or whole
    if kind == "s64" and word == "add":
        legal = False
    if shared and kind == "u64" and word != "add":
        legal = False
    if function is None or not legal or (half and word == "add") != ("noftz" in words):
        raise d.error(ins, f"there is no {ins.mnemonic}")
    return flushing(function, "f32") if kind == "f32" else function, width_of(kind) // 8


def _operands(d: Decoder, ins: Instruction, to_global: bool, from_word: str) -> BulkOperands:
    words = ins.opcode
    ignores, masked = "ignore_oob" in words, "cp_mask" in words
    multicast, hinted = "multicast::cluster" in words, "L2::cache_hint" in words
    loads = from_word == "global"
    if (ignores and (not loads or words[3] != "shared::cta")) or (masked and not to_global):
        raise d.error(ins, f"there is no {ins.mnemonic}")
    if (multicast and not (loads and words[3] == "shared::cluster")) or (
        hinted and not (loads or to_global)
    ):
        raise d.error(ins, f"there is no {ins.mnemonic}")
    count = 3 + 2 * ignores + (not to_global) + multicast + hinted + masked
    if d.count(ins) != count:
        raise d.error(ins, f"{ins.mnemonic} takes {count} operands, not {d.count(ins)}")
    at = 3
    found = BulkOperands(d.source(ins, 2, "u32"))
    if ignores:
        found.left, found.right = d.source(ins, 3, "u32"), d.source(ins, 4, "u32")
        at = 5
    if not to_global:
        found.barrier = d.place(ins, at, "shared")
        at += 1
    if multicast:
        found.blocks = d.source(ins, at, "u16")
        at += 1
    if hinted:
        d.source(ins, at, "b64")
        at += 1
    if masked:
        found.byte_mask = d.source(ins, at, "u16")
    return found


def _run(
    machine: Machine,
    into: MemoryOperand,
    source: MemoryOperand,
    operands: BulkOperands,
    function: Function | None,
    width: int,
    sel: Any,
    mask: Mask,
) -> None:
    memory, engine = machine.memory, machine.engine

    def values(row: Any) -> Any:
        return None if row is None else get(row, sel, mask).ravel()

    lanes = values(machine.lane_ids)
    homes = values(memory.shared_home)
    groups = values(engine.bulk_committed)
    sizes, blocks = values(operands.size), values(operands.blocks)
    byte_masks, left, right = (
        values(operands.byte_mask),
        values(operands.left),
        values(operands.right),
    )
    to = shared_address(into.at(sel, mask)) if into.space == "shared" else into.at(sel, mask)
    out_of = source.at(sel, mask)
    if source.space == "shared":
        out_of = shared_address(out_of)
    to, out_of = to.ravel(), out_of.ravel()
    signals = None
    if operands.barrier is not None:
        signals = shared_address(operands.barrier.at(sel, mask)).ravel()
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
            runs = np.array([at + skip[0]]) if each == _ALL_BYTES else _chosen(at, size, each)
            outside = Region(runs, size - sum(skip) if each == _ALL_BYTES else 1)
        targets, shared = [(start, word)], outside
        if blocks is not None:
            targets = spread(memory, int(homes[index]), start, word, int(blocks[index]))
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
                    exact=_chosen(begin, size, each) if reads and each != _ALL_BYTES else None,
                    region=outside,
                    shares=shared,
                )
            )
            outside = None  # of a multicast the first copy stands for all
        machine.report.statistics.loaded[source.space] += size
        machine.report.statistics.stored[into.space] += size * len(targets)


def _chunks(start: int, size: int) -> I64:
    return np.arange(start, start + size, UNIT, dtype=np.int64)


def _chosen(start: int, size: int, mask: int) -> I64:
    """The bytes of a region that the mask of .cp_mask picks out of every 16."""
    at = np.arange(start, start + size, dtype=np.int64)
    return at[np.resize([bool(mask >> i & 1) for i in range(UNIT)], size)]


def _region(
    machine: Machine, space: str, address: Any, home: Any, size: int, skip: tuple[int, int]
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


def spread(
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
        chosen = _chosen(0, size, mask)
        target[chosen] = data[chosen]
    else:
        target[...] = data
