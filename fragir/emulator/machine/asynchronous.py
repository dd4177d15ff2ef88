"""What was issued and has not happened yet: cp.async, bulk copies, wgmma.

By default everything retires at the latest legal moment: a wait names it, or nothing else can run.
Until then destinations in shared memory are poisoned (`Memory.poison`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fragir.emulator.machine.barriers import phase_of, update
from fragir.emulator.machine.lanes import LANES, Mask, Select, is_slice
from fragir.emulator.machine.memory import AccessFault
from fragir.emulator.machine.state import State
from fragir.emulator.machine.transfers import Arrival, Copy, Transfer
from fragir.emulator.numbers.types import I64, Array, Bools

#: Bytes of what a bulk copy reads at a time.
CHUNK = 16


class AsyncEngine:
    """All pending asynchronous work of the resident warps."""

    def __init__(self, machine: State) -> None:
        self.machine = machine
        shape = (machine.warps, LANES)
        self.committed = np.zeros(shape, np.int32)  # cp.async groups committed by each lane
        self.bulk_committed = np.zeros(shape, np.int32)
        self.copies: list[Copy] = []
        self.arrivals: list[Arrival] = []
        self.issued = 0  # cp.async so far
        self.transfers: list[Transfer] = []
        machine.on_wave.append(self.reset)
        machine.memory.pending = self.pending

    def reset(self) -> None:
        self.committed[...] = 0
        self.bulk_committed[...] = 0

    def leave(self, gone: Bools) -> None:
        """What these warps, of whole clusters, have issued does not happen here."""
        memory = self.machine.memory
        kept: list[Copy] = []
        for copy in self.copies:
            lost = gone[copy.lanes // LANES]
            if not lost.any():
                kept.append(copy)
                continue
            memory.set_poison(copy.into[lost], copy.size, 0)
            if lost.all():
                memory.poisoned -= 1
            else:
                kept.append(copy.part(~lost))
        self.copies = kept
        for item in self.transfers:
            if gone[item.lanes[0] // LANES] and item.into is not None and item.poisons:
                memory.set_poison(item.into, item.grain, 0)
                memory.poisoned -= 1
        self.transfers = [item for item in self.transfers if not gone[item.lanes[0] // LANES]]
        parts = [(arrival, ~gone[arrival.lanes // LANES]) for arrival in self.arrivals]
        self.arrivals = [
            replace(arrival, at=arrival.at[stays], lanes=arrival.lanes[stays])
            for arrival, stays in parts
            if stays.any()
        ]

    # -- cp.async --------------------------------------------------------------------------------

    def issue(
        self, source: I64, into: I64, size: int, given: Array | None, sel: Select, mask: Mask
    ) -> None:
        """Start a copy of the active lanes (arrays compressed where there is a mask)."""
        memory = self.machine.memory
        if memory.poisoned:
            memory.check_poison(memory.shared, into, size)
        lanes = self.machine.lane_ids[sel] if mask is None else self.machine.lane_ids[sel][mask]
        groups = self.committed[sel].copy() if mask is None else self.committed[sel][mask]
        low, high = int(groups.min()), int(groups.max())
        copy = Copy(source, into, size, given, lanes, groups, low, high, self.issued)
        self.issued += 1
        for hook in self.machine.hooks:
            hook.on_copy_issue(copy)
        if self.machine.retires_now():
            self._move(copy)
            return
        memory.set_poison(into, size, 1)
        memory.poisoned += 1
        self.copies.append(copy)

    def _move(self, copy: Copy) -> None:
        copy.move(self.machine.memory)
        self.machine.progress = True
        for hook in self.machine.hooks:
            hook.on_copy_complete(copy)

    def _retire(self, copy: Copy) -> None:
        memory = self.machine.memory
        memory.set_poison(copy.into, copy.size, 0)
        memory.poisoned -= 1
        self._move(copy)

    def commit(self, sel: Select, mask: Mask) -> None:
        self.committed[sel] += 1 if mask is None else mask

    def wait(self, sel: Select, mask: Mask, newest: int | None) -> None:
        """Retire all but the `newest` committed groups of the lanes; None: everything issued."""
        if not self.copies:
            return
        committed = self.committed[sel]
        limit = committed + 1 if newest is None else committed - newest
        if (
            mask is None
            and is_slice(sel)
            and sel == slice(0, self.machine.resident)
            and int(limit.min()) == (bound := int(limit.max()))
        ):
            self.copies = [c for c in self.copies if not self._is_whole(c, bound)]
            if not any(c.low < bound for c in self.copies):
                return
        limits = np.full(self.committed.shape, -1, np.int32)
        limits[sel] = limit if mask is None else np.where(mask, limit, -1)
        flat = limits.ravel()
        kept: list[Copy] = []
        for copy in self.copies:
            ready = copy.groups < flat[copy.lanes]
            if ready.all():
                self._retire(copy)
            elif ready.any():
                done = copy.part(ready)
                self.machine.memory.poisoned += 1  # two records now
                self._retire(done)
                kept.append(copy.part(~ready))
            else:
                kept.append(copy)
        self.copies = kept

    def _is_whole(self, copy: Copy, bound: int) -> bool:
        if copy.high >= bound:
            return False
        self._retire(copy)
        return True

    def arrive_later(self, at: I64, sel: Select, mask: Mask, raise_first: bool) -> None:
        """cp.async.mbarrier.arrive: once the copies issued so far by these lanes are complete."""
        lanes = self.machine.lane_ids[sel] if mask is None else self.machine.lane_ids[sel][mask]
        if raise_first:
            for position in at.ravel():
                update(self.machine, int(position), 0, 0, more=1)
        self.arrivals.append(Arrival(at.ravel(), lanes.ravel(), raise_first, self.issued))

    # -- bulk ------------------------------------------------------------------------------------

    def transfer(self, transfer: Transfer) -> None:
        memory = self.machine.memory
        reads = transfer.reads, CHUNK
        if transfer.exact is not None:
            reads = transfer.exact & ~3, 4
        touched = (transfer.into, transfer.grain), reads
        for at, size in touched if memory.poisoned else ():
            if at is None:
                continue
            try:
                memory.check_poison(memory.shared, at, size)
            except AccessFault as fault:  # these are pieces of one lane's copy
                fault.lane = int(transfer.lanes[0])
                raise
        for hook in self.machine.hooks:
            hook.on_transfer_issue(transfer)
        if self.machine.retires_now():
            self._execute(transfer)
            return
        if transfer.into is not None and transfer.poisons:
            memory.set_poison(transfer.into, transfer.grain, 1)
            memory.poisoned += 1
        self.transfers.append(transfer)

    def _complete(self, transfer: Transfer) -> None:
        memory = self.machine.memory
        if transfer.into is not None and transfer.poisons:
            memory.set_poison(transfer.into, transfer.grain, 0)
            memory.poisoned -= 1
        self._execute(transfer)

    def _execute(self, transfer: Transfer) -> None:
        transfer.note(self.machine.memory.globals.footprint)
        for hook in self.machine.hooks:
            hook.on_transfer_execute(transfer)
        transfer.move(self.machine.memory)
        for hook in self.machine.hooks:
            hook.on_transfer_complete(transfer)
        if transfer.signal >= 0:
            for hook in self.machine.hooks:
                hook.on_mbarrier("complete", transfer.signal, transfer.lanes)
            update(self.machine, transfer.signal, 0, -transfer.size)
        self.machine.progress = True

    def bulk_commit(self, sel: Select, mask: Mask) -> None:
        self.bulk_committed[sel] += 1 if mask is None else mask

    def bulk_wait(self, sel: Select, mask: Mask, newest: int) -> None:
        if not self.transfers:
            return
        limits = np.full(self.committed.shape, -1, np.int32)
        limit = self.bulk_committed[sel] - newest
        limits[sel] = limit if mask is None else np.where(mask, limit, -1)
        flat = limits.ravel()
        kept: list[Transfer] = []
        for item in self.transfers:
            if 0 <= item.group < flat[item.lanes[0]]:
                self._complete(item)
            else:
                kept.append(item)
        self.transfers = kept

    # -- rounds ----------------------------------------------------------------------------------

    def end_round(self) -> bool:
        """Nothing else can run: complete what completes by itself. Whether anything did."""
        if not self.arrivals and not self.transfers:
            return False
        for arrival in self.arrivals:
            kept: list[Copy] = []
            for copy in self.copies:
                if copy.number >= arrival.number:
                    kept.append(copy)
                    continue
                mine = np.isin(copy.lanes, arrival.lanes)
                if mine.all():
                    self._retire(copy)
                elif mine.any():
                    self.machine.memory.poisoned += 1
                    self._retire(copy.part(mine))
                    kept.append(copy.part(~mine))
                else:
                    kept.append(copy)
            self.copies = kept
            for position, lane in zip(arrival.at, arrival.lanes, strict=True):
                for hook in self.machine.hooks:
                    hook.on_mbarrier("arrive", int(position), np.array([lane]))
                update(self.machine, int(position), 1, 0)
        moving = self._take_next()
        changed = bool(self.arrivals or moving)
        self.arrivals = []
        for item in moving:
            self._complete(item)
        return changed

    def _take_next(self) -> list[Transfer]:
        """The copies of each block that signal the same mbarrier as its oldest one.

        Who waits for one copy and forgets the next must not find that complete, too.
        """
        stride = max(self.machine.memory.shared_stride, 1)
        oldest: dict[int, int] = {}
        taken: list[Transfer] = []
        kept: list[Transfer] = []
        for item in self.transfers:
            block = item.signal // stride
            moves = item.group < 0 and oldest.setdefault(block, item.signal) == item.signal
            (taken if moves else kept).append(item)
        self.transfers = kept
        return taken

    def finish(self) -> None:
        """The blocks have ended: whatever is pending happens now."""
        if self.copies or self.transfers:
            for hook in self.machine.hooks:
                hook.on_leftover(self.copies, self.transfers)
        for copy in self.copies:
            self._retire(copy)
        for item in self.transfers:
            self._complete(item)
        self.copies, self.transfers, self.arrivals = [], [], []

    def pending(self, position: int) -> str:
        """What would wait for the copy that has yet to write a byte of shared memory."""
        for item in self.transfers:
            if item.into is None or not _covers(item.into, item.grain, position):
                continue
            return f": {item.what} {phase_of(self.machine, item.signal)}"
        for copy in self.copies:
            if not _covers(copy.into, copy.size, position):
                continue
            which = (copy.into <= position) & (position < copy.into + copy.size)
            lane, group = int(copy.lanes[which].flat[0]), int(copy.groups[which].flat[0])
            newest = int(self.committed.ravel()[lane]) - group - 1
            block, warp = self.machine.place(lane // LANES)
            who = f": cp.async of block {block} warp {warp} lane {lane % LANES}"
            if newest < 0:
                return f"{who} is in no group yet (cp.async.commit_group)"
            return f"{who}, which cp.async.wait_group {newest} of that thread waits for"
        return ""

    def describe(self) -> list[str]:
        """Pending work, for the report of a deadlock."""
        if not self.copies:
            return []
        return [f"{len(self.copies)} cp.async are pending and nobody waits for them"]


def _covers(into: I64, size: int, position: int) -> bool:
    return bool(((into <= position) & (position < into + size)).any())
