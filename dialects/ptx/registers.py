"""Registers at lane level: special registers, and naming parts of register vectors.

slice, concat, splat and bitcast cost nothing where whole registers are meant; pack and unpack
move 8- and 16-bit elements between registers of their own and packed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    StringAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AnyAttr,
    BaseAttr,
    VarConstraint,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import NoMemoryEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import QuickOperation, op_definition
from fragir.dialects.elements import element_name
from fragir.dialects.ptx.types import (
    bits,
    i64_attr,
    length,
    register_bits,
    registers,
    scalar_type,
    vector_type,
)

ORDERED_CASTS = ("f16", "bf16", "f32", "tf32")
"""What `ptx.cvt` makes of s4 and u4 in any order."""
CAST_RULES = tuple("sitofp uitofp fptosi fptoui extsi extui trunci index_cast".split())
"""Casts of arith that take no vectors in xDSL: `ptx.cvt ... as` one of them does."""
SPECIALS = (
    *("tid.x", "tid.y", "tid.z", "ctaid.x", "ctaid.y", "ctaid.z"),
    *("nctaid.x", "nctaid.y", "nctaid.z", "laneid", "cluster_ctarank"),
)


@op_definition
class SpecialOp(QuickOperation):
    """A special register (PTX ISA 9.2, section 10), such as `ptx.special "tid.x"`."""

    name = "ptx.special"
    register = prop_def(StringAttr)
    value = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$register attr-dict"

    def __init__(self, register: str):
        super().__init__(properties={"register": StringAttr(register)}, result_types=[IndexType()])

    def verify_(self) -> None:
        if self.register.data not in SPECIALS:
            raise VerifyException(
                f"ptx.special: '{self.register.data}' is none of {', '.join(SPECIALS)}"
            )


@op_definition
class ZeroOp(QuickOperation):
    """All bits zero, of any type: also of those that arith.constant has no literals for."""

    name = "ptx.zero"
    value = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($value)"

    def __init__(self, type_: Attribute):
        super().__init__(result_types=[type_])


@op_definition
class SliceOp(QuickOperation):
    """Whole registers of a vector: its elements from `first` on, as many as the result has.

    The last register of a vector may not be full.
    """

    name = "ptx.slice"
    source = operand_def(VectorType)
    first = prop_def(IntegerAttr.constr(i64))
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "$source `[` $first `]` attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, first: int, result: Attribute):
        super().__init__(
            operands=[source],
            properties={"first": i64_attr(first)},
            result_types=[result],
        )

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        if scalar_type(source) != scalar_type(result):
            raise VerifyException("ptx.slice: source and result hold elements of one type")
        first, width = self.first.value.data, bits(source)
        if first < 0 or first + length(result) > length(source):
            raise VerifyException(f"ptx.slice: {source} has no elements {first}..")
        partial = length(result) * width % 32 and first + length(result) != length(source)
        if width < 32 and (first * width % 32 or partial):
            raise VerifyException("ptx.slice takes whole registers; ptx.unpack splits them")


@op_definition
class ConcatOp(QuickOperation):
    """The registers of several values, one after the other."""

    name = "ptx.concat"
    parts = var_operand_def(AnyAttr())
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$parts attr-dict `:` type($parts) `->` type($result)"

    def __init__(self, parts: Sequence[SSAValue]):
        scalar = scalar_type(parts[0].type)
        total = sum(length(part.type) for part in parts)
        super().__init__(operands=[parts], result_types=[VectorType(scalar, [total])])

    def verify_(self) -> None:
        scalar = scalar_type(self.result.type)
        if any(scalar_type(part.type) != scalar for part in self.parts):
            raise VerifyException("ptx.concat: all parts hold elements of the result's type")
        if sum(length(part.type) for part in self.parts) != length(self.result.type):
            raise VerifyException("ptx.concat: the parts do not add up to the result")
        if bits(scalar) < 32 and any(length(p.type) * bits(scalar) % 32 for p in self.parts):
            raise VerifyException("ptx.concat takes whole registers; ptx.pack fills them")


@op_definition
class SplatOp(QuickOperation):
    """A vector whose elements are all one scalar."""

    name = "ptx.splat"
    scalar = operand_def(AnyAttr())
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$scalar attr-dict `:` type($scalar) `->` type($result)"

    def __init__(self, scalar: SSAValue, count: int):
        super().__init__(operands=[scalar], result_types=[VectorType(scalar.type, [count])])

    def verify_(self) -> None:
        if self.scalar.type != scalar_type(self.result.type):
            raise VerifyException("ptx.splat: the vector holds elements of the scalar's type")


@op_definition
class PackOp(QuickOperation):
    """A vector from scalars, the first in the lowest bits."""

    name = "ptx.pack"
    scalars = var_operand_def(AnyAttr())
    result = result_def(VectorType)
    traits = traits_def(Pure())
    assembly_format = "$scalars attr-dict `:` type($scalars) `->` type($result)"

    def __init__(self, scalars: Sequence[SSAValue]):
        super().__init__(
            operands=[scalars], result_types=[vector_type(scalars[0].type, len(scalars))]
        )

    def verify_(self) -> None:
        element = scalar_type(self.result.type)
        if any(s.type != element for s in self.scalars):
            raise VerifyException("ptx.pack: all scalars have the vector's element type")
        if len(self.scalars) != length(self.result.type):
            raise VerifyException("ptx.pack: one scalar for every element")


@op_definition
class UnpackOp(QuickOperation):
    """The elements of a vector as scalars."""

    name = "ptx.unpack"
    source = operand_def(VectorType)
    scalars = var_result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($scalars)"

    def __init__(self, source: SSAValue):
        scalar = scalar_type(source.type)
        super().__init__(operands=[source], result_types=[scalar] * length(source.type))

    def verify_(self) -> None:
        element = scalar_type(self.source.type)
        if any(s.type != element for s in self.scalars):
            raise VerifyException("ptx.unpack: all scalars have the vector's element type")
        if len(self.scalars) != length(self.source.type):
            raise VerifyException("ptx.unpack: one scalar for every element")


@op_definition
class BitcastOp(QuickOperation):
    """The same registers, read as another type that fills as many.

    What a vector leaves of its last register is not said. A 64-bit register becomes two of 32
    bits, the low half first, and back (`mov.b64`, which takes no time).
    """

    name = "ptx.bitcast"
    source = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = "$source attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, result: Attribute):
        super().__init__(operands=[source], result_types=[result])

    def verify_(self) -> None:
        source, result = self.source.type, self.result.type
        if registers(source) * register_bits(source) != registers(result) * register_bits(result):
            raise VerifyException(f"ptx.bitcast: {source} and {result} differ in size")


@op_definition
class CopyOp(QuickOperation):
    """The same value in registers of its own, which an instruction may then update in place."""

    name = "ptx.copy"
    _T: ClassVar = VarConstraint("T", AnyAttr())
    source = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$source attr-dict `:` type($source)"

    def __init__(self, source: SSAValue):
        super().__init__(operands=[source], result_types=[source.type])


@op_definition
class CvtOp(QuickOperation):
    """`cvt`: every element as another type, rounded to nearest even; to integers towards zero.

    f32 to tf32 rounds to nearest, ties away (`cvt.rna`). PTX ISA 9.2, section 9.7.9.22.
    `as` an operation of arith, integers have the sign that this one gives them. With an `order` the
    i-th element of the result is element `order[i]` of a vector of s4 or u4: they are unpacked two
    at a time, wherever they are.
    """

    name = "ptx.cvt"
    source = operand_def(AnyAttr())
    rule = opt_prop_def(StringAttr)
    order = opt_prop_def(DenseArrayBase.constr(i64))
    result = result_def(AnyAttr())
    traits = traits_def(Pure())
    assembly_format = (
        "$source (`as` $rule^)? (`in` $order^)? attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        result: Attribute,
        order: Sequence[int] | None = None,
        rule: str | None = None,
    ):
        given = None if order is None else DenseArrayBase.from_list(i64, order)
        named = None if rule is None else StringAttr(rule)
        super().__init__(
            operands=[source], properties={"rule": named, "order": given}, result_types=[result]
        )

    @property
    def cast(self) -> str | None:
        """The operation of arith that it stands for, as `arith.sitofp`."""
        return None if self.rule is None else f"arith.{self.rule.data}"

    @property
    def picked(self) -> tuple[int, ...] | None:
        """`order` as numbers."""
        if self.order is None:
            return None
        return tuple(int(i) for i in self.order.get_values())

    def verify_(self) -> None:
        picked = self.picked
        if self.rule is not None and (picked is not None or self.rule.data not in CAST_RULES):
            raise VerifyException(f"ptx.cvt is `as` one of {', '.join(CAST_RULES)}, in no order")
        if picked is not None:
            first, second = (element_name(scalar_type(v.type)) for v in (self.source, self.result))
            if first not in ("s4", "u4") or second not in ORDERED_CASTS:
                raise VerifyException("ptx.cvt in an order is from s4 or u4 to f16, bf16 or f32")
            if len(picked) != length(self.result.type):
                raise VerifyException("ptx.cvt: the order has a number for each element")
            if any(not 0 <= i < length(self.source.type) for i in picked):
                raise VerifyException(f"ptx.cvt: the order names elements of {self.source.type}")
            return
        if length(self.source.type) != length(self.result.type):
            raise VerifyException("ptx.cvt: source and result have as many elements")


@op_definition
class CompareOp(QuickOperation):
    """`setp`: compares every element of two vectors. (arith.cmpi and cmpf give one i1 only.)

    The relation is one of arith.cmpi for integers, of arith.cmpf for floats.
    PTX ISA 9.2, section 9.7.6.2.
    """

    name = "ptx.compare"
    _T: ClassVar = VarConstraint("T", BaseAttr(VectorType))
    relation = prop_def(StringAttr)
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(VectorType.constr(i1))
    traits = traits_def(Pure())
    assembly_format = "$relation $lhs `,` $rhs attr-dict `:` type($lhs) `->` type($result)"

    def __init__(self, relation: str, lhs: SSAValue, rhs: SSAValue):
        super().__init__(
            operands=[lhs, rhs],
            properties={"relation": StringAttr(relation)},
            result_types=[VectorType(i1, [length(lhs.type)])],
        )

    @property
    def number(self) -> int:
        """The relation's number among those of arith.cmpi or arith.cmpf."""
        return self._relations().index(self.relation.data)

    def _relations(self) -> list[str]:
        floats = isinstance(scalar_type(self.lhs.type), AnyFloat)
        return CMPF_COMPARISON_OPERATIONS if floats else CMPI_COMPARISON_OPERATIONS

    def verify_(self) -> None:
        if self.relation.data not in self._relations():
            raise VerifyException(
                f"ptx.compare: '{self.relation.data}' is none of {', '.join(self._relations())}"
            )
        if length(self.result.type) != length(self.lhs.type):
            raise VerifyException("ptx.compare: one i1 for every element")


@op_definition
class SelectOp(QuickOperation):
    """`selp`: for every element that of `lhs` where its condition holds, else that of `rhs`.

    PTX ISA 9.2, section 9.7.6.3.
    """

    name = "ptx.select"
    _T: ClassVar = VarConstraint("T", BaseAttr(VectorType))
    cond = operand_def(VectorType.constr(i1))
    lhs = operand_def(_T)
    rhs = operand_def(_T)
    result = result_def(_T)
    traits = traits_def(Pure())
    assembly_format = "$cond `,` $lhs `,` $rhs attr-dict `:` type($cond) `,` type($lhs)"

    def __init__(self, cond: SSAValue, lhs: SSAValue, rhs: SSAValue):
        super().__init__(operands=[cond, lhs, rhs], result_types=[lhs.type])

    def verify_(self) -> None:
        if length(self.cond.type) != length(self.lhs.type):
            raise VerifyException("ptx.select: one i1 for every element")
