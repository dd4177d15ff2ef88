"""`frag.await`: waits for what is under way, and gives what can then be used."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation, operand_def, result_def, traits_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.interfaces import LayoutInterface, OperandAt, Tile


class AwaitableType(abc.ABC):
    """A type of which values are awaited: a ring, a tile in flight."""

    def awaited(self) -> Attribute:
        """The type of what `frag.await` gives."""
        raise NotImplementedError

    def check_awaited(self, op: AwaitOp) -> None:
        """What the verifier of `frag.await` checks further of a value of this type."""


@op_definition
class AwaitOp(IRDLOperation, LayoutInterface):
    """Waits until what is under way is there: a ring's next full slot, or a tile in flight.

    Of a ring it takes the oldest slot that has been published and not awaited yet; that slot is
    to be released (`frag.release`). Once a tile in flight is there, its registers may be used, and
    this warpgroup's products have read their shared memory. It may be written if no other warpgroup
    reads it; with several they meet first (`frag.barrier`), as each waits for its own products
    alone. How long to wait is computed.
    """

    name = "frag.await"
    source = operand_def()
    result = result_def()
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, source: SSAValue | Operation):
        source = SSAValue.get(source)
        super().__init__(operands=[source], result_types=[_awaitable(source.type).awaited()])

    def same_layout(self) -> Iterator[Sequence[Tile]]:
        """A tile and the tile in flight that it was."""
        yield OperandAt(self, 0), self.result

    def verify_(self) -> None:
        type_ = _awaitable(self.source.type)
        if self.result.type != type_.awaited():
            raise VerifyException(
                f"frag.await of {self.source.type} gives {type_.awaited()}, not {self.result.type}"
            )
        type_.check_awaited(self)

    @classmethod
    def parse(cls, parser: Parser) -> AwaitOp:
        source = parser.parse_unresolved_operand()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        place = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, AwaitableType):
            parser.raise_error(_not_awaitable(type_), place, parser.pos)
        op = cls(parser.resolve_operand(source, type_))
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.source)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.source.type)


def _awaitable(type_: Attribute) -> AwaitableType:
    if not isinstance(type_, AwaitableType):
        raise VerifyException(_not_awaitable(type_))
    return type_


def _not_awaitable(type_: Attribute) -> str:
    return f"frag.await takes a !frag.ring or a !frag.in_flight<tile>, not {type_}"
