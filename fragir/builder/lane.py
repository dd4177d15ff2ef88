"""What a function of lane-level code works with: the lane, and its registers of tiles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

from xdsl.dialects import arith, memref
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.builder.places import fail, items, require_number, require_word
from fragir.builder.tiles import require_memory
from fragir.builder.trace import Trace
from fragir.builder.types import (
    bf16,
    condition,
    f16,
    f32,
    f64,
    index,
    require_scalar_type,
    s32,
    s64,
    type_name,
)
from fragir.builder.values import IndexOperand, Memory, Scalar, ScalarOperand
from fragir.dialects import frag, ptx
from fragir.dialects.ptx.statement import read
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.ptx.spelling import float_literal

# -- lane values -----------------------------------------------------------------------------------
# A lane's registers and pointers, as lane-level code in Python has them.


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
    op = frag.CoordinatesOp(of, number, require_number(element, "an element", 0), rank)
    return tuple(Scalar(trace, place) for place in trace.insert(op).place)


class LanePointer:
    """The address of an element of memory, of this lane."""

    def __init__(self, trace: Trace, ssa: SSAValue):
        self.trace, self.ssa = trace, ssa

    def __repr__(self) -> str:
        return f"<pointer {self.ssa.type}>"


# -- lane instruction ------------------------------------------------------------------------------
# Instructions of PTX as Python says them: an opcode and operands, or a whole statement.

#: What an instruction gives, by the last word of its opcode that is a type.
_TYPES: dict[str, Attribute] = {
    **dict.fromkeys(("b32", "s32", "u32"), s32),
    **dict.fromkeys(("b64", "s64", "u64"), s64),
    **{"f16": f16, "bf16": bf16, "f32": f32, "f64": f64, "pred": condition},
}


def instruction_of(
    trace: Trace,
    text: object,
    operands: Sequence[object],
    results: object,
    where: Scalar | None,
) -> ptx.InstructionOp:
    """The operation; an error at the user's line where it cannot be said."""
    said = require_word(text, "an instruction")
    predicate = None if where is None else trace.scalar(where, condition, "`where`")
    if "$" in said:
        values = [_value(trace, operand) for operand in operands]
        types = _given_types(results) or []
        return ptx.InstructionOp(said, values, types, predicate=predicate)
    types = _given_types(results)
    if types is None:
        types = _result(said, operands)
    values: list[SSAValue] = []
    parts = [f"${number}" for number in range(len(types))]
    for operand in operands:
        if isinstance(operand, int) and not isinstance(operand, bool):
            parts.append(str(operand))
        elif isinstance(operand, float):
            parts.append(float_literal(operand, "f64" if said.endswith("f64") else "f32"))
        else:
            place = f"${len(types) + len(values)}"
            parts.append(f"[{place}]" if isinstance(operand, LanePointer) else place)
            values.append(_value(trace, operand))
    statement = f"{said} {', '.join(parts)}".rstrip()
    return ptx.InstructionOp(statement, values, types, predicate=predicate)


def _given_types(results: object) -> list[Attribute] | None:
    """Types; `bool` is a predicate's."""
    if results is None:
        return None
    several = items(results)
    found: list[Attribute] = []
    for one in [results] if several is None else several:
        if one is not bool and not isinstance(one, Attribute):
            fail(f"{one!r} is no type of a result", "write fragir.f32, or bool for a predicate")
        found.append(one if isinstance(one, Attribute) else condition)
    return found


def _value(trace: Trace, operand: object) -> SSAValue:
    if isinstance(operand, LaneRegisters | LanePointer):
        return operand.ssa
    if isinstance(operand, Scalar):
        return trace.use(operand)
    fail(f"{operand!r} is no operand of an instruction", "give scalars, registers and pointers")


def _result(opcode: str, operands: Sequence[object]) -> list[Attribute]:
    """What an opcode gives, as far as its words tell."""
    from fragir.ptx.opcodes.table import find_row

    places = ["[$0]" if isinstance(operand, LanePointer) else "$0" for operand in operands]
    try:
        asked = [
            find_row(read(f"{opcode} {', '.join(ps)}".rstrip()).instruction)
            for ps in (["$0", *places], places)
        ]
    except FragirError as error:
        fail(error.message, error.hint)
    row, without = asked
    if row.opcode is None and without.opcode is None:
        fail(row.problem or f"{opcode} is not known", row.hint)
    if row.opcode is None or not row.opcode.writes:
        return []
    first = next((x for x in operands if isinstance(x, Scalar)), None)
    for word_ in reversed(opcode.split(".")):
        if word_ in _TYPES:
            type_ = _TYPES[word_]
            # bits without a type stay what they are
            same = first is not None and word_.startswith("b") and word_ != "bf16"
            if same and first is not None and ptx.register_bits(first.type) == int(word_[1:]):
                return [first.type]
            return [type_]
    fail(f"what {opcode} gives is not told by its words", "write results=fragir.s32, ...")


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

        return self._move(value, make)

    @overload
    def shuffle_xor(self, value: Scalar, mask: int) -> Scalar: ...
    @overload
    def shuffle_xor(self, value: LaneRegisters, mask: int) -> LaneRegisters: ...
    def shuffle_xor(self, value: Scalar | LaneRegisters, mask: int) -> Scalar | LaneRegisters:
        """What the lane `lane ^ mask` has of a value. All 32 lanes take part."""
        number = require_number(mask, "the mask")

        def make(vector: SSAValue) -> SSAValue:
            return self._trace.insert(ptx.ShuffleXorOp(vector, number)).result

        return self._move(value, make)

    def _move(self, value: Scalar | LaneRegisters, make: Callable[[SSAValue], SSAValue]) -> Any:
        """A value through an operation that moves whole registers."""
        trace = self._trace
        if isinstance(value, LaneRegisters):
            bits = ptx.bits(value.ssa.type)
            if bits * len(value) % 32 == 0 and bits != 1:
                return LaneRegisters(trace, make(value.ssa))
            return self.pack([self._move(scalar, make) for scalar in value])
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
        target = require_scalar_type(type_, "a scalar")
        op: Operation = ptx.BitcastOp(self._trace.use(value), target)
        if ptx.bits(target) in (16, 64) and ptx.bits(target) == ptx.bits(value.type):
            op = arith.BitcastOp(self._trace.use(value), target)
        return Scalar(self._trace, self._trace.insert(op).results[0])

    def unpack(self, word: Scalar, type_: Attribute) -> list[Scalar]:
        """The elements that a 32-bit register holds, the lowest first."""
        element = require_scalar_type(type_, "an element")
        vector = ptx.vector_type(element, 32 // ptx.bits(element))
        op = ptx.BitcastOp(self._trace.use(word), vector)
        return list(LaneRegisters(self._trace, self._trace.insert(op).result))

    # --- memory -------------------------------------------------------------------------------

    def pointer(self, memory: Memory, at: Sequence[IndexOperand]) -> LanePointer:
        """The address of an element, of this lane's own indices; nothing checks that it exists."""
        source = require_memory(self._trace, memory)
        op = frag.PointerOp(source, self._indices(at))
        return LanePointer(self._trace, self._trace.insert(op).pointer)

    def _indices(self, at: Sequence[IndexOperand]) -> list[SSAValue]:
        found = [self._trace.index(x, "an index") for x in items(at) or ()]
        return [self._trace.constant(x, index) if isinstance(x, int) else x for x in found]

    def load(self, memory: Memory, at: Sequence[IndexOperand]) -> Scalar:
        """An element of memory at this lane's own indices; it must exist."""
        if not memory.is_shared:
            op = memref.LoadOp.get(require_memory(self._trace, memory), self._indices(at))
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
