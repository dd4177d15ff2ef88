"""Undefined bytes of shared memory under asynchronous copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.definedness.causes import Causes
from fragir.emulator.checks.definedness.uses import Uses
from fragir.emulator.checks.planes import Plane
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.machine.memory import DeviceMemory
from fragir.emulator.numbers.types import U8
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.machine.transfers import Copy, Transfer


class Copies:
    def __init__(self, plane: Plane, causes: Causes, uses: Uses) -> None:
        self.memory, self.causes, self.uses = plane.memory, causes, uses
        self._issuers: dict[int, tree.Instruction] = {}
        self._current: tree.Instruction | None = None

    def remember(self, ins: tree.Instruction) -> Step:
        """The instruction runs: what is issued next is its."""

        def run(sel: Any, mask: Mask) -> None:
            self._current = ins

        return run

    def copied(self, copy: Copy) -> None:
        copy.move(self.memory)
        if self.causes.known:
            copy.move(self.causes.plane.memory)

    def issued(self, transfer: Transfer) -> None:
        if transfer.reads is not None and self._current is not None:
            self._issuers[id(transfer)] = self._current

    def transferred(self, transfer: Transfer) -> None:
        memory = self.memory
        issuer = self._issuers.pop(id(transfer), None)
        if transfer.into is not None and not transfer.atomic:
            transfer.move(memory)
            if self.causes.known:
                transfer.move(self.causes.plane.memory)
        if transfer.reads is None or (transfer.into is not None and not transfer.atomic):
            return
        at = transfer.reads if transfer.exact is None else transfer.exact
        cells = (at >> 4, 16) if transfer.exact is None else (at, 1)
        bad = _cells(memory, *cells) != 0
        if not bad.any() or issuer is None:
            return
        what = "reduced" if transfer.atomic else "stored to global memory"
        if self.causes.known:
            found = _cells(self.causes.plane.memory, *cells) - np.uint8(1)
            self.uses.blame(found[bad], issuer, what)
            bad &= found >= len(self.causes.known)
        if bad.any():
            offset = int(at[bad.any(axis=1)][0]) % max(memory.shared_stride, 1)
            warp, lane = divmod(int(transfer.lanes[0]), LANES)
            name = f"shared memory at {offset}"
            self.uses.complain(issuer, name, what, warp, lane, 1, offset)


def _cells(memory: DeviceMemory, cells: Any, size: int) -> U8:
    """Cells of `size` bytes of shared memory: `[cells, size]`."""
    return memory.shared.bytes.reshape(-1, size)[cells]
