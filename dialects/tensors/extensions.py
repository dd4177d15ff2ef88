"""What torch-mlir (`tm_tensor`) and IREE (`iree_linalg_ext`) have beside linalg: prefix sums,
scattered updates, sorting, stages of a Fourier transform.

    %s:2 = tm_tensor.sort dimension(1) outs(%x, %i : tensor<4x16xf32>, tensor<4x16xi64>) {
    ^bb0(%a: f32, %b: f32, %c: i64, %d: i64):
      %before = arith.cmpf ole, %a, %b : f32
      tm_tensor.yield %before : i1
    } -> tensor<4x16xf32>, tensor<4x16xi64>

Results take the places of the tensors behind `outs`. They are printed in the generic form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    BoolAttr,
    DenseArrayBase,
    IntegerAttr,
    TensorType,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    opt_region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.traits import IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.shorthands import integers


class Extension(IRDLOperation):
    """What all have: inputs, outputs whose places the results take, what is done with elements."""

    inputs = var_operand_def(Attribute)
    outputs = var_operand_def(TensorType)
    dimension = opt_prop_def(IntegerAttr)
    inclusive = opt_prop_def(BoolAttr)
    unique_indices = opt_prop_def(BoolAttr)
    dimension_map = opt_prop_def(DenseArrayBase)
    body = opt_region_def()
    res = var_result_def(TensorType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    @property
    def along(self) -> int:
        """The dimension that it goes along: the last one unless it is said."""
        said = self.dimension
        return len(shape_of(self.outputs[0])) - 1 if said is None else said.value.data

    @property
    def mapped(self) -> list[int]:
        """The dimensions that a scatter's indices are of."""
        return [] if self.dimension_map is None else integers(self.dimension_map)

    def verify_(self) -> None:
        """A result has the type of its output, and the body the elements that it works on."""
        if [x.type for x in self.outputs] != [x.type for x in self.res]:
            raise VerifyException(f"{self.name}: a result has the type of its output")
        if not 0 <= self.along < max(1, len(shape_of(self.outputs[0]))):
            raise VerifyException(f"{self.name}: there is no dimension {self.along}")
        elements = [shaped(x).element_type for x in self.compared]
        taken = [x.type for x in self.block.args] if self.body and self.body.blocks else []
        if elements != taken:
            words = ", ".join(map(str, elements))
            raise VerifyException(f"{self.name}: its body takes ({words})")

    @property
    def block(self) -> Block:
        """What is done with elements."""
        assert self.body is not None
        return self.body.block

    @property
    def compared(self) -> Sequence[SSAValue]:
        """The tensors whose elements the body takes, in order."""
        return ()

    @classmethod
    def parse(cls, parser: Parser) -> Extension:
        """`NAME dimension(1) inclusive(true) ins(%x : T) outs(%y : T) {...} -> T`."""
        properties: dict[str, Attribute] = {}
        found = parser.parse_optional_attr_dict()
        if "dimension_map" in found:
            properties["dimension_map"] = found["dimension_map"]
        groups: dict[str, list[SSAValue]] = {"ins": [], "outs": []}
        while (word := parser.parse_optional_identifier()) is not None:
            if word == "dimension_map":
                parser.parse_punctuation("=")
                numbers = parser.parse_comma_separated_list(
                    parser.Delimiter.SQUARE, parser.parse_integer
                )
                properties[word] = DenseArrayBase.from_list(i64, numbers)
                continue
            parser.parse_punctuation("(")
            if word in groups:
                groups[word] = _values(parser)
            elif word == "dimension":
                properties[word] = IntegerAttr(parser.parse_integer(), i64)
            elif word in ("inclusive", "unique_indices"):
                properties[word] = BoolAttr.from_bool(parser.parse_boolean())
            else:
                parser.raise_error(f"{cls.name} says no {word}")
            parser.parse_punctuation(")")
        region = parser.parse_optional_region()
        types = _results(parser) or [x.type for x in groups["outs"]]
        return cls.create(
            operands=[*groups["ins"], *groups["outs"]],
            result_types=types,
            properties={
                **properties,
                "operandSegmentSizes": DenseArrayBase.from_list(
                    i32, [len(group) for group in groups.values()]
                ),
            },
            regions=[] if region is None else [region],
        )


def _values(parser: Parser) -> list[SSAValue]:
    names = parser.parse_comma_separated_list(
        parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    return list(parser.resolve_operands(names, types, parser.pos))


def _results(parser: Parser) -> list[Attribute]:
    for sign in ("->", ":"):
        if parser.parse_optional_punctuation(sign) is not None:
            types: Sequence[Attribute] | None = parser.parse_optional_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_type
            )
            if types is None:
                types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            return [*types]
    return []


def shaped(value: SSAValue) -> Any:
    """The type of a tensor."""
    return value.type


def shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor, -1 where it is open."""
    return shaped(value).get_shape()


class SortExtension(Extension):
    """Elements of all outputs together, along a dimension: the body says whether a comes before b.

    Of two elements that each come before the other, or neither, the first one stays the first.
    """

    @property
    def compared(self) -> Sequence[SSAValue]:
        """Of each output two elements."""
        return [x for x in self.outputs for _ in range(2)]


class ScanExtension(Extension):
    """What the body makes of what came before and an element, along a dimension.

    The second output is what an exclusive one begins with.
    """

    @property
    def compared(self) -> Sequence[SSAValue]:
        """What came before, and an element."""
        return [self.outputs[0], self.inputs[0]]


class ScatterExtension(Extension):
    """Rows of updates go to the rows that indices say, one after the other: the body makes an
    element of the update's and of the old one.
    """

    @property
    def compared(self) -> Sequence[SSAValue]:
        """The update, and what was there."""
        return [self.inputs[0], self.outputs[0]]


class FftExtension(Extension):
    """A stage of a transform in place: its number, and its factors, real and imaginary."""


class YieldsElement(IRDLOperation):
    """What the body gives."""

    values = var_operand_def(Attribute)
    traits = traits_def(IsTerminator(), Pure())
    assembly_format = "attr-dict ($values^ `:` type($values))?"


def _class_of(kind: Any, name: str) -> Any:
    body = {"name": name, "__doc__": kind.__doc__}
    made: Any = type(f"{kind.__name__}{name.partition('.')[0]}", (kind,), body)
    found: Any = irdl_op_definition(made)
    return found


TmSort, IreeSort = (
    _class_of(SortExtension, f"{one}.sort") for one in ("tm_tensor", "iree_linalg_ext")
)
TmScan, IreeScan = (
    _class_of(ScanExtension, f"{one}.scan") for one in ("tm_tensor", "iree_linalg_ext")
)
TmScatter, IreeScatter = (
    _class_of(ScatterExtension, f"{one}.scatter") for one in ("tm_tensor", "iree_linalg_ext")
)
IreeFft = _class_of(FftExtension, "iree_linalg_ext.fft")
TmYield, IreeYield = (
    _class_of(YieldsElement, f"{one}.yield") for one in ("tm_tensor", "iree_linalg_ext")
)
