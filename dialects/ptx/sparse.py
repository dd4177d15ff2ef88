"""Sparse products at lane level: one operation an instruction."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, VectorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.ptx.types import registers
from fragir.errors import FragirError


@irdl_op_definition
class MmaSparseOp(IRDLOperation):
    """`mma.sp`: d = a b + c by one warp; `metadata` is one register, `selector` says whose count.

    PTX ISA 9.2, section 9.7.14.6.
    """

    name = "ptx.mma_sparse"
    instruction = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = operand_def(VectorType)
    metadata = operand_def(VectorType)
    selector = prop_def(IntegerAttr.constr(i64))
    d = result_def(VectorType)
    # collective: not Pure, or loop-invariant code motion would take it out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$instruction $a `,` $b `,` $c `,` $metadata `[` $selector `]` attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `,` type($metadata) `->` type($d)"
    )

    def __init__(
        self,
        instruction: str,
        a: SSAValue,
        b: SSAValue,
        c: SSAValue,
        metadata: SSAValue,
        selector: int = 0,
        d: Attribute | None = None,
    ):
        super().__init__(
            operands=[a, b, c, metadata],
            properties={
                "instruction": StringAttr(instruction),
                "selector": IntegerAttr(selector, i64),
            },
            result_types=[d or c.type],
        )

    def verify_(self) -> None:
        try:
            instruction = isa.lookup(self.instruction.data)
        except FragirError as error:
            raise VerifyException(f"ptx.mma_sparse: {error}") from error
        if not instruction.family.startswith("mma.sp") or "sfa" in instruction.operands:
            raise VerifyException(f"ptx.mma_sparse: {instruction.mnemonic} is no mma.sp")
        if self.selector.value.data not in instruction.selectors:
            raise VerifyException(
                f"ptx.mma_sparse: the selector is one of {instruction.selectors}, not "
                f"{self.selector.value.data}"
            )
        types = (*self.operand_types, self.d.type)
        for name, type_ in zip("abced", types, strict=True):
            found, wanted = registers(type_), instruction.operands[name].registers.count
            if found != wanted:
                raise VerifyException(
                    f"ptx.mma_sparse: {name} has {found} registers ({type_}), "
                    f"{instruction.mnemonic} takes {wanted}"
                )
