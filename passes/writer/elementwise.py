"""Elementwise arithmetic.

The same instruction once per register, two packed elements at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, OpResult, SSAValue

from fragir.dialects import ptx
from fragir.dialects.elements import FLOATS, element_name
from fragir.dialects.shorthands import constant_of, is_vector
from fragir.errors import FragirError
from fragir.isa.versions import requirement
from fragir.passes.writer import arith as tables
from fragir.passes.writer.convert import Convert
from fragir.passes.writer.sharing import dies_at, is_alias
from fragir.passes.writer.text import KernelText
from fragir.ptx.spelling import float_literal, vector

if TYPE_CHECKING:
    from fragir.passes.writer.narrow_integers import NarrowIntegers


# -- masks -----------------------------------------------------------------------------------------
# Masks that are one instruction with what takes them: `(a & m) ^ b` is a `lop3`.
#
# But not where all that is asked of it is whether it is zero: ptxas 12.9 to 13.5 crashes at a
# `lop3` whose only reader is a `setp.eq` with 0 that guards something, on every target. It makes
# one instruction of the two that stand there instead.

# truth tables of (a, m, b), made of 0xF0, 0xCC and 0xAA (PTX ISA 9.2, section 9.7.8.6)
_TABLES = {
    "arith.xori": 0xF0 & 0xCC ^ 0xAA,
    "arith.ori": 0xF0 & 0xCC | 0xAA,
    ptx.FlipOp.name: 0xF0 & 0xCC ^ 0xAA,
}


def is_part(op: arith.AndIOp) -> bool:
    """Whether a mask is written with the only operation that reads it."""
    user = op.result.get_user_of_unique_use()
    return user is not None and _part(user) is op


def write_with_mask(w: KernelText, op: Operation) -> bool:
    """Writes an operation with a mask that is part of it; False where none is."""
    mask = _part(op)
    if mask is None:
        return False
    other = next(value for value in op.operands if value is not mask.result)
    names = [w.one(value) for value in (*mask.operands, other)]
    (result,) = w.define(op.results[0])
    w.emit("lop3.b32", result, *names, f"0x{_TABLES[op.name]:02X}")
    return True


def _part(user: Operation) -> arith.AndIOp | None:
    """The first operand that is a mask of an index, if the other one is in a register too.

    What is masked must still be in its register where the mask's user stands.
    """
    if user.name not in _TABLES or len(user.operands) != 2 or _is_held_against_zero(user):
        return None
    for value, other in (user.operands, reversed(user.operands)):
        mask = value.owner
        if (
            isinstance(mask, arith.AndIOp)
            and isinstance(value.type, IndexType)
            and not isinstance(other.owner, arith.ConstantOp)
            and dies_at(value, user)
            and all(_is_stable(operand) for operand in mask.operands)
        ):
            return mask
    return None


def _is_held_against_zero(op: Operation) -> bool:
    return all(
        isinstance(use.operation, arith.CmpiOp)
        and any(constant_of(operand) == 0 for operand in use.operation.operands)
        for use in op.results[0].uses
    )


def _is_stable(value: object) -> bool:
    """Whether nothing overwrites a value's register: a loop's variable may be."""
    return isinstance(value, OpResult) and not is_alias(value.op) and not value.op.regions


HALVES = ("f16", "bf16")
# these pass NaN on
EXTREMA = {"arith.maximumf": "max", "arith.minimumf": "min"}
ComparisonOp = arith.CmpfOp | arith.CmpiOp | ptx.CompareOp


class ElementwiseWriter:
    """Writes operations of arith and math, and ptx.cvt."""

    def __init__(self, writer: KernelText):
        self.writer = writer
        self.convert = Convert(writer)

    def write(self, op: Operation) -> bool:
        """Writes an operation; False where it is not one of these."""
        if op.name in tables.CASTS or isinstance(op, ptx.CvtOp):
            self.convert.write(op)
        elif isinstance(op, arith.CmpfOp | arith.CmpiOp):
            self._compare(op, op.predicate.value.data)
        elif isinstance(op, ptx.CompareOp):
            self._compare(op, op.number)
        elif isinstance(op, arith.SelectOp | ptx.SelectOp):
            self._select(op)
        elif op.name in tables.FLOAT or op.name in tables.SCALED:
            self._float(op)
        elif op.name in tables.INTEGER:
            self._integer(op)
        else:
            return self._composed_of_several(op)
        return True

    def _composed_of_several(self, op: Operation) -> bool:
        """What few programs have; False where it is nothing known."""
        from fragir.passes.writer.composed import write

        return write(self.writer, self.convert, op)

    # --- floats -------------------------------------------------------------------------------

    def _float(self, op: Operation) -> None:
        result = op.results[0]
        name = element_name(ptx.scalar_type(result.type))
        if self._fast(op):
            return
        packed = is_vector(result.type) and name in HALVES
        form = f"{name}x2" if packed else name
        if self._is_native(op.name, form):
            self._each(op, tables.FLOAT[op.name][form])
        elif name == "bf16" and op.name in ("arith.addf", "arith.subf", "arith.mulf"):
            self._bf16_by_fma(op, form)
        elif name in HALVES:
            self._through_f32(op, name)
        elif name == "f32" or (name == "f64" and op.name in EXTREMA):
            self._write_composed(op, name)
        elif not self._composed_of_several(op):
            raise FragirError(
                f"there is no instruction for {op.name} on {name}", hint="cast to f32 around it"
            )

    def _fast(self, op: Operation) -> bool:
        """Writes what fastmath flags allow to be written otherwise."""
        flags = op.properties.get("fastmath")
        if flags is None or not getattr(flags, "data", None):
            return False
        from fragir.passes.writer.composed import write_fast

        return write_fast(self.writer, self.convert, op)

    def _is_native(self, name: str, form: str) -> bool:
        """Whether the target has one instruction for it."""
        opcode = tables.FLOAT.get(name, {}).get(form)
        if opcode is None:
            return False
        if name == "math.tanh" and not self.writer.has(opcode):
            lowest = requirement(opcode).lowest_target
            raise FragirError(f"tanh.approx exists from {lowest} on")
        return self.writer.has(opcode)

    def _each(self, op: Operation, opcode: str) -> None:
        w = self.writer
        columns = [w.names[operand] for operand in op.operands]
        if not opcode.endswith(("f32", "f64")):
            columns = [w.in_registers(operand) for operand in op.operands]
        elif all(not name.startswith("%") for column in columns for name in column):
            columns[0] = w.in_registers(op.operands[0])
        for result, *operands in zip(w.define(op.results[0]), *columns, strict=True):
            w.emit(opcode, result, *operands)

    def _write_composed(self, op: Operation, name: str) -> None:
        """What takes more than one instruction on f32 or f64."""
        w = self.writer
        (names, *others) = (w.names[operand] for operand in op.operands)
        for i, result in enumerate(w.define(op.results[0])):
            self._composed_one(op, name, result, names[i], [other[i] for other in others])

    def _composed_one(
        self, op: Operation, name: str, result: str, x: str, others: list[str]
    ) -> None:
        w = self.writer
        spare = (
            w.registers.fresh_register(64, "fd")
            if name == "f64"
            else w.registers.fresh_register(32, "f")
        )
        if op.name in tables.SCALED:
            where, opcode, factor = tables.SCALED[op.name]
            literal = float_literal(factor, "f32")
            if where == "before":
                w.emit("mul.rn.f32", spare, x, literal)
                w.emit(opcode, result, spare)
            else:
                w.emit(opcode, spare, x)
                w.emit("mul.rn.f32", result, spare, literal)
        elif op.name in EXTREMA:
            nan = w.registers.fresh_register(1)
            w.emit(f"{EXTREMA[op.name]}.{name}", spare, x, others[0])
            w.emit(f"setp.nan.{name}", nan, x, others[0])
            wide = name == "f64"
            quiet = "0x7FFFFFFFFFFFFFFF" if wide else "0x7FFFFFFF"
            w.emit("selp.b64" if wide else "selp.b32", result, quiet, spare, nan)
        else:
            raise FragirError(f"there is no instruction for {op.name} on {name}")

    def _bf16_by_fma(self, op: Operation, form: str) -> None:
        """x + y as 1 x + y, x - y as -1 y + x, x y as x y - 0: one rounding either way."""
        w = self.writer
        x, y = (w.in_registers(operand) for operand in op.operands)
        constant = {"arith.addf": 1.0, "arith.subf": -1.0, "arith.mulf": -0.0}[op.name]
        bits = int(float_literal(constant, "bf16"), 0)
        packed = form.endswith("x2")
        literal = w.registers.fresh_register(32 if packed else 16)
        w.emit(
            "mov.b32" if packed else "mov.b16", literal, f"0x{bits * 0x10001 if packed else bits:X}"
        )
        for i, result in enumerate(w.define(op.results[0])):
            if op.name == "arith.addf":
                operands = (x[i], literal, y[i])
            elif op.name == "arith.subf":
                operands = (y[i], literal, x[i])
            else:
                operands = (x[i], y[i], literal)
            w.emit(f"fma.rn.{form}", result, *operands)

    def _through_f32(self, op: Operation, name: str) -> None:
        """Converts halves to f32, computes there and rounds back.

        One rounding for everything that f32 rounds correctly, since 24 bits are enough for twice
        11 bits and two (f16, bf16).
        """
        w = self.writer
        count = ptx.length(op.results[0].type)
        columns = [self.convert.to_f32(operand) for operand in op.operands]
        results = [w.registers.fresh_register(32, "f") for _ in range(count)]
        opcode = tables.FLOAT.get(op.name, {}).get("f32")
        for i, result in enumerate(results):
            operands = [column[i] for column in columns]
            if opcode is not None and self._is_native(op.name, "f32"):
                w.emit(opcode, result, *operands)
            else:
                self._composed_one(op, "f32", result, operands[0], operands[1:])
        self.convert.from_f32(op.results[0], results, name)

    # --- comparisons --------------------------------------------------------------------------

    def _compare(self, op: ComparisonOp, number: int) -> None:
        if element_name(ptx.scalar_type(op.lhs.type)) in FLOATS:
            self._compare_float(op, number)
        else:
            self._compare_integer(op, number)

    def _compare_float(self, op: ComparisonOp, number: int) -> None:
        w = self.writer
        relation = tables.COMPARE_FLOAT[number]
        if relation is None:
            value = "1" if number == 15 else "0"
            w.alias(op.result, [value] * ptx.registers(op.result.type))
            return
        name = element_name(ptx.scalar_type(op.lhs.type))
        if name in HALVES:
            x, y = self.convert.to_f32(op.lhs), self.convert.to_f32(op.rhs)
            name = "f32"
        elif name not in ("f32", "f64"):
            raise FragirError(f"{name} is not compared", hint="convert it to f32 first")
        else:
            x, y = w.in_registers(op.lhs), w.names[op.rhs]
        for result, left, right in zip(w.define(op.result), x, y, strict=True):
            w.emit(f"setp.{relation}.{name}", result, left, right)

    def _compare_integer(self, op: ComparisonOp, number: int) -> None:
        w = self.writer
        relation, sign = tables.COMPARE_INTEGER[number]
        bits = ptx.bits(op.lhs.type)
        if bits < 32:
            self._narrow_integers().compare(op, number)
            return
        x, y = w.in_registers(op.lhs), w.names[op.rhs]
        for result, left, right in zip(w.define(op.result), x, y, strict=True):
            w.emit(f"setp.{relation}.{sign}{bits}", result, left, right)

    def _select(self, op: arith.SelectOp | ptx.SelectOp) -> None:
        w = self.writer
        type_ = op.result.type
        bits, width = ptx.bits(type_), ptx.register_bits(type_)
        conditions = w.in_registers(op.cond)
        if is_vector(type_) and bits == 16 and is_vector(op.cond.type):
            x, y = self._halves(op.lhs), self._halves(op.rhs)
            picked: list[str] = []
            for condition, left, right in zip(conditions, x, y, strict=True):
                picked.append(w.registers.fresh_register(16))
                w.emit("selp.b16", picked[-1], left, right, condition)
            for i, result in enumerate(w.define(op.result)):
                pair = picked[2 * i : 2 * i + 2]
                w.emit("mov.b32", result, vector([*pair, *pair][:2]))
            return
        if bits < 16:
            self._narrow_integers().select(op)
            return
        x, y = w.names[op.lhs], w.names[op.rhs]
        if len(conditions) == 1:
            conditions = conditions * len(x)
        for result, left, right, condition in zip(
            w.define(op.result), x, y, conditions, strict=True
        ):
            w.emit(f"selp.b{width}", result, _bits(left), _bits(right), condition)

    def _halves(self, value: SSAValue) -> list[str]:
        w = self.writer
        result: list[str] = []
        for name in w.in_registers(value):
            pair = [w.registers.fresh_register(16), w.registers.fresh_register(16)]
            w.emit("mov.b32", vector(pair), name)
            result += pair
        return result[: ptx.length(value.type)]

    # --- integers -----------------------------------------------------------------------------

    def _integer(self, op: Operation) -> None:
        w = self.writer
        if is_part(op) if isinstance(op, arith.AndIOp) else write_with_mask(w, op):
            return
        result = op.results[0]
        bits = ptx.bits(result.type)
        shift = op.name.startswith("arith.sh")  # its count has 32 bits
        if bits < 16 or (bits == 16 and (shift or is_vector(result.type))):
            self._narrow_integers().compute(op)
            return
        opcode = tables.INTEGER[op.name].format(bits=bits)
        columns = [list(w.names[operand]) for operand in op.operands]
        if bits == 64 and shift:
            columns[1] = [self._narrow_count(name) for name in columns[1]]
        if all(not column[0].startswith("%") for column in columns):
            columns[0] = list(w.in_registers(op.operands[0]))
        for target, *operands in zip(w.define(result), *columns, strict=True):
            w.emit(opcode, target, *operands)

    def _narrow_integers(self) -> NarrowIntegers:
        from fragir.passes.writer.narrow_integers import NarrowIntegers  # few programs have them

        return NarrowIntegers(self.writer)

    def _narrow_count(self, name: str) -> str:
        """A shift count as 32 bits (PTX ISA 9.2, section 9.7.8.7), a large one as the largest."""
        if not name.startswith("%"):
            return name
        narrow = self.writer.registers.fresh_register(32)
        self.writer.emit("cvt.sat.u32.u64", narrow, name)
        return narrow


def _bits(name: str) -> str:
    return f"0x{name[2:]}" if name.startswith(("0f", "0d")) else name
