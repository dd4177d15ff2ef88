"""What a function of lane-level code works with: the lane, and its registers of tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

from xdsl.dialects import arith, memref
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.builder.checks import items, whole
from fragir.builder.lane_instruction import instruction_of
from fragir.builder.lane_values import LanePointer, LaneRegisters, coordinates
from fragir.builder.places import fail
from fragir.builder.tiles import memory_value
from fragir.builder.trace import Trace
from fragir.builder.types import index, scalar_type
from fragir.builder.values import IndexOperand, Memory, Scalar, ScalarOperand
from fragir.dialects import frag, ptx
from fragir.dialects.narrow import is_vector


class Lane:
    """One lane, as a function of lane-level code is given it."""

    def __init__(
        self,
        trace: Trace,
        lane: Scalar,
        warp: Scalar,
        ranks: Sequence[int],
    ):
        self._trace = trace
        self._ranks = ranks
        self.lane = lane
        """Its number in its warp, 0 to 31, an index."""
        self.warp = warp
        """The number of its warp in the block, an index."""

    @property
    def thread(self) -> Scalar:
        """Its number in the block, an index."""
        return self.warp * 32 + self.lane

    def coordinates(self, element: int, result: int = 0) -> tuple[Scalar, ...]:
        """Where an element of a new tile will stand: an index for each dimension."""
        if not 0 <= result < len(self._ranks):
            fail(f"there is no result {result}", "give results=[(shape, layout), ...]")
        return coordinates(self._trace, "result", result, element, self._ranks[result])

    # --- exchanges ----------------------------------------------------------------------------

    @overload
    def shuffle(self, value: Scalar, source: IndexOperand) -> Scalar: ...
    @overload
    def shuffle(self, value: LaneRegisters, source: IndexOperand) -> LaneRegisters: ...
    def shuffle(
        self, value: Scalar | LaneRegisters, source: IndexOperand
    ) -> Scalar | LaneRegisters:
        """What another lane of the warp has of a value. All 32 lanes take part."""
        number = self._trace.index(source, "a lane")
        at = self._trace.constant(number, index) if isinstance(number, int) else number

        def make(vector: SSAValue) -> SSAValue:
            return self._trace.insert(ptx.ShuffleOp(vector, at)).result

        return self._moved(value, make)

    @overload
    def shuffle_xor(self, value: Scalar, mask: int) -> Scalar: ...
    @overload
    def shuffle_xor(self, value: LaneRegisters, mask: int) -> LaneRegisters: ...
    def shuffle_xor(self, value: Scalar | LaneRegisters, mask: int) -> Scalar | LaneRegisters:
        """What the lane `lane ^ mask` has of a value. All 32 lanes take part."""
        number = whole(mask, "the mask")

        def make(vector: SSAValue) -> SSAValue:
            return self._trace.insert(ptx.ShuffleXorOp(vector, number)).result

        return self._moved(value, make)

    def _moved(self, value: Scalar | LaneRegisters, make: Callable[[SSAValue], SSAValue]) -> Any:
        """A value through an operation that moves whole registers."""
        trace = self._trace
        if isinstance(value, LaneRegisters):
            bits = ptx.bits(value.ssa.type)
            if bits * len(value) % 32 == 0 and bits != 1:
                return LaneRegisters(trace, make(value.ssa))
            return self.pack([self._moved(scalar, make) for scalar in value])
        ssa = trace.use(value)
        bits = ptx.bits(ssa.type)
        if bits >= 32:
            return Scalar(trace, make(ssa))
        if bits < 8:
            fail(f"{value!r} is not exchanged between lanes", "cast it to fragir.s32")
        packed = trace.insert(ptx.PackOp([ssa] * (32 // bits))).result
        moved = make(packed)
        return Scalar(trace, trace.insert(ptx.UnpackOp(moved)).scalars[0])

    # --- registers ----------------------------------------------------------------------------

    def pack(self, scalars: Sequence[ScalarOperand]) -> LaneRegisters:
        """LaneRegisters of scalars of one type, neighbours of 16 and 8 bits together."""
        given = items(scalars)
        typed = [x for x in given or () if isinstance(x, Scalar)]
        if not given or not typed:
            fail(f"{scalars!r} are no scalars", "give a list of them, one an element")
        first = typed[0].type
        values = [self._trace.scalar(x, first, "an element") for x in given]
        return LaneRegisters(self._trace, self._trace.insert(ptx.PackOp(values)).result)

    def bitcast(self, value: Scalar, type_: Attribute) -> Scalar:
        """The same bits as a type of as many."""
        target = scalar_type(type_, "a scalar")
        op: Operation = ptx.BitcastOp(self._trace.use(value), target)
        if ptx.bits(target) in (16, 64) and ptx.bits(target) == ptx.bits(value.type):
            op = arith.BitcastOp(self._trace.use(value), target)
        return Scalar(self._trace, self._trace.insert(op).results[0])

    def unpack(self, word: Scalar, type_: Attribute) -> list[Scalar]:
        """The elements that a 32-bit register holds, the lowest first."""
        element = scalar_type(type_, "an element")
        vector = ptx.vector_type(element, 32 // ptx.bits(element))
        op = ptx.BitcastOp(self._trace.use(word), vector)
        return list(LaneRegisters(self._trace, self._trace.insert(op).result))

    # --- memory -------------------------------------------------------------------------------

    def pointer(self, memory: Memory, at: Sequence[IndexOperand]) -> LanePointer:
        """The address of an element, of this lane's own indices; nothing checks that it exists."""
        source = memory_value(self._trace, memory)
        op = frag.PointerOp(source, self._indices(at))
        return LanePointer(self._trace, self._trace.insert(op).pointer)

    def _indices(self, at: Sequence[IndexOperand]) -> list[SSAValue]:
        found = [self._trace.index(x, "an index") for x in items(at) or ()]
        return [self._trace.constant(x, index) if isinstance(x, int) else x for x in found]

    def load(self, memory: Memory, at: Sequence[IndexOperand]) -> Scalar:
        """An element of memory at this lane's own indices; it must exist."""
        if not memory.is_shared:
            op = memref.LoadOp.get(memory_value(self._trace, memory), self._indices(at))
            return Scalar(self._trace, self._trace.insert(op).res)
        load = ptx.LoadOp(self.pointer(memory, at).ssa, 0, memory.type.element_type)
        return Scalar(self._trace, self._trace.insert(load).value)

    def store(self, value: ScalarOperand, memory: Memory, at: Sequence[IndexOperand]) -> None:
        """Writes an element of memory at this lane's own indices; it must exist."""
        number = self._trace.scalar(value, memory.type.element_type, "the value")
        self._trace.insert(ptx.StoreOp(number, self.pointer(memory, at).ssa, 0))

    # --- any instruction ----------------------------------------------------------------------

    def ptx(
        self,
        instruction: str,
        *operands: Scalar | LaneRegisters | LanePointer | float,
        results: Attribute | type[bool] | Sequence[Attribute | type[bool]] | None = None,
        where: Scalar | None = None,
    ) -> Any:
        """Any instruction of PTX: `lane.ptx("redux.sync.add.s32", x, -1)`.

        `instruction` is an opcode, whose operands follow: scalars, registers, pointers (in their
        brackets), whole numbers as they are; or a statement in which `$0`, `$1` and so on stand for
        the results and then for the operands, `"shfl.sync.up.b32 $0|$1, $2, 1, 0, -1"`. `results`
        are the types of what it gives, `bool` of a predicate; of an opcode one is found by its last
        word, and none where it has none. With `where` only lanes execute it for which that
        condition holds. It is checked against the table of opcodes.
        """
        found = instruction_of(self._trace, instruction, operands, results, where)
        values = [
            LaneRegisters(self._trace, output)
            if is_vector(output.type)
            else Scalar(self._trace, output)
            for output in self._trace.insert(found).outputs
        ]
        return values[0] if len(values) == 1 else tuple(values) or None
