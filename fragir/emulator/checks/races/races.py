"""Races: accesses that overlap, at least one a write, and that nothing orders.

Order comes from bar, barrier, bar.warp.sync, barrier.cluster, mbarriers, the waits for
asynchronous work, and, where the kernel has fences or acquiring accesses, from strong accesses to
one place (`clocks.py`, `race_order.py`). `race_records.py` has the rules for shared memory,
`race_proxy.py` those for wgmma and bulk copies; global memory is here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.hooks import later
from fragir.emulator.checks.races.clocks import (
    COLUMN_BITS,
    COLUMN_MASK,
    SITE_MASK,
    STRONG,
    Clocks,
    record,
)
from fragir.emulator.checks.races.global_memory import (
    READ,
    READ_ELSEWHERE,
    WRITE,
    GlobalRecords,
    Ledger,
)
from fragir.emulator.checks.races.shadow import CHUNK, RaceShadow
from fragir.emulator.checks.races.told import TELLING
from fragir.emulator.checks.races.transfers import GlobalTransfers
from fragir.emulator.checks.races.updates import LostUpdates
from fragir.emulator.checks.scopes import (
    DEVICE,
    STRONG_WORDS,
    fenced_spaces,
    levels,
    proxies,
    scope_of,
    strength,
    strengths,
)
from fragir.emulator.instructions.access import get, shape_of, stored_rows
from fragir.emulator.machine.events import Access
from fragir.emulator.machine.lanes import LANES, Mask, Step
from fragir.emulator.machine.memory import GLOBAL_BASE
from fragir.emulator.numbers.types import I64, Bools, count_of, kind_of, width_of

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.transfers import Copy
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

LOST = READ_ELSEWHERE + 1  # beside the kinds of records: an update that gets lost


class Races(GlobalTransfers):
    def __init__(self, machine: Machine, program: Program) -> None:
        code = [p.ins for p in program.code]
        kinds = proxies(code)
        blocks = machine.grid[0] * machine.grid[1] * machine.grid[2]
        reach = levels(code, blocks=blocks, cluster=machine.cluster_size)
        strong_writes = any(
            (i.opcode[0] in ("atom", "red") or (i.opcode[0] == "st" and STRONG_WORDS & {*i.opcode}))
            and "global" not in i.opcode
            for i in code
        )
        clocks = Clocks(machine, kinds, reach)
        shadow = RaceShadow(machine, _unit(code), kinds > 0)
        super().__init__(machine, program, clocks, shadow, strong_writes, bool(reach))
        self.globals = GlobalRecords(machine, clocks, self.world, strengths(code, SITE_MASK))
        self.world_suspects: list[
            tuple[int, int, int, int, int, int, npt.NDArray[np.uint8]]
        ] = []  # site, lane, position, kind, record, owner, bytes before
        self.updates = LostUpdates(program, clocks)
        self.overlap = False  # whether lanes of the store that runs wrote one place

    def on_wave(self) -> None:
        self.forget()
        self.shadow.reset()
        self.clocks.reset()
        first = self.machine.first_block // self.machine.cluster_size
        self.globals.start_wave(first + 1)

    def on_access(self, access: Access) -> None:
        if access.space == "local":
            return
        words = access.instruction.opcode
        scope = strength(words)
        strong = scope > 0
        site = self.sites[id(access.instruction)]
        memory = self.machine.memory
        for arena, at, lanes in access.parts():
            if not at.size:
                continue
            at, lanes = at.ravel(), lanes.ravel()
            if arena is memory.globals:
                if "param" not in words and "const" not in words:
                    self._global(access.kind, site, at, lanes, access.size, scope)
            elif arena is not memory.shared:
                continue
            elif access.kind == "load":
                self.on_read(site, at, lanes, access.size, strong)
            else:
                self.on_write(site, at, lanes, access.size, strong)
        if self.by_memory and strong:
            self.hand_on(access)

    def on_copy_issue(self, copy: Copy) -> None:
        super().on_copy_issue(copy)
        at, lanes = copy.source.ravel(), copy.lanes.ravel()
        if copy.given is not None:
            whole = copy.given.ravel() == copy.size
            at, lanes = at[whole], lanes[whole]
        if at.size:
            self._global("load", self.site, at, lanes, copy.size, 0)

    # -- global memory -----------------------------------------------------------------------------

    def _global(self, kind: str, site: int, at: I64, lanes: I64, size: int, scope: int) -> None:
        clocks, records = self.clocks, self.globals
        if kind == "store":
            clocks.now += 1  # later than what has been read
        mine_all = record(clocks.now, clocks.own[lanes], site, scope > 0)
        for ledger, which in records.by_buffer(at):
            if ledger.too_large:
                continue
            if ledger.copied and kind != "load":
                self.note_copied(ledger)
            places = ledger.places(at[which], size)
            who, mine = lanes[which], mine_all[which]
            owner = records.owner_of[who]
            if ledger.too_large:
                continue
            if kind == "load":
                kinds = (WRITE,) if ledger.written else ()
                words = self.program.code[site].ins.opcode
                if ledger.written and ("nc" in words or words[0] == "ldu"):
                    self._read_only(site, ledger, places, who)
                    kinds = ()
            else:
                kinds = (WRITE, READ, READ_ELSEWHERE)
            for how, index, place, rec, other in records.clashes(ledger, kinds, places, who, scope):
                self._suspect_global(site, int(who[index]), ledger, place, how, rec, other, kind)
            if kind == "load":
                ledger.note_read(places, mine, owner)
                continue
            plain = kind == "store" and not scope and self.updates.loads
            lost = (
                list(self.updates.before(ledger, site, places, who, mine, owner)) if plain else []
            )
            warps, lanes_too = ledger.note_write(places, mine, owner)
            self.overlap |= warps
            if warps and 0 < scope < DEVICE:
                for index, place, rec, other in records.beyond(ledger, places, who, scope):
                    self._suspect_global(
                        site, int(who[index]), ledger, place, WRITE, rec, other, kind
                    )
            if plain and lanes_too:
                lost += self.updates.together(ledger, site, places, mine, owner)
            for index, place, rec in lost:
                self._suspect_global(site, int(who[index]), ledger, place, LOST, rec, 0, kind)

    def _read_only(self, site: int, ledger: Ledger, places: I64, lanes: I64) -> None:
        """ld.global.nc and ldu may see old bytes, whatever orders them after a write."""
        written = ledger.records[WRITE, places]
        if not written.any():
            return
        i, j = (int(x) for x in np.argwhere(written)[0])
        rec, owner = int(written[i, j]), int(ledger.owners[WRITE, places[i, j]])
        lane, position = int(lanes[i]), ledger.start + (int(places[i, j]) << ledger.shift)
        text = "the kernel writes these bytes, and .nc may read what was there before: "
        text += self._who_globally(lane, rec, owner)
        other = rec >> COLUMN_BITS & SITE_MASK
        self._find_global(site, other, lane, position, text, "read-only")

    def _suspect_global(
        self,
        site: int,
        lane: int,
        ledger: Ledger,
        place: int,
        how: int,
        rec: int,
        owner: int,
        kind: str,
    ) -> None:
        """A write that leaves the bytes as they are does not race: look afterwards."""
        position = ledger.start + (place << ledger.shift)
        if kind == "load":
            self._clash_global(site, lane, position, how, rec, owner)
            return
        bytes_ = self.machine.memory.globals.bytes
        old = bytes_[position : position + (1 << ledger.shift)].copy()
        self.world_suspects.append((site, lane, position, how, rec, owner, old))

    def resolve_global(self) -> None:
        bytes_ = self.machine.memory.globals.bytes
        for site, lane, position, how, rec, owner, old in self.world_suspects:
            if (bytes_[position : position + len(old)] != old).any():
                self._clash_global(site, lane, position, how, rec, owner)
        self.world_suspects.clear()

    def _clash_global(
        self, site: int, lane: int, position: int, how: int, rec: int, owner: int
    ) -> None:
        if how == LOST:
            text = f"lane {rec & LANES - 1} of the same warp has read the same bytes too, and "
            text += "changes them: one of the two updates is lost without an atomic"
            self._find_global(site, site, lane, position, text)
            return
        who = self._who_globally(lane, rec, owner)
        what = "write" if how == WRITE else "read"
        text = f"nothing orders this after the {what} of the same bytes: {who}"
        if rec & STRONG and strength(self.program.code[site].ins.opcode):
            text += "; the scope of one of the two leaves the other thread out"
        cluster = None if owner == self.globals.owner_of[lane] else owner
        letter = "warp" if self.told_of(lane, rec, cluster) else None
        if letter is not None:
            text += "; a lane of this warp knows of it, and has told the others by a shuffle"
        self._find_global(site, rec >> COLUMN_BITS & SITE_MASK, lane, position, text, letter=letter)

    def _who_globally(self, lane: int, rec: int, owner: int) -> str:
        """The instruction and the thread of a record of global memory, for messages."""
        if owner == self.globals.owner_of[lane]:
            return self.who(lane, rec)
        column = rec & COLUMN_MASK
        if column >= self.clocks.lanes:
            return self.what_at(rec)
        per = self.machine.warps_per_block * LANES
        rank, thread = divmod(column, per)
        block = self.machine.coordinates_of((owner - 1) * self.machine.cluster_size + rank)
        who = f"{self.what_at(rec)} by block {block} warp {thread // LANES} "
        return who + f"lane {thread % LANES}"

    def _others(self, at: I64, lanes: I64, size: int) -> Bools:
        """Which of the lanes have written where another warp was the last to write."""
        result = np.zeros(len(at), np.bool_)
        for ledger, which in self.globals.by_buffer(at):
            if not ledger.too_large:
                mine, owner = self.clocks.own[lanes[which]], self.globals.owner_of[lanes[which]]
                result[which] = ledger.others(ledger.places(at[which], size), mine, owner)
        return result

    def overwritten_globally(self, site: int, lane: int, position: int) -> None:
        """Lanes of one store write different values to one place of global memory."""
        self._find_global(
            site, site, lane, position, "another lane writes another value to the same bytes"
        )

    def _find_global(
        self,
        site: int,
        other: int,
        lane: int,
        position: int,
        text: str,
        kind: str = "race",
        letter: str | None = None,
    ) -> None:
        memory = self.machine.memory
        buffer = memory.buffers[int(memory.buffer_of(np.array([position]))[0])]
        text = f"at byte {position - buffer.start} of {buffer.name}: {text}"
        address = GLOBAL_BASE + position
        self.say_once("global", kind, letter, site, other, text, lane=lane, address=address)

    # -- what is wrapped ---------------------------------------------------------------------------

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        words = ins.opcode
        site = self.sites[id(ins)]
        if words[:2] == ("st", "bulk"):
            return self._wrap_strong(step)
        if later(ins):
            return self._at_site(site, step)
        if words[0] in ("st", "atom", "red") and d.space(ins) in ("shared", "generic", "global"):
            if words[0] == "st" and STRONG_WORDS.isdisjoint(words):
                return self._wrap_store(d, ins, step)
            return self._wrap_strong(step)
        if words[:2] == ("wgmma", "commit_group"):
            return self._after(step, self.commit_wgmma)
        if words[:2] == ("wgmma", "wait_group"):
            newest = d.literal(ins, 0) or 0
            return self._after(step, partial(self.wait_wgmma, newest))
        if words[:4] == ("cp", "async", "bulk", "commit_group"):
            return self._after(step, self.commit_bulk)
        if words[:4] == ("cp", "async", "bulk", "wait_group"):
            number = d.literal(ins, 0) or 0
            return self._after(step, partial(self.wait_bulk, number, "read" in words))
        if words[0] in ("fence", "membar"):
            return self._wrap_fence(words, step)
        if words[:3] in (("bar", "warp", "sync"), ("barrier", "warp", "sync")):
            return self._wrap_warp(d, ins, step)
        if words[0] in ("cp", "wgmma", "mbarrier", "clusterlaunchcontrol"):
            return self._at_site(site, step)
        if self.by_memory and words[0] in TELLING:
            return self._after(step, self._tell)
        return step

    def _tell(self, lanes: I64) -> None:
        self.told.tell(lanes)

    def _at_site(self, site: int, step: Step) -> Step:
        def run(sel: Any, mask: Mask) -> None:
            self.site = site
            step(sel, mask)

        return run

    def _after(self, step: Step, action: Any) -> Step:
        ids = self.machine.lane_ids

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            action(get(ids, sel, mask).ravel())

        return run

    def _wrap_warp(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        ids = self.machine.lane_ids
        members = d.source(ins, 0, "u32")
        bits = np.left_shift(np.uint32(1), np.arange(LANES, dtype=np.uint32))

        def run(sel: Any, mask: Mask) -> None:
            if self.heard:
                self.deliver(get(ids, sel, mask).ravel())
            step(sel, mask)
            if mask is None and (members[sel] == np.uint32(0xFFFFFFFF)).all():
                self.clocks.join_warps(ids[sel].ravel())
                return
            lanes, groups = ids[sel], members[sel]
            here = np.ones(lanes.shape, np.bool_) if mask is None else mask
            for row, named, there in zip(lanes, groups, here, strict=True):
                for value in np.unique(named[there]):
                    self.clocks.join(row[there & (named == value) & (value & bits != 0)])

        return run

    def _wrap_fence(self, words: tuple[str, ...], step: Step) -> Step:
        if "proxy" in words:
            spaces = fenced_spaces(words)
            if spaces is None:
                return step
            both = (self.clocks.proxy, self.clocks.proxy_global)
            planes = {plane for plane, named in zip(both, spaces, strict=True) if named}
            for plane in sorted(planes):
                step = self._after(step, partial(self.clocks.fence, plane=plane))
            return step
        if "mbarrier_init" in words:
            return self._after(step, self.fence_init)
        return self._after(step, partial(self.fence_memory, scope=scope_of(words)))

    def _wrap_strong(self, step: Step) -> Step:
        """Behind an atomic or a strong store: which suspects are real."""

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            if self.suspects:
                self.resolve()
            if self.world_suspects:
                self.resolve_global()

        return run

    def _wrap_store(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        """Behind a store: which suspects are real, and did lanes write different values."""
        kind, width, count = shape_of(d, ins)
        rows = stored_rows(d, ins, 1, kind, width, count)
        if any(r is None for r in rows):
            return self._wrap_strong(step)
        place = d.place(ins, 0, d.space(ins))
        machine, site = self.machine, self.sites[id(ins)]
        size = width * len(rows)

        def run(sel: Any, mask: Mask) -> None:
            self.overlap = False
            step(sel, mask)
            if self.suspects:
                self.resolve()
            if self.world_suspects:
                self.resolve_global()
            if place.space == "global" and not self.overlap:
                return
            lanes = get(machine.lane_ids, sel, mask)
            address = place.at(sel, mask)
            for arena, at, which in machine.memory.spaces(place.space, address, sel, mask, size):
                who = (lanes if which is None else lanes[which]).ravel()
                at = at.ravel()
                if arena is machine.memory.shared:
                    last = self.shadow.written[at >> self.shadow.shift] & COLUMN_MASK
                    if (last == self.clocks.own[who]).all():
                        continue
                elif arena is not machine.memory.globals or not self.overlap:
                    continue
                parts = [get(r, sel, mask) for r in rows]
                value = np.stack([p if which is None else p[which] for p in parts], axis=-1)
                data = np.ascontiguousarray(value).reshape(len(who), -1).view(np.uint8)
                now = arena.bytes[at[:, None] + np.arange(size)]
                bad = (data != now).any(axis=1)
                if arena is machine.memory.globals and bad.any():
                    bad &= self._others(at, who, size)
                if bad.any():
                    index = int(np.flatnonzero(bad)[0])
                    lane, position = int(who[index]), int(at[index])
                    if arena is machine.memory.shared:
                        rec = int(self.shadow.written[position >> self.shadow.shift])
                        self.clash("write", site, lane, position, rec)
                    else:
                        self.overwritten_globally(site, lane, position)

        return run


def _unit(code: Sequence[Instruction]) -> int:
    """Bytes of the smallest access to shared memory."""
    unit = CHUNK
    for ins in code:
        words = ins.opcode
        if words[:2] == ("st", "bulk"):
            unit = min(unit, 8)
        elif words[0] in ("ld", "ldu", "st", "atom", "red"):
            if any(w in words for w in ("global", "param", "local", "const")):
                continue
            if any(w.startswith("param") for w in words):
                continue
            unit = min(unit, width_of(kind_of(words)) // 8 * count_of(words))
        elif words[:2] == ("cp", "async") and words[2:3] in (("ca",), ("cg",)):
            unit = min(unit, 4)
        elif words[0] == "mbarrier":
            unit = min(unit, 8)
    return max(unit, 1)
