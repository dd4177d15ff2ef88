"""Loops, branches and roles of warps.

Blocks of the kernel that Python runs through exactly once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import SimpleNamespace, TracebackType
from typing import TYPE_CHECKING, Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import is_side_effect_free

from fragir.builder.places import (
    error_at,
    fail,
    place,
    require_number,
    require_pair,
    require_word,
)
from fragir.builder.rings import RingSlot, TileInFlight, held_of, held_value
from fragir.builder.tiles import TileOperations
from fragir.builder.trace import Trace
from fragir.builder.types import condition, index
from fragir.builder.values import IndexOperand, Scalar, Tile
from fragir.dialects import frag
from fragir.errors import short_text

if TYPE_CHECKING:
    from fragir.dialects.frag.roles import Role


Carried = Scalar | Tile | RingSlot | TileInFlight | int


class _Block:
    """A `with` that carries named values: attributes that can be read and assigned."""

    _KIND = "block"

    def __repr__(self) -> str:
        state = "is over" if self._done else "open" if self._open else "not begun"
        carried = f" of {', '.join(self._start)}" if self._start else ""
        return short_text(f"<{self._KIND}{carried}, {state}>")

    def __init__(self, trace: Trace, carried: dict[str, Carried]):
        start: dict[str, SSAValue] = {}
        for name, value in carried.items():
            if hasattr(type(self), name) or name.startswith("_"):
                fail(f"{self._KIND}s have a {name} of their own", "call the value something else")
            start[name] = _first(trace, value, name)
        # not through __setattr__, which is for carried values
        state = {"_trace": trace, "_start": start, "_now": {}, "_open": False, "_done": False}
        self.__dict__.update(state, _location=place())

    _trace: Trace
    _start: dict[str, SSAValue]
    _now: dict[str, SSAValue]
    _open: bool
    _done: bool
    _location: LocationAttr

    def _set(self, **state: object) -> None:
        self.__dict__.update(state)

    def __getattr__(self, name: str) -> Any:
        """The present value of what is carried under a name; after the `with` the final one."""
        if name.startswith("_"):
            raise AttributeError(name)
        self._check(name)
        return _wrap(self._trace, self._now[name])

    def __setattr__(self, name: str, value: Carried) -> None:
        self._check(name)
        if not self._open:
            fail(f"the {self._KIND} is over", f"assign .{name} inside its `with`")
        wanted = self._start[name].type
        ssa = _value(self._trace, value, wanted, name)
        if ssa.type != wanted:
            held = _wrap(self._trace, self._start[name])
            both = (wanted, ssa.type)
            if all(isinstance(type_, frag.TileType) for type_ in both) and repr(held) == repr(
                value
            ):
                start, now = (_in_layout(type_) for type_ in both)
                hint = "k.convert(tile, layout) makes them one, where the loop starts or here"
                fail(f"{name} carries {held!r} {start}, not {now}", hint)
            fail(f"{name} carries {held!r}, not {value!r}", "shape and type must stay the same")
        self._now[name] = ssa

    def _check(self, name: str) -> None:
        if name not in self._start:
            known = ", ".join(self._start) or "nothing"
            fail(
                f"this {self._KIND} carries no {name}, but {known}",
                f"name it where the {self._KIND} starts: {name}=first value",
            )
        if not self._open and not self._done:
            fail(f"the {self._KIND} has not begun", "write `with ... as` before it")

    def _enter(self, block: Block, now: dict[str, SSAValue]) -> None:
        if self._done or self._open:
            fail(f"this {self._KIND} has been built already")
        self._trace.open(self._KIND, block)
        self._set(_now=now, _open=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._abandon()
            return
        self._leave()
        op = self._trace.insert(self._operation(), location=self._location)
        self._results(op)

    def _operation(self) -> scf.ForOp | scf.IfOp | scf.WhileOp:
        """The operation, of the blocks that have been built."""
        raise NotImplementedError

    def _arguments(self, *leading: tuple[str, Attribute]) -> Block:
        """A block that takes what is carried, with other arguments ahead of it."""
        given = [*leading, *((name, value.type) for name, value in self._start.items())]
        block = Block(arg_types=[type_ for _, type_ in given])
        for argument, (name, _) in zip(block.args, given, strict=True):
            argument.name_hint = name
        return block

    def _leave(self) -> None:
        """Ends the block with what is carried on."""
        self._trace.insert(scf.YieldOp(*self._now.values()), location=self._location)
        self._abandon()

    def _abandon(self) -> None:
        self._trace.close()
        self._set(_open=False)

    def _results(self, op: scf.ForOp | scf.IfOp | scf.WhileOp) -> None:
        for name, result in zip(self._start, op.results, strict=True):
            result.name_hint = name
        self._set(_now=dict(zip(self._start, op.results, strict=True)), _done=True)


class Loop(_Block):
    """A loop of the kernel (`scf.for`); see `Kernel.loop`."""

    _KIND = "loop"

    def __init__(
        self,
        trace: Trace,
        bounds: tuple[IndexOperand, IndexOperand, IndexOperand],
        carried: dict[str, Carried],
    ):
        super().__init__(trace, carried)
        step = trace.index(bounds[2], "a loop's step")
        if isinstance(step, int) and step < 1:
            fail(f"a loop's step is {step}, it must be positive")
        start, stop, step = (trace.scalar(bound, index, "a loop's bound") for bound in bounds)
        self._set(_bounds=(start, stop, step))

    _bounds: tuple[SSAValue, SSAValue, SSAValue]
    _block: Block

    @property
    def index(self) -> Scalar:
        """The number that counts: start, start + step, ... below stop."""
        if not self._open:
            fail("a loop's index exists inside its `with`")
        return Scalar(self._trace, self._block.args[0])

    def __enter__(self) -> Loop:
        block = self._arguments(("i", index))
        self._set(_block=block)
        self._enter(block, dict(zip(self._start, block.args[1:], strict=True)))
        return self

    def _operation(self) -> scf.ForOp:
        return scf.ForOp(*self._bounds, list(self._start.values()), self._block)


class While(_Block):
    """A loop that goes on while a condition holds (`scf.while`); see `Kernel.while_`."""

    _KIND = "loop"
    _condition: Callable[[Any], object]
    _before: Block
    _block: Block

    def __init__(
        self, trace: Trace, condition: Callable[[Any], object], carried: dict[str, Carried]
    ):
        super().__init__(trace, carried)
        if not callable(condition):
            fail(
                f"{condition!r} is no function",
                "write what holds while it goes on, as in k.while_(lambda now: now.i < n, i=0)",
            )
        self._set(_condition=condition)

    def __enter__(self) -> While:
        self._set(_before=self._arguments(), _block=self._arguments())
        trace, values = self._trace, self._before.args
        trace.open("condition of the loop", self._before)
        try:
            now = {n: _wrap(trace, v) for n, v in zip(self._start, values, strict=True)}
            found = trace.operand(self._condition(SimpleNamespace(**now)))
            if not isinstance(found, Scalar) or found.type != condition:
                fail(f"a loop goes on while a condition holds, not {found!r}", "compare scalars")
            trace.insert(scf.ConditionOp(trace.use(found), *values), location=self._location)
        finally:
            trace.close()
        self._enter(self._block, dict(zip(self._start, self._block.args, strict=True)))
        return self

    def _operation(self) -> scf.WhileOp:
        start = list(self._start.values())
        types = [value.type for value in start]
        return scf.WhileOp(start, types, Region(self._before), Region(self._block))


class Branch(_Block):
    """A branch of the kernel (`scf.if`); see `Kernel.if_`."""

    _KIND = "branch"
    _op: scf.IfOp | None
    _block: Block
    _condition: SSAValue

    def __init__(self, trace: Trace, chosen: object, carried: dict[str, Carried]):
        super().__init__(trace, carried)
        operand = trace.operand(chosen)
        if not isinstance(operand, Scalar) or operand.type != condition:
            fail(
                f"{operand!r} is no condition of the kernel",
                "compare scalars; what Python knows is chosen with Python's if",
            )
        self._set(_condition=trace.use(operand), _op=None)

    def __enter__(self) -> Branch:
        self._set(_block=Block())
        self._enter(self._block, dict(self._start))
        return self

    def _operation(self) -> scf.IfOp:
        start = list(self._start.values())
        # what is carried stays as it was where the condition does not hold
        other: Region | None = None
        if start:
            kept = scf.YieldOp(*start)
            kept.location = self._location
            other = Region(Block([kept]))
        types = [value.type for value in start]
        op = scf.IfOp(self._condition, types, Region(self._block), other)
        self._set(_op=op)
        return op

    def else_(self) -> Otherwise:
        """`with branch.else_():` right after the branch: what happens otherwise."""
        op = self._op
        if op is None or op.next_op is not None or op.parent is not self._trace.block:
            fail("else_ does not follow its if_ directly")
        return Otherwise(self, op)

    def open_else(self) -> None:
        """Begins the other block; carried values start as they were before the branch."""
        self._set(_block=Block(), _done=False)
        self._enter(self._block, dict(self._start))

    def close_else(self, op: scf.IfOp, failed: bool) -> None:
        """Puts the other block into the branch."""
        if failed:
            self._abandon()
            return
        self._leave()
        region = op.false_region
        if region.blocks:
            region.detach_block(0).erase()
        region.add_block(self._block)
        self._set(_op=None)
        self._results(op)


class Otherwise:
    """The `with` of `else_`."""

    def __init__(self, branch: Branch, op: scf.IfOp):
        self._branch, self._op = branch, op

    def __enter__(self) -> None:
        self._branch.open_else()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._branch.close_else(self._op, kind is not None)


def _first(trace: Trace, value: object, name: str) -> SSAValue:
    known = held_of(trace, value)
    if known is not None:
        return known
    operand = trace.operand(value)
    if isinstance(operand, float):
        fail(f"{name} begins as {operand}, which has no type", "write k.constant(0.0, fragir.f32)")
    return trace.constant(operand, index) if isinstance(operand, int) else trace.use(operand)


def _value(trace: Trace, value: object, type_: Attribute, name: str) -> SSAValue:
    known = held_of(trace, value)
    if known is not None:
        return known
    operand = trace.operand(value)
    if not isinstance(operand, int | float):
        return trace.use(operand)
    if isinstance(type_, frag.TileType):
        fail(f"{name} carries a tile, not the number {operand}", "k.fill(...) makes a tile")
    return trace.constant(operand, type_)


def _in_layout(type_: Attribute) -> str:
    """Where a tile's elements are, in a message."""
    placement = type_.placement if isinstance(type_, frag.TileType) else None
    return "in a layout that the compiler chooses" if placement is None else f"in {placement}"


def _wrap(trace: Trace, ssa: SSAValue) -> Scalar | Tile | RingSlot | TileInFlight:
    known = held_value(trace, ssa)
    if known is not None:
        return known
    return trace.wrap(ssa) if isinstance(ssa.type, frag.TileType) else Scalar(trace, ssa)


# -- roles -----------------------------------------------------------------------------------------
# Roles of warps in Python: the methods `role` and `turn` of a kernel.

EXACTLY_ONE = 'write k.role("load", warps=(1, 1)), or warpgroups=(2, 1)'


class RoleBlock:
    """The `with` of one role; see `Kernel.role`."""

    def __init__(self, trace: Trace, role: Role, packed: bool):
        self._trace, self._role, self._packed = trace, role, packed
        self._location = place()

    def __enter__(self) -> None:
        if len(self._trace.scopes) != 1:
            kind = self._trace.scopes[-1].kind if self._trace.scopes else "kernel"
            fail(f"a role inside of a {kind}", "roles stand side by side in the kernel's `with`")
        self._trace.open("role", self._role.body.block)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._trace.close()
        if kind is not None:
            return
        roles, location = [self._role], self._location
        before = next((op for op in self._trace.block.ops if isinstance(op, frag.RolesOp)), None)
        if before is not None:
            _check_between(before)
            if self._packed != (before.packed is not None):
                raise error_at(self._location, "of the roles of a kernel all are packed, or none")
            location = before.location
            roles = [
                *(role._replace(body=_take_block(role.body)) for role in before.roles()),
                *roles,
            ]
            before.detach()
        self._trace.insert(frag.RolesOp(roles, packed=self._packed), location=location)


def _take_block(region: Region) -> Region:
    """A region with the block of another one."""
    return Region(region.detach_block(0))


def _check_between(roles: Operation) -> None:
    """What stands between two roles is computed before them, so it may do nothing but compute."""
    op = roles.next_op
    while op is not None:
        if not is_side_effect_free(op):
            fail(f"{op.name} between two roles", "write it before the first one")
        op = op.next_op


class RoleOperations(TileOperations):
    """Warps that do different things."""

    def role(
        self,
        name: str,
        *,
        warps: tuple[int, int] | None = None,
        warpgroups: tuple[int, int] | None = None,
        registers: int | None = None,
        packed: bool = False,
    ) -> RoleBlock:
        """What some warps of a block do while those of other roles do something else.

            with k.role("load", warps=(1, 1), registers=24):
                ...
            with k.role("multiply", warpgroups=(2, 1), registers=240):
                ...

        The roles of a kernel run side by side, one after the other in the text. They meet in rings
        (`k.ring`); a tile belongs to the role that made it. `registers` a thread are moved between
        warpgroups where the machine can do that. `packed`, of all roles or none: those of warps
        stand beside each other in a warpgroup, and registers stay as they are.
        """
        shape, groups = require_pair(warps, "warps"), require_pair(warpgroups, "warpgroups")
        if (shape is None) == (groups is None):
            fail("a role has either warps or warpgroups", EXACTLY_ONE)
        number = None if registers is None else require_number(registers, "registers", 1)
        body = Region(Block())
        from fragir.dialects.frag.roles import Role  # few kernels have them

        role = Role(require_word(name, "name"), body, shape, groups, number)
        return RoleBlock(self.trace, role, packed)

    @contextmanager
    def turn(self, name: str) -> Generator[None]:
        """`with k.turn("products"):` in loops of several roles: one after the other, round and
        round, each waits until the one before it has done its part."""
        self.trace.insert(frag.TakeTurnOp(require_word(name, "name")))
        yield
        self.trace.insert(frag.PassTurnOp(name))
