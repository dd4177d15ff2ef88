"""ldmatrix, stmatrix, movmatrix, and the loads and stores of wmma: what moves matrices."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from fragir.emulator.instructions.alu import Decode
from fragir.emulator.instructions.register_rows import RegisterRows, operation, outputs, whole_warps
from fragir.emulator.machine.lanes import Mask, Select, Step, is_slice, number_of
from fragir.emulator.machine.memory import SHARED_WINDOW, AccessFault
from fragir.emulator.native.library import quick
from fragir.emulator.numbers.types import Array, where
from fragir.emulator.tensor_cores import Ldmatrix, Movmatrix, Stmatrix, WmmaAccess
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder, MemoryOperand
    from fragir.emulator.machine.machine import Machine


# -- compiled matrices -----------------------------------------------------------------------------
# ldmatrix and stmatrix by the compiled core: from the arena to the register file, and back.

_POINTER, _INT, _LONG, _WORD = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64


class NativeMatrices(ctypes.Structure):
    """`Matrices` of native/source/matrices.c."""

    _fields_: ClassVar = [
        ("address", _POINTER),
        *((name, _LONG) for name in ("warp_stride", "lane_stride")),
        *((name, _WORD) for name in ("offset", "window")),
        *((name, _POINTER) for name in ("shared", "home", "poison")),
        *((name, _LONG) for name in ("size", "stride", "cluster")),
        *((name, _POINTER) for name in ("file", "registers")),
        ("pitch", _LONG),
        ("parts", _POINTER),
        *((name, _INT) for name in ("count", "bits", "rows", "wide")),
    ]


class CompiledMatrices:
    """One ldmatrix or stmatrix whose registers are those of the file."""

    def __init__(
        self,
        library: ctypes.PyDLL,
        machine: Machine,
        op: Ldmatrix | Stmatrix,
        place: MemoryOperand,
        registers: RegisterRows,
    ) -> None:
        self.memory = memory = machine.memory
        loads = isinstance(op, Ldmatrix)
        self.function = library.fragir_load_matrices if loads else library.fragir_store_matrices
        row, fragment = place.row, op.fragment
        self.rows = np.ascontiguousarray(registers.index[:, 0], np.int64)
        self.parts = np.ascontiguousarray(np.stack(fragment.parts), np.int32)
        self.poison = memory.poison.ctypes.data
        self.job = NativeMatrices(
            address=row.ctypes.data,
            warp_stride=row.strides[0],
            lane_stride=row.strides[1],
            offset=place.offset & 0xFFFFFFFFFFFFFFFF,
            window=SHARED_WINDOW,
            shared=memory.shared.bytes.ctypes.data,
            home=memory.shared_home.ctypes.data,
            size=memory.shared_size,
            stride=memory.shared_stride,
            cluster=memory.cluster,
            file=registers.file.ctypes.data,
            registers=self.rows.ctypes.data,
            pitch=registers.file.shape[1] * 32,
            parts=self.parts.ctypes.data,
            count=fragment.count,
            bits=fragment.bits,
            rows=op.rows,
            wide=row.dtype.itemsize == 8,
        )
        self.at = ctypes.byref(self.job)

    def __call__(self, sel: Select) -> bool:
        """For the selected warps. False: some address is no good; then nothing has been done."""
        self.job.poison = self.poison if self.memory.poisoned else None
        if is_slice(sel):
            done = self.function(self.at, None, _LONG(sel.start), _LONG(sel.stop - sel.start))
        else:
            warps = np.ascontiguousarray(sel, np.int64)
            done = self.function(self.at, _POINTER(warps.ctypes.data), _LONG(0), _LONG(len(warps)))
        return bool(done)


def compiled_matrices(
    machine: Machine, op: Ldmatrix | Stmatrix, place: MemoryOperand, registers: RegisterRows | None
) -> CompiledMatrices | None:
    """None where numpy has to do it: unusual operands, formats that are unpacked, no library."""
    library = quick()
    if library is None or registers is None or registers.rows is not None:
        return None
    if type(place.row) is not np.ndarray or place.row.dtype.itemsize not in (4, 8):
        return None
    if op.fragment.bits not in (8, 16) or (isinstance(op, Ldmatrix) and op.packed_bits):
        return None
    return CompiledMatrices(library, machine, op, place, registers)


# -- matrices in shared memory ---------------------------------------------------------------------


def row_positions(d: Decoder, place: MemoryOperand, sel: Select, rows: int) -> Array:
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
    plain, write = outputs(d, [ins], [vector], 32)
    memory, counted = d.machine.memory, d.machine.report.statistics.loaded
    compiled = compiled_matrices(d.machine, op, place, plain)

    def run(sel: Select, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        if compiled is not None and compiled(sel):
            counted["shared"] += 16 * op.rows * number_of(sel)
            return
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
    compiled = compiled_matrices(machine, op, place, registers)

    def run(sel: Select, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        if compiled is not None and compiled(sel):
            machine.report.statistics.stored["shared"] += 16 * op.rows * number_of(sel)
            machine.progress = True
            return
        at = row_positions(d, place, sel, op.rows)
        machine.memory.shared.bytes.reshape(-1, 16)[at >> 4] = op.execute(registers.read(sel))
        machine.report.statistics.stored["shared"] += 16 * at.size
        machine.progress = True

    return run


def _move_matrix(d: Decoder, ins: tree.Instruction) -> Step:
    op = operation(d, ins)
    assert isinstance(op, Movmatrix)
    source, out = d.source(ins, 1, "u32"), d.target(ins, 0, "u32")

    def run(sel: Select, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        if out is not None:
            out[sel] = op.execute(source[sel][None])[0]

    return run


# -- wmma ------------------------------------------------------------------------------------------


def wmma_places(
    d: Decoder, ins: tree.Instruction
) -> tuple[WmmaAccess, MemoryOperand, Callable[[Select], Array]]:
    """(operation, place, addresses of every access `[accesses, warps, 32]` by warps)."""
    op = operation(d, ins)
    assert isinstance(op, WmmaAccess)
    load = ins.opcode[1] == "load"
    place = d.place(ins, 1 if load else 0, d.space(ins))
    if d.count(ins) not in (2, 3):
        raise d.error(ins, f"{ins.mnemonic} takes 2 or 3 operands, not {d.count(ins)}")
    stride = d.source(ins, 2, "u32") if d.count(ins) == 3 else None

    def addresses(sel: Select) -> Array:
        base = place.at(sel, None)
        return op.addresses(base, np.array(op.stride) if stride is None else stride[sel])

    return op, place, addresses


def _faulty(sel: Select, fault: AccessFault) -> None:
    """All lanes of these warps made the access."""
    fault.mask = None  # pyright: ignore[reportAttributeAccessIssue]
    fault.sel = sel  # pyright: ignore[reportAttributeAccessIssue]


def _wmma(d: Decoder, ins: tree.Instruction) -> Step:
    op, place, addresses = wmma_places(d, ins)
    load, space = ins.opcode[1] == "load", place.space
    vector = _registers(d, ins, 0 if load else 1, op.r.count)
    machine = d.machine
    memory, statistics = machine.memory, machine.report.statistics

    def run_load(sel: Select, mask: Mask) -> None:
        sel = whole_warps(sel, mask)
        where_ = addresses(sel)
        try:
            values = [memory.load(space, at, sel, None, op.unit, 1) for at in where_]
        except AccessFault as fault:
            _faulty(sel, fault)
            raise
        statistics.loaded[space] += op.unit * where_.size
        write(sel, op.join(np.stack(values)))

    def run_store(sel: Select, mask: Mask) -> None:
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
        _, write = outputs(d, [ins], [vector], op.r.width)
        return run_load
    registers = RegisterRows(d, [ins], [vector], op.r.width)
    return run_store


STEPS: dict[str, Decode] = {
    "wmma": _wmma,
    "load matrices": _load_matrix,
    "store matrices": _store_matrix,
    "transpose matrix": _move_matrix,
}
