"""Any instruction of PTX, as a statement with places for values."""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from xdsl.dialects.builtin import StringAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import (
    ConditionallySpeculatable,
    EffectInstance,
    MemoryEffect,
    MemoryEffectKind,
)
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import QuickOperation, op_definition
from fragir.dialects.ptx.statement import Statement, read
from fragir.dialects.ptx.types import register_bits, registers
from fragir.errors import FragirError

_CLASSES = {1: "pred", 8: "b8", 16: "b16", 32: "b32", 64: "b64", 128: "b128"}


class StatementEffect(MemoryEffect):
    """The effect of the statement, from the table of opcodes."""

    @classmethod
    def get_effects(cls, op: Operation) -> AbstractSet[EffectInstance]:
        from fragir.dialects.ptx.statement import Effect, effect

        assert isinstance(op, InstructionOp)
        found = effect(op.statement.data)
        reads = {EffectInstance(MemoryEffectKind.READ)}
        if found is Effect.READS:
            return reads
        return reads | {EffectInstance(MemoryEffectKind.WRITE)} if found is Effect.WRITES else set()


class StatementSpeculatable(ConditionallySpeculatable):
    """What is pure may be executed where it was not."""

    @classmethod
    def is_speculatable(cls, op: Operation) -> bool:
        from fragir.dialects.ptx.statement import Effect, effect

        assert isinstance(op, InstructionOp)
        return effect(op.statement.data) is Effect.PURE


@op_definition
class InstructionOp(QuickOperation):
    """Any instruction: a statement of PTX, in which `$0` to `$9` and so on stand for values.

    The results are numbered first, then `inputs`. A vector's registers come in braces, within
    braces as they are. Immediates, offsets of addresses, `_`, special registers and `!` of a
    predicate are written in the statement. With `if` (`unless`) it is executed only where the
    predicate holds (does not). `into` says what the results' registers hold before: what remains
    where it is not executed, the accumulators of wgmma.mma_async, or what a wait completes (then
    the statement does not name the result). Opcode, modifiers and operands are those of the table
    of opcodes, which also says what the instruction does to memory.
    """

    name = "ptx.op"
    statement = prop_def(StringAttr)
    inputs = var_operand_def(AnyAttr())
    before = var_operand_def(AnyAttr())
    predicate = opt_operand_def(i1)
    inverse = opt_operand_def(i1)
    outputs = var_result_def(AnyAttr())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(StatementEffect(), StatementSpeculatable())
    assembly_format = (
        "$statement `(` $inputs `)` (`into` `(` $before^ `:` type($before) `)`)?"
        " (`if` $predicate^)? (`unless` $inverse^)? attr-dict"
        " `:` functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        statement: str,
        inputs: Sequence[SSAValue] = (),
        results: Sequence[Attribute] = (),
        *,
        before: Sequence[SSAValue] = (),
        predicate: SSAValue | None = None,
        inverse: SSAValue | None = None,
    ):
        super().__init__(
            operands=[inputs, before, predicate, inverse],
            properties={"statement": StringAttr(statement)},
            result_types=results,
        )

    def verify_(self) -> None:
        try:
            statement = read(self.statement.data)
            self._check_places(statement)
            self._check_before(statement)
            self._check_table(statement)
        except FragirError as error:
            words = f"{error.message} ({error.hint})" if error.hint else error.message
            raise VerifyException(f"{self.name}: {words}") from error

    def _check_places(self, statement: Statement) -> None:
        results, count = len(self.outputs), len(self.outputs) + len(self.inputs)
        for place in (*statement.written, *statement.read):
            if place >= count:
                raise FragirError(
                    f"${place} stands for no value",
                    hint=f"there are {results} results and {len(self.inputs)} inputs",
                )
        for place in statement.written:
            if place >= results:
                raise FragirError(
                    f"${place} is written, and is an input", hint="the results are numbered first"
                )
        for place in statement.read:
            if place < results:
                raise FragirError(
                    f"${place} is read, and is a result", hint="inputs are numbered after them"
                )
        if len(set(statement.written)) != len(statement.written):
            raise FragirError("a result stands in one place")
        unnamed = set(range(count)) - {*statement.written, *statement.read}
        if self.before:
            unnamed -= set(range(results))
        if unnamed:
            raise FragirError(f"the statement does not name ${min(unnamed)}")

    def _check_before(self, statement: Statement) -> None:
        from fragir.ptx.opcodes.table import find_row

        if self.predicate is not None and self.inverse is not None:
            raise FragirError("it has one guard", hint="combine them with arith.andi")
        if self.before and self.before.types != self.outputs.types:
            raise FragirError("`into` gives a value for every result, of its type")
        row = find_row(statement.instruction).opcode
        if row is not None and row.accumulates and not self.before:
            raise FragirError("its result is added to", hint="give the sum so far with `into`")

    def _check_table(self, statement: Statement) -> None:
        from fragir.dialects.ptx.foreign import around, names_for
        from fragir.ptx.opcodes.legality import problem_of
        from fragir.ptx.opcodes.row import NOT_EMULATED
        from fragir.ptx.opcodes.table import OPCODES, find_row
        from fragir.universe import statement_problem

        row = find_row(statement.instruction)
        ends = "" if row.opcode is None else row.opcode.ends
        if ends in ("branch", "call", "return"):
            if ends == "branch" or around(self) is None:
                raise FragirError(
                    f"{statement.opcode} goes elsewhere", hint="say it with cf, scf or func"
                )
            return
        if row.opcode is None and NOT_EMULATED in row.problem:
            return
        wrong = problem_of(OPCODES, statement.instruction)
        if wrong is not None:
            raise FragirError(wrong[0], hint=wrong[1])
        names: list[list[str]] = []
        declared: list[str] = []
        for place, value in enumerate((*self.outputs, *self.inputs)):
            width, count = register_bits(value.type), registers(value.type)
            own = [f"${place}"] if count == 1 else [f"${place}_{i}" for i in range(count)]
            declared.append(f".reg .{_CLASSES[width]} {', '.join(own)};")
            names.append(own)
        text = f"{statement.opcode} {', '.join(statement.filled_operands(names))}"
        declarations = names_for(self, statement.symbols, " ".join(declared))
        wrong = statement_problem(text.rstrip(), declarations)
        if wrong is not None:
            raise FragirError(wrong[0], hint=wrong[1])
