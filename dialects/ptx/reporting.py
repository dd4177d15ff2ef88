"""What a lane tells whoever launched the kernel: printf, and failed assertions."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, f64, i1, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    eq,
    opt_operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.ptx.types import i64_attr

_PRINTED = (i32, i64, f64, IndexType())


@op_definition
class PrintfOp(IRDLOperation):
    """Prints values by a format of C's printf: `vprintf`, which the driver has.

    With `if` it does so only where the predicate holds. Indices are 32-bit numbers (`%d`). CUDA C++
    Programming Guide, "Formatted Output".
    """

    name = "ptx.printf"
    values = var_operand_def(AnyAttr())
    predicate = opt_operand_def(i1)
    format = prop_def(StringAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$format (`,` $values^)? (`if` $predicate^)? attr-dict (`:` type($values)^)?"

    def __init__(
        self,
        format: str,
        values: Sequence[SSAValue | Operation] = (),
        predicate: SSAValue | None = None,
    ):
        super().__init__(operands=[values, predicate], properties={"format": StringAttr(format)})

    def verify_(self) -> None:
        for value in self.values:
            if value.type not in _PRINTED:
                raise VerifyException(
                    f"ptx.printf: printf takes i32, i64, f64 and index, not {value.type}"
                )


@op_definition
class AssertFailOp(IRDLOperation):
    """Ends the launch with an error: `__assertfail`, which the driver has.

    The error names the message and a place in a program, `line` of `file`.
    """

    name = "ptx.assert_fail"
    message = prop_def(StringAttr)
    file = prop_def(StringAttr)
    line = prop_def(IntegerAttr.constr(eq(i64)))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$message `at` $file $line attr-dict"

    def __init__(self, message: str, file: str, line: int):
        super().__init__(
            properties={
                "message": StringAttr(message),
                "file": StringAttr(file),
                "line": i64_attr(line),
            }
        )
