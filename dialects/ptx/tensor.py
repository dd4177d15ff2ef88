"""The tensor cores at lane level: mma.sync and wgmma, one operation an instruction."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, StringAttr, VectorType, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    BaseAttr,
    EqAttrConstraint,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.elements import element_name
from fragir.dialects.narrow import is_vector
from fragir.dialects.ptx.types import SHARED, i64_attr, registers, scalar_type
from fragir.errors import FragirError


def _instruction(op: MmaOp | WgmmaOp) -> isa.Instruction:
    try:
        instruction = isa.lookup(op.instruction.data)
    except FragirError as error:
        raise VerifyException(f"{op.name}: {error}") from error
    if instruction.refused:
        raise VerifyException(f"{op.name}: {instruction.mnemonic}: {instruction.refused}")
    return instruction


def _check(op: MmaOp | WgmmaOp, instruction: isa.Instruction, name: str, type_: Attribute) -> None:
    operand = instruction.operands[name]
    found, wanted = registers(type_), operand.registers.count
    if found != wanted:
        raise VerifyException(
            f"{op.name}: {name} has {found} registers ({type_}), {instruction.mnemonic} takes "
            f"{wanted}"
        )
    if element_name(scalar_type(type_)) != operand.element:
        raise VerifyException(
            f"{op.name}: {name} holds {element_name(scalar_type(type_))}, "
            f"{instruction.mnemonic} takes {operand.element}"
        )


@irdl_op_definition
class MmaOp(IRDLOperation):
    """`mma.sync`: d = a b + c by one warp. PTX ISA 9.2, section 9.7.14.5."""

    name = "ptx.mma"
    instruction = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = operand_def(VectorType)
    d = result_def(VectorType)
    # collective: not Pure, or loop-invariant code motion would take it out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$instruction $a `,` $b `,` $c attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `->` type($d)"
    )

    def __init__(
        self, instruction: str, a: SSAValue, b: SSAValue, c: SSAValue, d: Attribute | None = None
    ):
        super().__init__(
            operands=[a, b, c],
            properties={"instruction": StringAttr(instruction)},
            result_types=[d or c.type],
        )

    def verify_(self) -> None:
        instruction = _instruction(self)
        if not instruction.family.startswith("mma"):
            raise VerifyException(f"ptx.mma: {instruction.mnemonic} is no mma.sync")
        if instruction.family != "mma" or "sfa" in instruction.operands:
            raise VerifyException(
                f"ptx.mma: {instruction.mnemonic} takes more than a, b and c: sparse products are "
                "ptx.mma_sparse, block scales have no operation yet"
            )
        types = zip("abcd", (*self.operand_types, self.d.type), strict=True)
        for name, type_ in types:
            _check(self, instruction, name, type_)


@irdl_op_definition
class WgmmaOp(IRDLOperation):
    """`wgmma.mma_async`: d = a b + c by a warpgroup, in the background.

    a is a vector of registers or a descriptor (i64), b a descriptor. c and d are tied: one set of
    registers, read and written in place, not to be touched before wgmma.wait_group. Without c the
    product alone is formed (scale-d = 0); with `if`, c counts only where the predicate holds.
    PTX ISA 9.2, section 9.7.15.5.
    """

    name = "ptx.wgmma"
    instruction = prop_def(StringAttr)
    a = operand_def(BaseAttr(VectorType) | EqAttrConstraint(i64))
    b = operand_def(i64)
    c = operand_def(VectorType)
    scale_d = opt_operand_def(i1)
    a_major = prop_def(StringAttr)
    b_major = prop_def(StringAttr)
    d = result_def(VectorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$instruction $a $a_major `,` $b $b_major `,` $c (`if` $scale_d^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `->` type($d)"
    )

    def __init__(
        self,
        instruction: str,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        *,
        scale_d: SSAValue | None = None,
        a_major: str = "k",
        b_major: str = "k",
    ):
        super().__init__(
            operands=[a, b, c, scale_d],
            properties={
                "instruction": StringAttr(instruction),
                "a_major": StringAttr(a_major),
                "b_major": StringAttr(b_major),
            },
            result_types=[c.type],
        )

    def verify_(self) -> None:
        instruction = _instruction(self)
        if instruction.family != "wgmma":
            raise VerifyException(f"ptx.wgmma: {instruction.mnemonic} is no wgmma")
        if is_vector(self.a.type):
            _check(self, instruction, "a", self.a.type)
        _check(self, instruction, "d", self.d.type)
        if self.c.type != self.d.type:
            raise VerifyException("ptx.wgmma: c and d are one set of registers, of one type")
        for name, major in (("a", self.a_major.data), ("b", self.b_major.data)):
            if major not in ("k", "mn"):
                raise VerifyException(f'ptx.wgmma: {name} is "k" or "mn" major, not {major!r}')
        if instruction.types.a not in ("f16", "bf16") and "mn" in (
            self.a_major.data,
            self.b_major.data,
        ):
            raise VerifyException("ptx.wgmma: only f16 and bf16 can be MN-major in shared memory")


@irdl_op_definition
class WgmmaWaitOp(IRDLOperation):
    """`wgmma.wait_group`: at most `pending` groups are still under way.

    The accumulators pass through it (tied, like c and d of ptx.wgmma), so that every use of what
    it completes comes after the wait. PTX ISA 9.2, section 9.7.15.7.2.
    """

    name = "ptx.wgmma_wait"
    accumulators = var_operand_def(VectorType)
    pending = prop_def(IntegerAttr.constr(i64))
    completed = var_result_def(VectorType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$pending `,` $accumulators attr-dict `:` type($accumulators) `->` type($completed)"
    )

    def __init__(self, pending: int, accumulators: Sequence[SSAValue]):
        super().__init__(
            operands=[accumulators],
            properties={"pending": i64_attr(pending)},
            result_types=[[value.type for value in accumulators]],
        )

    def verify_(self) -> None:
        if self.accumulators.types != self.completed.types:
            raise VerifyException("ptx.wgmma_wait passes its accumulators through, types unchanged")


@irdl_op_definition
class DescriptorOp(IRDLOperation):
    """A wgmma shared-memory descriptor: the constant fields `fields` and a start address.

    PTX ISA 9.2, section 9.7.15.5.1.2.
    """

    name = "ptx.descriptor"
    address = operand_def(SHARED)
    fields = prop_def(IntegerAttr.constr(i64))
    result = result_def(i64)
    traits = traits_def(Pure())
    assembly_format = "$address `,` $fields attr-dict"

    def __init__(self, address: SSAValue, fields: int):
        super().__init__(
            operands=[address],
            # a 64-bit pattern, kept as the signed number of the same bits
            properties={"fields": IntegerAttr(fields - (fields >> 63 << 64), i64)},
            result_types=[i64],
        )
