"""Registers of other lanes: shuffles, and matrices that are transposed across a warp."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, VectorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import AnyAttr, IRDLOperation, operand_def, prop_def, result_def, traits_def
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.ptx.types import bits, i64_attr, length


@op_definition
class ShuffleOp(IRDLOperation):
    """`shfl.sync.idx.b32`: every register of `value` as the lane `source` holds it.

    All 32 lanes take part. PTX ISA 9.2, section 9.7.9.6.
    """

    name = "ptx.shuffle"
    value = operand_def(AnyAttr())
    source = operand_def(IndexType)
    result = result_def(AnyAttr())
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$value `,` $source attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, source: SSAValue):
        super().__init__(operands=[value, source], result_types=[value.type])

    def verify_(self) -> None:
        if (
            self.value.type != self.result.type
            or bits(self.value.type) * length(self.value.type) % 32
        ):
            raise VerifyException("ptx.shuffle moves whole 32-bit registers")


@op_definition
class ShuffleXorOp(IRDLOperation):
    """`shfl.sync.bfly.b32`: every register of `value` as the lane `lane ^ mask` holds it.

    All 32 lanes take part; a 64-bit register goes in two halves. PTX ISA 9.2, section 9.7.9.6.
    """

    name = "ptx.shuffle_xor"
    value = operand_def(AnyAttr())
    mask = prop_def(IntegerAttr.constr(i64))
    result = result_def(AnyAttr())
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$value `xor` $mask attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue, mask: int):
        super().__init__(
            operands=[value], properties={"mask": i64_attr(mask)}, result_types=[value.type]
        )

    def verify_(self) -> None:
        if not 0 < self.mask.value.data < 32:
            raise VerifyException("ptx.shuffle_xor takes a mask of 1 to 31")
        if (
            self.value.type != self.result.type
            or bits(self.value.type) * length(self.value.type) % 32
        ):
            raise VerifyException("ptx.shuffle_xor moves whole 32-bit registers")


@op_definition
class MovmatrixOp(IRDLOperation):
    """`movmatrix.m8n8.trans.b16`: transposes the 8x8 matrix in each register.

    PTX ISA 9.2, section 9.7.14.5.17.
    """

    name = "ptx.movmatrix"
    value = operand_def(VectorType)
    result = result_def(VectorType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"

    def __init__(self, value: SSAValue):
        super().__init__(operands=[value], result_types=[value.type])
