"""ldmatrix and stmatrix by the compiled core: from the arena to the register file, and back."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from fragir.emulator.instructions.register_rows import RegisterRows
from fragir.emulator.machine.lanes import is_slice
from fragir.emulator.machine.memory import SHARED_WINDOW
from fragir.emulator.native.library import quick
from fragir.emulator.tensor_cores import Ldmatrix, Stmatrix

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import MemoryOperand
    from fragir.emulator.machine.machine import Machine

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

    def __call__(self, sel: Any) -> bool:
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
