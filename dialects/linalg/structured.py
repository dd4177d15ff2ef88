"""Named operations of linalg as MLIR prints them: maps, iterators and a body by a table.

xDSL has some of them, with bodies that are ill-typed where element types differ, and without maps.
These are registered in fragir's own context in their place. What one means is MLIR's definition
(https://mlir.llvm.org/docs/Dialects/Linalg/): inputs are cast to the type of the output, by sign
unless `cast = #linalg.type_fn<cast_unsigned>` says otherwise, or the operation is unsigned.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseIntElementsAttr,
    MemRefType,
    TensorType,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap
from xdsl.irdl import AttrSizedOperandSegments, ParsePropInAttrDict, opt_prop_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.linalg.scalar_bodies import ElementwiseKindAttr, ScalarBody, TypeFnAttr


class Meaning(NamedTuple):
    """What a named operation is: how many inputs it has, its maps, its body."""

    inputs: int
    maps: Callable[[NamedStructuredOp], list[AffineMap]]
    body: Callable[[ScalarBody, Sequence[SSAValue]], SSAValue]
    """Of the elements of the inputs and the old one of the output."""
    unsigned: bool = False
    """Whether its integers have no sign, whatever `cast` says."""


class NamedStructuredOp(LinalgStructuredOperation):
    """A structured operation with one output whose body is known by its name."""

    MEANING: ClassVar[Meaning]
    indexing_maps = opt_prop_def(ArrayAttr[AffineMapAttr])
    cast = opt_prop_def(TypeFnAttr)
    strides = opt_prop_def(DenseIntElementsAttr)
    dilations = opt_prop_def(DenseIntElementsAttr)
    kind = opt_prop_def(ElementwiseKindAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True), ParsePropInAttrDict())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        result_types: Sequence[Attribute] | None = None,
        properties: dict[str, Attribute] | None = None,
    ):
        types = tensors_of(outputs)
        super().__init__(
            operands=[inputs, outputs],
            result_types=[types if result_types is None else result_types],
            properties=dict(properties or {}),
            regions=[Region(Block())],
        )
        self._fill()

    @property
    def meaning(self) -> Meaning:
        """What it is."""
        return self.meaning_of(self.properties)

    def _fill(self) -> None:
        """Writes the body."""
        block = Block(arg_types=[element_of(value.type) for value in self.operands])
        unsigned = self.meaning.unsigned or (self.cast is not None and self.cast.is_unsigned)
        body = ScalarBody(block, unsigned)
        result = self.meaning.body(body, block.args)
        block.add_op(ops.YieldOp(body.cast(result, block.args[-1].type)))
        self.detach_region(self.body)
        self.add_region(Region(block))

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Those that it says, else those of its name."""
        if self.indexing_maps is not None:
            return self.indexing_maps
        return ArrayAttr(map(AffineMapAttr, self.meaning.maps(self)))

    def get_iterator_types(self) -> ArrayAttr[attrs.IteratorTypeAttr]:
        """Loops that index the output are parallel, the others reduce."""
        maps = [attribute.data for attribute in self.get_indexing_maps()]
        if not maps:
            return ArrayAttr([])
        out = {e.position for e in maps[-1].results if isinstance(e, AffineDimExpr)}
        parallel, reduction = attrs.IteratorTypeAttr.parallel(), attrs.IteratorTypeAttr.reduction()
        return ArrayAttr([parallel if d in out else reduction for d in range(maps[-1].num_dims)])

    @classmethod
    def check_operands(
        cls,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        properties: Mapping[str, Attribute],
    ) -> None:
        """VerifyException unless they are as many as it takes."""
        wanted = cls.meaning_of(properties).inputs
        if len(inputs) != wanted or len(outputs) != 1:
            raise VerifyException(
                f"it takes {wanted} inputs and one output, not {len(inputs)} and {len(outputs)}; "
                "write `ins(%a, ... : T, ...) outs(%c : U)`"
            )

    @classmethod
    def meaning_of(cls, properties: Mapping[str, Attribute]) -> Meaning:
        """What it is; of `linalg.elementwise` its kind says it."""
        return cls.MEANING

    def verify_(self) -> None:
        self.check_operands(self.inputs, self.outputs, self.properties)
        super().verify_()

    # --- text ---------------------------------------------------------------------------------

    @classmethod
    def parse(cls, parser: Parser) -> NamedStructuredOp:
        at = parser.pos
        properties: dict[str, Attribute] = {}
        while (word := _leading(parser)) is not None:
            parser.parse_punctuation("=")
            properties[word] = parser.parse_attribute()
        attributes = parser.parse_optional_attr_dict()
        inputs, outputs = operands_in(parser, "ins"), operands_in(parser, "outs")
        attributes = {**attributes, **parser.parse_optional_attr_dict()}
        for name in cls.get_irdl_definition().properties:
            if name in attributes:
                properties[name] = attributes.pop(name)
        results = _results(parser)
        try:
            cls.check_operands(inputs, outputs, properties)
            made = cls(inputs, outputs, results, properties)
        except (VerifyException, ValueError, AssertionError) as error:
            parser.raise_error(f"{cls.name}: {error}", at - 1, at)
        made.attributes |= attributes
        return made

    def print(self, printer: Printer) -> None:
        for name, value in (("kind", self.kind), ("indexing_maps", self.indexing_maps)):
            if value is not None:
                printer.print_string(f" {name} = ")
                printer.print_attribute(value)
        more = {**self.attributes, **self.properties}
        for name in ("kind", "indexing_maps", "operandSegmentSizes"):
            more.pop(name, None)
        if more:
            printer.print_op_attributes(more)
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        if self.res:
            printer.print_string(" -> ")
            printer.print_attribute(self.res[0].type)


def _leading(parser: Parser) -> str | None:
    """A property that stands ahead of the dictionary."""
    for word in ("indexing_maps", "kind"):
        if parser.parse_optional_keyword(word) is not None:
            return word
    return None


def operands_in(parser: Parser, word: str) -> list[SSAValue]:
    """`ins(%a, %b : T, U)`, or `outs(...)`."""
    at = parser.pos
    if parser.parse_optional_keyword(word) is None:
        return []
    parser.parse_punctuation("(")
    names = parser.parse_comma_separated_list(
        Parser.Delimiter.NONE, parser.parse_unresolved_operand
    )
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(Parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(names, types, at))


def _results(parser: Parser) -> list[Attribute] | None:
    if parser.parse_optional_punctuation("->") is None:
        return None
    several = parser.parse_optional_comma_separated_list(Parser.Delimiter.PAREN, parser.parse_type)
    return list(several) if several is not None else [parser.parse_type()]


def print_operands(printer: Printer, word: str, values: Sequence[SSAValue]) -> None:
    """As `operands_in` reads them."""
    if not values:
        return
    printer.print_string(f" {word}(")
    printer.print_list(values, printer.print_ssa_value)
    printer.print_string(" : ")
    printer.print_list([value.type for value in values], printer.print_attribute)
    printer.print_string(")")


def shaped_type(type_: Attribute) -> TensorType[Attribute] | MemRefType[Attribute] | None:
    """A tensor or memory; None for any other type."""
    return cast("TensorType[Attribute]", type_) if type(type_) in (MemRefType, TensorType) else None


def element_of(type_: Attribute) -> Attribute:
    """The type of an operand's elements; a scalar's own."""
    found = shaped_type(type_)
    return type_ if found is None else found.element_type


def rank_of(value: SSAValue) -> int:
    """The dimensions of an operand; none of a scalar."""
    found = shaped_type(value.type)
    return 0 if found is None else len(found.get_shape())


def tensors_of(values: Sequence[SSAValue]) -> list[Attribute]:
    """The types of those that are tensors: such outputs are results."""
    return [value.type for value in values if type(value.type) is TensorType]
