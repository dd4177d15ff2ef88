"""A lane's registers and pointers, as lane-level code in Python has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from xdsl.ir import Attribute, SSAValue

from fragir.builder.checks import whole
from fragir.builder.places import fail
from fragir.builder.trace import Trace
from fragir.builder.types import s32, type_name
from fragir.builder.values import Scalar
from fragir.dialects import frag, ptx


class LaneRegisters(Sequence[Scalar]):
    """A lane's elements of a tile, in the order of its layout: scalars by number."""

    def __init__(self, trace: Trace, ssa: SSAValue, operand: int | None = None, rank: int = 0):
        self.trace, self.ssa = trace, ssa
        self._operand, self._rank = operand, rank
        self._scalars: list[Scalar] | None = None

    @property
    def element(self) -> Attribute:
        """The type of the elements."""
        return ptx.scalar_type(self.ssa.type)

    def _elements(self) -> list[Scalar]:
        if self._scalars is None:
            parts = self.trace.insert(ptx.UnpackOp(self.ssa)).scalars
            self._scalars = [Scalar(self.trace, part) for part in parts]
        return self._scalars

    def __len__(self) -> int:
        return ptx.length(self.ssa.type)

    @overload
    def __getitem__(self, index: int) -> Scalar: ...
    @overload
    def __getitem__(self, index: slice) -> list[Scalar]: ...
    def __getitem__(self, index: int | slice) -> Scalar | list[Scalar]:
        return self._elements()[index]

    def __iter__(self) -> Iterator[Scalar]:
        return iter(self._elements())

    def coordinates(self, element: int) -> tuple[Scalar, ...]:
        """Where an element stands in its tile: an index for each dimension."""
        if self._operand is None:
            fail("registers that were computed stand in no tile", "ask those that were given")
        return coordinates(self.trace, "operand", self._operand, element, self._rank)

    @property
    def words(self) -> list[Scalar]:
        """The 32-bit registers as s32: of f16 and bf16 each holds two elements, the first low."""
        count = ptx.registers(self.ssa.type)
        op = ptx.BitcastOp(self.ssa, ptx.vector_type(s32, count))
        return list(LaneRegisters(self.trace, self.trace.insert(op).result))

    def __repr__(self) -> str:
        return f"<{len(self)} registers of {type_name(self.element)}>"


def coordinates(
    trace: Trace, of: str, number: int, element: object, rank: int
) -> tuple[Scalar, ...]:
    op = frag.CoordinatesOp(of, number, whole(element, "an element", 0), rank)
    return tuple(Scalar(trace, place) for place in trace.insert(op).place)


class LanePointer:
    """The address of an element of memory, of this lane."""

    def __init__(self, trace: Trace, ssa: SSAValue):
        self.trace, self.ssa = trace, ssa

    def __repr__(self) -> str:
        return f"<pointer {self.ssa.type}>"
