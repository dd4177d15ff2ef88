"""Rings of shared and tensor memory, clusters and products under way in Python: what is given on
once."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import DenseArrayBase, MemRefType, i1, i64
from xdsl.ir import Attribute, SSAValue

from fragir.builder.places import fail, items, require_number, require_shape, require_word
from fragir.builder.tiles import TileOperations, shared_type, sizes_of
from fragir.builder.trace import Trace
from fragir.builder.types import require_tile_element
from fragir.builder.values import Memory, Scalar, Tile, Value
from fragir.dialects import frag
from fragir.dialects.frag.attributes import HALVED, OPERAND, SCALES
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
        pair: str = "",
    ) -> MemRefType[Attribute]:
        """What a slot of a ring holds: memory as of `shared`, which `ring` makes. `pair`: the two
        blocks of a cluster have half of it each, of its "row"s or its "col"umns."""
        type_ = shared_type(shape, element, swizzle, layout)
        if pair not in ("", *HALVED):
            fail(f"pair is {pair!r}, a pair of blocks divides 'row' or 'col'")
        if not pair:
            return type_
        halved = frag.SharedAttr(swizzle, pair)
        return MemRefType(element, type_.get_shape(), type_.layout, halved)

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


# -- tensor memory ---------------------------------------------------------------------------------
# Sums in tensor memory in Python: `tensor_part`, `tcgen05_mma` and others of a kernel.


class TensorOperations(FlightOperations):
    """Sums that lie in tensor memory, where products add up by themselves (sm_100a and its kin)."""

    def tensor_part(
        self,
        shape: Sequence[int],
        element: Attribute,
        *,
        scales: bool = False,
        operand: bool = False,
    ) -> MemRefType[Attribute]:
        """A matrix in tensor memory as a part of a ring: `k.ring(2, [k.tensor_part(...)])`.

        Its rows are lanes, 128 at a time, its columns are columns, of which a block has 512. With
        `scales` it holds a scale for each row of A or column of B and each block of K; with
        `operand` an A, whose elements share columns (`tcgen05_store`).
        """
        sizes = require_shape(shape)
        if len(sizes) != 2:
            fail(f"a part in tensor memory is a matrix, not {len(sizes)}-dimensional")
        if scales and operand:
            fail("a part holds scales or an operand")
        space = frag.TensorMemoryAttr(SCALES if scales else OPERAND if operand else "")
        type_ = require_tile_element(element, "tensor memory")
        return MemRefType(type_, sizes, memory_space=space)

    def tcgen05_mma(
        self,
        a: Memory,
        b: Memory,
        d: Memory,
        *,
        accumulate: Scalar | bool = True,
        transposed_a: bool = False,
        transposed_b: bool = False,
        scales: tuple[Memory, Memory] | None = None,
        pair: bool = False,
    ) -> None:
        """`d = a b + d` in tensor memory (tcgen05.mma): b, and a unless it is an `operand` in
        tensor memory, in shared memory.

        It goes on by itself: the slots that hold a and b may be released at once, and that of d
        published; whoever waits for them waits until it is done. Where `accumulate` does not hold
        d is the product alone. `transposed_a`: memory holds K x M; `transposed_b`: memory holds
        N x K. `scales` are those of blocks along K, in tensor memory (`tcgen05_copy`). `pair`: of
        the two blocks of a cluster, b their `part(..., pair="row")`. PTX ISA 9.2, section
        9.7.16.10.
        """
        left = self._memory(a)
        if not frag.holds_operand(left.type):
            left = self._shared_operand("tcgen05.mma", "a", a)
        right = self._shared_operand("tcgen05.mma", "b", b)
        both = () if scales is None else items(scales)
        if scales is not None and (both is None or len(both) != 2):
            fail(f"scales are {scales!r}, they must be those of a and those of b")
        op = frag.TensorMmaOp(
            left,
            right,
            self._memory(d),
            a_transposed=transposed_a,
            b_transposed=transposed_b,
            later=self._counts(accumulate),
            scales=[self._memory(scale) for scale in both or ()],
            pair=pair,
        )
        self.trace.insert(op)

    def tcgen05_load(self, memory: Memory, *, column: int = 0, columns: int | None = None) -> Tile:
        """A tile of what lies in tensor memory (tcgen05.ld), by one warpgroup or more: of
        `columns` from `column` on, or of all that follow. PTX ISA 9.2, section 9.7.16.8.
        """
        source, first = self._memory(memory), require_number(column, "column", 0)
        rows, width = memory.type.get_shape()[-2:]
        many = width - first if columns is None else require_number(columns, "columns", 1)
        if first + many > width or many < 1:
            fail(f"{memory!r} has no {many} columns from {first} on")
        type_ = frag.TileType((rows, many), memory.type.element_type)
        return self.trace.wrap(self.trace.insert(frag.TensorLoadOp(source, type_, first)).tile)

    def tcgen05_store(self, tile: Tile, memory: Memory, *, column: int = 0) -> None:
        """Puts a tile into tensor memory (tcgen05.st), into the columns from `column` on, by one
        warpgroup or more. Products read it when the slot is published. PTX ISA 9.2, section
        9.7.16.8.
        """
        at = require_number(column, "column", 0)
        self.trace.insert(frag.TensorStoreOp(self._tile(tile), self._memory(memory), at))

    def tcgen05_copy(self, source: Memory, target: Memory, *, transposed: bool = False) -> None:
        """Scales of blocks go from shared to tensor memory (tcgen05.cp), ahead of the products
        that follow. The slot that it reads may be released at once; `transposed`: its rows are
        blocks. PTX ISA 9.2, section 9.7.16.9.
        """
        self.trace.insert(
            frag.TensorCopyOp(self._memory(source), self._memory(target), transposed=transposed)
        )

    def _counts(self, accumulate: object) -> SSAValue | None:
        """Whether what is there counts; None where it always does."""
        if accumulate is True:
            return None
        if isinstance(accumulate, Scalar) and accumulate.type == i1:
            return self.trace.use(accumulate)
        if accumulate is not False:
            fail(f"accumulate is {accumulate!r}, no condition", "compare something: index > 0")
        return self.trace.constant(0, i1)
