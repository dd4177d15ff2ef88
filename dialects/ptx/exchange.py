"""What conversions of layouts are made of: registers of other lanes, bytes of registers, barriers.

Shuffles and permutes, matrices that are transposed across a warp, and a wait of some warps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr, VectorType, i64
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AnyAttr,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import QuickOperation, op_definition
from fragir.dialects.ptx.types import bits, i64_attr, length, register_bits, scalar_type


@op_definition
class ShuffleOp(QuickOperation):
    """`shfl.sync.idx.b32`: every register of `value` as the lane `source` holds it.

    With `keeping` a mask, the bits of the lane's own number that it has, and those of `source` that
    it has not, name the lane. All 32 lanes take part. PTX ISA 9.2, section 9.7.9.6.
    """

    name = "ptx.shuffle"
    value = operand_def(AnyAttr())
    source = operand_def(IndexType)
    keeping = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(AnyAttr())
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$value `,` $source (`keeping` $keeping^)? attr-dict `:` type($value) `->` type($result)"
    )

    def __init__(self, value: SSAValue, source: SSAValue, keeping: int = 0):
        super().__init__(
            operands=[value, source],
            properties={"keeping": i64_attr(keeping) if keeping else None},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        if self.keeping is not None and not 0 < self.keeping.value.data < 32:
            raise VerifyException("ptx.shuffle keeps bits of a mask of 1 to 31")
        if (
            self.value.type != self.result.type
            or bits(self.value.type) * length(self.value.type) % 32
        ):
            raise VerifyException("ptx.shuffle moves whole 32-bit registers")


@op_definition
class ShuffleXorOp(QuickOperation):
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
class MovmatrixOp(QuickOperation):
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


@op_definition
class PermuteOp(QuickOperation):
    """`prmt.b32`: each byte of a register is the one of (lhs, rhs) that a nibble names.

    Nibble i of the selector is the place of byte i among the eight bytes, those of `lhs` first;
    the selector may differ from lane to lane. Of vectors, every pair of registers is permuted.
    PTX ISA 9.2, section 9.7.9.7.
    """

    name = "ptx.permute"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    selector = operand_def(IndexType)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs `,` $selector attr-dict `:` type($lhs)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue, selector: SSAValue):
        super().__init__(operands=[lhs, rhs, selector], result_types=[lhs.type])

    def verify_(self) -> None:
        if bits(self.lhs.type) * length(self.lhs.type) % 32 or register_bits(self.lhs.type) != 32:
            raise VerifyException("ptx.permute takes whole 32-bit registers")


@op_definition
class NibblesOp(QuickOperation):
    """Elements of four bits in another order: the i-th of the result is `order[i]` of the source.

    A `ptx.cvt` to floats takes the source as it is, in that order, at no cost; who else wants the
    result pays two or three instructions an element.
    """

    name = "ptx.nibbles"
    source = operand_def(VectorType)
    order = prop_def(DenseArrayBase.constr(i64))
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$source `in` $order attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, order: Sequence[int]):
        super().__init__(
            operands=[source],
            properties={"order": DenseArrayBase.from_list(i64, order)},
            result_types=[VectorType(scalar_type(source.type), [len(order)])],
        )

    @property
    def picked(self) -> tuple[int, ...]:
        """`order` as numbers."""
        return tuple(int(i) for i in self.order.get_values())

    def verify_(self) -> None:
        if scalar_type(self.source.type) != scalar_type(self.result.type):
            raise VerifyException("ptx.nibbles: source and result hold elements of one type")
        if bits(self.source.type) != 4:
            raise VerifyException("ptx.nibbles takes elements of four bits")
        count = length(self.source.type)
        if len(self.picked) != length(self.result.type):
            raise VerifyException("ptx.nibbles: the order has a number for each element")
        if any(not 0 <= i < count for i in self.picked):
            raise VerifyException(f"ptx.nibbles: {self.source.type} has elements 0 to {count - 1}")


@op_definition
class NamedBarrierOp(QuickOperation):
    """`bar.sync`: waits at barrier `number` (0 to 15) until `threads` threads of the block do.

    Whole warps take part; their threads all give the same number. PTX ISA 9.2, section 9.7.13.1.
    """

    name = "ptx.barrier"
    number = operand_def(IndexType)
    threads = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$number `,` $threads attr-dict"

    def __init__(self, number: SSAValue, threads: int):
        super().__init__(operands=[number], properties={"threads": i64_attr(threads)})

    def verify_(self) -> None:
        threads = self.threads.value.data
        if threads <= 0 or threads % 32:
            raise VerifyException(f"ptx.barrier: {threads} threads are no whole warps")
