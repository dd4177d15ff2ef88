"""Atomic operations on memory at lane level."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_result_def,
    prop_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.ptx.types import PointerType, bits, i64_attr, length

#: What follows the space of `red` and `atom`, and how many bits one access has.
INSTRUCTIONS: dict[str, int] = {
    **{"add.f32": 32, "add.v2.f32": 64, "add.v4.f32": 128, "add.f64": 64},
    **{f"add.noftz.{half}{pair}": 16 + 16 * bool(pair)
       for half in ("f16", "bf16") for pair in ("", "x2")},
    **{f"{word}.{type_}": 32 for word in ("add", "min", "max") for type_ in ("s32", "u32")},
    **{f"{word}.b32": 32 for word in ("and", "or", "xor", "exch", "cas")},
    **{f"{word}.b64": 64 for word in ("and", "or", "xor", "exch", "cas")},
    "add.u64": 64, "min.s64": 64, "max.s64": 64,
}  # fmt: skip


@op_definition
class AtomicOp(IRDLOperation):
    """`red`, or `atom` where the old value is wanted: changes memory at pointer + offset at once.

    With `if` it does so only where the predicate holds; the old value is zero elsewhere. `cas`
    writes where memory holds `expected`. Relaxed, at the scope of the GPU. PTX ISA 9.2, sections
    9.7.13.12 and 9.7.13.13.
    """

    name = "ptx.atomic"
    value = operand_def(AnyAttr())
    pointer = operand_def(PointerType)
    expected = opt_operand_def(AnyAttr())
    predicate = opt_operand_def(i1)
    instruction = prop_def(StringAttr)
    offset = prop_def(IntegerAttr.constr(i64))
    old = opt_result_def(AnyAttr())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$instruction $value `,` $pointer `[` $offset `]` (`expected` $expected^)?"
        " (`if` $predicate^)? attr-dict `:` type($value) `,` type($pointer)"
        " (`expected` type($expected)^)? (`->` type($old)^)?"
    )

    def __init__(
        self,
        instruction: str,
        value: SSAValue | Operation,
        pointer: SSAValue | Operation,
        offset: int,
        *,
        expected: SSAValue | None = None,
        predicate: SSAValue | None = None,
        old: Attribute | None = None,
    ):
        super().__init__(
            operands=[value, pointer, expected, predicate],
            properties={"instruction": StringAttr(instruction), "offset": i64_attr(offset)},
            result_types=[old],
        )

    def verify_(self) -> None:
        word, type_ = self.instruction.data, self.value.type
        if word not in INSTRUCTIONS:
            raise VerifyException(f"ptx.atomic: '{word}' is none of {', '.join(INSTRUCTIONS)}")
        if length(type_) * bits(type_) != INSTRUCTIONS[word]:
            raise VerifyException(
                f"ptx.atomic: {word} takes {INSTRUCTIONS[word]} bits, not {type_}"
            )
        if (self.expected is not None) != word.startswith("cas"):
            raise VerifyException("ptx.atomic: `expected` goes with cas")
        for other in (self.expected, self.old):
            if other is not None and other.type != type_:
                raise VerifyException("ptx.atomic: memory has one type, that of the value")
