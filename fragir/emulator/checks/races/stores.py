"""Behind a store: which suspects are real, and whether its lanes wrote different values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.records import COLUMN_MASK
from fragir.emulator.instructions.access import get, shape_of, stored_rows
from fragir.emulator.machine.lanes import Mask, Step

if TYPE_CHECKING:
    from fragir.emulator.checks.races.global_races import GlobalRaces
    from fragir.emulator.checks.races.shared_races import SharedRaces
    from fragir.emulator.instructions.operands import Decoder
    from fragir.ptx.tree import Instruction


class Stores:
    def __init__(self, context: Context, shared: SharedRaces, globally: GlobalRaces) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites
        self.shared, self.globally = shared, globally

    def strong(self, step: Step) -> Step:
        """Behind an atomic or a strong store: which suspects are real."""

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            if self.shared.suspects:
                self.shared.resolve()
            if self.globally.suspects:
                self.globally.resolve()

        return run

    def plain(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        """Behind a store: which suspects are real, and did lanes write different values."""
        kind, width, count = shape_of(d, ins)
        rows = stored_rows(d, ins, 1, kind, width, count)
        if any(r is None for r in rows):
            return self.strong(step)
        place = d.place(ins, 0, d.space(ins))
        machine, site = self.machine, self.sites.of(ins)
        size = width * len(rows)

        def run(sel: Any, mask: Mask) -> None:
            self.shared.overlap = self.globally.overlap = False
            step(sel, mask)
            if self.shared.suspects:
                self.shared.resolve()
            if self.globally.suspects:
                self.globally.resolve()
            if not self.globally.overlap and not self.shared.overlap:
                return
            lanes = get(machine.lane_ids, sel, mask)
            address = place.at(sel, mask)
            for arena, at, which in machine.memory.spaces(place.space, address, sel, mask, size):
                who = (lanes if which is None else lanes[which]).ravel()
                at = at.ravel()
                if arena is machine.memory.shared:
                    last = self.shared.places.written[at >> self.shared.places.shift] & COLUMN_MASK
                    if (last == self.clocks.own[who]).all():
                        continue
                elif arena is not machine.memory.globals or not self.globally.overlap:
                    continue
                parts = [get(r, sel, mask) for r in rows]
                value = np.stack([p if which is None else p[which] for p in parts], axis=-1)
                data = np.ascontiguousarray(value).reshape(len(who), -1).view(np.uint8)
                now = arena.bytes[at[:, None] + np.arange(size)]
                bad = (data != now).any(axis=1)
                if arena is machine.memory.globals and bad.any():
                    bad &= self.globally.others(at, who, size)
                if bad.any():
                    index = int(np.flatnonzero(bad)[0])
                    lane, position = int(who[index]), int(at[index])
                    if arena is machine.memory.shared:
                        rec = int(self.shared.places.written[position >> self.shared.places.shift])
                        self.shared.clash("write", site, lane, position, rec)
                    else:
                        self.globally.overwritten(site, lane, position)

        return run
