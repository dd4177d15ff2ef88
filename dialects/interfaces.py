"""What passes and the reference ask of an operation, so that none of them lists classes.

An operation that works on tiles inherits the interfaces it has something to say to and defines
their methods; a class that cannot (it belongs to someone else, or its answer lies in a room above
the dialects) is given an implementation from outside: `LOWERINGS.attach(scf.ForOp)`. Each interface
is asked at one place, `of` of its registry, which knows both ways, and a third: a row of a table
(`fragir.late_dialect.Row`) says where the implementation stands, so that it is imported when it is
asked for. fragir's own operations take these ways, most of them by the rows of
`fragir.dialects.catalogue`.

| asked | interface | registry |
|---|---|---|
| by frag-place: layouts that are shared, dictated, follow | `LayoutInterface` | `LAYOUTS` |
| by convert-frag-to-ptx: what one lane does | `LaneInterface` | `LOWERINGS` |
| by the target `ptx`: the instructions of a lane's operation | `PtxInterface` | `WRITERS` |
| by the reference: values, and how far a run may be from them | `ReferenceInterface` | `MEANINGS` |
| by both: memory that is read, written, looked at in part | `MemoryInterface` | `ACCESSES` |
| by the reference: the names of sizes | `DimensionsInterface` | `DIMENSIONS` |

This module imports no pass and no reference: those ask, the dialects answer. So the objects that
operations are lowered and evaluated with have no type here; an operation names them.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import OpTrait

from fragir.dialects.catalogue import OTHERS
from fragir.errors import FragirError
from fragir.late_dialect import ROWS, add_rows, import_named

add_rows(OTHERS)  # those of frag and ptx come with their dialects

ModelT = TypeVar("ModelT")
Names = tuple[str | None, ...]
"""A name for each dimension of a memory or tile, None where there is none to give."""
Loops = tuple[int | None, ...]
"""For each dimension of a memory or tensor the number of the loop that runs along it."""


class Registry(Generic[ModelT]):
    """One interface's implementations by class of operation.

    `own` makes an implementation of an operation's class that has the interface's methods; others
    are attached, or stand in a column of the operation's row (`fragir.late_dialect.Row`).
    """

    def __init__(
        self, what: str, interface: type[Operation], own: Callable[[Any], ModelT], column: str = ""
    ):
        self._what, self._interface, self._own, self._column = what, interface, own, column
        self._attached: dict[type[Operation], ModelT] = {}
        self._found: dict[type[Operation], ModelT | None] = {}
        self._room = ""

    def found_in(self, room: str) -> None:
        """What modules of fragir's own rows are counted from: the room that asks says it, and
        nothing of the rows is found before."""
        self._room = room
        self._found.clear()

    def attach(self, *classes: type[Operation]) -> Callable[[ModelT], ModelT]:
        """A decorator that gives classes an implementation; subclasses have it as well.

        FragirError for a class that has one: two packages would silently replace each other's.
        """

        def attached(model: ModelT) -> ModelT:
            for cls in classes:
                if (
                    cls in self._attached
                    or issubclass(cls, self._interface)
                    or self._place(cls) is not None
                ):
                    raise FragirError(f"{cls.name} has {self._what} already")
                self._attached[cls] = model
            self._found.clear()
            return model

        return attached

    def of(self, cls: type[Operation]) -> ModelT | None:
        """The implementation for a class of operations; None where it has none."""
        try:
            return self._found[cls]
        except KeyError:
            found = self._found[cls] = self._look(cls)
            return found

    def _look(self, cls: type[Operation]) -> ModelT | None:
        if issubclass(cls, self._interface):
            return self._own(cls)
        for base in cls.__mro__:
            if base in self._attached:
                return self._attached[base]
            place = self._place(base)
            if place is not None:
                return import_named(":".join(place))
        return None

    def _place(self, cls: type[Any]) -> tuple[str, str] | None:
        """What the row of a class says; None where there is none, or who asks is not there yet."""
        row = ROWS.get(getattr(cls, "name", ""))
        if row is None or not self._column or not (row.package or self._room):
            return None
        return row.place(self._column, self._room)


# --- layouts --------------------------------------------------------------------------------------


class Threads(NamedTuple):
    """Who holds the tiles of a function: the threads of a block, and on which machine."""

    target: str
    """As in "sm_90a"."""
    warps: tuple[int, int]
    """`frag.warps`: the warps along the rows and the columns of a product."""
    warpgroups: tuple[int, int]
    """`frag.warpgroups`: the same of groups of four warps."""


class OperandAt(NamedTuple):
    """One operand of an operation. A value may stand at several, and be wanted differently."""

    op: Operation
    number: int

    @property
    def value(self) -> SSAValue:
        """What stands there."""
        return self.op.operands[self.number]


Tile: TypeAlias = "SSAValue | OperandAt"
"""A tile of an operation. A value means every operand at which it stands."""


def value_of(tile: Tile) -> SSAValue:
    """The value of a tile."""
    return tile.value if isinstance(tile, OperandAt) else tile


class LayoutDemand(NamedTuple):
    """A layout that an operation dictates, and for which part of it: "operand a"."""

    value: Tile
    layout: Attribute
    role: str


IN_LANE = "neighbours in a lane"
"""The role of a layout that is proposed with the same elements in every lane: no conversion to it
takes memory."""


class Layouts:
    """Relations between the layouts of an operation's tiles; what is not overridden says nothing.

    The first three say what must be: an operand that comes in another layout than its operation
    takes is converted on the way. The others say what is good: of the layouts that may be, those
    are chosen in which all operations and conversions of a function cost least (docs/layouts.md).
    Values that are no tiles are passed over.
    """

    def same_layout(self) -> Iterable[Iterable[Tile]]:
        """Groups of operands and results of which each has one layout."""
        return ()

    def demands(self, threads: Threads) -> Iterable[LayoutDemand]:
        """Layouts that the operation dictates. FragirError where there is none to dictate."""
        return ()

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterable[tuple[SSAValue, Attribute]]:
        """(value, layout) that follow from layouts known by now, in whichever direction.

        It is asked again as more becomes known, and must then say nothing else of what it had told.
        A reduction says its result's layout from its operand's, and nothing the other way round.
        """
        return ()

    def alternatives(
        self, value: SSAValue, layout: Attribute, threads: Threads
    ) -> Iterable[Sequence[LayoutDemand]]:
        """Demands that would do all together instead of `demands`, where `value`, an operand, may
        be had in `layout`: those of a product with its K in another order.

        What is demanded of shared memory is the order of its rows
        (`fragir.dialects.frag.memory_layout`).
        """
        return ()

    def proposals(self, layout: Attribute, threads: Threads) -> Iterable[LayoutDemand]:
        """Layouts that would suit the operation, where one of its tiles may be had in `layout`."""
        return ()

    def cost(self, layouts: Mapping[SSAValue, Attribute], threads: Threads) -> float:
        """What the operation costs in these layouts: half cycles of an SM for each warp.

        Only differences between layouts count (`fragir.layout.planning.costs`). Of shared memory
        whose rows may lie in several orders, `layouts` has the order. Infinite is what cannot be.
        """
        return 0.0

    def repeats(self) -> bool:
        """Whether another one right behind it, of the same operands, gives the same results.

        Then it may be done once in each of two layouts, where that is cheaper than converting.
        """
        return False


class LayoutInterface(Layouts, Operation, abc.ABC):
    """An operation that says how the layouts of its tiles hang together."""


def _itself(_cls: type[Operation]) -> Callable[[Any], Any]:
    return lambda op: op


LAYOUTS: Registry[Callable[[Any], Layouts]] = Registry(
    "layouts", LayoutInterface, _itself, "layouts"
)
"""From an operation to its `Layouts`."""


# --- lanes ----------------------------------------------------------------------------------------


class LaneInterface(Operation, abc.ABC):
    """An operation that says what one lane does for it."""

    @abc.abstractmethod
    def lower_to_lanes(self, lanes: Any) -> None:
        """Builds the operation with `fragir.passes.lowering.lane_builder.Lanes`.

        Every result must be bound: a tile with `lanes.bind`, a scalar with `lanes.bind_scalar`.
        FragirError where this target or layout has no way; the operation's name and place are
        added.
        """


LOWERINGS: Registry[Callable[[Any, Any], None]] = Registry(
    "a lowering to lanes",
    LaneInterface,
    lambda cls: lambda lanes, op: cls.lower_to_lanes(op, lanes),
    "lowering",
)
"""From an operation to its lowering, a function of `Lanes` and the operation."""


class FragmentwiseInterface(Operation, abc.ABC):
    """An operation of which each fragment needs only the same fragments of its tiles.

    A chain of such operations from a load to a store may be done fragment by fragment, so that not
    all of a tile is in registers at once. The lowering binds with `lanes.bind_each`.
    """


class WarpgroupCollective(OpTrait):
    """Of an operation that whole warpgroups execute together, reading by the async proxy.

    The block then has whole warpgroups of threads, and its barriers order ordinary writes before
    such reads (PTX ISA 9.2, section 9.7.15.3).
    """


# --- PTX ------------------------------------------------------------------------------------------


class PtxInterface(Operation, abc.ABC):
    """An operation of the lane level that is written as PTX in its own way."""

    @abc.abstractmethod
    def write_ptx(self, text: Any) -> None:
        """Writes itself with `fragir.passes.writer.text.KernelText`, and names its results."""


WRITERS: Registry[Callable[[Any, Any], None]] = Registry(
    "PTX", PtxInterface, lambda _: lambda text, op: op.write_ptx(text), "writer"
)
"""From an operation of the lane level to how it is written, a function of `KernelText` and it."""


# --- the reference --------------------------------------------------------------------------------


class ReferenceInterface(Operation, abc.ABC):
    """An operation that says what it computes, with a bound on the error of every execution."""

    @abc.abstractmethod
    def evaluate(self, run: Any) -> None:
        """Sets the results from the operands with `fragir.reference.run.Run`.

        `run[value]` is a `Bounded`: values and how far an execution may be from them.
        """


MEANINGS: Registry[Callable[[Any, Any], None]] = Registry(
    "a meaning", ReferenceInterface, lambda _: lambda run, op: op.evaluate(run), "meaning"
)
"""From an operation to its meaning, a function of `Run` and the operation."""


# --- memory ---------------------------------------------------------------------------------------


class Accesses:
    """Memory that an operation touches; what is not overridden touches none."""

    def reads(self) -> Sequence[SSAValue]:
        """Memory that is read."""
        return ()

    def writes(self) -> Sequence[SSAValue]:
        """Memory, or tensors that are returned, that is written."""
        return ()

    def scratch(self) -> Sequence[SSAValue]:
        """What is written and holds nothing to rely on afterwards."""
        return ()

    def counters(self) -> Sequence[SSAValue]:
        """Counts that are zeros before a launch, and after it."""
        return ()

    def where(self) -> Hashable:
        """Where the elements of a tile lie in memory: equal only if each lies at the same place.

        None where that is not known.
        """
        return None

    def view_of(self) -> SSAValue | None:
        """The memory, or tensor, that the result is made of; None where it is new."""
        return None

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """Whether whole rows of a shared matrix that it touches may lie in any order.

        The matrix is the same to the operation, which finds its rows by the layout in the memref's
        type; what that costs, `Layouts.cost` says.
        """
        return False


class MemoryInterface(Accesses, Operation, abc.ABC):
    """An operation that says what memory it reads and writes."""


ACCESSES: Registry[Callable[[Any], Accesses]] = Registry("accesses", MemoryInterface, _itself)
"""From an operation to its `Accesses`."""


def accesses_of(op: Operation) -> Accesses | None:
    """What memory an operation touches; None where it does not say."""
    model = ACCESSES.of(type(op))
    return None if model is None else model(op)


def root_of(memory: SSAValue) -> SSAValue:
    """The memory that a memref is a view of."""
    while isinstance(memory.owner, Operation):
        accesses = accesses_of(memory.owner)
        below = None if accesses is None else accesses.view_of()
        if below is None:
            break
        memory = below
    return memory


# --- dimensions -----------------------------------------------------------------------------------


class Dimensions:
    """What the dimensions of an operation's operands mean; nothing unless overridden."""

    def dimensions(self) -> Iterable[tuple[SSAValue, Names]]:
        """Names of the dimensions of operands: "m" and "k" of A, "k" and "n" of B."""
        return ()

    def origin(self, names: Names) -> tuple[SSAValue, Names] | None:
        """What the result, or the memory that is written, is made of element by element.

        From the names of its dimensions those of the origin's; None where there is no such origin.
        """
        return None

    def loops(self) -> Iterable[tuple[SSAValue, Loops]]:
        """Operands whose dimensions run together: one loop, one size, so one name."""
        return ()

    def sparsity(self) -> tuple[SSAValue, int] | None:
        """The operand that holds metadata of a sparse product, and elements of K in a chunk."""
        return None


class DimensionsInterface(Dimensions, Operation, abc.ABC):
    """An operation that names the dimensions of its operands."""


DIMENSIONS: Registry[Callable[[Any], Dimensions]] = Registry(
    "names of dimensions", DimensionsInterface, _itself
)
"""From an operation to its `Dimensions`."""


def dimensions_of(op: Operation) -> Dimensions | None:
    """What an operation says of its operands' dimensions; None where it says nothing."""
    model = DIMENSIONS.of(type(op))
    return None if model is None else model(op)


def made_of(value: SSAValue, names: Names) -> Names:
    """The names of a tile's dimensions, from `names` of the tile that it is made of in the end.

    That is the tile itself, or what it is a cast, a conversion or a transpose of. Of a tile of
    another rank, whose rows were reduced or repeated, no name follows.
    """
    order: Names = tuple(str(dim) for dim in range(len(names)))
    kind = type(value.type)
    while isinstance(value.owner, Operation):
        said = dimensions_of(value.owner)
        step = None if said is None else said.origin(order)
        if step is None or type(step[0].type) is not kind:
            break
        value, order = step
    result: list[str | None] = [None] * len(names)
    if len(order) != len(names):
        return tuple(result)
    for dim, name in zip(order, names, strict=True):
        if dim is not None:
            result[int(dim)] = name
    return tuple(result)
