"""cp.async and cp.async.bulk (PTX ISA 9.2, section 9.7.9.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.access import get
from fragir.emulator.alu import Decode, nothing
from fragir.emulator.asynchronous import Transfer
from fragir.emulator.bulk_tensor import tensor_copy
from fragir.emulator.common import Mask, Step, where
from fragir.emulator.memory import SHARED_WINDOW, AccessFault, Memory

if TYPE_CHECKING:
    from fragir.emulator.decode import Decoder
    from fragir.ptx.tree import Instruction


def _shared_address(address: Any) -> Any:
    """Generic addresses of shared memory may stand where shared ones do."""
    if address.dtype.itemsize == 8:
        return where(address >= SHARED_WINDOW, address - np.uint64(SHARED_WINDOW), address)
    return address


def copy(d: Decoder, ins: Instruction) -> Step:
    words = ins.opcode
    if words[1:5] == ("reduce", "async", "bulk", "tensor"):
        return tensor_copy(d, ins)
    if words[1] != "async":
        raise d.error(ins, f"the instruction {ins.mnemonic} is not known")
    if words[2] == "bulk":
        return _bulk(d, ins)
    if words[2] == "commit_group":
        engine = d.machine.engine
        return lambda sel, mask: engine.commit(sel, mask)
    if words[2] in ("wait_group", "wait_all"):
        engine = d.machine.engine
        newest = None if words[2] == "wait_all" else d.literal(ins, 0)
        if words[2] == "wait_group" and newest is None:
            raise d.error(ins, "cp.async.wait_group needs a constant")
        return lambda sel, mask: engine.wait(sel, mask, newest)
    if words[2] == "mbarrier":
        return _arrive(d, ins)
    if words[2] in ("ca", "cg"):
        return _issue(d, ins)
    raise d.error(ins, f"the instruction {ins.mnemonic} is not known")


def _issue(d: Decoder, ins: Instruction) -> Step:
    into = d.place(ins, 0, "shared")
    source = d.place(ins, 1, "global")
    size = d.literal(ins, 2)
    if size not in (4, 8, 16) or ("cg" in ins.opcode and size != 16):
        raise d.error(ins, f"{ins.mnemonic} cannot copy {size} bytes")
    hint = any(w == "L2::cache_hint" for w in ins.opcode)
    given_row, ignore = None, None
    if d.count(ins) - (1 if hint else 0) > 3:
        operand = d.operand(ins, 3)
        ignore = _predicate(d, ins, operand)
        if ignore is None:
            given_row = d.row(ins, operand, "u32")
    machine = d.machine
    memory = machine.memory

    def run(sel: Any, mask: Mask) -> None:
        to = _shared_address(into.at(sel, mask))
        home = memory.shared_home[sel] if mask is None else memory.shared_home[sel][mask]
        to = memory.locate_shared(to, home, size)
        given = None
        if ignore is not None:
            given = where(get(ignore, sel, mask), 0, size)
        elif given_row is not None:
            given = np.minimum(get(given_row, sel, mask).astype(np.int64), size)
        address = source.at(sel, mask)
        if given is None or (given == size).all():
            machine.engine.issue(memory.locate_global(address, size), to, size, None, sel, mask)
        else:
            reads = given > 0
            start = np.zeros(address.shape, np.int64)
            if reads.any():
                try:
                    start[reads] = _partial(memory, address[reads], given[reads], size)
                except AccessFault as fault:
                    fault.index = int(np.flatnonzero(reads)[fault.index])
                    raise
            machine.engine.issue(start, to, size, given, sel, mask)
        machine.report.statistics.loaded["global"] += size * to.size

    return run


def _partial(memory: Any, address: Any, given: Any, size: int) -> Any:
    """Positions of reads of `given` bytes each: only those bytes must exist."""
    whole = given == size
    at = np.zeros(address.shape, np.int64)
    if whole.any():
        at[whole] = memory.locate_global(address[whole], size)
    for index in np.flatnonzero(~whole):
        one = address[index : index + 1]
        first = memory.locate_global(one, 1)
        memory.locate_global(one + one.dtype.type(int(given[index]) - 1), 1)
        at[index] = first[0]
    return at


def _predicate(d: Decoder, ins: Instruction, operand: Any) -> Any:
    """The row of ignore-src if the operand is a predicate, else None."""
    inner = getattr(operand, "operand", operand)
    text = getattr(inner, "text", None)
    found = None if text is None else d.program.find(d.scope, text)
    if getattr(found, "width", 0) == 1:
        return d.row(ins, operand, "pred")
    return None


def _arrive(d: Decoder, ins: Instruction) -> Step:
    place = d.place(ins, 0, d.space(ins))
    machine = d.machine
    raise_first = "noinc" not in ins.opcode

    def run(sel: Any, mask: Mask) -> None:
        parts = machine.memory.spaces(place.space, place.at(sel, mask), sel, mask, 8)
        machine.engine.arrive_later(parts[0][1], sel, mask, raise_first)

    return run


# -- cp.async.bulk ---------------------------------------------------------------------------------


def _bulk(d: Decoder, ins: Instruction) -> Step:
    words = ins.opcode
    machine = d.machine
    engine = machine.engine
    if words[3] == "commit_group":
        return lambda sel, mask: engine.bulk_commit(sel, mask)
    if words[3] == "wait_group":
        newest = d.literal(ins, 0)
        if newest is None:
            raise d.error(ins, "cp.async.bulk.wait_group needs a constant")
        return lambda sel, mask: engine.bulk_wait(sel, mask, newest)
    if words[3] == "prefetch":
        return nothing
    if words[3] == "tensor":
        return tensor_copy(d, ins)
    if words[3] == "global":
        return _bulk_store(d, ins)
    if words[3] in ("shared::cluster", "shared::cta") and words[4] == "global":
        return _bulk_load(d, ins)
    raise d.error(ins, f"the form {ins.mnemonic} is not supported")


def _bulk_load(d: Decoder, ins: Instruction) -> Step:
    """Global to shared, completing on an mbarrier; with a multicast mask to several blocks."""
    if "ignore_oob" in ins.opcode:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    into, source = d.place(ins, 0, "shared"), d.place(ins, 1, "global")
    size_row, barrier = d.source(ins, 2, "u32"), d.place(ins, 3, "shared")
    multicast = "multicast::cluster" in ins.opcode
    mask_row = d.source(ins, 4, "u16") if multicast else None
    machine = d.machine
    memory = machine.memory

    def run(sel: Any, mask: Mask) -> None:
        lanes = get(machine.engine.lane_ids, sel, mask).ravel()
        to, at = into.at(sel, mask), barrier.at(sel, mask)
        sizes = get(size_row, sel, mask).ravel()
        for index, lane in enumerate(lanes):
            size = int(sizes[index])
            if size % 16:
                raise AccessFault(f"a bulk copy of {size} bytes", int(to.flat[index]), index)
            one = [lane // 32], lane % 32
            home = memory.shared_home[one]
            address = source.at(slice(None), None)[lane // 32, lane % 32 : lane % 32 + 1]
            try:
                memory.locate_global(address, 16)
                begin = int(memory.locate_global(address, 1)[0])
                memory.locate_global(address + address.dtype.type(max(size - 16, 0)), 16)
                start = int(
                    memory.locate_shared(_shared_address(to.flat[index : index + 1]), home, 16)[0]
                )
                last = to.flat[index : index + 1] + to.dtype.type(max(size - 16, 0))
                memory.locate_shared(_shared_address(last), home, 16)
                word = int(
                    memory.locate_shared(_shared_address(at.flat[index : index + 1]), home, 8)[0]
                )
            except AccessFault as fault:
                fault.index = index
                raise
            places = [(start, word)]
            if mask_row is not None:
                chosen = int(get(mask_row, sel, mask).ravel()[index])
                places = _multicast(memory, int(home[0]), start, word, chosen)
            for start, signal in places:
                _start_load(machine, begin, start, size, signal, int(lane))
            machine.report.statistics.loaded["global"] += size

    return run


def _multicast(memory: Any, home: int, start: int, word: int, chosen: int) -> list[tuple[int, int]]:
    """The same offsets in every block of the cluster that the mask names."""
    stride = memory.shared_stride
    return [
        (
            home + rank * stride + (start - home) % stride,
            home + rank * stride + (word - home) % stride,
        )
        for rank in range(memory.cluster)
        if chosen >> rank & 1
    ]


def _start_load(machine: Any, begin: int, start: int, size: int, word: int, lane: int) -> None:
    def move(memory: Memory) -> None:
        memory.shared.bytes[start : start + size] = memory.globals.bytes[begin : begin + size]

    chunks = np.arange(start, start + size, 16, dtype=np.int64)
    machine.engine.transfer(
        Transfer(move, np.array([lane]), chunks, "cp.async.bulk", signal=word, size=size)
    )


def _bulk_store(d: Decoder, ins: Instruction) -> Step:
    """Shared to global, in bulk groups."""
    if "cp_mask" in ins.opcode:
        raise d.error(ins, f"the form {ins.mnemonic} is not supported")
    into, source = d.place(ins, 0, "global"), d.place(ins, 1, "shared")
    size_row = d.source(ins, 2, "u32")
    machine = d.machine
    memory = machine.memory

    def run(sel: Any, mask: Mask) -> None:
        lanes = get(machine.engine.lane_ids, sel, mask).ravel()
        to, out_of = into.at(sel, mask).ravel(), _shared_address(source.at(sel, mask)).ravel()
        sizes = get(size_row, sel, mask).ravel()
        homes = get(memory.shared_home, sel, mask).ravel()
        groups = get(machine.engine.bulk_committed, sel, mask).ravel()
        for index, lane in enumerate(lanes):
            size = int(sizes[index])
            one = slice(index, index + 1)
            try:
                begin = int(memory.locate_shared(out_of[one], homes[one], 16)[0])
                start = int(memory.locate_global(to[one], 16)[0])
                memory.locate_global(to[one] + np.uint64(max(size - 16, 0)), 16)
            except AccessFault as fault:
                fault.index = index
                raise

            def move(
                memory: Memory, begin: int = begin, start: int = start, size: int = size
            ) -> None:
                memory.globals.bytes[start : start + size] = memory.shared.bytes[
                    begin : begin + size
                ]

            machine.engine.transfer(
                Transfer(
                    move,
                    np.array([lane]),
                    None,
                    "cp.async.bulk",
                    int(groups[index]),
                    np.arange(begin, begin + size, 16, dtype=np.int64),
                    size=size,
                )
            )
            machine.report.statistics.stored["global"] += size

    return run


TABLE: dict[str, Decode] = {"cp": copy}
