"""Turns: roles that do one thing one after the other, round and round."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation, prop_def, traits_def
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.enclosing import role_of

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
        if any(op.name == TAKE and _is_of_turn(op, turn) for op in _operations(region))
    ]


def turns_of(region: Region) -> list[str]:
    """The names of the turns that a role takes, each once."""
    return list(
        dict.fromkeys(op.turn.data for op in _operations(region) if isinstance(op, TakeTurnOp))
    )


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


def _operations(region: Region) -> Iterator[Operation]:
    for block in region.blocks:
        for op in block.ops:
            yield from op.walk()


def _is_of_turn(op: Operation, turn: str) -> bool:
    return isinstance(op, TakeTurnOp | PassTurnOp) and op.turn.data == turn


def _next_of_turn(take: TakeTurnOp) -> Operation | None:
    op = take.next_op
    while op is not None and not any(_is_of_turn(inner, take.turn.data) for inner in op.walk()):
        op = op.next_op
    return op
