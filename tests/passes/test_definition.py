"""Operations whose assembly format is read late are like any others."""

from __future__ import annotations

import subprocess
import sys

import pytest
from xdsl.context import Context
from xdsl.dialects import test
from xdsl.dialects.builtin import Builtin, i32
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.irdl.declarative_assembly_format import FormatProgram
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, PyRDLOpDefinitionError, VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag import Frag
from fragir.dialects.ptx import Ptx

FORMAT = "$value attr-dict `:` type($value) `->` type($result)"
OPERATIONS = [*Frag.operations, *Ptx.operations]


@op_definition
class LateOp(IRDLOperation):
    """Like EarlyOp."""

    name = "late.op"
    value = operand_def(i32)
    result = result_def()
    assembly_format = FORMAT

    def verify_(self) -> None:
        if self.value.type != self.result.type:
            raise VerifyException("late.op changes no type")


@irdl_op_definition
class EarlyOp(IRDLOperation):
    """What xDSL makes of it."""

    name = "early.op"
    value = operand_def(i32)
    result = result_def()
    assembly_format = FORMAT


def parsed(text: str) -> Operation:
    context = Context()
    for dialect in (Builtin, test.Test, Dialect("late", [LateOp]), Dialect("early", [EarlyOp])):
        context.load_dialect(dialect)
    return Parser(context, text).parse_module()


@pytest.mark.parametrize("op", OPERATIONS, ids=lambda op: op.name)
def test_every_format_can_be_read(op: type[IRDLOperation]) -> None:
    """Nothing else reads those of operations that no test prints."""
    definition = op.get_irdl_definition()
    assert definition.assembly_format == op.assembly_format
    if op.assembly_format is not None:
        assert FormatProgram.from_str(op.assembly_format, definition).stmts


def test_prints_and_parses_as_an_ordinary_operation() -> None:
    text = '%0 = "test.op"() : () -> i32\n%1 = {} %0 {{a = 1 : i32}} : i32 -> {}'
    late, early = (str(parsed(text.format(name, "i64"))) for name in ("late.op", "early.op"))
    assert late == early.replace("early", "late")
    assert "late.op %0 {a = 1 : i32} : i32 -> i64" in late


def test_verifies() -> None:
    value = test.TestOp(result_types=[i32]).results[0]
    LateOp.build(operands=[value], result_types=[i32]).verify()
    module = parsed('%0 = "test.op"() : () -> i32\n%1 = late.op %0 : i32 -> i64')
    with pytest.raises(VerifyException, match=r"late\.op changes no type"):
        module.verify()


def test_a_mistake_in_the_format_shows_at_first_use() -> None:
    @op_definition
    class WrongOp(IRDLOperation):
        name = "late.wrong"
        result = result_def(i32)
        assembly_format = "$nothing attr-dict"

    with pytest.raises(ParseError, match="nothing"):
        str(WrongOp.build(result_types=[i32]))


def test_a_format_and_a_method_are_refused() -> None:
    with pytest.raises(PyRDLOpDefinitionError, match="TwiceOp has an assembly format and a parse"):

        @op_definition
        class TwiceOp(IRDLOperation):  # pyright: ignore[reportUnusedClass] - it is not made
            name = "late.twice"
            assembly_format = "attr-dict"

            @classmethod
            def parse(cls, parser: Parser) -> TwiceOp:
                return cls()


LATE_PROGRAM = """
import sys
from fragir.compilation.program import context
from fragir.dialects.frag import Frag

known = context()
assert known.get_optional_op("frag.load").name == "frag.load"
assert "fragir.dialects.frag.sparse" not in sys.modules
assert known.get_optional_op("frag.mma_sparse").name == "frag.mma_sparse"
assert known.clone().get_optional_op("frag.mma_sparse") is known.get_op("frag.mma_sparse")
assert known.get_optional_op("frag.mma_dense") is None
assert sorted(Frag.late) == sorted(op.name for op in Frag.operations)
"""


def test_what_few_programs_have_is_imported_when_it_is_asked_for() -> None:
    subprocess.run([sys.executable, "-c", LATE_PROGRAM], check=True)


def test_other_tools_know_all_operations() -> None:
    context = Context()
    context.load_dialect(Frag)
    for name, where in Frag.late.items():
        assert context.get_op(name).__name__ == where.partition(":")[2]
