"""ldmatrix, stmatrix and movmatrix: moving small matrices between memory rows and lanes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fragir.emulator.numbers.types import U8, U32
from fragir.emulator.tensor_cores.arithmetic import TargetName, abilities
from fragir.emulator.tensor_cores.forms import OperandRegisters, TensorOp
from fragir.emulator.tensor_cores.maps import Formula, Fragment, formula, fragment
from fragir.errors import FragirError

# Formats whose rows hold 16 elements of 6 or 4 bits, unpacked to bytes (PTX ISA 9.7.14.5.15).
_PACKED = {"b6x16_p32": 6, "b4x16_p64": 4}


@dataclass(frozen=True, slots=True)
class Ldmatrix(TensorOp):
    """`ldmatrix... {r...}, [p]` (PTX ISA 9.7.14.5.15).

    The address register of lane l < `rows` holds the start of row l: 16 bytes, 16-byte aligned.
    On sm_75 and below (`all_lanes`) the other lanes' addresses must be valid too.
    Machine: `op.execute(read16(addresses[:, :op.rows]))`, with `read16: [W, R] -> u8[W, R, 16]`.
    """

    r: OperandRegisters
    rows: int
    all_lanes: bool
    fragment: Fragment = field(repr=False, compare=False)
    packed_bits: int = 0

    def execute(self, data: U8) -> U32:
        """`u8[W, rows, 16]`, the bytes at each row's address -> registers `u32[r.count, W, 32]`."""
        warps = data.shape[0]
        if self.packed_bits:
            data = unpack_elements(data, self.packed_bits)
        units = data.view(np.uint16) if self.fragment.bits == 16 else data
        codes = np.ascontiguousarray(units.reshape(warps, -1).T).astype(np.uint32)
        return self.fragment.store(codes).astype(np.uint32, copy=False)


@dataclass(frozen=True, slots=True)
class Stmatrix(TensorOp):
    """`stmatrix... [p], {r...}` (PTX ISA 9.7.14.5.16): rows as in `Ldmatrix`, other direction."""

    r: OperandRegisters
    rows: int
    fragment: Fragment = field(repr=False, compare=False)

    def execute(self, r: U32) -> U8:
        """Registers `u32[r.count, W, 32]` -> `u8[W, rows, 16]`: the bytes to be written at each of
        the addresses of lanes 0 to `rows`-1."""
        warps = r.shape[1]
        codes = self.fragment.load(r).reshape(-1, warps).T
        unit = np.uint16 if self.fragment.bits == 16 else np.uint8
        return np.ascontiguousarray(codes).astype(unit).view(np.uint8).reshape(warps, self.rows, 16)


@dataclass(frozen=True, slots=True)
class Movmatrix(TensorOp):
    """`movmatrix.sync.aligned.m8n8.trans.b16 d, a` (PTX ISA 9.7.14.5.17)."""

    a: OperandRegisters
    d: OperandRegisters
    source: Fragment = field(repr=False, compare=False)
    result: Fragment = field(repr=False, compare=False)

    def execute(self, a: U32) -> U32:
        """Registers `u32[1, W, 32]` -> `u32[1, W, 32]`."""
        return self.result.store(self.source.load(a)).astype(np.uint32, copy=False)


def unpack_elements(data: U8, bits: int) -> U8:
    """16 elements of `bits` bits, low bits first, one to a byte: `[..., 16]` -> the same shape."""
    raised = np.unpackbits(data, axis=-1, bitorder="little")[..., : 16 * bits]
    parts = raised.reshape(*data.shape[:-1], 16, bits)
    return np.packbits(parts, axis=-1, bitorder="little")[..., 0]


def _matrices(form: Formula, count: int, bits: int) -> Fragment:
    """`count` matrices side by side: rows of matrix m follow those of m-1, as do its registers."""
    columns = 128 // bits
    row, column = form.evaluate("row"), form.evaluate("col")
    rows = int(row.max()) + 1
    each = form.elements
    matrix = np.repeat(np.arange(count), each)[:, None]
    return Fragment(
        [np.tile(row, (count, 1)) + matrix * rows, np.tile(column, (count, 1))],
        (rows * count, columns),
        bits,
    )


#: By shape: what a target must have for the opcode, and how that is said.
_BLACKWELL = {"sm_100f", "sm_120f"}, "sm_100a or sm_120a"
_NEEDS: dict[str, dict[str, tuple[set[str], str]]] = {
    "ldmatrix": {"m8n8": ({"sm_75"}, "sm_75"), "m16n16": _BLACKWELL, "m8n16": _BLACKWELL},
    "stmatrix": {"m8n8": ({"sm_90"}, "sm_90"), "m16n8": _BLACKWELL},
    "movmatrix": {"m8n8": ({"sm_75"}, "sm_75")},
}


def build_matrix(opcode: tuple[str, ...], target: TargetName) -> Ldmatrix | Stmatrix | Movmatrix:
    """`opcode`: one that has a row (`fragir/ptx/opcodes/matrices.py`).

    Raises FragirError where the target does not have it.
    """
    head = opcode[0]
    shape, (needed, named) = next(each for each in _NEEDS[head].items() if each[0] in opcode)
    if abilities(target).isdisjoint(needed):
        why = f"`{'.'.join(opcode)}`: target {target.name} does not have it"
        raise FragirError(why, hint=f"it needs {named}")
    kind = "b16" if shape == "m8n8" else "b8"
    bits = int(kind[1:])
    if head == "movmatrix":
        source, result = (
            fragment(formula("MATRIX", shape, kind, f"mov.{name}"), ("row", "col"), (8, 8), bits)
            for name in "ad"
        )
        one = OperandRegisters(1)
        return Movmatrix(opcode, target.name, one, one, source, result)
    count = next(int(word[1:]) for word in opcode if word in ("x1", "x2", "x4"))
    trans = ".trans" if "trans" in opcode else ""
    form = formula("MATRIX", shape, kind, f"{head[:2]}{trans}")
    layout = _matrices(form, count, bits)
    registers = OperandRegisters(count * form.elements * bits // 32)
    rows = layout.extents[0]
    if head == "stmatrix":
        return Stmatrix(opcode, target.name, registers, rows, layout)
    packed = next((bits for word, bits in _PACKED.items() if word in opcode), 0)
    return Ldmatrix(opcode, target.name, registers, rows, target.number < 80, layout, packed)
