"""`linalg.map`, `reduce`, `broadcast` and `softmax` as structured operations."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.linalg.structured import (
    element_of,
    operands_in,
    print_operands,
    rank_of,
    tensors_of,
)
from fragir.dialects.shorthands import integers


class ShapedOp(LinalgStructuredOperation):
    """Loops and maps follow from the ranks of its operands."""

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
        body: Region,
        properties: dict[str, Attribute] | None = None,
    ):
        super().__init__(
            operands=[inputs, outputs],
            result_types=[tensors_of(outputs)],
            properties=dict(properties or {}),
            regions=[body],
        )

    def get_iterator_types(self) -> ArrayAttr[attrs.IteratorTypeAttr]:
        """Parallel, but for what it reduces."""
        return ArrayAttr([attrs.IteratorTypeAttr.parallel()] * self._loops())

    def _loops(self) -> int:
        return rank_of(self.outputs[0])


@irdl_op_definition
class LinalgMapOp(ShapedOp):
    """A function of the elements of inputs of one shape. The body's last argument, the old element
    of the output, is not in the text.
    """

    name = "linalg.map"

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """The same for all."""
        whole = AffineMapAttr(AffineMap.identity(self._loops()))
        return ArrayAttr([whole] * len(self.operands))

    @classmethod
    def parse(cls, parser: Parser) -> LinalgMapOp:
        short = _short(parser)
        inputs, outputs = operands_in(parser, "ins"), operands_in(parser, "outs")
        attributes = parser.parse_optional_attr_dict()
        elements = [element_of(value.type) for value in (*inputs, *outputs)]
        if short is not None:
            body = _of_short(parser, short, elements, len(inputs))
        else:
            arguments = parser.parse_comma_separated_list(
                Parser.Delimiter.PAREN, parser.parse_argument
            )
            body = parser.parse_region(arguments)
            if len(arguments) == len(inputs):
                body.block.insert_arg(elements[-1], len(arguments))
        made = cls(inputs, outputs, body)
        made.attributes |= attributes
        return made

    def print(self, printer: Printer) -> None:
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        _print_body(printer, self, len(self.inputs))


@irdl_op_definition
class LinalgReduceOp(ShapedOp):
    """Elements of the inputs along some dimensions, combined with the outputs'."""

    name = "linalg.reduce"
    dimensions = prop_def(DenseArrayBase.constr(i64))

    def _loops(self) -> int:
        return rank_of(self.inputs[0])

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """All of the inputs; what is not reduced of the outputs."""
        loops, gone = self._loops(), integers(self.dimensions)
        kept = tuple(AffineExpr.dimension(d) for d in range(loops) if d not in gone)
        whole, less = AffineMap.identity(loops), AffineMap(loops, 0, kept)
        maps = [whole] * len(self.inputs) + [less] * len(self.outputs)
        return ArrayAttr(map(AffineMapAttr, maps))

    def get_iterator_types(self) -> ArrayAttr[attrs.IteratorTypeAttr]:
        """Reductions along its dimensions."""
        gone = integers(self.dimensions)
        kinds = attrs.IteratorTypeAttr.parallel(), attrs.IteratorTypeAttr.reduction()
        return ArrayAttr([kinds[d in gone] for d in range(self._loops())])

    def verify_(self) -> None:
        if not self.inputs or len(self.inputs) != len(self.outputs):
            raise VerifyException(
                f"{self.name} combines as many inputs as outputs, not {len(self.inputs)} and "
                f"{len(self.outputs)}"
            )
        gone, loops = integers(self.dimensions), self._loops()
        if len(set(gone)) < len(gone) or any(not 0 <= d < loops for d in gone):
            raise VerifyException(f"{self.name}: {gone} are no dimensions of {loops}")
        super().verify_()

    @classmethod
    def parse(cls, parser: Parser) -> LinalgReduceOp:
        short = _short(parser)
        inputs, outputs = operands_in(parser, "ins"), operands_in(parser, "outs")
        properties = {"dimensions": _dimensions(parser)}
        attributes = parser.parse_optional_attr_dict()
        if short is not None:
            elements = [element_of(value.type) for value in (*inputs, *outputs)]
            body = _of_short(parser, short, elements, 2)
        else:
            arguments = parser.parse_comma_separated_list(
                Parser.Delimiter.PAREN, parser.parse_argument
            )
            body = parser.parse_region(arguments)
        made = cls(inputs, outputs, body, properties)
        made.attributes |= attributes
        return made

    def print(self, printer: Printer) -> None:
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        _print_dimensions(printer, self.dimensions)
        _print_body(printer, self, len(self.operands))


@irdl_op_definition
class LinalgBroadcastOp(ShapedOp):
    """The input, the same along some dimensions of the output."""

    name = "linalg.broadcast"
    dimensions = prop_def(DenseArrayBase.constr(i64))

    def get_indexing_maps(self) -> ArrayAttr[AffineMapAttr]:
        """Of the input what it has, in order."""
        loops, new = self._loops(), integers(self.dimensions)
        kept = tuple(AffineExpr.dimension(d) for d in range(loops) if d not in new)
        return ArrayAttr(
            [AffineMapAttr(AffineMap(loops, 0, kept)), AffineMapAttr(AffineMap.identity(loops))]
        )

    def verify_(self) -> None:
        if len(self.inputs) != 1 or len(self.outputs) != 1:
            raise VerifyException(f"{self.name} takes one input and one output")
        super().verify_()

    @classmethod
    def parse(cls, parser: Parser) -> LinalgBroadcastOp:
        inputs, outputs = operands_in(parser, "ins"), operands_in(parser, "outs")
        properties = {"dimensions": _dimensions(parser)}
        block = Block(arg_types=[element_of(value.type) for value in (*inputs, *outputs)])
        if block.args:
            block.add_op(ops.YieldOp(block.args[0]))
        made = cls(inputs, outputs, Region(block), properties)
        made.attributes |= parser.parse_optional_attr_dict()
        return made

    def print(self, printer: Printer) -> None:
        print_operands(printer, "ins", self.inputs)
        print_operands(printer, "outs", self.outputs)
        _print_dimensions(printer, self.dimensions)
        if self.attributes:
            printer.print_op_attributes(self.attributes)


# --- text -----------------------------------------------------------------------------------------


def _short(parser: Parser) -> tuple[type[Operation], dict[str, Attribute]] | None:
    """`{ arith.addf }`, perhaps with attributes: an operation on scalars."""
    if parser.parse_optional_punctuation("{") is None:
        return None
    at = parser.pos
    name = parser.parse_identifier(" of an operation on scalars")
    found = parser.ctx.get_optional_op(name)
    if found is None:
        parser.raise_error(f"{name} is no operation", at)
    properties = dict(parser.parse_optional_attr_dict())
    parser.parse_punctuation("}")
    return found, properties


def _of_short(
    parser: Parser,
    short: tuple[type[Operation], dict[str, Attribute]],
    elements: Sequence[Attribute],
    count: int,
) -> Region:
    """The body of one operation on the first elements, of a reduction on the two that it has."""
    kind, given = short
    block = Block(arg_types=elements)
    properties = {**_usual(kind), **given}
    try:
        op = kind.create(
            operands=list(block.args[:count]), result_types=[elements[-1]], properties=properties
        )
        op.verify()
    except (VerifyException, ValueError) as error:
        parser.raise_error(f"{kind.name} does not combine such elements: {error}")
    block.add_ops([op, ops.YieldOp(op.results[0])])
    return Region(block)


def _usual(kind: type[Operation]) -> dict[str, Attribute]:
    """The properties that an operation of arith has where its text says none."""
    if issubclass(kind, arith.FloatingPointLikeBinaryOperation):
        return {"fastmath": arith.FastMathFlagsAttr("none")}
    if issubclass(kind, arith.SignlessIntegerBinaryOperationWithOverflow):
        return {"overflowFlags": arith.IntegerOverflowAttr("none")}
    return {}


def _dimensions(parser: Parser) -> Attribute:
    parser.parse_keyword("dimensions")
    parser.parse_punctuation("=")
    found = parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer)
    return DenseArrayBase.from_list(i64, found)


def _print_dimensions(printer: Printer, dimensions: DenseArrayBase) -> None:
    printer.print_string(f" dimensions = {integers(dimensions)}")


def _print_body(printer: Printer, op: ShapedOp, shown: int) -> None:
    """Attributes, and the region with so many of its arguments."""
    if op.attributes:
        printer.print_op_attributes(op.attributes)
    printer.print_string(" (")
    printer.print_list(op.body.block.args[:shown], printer.print_block_argument)
    printer.print_string(") ")
    printer.print_region(op.body, print_entry_block_args=False)


# -- softmax ---------------------------------------------------------------------------------------
# `linalg.softmax`.


@irdl_op_definition
class SoftmaxOp(IRDLOperation, MemoryInterface):
    """exp(x - max(x)) along a dimension, divided by its sum."""

    name = "linalg.softmax"
    input = operand_def(Attribute)
    output = operand_def(Attribute)
    dimension = prop_def(IntegerAttr.constr(i64))
    result = var_result_def(TensorType)

    def __init__(self, source: SSAValue, output: SSAValue, dimension: int):
        super().__init__(
            operands=[source, output],
            properties={"dimension": IntegerAttr(dimension, i64)},
            result_types=[tensors_of([output])],
        )

    def reads(self) -> Sequence[SSAValue]:
        """The input."""
        return (self.input,)

    def writes(self) -> Sequence[SSAValue]:
        """The output, where it is memory."""
        return () if self.result else (self.output,)

    def view_of(self) -> SSAValue | None:
        """A result takes the place of the output that it is made from."""
        return self.output if self.result else None

    def verify_(self) -> None:
        rank, dimension = rank_of(self.input), self.dimension.value.data
        if not 0 <= dimension < rank:
            raise VerifyException(f"{self.name}: {dimension} is no dimension of {self.input.type}")
        if self.input.type != self.output.type:
            raise VerifyException(
                f"{self.name} of {self.input.type} gives the same type, not {self.output.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> SoftmaxOp:
        attributes = parser.parse_optional_attr_dict()
        parser.parse_keyword("dimension")
        with parser.in_parens():
            dimension = parser.parse_integer()
        at = parser.pos
        inputs, outputs = operands_in(parser, "ins"), operands_in(parser, "outs")
        if len(inputs) != 1 or len(outputs) != 1:
            parser.raise_error("linalg.softmax takes one input and one output", at)
        if parser.parse_optional_punctuation("->") is not None:
            parser.parse_type()
        made = cls(inputs[0], outputs[0], dimension)
        made.attributes |= attributes
        return made

    def print(self, printer: Printer) -> None:
        if self.attributes:
            printer.print_op_attributes(self.attributes)
        printer.print_string(f" dimension({self.dimension.value.data})")
        print_operands(printer, "ins", [self.input])
        print_operands(printer, "outs", [self.output])
        if self.result:
            printer.print_string(" -> ")
            printer.print_attribute(self.result[0].type)
