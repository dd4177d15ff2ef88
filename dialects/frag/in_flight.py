"""What is under way until it is awaited: tiles that products still write, and `frag.await`.

Slots of rings and tiles in flight are used up by one operation on every path. No
dataflow is needed for it. In the block that defines such a value one operation uses it up, itself
or, where it is a branch (`scf.if`), in each of its regions; in a loop inside it nothing can, for a
loop may run never or often: it has to carry the value. What is carried is followed.
"""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Attribute, Block, Operation, ParametrizedAttribute, SSAValue, TypeAttribute, Use
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    operand_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, NoMemoryEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.types import TileType, WillBeTile, held_tile, tile_of
from fragir.dialects.interfaces import LayoutInterface, OperandAt, Tile

# --- values that are used up once -----------------------------------------------------------------


def carried_values(value: SSAValue) -> list[SSAValue]:
    """A value, and every one that it becomes when loops and branches pass it on."""
    found = [value]
    for one in found:
        for use in one.uses:
            found += [to for to in passed_on(use) if to not in found]
    return found


def passed_on(use: Use) -> Iterator[SSAValue]:
    """The values that an operand becomes: arguments of a loop's blocks, results."""
    op, number = use.operation, use.index
    parent = op.parent_op()
    if isinstance(op, scf.ForOp) and number >= 3:
        yield op.body.block.args[number - 2]
        yield op.results[number - 3]
    elif isinstance(op, scf.WhileOp):
        yield op.before_region.block.args[number]
    elif isinstance(op, scf.ConditionOp) and isinstance(parent, scf.WhileOp) and number >= 1:
        yield parent.after_region.block.args[number - 1]
        yield parent.results[number - 1]
    elif isinstance(op, scf.YieldOp):
        if isinstance(parent, scf.WhileOp):
            yield parent.before_region.block.args[number]
        elif isinstance(parent, scf.ForOp):
            yield parent.body.block.args[number + 1]
            yield parent.results[number]
        elif isinstance(parent, scf.IfOp):
            yield parent.results[number]


def carrier_name(value: SSAValue, first: SSAValue, what: str) -> str:
    """What a value is called that carries the first one on, or is it."""
    name = f"%{value.name_hint}" if value.name_hint else f"a {what}"
    if value is first:
        return name
    origin = f"%{first.name_hint}" if first.name_hint else f"this {what}"
    return f"{name}, which carries {origin} on,"


class LinearUse:
    """The uses of one value that is used up once.

    `end` names what uses it up, besides loops and branches that pass it on. A subclass says by
    `looks` which operations look at the value only, and checks what uses it up.
    """

    def __init__(self, value: SSAValue, name: str, end: str, what: str):
        self.value, self.name, self.end, self.what = value, name, end, what
        self.lookers: set[Operation] = set()
        self.takers: set[Operation] = set()
        for use in value.uses:
            lookers = self.looks(use.operation)
            self.lookers |= lookers
            if not lookers:
                self.check_taker(use)
                self.takers.add(use.operation)
        self.within = _with_ancestors(self.lookers | self.takers)
        self.above_takers = _with_ancestors(self.takers)

    def looks(self, op: Operation) -> set[Operation]:
        """An operation that only looks at the value, with those that go on from there."""
        return set()

    def check_taker(self, use: Use) -> None:
        """VerifyException unless an operation may use the value up."""

    def behind(self, op: Operation, taken: Operation) -> str:
        """What is wrong where an operation looks at what has been used up."""
        return f"{self.name} is used by {op.name}{at(op)} behind {taken.name}{at(taken)}"

    def check(self) -> None:
        """VerifyException unless it is used up once on every path, and looked at before."""
        owner = self.value.owner
        block = owner if isinstance(owner, Block) else owner.parent_block()
        assert block is not None
        self._check_block(block)

    def _check_block(self, block: Block) -> None:
        taken: Operation | None = None
        for op in block.ops:
            if op not in self.within:
                continue
            if taken is not None:
                self._fail_behind(op, taken)
            uses = sum(operand is self.value for operand in op.operands)
            takes = uses if op in self.takers else 0
            if takes > 1:
                raise VerifyException(f"{self.name} goes twice to {op.name}{at(op)}")
            if takes:
                taken = op
            elif op in self.above_takers:
                self._check_regions(op)
                taken = op
        if taken is None:
            raise VerifyException(
                f"{self.name} is not used up{_in(block)}: end with {self.end}, or pass it on"
            )

    def _check_regions(self, op: Operation) -> None:
        """A use inside of an operation with regions."""
        if not isinstance(op, scf.IfOp):
            raise VerifyException(
                f"{self.name} is used up inside of {op.name}{at(op)}, which may run it never or "
                f"often; let it carry the {self.what} (iter_args)"
            )
        for region in op.regions:
            if not region.blocks:
                raise VerifyException(
                    f"{self.name} is used up in one branch of {op.name}{at(op)}; the other needs "
                    f"{self.end}, too"
                )
            self._check_block(region.block)

    def _fail_behind(self, op: Operation, taken: Operation) -> None:
        if op in self.above_takers:
            raise VerifyException(
                f"{self.name} is used up twice, by {taken.name}{at(taken)} and {op.name}{at(op)}"
            )
        raise VerifyException(self.behind(op, taken))


def _with_ancestors(ops: set[Operation]) -> set[Operation]:
    found: set[Operation] = set()
    for op in ops:  # any order
        up: Operation | None = op
        while up is not None and up not in found:
            found.add(up)
            up = up.parent_op()
    return found


def at(op: Operation) -> str:
    """Where an operation stands, for the end of a sentence."""
    where = op.location
    return f" in line {where.line.data}" if isinstance(where, FileLineColLoc) else ""


def _in(block: Block) -> str:
    parent = block.parent_op()
    if not isinstance(parent, scf.IfOp):
        return ""
    return f" in a branch of {parent.name}{at(parent)}"


# --- waiting --------------------------------------------------------------------------------------


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
        super().__init__(
            operands=[source], result_types=[_require_awaitable(source.type).awaited()]
        )

    def same_layout(self) -> Iterator[Sequence[Tile]]:
        """A tile and the tile in flight that it was."""
        yield OperandAt(self, 0), self.result

    def verify_(self) -> None:
        type_ = _require_awaitable(self.source.type)
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


def _require_awaitable(type_: Attribute) -> AwaitableType:
    if not isinstance(type_, AwaitableType):
        raise VerifyException(_not_awaitable(type_))
    return type_


def _not_awaitable(type_: Attribute) -> str:
    return f"frag.await takes a !frag.ring or a !frag.in_flight<tile>, not {type_}"


# --- tiles in flight ------------------------------------------------------------------------------


@irdl_attr_definition
class InFlightType(ParametrizedAttribute, TypeAttribute, WillBeTile, AwaitableType):
    """The accumulator of products under way: `!frag.in_flight<!frag.tile<64x64xf32>>`.

    Its registers may not be touched before `frag.await`. It goes as c to another product, which is
    then added to the same registers, or is carried by scf.for, scf.while and scf.if.
    """

    name = "frag.in_flight"
    tile: TileType

    def awaited(self) -> TileType:
        """The tile."""
        return self.tile


def check_in_flight(tile: SSAValue) -> None:
    """VerifyException unless a tile in flight, wherever it is carried, goes to one operation.

    What is not awaited is never there; and as a product adds to its registers where they are, there
    is no copy of it for a second one. Of an operation that is not part of a program yet nothing is
    known.
    """
    if isinstance(tile.owner, Operation) and tile.owner.parent is None:
        return
    for value in carried_values(tile):
        LinearUse(value, carrier_name(value, tile, _WHAT), "frag.await", _WHAT).check()


_WHAT = "tile in flight"


@op_definition
class UndefinedOp(IRDLOperation, LayoutInterface):
    """A tile, or a tile in flight, with any contents: no register is set.

    As c of a product whose `if` does not hold it counts for nothing.
    """

    name = "frag.undefined"
    tile = result_def()
    traits = traits_def(NoMemoryEffect())
    assembly_format = "attr-dict `:` type($tile)"

    def __init__(self, tile: TileType | InFlightType):
        super().__init__(result_types=[tile])

    def verify_(self) -> None:
        if held_tile(self.tile.type) is None:
            raise VerifyException(
                f"frag.undefined is a tile or a tile in flight, not {self.tile.type}"
            )
        if isinstance(self.tile.type, InFlightType):
            check_in_flight(self.tile)

    def repeats(self) -> bool:
        """What is undefined is so in every layout."""
        return True


@op_definition
class InFlightOp(IRDLOperation, LayoutInterface):
    """A tile as one in flight, to which no product adds yet: what a loop's sum begins with."""

    name = "frag.in_flight"
    tile = operand_def(TileType)
    result = result_def(InFlightType)
    traits = traits_def(NoMemoryEffect())
    assembly_format = "$tile attr-dict `:` type($tile) `->` type($result)"

    def __init__(self, tile: SSAValue | Operation):
        tile = SSAValue.get(tile, type=TileType)
        super().__init__(operands=[tile], result_types=[InFlightType(tile.type)])

    def same_layout(self) -> Iterator[Sequence[Tile]]:
        """Both are the same registers."""
        yield OperandAt(self, 0), self.result

    def verify_(self) -> None:
        if self.result.type != InFlightType(tile_of(self.tile)):
            raise VerifyException(f"frag.in_flight of {self.tile.type} is not {self.result.type}")
        check_in_flight(self.result)
