"""What is known while a function is lowered: its values, tiles and memories at lane level."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Block, SSAValue

from fragir.dialects import frag
from fragir.dialects.limits import check_index
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import LaneMemory

if TYPE_CHECKING:
    from fragir.passes.lowering.scratch import Scratch


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
        hardware: Hardware,
        lower_block: Callable[[Block], None],
    ):
        self.target, self.threads = target, threads
        self.async_proxy = async_proxy
        """Whether the function reads shared memory by the async proxy, as wgmma does."""
        self.ar, self.hardware = ar, hardware
        self._scratch: Scratch | None = None
        self.lower_block = lower_block
        """Lowers every operation of a block into the current one."""
        self.tiles: dict[SSAValue, Sequence[SSAValue]] = {}
        self.values: dict[SSAValue, Value] = {}
        self.memories: dict[SSAValue, LaneMemory] = {}

    @property
    def scratch(self) -> Scratch:
        """The shared memory of conversions."""
        if self._scratch is None:
            from fragir.passes.lowering.scratch import Scratch  # few programs need it

            self._scratch = Scratch(self.ar)
        return self._scratch

    def finish(self, entry: Block) -> None:
        """Divides the shared memory of conversions, once all operations are lowered."""
        if self._scratch is not None:
            self._scratch.finish(entry)

    def scalar(self, value: SSAValue) -> SSAValue:
        """A scalar as a value of the lane level."""
        return self.ar.value(self.values[value])

    def index(self, value: int | SSAValue) -> Value:
        """An index, numbers kept as numbers."""
        return check_index(value, "an index") if isinstance(value, int) else self.values[value]

    def indices(self, values: Sequence[int | SSAValue]) -> list[Value]:
        return [self.index(value) for value in values]

    def flat(self, value: SSAValue) -> list[SSAValue]:
        """A value's registers: the fragments of a tile, or a scalar."""
        if isinstance(value.type, frag.TileType):
            return list(self.tiles[value])
        return [self.scalar(value)]

    def bind_flat(self, value: SSAValue, flat: list[SSAValue]) -> None:
        """Takes a value's registers from the front of a list."""
        if isinstance(value.type, frag.TileType):
            self.tiles[value] = [flat.pop(0) for _ in range(fragments_of(value.type))]
        else:
            self.values[value] = flat.pop(0)


def fragments_of(tile: frag.TileType) -> int:
    """How many fragments of a placed tile a lane holds."""
    return tile.resolve().size("element") // tile.chunk
