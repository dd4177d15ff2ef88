"""mma, ldmatrix, stmatrix, movmatrix: registers and addresses for the tensor-core operations.

A run of neighbouring mma of one opcode in which none reads what an earlier one writes becomes one
call: their instances lie one after the other along the warp axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.instructions.register_rows import RegisterRows, operation, whole_warps
from fragir.emulator.instructions.rules import apart, needs
from fragir.emulator.machine.lanes import Mask, Step
from fragir.emulator.machine.memory import SHARED_WINDOW, AccessFault
from fragir.emulator.numbers.types import where
from fragir.emulator.program.expressions import constant_or_none
from fragir.emulator.program.opcode import Moves, Opcode, always
from fragir.emulator.tensor_cores import (
    Ldmatrix,
    Mma,
    Movmatrix,
    Stmatrix,
    WmmaAccess,
)
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand

#: At most this many instances (instructions times warps) in one call.
FUSED = 4096


def names(operand: tree.Operand) -> set[str]:
    """The register names of a vector operand."""
    elements = operand.elements if isinstance(operand, tree.Vector) else (operand,)
    return {e.text for e in elements if isinstance(e, tree.Name)}


def fusible(d: Decoder, group: list[tree.Instruction], nxt: tree.Instruction) -> bool:
    """Whether `nxt` can join the mma of `group` (dense, one opcode, independent)."""
    first = group[0]
    if nxt.opcode != first.opcode or nxt.guard is not None or len(nxt.operands) != 4:
        return False
    if (len(group) + 1) * d.machine.warps > FUSED:
        return False
    written: set[str] = set[str]().union(*(names(i.operands[0]) for i in group))
    reads = set[str]().union(*(names(o) for o in nxt.operands))
    return not written & reads


def mma_group(d: Decoder, group: list[tree.Instruction]) -> Step:
    """One step for a run of independent mma."""
    ins = group[0]
    op = operation(d, ins)
    if not isinstance(op, Mma):
        raise d.error(ins, f"{ins.mnemonic} is not supported")
    for one in group:
        if d.count(one) < 4:
            raise d.error(one, f"{one.mnemonic} takes 4 operands or more, not {d.count(one)}")
    vectors = [[d.vector(i.operands[k]) for i in group] for k in range(4)]
    for vector, wanted, name in zip(vectors, (op.d, op.a, op.b, op.c), "dabc", strict=True):
        for one, elements in zip(group, vector, strict=True):
            if len(elements) != wanted.count:
                raise d.error(
                    one,
                    f"operand {name} of {ins.mnemonic} has {wanted.count} registers, "
                    f"not {len(elements)}",
                )
    out = _outputs(d, group, vectors[0], op.d.width)
    a, b, c = (
        RegisterRows(d, group, vectors[k], r.width) for k, r in ((1, op.a), (2, op.b), (3, op.c))
    )
    extra = _extra(d, ins, op)
    machine, statistics = d.machine, d.machine.report.statistics
    count = len(group)

    def run(sel: Any, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        left = a.read(sel)
        statistics.mma += left.shape[1]
        out(sel, op.execute(left, b.read(sel), c.read(sel), jobs=machine.jobs, **extra(sel)))

    assert count == len(group)
    return run


def _outputs(d: Decoder, group: Any, vectors: Any, width: int) -> Any:
    """A writer of results; `_` elements are left out."""
    if not any(isinstance(e, tree.Sink) for v in vectors for e in v):
        for one, vector in zip(group, vectors, strict=True):
            for element in vector:
                if d.register(one, element).width != width:
                    raise d.error(one, f"{one.mnemonic} needs {width}-bit registers here")
        return RegisterRows(d, group, vectors, width).write
    rows = [
        [d.target_of(i, e, f"u{width}") for e in v] for i, v in zip(group, vectors, strict=True)
    ]

    def write(sel: Any, value: Any) -> None:
        parts = value.reshape(value.shape[0], len(rows), -1, 32)
        for n, vector in enumerate(rows):
            for i, row in enumerate(vector):
                if row is not None:
                    row[sel] = parts[i, n]

    return write


def no_options(sel: Any) -> dict[str, Any]:
    """The dense forms have nothing besides a, b and c."""
    return {}


def _extra(d: Decoder, ins: tree.Instruction, op: Mma) -> Any:
    """Metadata and scales of the forms that have them."""
    rest = list(range(4, d.count(ins)))
    wanted = (2 if op.e is not None else 0) + (4 if op.scales else 0)
    if len(rest) != wanted:
        raise d.error(ins, f"{ins.mnemonic} takes {4 + wanted} operands, not {d.count(ins)}")
    if not rest:
        return no_options
    fixed: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    if op.e is not None:
        rows["e"] = d.source(ins, rest.pop(0), "u32")
        selector = d.literal(ins, rest.pop(0))
        if selector not in op.selectors:
            raise d.error(ins, f"the sparsity selector must be one of {list(op.selectors)}")
        fixed["selector"] = selector
    if op.scales:
        for side in "ab":
            rows[f"sf{side}"] = d.source(ins, rest.pop(0), "u32")
            chosen = d.vector(d.operand(ins, rest.pop(0)))
            values = [constant_or_none(e) for e in chosen]
            if len(values) != 2 or None in values:
                raise d.error(ins, "scale selectors must be two constants")
            fixed[f"select_{side}"] = tuple(values)

    def options(sel: Any) -> dict[str, Any]:
        return {**fixed, **{k: row[sel][None] for k, row in rows.items()}}

    return options


def _mma(d: Decoder, ins: tree.Instruction) -> Step:
    return mma_group(d, [ins])


# -- matrices in shared memory ---------------------------------------------------------------------


def row_positions(d: Decoder, place: MemoryOperand, sel: Any, rows: int) -> Any:
    """Byte positions in the shared arena of the addresses of lanes 0..rows-1: [warps, rows]."""
    memory = d.machine.memory
    address = place.at(sel, None)[:, :rows]
    if address.dtype.itemsize == 8:
        address = where(address >= SHARED_WINDOW, address - np.uint64(SHARED_WINDOW), address)
    home = memory.shared_home[sel][:, :rows]
    try:
        at = memory.locate_shared(address, home, 16)
        if memory.poisoned:
            memory.check_poison(memory.shared, at, 16)
    except AccessFault as fault:
        warp, lane = divmod(fault.index, rows)
        fault.index = warp * 32 + lane
        fault.mask = None  # pyright: ignore[reportAttributeAccessIssue]
        fault.sel = sel  # pyright: ignore[reportAttributeAccessIssue]
        raise
    return at


def _registers(
    d: Decoder, ins: tree.Instruction, index: int, count: int
) -> tuple[tree.Operand, ...]:
    vector = d.vector(d.operand(ins, index))
    if len(vector) != count:
        raise d.error(ins, f"{ins.mnemonic} has {count} registers, not {len(vector)}")
    return vector


def _load_matrix(d: Decoder, ins: tree.Instruction) -> Step:
    op = operation(d, ins)
    assert isinstance(op, Ldmatrix)
    place = d.place(ins, 1, d.space(ins))
    vector = _registers(d, ins, 0, op.r.count)
    write = _outputs(d, [ins], [vector], 32)
    memory, counted = d.machine.memory, d.machine.report.statistics.loaded

    def run(sel: Any, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        at = row_positions(d, place, sel, op.rows)
        data = memory.shared.bytes.reshape(-1, 16)[at >> 4]
        counted["shared"] += 16 * at.size
        write(sel, op.execute(data))

    return run


def _store_matrix(d: Decoder, ins: tree.Instruction) -> Step:
    op = operation(d, ins)
    assert isinstance(op, Stmatrix)
    place = d.place(ins, 0, d.space(ins))
    registers = RegisterRows(d, [ins], [_registers(d, ins, 1, op.r.count)], 32)
    machine = d.machine

    def run(sel: Any, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        at = row_positions(d, place, sel, op.rows)
        machine.memory.shared.bytes.reshape(-1, 16)[at >> 4] = op.execute(registers.read(sel))
        machine.report.statistics.stored["shared"] += 16 * at.size
        machine.progress = True

    return run


def _move_matrix(d: Decoder, ins: tree.Instruction) -> Step:
    op = operation(d, ins)
    assert isinstance(op, Movmatrix)
    source, out = d.source(ins, 1, "u32"), d.target(ins, 0, "u32")

    def run(sel: Any, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        if out is not None:
            out[sel] = op.execute(source[sel][None])[0]

    return run


# -- wmma ------------------------------------------------------------------------------------------


def wmma_places(d: Decoder, ins: tree.Instruction) -> tuple[WmmaAccess, MemoryOperand, Any]:
    """(operation, place, addresses of every access `[accesses, warps, 32]` by warps)."""
    op = operation(d, ins)
    assert isinstance(op, WmmaAccess)
    load = ins.opcode[1] == "load"
    place = d.place(ins, 1 if load else 0, d.space(ins))
    if d.count(ins) not in (2, 3):
        raise d.error(ins, f"{ins.mnemonic} takes 2 or 3 operands, not {d.count(ins)}")
    stride = d.source(ins, 2, "u32") if d.count(ins) == 3 else None

    def addresses(sel: Any) -> Any:
        base = place.at(sel, None)
        return op.addresses(base, np.array(op.stride) if stride is None else stride[sel])

    return op, place, addresses


def _faulty(sel: Any, fault: AccessFault) -> None:
    """All lanes of these warps made the access."""
    fault.mask = None  # pyright: ignore[reportAttributeAccessIssue]
    fault.sel = sel  # pyright: ignore[reportAttributeAccessIssue]


def _wmma(d: Decoder, ins: tree.Instruction) -> Step:
    if ins.opcode[1] == "mma":
        return mma_group(d, [ins])
    op, place, addresses = wmma_places(d, ins)
    load, space = ins.opcode[1] == "load", place.space
    vector = _registers(d, ins, 0 if load else 1, op.r.count)
    machine = d.machine
    memory, statistics = machine.memory, machine.report.statistics

    def run_load(sel: Any, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        where_ = addresses(sel)
        try:
            values = [memory.load(space, at, sel, None, op.unit, 1) for at in where_]
        except AccessFault as fault:
            _faulty(sel, fault)
            raise
        statistics.loaded[space] += op.unit * where_.size
        write(sel, op.join(np.stack(values)))

    def run_store(sel: Any, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        where_ = addresses(sel)
        try:
            for at, value in zip(where_, op.split(registers.read(sel)), strict=True):
                memory.save(space, at, sel, None, op.unit, 1, value)
        except AccessFault as fault:
            _faulty(sel, fault)
            raise
        statistics.stored[space] += op.unit * where_.size
        machine.progress = True

    if load:
        write = _outputs(d, [ins], [vector], op.r.width)
        return run_load
    registers = RegisterRows(d, [ins], [vector], op.r.width)
    return run_store


_WARP: dict[str, Any] = {"together": "warp"}
_MATRIX: dict[str, Any] = {"bits": "matrix", "address": "number", "apart": True, **_WARP}
_FLAGS = (
    needs("xor and", "popc"),
    needs("popc", "b1"),
    needs("rn rz rm rp", "f64"),
    needs("scale_vec::1X scale_vec::2X scale_vec::4X", "block_scale"),
)
_ACCESSES = (
    apart("load store", "xor and popc rn rz rm rp satfinite block_scale trans sp"),
    apart("global", "shared shared::cta"),
    apart("shared", "shared::cta"),
)

#: The words of mma and wmma are read where the operation is built (`tensor_cores/opcode.py`).
OPCODES: tuple[Opcode, ...] = (
    Opcode("mma", "... d, ...", _mma, rules=_FLAGS, fuses=True, **_MATRIX),
    Opcode("wmma.mma", "... d, a, b, c", _wmma, rules=_FLAGS, **_MATRIX),
    Opcode(
        "wmma.load",
        "... d, [a]{, stride}",
        _wmma,
        rules=_ACCESSES,
        bits="load fragment",
        access="load",
        address="number",
        apart=True,
        **_WARP,
    ),
    Opcode(
        "wmma.store",
        "... [a], b{, stride}",
        _wmma,
        rules=_ACCESSES,
        bits="store fragment",
        access="store",
        **_WARP,
    ),
    Opcode(
        "ldmatrix",
        """
        .sync.aligned.m8n8.x1|x2|x4{.trans}{.OWN}.b16 d, [a]
        .sync.aligned.m16n16.x1|x2.trans{.OWN}.b8 d, [a]
        .sync.aligned.m16n16.x1|x2.trans{.OWN}.b8x16.b6x16_p32|b4x16_p64 d, [a]
        .sync.aligned.m8n16.x1|x2|x4{.OWN}.b8x16.b6x16_p32|b4x16_p64 d, [a]
        """,
        _load_matrix,
        bits="load",
        access="load",
        address="number",
        apart=True,
        **_WARP,
    ),
    Opcode(
        "stmatrix",
        """
        .sync.aligned.m8n8.x1|x2|x4{.trans}{.OWN}.b16 [a], b
        .sync.aligned.m16n8.x1|x2|x4.trans{.OWN}.b8 [a], b
        """,
        _store_matrix,
        bits="store",
        access="store",
        **_WARP,
    ),
    Opcode(
        "movmatrix",
        ".sync.aligned.m8n8.trans.b16 d:b32, a:b32",
        _move_matrix,
        bits=Moves((), always),
        **_WARP,
    ),
)
