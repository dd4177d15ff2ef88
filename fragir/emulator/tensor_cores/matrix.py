"""ldmatrix, stmatrix and movmatrix: moving small matrices between memory rows and lanes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from fragir.emulator.numbers.types import U8, U32
from fragir.emulator.tensor_cores.arithmetic import Architecture, TargetName
from fragir.emulator.tensor_cores.fragment import Fragment, fragment
from fragir.emulator.tensor_cores.maps import Formula, formula
from fragir.emulator.tensor_cores.types import OperandRegisters, TensorOp
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
            data = _unpack(data, self.packed_bits)
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


def _unpack(data: U8, bits: int) -> U8:
    """16 elements of `bits` bits, low bits first, one to a byte: `[W, R, 16]` -> the same shape."""
    raised = np.unpackbits(data, axis=-1, bitorder="little")[..., : 16 * bits]
    parts = raised.reshape(*data.shape[:2], 16, bits)
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


def _refuse(opcode: tuple[str, ...], why: str, hint: str | None = None) -> FragirError:
    return FragirError(f"`{'.'.join(opcode)}`: {why}", hint=hint)


def _count(opcode: tuple[str, ...], allowed: tuple[str, ...]) -> int:
    found = [word for word in opcode if word in allowed]
    if len(found) != 1 or not {"sync", "aligned"} <= set(opcode):
        raise _refuse(opcode, f"expected .sync.aligned and one of {', '.join(allowed)}")
    return int(found[0][1:])


def _known(opcode: tuple[str, ...], words: set[str]) -> None:
    unknown = set(opcode[1:]) - words - {"sync", "aligned", "shared", "shared::cta", "trans"}
    if unknown:
        raise _refuse(opcode, f"does not go together with .{min(unknown)}")


def _blackwell(opcode: tuple[str, ...], target: TargetName) -> None:
    fits = target.architecture in (Architecture.BLACKWELL, Architecture.RTX_BLACKWELL)
    if not fits or not target.suffix:
        raise _refuse(
            opcode, f"target {target.name} does not have it", "it needs sm_100a or sm_120a"
        )


def build_ldmatrix(opcode: tuple[str, ...], target: TargetName) -> Ldmatrix:
    """Raises FragirError where PTX has no such form or the target does not have it."""
    trans = "trans" in opcode
    formats = [word for word in opcode if word in _PACKED]
    if "m8n8" in opcode:
        count = _count(opcode, ("x1", "x2", "x4"))
        _known(opcode, {"m8n8", "x1", "x2", "x4", "b16"})
        if "b16" not in opcode:
            raise _refuse(opcode, "m8n8 matrices are of .b16")
        if target.number < 75:
            raise _refuse(opcode, f"target {target.name} does not have it", "it needs sm_75")
        shape, bits, per = "m8n8", 16, 1
    elif "m16n16" in opcode:
        count = _count(opcode, ("x1", "x2"))
        _known(opcode, {"m16n16", "x1", "x2", "b8", "b8x16", *_PACKED})
        if not trans or not ("b8" in opcode or ("b8x16" in opcode and formats)):
            raise _refuse(opcode, "m16n16 matrices need .trans and .b8, or .b8x16 and a format")
        _blackwell(opcode, target)
        shape, bits, per = "m16n16", 8, 2
    elif "m8n16" in opcode:
        count = _count(opcode, ("x1", "x2", "x4"))
        _known(opcode, {"m8n16", "x1", "x2", "x4", "b8x16", *_PACKED})
        if trans or "b8x16" not in opcode or not formats:
            raise _refuse(opcode, "m8n16 matrices need .b8x16 and a format, and have no .trans")
        _blackwell(opcode, target)
        shape, bits, per = "m8n16", 8, 1
    else:
        raise _refuse(opcode, "the shape is missing")
    kind = "b16" if bits == 16 else "b8"
    form = formula("MATRIX", shape, kind, "ld.trans" if trans else "ld")
    layout = _matrices(form, count, bits)
    packed = _PACKED[formats[0]] if formats else 0
    rows = layout.extents[0]
    return Ldmatrix(
        opcode, target.name, OperandRegisters(count * per), rows, target.number < 80, layout, packed
    )


def build_stmatrix(opcode: tuple[str, ...], target: TargetName) -> Stmatrix:
    """Raises FragirError where PTX has no such form or the target does not have it."""
    count = _count(opcode, ("x1", "x2", "x4"))
    trans = "trans" in opcode
    if "m8n8" in opcode and "b16" in opcode:
        _known(opcode, {"m8n8", "x1", "x2", "x4", "b16"})
        if target.number < 90:
            raise _refuse(opcode, f"target {target.name} does not have it", "it needs sm_90")
        form, bits = formula("MATRIX", "m8n8", "b16", "st.trans" if trans else "st"), 16
    elif "m16n8" in opcode and "b8" in opcode:
        _known(opcode, {"m16n8", "x1", "x2", "x4", "b8"})
        if not trans:
            raise _refuse(opcode, "m16n8 matrices need .trans")
        _blackwell(opcode, target)
        form, bits = formula("MATRIX", "m16n8", "b8", "st.trans"), 8
    else:
        raise _refuse(opcode, "the shape or type is missing")
    layout = _matrices(form, count, bits)
    return Stmatrix(opcode, target.name, OperandRegisters(count), layout.extents[0], layout)


def build_movmatrix(opcode: tuple[str, ...], target: TargetName) -> Movmatrix:
    """Raises FragirError where PTX has no such form or the target does not have it."""
    if set(opcode[1:]) != {"sync", "aligned", "m8n8", "trans", "b16"}:
        raise _refuse(opcode, "there is only movmatrix.sync.aligned.m8n8.trans.b16")
    if target.number < 75:
        raise _refuse(opcode, f"target {target.name} does not have it", "it needs sm_75")
    source, result = (
        fragment(formula("MATRIX", "m8n8", "b16", f"mov.{name}"), ("row", "col"), (8, 8), 16)
        for name in "ad"
    )
    return Movmatrix(opcode, target.name, OperandRegisters(1), OperandRegisters(1), source, result)
