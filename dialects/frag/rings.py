"""Rings of memory: slots that are acquired, filled, published, awaited, read, released.

And turns: roles that do one thing one after the other, round and round.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, IntegerAttr, MemRefType, StringAttr, i64
from xdsl.ir import (
    Attribute,
    Operation,
    ParametrizedAttribute,
    Region,
    SSAValue,
    TypeAttribute,
    Use,
)
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    ParamAttrConstraint,
    VarConstraint,
    irdl_attr_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
)
from xdsl.parser import AttrParser, Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.in_flight import (
    AwaitableType,
    AwaitOp,
    LinearUse,
    at,
    carried_values,
    carrier_name,
    passed_on,
)
from fragir.dialects.frag.kernels import role_of
from fragir.dialects.frag.memory_layout import check_memory
from fragir.dialects.frag.types import is_shared, is_tensor_memory
from fragir.dialects.interfaces import MemoryInterface
from fragir.dialects.shorthands import is_memref, memref_type

# -- ring types ------------------------------------------------------------------------------------
# `!frag.ring` and `!frag.slot`: shared or tensor memory that is filled and read in turn.
#
# Slots are linear: on every path each is used up by one operation, and its parts before that.

# --- slots ----------------------------------------------------------------------------------------


class SlotParts(ParametrizedAttribute, TypeAttribute):
    """What a ring and its slots have in common: the memory of a slot, part by part."""

    parts: ArrayAttr[Attribute]

    def verify(self) -> None:
        if not self.parts.data:
            raise VerifyException(f"!{self.name} has one part or more, each a memref")
        in_tensor_memory = is_tensor_memory(self.parts.data[0])
        for part in self.parts:
            if not is_memref(part) or not (is_shared(part) or is_tensor_memory(part)):
                raise VerifyException(
                    f"!{self.name} has parts of shared memory, memref<..., #frag.shared>, or of "
                    f"tensor memory, #frag.tensor, not {part}"
                )
            if is_tensor_memory(part) != in_tensor_memory:
                raise VerifyException(
                    f"!{self.name} has parts of shared and of tensor memory; take two rings"
                )
            shape = memref_type(part).get_shape()
            if len(shape) < 2 or DYNAMIC_INDEX in shape:
                raise VerifyException(
                    f"!{self.name}: {part} has no static shape of two dimensions or more"
                )
            if not in_tensor_memory:
                check_memory(f"!{self.name}", part, pair=True)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        parts = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_type)
        return (ArrayAttr(parts),)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_list(self.parts, printer.print_attribute)


@irdl_attr_definition
class SlotType(SlotParts):
    """One slot of a ring, held by whoever has acquired or awaited it.

    A slot is used up by one operation on every path: `frag.publish`, `frag.release`, or what
    carries it on (scf.for, scf.while, scf.yield).
    """

    name = "frag.slot"

    def __init__(self, parts: Sequence[Attribute]):
        super().__init__(ArrayAttr(parts))


# --- slots are used up once -----------------------------------------------------------------------

ENDS = ("frag.publish", "frag.release")
PART = "frag.part"


def check_slot(slot: SSAValue, end: str) -> None:
    """VerifyException unless a new slot, wherever it is carried, is used up once by `end`.

    Of an operation that is not part of a program yet nothing is known.
    """
    if isinstance(slot.owner, Operation) and slot.owner.parent is None:
        return
    for value in carried_values(slot):
        _SlotUse(value, carrier_name(value, slot, "slot"), end, "slot").check()


class _SlotUse(LinearUse):
    """The uses of one value that is a slot."""

    def looks(self, op: Operation) -> set[Operation]:
        """What takes a part of it, and what makes or uses its memory."""
        return _users(op) if op.name == PART else set()

    def check_taker(self, use: Use) -> None:
        op = use.operation
        if op.name in ENDS:
            if op.name != self.end:
                what = "acquired" if self.end == ENDS[0] else "awaited"
                raise VerifyException(
                    f"{self.name} is {what}, so {self.end} takes it and not {op.name}{at(op)}"
                )
        elif not any(isinstance(to.type, SlotType) for to in passed_on(use)):
            raise VerifyException(
                f"{self.name} goes to {op.name}{at(op)}; a slot goes to {self.end}, or a loop or "
                "branch passes it on"
            )

    def behind(self, op: Operation, taken: Operation) -> str:
        return (
            f"{self.name}: its memory is used by {op.name}{at(op)} behind "
            f"{taken.name}{at(taken)}, when it is not held any more"
        )


def _users(part: Operation) -> set[Operation]:
    """What makes or uses a part of a slot, or what is a view of it."""
    found = {part}
    for result in part.results:
        if is_memref(result.type):
            for use in result.uses:
                if use.operation.name.startswith("scf."):
                    raise VerifyException(
                        f"memory of a slot goes to {use.operation.name}{at(use.operation)}; carry "
                        "the slot, and take its part (frag.part) where it is used"
                    )
                if use.operation not in found:
                    found |= _users(use.operation)
    return found


# --- rings ----------------------------------------------------------------------------------------


@irdl_attr_definition
class RingType(SlotParts, AwaitableType):
    """A queue of slots of memory: each is filled, published, awaited, read and released.

    `!frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>, ...>`: the parts of each slot, all
    of shared or all of tensor memory.
    """

    name = "frag.ring"

    def __init__(self, parts: Sequence[Attribute]):
        super().__init__(ArrayAttr(parts))

    @property
    def slot(self) -> SlotType:
        """The type of its slots."""
        return SlotType(self.parts.data)

    def awaited(self) -> SlotType:
        """The oldest slot that is full."""
        return self.slot

    def check_awaited(self, op: AwaitOp) -> None:
        """The slot is linear."""
        check_slot(op.result, "frag.release")


_PARTS = VarConstraint("PARTS", AnyAttr())
_RING = ParamAttrConstraint(RingType, (_PARTS,))
_SLOT = ParamAttrConstraint(SlotType, (_PARTS,))


@op_definition
class RingOp(IRDLOperation):
    """A ring of `slots` slots of shared memory, all free.

        %ring = frag.ring 4 : !frag.ring<memref<128x64xf16, #frag.shared<swizzle = 128>>>

    It owns the memory, and what those who fill and who read it wait for each other with. A ring
    is made once, outside of loops, branches and roles.

    Each role that awaits slots gets all of them. `frag.ring 4 turns "products" : ...` shares them
    out instead: roles await them in their turns (`frag.take_turn "products"`), and a slot goes to
    the one that awaits next.
    """

    name = "frag.ring"
    slots = prop_def(IntegerAttr.constr(i64))
    turns = opt_prop_def(StringAttr)
    ring = result_def(RingType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$slots (`turns` $turns^)? attr-dict `:` type($ring)"

    def __init__(self, slots: int, type_: RingType, turns: str | None = None):
        super().__init__(
            properties={
                "slots": IntegerAttr(slots, i64),
                "turns": None if turns is None else StringAttr(turns),
            },
            result_types=[type_],
        )

    @property
    def count(self) -> int:
        """How many slots it has."""
        return self.slots.value.data

    def verify_(self) -> None:
        if self.count < 1:
            raise VerifyException("frag.ring has one slot or more")
        parent = self.parent_op()
        if parent is not None and parent.name.startswith(("scf.", "frag.")):
            raise VerifyException(
                f"frag.ring stands inside of {parent.name}; make the ring at the beginning of the "
                "function"
            )
        if self.turns is not None:
            self._check_turns(self.turns.data)

    def _check_turns(self, turn: str) -> None:
        for use in self.ring.uses:
            op = use.operation
            if op.name == "frag.await" and op.parent is not None and not is_in_turn(op, turn):
                raise VerifyException(
                    f"frag.ring shares its slots out by turns at {turn!r}, but one is awaited "
                    f'outside of them; write frag.take_turn "{turn}" before frag.await, and '
                    f'frag.pass_turn "{turn}" behind it'
                )


@op_definition
class AcquireOp(IRDLOperation):
    """Waits until the next slot of a ring is free, and takes it to be filled.

        %slot = frag.acquire %ring : !frag.ring<...>

    What its memory holds is not known. Whoever has acquired it writes its parts and publishes it.
    """

    name = "frag.acquire"
    ring = operand_def(_RING)
    slot = result_def(_SLOT)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$ring attr-dict `:` type($ring)"

    def __init__(self, ring: SSAValue | Operation):
        ring = SSAValue.get(ring)
        assert isinstance(ring.type, RingType)
        super().__init__(operands=[ring], result_types=[ring.type.slot])

    def verify_(self) -> None:
        check_slot(self.slot, "frag.publish")


@op_definition
class PartOp(IRDLOperation, MemoryInterface):
    """One of the memories of a slot, by its number.

        %a = frag.part %slot[0] : !frag.slot<...>

    It may be used as long as the slot is held.
    """

    name = "frag.part"
    slot = operand_def(SlotType)
    number = prop_def(IntegerAttr.constr(i64))
    memory = result_def(MemRefType)
    traits = traits_def(Pure())

    def __init__(self, slot: SSAValue | Operation, number: int):
        slot = SSAValue.get(slot)
        super().__init__(
            operands=[slot],
            properties={"number": IntegerAttr(number, i64)},
            result_types=[_part(slot.type, number)],
        )

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """Never: the ring's type says how its memory is laid out."""
        return False

    def verify_(self) -> None:
        wanted = _part(self.slot.type, self.number.value.data)
        if self.memory.type != wanted:
            raise VerifyException(
                f"frag.part: part {self.number.value.data} is {wanted}, not {self.memory.type}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> PartOp:
        slot = parser.parse_unresolved_operand()
        with parser.in_square_brackets():
            number = parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        op = cls(parser.resolve_operand(slot, parser.parse_type()), number)
        op.attributes |= attributes
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_operand(self.slot)
        printer.print_string(f"[{self.number.value.data}]")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.slot.type)


def _part(slot: Attribute, number: int) -> Attribute:
    """The type of a slot's part."""
    if not isinstance(slot, SlotType):
        raise VerifyException(f"frag.part looks at a !frag.slot, not at {slot}")
    parts: ArrayAttr[Attribute] = slot.parts
    if not 0 <= number < len(parts):
        raise VerifyException(
            f"frag.part: there is no part {number}; the slot has {len(parts)}, counted from 0"
        )
    return parts.data[number]


@op_definition
class PublishOp(IRDLOperation):
    """Gives a slot to those who await it, with all that was written to it or that is on the way.

    frag.publish %slot : !frag.slot<...>
    """

    name = "frag.publish"
    slot = operand_def(SlotType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$slot attr-dict `:` type($slot)"

    def __init__(self, slot: SSAValue | Operation):
        super().__init__(operands=[slot])


@op_definition
class ReleaseOp(IRDLOperation):
    """Gives a slot that has been awaited back, once all products that read it are done.

        frag.release %slot : !frag.slot<...>

    Of `frag.no_slot` it does nothing.
    """

    name = "frag.release"
    slot = operand_def(SlotType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$slot attr-dict `:` type($slot)"

    def __init__(self, slot: SSAValue | Operation):
        super().__init__(operands=[slot])


@op_definition
class NoSlotOp(IRDLOperation):
    """No slot, where a loop carries the one of the turn before: releasing it does nothing.

    %none = frag.no_slot : !frag.slot<...>
    """

    name = "frag.no_slot"
    slot = result_def(SlotType)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict `:` type($slot)"

    def __init__(self, type_: SlotType):
        super().__init__(result_types=[type_])

    def verify_(self) -> None:
        check_slot(self.slot, "frag.release")


# --- turns ----------------------------------------------------------------------------------------

TAKE, PASS = "frag.take_turn", "frag.pass_turn"


@op_definition
class TakeTurnOp(IRDLOperation):
    """Waits until it is this role's turn at something, by a name.

        frag.take_turn "products"

    The roles that have turns of one name take them in the order of `frag.roles`, the first one
    first, and over again; each goes on when the one before it has passed its turn on. So one role
    issues its products while another has left them behind and computes with registers. Roles that
    take turns in loops take as many, or the first ones one more.
    """

    name = TAKE
    turn = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$turn attr-dict"

    def __init__(self, turn: str):
        super().__init__(properties={"turn": StringAttr(turn)})

    def verify_(self) -> None:
        if self.parent is None:
            return  # its program is being built
        region = role_of(self)
        if region is None:
            raise VerifyException(f"{TAKE} stands outside of frag.roles; turns are those of roles")
        found = roles_of_turn(region, self.turn.data)
        if len(found) < 2:
            raise VerifyException(
                f"{TAKE}: no other role takes turns at {self.turn.data!r}; they are taken by two "
                "roles or more"
            )
        following = _next_of_turn(self)
        if following is None or following.name != PASS:
            raise VerifyException(
                f"{TAKE}: the turn at {self.turn.data!r} is not passed on in the same block; end "
                f'with {PASS} "{self.turn.data}"'
            )


@op_definition
class PassTurnOp(IRDLOperation):
    """Ends this role's turn (`frag.take_turn`), and lets the next role have it.

    frag.pass_turn "products"
    """

    name = PASS
    turn = prop_def(StringAttr)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$turn attr-dict"

    def __init__(self, turn: str):
        super().__init__(properties={"turn": StringAttr(turn)})

    def verify_(self) -> None:
        if self.parent is None:
            return  # its program is being built
        op = self.prev_op
        while op is not None and not _is_of_turn(op, self.turn.data):
            op = op.prev_op
        if op is None or op.name != TAKE:
            raise VerifyException(
                f"{PASS}: no turn at {self.turn.data!r} is taken before, in the same block"
            )


def roles_of_turn(role: Region, turn: str) -> list[int]:
    """The numbers of the roles that take turns at something, beside one of them."""
    roles = role.parent
    assert roles is not None
    return [
        number
        for number, region in enumerate(roles.regions)
        if any(op.name == TAKE and _is_of_turn(op, turn) for op in region.walk())
    ]


def turns_of(region: Region) -> list[str]:
    """The names of the turns that a role takes, each once."""
    return list(dict.fromkeys(op.turn.data for op in region.walk() if isinstance(op, TakeTurnOp)))


def is_in_turn(op: Operation, turn: str) -> bool:
    """Whether an operation stands between taking a turn at something and passing it on."""
    around: Operation | None = op
    while around is not None and around.name != "frag.roles":
        before = around.prev_op
        while before is not None and not _is_of_turn(before, turn):
            before = before.prev_op
        if before is not None:
            return before.name == TAKE
        around = around.parent_op()
    return False


def _is_of_turn(op: Operation, turn: str) -> bool:
    return isinstance(op, TakeTurnOp | PassTurnOp) and op.turn.data == turn


def _next_of_turn(take: TakeTurnOp) -> Operation | None:
    op = take.next_op
    while op is not None and not any(_is_of_turn(inner, take.turn.data) for inner in op.walk()):
        op = op.next_op
    return op
