"""Products under way in Python: `wgmma_async`, `in_flight` and `undefined` of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import i1
from xdsl.ir import Attribute, SSAValue

from fragir.builder.places import fail
from fragir.builder.rings import RingOperations
from fragir.builder.slots import TileInFlight
from fragir.builder.tiles import sizes_of
from fragir.builder.values import Memory, Scalar, Tile
from fragir.dialects import frag


class FlightOperations(RingOperations):
    """Products that go on while the kernel does something else."""

    def wgmma_async(
        self,
        a: Tile | Memory,
        b: Memory,
        c: Tile | TileInFlight | None = None,
        *,
        accumulate: Scalar | None = None,
        transposed_a: bool = False,
        transposed_b: bool = False,
        negated_a: bool = False,
        negated_b: bool = False,
        metadata: Tile | None = None,
        satfinite: bool = False,
    ) -> TileInFlight:
        """`wgmma` in the background: the sums are there after `wait`. Memory that it reads may be
        written after that, or once the slot that holds it is released.

        c may be in flight itself: products are added to it in turn. Without c, or where
        `accumulate` does not hold, the product alone is formed. PTX ISA 9.2, section 9.7.15.
        """
        first, second = self._wgmma_operands(a, b)
        condition = None if accumulate is None else self.trace.use(accumulate)
        if condition is not None and condition.type != i1:
            fail(f"accumulate is {accumulate!r}, no condition", "compare something: index > 0")
        if c is None:
            if accumulate is not None:
                fail("accumulate says whether c counts, and there is no c")
            sizes = sizes_of(a)[transposed_a], sizes_of(b)[not transposed_b]
            c = self.undefined(sizes, self._sum_type(a.element, b.element))
            condition = self.trace.constant(0, i1)
        op = frag.WgmmaOp(
            first,
            second,
            c.used() if isinstance(c, TileInFlight) else self._tile(c),
            a_transposed=transposed_a,
            b_transposed=transposed_b,
            a_negated=negated_a,
            b_negated=negated_b,
            metadata=None if metadata is None else self._tile(metadata),
            satfinite=satfinite,
            asynchronous=True,
            scale_d=condition,
        )
        return self._flying(self.trace.insert(op).d)

    def in_flight(self, tile: Tile) -> TileInFlight:
        """A tile as one in flight, to which no product adds yet: what a loop begins with."""
        return self._flying(self.trace.insert(frag.InFlightOp(self._tile(tile))).result)

    def undefined(self, shape: Sequence[int], element: Attribute) -> Tile:
        """A tile with any contents: what a first product sets that does not accumulate."""
        type_ = self._tile_type(shape, element, None)
        return self.trace.wrap(self.trace.insert(frag.UndefinedOp(type_)).tile)

    def _flying(self, ssa: SSAValue) -> TileInFlight:
        return TileInFlight(self.trace, ssa)
