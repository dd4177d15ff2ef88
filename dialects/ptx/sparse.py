"""Sparse products at lane level: one operation an instruction."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr, VectorType, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.ptx.checks import (
    check_count,
    check_operands,
    check_scales,
    check_selector,
    known_instruction,
)
from fragir.dialects.ptx.tensor import Scales
from fragir.dialects.ptx.types import i64_attr


@op_definition
class MmaSparseOp(IRDLOperation):
    """`mma.sp`: d = a b + c by one warp; `metadata` is one register, `selector` says whose count.

    Scales as in ptx.mma. PTX ISA 9.2, section 9.7.14.6.
    """

    name = "ptx.mma_sparse"
    instruction = prop_def(StringAttr)
    a = operand_def(VectorType)
    b = operand_def(VectorType)
    c = operand_def(VectorType)
    metadata = operand_def(VectorType)
    selector = prop_def(IntegerAttr.constr(i64))
    scales = var_operand_def(VectorType)
    scale_selectors = opt_prop_def(DenseArrayBase.constr(i64))
    d = result_def(VectorType)
    # collective: not Pure, or loop-invariant code motion would take it out of control flow
    traits = traits_def(NoMemoryEffect())
    assembly_format = (
        "$instruction $a `,` $b `,` $c `,` $metadata `[` $selector `]`"
        " (`scaled` $scales^ $scale_selectors)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c) `,` type($metadata) (`,` type($scales)^)?"
        " `->` type($d)"
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
        scales: Scales | None = None,
    ):
        super().__init__(
            operands=[a, b, c, metadata, scales.registers if scales else ()],
            properties={
                "instruction": StringAttr(instruction),
                "selector": i64_attr(selector),
                "scale_selectors": scales.attribute if scales else None,
            },
            result_types=[d or c.type],
        )

    def verify_(self) -> None:
        instruction = known_instruction(self, self.instruction)
        if not instruction.family.startswith("mma.sp"):
            raise VerifyException(f"ptx.mma_sparse: {instruction.mnemonic} is no mma.sp")
        check_selector(self, instruction, self.selector)
        check_operands(self, instruction, self.a, self.b, self.c, self.d)
        check_count(self, instruction, "e", self.metadata.type)
        check_scales(self, instruction, self.scales, self.scale_selectors)
