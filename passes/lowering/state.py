"""What is known while a function is lowered: its values, tiles and memories at lane level."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, Block, Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.limits import check_index
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.lane_coordinates import Hardware
from fragir.passes.lowering.memory import LaneMemory
from fragir.passes.lowering.team import BarrierNumbers, Team

if TYPE_CHECKING:
    from fragir.passes.lowering.scratch import Scratch


SharedPlace = tuple[SSAValue, int]
"""A pointer into shared memory, and bytes to add."""


class LoweringState:
    """A map from a function's values to those of the lane level.

    A tile becomes a list of vectors, one for every fragment of the instruction of its layout.
    """

    def __init__(
        self,
        target: str,
        threads: int,
        async_proxy: bool,
        ar: Arithmetic,
        lower_block: Callable[[Block], None],
        operations: Sequence[Operation] = (),
    ):
        self.target = target
        self.operations = operations
        """All of the function's, in order."""
        self.async_proxy = async_proxy
        """Whether the function reads shared memory by the async proxy, as wgmma does."""
        self.ar = ar
        self.block_threads = threads
        """The threads of a block."""
        self.barrier_numbers = BarrierNumbers()
        self.team = Team(ar, threads)
        """The threads that run what is lowered."""
        self.hardware = Hardware(ar, threads)
        self._scratch: Scratch | None = None
        self._scratches: list[tuple[Scratch, Block | None]] = []
        """Those of roles, each with what its threads run, and others of the whole block."""
        self.lower_block = lower_block
        """Lowers every operation of a block into the current one."""
        self.tiles: dict[SSAValue, Sequence[SSAValue]] = {}
        self.values: dict[SSAValue, Value] = {}
        self.memories: dict[SSAValue, LaneMemory] = {}
        self.ends: dict[Operation, Operation | None] = {}
        """Where chains of operations end that may be formed fragment by fragment (`defers`)."""
        self.without_registers: set[SSAValue] = set()
        """Values that are nothing at lane level."""
        self.hidden: dict[Hashable, Value] = {}
        """Values of the lane level, by a name, which operations change without saying so in the
        program. Loops and branches pass on what something in them changes."""
        self.moves: Callable[[Operation], Sequence[Hashable]] = lambda _: ()
        """The names of what an operation changes in `hidden`."""
        self.full: dict[SSAValue, SharedPlace] = {}
        """The mbarrier at which copies by TMA into a part of a slot (`frag.part`) count."""
        self.of_pair: set[SSAValue] = set()
        """Such parts whose mbarrier is that of a pair's leader."""
        self.cluster: tuple[int, int, int] = (1, 1, 1)
        """Blocks of a cluster."""
        self.attributes: dict[str, Attribute] = {}
        """What the lowered function says of itself."""
        self.ahead: dict[Operation, Callable[[], None]] = {}
        """What is done ahead of an operation."""
        self.at_end: list[Callable[[Operation], None]] = []
        """What is done ahead of the function's return."""
        self.remarks: list[str] = []
        """What whoever compiles the kernel is told."""
        self.of_subject: dict[str, object] = {}
        """What the lowerings of a subject know of the function, by the subject."""
        self._hidden_in: dict[Operation, tuple[Hashable, ...]] = {}

    @property
    def scratch(self) -> Scratch:
        """The shared memory of conversions."""
        if self._scratch is None:
            from fragir.passes.lowering.scratch import Scratch  # few programs need it

            self._scratch = Scratch(self.ar, self.team, self.barrier_numbers)
        return self._scratch

    def finish(self, entry: Block) -> None:
        """Divides the shared memory of conversions, once all operations are lowered."""
        for scratch, block in self._scratches:
            scratch.finish(entry, block or entry)
        if self._scratch is not None:
            self._scratch.finish(entry, entry)

    def convert_over(self, dead: Sequence[ptx.SharedOp]) -> None:
        """From here on conversions have memory that was allocated for what is over."""
        from fragir.passes.lowering.scratch import Scratch

        if self._scratch is not None:
            self._scratches.append((self._scratch, None))
        self._scratch = Scratch(self.ar, self.team, self.barrier_numbers, dead)

    @property
    def threads(self) -> int:
        """The threads that run what is lowered."""
        return self.team.threads

    def wait_for_all(self) -> None:
        """The threads that run what is lowered wait for each other."""
        self.ar.insert(self.team.barrier())

    @contextmanager
    def in_role(self, team: Team, warp: Value) -> Generator[None]:
        """What is lowered into the current block is run by a role's threads, which share memory for
        conversions of their own: the others are at work meanwhile. `warp` is the number of the
        warp among theirs.
        """
        before = self.team, self.hardware, self._scratch
        hidden = dict(self.hidden)
        self.team, self._scratch = team, None
        self.hardware = Hardware(self.ar, team.threads, team.thread(), warp)
        yield
        if self._scratch is not None:
            self._scratches.append((self._scratch, self.ar.block))
        self.team, self.hardware, self._scratch = before
        self.hidden = hidden  # each role has its own

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar as a value of the lane level."""
        return self.ar.value(self.values[value])

    def index(self, value: int | SSAValue) -> Value:
        """An index, numbers kept as numbers."""
        return check_index(value, "an index") if isinstance(value, int) else self.values[value]

    def indices(self, values: Sequence[int | SSAValue]) -> list[Value]:
        return [self.index(value) for value in values]

    def flatten(self, value: SSAValue) -> list[SSAValue]:
        """A value's registers: the fragments of a tile, or a scalar."""
        if frag.held_tile(value.type) is not None:
            return list(self.tiles[value])
        if value in self.without_registers:
            return []
        return [self.scalar(value)]

    def bind_flat(self, value: SSAValue, flat: list[SSAValue]) -> None:
        """Takes a value's registers from the front of a list."""
        tile = frag.held_tile(value.type)
        if tile is not None:
            self.tiles[value] = [flat.pop(0) for _ in range(fragments_of(tile))]
        elif value not in self.without_registers:
            self.values[value] = flat.pop(0)

    # --- what operations change behind the program's back -------------------------------------

    def hidden_in(self, op: Operation | None) -> tuple[Hashable, ...]:
        """The names of what a loop or branch changes in `hidden`, in the order of the program."""
        if not self.hidden or op is None:
            return ()
        found = self._hidden_in.get(op)
        if found is None:
            names = [name for inner in op.walk() if inner is not op for name in self.moves(inner)]
            known = [name for name in dict.fromkeys(names) if name in self.hidden]
            found = self._hidden_in[op] = tuple(known)
        return found

    def flatten_hidden(self, op: Operation | None) -> list[SSAValue]:
        """The registers of what a loop or branch changes in `hidden`, as they are now."""
        return [self.ar.value(self.hidden[name]) for name in self.hidden_in(op)]

    def bind_hidden(self, op: Operation, flat: list[SSAValue]) -> None:
        """Takes these registers from the front of a list: they are what `hidden` holds from now."""
        for name in self.hidden_in(op):
            self.hidden[name] = flat.pop(0)


def fragments_of(tile: frag.TileType) -> int:
    """How many fragments of a placed tile a lane holds."""
    return tile.resolve().size("element") // tile.chunk
