"""The machine: the state of the resident warps, and what goes on beside them."""

from __future__ import annotations

from fragir.emulator.machine.asynchronous import AsyncEngine
from fragir.emulator.machine.barriers import BlockBarriers
from fragir.emulator.machine.state import State
from fragir.emulator.machine.warpgroups import Warpgroups


class Machine(State):
    """State, barriers, copies and wgmma in flight. The last three exist once memory is there."""

    barriers: BlockBarriers
    engine: AsyncEngine
    wgmma: Warpgroups

    def assemble(self) -> None:
        """Add barriers and what is in flight; memory must have been committed."""
        self.on_wave.append(self.finish)
        self.barriers = BlockBarriers(self)
        self.engine = AsyncEngine(self)
        self.wgmma = Warpgroups(self)

    def finish(self) -> None:
        """The blocks have ended: whatever is pending happens now, or is reported."""
        self.engine.finish()
        self.wgmma.finish()
