"""cp.async, and the groups of bulk copies (PTX ISA 9.2, section 9.7.9.25)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator.instructions.access import get
from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.barriers import mbarriers_at
from fragir.emulator.instructions.bulk import bulk, shared_address
from fragir.emulator.instructions.bulk_tensor import tensor_copy
from fragir.emulator.machine.lanes import Mask, Row, Select, Step
from fragir.emulator.machine.memory import AccessFault, DeviceMemory
from fragir.emulator.numbers.types import Array, where
from fragir.emulator.program.entities import constant_or_none

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction, Operand


def _commit(d: Decoder, ins: Instruction) -> Step:
    engine = d.machine.engine
    return lambda sel, mask: engine.commit(sel, mask)


def _wait(d: Decoder, ins: Instruction) -> Step:
    """cp.async.wait_group, cp.async.wait_all."""
    engine = d.machine.engine
    newest = d.literal(ins, 0) if d.count(ins) else None
    if newest is None and d.count(ins):
        raise d.error(ins, "cp.async.wait_group needs a constant")
    return lambda sel, mask: engine.wait(sel, mask, newest)


def _issue(d: Decoder, ins: Instruction) -> Step:
    into = d.place(ins, 0, "shared")
    source = d.place(ins, 1, "global")
    size = d.literal(ins, 2)
    if size not in (4, 8, 16) or ("cg" in ins.opcode and size != 16):
        raise d.error(ins, f"{ins.mnemonic} cannot copy {size} bytes")
    hint = "L2::cache_hint" in ins.opcode
    given_row, ignore = None, None
    if not 3 <= d.count(ins) - hint <= 4:
        raise d.error(ins, f"{ins.mnemonic} has {d.count(ins)} operands")
    if d.count(ins) - hint > 3:
        operand = d.operand(ins, 3)
        ignore = _predicate(d, ins, operand)
        given = constant_or_none(operand)
        if given is not None and not 0 <= given <= size:
            raise d.error(ins, f"{ins.mnemonic} cannot take {given} of {size} bytes")
        if ignore is None:
            given_row = d.row(ins, operand, "u32")
    if hint:
        d.source(ins, d.count(ins) - 1, "b64")
    machine = d.machine
    memory = machine.memory

    def run(sel: Select, mask: Mask) -> None:
        to = shared_address(into.at(sel, mask))
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


def _partial(memory: DeviceMemory, address: Array, given: Array, size: int) -> Array:
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


def _predicate(d: Decoder, ins: Instruction, operand: Operand) -> Row | None:
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

    def run(sel: Select, mask: Mask) -> None:
        at = mbarriers_at(machine, place, sel, mask)
        machine.engine.arrive_later(at, sel, mask, raise_first)

    return run


# -- cp.async.bulk ---------------------------------------------------------------------------------


def _commit_bulk(d: Decoder, ins: Instruction) -> Step:
    engine = d.machine.engine
    return lambda sel, mask: engine.bulk_commit(sel, mask)


def _wait_bulk(d: Decoder, ins: Instruction) -> Step:
    engine, newest = d.machine.engine, d.literal(ins, 0)
    if newest is None:
        raise d.error(ins, "cp.async.bulk.wait_group needs a constant")
    return lambda sel, mask: engine.bulk_wait(sel, mask, newest)


STEPS: dict[str, Decode] = {
    "commit copies": _commit,
    "wait for copies": _wait,
    "copies arrive": _arrive,
    "commit bulk copies": _commit_bulk,
    "wait for bulk copies": _wait_bulk,
    "bulk copy": bulk,
    "tensor copy": tensor_copy,
    "copy": _issue,
}
