"""Undefined bytes of shared memory under asynchronous copies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fragir.emulator.checks.definedness.uses import Uses
from fragir.emulator.checks.planes import Plane
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.ptx import tree

if TYPE_CHECKING:
    from fragir.emulator.machine.transfers import Copy, Transfer


class Copies:
    def __init__(self, plane: Plane, uses: Uses) -> None:
        self.memory, self.uses = plane.memory, uses
        self._issuers: dict[int, tree.Instruction] = {}
        self._current: tree.Instruction | None = None

    def remember(self, ins: tree.Instruction) -> Step:
        """The instruction runs: what is issued next is its."""

        def run(sel: Any, mask: Mask) -> None:
            self._current = ins

        return run

    def copied(self, copy: Copy) -> None:
        copy.move(self.memory)

    def issued(self, transfer: Transfer) -> None:
        if transfer.reads is not None and self._current is not None:
            self._issuers[id(transfer)] = self._current

    def transferred(self, transfer: Transfer) -> None:
        memory = self.memory
        issuer = self._issuers.pop(id(transfer), None)
        if transfer.into is not None and not transfer.atomic:
            transfer.move(memory)
        if transfer.reads is None or (transfer.into is not None and not transfer.atomic):
            return
        if transfer.exact is not None:
            at, bad = transfer.exact, memory.shared.bytes[transfer.exact] != 0
        else:
            at = transfer.reads
            bad = memory.shared.bytes.reshape(-1, 16)[at >> 4].any(axis=1)
        if bad.any() and issuer is not None:
            offset = int(at[bad][0]) % max(memory.shared_stride, 1)
            warp, lane = divmod(int(transfer.lanes[0]), LANES)
            what = "reduced" if transfer.atomic else "stored to global memory"
            name = f"shared memory at {offset}"
            self.uses.complain(issuer, name, what, warp, lane, 1, offset)
