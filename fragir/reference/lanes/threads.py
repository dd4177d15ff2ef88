"""All threads of a block at once, and what each has of every value of a region.

A scalar of the region is an array of a value a thread, a vector one of threads x elements, each
with bounds as everywhere. Threads that a branch or loop leaves out take part in the arithmetic,
and nobody looks at what comes of it. Operations of arith and math mean what they mean elsewhere;
those of `ptx` have meanings of their own. What has no meaning may give anything.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator, MemoryEffectKind, get_effects

from fragir.dialects import frag, ptx
from fragir.dialects.interfaces import MEANINGS
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.late_dialect import ROWS, import_named
from fragir.reference.bounded import Bounded
from fragir.reference.formats import Array, type_name
from fragir.reference.memory import BoundedMemory
from fragir.reference.run import Run, anything

WARP = 32


class Pointer(NamedTuple):
    """What each thread's pointer points to."""

    memory: BoundedMemory | None
    """None: memory of which nothing is known."""
    at: Array
    """The element, counted in order of rows."""
    moved: Array
    """Bytes from there."""
    in_order: bool
    """Whether memory lies in order of rows without gaps."""
    known: bool = True
    """Whether the element is known."""


class UncertainError(FragirError):
    """A number that steers threads is not known for certain."""


class BlockThreads:
    """The threads of a block while they run a region."""

    def __init__(self, run: Run, count: int):
        self.run, self.count = run, count
        self.number = np.arange(count)
        self.active: Array = np.ones(count, bool)
        """Those that execute what is being run."""
        self.pointers: dict[SSAValue, Pointer] = {}
        self.guesses = False
        """Whether something has happened of which nothing is known."""

    @property
    def lane(self) -> Array:
        """Each thread's number in its warp."""
        return self.number % WARP

    def shape(self, type_: Attribute) -> tuple[int, ...]:
        """The shape of the arrays of a value."""
        return (self.count, ptx.length(type_)) if is_vector(type_) else (self.count,)

    def __getitem__(self, value: SSAValue) -> Bounded:
        """What every thread has of a value: [threads] or [threads, elements]."""
        x, shape = self.run[value], self.shape(value.type)
        return Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))

    def __setitem__(self, value: SSAValue, x: Bounded) -> None:
        self.run[value] = x

    def anything(self, type_: Attribute) -> Bounded:
        """A value of which nothing is known."""
        return anything(self.shape(type_), type_name(type_))

    def require_certain(self, value: SSAValue, what: str) -> Array:
        """A number of each thread that may not depend on rounding where it executes."""
        x = self[value]
        if (x.bound > 0)[self.active].any():
            raise UncertainError(f"{what} depends on rounding", hint="use arith.select")
        return x.value

    def pointer(self, value: SSAValue) -> Pointer:
        """A pointer; one that comes from where nothing is known points anywhere."""
        zeros = np.zeros(self.count, np.int64)
        return self.pointers.get(value, Pointer(None, zeros, zeros, False))

    # --- running ------------------------------------------------------------------------------

    def run_block(self, block: Block) -> list[Bounded]:
        """Runs operations in order; what the terminator passes on."""
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return [self[value] for value in op.operands]
            self.run.run_op(op, self._step)
        return []

    def _step(self, _run: Run, op: Operation) -> None:
        own = meaning_of(op.name)
        meaning = MEANINGS.of(type(op))
        if own is not None:
            active = self.active
            try:
                own(self, op)
            except UncertainError:
                if not self.guesses:
                    raise
                self.active = active
                self.make_unknown(op)
        elif meaning is not None:
            meaning(self.run, op)
        else:
            self.make_unknown(op)

    def make_unknown(self, op: Operation) -> None:
        """What an operation without a meaning gives and writes may be anything."""
        for result in op.results:
            if not isinstance(result.type, ptx.PointerType):
                self[result] = self.anything(result.type)
        self.guesses = True
        for inner in op.walk():
            if isinstance(inner, frag.PointerOp) and inner is not op:
                self._point_anywhere(inner)  # in a region that is not run
            self._overwrite(inner)
        self.run.note_unknown(op)

    def _point_anywhere(self, op: frag.PointerOp) -> None:
        meaning = meaning_of(op.name)
        assert meaning is not None
        meaning(self, op)

    def _overwrite(self, op: Operation) -> None:
        """Memory that an operation may write holds anything."""
        effects = get_effects(op)
        if effects is not None and all(e.kind is MemoryEffectKind.READ for e in effects):
            return
        memories = [self.pointer(operand).memory for operand in op.operands]
        for memory in memories:
            if memory is not None:
                memory.write(anything(memory.value.shape, memory.element))

    def select(self, mask: Array, x: Bounded, y: Bounded) -> Bounded:
        """x in the threads of a mask, y in the others."""
        mask = mask if x.value.ndim == 1 else mask[:, None]
        return Bounded(np.where(mask, x.value, y.value), np.where(mask, x.bound, y.bound))


Step = Callable[[BlockThreads, Any], None]


@cache
def meaning_of(name: str) -> Step | None:
    """What an operation means in a region, where that is something of its own, ahead of what it
    means elsewhere."""
    row = ROWS.get(name)
    place = None if row is None else row.place("in_lanes", "fragir.reference.lanes")
    return None if place is None else import_named(":".join(place))
