"""Memory at lane level: pointers, loads, stores, matrix copies, asynchronous copies.

A kernel has hundreds of loads, stores and offsets. They are built by `Operation.__init__` with the
operands that are there, which is what IRDL's builder ends in and takes a third of its time.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, UnitAttr, VectorType, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    opt_result_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import QuickOperation, op_definition
from fragir.dialects.limits import is_s32
from fragir.dialects.ptx.types import GLOBAL, SHARED, PointerType, bits, i64_attr, length, registers

WIDTHS = (8, 16, 32, 64, 128)  # bits of one access (PTX ISA 9.2, section 9.7.9.8)


@op_definition
class SharedOp(QuickOperation):
    """Shared memory of the block: `bytes` of it, 1024-aligned for swizzles.

    All such operations of a kernel form one array, in order; beyond 48 KiB it is dynamic shared
    memory, which the launch must give.
    """

    name = "ptx.shared"
    bytes = prop_def(IntegerAttr.constr(i64))
    pointer = result_def(SHARED)
    traits = traits_def(Pure())
    assembly_format = "$bytes attr-dict `:` type($pointer)"

    def __init__(self, bytes: int):
        super().__init__(properties={"bytes": i64_attr(bytes)}, result_types=[SHARED])


@op_definition
class OffsetOp(QuickOperation):
    """`pointer + index * stride` in bytes; the stride is a number or a value."""

    name = "ptx.offset"
    pointer = operand_def(PointerType)
    index = operand_def(IndexType)
    stride = opt_operand_def(IndexType)
    scale = prop_def(IntegerAttr.constr(i64))
    result = result_def(PointerType)
    traits = traits_def(Pure())
    assembly_format = (
        "$pointer `,` $index `*` $scale (`*` $stride^)? attr-dict `:` type($pointer)"
        " `->` type($result)"
    )

    def __init__(
        self, pointer: SSAValue, index: SSAValue, scale: int = 1, stride: SSAValue | None = None
    ):
        super().__init__(
            operands=[pointer, index, stride],
            properties={"scale": i64_attr(scale)},
            result_types=(pointer.type,),
        )

    def verify_(self) -> None:
        if self.stride is not None and self.scale.value.data != 1:
            raise VerifyException("ptx.offset: with a stride in bytes the scale is 1")
        if self.pointer.type != self.result.type:
            raise VerifyException("ptx.offset: the pointer stays in its space")
        if not is_s32(self.scale.value.data):
            raise VerifyException(
                f"ptx.offset: {self.scale.value.data} takes more than 32 bits; "
                "ptx.offset_wide takes an i64"
            )


@op_definition
class FlipOp(QuickOperation):
    """A pointer with the bits of an index flipped, below the 1024 bytes that all shared memory is
    aligned to: as if they were flipped in the offset from where it begins.
    """

    name = "ptx.flip"
    pointer = operand_def(SHARED)
    index = operand_def(IndexType)
    result = result_def(SHARED)
    traits = traits_def(Pure())
    assembly_format = "$pointer `,` $index attr-dict"

    def __init__(self, pointer: SSAValue, index: SSAValue):
        super().__init__(operands=[pointer, index], result_types=[SHARED])


def _check_width(op: Operation, type_: Attribute) -> None:
    width = length(type_) * bits(type_)
    if width not in WIDTHS:
        raise VerifyException(f"{op.name}: {type_} has {width} bits; an access has one of {WIDTHS}")


@op_definition
class LoadOp(QuickOperation):
    """`ld`: reads a scalar or a vector of up to 16 bytes at pointer + offset.

    With `if` it reads only where the predicate holds, and is `else` elsewhere.
    PTX ISA 9.2, section 9.7.9.8.
    """

    name = "ptx.load"
    pointer = operand_def(PointerType)
    predicate = opt_operand_def(i1)
    otherwise = opt_operand_def(AnyAttr())
    offset = prop_def(IntegerAttr.constr(i64))
    value = result_def(AnyAttr())
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$pointer `[` $offset `]` (`if` $predicate^ `else` $otherwise)? attr-dict"
        " `:` type($pointer) (`,` type($otherwise)^)? `->` type($value)"
    )

    def __init__(
        self,
        pointer: SSAValue,
        offset: int,
        type_: Attribute,
        predicate: SSAValue | None = None,
        otherwise: SSAValue | None = None,
    ):
        super().__init__(
            operands=[pointer, predicate, otherwise],
            properties={"offset": i64_attr(offset)},
            result_types=[type_],
        )

    def verify_(self) -> None:
        _check_width(self, self.value.type)
        if (self.predicate is None) != (self.otherwise is None):
            raise VerifyException("ptx.load: `if` and `else` go together")
        if self.otherwise is not None and self.otherwise.type != self.value.type:
            raise VerifyException("ptx.load: `else` has the type that is loaded")


@op_definition
class StoreOp(QuickOperation):
    """`st`: writes a scalar or a vector of up to 16 bytes, where the predicate holds.

    PTX ISA 9.2, section 9.7.9.11.
    """

    name = "ptx.store"
    value = operand_def(AnyAttr())
    pointer = operand_def(PointerType)
    predicate = opt_operand_def(i1)
    offset = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $pointer `[` $offset `]` (`if` $predicate^)? attr-dict"
        " `:` type($value) `,` type($pointer)"
    )

    def __init__(
        self, value: SSAValue, pointer: SSAValue, offset: int, predicate: SSAValue | None = None
    ):
        super().__init__(
            operands=[value, pointer, predicate],
            properties={"offset": i64_attr(offset)},
        )

    def verify_(self) -> None:
        _check_width(self, self.value.type)


@op_definition
class LdmatrixOp(QuickOperation):
    """`ldmatrix.m8n8`: one 8x8 matrix of 16-bit elements a result register.

    PTX ISA 9.2, section 9.7.14.5.15.
    """

    name = "ptx.ldmatrix"
    pointer = operand_def(SHARED)
    offset = prop_def(IntegerAttr.constr(i64))
    transposed = opt_prop_def(UnitAttr)
    value = result_def(VectorType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = (
        "$pointer `[` $offset `]` (`transposed` $transposed^)? attr-dict `:` type($value)"
    )

    def __init__(self, pointer: SSAValue, offset: int, type_: VectorType, transposed: bool):
        super().__init__(
            operands=[pointer],
            properties={
                "offset": i64_attr(offset),
                "transposed": UnitAttr() if transposed else None,
            },
            result_types=[type_],
        )

    def verify_(self) -> None:
        if registers(self.value.type) not in (1, 2, 4):
            raise VerifyException("ptx.ldmatrix loads 1, 2 or 4 registers")


@op_definition
class StmatrixOp(QuickOperation):
    """`stmatrix.m8n8`: writes one 8x8 matrix of 16-bit elements from every register (sm_90).

    PTX ISA 9.2, section 9.7.14.5.16.
    """

    name = "ptx.stmatrix"
    value = operand_def(VectorType)
    pointer = operand_def(SHARED)
    offset = prop_def(IntegerAttr.constr(i64))
    transposed = opt_prop_def(UnitAttr)
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$value `,` $pointer `[` $offset `]` (`transposed` $transposed^)? attr-dict"
        " `:` type($value)"
    )

    def __init__(self, value: SSAValue, pointer: SSAValue, offset: int, transposed: bool):
        super().__init__(
            operands=[value, pointer],
            properties={
                "offset": i64_attr(offset),
                "transposed": UnitAttr() if transposed else None,
            },
        )

    def verify_(self) -> None:
        if registers(self.value.type) not in (1, 2, 4):
            raise VerifyException("ptx.stmatrix stores 1, 2 or 4 registers")


@op_definition
class CpAsyncOp(QuickOperation):
    """`cp.async`: copies `bytes` (4, 8 or 16) from global to shared memory in the background.

    With `if`, where the predicate does not hold the target is filled with zeros.
    PTX ISA 9.2, section 9.7.9.25.3.
    """

    name = "ptx.cp_async"
    target = operand_def(SHARED)
    source = operand_def(PointerType)
    predicate = opt_operand_def(i1)
    target_offset = prop_def(IntegerAttr.constr(i64))
    source_offset = prop_def(IntegerAttr.constr(i64))
    bytes = prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "$target `[` $target_offset `]` `,` $source `[` $source_offset `]` `,` $bytes"
        " (`if` $predicate^)? attr-dict `:` type($source)"
    )

    def __init__(
        self,
        target: SSAValue,
        target_offset: int,
        source: SSAValue,
        source_offset: int,
        bytes: int,
        predicate: SSAValue | None = None,
    ):
        super().__init__(
            operands=[target, source, predicate],
            properties={
                "target_offset": i64_attr(target_offset),
                "source_offset": i64_attr(source_offset),
                "bytes": i64_attr(bytes),
            },
        )

    def verify_(self) -> None:
        if self.bytes.value.data not in (4, 8, 16):
            raise VerifyException("ptx.cp_async copies 4, 8 or 16 bytes")


@op_definition
class SyncOp(QuickOperation):
    """An instruction that orders memory or threads and has no operands but one number.

    `ptx.sync "cp.async.wait_group", 1`, `ptx.sync "bar.sync", 0`, `ptx.sync "fence.proxy.async"`.
    """

    name = "ptx.sync"
    instruction = prop_def(StringAttr)
    number = opt_prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$instruction (`,` $number^)? attr-dict"

    def __init__(self, instruction: str, number: int | None = None):
        super().__init__(
            properties={
                "instruction": StringAttr(instruction),
                "number": None if number is None else i64_attr(number),
            }
        )

    def verify_(self) -> None:
        if self.instruction.data not in SYNCS:
            raise VerifyException(
                f"ptx.sync: '{self.instruction.data}' is none of {', '.join(SYNCS)}"
            )
        if (self.number is None) == SYNCS[self.instruction.data]:
            raise VerifyException(
                f"ptx.sync: {self.instruction.data} takes "
                f"{'a' if SYNCS[self.instruction.data] else 'no'} number"
            )


# instruction -> whether a number follows
SYNCS: dict[str, bool] = {
    "bar.sync": True,
    "bar.warp.sync": True,
    "barrier.cluster.arrive.aligned": False,
    "barrier.cluster.wait.aligned": False,
    "cp.async.bulk.commit_group": False,
    "cp.async.bulk.wait_group": True,
    "cp.async.bulk.wait_group.read": True,
    "cp.async.commit_group": False,
    "cp.async.wait_group": True,
    "cp.async.wait_all": False,
    "fence.proxy.async": False,
    "fence.proxy.async.shared::cta": False,
    "membar.cta": False,
    "wgmma.fence.sync.aligned": False,
    "wgmma.commit_group.sync.aligned": False,
    "wgmma.wait_group.sync.aligned": True,
}


# -- atomic ----------------------------------------------------------------------------------------
# Atomic operations on memory at lane level.

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


# -- distances -------------------------------------------------------------------------------------
# Distances in global memory that 32 bits need not hold.


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
