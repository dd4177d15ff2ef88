"""Integers of one, eight and sixteen bits: PTX computes with few of them, so 32 bits do it.

A narrow integer is extended as its operation understands it (with its sign or without), and the
low bits of the result are kept: `arith` wraps, and of all these operations the low bits of a result
depend on nothing else. One bit is a predicate: `1` is -1 where the operation is signed.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from fragir.dialects import ptx
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.passes.writer import arith as tables
from fragir.passes.writer.convert import Convert
from fragir.passes.writer.sequences import sequence
from fragir.passes.writer.text import KernelText

LOGIC = {"arith.andi": "and", "arith.ori": "or", "arith.xori": "xor"}
WITHOUT_SIGN = {
    *("arith.divui", "arith.remui", "arith.minui", "arith.maxui", "arith.shrui"),
    *("arith.ceildivui", "math.ctlz", "math.cttz", "math.ctpop"),
}
ONE_BIT = {
    **{f"arith.{name}": "xor" for name in ("addi", "subi", "xori")},
    **{f"arith.{name}": "and" for name in ("muli", "andi", "minui", "maxsi")},
    **{f"arith.{name}": "or" for name in ("ori", "maxui", "minsi")},
}
"""The operations of one bit that are logic."""
ONE_BIT_RELATIONS = (
    ("xor", "", "not"),
    ("xor", "", ""),
    ("and", "y", ""),
    ("or", "y", ""),
    ("and", "x", ""),
    ("or", "x", ""),
    ("and", "x", ""),
    ("or", "x", ""),
    ("and", "y", ""),
    ("or", "y", ""),
)
"""By arith.cmpi's predicate: the logic, which operand is negated before, and the result after."""


class NarrowIntegers:
    """Writes arithmetic, comparisons and choices."""

    def __init__(self, writer: KernelText):
        self._writer, self._convert = writer, Convert(writer)

    # --- arithmetic ---------------------------------------------------------------------------

    def compute(self, op: Operation) -> None:
        """Writes arithmetic on narrow integers."""
        bits = ptx.bits(op.results[0].type)
        if bits == 1:
            self._predicates(op)
        elif op.name in LOGIC:
            self._logic(op)
        else:
            self._write_wide(op, bits)

    def _predicates(self, op: Operation) -> None:
        w = self._writer
        if op.name not in ONE_BIT:
            raise FragirError(f"{op.name} on i1 is not supported; extend to i32")
        columns = [w.in_registers(operand) for operand in op.operands]
        for target, *operands in zip(w.define(op.results[0]), *columns, strict=True):
            w.emit(f"{ONE_BIT[op.name]}.pred", target, *operands)

    def _logic(self, op: Operation) -> None:
        """All elements of a register at once."""
        w = self._writer
        width = ptx.register_bits(op.results[0].type)
        columns = [w.in_registers(operand) for operand in op.operands]
        for target, *operands in zip(w.define(op.results[0]), *columns, strict=True):
            w.emit(f"{LOGIC[op.name]}.b{width}", target, *operands)

    def _write_wide(self, op: Operation, bits: int) -> None:
        w, result = self._writer, op.results[0]
        columns = [self._widen(x, op.name not in WITHOUT_SIGN) for x in op.operands]
        if op.name == "math.cttz":  # of zero: as many as there are bits
            columns = [[self._emit("or.b32", x, str(1 << bits)) for x in columns[0]]]
        found = sequence(op.name, "b32")
        opcode = tables.INTEGER.get(op.name)
        if len(op.results) > 1 or (found is None and opcode is None):
            raise FragirError(f"{op.name} on {result.type} is not supported; extend to i32")
        targets: list[str] = []
        for operands in zip(*columns, strict=True):
            targets.append(w.registers.fresh_register(32))
            if opcode is not None:
                w.emit(opcode.format(bits=32), targets[-1], *operands)
            elif found is not None:
                found.write(w, [targets[-1]], list(operands))
        if op.name == "math.ctlz":
            targets = [self._emit("sub.s32", x, str(32 - bits)) for x in targets]
        self._convert.narrow(result, targets, bits)

    def _widen(self, value: SSAValue, signed: bool) -> list[str]:
        return self._convert.widen(value, f"{'s' if signed else 'u'}{ptx.bits(value.type)}")

    def _emit(self, opcode: str, *operands: str) -> str:
        target = self._writer.registers.fresh_register(32)
        self._writer.emit(opcode, target, *operands)
        return target

    # --- comparisons --------------------------------------------------------------------------

    def compare(self, op: arith.CmpiOp | arith.CmpfOp | ptx.CompareOp, number: int) -> None:
        """Writes a comparison; `number` is arith.cmpi's predicate."""
        if ptx.bits(op.lhs.type) == 1:
            self._compare_predicates(op, number)
            return
        relation, sign = tables.COMPARE_INTEGER[number]
        columns = [self._widen(x, sign == "s") for x in (op.lhs, op.rhs)]
        w = self._writer
        for target, x, y in zip(w.define(op.result), *columns, strict=True):
            w.emit(f"setp.{relation}.{sign}32", target, x, y)

    def _compare_predicates(
        self, op: arith.CmpiOp | arith.CmpfOp | ptx.CompareOp, number: int
    ) -> None:
        w = self._writer
        logic, negated, after = ONE_BIT_RELATIONS[number]
        columns = zip(w.in_registers(op.lhs), w.in_registers(op.rhs), strict=True)
        for target, (x, y) in zip(w.define(op.result), columns, strict=True):
            spare = w.registers.fresh_register(1)
            if negated:
                w.emit("not.pred", spare, x if negated == "x" else y)
            operands = (spare, y) if negated == "x" else (x, spare) if negated else (x, y)
            if after:
                w.emit(f"{logic}.pred", spare, *operands)
                w.emit("not.pred", target, spare)
            else:
                w.emit(f"{logic}.pred", target, *operands)

    # --- choices ------------------------------------------------------------------------------

    def select(self, op: arith.SelectOp | ptx.SelectOp) -> None:
        """Writes a choice between elements of eight bits or fewer."""
        w, type_ = self._writer, op.result.type
        bits = ptx.bits(type_)
        conditions = list(w.in_registers(op.cond))
        if bits == 1:
            x, y = w.in_registers(op.lhs), w.in_registers(op.rhs)
            if len(conditions) == 1:
                conditions *= len(x)
            rows = zip(w.define(op.result), conditions, x, y, strict=True)
            for target, condition, one, other in rows:
                first, second, against = (w.registers.fresh_register(1) for _ in range(3))
                w.emit("and.pred", first, condition, one)
                w.emit("not.pred", against, condition)
                w.emit("and.pred", second, against, other)
                w.emit("or.pred", target, first, second)
            return
        whole = not is_vector(op.cond.type)
        columns = [
            list(w.in_registers(value)) if whole else self._convert.widen(value, f"u{bits}")
            for value in (op.lhs, op.rhs)
        ]
        targets = (
            list(w.define(op.result))
            if whole
            else [w.registers.fresh_register(32) for _ in conditions]
        )
        if whole:
            conditions = conditions * len(targets)
        for target, condition, one, other in zip(targets, conditions, *columns, strict=True):
            w.emit("selp.b32", target, one, other, condition)
        if not whole:
            self._convert.narrow(op.result, targets, bits)
