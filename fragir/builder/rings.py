"""Rings of shared memory, clusters and products under way in Python: what is given on once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, MemRefType, i1, i64
from xdsl.ir import Attribute, SSAValue

from fragir.builder.places import fail, items, require_number, require_word
from fragir.builder.tiles import TileOperations, shared_type, sizes_of
from fragir.builder.trace import Trace
from fragir.builder.values import Memory, Scalar, Tile, Value
from fragir.dialects import frag
from fragir.dialects.frag.kernels import CLUSTER, MOST_BLOCKS
from fragir.dialects.shorthands import memref_type
from fragir.layout import Layout

# -- clusters --------------------------------------------------------------------------------------
# Clusters of blocks in Python: the methods `cluster` and `cluster_rank` of a kernel.


class ClusterOperations(TileOperations):
    """Blocks that run side by side and see each other's shared memory."""

    def cluster(self, x: int, y: int = 1, z: int = 1) -> None:
        """So many blocks along each dimension of the grid are a cluster; at most 8."""
        sizes = [require_number(size, "the size of a cluster") for size in (x, y, z)]
        if min(sizes) < 1 or prod(sizes) > MOST_BLOCKS:
            fail(f"a cluster has 1 to {MOST_BLOCKS} blocks, not {'x'.join(map(str, sizes))}")
        self.trace.attributes[CLUSTER] = DenseArrayBase.from_list(i64, sizes)

    def cluster_rank(self) -> Scalar:
        """The block's number in its cluster, from 0 on, x fastest."""
        return Scalar(self.trace, self.trace.insert(frag.ClusterRankOp(), "rank").result)


# -- slots -----------------------------------------------------------------------------------------
# What is given on once, in Python: slots of rings, and tiles in flight.


class Held(Value):
    """Something of which there is no copy: each is used up once on every path."""

    trace: Trace

    def __init__(self, trace: Trace, ssa: SSAValue):
        super().__init__(trace)
        self.ssa = ssa

    def require_value(self) -> SSAValue:
        """The value in the IR; an error at the user's line where it is out of sight."""
        if not self.trace.sees(self.ssa):
            fail(
                f"{self!r} was made in a block that is over",
                "carry it out: name it in k.loop(..., name=first)",
            )
        return self.ssa


class TileInFlight(Held):
    """The sums of products under way (`Kernel.wgmma_async`): c of another one, carried by a loop or
    branch under a name, or waited for."""

    def wait(self) -> Tile:
        """The tile, once the products are done."""
        return self.trace.wrap(self.trace.insert(frag.AwaitOp(self.require_value())).result)

    def __repr__(self) -> str:
        return f"<tile in flight{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


class RingSlot(Held):
    """A slot of a ring: shared memory that is held until `publish` or `release`.

    One that `Ring.acquire` gave is filled and published, one that `Ring.wait` gave is read and
    released; each once on every path. A loop carries it under a name.
    """

    @property
    def parts(self) -> list[Memory]:
        """Its memories, in the order in which the ring has them."""
        slot = self.require_value()
        assert isinstance(slot.type, frag.SlotType)
        found: list[Memory] = []
        for number in range(len(slot.type.parts)):
            memory = self.trace.insert(frag.PartOp(slot, number)).memory
            found.append(Memory(self.trace, memory, memref_type(memory.type).get_shape()))
        return found

    def publish(self) -> None:
        """Gives it to those who wait for it, with all that was written or is on the way."""
        self.trace.insert(frag.PublishOp(self.require_value()))

    def release(self) -> None:
        """Gives it back to be filled anew."""
        self.trace.insert(frag.ReleaseOp(self.require_value()))

    def __repr__(self) -> str:
        return f"<slot{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


def held_of(trace: Trace, value: object) -> SSAValue | None:
    """The value in the IR of what is carried and of which there is no copy; None for others."""
    if not isinstance(value, Held):
        return None
    if value.trace is not trace:
        fail(f"{value!r} belongs to another kernel")
    return value.ssa


def held_value(trace: Trace, ssa: SSAValue) -> RingSlot | TileInFlight | None:
    """A value of the IR as one of those; None for others."""
    kinds = {"frag.slot": RingSlot, "frag.in_flight": TileInFlight}
    found = kinds.get(ssa.type.name)
    return None if found is None else found(trace, ssa)


class Ring(Value):
    """Slots of shared memory that are filled and read in turn; see `Kernel.ring`."""

    trace: Trace

    def __init__(self, trace: Trace, ssa: SSAValue):
        super().__init__(trace)
        self.ssa = ssa

    def acquire(self) -> RingSlot:
        """Waits until the next slot is free: it is to be filled and published."""
        return RingSlot(self.trace, self.trace.insert(frag.AcquireOp(self.ssa)).slot)

    def wait(self) -> RingSlot:
        """Waits until the next slot is full: it is to be read and released."""
        return RingSlot(self.trace, self.trace.insert(frag.AwaitOp(self.ssa)).result)

    def no_slot(self) -> RingSlot:
        """No slot, where a loop carries that of the turn before: releasing it does nothing."""
        assert isinstance(self.ssa.type, frag.RingType)
        return RingSlot(self.trace, self.trace.insert(frag.NoSlotOp(self.ssa.type.slot)).slot)

    def __repr__(self) -> str:
        return f"<ring{' ' + self.ssa.name_hint if self.ssa.name_hint else ''}>"


class RingOperations(ClusterOperations):
    """Shared memory in slots, which some fill while others are read."""

    def part(
        self,
        shape: Sequence[int],
        element: Attribute,
        *,
        swizzle: int = 0,
        layout: Layout | str | None = None,
    ) -> MemRefType[Attribute]:
        """What a slot of a ring holds: memory as of `shared`, which `ring` makes."""
        return shared_type(shape, element, swizzle, layout)

    def ring(
        self, slots: int, parts: Sequence[MemRefType[Attribute]], *, turns: str | None = None
    ) -> Ring:
        """A ring of so many slots, each of these parts: `k.ring(3, [k.part((128, 64), f16)])`.

        `acquire` takes the next free slot to fill it and `publish` gives it on; `wait` takes the
        next full one, `release` gives it back. How long each waits is computed. Every role that
        waits gets all slots; with `turns="products"` roles wait in their turns of that name
        (`k.turn`), and share the slots out.
        """
        given = items(parts)
        if not given or any(not isinstance(part, MemRefType) for part in given):
            fail(f"a ring's parts are {parts!r}", "write [k.part((128, 64), fragir.f16), ...]")
        op = frag.RingOp(
            require_number(slots, "slots", 1),
            frag.RingType(list(parts)),
            None if turns is None else require_word(turns, "turns"),
        )
        return Ring(self.trace, self.trace.insert(op).ring)


# -- in flight -------------------------------------------------------------------------------------
# Products under way in Python: `wgmma_async`, `in_flight` and `undefined` of a kernel.


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
            c.require_value() if isinstance(c, TileInFlight) else self._tile(c),
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
