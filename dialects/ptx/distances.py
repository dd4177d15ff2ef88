"""Distances in global memory that 32 bits need not hold."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import QuickOperation, op_definition
from fragir.dialects.ptx.types import GLOBAL, i64_attr


@op_definition
class OffsetWideOp(QuickOperation):
    """`pointer + index * stride` in bytes, of numbers of 64 bits: distances of 2 GiB and more.

    `mad.lo.s64`, or `add.s64` where the scale is 1. PTX ISA 9.2, section 9.7.1.4.
    """

    name = "ptx.offset_wide"
    pointer = operand_def(GLOBAL)
    index = operand_def(i64)
    stride = opt_operand_def(i64)
    scale = prop_def(IntegerAttr.constr(i64))
    result = result_def(GLOBAL)
    traits = traits_def(Pure())
    assembly_format = "$pointer `,` $index `*` $scale (`*` $stride^)? attr-dict"

    def __init__(
        self, pointer: SSAValue, index: SSAValue, scale: int = 1, stride: SSAValue | None = None
    ):
        super().__init__(
            operands=[pointer, index, stride],
            properties={"scale": i64_attr(scale)},
            result_types=[GLOBAL],
        )

    def verify_(self) -> None:
        if self.stride is not None and self.scale.value.data != 1:
            raise VerifyException("ptx.offset_wide: with a stride in bytes the scale is 1")


@op_definition
class MulWideOp(QuickOperation):
    """The product of two numbers of 32 bits in 64: `mul.wide.s32`.

    PTX ISA 9.2, section 9.7.1.3.
    """

    name = "ptx.mul_wide"
    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict"

    def __init__(self, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[lhs, rhs], result_types=[i64])
