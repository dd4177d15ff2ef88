"""The machine: the state of the resident warps, and what goes on beside them."""

from __future__ import annotations

import numpy as np

from fragir.emulator.machine.asynchronous import AsyncEngine
from fragir.emulator.machine.barriers import BlockBarriers
from fragir.emulator.machine.state import EXITED, State
from fragir.emulator.machine.tensor_memory import TensorMemories
from fragir.emulator.machine.warpgroups import Warpgroups


class Machine(State):
    """State, barriers, copies, wgmma and tcgen05 in flight, which exist once memory is there."""

    barriers: BlockBarriers
    engine: AsyncEngine
    wgmma: Warpgroups
    tensor: TensorMemories

    def assemble(self) -> None:
        """Add barriers and what is in flight; memory must have been committed."""
        self.on_wave.append(self.finish)
        self.barriers = BlockBarriers(self)
        self.engine = AsyncEngine(self)
        self.wgmma = Warpgroups(self)
        self.tensor = TensorMemories(self)

    def leave(self, first: int, end: int) -> None:
        """Of the blocks of this wave only first..end-1 go on here, counted within the wave.

        The others go on in another process: nothing of them happens here any more.
        """
        gone = np.ones(self.warps, np.bool_)
        gone[first * self.warps_per_block : end * self.warps_per_block] = False
        self.key[gone] = EXITED
        self.alive[gone] = False
        for part in (self.barriers, self.engine, self.wgmma, self.tensor):
            part.leave(gone)
        for hook in self.hooks:
            hook.on_leave(np.flatnonzero(gone[: self.resident]).astype(np.int64))

    def finish(self) -> None:
        """The blocks have ended: whatever is pending happens now, or is reported."""
        self.engine.finish()
        self.wgmma.finish()
        self.tensor.finish()
