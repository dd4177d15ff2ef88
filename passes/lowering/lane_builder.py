"""What the lowering of an operation builds with: the public face of convert-frag-to-ptx.

    def lower_to_lanes(self, lanes):
        low = [lanes.insert(arith.NegfOp(x)).result for x in lanes.elements(self.source)]
        lanes.bind(self.result, low)

A lane holds a tile as `elements`, in the order of its layout's axis `element`; `points` says where
each stands. Everything here keeps its meaning from one release to the next; what is not here may
change (`FunctionLowering`, and `Lanes.state`, by which fragir's own operations reach the rest).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar, cast, overload

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import ConstantLike, IsTerminator
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.interfaces import FragmentwiseInterface, accesses_of
from fragir.dialects.ptx.tensor_maps import COUNTS
from fragir.dialects.shorthands import is_vector
from fragir.errors import FragirError
from fragir.layout.modes import WARP
from fragir.mlir.diagnostics import fail
from fragir.passes.lowering.arithmetic import Arithmetic, Distance, Stride, Value
from fragir.passes.lowering.memory import LaneMemory
from fragir.passes.lowering.state import LoweringState, fragments_of
from fragir.passes.lowering.tile_access import split
from fragir.passes.remarks import allocate

# -- deferred --------------------------------------------------------------------------------------
# Tiles whose fragments are formed when a store asks for them, one after the other.
#
# An epilogue loads a tile of C, maps it and stores it. Done tile by tile, all of it would be in
# registers at once, on top of the accumulators; done fragment by fragment, only one fragment is.


class Deferred(Sequence[SSAValue]):
    """Fragments that are made on demand, each once."""

    def __init__(self, count: int, make: Callable[[int], SSAValue]):
        self._values: list[SSAValue | None] = [None] * count
        self._make = make

    @property
    def make(self) -> Sequence[SSAValue | None]:
        """Those that were asked for; None in the place of others."""
        return self._values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> SSAValue: ...
    @overload
    def __getitem__(self, index: slice) -> list[SSAValue]: ...
    def __getitem__(self, index: int | slice) -> SSAValue | list[SSAValue]:
        if isinstance(index, slice):
            return [self.at(i) for i in range(*index.indices(len(self)))]
        return self.at(index)

    def at(self, index: int) -> SSAValue:
        """One fragment."""
        value = self._values[index]
        if value is None:
            value = self._values[index] = self._make(index)
        return value

    def __iter__(self) -> Iterator[SSAValue]:
        for index in range(len(self)):
            yield self.at(index)


def defers(op: FragmentwiseInterface, ends: dict[Operation, Operation | None]) -> bool:
    """Whether a tile may be formed fragment by fragment at the store it ends in.

    It must be used once, by a chain of fragmentwise operations that ends in one without a result
    in the same block, with nothing that writes memory in between; and where that last one writes
    memory that was read, it must write each element where it was read. `ends` keeps where the chain
    from each operation on ends, None where it does not, of a program that stays as it is.
    """
    if op not in ends:
        chain = list(_chain_from(op))
        end = None if chain[-1].results else chain[-1]
        if end is not None:
            passed: set[Operation] = {op}
            between = op.next_op
            while between is not end and between is not None and _is_quiet(between):
                passed.add(between)
                between = between.next_op
            if between is not end:
                chain, end = [one for one in chain if one in passed], None
        ends.update(dict.fromkeys(chain, end))
    end = ends[op]
    return end is not None and _is_each_in_place(op, end)


def _chain_from(op: Operation) -> Iterator[Operation]:
    """An operation, and those fragmentwise ones of its block that each alone use the one before."""
    following: Operation | None = op
    while following is not None and following.parent is op.parent:
        if not isinstance(following, FragmentwiseInterface):
            return
        yield following
        if len(following.results) != 1 or not following.results[0].has_one_use():
            return
        following = following.results[0].get_user_of_unique_use()


def _is_quiet(op: Operation) -> bool:
    """Whether an operation may stand between a load and the store that it feeds."""
    return (isinstance(op, FragmentwiseInterface) and bool(op.results)) or op.has_trait(
        ConstantLike
    )


def _is_each_in_place(first: Operation, last: Operation) -> bool:
    """Whether memory that both touch is written where it was read, element by element."""
    read, written = accesses_of(first), accesses_of(last)
    if read is None or written is None:
        return True
    if not any(memory in written.writes() for memory in read.reads()):
        return True
    where = read.where()
    return where is not None and where == written.where()


OpT = TypeVar("OpT", bound=Operation)
REGISTER = 32  # bits


class Lanes:
    """What one lane does for the operations of one function, built front to back."""

    def __init__(self, state: LoweringState):
        self.state = state

    # --- the lane's place ---------------------------------------------------------------------

    @property
    def target(self) -> str:
        """The machine that is compiled for, as in "sm_90a"."""
        return self.state.target

    @property
    def threads(self) -> int:
        """Threads of the block."""
        return self.state.threads

    @property
    def lane(self) -> SSAValue:
        """This lane's number in its warp, 0 to 31, an index."""
        return self.state.ar.value(self.state.hardware.axis("lane"))

    @property
    def warp(self) -> SSAValue:
        """The number of this lane's warp in its block, an index."""
        return self.state.ar.value(self.state.hardware.axis("warp"))

    @property
    def thread(self) -> SSAValue:
        """This lane's number in its block, an index."""
        return self.state.ar.value(self.state.hardware.axis("thread"))

    # --- operands -----------------------------------------------------------------------------

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar operand, the same in every lane."""
        return self.state.scalar(value)

    def memory(self, value: SSAValue) -> LaneMemory:
        """A memref operand: its pointer, shape and strides in elements, numbers where static."""
        return self.state.memories[value]

    def elements(self, tile: SSAValue) -> list[SSAValue]:
        """This lane's elements of a tile, as scalars, in the order of `points`."""
        type_ = _require_tile(tile)
        _check_whole(type_)
        ar = self.state.ar
        return [x for part in self.state.tiles[tile] for x in split(ar, part, 1)]

    def fragments(self, tile: SSAValue) -> Sequence[SSAValue]:
        """The same as vectors: one of `chunk` elements for each fragment of the tile's layout."""
        return self.state.tiles[tile]

    def points(self, tile: SSAValue) -> list[tuple[int, ...]]:
        """(row, column) of each element of lane 0 in warp 0; other lanes' are `base` further on."""
        return self.points_of(_require_tile(tile))

    def points_of(self, type_: frag.TileType) -> list[tuple[int, ...]]:
        """The same of any tile of a type."""
        layout = type_.resolve()
        zeros = {axis.name: 0 for axis in layout.axes}
        found = [layout(**{**zeros, "element": e}) for e in range(layout.size("element"))]
        if None in found:
            raise FragirError(f"not every lane holds elements of {type_}")
        return [point for point in found if point is not None]

    def places(self, type_: frag.TileType, dim: int) -> list[SSAValue]:
        """The place along a dimension of each of this lane's elements, i32, as of `points_of`."""
        layout, points = type_.resolve(), self.points_of(type_)
        ar, hardware = self.state.ar, self.state.hardware
        if layout.exclusive:
            found = (hardware.place(layout, dim, element) for element in range(len(points)))
            parts = [(offset.value, constant) for offset, constant in found]
        else:
            base = hardware.coordinate(layout, dim).value
            parts = [(base, point[dim]) for point in points]
        return [self._integer(ar.add(base, constant)) for base, constant in parts]

    def place(self, type_: frag.TileType, dim: int, element: int) -> Value:
        """The place along a dimension of one of this lane's elements: a number or an index."""
        layout, hardware = replace(type_.resolve(), where=()), self.state.hardware
        if layout.exclusive:
            offset, constant = hardware.place(layout, dim, element)
            return self.state.ar.add(offset.value, constant)
        zeros = {axis.name: 0 for axis in layout.axes}
        point = layout(**{**zeros, "element": element})
        assert point is not None
        return self.state.ar.add(hardware.coordinate(layout, dim).value, point[dim])

    def _integer(self, number: Value) -> SSAValue:
        """An index as an i32."""
        ar = self.state.ar
        if isinstance(number, int):
            return ar.literal(IntegerAttr(number, i32))
        return ar.pure(("i32", number), (number,), lambda: arith.IndexCastOp(number, i32))

    def base(self, tile: SSAValue) -> list[Value]:
        """What lane and warp add to a point, for each dimension: a number or an index.

        Raises FragirError where lanes flip bits of the elements' points instead of adding.
        """
        layout = _require_tile(tile).resolve()
        if layout.exclusive:
            raise FragirError(f"lanes have no point to add in a layout with exclusive or: {layout}")
        dims = range(len(layout.dims))
        return [self.state.hardware.coordinate(layout, dim).value for dim in dims]

    # --- results ------------------------------------------------------------------------------

    def bind(self, tile: SSAValue, scalars: Sequence[SSAValue]) -> None:
        """Gives a tile its elements in this lane, in the order of `points`.

        FragirError unless there is one of the tile's element type for each point.
        """
        type_ = _require_tile(tile)
        _check_whole(type_)
        self._check_unbound(tile)
        count = type_.resolve().size("element")
        if len(scalars) != count:
            raise FragirError(
                f"{_value_text(tile)} takes {count} elements a lane of {type_}, not {len(scalars)}"
            )
        wrong = next((x.type for x in scalars if x.type != type_.element_type), None)
        if wrong is not None:
            raise FragirError(
                f"{_value_text(tile)} takes elements of {type_.element_type}, not {wrong}"
            )
        chunk = type_.chunk
        self.state.tiles[tile] = [
            self.state.ar.insert(ptx.PackOp(scalars[first : first + chunk])).result
            for first in range(0, count, chunk)
        ]

    def bind_each(self, tile: SSAValue, make: Callable[[int], SSAValue]) -> None:
        """Gives a tile its fragments: `make(i)` builds the i-th as a vector of `chunk` elements.

        That may happen later, when a store asks for it, where the operation is fragmentwise.
        """
        self._check_unbound(tile)
        owner, type_ = tile.owner, _require_tile(tile)
        assert isinstance(owner, Operation)
        wanted, ar = ptx.vector_type(type_.element_type, type_.chunk), self.state.ar

        def told(i: int) -> SSAValue:
            """`make`; places and errors are this operation's, though another asks for it."""
            asking, ar.location = ar.location, owner.location
            try:
                fragment = make(i)
                if fragment.type != wanted:
                    raise FragirError(
                        f"{_value_text(tile)} takes fragments of {wanted}, not {fragment.type}"
                    )
            except FragirError as error:
                fail(owner, f"{owner.name}: {error}")
            ar.location = asking
            return fragment

        count = fragments_of(type_)
        later = isinstance(owner, FragmentwiseInterface) and defers(owner, self.state.ends)
        self.state.tiles[tile] = Deferred(count, told) if later else [told(i) for i in range(count)]

    def bind_scalar(self, value: SSAValue, scalar: SSAValue) -> None:
        """Gives a scalar result its value, which must be the same in every lane of the block."""
        self._check_unbound(value)
        if scalar.type != value.type:
            raise FragirError(f"{_value_text(value)} takes {value.type}, not {scalar.type}")
        self.state.values[value] = scalar

    def check_bound(self, op: Operation) -> None:
        """FragirError where a result of an operation that has been lowered is not bound."""
        state = self.state
        for result in op.results:
            if result not in state.tiles and result not in state.values:
                if result not in state.memories and result not in state.without_registers:
                    raise FragirError(
                        f"its lowering binds nothing to {_value_text(result)}",
                        hint="a lowering ends in lanes.bind(self.result, elements)",
                    )

    def _check_unbound(self, value: SSAValue) -> None:
        if value in self.state.tiles or value in self.state.values:
            raise FragirError(f"its lowering binds {_value_text(value)} twice")

    # --- building -----------------------------------------------------------------------------

    @property
    def arithmetic(self) -> Arithmetic:
        """Sums, products and comparisons of indices, folded and shared; numbers stay numbers."""
        return self.state.ar

    def insert(self, op: OpT) -> OpT:
        """Appends an operation, after verifying it.

        FragirError, which gets the name of the operation that is lowered, where it is not sound.
        """
        self.state.ar.insert(op)
        try:
            op.verify()
        except VerifyException as error:
            raise FragirError(f"its lowering makes an unsound {op.name}: {error}") from error
        return op

    def pure(
        self, key: object, operands: Sequence[SSAValue], make: Callable[[], Operation]
    ) -> SSAValue:
        """The result of an operation without effects that is made once for a key.

        It is put as far out of loops as its operands allow. The key tells operation, operands and
        properties, as in ("toy.square", x).
        """
        return self.state.ar.pure(key, operands, make)

    def region(self, block: Block, arguments: Sequence[SSAValue]) -> list[SSAValue]:
        """A region of operations on scalars, for these arguments; what its terminator takes.

        Scalars from outside the region are known.
        """
        values: dict[SSAValue, SSAValue] = dict(zip(block.args, arguments, strict=True))
        for op in block.ops:
            for operand in op.operands:
                if operand not in values:
                    values[operand] = self.scalar(operand)
            if op.has_trait(IsTerminator):
                return [values[operand] for operand in op.operands]
            self.insert(op.clone(value_mapper=values))
        raise FragirError("a region ends in a terminator")

    def shuffle_xor(self, value: SSAValue, mask: int) -> SSAValue:
        """The value that the lane `lane ^ mask` holds: a scalar, or a vector of whole registers.

        All 32 lanes take part. PTX ISA 9.2, section 9.7.9.6.
        """
        if not 0 < mask < WARP:
            raise FragirError(f"lanes are exchanged by a mask of 1 to {WARP - 1}, not {mask}")
        bits = ptx.bits(value.type)
        if bits >= REGISTER or is_vector(value.type):
            return self.insert(ptx.ShuffleXorOp(value, mask)).result
        if bits < 8:
            raise FragirError(f"{value.type} is not exchanged between lanes; widen it before")
        vector = self.insert(ptx.PackOp([value] * (REGISTER // bits))).result
        moved = self.insert(ptx.ShuffleXorOp(vector, mask)).result
        return self.insert(ptx.UnpackOp(moved)).scalars[0]

    def scratch(self, size: int) -> SSAValue:
        """A pointer to so many bytes of shared memory, aligned to 1024 bytes, all of one's own.

        Every call takes more of the block's memory; in a loop each turn has the same.
        """
        op = self.insert(ptx.SharedOp(size))
        allocate(op, 0, self.target)
        return op.pointer

    def barrier(self) -> None:
        """Waits for all threads of the block; shared memory is then seen by all."""
        self.state.wait_for_all()

    def convert(
        self, source: frag.TileType, target: frag.TileType, scalars: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The elements of a tile in another layout, from those in the first.

        FragirError where the layouts do not belong to the same threads.
        """
        for type_ in (source, target):
            _check_whole(type_)
        if source == target:
            return list(scalars)
        from fragir.passes.lowering.convert import convert

        chunk, ar = source.chunk, self.state.ar
        parts = [
            ar.insert(ptx.PackOp(scalars[first : first + chunk])).result
            for first in range(0, len(scalars), chunk)
        ]
        found = convert(self.state, source, target, parts)
        return [x for part in found for x in split(ar, part, 1)]


def _require_tile(value: SSAValue) -> frag.TileType:
    if not isinstance(value.type, frag.TileType):
        raise FragirError(f"{_value_text(value)} is no tile but {value.type}")
    return value.type


def _check_whole(tile: frag.TileType) -> None:
    if ptx.bits(tile.element_type) < 8 and not is_predicate(tile.element_type):
        raise FragirError(
            f"elements of {tile.element_type} are no scalars", hint="use lanes.fragments"
        )


def _value_text(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a result"


# -- counts ----------------------------------------------------------------------------------------
# Products of sizes that a kernel counts through in 32 bits, and a launch holds to that.
#
# Dimensions that memory has as one (`memref.collapse_shape`) are as many places as their product
# says. What a launch must keep below 2^31 is noted on the function.


def names_of_sizes(state: LoweringState) -> dict[SSAValue, str]:
    """The names of dynamic sizes, by the values that they are in the kernel."""
    known = state.of_subject.setdefault("sizes", {})
    return cast("dict[SSAValue, str]", known)


def note_count(state: LoweringState, size: Stride) -> None:
    """Notes that a launch must keep a product of sizes below 2^31, where these are arguments'."""
    names = names_of_sizes(state)
    if not isinstance(size, Distance) or any(factor not in names for factor in size.factors):
        return
    words: list[Attribute] = [StringAttr(names[factor]) for factor in size.factors]
    count = ArrayAttr([IntegerAttr(size.scale, i64), *words])
    known = cast("ArrayAttr[Attribute]", state.attributes.get(COUNTS, ArrayAttr([])))
    if count not in known.data:
        state.attributes[COUNTS] = ArrayAttr([*known.data, count])
