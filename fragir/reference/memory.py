"""Memory and tiles of the reference: windows into arrays of bounded values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.memref import AlterShapeOperation
from xdsl.ir import Operation, SSAValue

from fragir.dialects.interfaces import ACCESSES, Accesses
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.formats import INTEGERS, Array, Floats

Where = tuple[int | slice, ...]
"""An index or a range for every dimension."""


@dataclass(frozen=True, eq=False)
class BoundedMemory:
    """A matrix or stack of matrices that can be written; views share their arrays."""

    value: Array
    bound: Floats
    element: str
    """The PTX name of the element type."""

    @property
    def content(self) -> Bounded:
        """What lies there now."""
        return Bounded(self.value.copy(), self.bound.copy())

    def write(self, x: Bounded) -> None:
        """Replaces everything."""
        self.value[...], self.bound[...] = x.value, x.bound

    def reshaped(self, shape: Sequence[int]) -> BoundedMemory:
        """The same elements in row-major order under another shape."""
        if prod(shape) != self.value.size:
            shapes = ["x".join(map(str, s)) for s in (self.value.shape, shape)]
            raise FragirError(f"memory of {shapes[0]} cannot be seen as {shapes[1]}")
        value, bound = self.value.reshape(shape), self.bound.reshape(shape)
        if value.size and not np.shares_memory(value, self.value):
            raise FragirError("memory with gaps cannot be seen in another shape", hint="copy it")
        return BoundedMemory(value, bound, self.element)

    def part(self, where: Where) -> BoundedMemory:
        """The elements at some places."""
        return BoundedMemory(self.value[where], self.bound[where], self.element)

    def gathered(self, indices: Sequence[Bounded]) -> Bounded:
        """The elements at places that arrays of indices give, which must be known for certain."""
        if any(index.bound.any() for index in indices):
            raise FragirError("where memory is read depends on rounding")
        places = np.broadcast_arrays(*(index.value for index in indices))
        for place, size in zip(places, self.value.shape, strict=True):
            if place.size and not 0 <= place.min() <= place.max() < size:
                raise FragirError(f"an index lies outside of a dimension of {size}")
        return Bounded(self.value[tuple(places)], self.bound[tuple(places)])

    def at(self, indices: Sequence[int]) -> BoundedMemory:
        """The part at these leading indices."""
        for index, size in zip(indices, self.value.shape, strict=False):
            if not 0 <= index < size:
                raise FragirError(f"index {index} lies outside of a dimension of {size}")
        where = tuple(indices)
        return BoundedMemory(self.value[where], self.bound[where], self.element)


def memory_of(values: Array, element: str) -> BoundedMemory:
    """Memory that holds exactly these values (a copy)."""
    return BoundedMemory(np.array(values, order="C"), np.zeros(np.shape(values)), element)


def unwritten_memory(shape: Sequence[int], element: str) -> BoundedMemory:
    """Memory of unknown content: any bit pattern may lie there."""
    kind = np.int64 if element in INTEGERS else np.float64
    return BoundedMemory(np.zeros(shape, kind), np.full(shape, np.inf), element)


@dataclass(frozen=True)
class Window:
    """Where a tile lies in memory: for the leading dimensions an index, for the last ones a range.

    Raises FragirError where an unmasked tile leaves the memory.
    """

    leading: tuple[int, ...]
    inside: tuple[slice, ...]
    """What exists of the tile, in memory."""
    part: tuple[slice, ...]
    """The same in the tile."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing of the tile exists; then no index need be one of the memory's."""
        return any(inside.start == inside.stop for inside in self.inside)

    @staticmethod
    def of(
        memory: BoundedMemory, indices: Sequence[int], shape: Sequence[int], masked: bool, name: str
    ) -> Window:
        sizes = memory.value.shape
        first = len(sizes) - len(shape)
        leading = tuple(indices[:first])
        exists = all(0 <= i < n for i, n in zip(leading, sizes, strict=False))
        inside: list[slice] = []
        part: list[slice] = []
        for start, extent, size in zip(indices[first:], shape, sizes[first:], strict=True):
            low, high = max(0, start), min(size, start + extent)
            if not exists:
                low, high = 0, 0
            if not masked and (low != start or high != start + extent):
                raise FragirError(
                    f"{name}: the tile at {list(indices)} of {'x'.join(map(str, shape))} leaves "
                    f"the memory of {'x'.join(map(str, sizes))}",
                    hint="write `masked`",
                )
            high = max(low, high)
            inside.append(slice(low, high))
            part.append(slice(low - start, high - start) if high > low else slice(0, 0))
        return Window(leading if exists else (0,) * first, tuple(inside), tuple(part))


def load(
    memory: BoundedMemory,
    indices: Sequence[int],
    shape: Sequence[int],
    masked: bool,
    name: str,
    other: Bounded | None = None,
) -> Bounded:
    """A tile; what lies outside is `other`, or 0."""
    window = Window.of(memory, indices, shape, masked, name)
    value, bound = np.zeros(shape, memory.value.dtype), np.zeros(shape)
    if other is not None:
        value[...], bound[...] = other.value, other.bound
    if not window.is_empty:
        where = (*window.leading, *window.inside)
        value[window.part], bound[window.part] = memory.value[where], memory.bound[where]
    return Bounded(value, bound)


def load_broadcast(
    memory: BoundedMemory,
    indices: Sequence[int],
    shape: tuple[int, int],
    masked: bool,
    other: Bounded | None = None,
) -> Bounded:
    """A tile of which memory holds one row, one column, one value or all."""
    sizes = memory.value.shape[-2:]
    wanted = tuple(
        1 if size == 1 else extent
        for size, extent in zip(sizes, shape[2 - len(sizes) :], strict=True)
    )
    small = load(memory, indices, wanted, masked, "frag.load", other)
    return Bounded(np.broadcast_to(small.value, shape), np.broadcast_to(small.bound, shape))


def store(
    memory: BoundedMemory, indices: Sequence[int], tile: Bounded, masked: bool, name: str
) -> None:
    """Writes a tile; what lies outside is dropped."""
    window = Window.of(memory, indices, tile.value.shape, masked, name)
    if not window.is_empty:
        where = (*window.leading, *window.inside)
        memory.value[where] = tile.value[window.part]
        memory.bound[where] = tile.bound[window.part]


# -- accesses --------------------------------------------------------------------------------------
# Memory that operations of xDSL's dialects touch.


@ACCESSES.attach(memref.LoadOp)
class LoadAccesses(Accesses):
    def __init__(self, op: memref.LoadOp):
        self.op = op

    def reads(self) -> Sequence[SSAValue]:
        return (self.op.memref,)


@ACCESSES.attach(memref.StoreOp)
class StoreAccesses(Accesses):
    def __init__(self, op: memref.StoreOp):
        self.op = op

    def writes(self) -> Sequence[SSAValue]:
        return (self.op.memref,)


@ACCESSES.attach(memref.CopyOp)
class CopyAccesses(Accesses):
    def __init__(self, op: memref.CopyOp):
        self.op = op

    def reads(self) -> Sequence[SSAValue]:
        return (self.op.source,)

    def writes(self) -> Sequence[SSAValue]:
        return (self.op.destination,)


@ACCESSES.attach(memref.CastOp, memref.SubviewOp, AlterShapeOperation)
class ViewAccesses(Accesses):
    """The same memory under another type."""

    def __init__(self, op: Operation):
        self.op = op

    def view_of(self) -> SSAValue:
        return self.op.operands[0]


@ACCESSES.attach(LinalgStructuredOperation)
class StructuredAccesses(Accesses):
    """Outputs in memory are written; a tensor takes the place of the output it is made from."""

    def __init__(self, op: LinalgStructuredOperation):
        self.op = op

    def reads(self) -> Sequence[SSAValue]:
        return self.op.inputs

    def writes(self) -> Sequence[SSAValue]:
        return [v for v in self.op.outputs if isinstance(v.type, MemRefType)]

    def view_of(self) -> SSAValue:
        return self.op.outputs[0]


@ACCESSES.attach(func.ReturnOp)
class ReturnAccesses(Accesses):
    """Tensors that are returned are written to arguments."""

    def __init__(self, op: func.ReturnOp):
        self.op = op

    def writes(self) -> Sequence[SSAValue]:
        return self.op.arguments
