"""Races on shared memory: accesses that overlap, at least one a write, and that nothing orders.

Order comes from bar, barrier, bar.warp.sync, barrier.cluster, mbarriers, the waits for
asynchronous work, and, where the kernel has fences or acquiring accesses, from strong accesses to
one place (`clocks.py`). Two strong accesses (atomics, volatile, relaxed ...) do not race, and
neither do writes that leave a place as it is. What wgmma and bulk copies read must have passed a
`fence.proxy.async` if threads wrote it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from fragir.emulator.access import get, shape_of, stored_rows
from fragir.emulator.clocks import (
    ASYNC,
    COLUMN_BITS,
    COLUMN_MASK,
    PENDING,
    SITE_MASK,
    STRONG,
    TIME_SHIFT,
    Clocks,
    record,
)
from fragir.emulator.common import (
    I64,
    LANES,
    Bools,
    Mask,
    Step,
    count_of,
    kind_of,
    width_of,
)
from fragir.emulator.hooks import Access, Event, Hooks, later
from fragir.emulator.race_shadow import CHUNK, RaceShadow
from fragir.emulator.wgmma import WARPGROUP, expand

if TYPE_CHECKING:
    from fragir.emulator.asynchronous import Copy, Transfer
    from fragir.emulator.decode import Decoder
    from fragir.emulator.program import Program
    from fragir.emulator.state import Machine
    from fragir.emulator.wgmma import Issue
    from fragir.ptx.tree import Instruction

_STRONG = {"volatile", "relaxed", "acquire", "release", "acq_rel", "mmio", "sc"}
_ORDERING = {"acquire", "release", "acq_rel", "sc"}
_MBARRIER = COLUMN_MASK  # the column that holds a live mbarrier


class Races(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        self.machine, self.program = machine, program
        code = [p.ins for p in program.code]
        #: Where each instruction is; those of very long programs share the last number.
        self.sites = {id(ins): min(at, SITE_MASK) for at, ins in enumerate(code)}
        asynchronous = any(
            i.opcode[:2] == ("wgmma", "mma_async") or "bulk" in i.opcode for i in code
        )
        self.clocks = Clocks(machine, 2 if asynchronous else 1)
        self.shadow = RaceShadow(machine, _unit(code), asynchronous)
        #: Whether plain memory is used to synchronise (PTX ISA 9.2, section 8.9).
        self.by_memory = any(
            (
                i.opcode[0] in ("fence", "membar")
                and "proxy" not in i.opcode
                and "mbarrier_init" not in i.opcode
            )
            or (i.opcode[0] in ("ld", "st", "atom", "red") and _ORDERING & set(i.opcode))
            for i in code
        )
        self.site = 0  # of the asynchronous instruction that runs
        self.suspects: list[tuple[I64, npt.NDArray[np.uint8], I64, I64, int]] = []
        self.said: set[tuple[str, int, int]] = set()
        self._forget()

    def _forget(self) -> None:
        self.arrived: dict[tuple[str, int, int], npt.NDArray[np.int32]] = {}
        self.phases: dict[int, npt.NDArray[np.int32]] = {}
        self.places: dict[tuple[int, str, int], npt.NDArray[np.int32]] = {}
        self.live: dict[int, int] = {}  # mbarrier -> the record of its initialisation
        self.landed: dict[int, tuple[int, int]] = {}  # mbarrier -> its column, latest copy
        self.started: dict[int, tuple[Transfer, int]] = {}
        self.bulk_commits: dict[int, list[int]] = {}
        self.wgmma_commits: dict[int, list[int]] = {}
        #: Of the cluster's barrier, by lane: arrivals and waits so far.
        self.cluster_counts = np.zeros((2, self.machine.warps * LANES), np.int64)

    def on_wave(self) -> None:
        self._forget()
        self.shadow.reset()
        self.clocks.reset()

    # -- findings --------------------------------------------------------------------------------

    def find(self, kind: str, site: int, other: int, lane: int, at: int, message: str) -> None:
        """A finding at an instruction, once for every pair of instructions."""
        if (kind, site, other) in self.said:
            return
        self.said.add((kind, site, other))
        ins = self.program.code[site].ins
        offset = at % max(self.machine.memory.shared_stride, 1)
        text = f"{ins.mnemonic} at shared offset {offset}: {message}"
        self.found(self.program, ins.at, kind, text, lane=lane, address=offset, subject=f"{other}")

    def who(self, lane: int, rec: int) -> str:
        """The instruction and the lane of a record, for messages."""
        column, site = rec & COLUMN_MASK, rec >> COLUMN_BITS & SITE_MASK
        ins = self.program.code[min(site, len(self.program.code) - 1)].ins
        text = f"{ins.mnemonic} of line {self.program.error('', ins.at).line}"
        if column >= self.clocks.lanes:
            return text
        other = lane // self.clocks.lanes * self.clocks.lanes + column
        block, warp = self.machine.place(other // LANES)
        there = "" if other // LANES == lane // LANES else f"warp {warp} "
        if self.machine.block_of[other // LANES] != self.machine.block_of[lane // LANES]:
            there = f"block {block} {there}"
        return f"{text} by {there}lane {other % LANES}"

    def clash(self, what: str, site: int, lane: int, at: int, rec: int) -> None:
        """Report an access of `lane` that the one in `rec` is not ordered before."""
        other = rec >> COLUMN_BITS & SITE_MASK
        column = rec & COLUMN_MASK
        who = self.who(lane, rec)
        if column == _MBARRIER:
            self.find("mbarrier", site, other, lane, at, f"a live mbarrier lies here ({who})")
        elif what == "invisible":
            text = f"the asynchronous proxy does not see what {who} wrote without fence.proxy.async"
            self.find("proxy-fence", site, other, lane, at, text)
        elif what == "source":
            text = f"{who} may still read these bytes; wait for it first"
            self.find("pending-source", site, other, lane, at, text)
        else:
            text = f"nothing orders this after the {what} of the same bytes: {who}"
            self.find("race", site, other, lane, at, text)

    def tell(self, what: str, site: int, bad: Bools, lanes: I64, at: I64, recs: I64) -> None:
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        position = int(np.broadcast_to(at, bad.shape)[index])
        lane = int(np.broadcast_to(lanes, bad.shape)[index])
        self.clash(what, site, lane, position, int(recs[index]))

    # -- accesses of threads -----------------------------------------------------------------------

    def on_access(self, access: Access) -> None:
        if access.space in ("global", "local"):
            if self.by_memory and access.space == "global":
                self._by_memory(access)
            return
        words = access.instruction.opcode
        strong = access.kind == "atomic" or not _STRONG.isdisjoint(words)
        site = self.sites[id(access.instruction)]
        for arena, at, lanes in access.parts():
            if arena is not self.machine.memory.shared or not at.size:
                continue
            at, lanes = at.ravel(), lanes.ravel()
            if access.kind == "load":
                self.on_read(site, at, lanes, access.size, strong)
            else:
                self.on_write(site, at, lanes, access.size, strong)
        if self.by_memory and strong:
            self._by_memory(access)

    def _spread(self, at: I64, lanes: I64, size: int) -> tuple[I64, I64, I64]:
        """(places, lanes, byte positions), one row for each access."""
        places = self.shadow.places(at, size)
        return places, np.broadcast_to(lanes[:, None], places.shape), places << self.shadow.shift

    def on_read(self, site: int, at: I64, lanes: I64, size: int, strong: bool) -> None:
        shadow, clocks = self.shadow, self.clocks
        places = shadow.places(at, size)
        recs = shadow.written[places]
        if not clocks.settled(recs):
            places, who, where = self._spread(at, lanes, size)
            bad = clocks.unordered(who, recs)
            if strong:
                bad &= recs & STRONG == 0
            if bad.any():
                self.tell("write", site, bad, who, where, recs)
        mine = record(clocks.now, clocks.own[lanes], site, strong)
        shadow.read[places, shadow.slots(at, lanes)[:, None]] = mine[:, None]
        shadow.read_time[places] = clocks.now

    def on_write(
        self,
        site: int,
        at: I64,
        lanes: I64,
        size: int,
        strong: bool = False,
        time: int | None = None,
    ) -> None:
        shadow, clocks = self.shadow, self.clocks
        places, who, where = self._spread(at, lanes, size)
        recs = shadow.written[places]
        if not clocks.settled(recs):
            bad = clocks.unordered(who, recs)
            if strong:
                bad &= recs & STRONG == 0
            if bad.any() and time is None:
                self._suspect(site, bad, who, where, recs)
            elif bad.any():
                self.tell("write", site, bad, who, where, recs)
        self._after_reads(site, places, who, where, strong)
        mine = record(clocks.now if time is None else time, clocks.own[lanes], site, strong)
        shadow.written[places] = mine[:, None]

    def _after_reads(self, site: int, places: I64, who: I64, where: I64, strong: bool) -> None:
        """What has been read here must be known to those who write."""
        shadow, clocks = self.shadow, self.clocks
        times = shadow.read_time[places]
        if int(times.max()) > clocks.lowest and (late := times > clocks.floor[who]).any():
            recs = shadow.read[places[late]]
            lanes = np.broadcast_to(who[late][:, None], recs.shape)
            bad = clocks.unordered(lanes, recs)
            if strong:
                bad &= recs & STRONG == 0
            if bad.any():
                self.tell("read", site, bad, lanes, where[late][:, None], recs)
        if shadow.chunk_read.shape[1]:
            recs = shadow.chunk_read[where[:, :: max(CHUNK // shadow.unit, 1)] // CHUNK]
            lanes = np.broadcast_to(who[:, :1, None], recs.shape)
            bad = clocks.unordered(lanes, recs)
            if bad.any():
                self.tell("source", site, bad, lanes, where[:, :1, None], recs)

    # -- writes that change nothing do not race ----------------------------------------------------

    def _suspect(self, site: int, bad: Bools, who: I64, where: I64, recs: I64) -> None:
        """Unordered writes: look afterwards whether the bytes have changed."""
        unit = self.shadow.unit
        bytes_ = self.machine.memory.shared.bytes
        for index in np.argwhere(bad)[:64]:
            i, j = (int(x) for x in index)
            at = int(where[i, j])
            if int(recs[i, j]) & COLUMN_MASK == _MBARRIER:
                self.clash("write", site, int(who[i, j]), at, int(recs[i, j]))
                continue
            old = bytes_[at : at + unit].copy()
            self.suspects.append((who[i], old, where[i, j : j + 1], recs[i, j : j + 1], site))

    def _resolve(self) -> None:
        bytes_ = self.machine.memory.shared.bytes
        for who, old, where, recs, site in self.suspects:
            at = int(where[0])
            if (bytes_[at : at + len(old)] != old).any():
                self.clash("write", site, int(who[0]), at, int(recs[0]))
        self.suspects.clear()

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        words = ins.opcode
        site = self.sites[id(ins)]
        if words[:2] == ("st", "bulk"):
            return self._after(step, self._resolve_of)
        if later(ins):
            return self._at_site(site, step)
        if words[0] == "st" and d.space(ins) in ("shared", "generic"):
            return self._wrap_store(d, ins, step)
        if words[:2] == ("wgmma", "commit_group"):
            return self._after(step, self._commit_wgmma)
        if words[:2] == ("wgmma", "wait_group"):
            newest = d.literal(ins, 0) or 0
            return self._after(step, partial(self._wait_wgmma, newest))
        if words[:4] == ("cp", "async", "bulk", "commit_group"):
            return self._after(step, self._commit_bulk)
        if words[:4] == ("cp", "async", "bulk", "wait_group"):
            number = d.literal(ins, 0) or 0
            return self._after(step, partial(self._wait_bulk, number))
        if words[:3] == ("fence", "proxy", "async") or words[:2] == ("fence", "proxy"):
            return self._after(step, self.clocks.fence) if "async" in words else step
        if words[:3] in (("bar", "warp", "sync"), ("barrier", "warp", "sync")):
            return self._wrap_warp(d, ins, step)
        if words[0] in ("cp", "wgmma", "mbarrier"):
            return self._at_site(site, step)
        return step

    def _at_site(self, site: int, step: Step) -> Step:
        def run(sel: Any, mask: Mask) -> None:
            self.site = site
            step(sel, mask)

        return run

    def _resolve_of(self, lanes: I64) -> None:
        """Behind an st.bulk of some lanes: which of its suspects are real."""
        if self.suspects:
            self._resolve()

    def _after(self, step: Step, action: Any) -> Step:
        ids = self.machine.engine.lane_ids

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            action(get(ids, sel, mask).ravel())

        return run

    def _wrap_warp(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        ids = self.machine.engine.lane_ids
        members = d.source(ins, 0, "u32")
        bits = np.left_shift(np.uint32(1), np.arange(LANES, dtype=np.uint32))

        def run(sel: Any, mask: Mask) -> None:
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

    def _wrap_store(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        """Behind a store: which suspects are real, and did lanes write different values."""
        kind, width, count = shape_of(d, ins)
        rows = stored_rows(d, ins, 1, kind, width, count)
        place = d.place(ins, 0, d.space(ins))
        machine, site = self.machine, self.sites[id(ins)]
        size = width * len(rows)
        if not _STRONG.isdisjoint(ins.opcode) or any(r is None for r in rows):
            return step

        def run(sel: Any, mask: Mask) -> None:
            step(sel, mask)
            if self.suspects:
                self._resolve()
            lanes = get(machine.engine.lane_ids, sel, mask)
            address = place.at(sel, mask)
            for arena, at, which in machine.memory.spaces(place.space, address, sel, mask, size):
                if arena is not machine.memory.shared:
                    continue
                who = (lanes if which is None else lanes[which]).ravel()
                at = at.ravel()
                last = self.shadow.written[at >> self.shadow.shift] & COLUMN_MASK
                if (last == self.clocks.own[who]).all():
                    continue
                parts = [get(r, sel, mask) for r in rows]
                value = np.stack([p if which is None else p[which] for p in parts], axis=-1)
                data = np.ascontiguousarray(value).reshape(len(who), -1).view(np.uint8)
                now = arena.bytes[at[:, None] + np.arange(size)]
                bad = (data != now).any(axis=1)
                if bad.any():
                    index = int(np.flatnonzero(bad)[0])
                    rec = int(self.shadow.written[at[index] >> self.shadow.shift])
                    self.clash("write", site, int(who[index]), int(at[index]), rec)

        return run

    # -- synchronisation ---------------------------------------------------------------------------

    def on_barrier(
        self,
        kind: Literal["arrive", "sync", "release"],
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        clocks, machine = self.clocks, self.machine
        if kind == "sync":
            return
        size = machine.warps_per_block * LANES
        if scope == "cluster":
            self._cluster(kind, lanes)
            return
        blocks = lanes // size
        if kind == "release" and machine.cluster_size == 1:
            alive = machine.alive.reshape(machine.blocks, -1).sum(axis=1)
            whole = np.bincount(blocks, minlength=machine.blocks) == alive
            all_of = whole[blocks]
            if all_of.any():
                clocks.join_blocks(lanes[all_of])
            lanes, blocks = lanes[~all_of], blocks[~all_of]
        for block in np.unique(blocks):
            part = lanes[blocks == block]
            key = ("block", int(block), number)
            vector = clocks.publish(part)
            before = self.arrived.pop(key, None) if kind == "release" else self.arrived.get(key)
            vector = merge(vector, before)
            if kind == "release":
                clocks.acquire(part, vector)
            else:
                self.arrived[key] = vector

    def _cluster(self, kind: str, lanes: I64) -> None:
        clocks = self.clocks
        counts = self.cluster_counts[0 if kind == "arrive" else 1]
        groups = np.stack([lanes // clocks.lanes, counts[lanes]])
        counts[lanes] += 1
        for cluster, phase in np.unique(groups, axis=1).T.tolist():
            part = lanes[(groups[0] == cluster) & (groups[1] == phase)]
            key = ("cluster", cluster, phase)
            if kind == "arrive":
                self.arrived.pop(("cluster", cluster, phase - 2), None)
                self.arrived[key] = merge(clocks.publish(part), self.arrived.get(key))
            elif key in self.arrived:
                clocks.acquire(part, self.arrived[key])

    def on_mbarrier(self, kind: Event, position: int, lanes: I64) -> None:
        clocks = self.clocks
        key = ("mbarrier", position, 0)
        if kind == "init":
            self._init(position, int(lanes[0]))
            return
        if kind == "inval":
            self.live.pop(position, None)
            self._hold(position, record(clocks.now, int(clocks.own[lanes[0]]), self.site))
            return
        if kind in ("arrive", "expect", "test", "wait"):
            self._initialised(position, lanes)
        if kind == "arrive":
            self.arrived[key] = merge(clocks.publish(lanes), self.arrived.get(key))
        elif kind == "phase":
            vector = merge(
                np.zeros((clocks.planes, clocks.width), np.int32), self.arrived.pop(key, None)
            )
            if position in self.landed:
                column, time = self.landed[position]
                vector[0, column] = time
            self.phases[position] = merge(vector, self.phases.get(position))
        elif kind == "wait" and position in self.phases:
            clocks.acquire(lanes, self.phases[position])

    def _hold(self, position: int, rec: int) -> None:
        shadow = self.shadow
        for at in range(position >> shadow.shift, (position + 7 >> shadow.shift) + 1):
            shadow.written[at] = rec

    def _init(self, position: int, lane: int) -> None:
        clocks = self.clocks
        if position in self.live:
            text = "this mbarrier is in use; mbarrier.inval it before another mbarrier.init"
            other = self.live[position] >> COLUMN_BITS & SITE_MASK
            self.find("mbarrier", self.site, other, lane, position, text)
        self.phases.pop(position, None)
        self.arrived.pop(("mbarrier", position, 0), None)
        self.live[position] = record(clocks.now, int(clocks.own[lane]), self.site)
        if self.shadow.unit <= 8:
            self._hold(position, record(PENDING, _MBARRIER, self.site))
        clocks.now += 1

    def _initialised(self, position: int, lanes: I64) -> None:
        """Those who use an mbarrier must know that it has been initialised."""
        rec = self.live.get(position)
        if rec is None:
            return
        bad = self.clocks.unordered(lanes, np.full(lanes.shape, rec, np.int64))
        if bad.any():
            lane = int(lanes[bad][0])
            text = f"nothing orders this after the mbarrier's initialisation: {self.who(lane, rec)}"
            other = rec >> COLUMN_BITS & SITE_MASK
            self.find("mbarrier", self.site, other, lane, position, text)

    def _by_memory(self, access: Access) -> None:
        """Strong accesses to one place hand on what is known."""
        words = access.instruction.opcode
        if access.kind != "atomic" and _STRONG.isdisjoint(words):
            return
        clocks = self.clocks
        for arena, at, lanes in access.parts():
            which = "shared" if arena is self.machine.memory.shared else "global"
            at, lanes = at.ravel(), lanes.ravel()
            clusters = lanes // clocks.lanes
            for position in np.unique(at):
                for cluster in np.unique(clusters[at == position]):
                    part = lanes[(at == position) & (clusters == cluster)]
                    key = (int(cluster), which, int(position))
                    if access.kind != "load":
                        self.places[key] = merge(clocks.publish(part), self.places.get(key))
                    if access.kind != "store" and key in self.places:
                        clocks.acquire(part, self.places[key])

    # -- cp.async --------------------------------------------------------------------------------

    def on_copy_issue(self, copy: Copy) -> None:
        self.on_write(self.site, copy.into.ravel(), copy.lanes.ravel(), copy.size, time=PENDING)

    def on_copy_complete(self, copy: Copy) -> None:
        clocks, shadow = self.clocks, self.shadow
        places = shadow.places(copy.into.ravel(), copy.size)
        site = shadow.written[places] >> COLUMN_BITS & SITE_MASK
        mine = record(clocks.now, clocks.own[copy.lanes.ravel()], 0)
        shadow.written[places] = mine[:, None] | site << COLUMN_BITS

    # -- the asynchronous proxy: bulk copies -----------------------------------------------------

    def on_transfer_issue(self, transfer: Transfer) -> None:
        clocks, shadow = self.clocks, self.shadow
        lane = int(transfer.lanes[0])
        who = transfer.lanes
        if transfer.signal >= 0:
            self._initialised(transfer.signal, who)
        if transfer.into is not None:
            column = clocks.agent(lane, "mbarrier", transfer.signal)
            places = shadow.places(transfer.into, transfer.grain)
            lanes = np.full(places.shape, lane, np.int64)
            where = places << shadow.shift
            recs = shadow.written[places]
            if transfer.atomic:  # in any order with others that are
                recs = np.where(recs & STRONG, 0, recs)
            if transfer.generic:
                if (bad := clocks.unordered(lanes, recs)).any():
                    self.tell("write", self.site, bad, lanes, where, recs)
            else:
                self._visible(where, lanes, recs)
            self._after_reads(self.site, places, lanes, where, False)
            mine = record(ASYNC + clocks.now, column, self.site, transfer.atomic)
            shadow.written[places] = mine
            self.started[id(transfer)] = transfer, ASYNC + clocks.now
        if transfer.reads is not None:
            agent = ("bulk", lane) if transfer.group >= 0 else ("mbarrier", transfer.signal)
            column = clocks.agent(lane, *agent)
            places = shadow.places(transfer.reads, CHUNK)
            lanes = np.full(places.shape, lane, np.int64)
            self._visible(places << shadow.shift, lanes, shadow.written[places])
            rec = record(ASYNC + clocks.now, column, self.site)
            shadow.chunk_read[transfer.reads // CHUNK, -1] = rec
        clocks.now += 1

    def _visible(self, where: I64, lanes: I64, recs: I64) -> None:
        """What the asynchronous proxy is to access must be visible to it."""
        bad = self.clocks.invisible(lanes, recs)
        if not bad.any():
            return
        index = tuple(int(i) for i in np.argwhere(bad)[0])
        one = np.array([lanes[index]])
        raced = self.clocks.unordered(one, np.array([recs[index]]))[0]
        what = "write" if raced else "invisible"
        self.clash(what, self.site, int(lanes[index]), int(where[index]), int(recs[index]))

    def on_transfer_complete(self, transfer: Transfer) -> None:
        _, time = self.started.pop(id(transfer), (None, 0))
        if time and transfer.signal >= 0:
            column = self.clocks.agent(int(transfer.lanes[0]), "mbarrier", transfer.signal)
            before = self.landed.get(transfer.signal, (column, 0))[1]
            self.landed[transfer.signal] = column, max(before, time)

    def _commit_bulk(self, lanes: I64) -> None:
        for lane in lanes:
            self.bulk_commits.setdefault(int(lane), []).append(self.clocks.now)
        self.clocks.now += 1

    def _wait_bulk(self, newest: int, lanes: I64) -> None:
        for lane in lanes:
            commits = self.bulk_commits.get(int(lane), [])
            if len(commits) > newest:
                column = self.clocks.agent(int(lane), "bulk", int(lane))
                time = ASYNC + commits[len(commits) - newest - 1]
                self.clocks.known[0, lane, column] = time
                self.clocks.uneven[lane // LANES] = True

    # -- the asynchronous proxy: wgmma -------------------------------------------------------------

    def on_wgmma_issue(self, item: Issue) -> None:
        clocks, shadow, memory = self.clocks, self.shadow, self.machine.memory
        options = item.form.options
        addresses = item.form.op.shared_addresses(
            item.a,
            item.b,
            transpose_a=bool(options.get("transpose_a", False)),
            transpose_b=bool(options.get("transpose_b", False)),
        ).astype(np.int64)
        if addresses.size and int(addresses.max()) + CHUNK > memory.shared_size:
            return  # an error when it executes
        home = self.machine.block_of[item.warps].astype(np.int64) * memory.shared_stride
        chunks = addresses + home[:, None]
        for first, at in zip(item.warps, chunks, strict=True):
            places = shadow.places(at, CHUNK).ravel()
            recs, index = np.unique(shadow.written[places], return_index=True)
            self._wgmma_sees(int(first), recs, places[index] << shadow.shift)
            column = clocks.agent(int(first) * LANES, "wgmma", int(first))
            slot = int(first) % self.machine.warps_per_block // WARPGROUP
            shadow.chunk_read[at // CHUNK, slot] = record(ASYNC + clocks.now, column, self.site)
        clocks.now += 1

    def _wgmma_sees(self, first: int, recs: I64, where: I64) -> None:
        """Each of the four warps must know what the operands are made of."""
        clocks = self.clocks
        time, column = recs >> TIME_SHIFT, recs & COLUMN_MASK
        at = np.minimum(column, clocks.width - 1)
        plane = np.where((column >= clocks.lanes) | (clocks.planes == 1), 0, 1)
        for warp in range(first, first + WARPGROUP):
            lanes = warp * LANES + np.arange(LANES)
            known = clocks.known[plane[:, None], lanes[None, :], at[:, None]].max(axis=1)
            bad = (time > 0) & (time > known)
            if bad.any():
                index = int(np.flatnonzero(bad)[0])
                one = np.full(LANES, recs[index], np.int64)
                what = "write" if clocks.unordered(lanes, one).all() else "invisible"
                self.clash(what, self.site, int(lanes[0]), int(where[index]), int(recs[index]))
                return

    def _commit_wgmma(self, lanes: I64) -> None:
        for warp in np.unique(lanes // LANES):
            self.wgmma_commits.setdefault(int(warp), []).append(self.clocks.now)
        self.clocks.now += 1

    def _wait_wgmma(self, newest: int, lanes: I64) -> None:
        clocks = self.clocks
        for warp in np.unique(lanes // LANES):
            commits = self.wgmma_commits.get(int(warp), [])
            if len(commits) > newest:
                first = int(warp) // WARPGROUP * WARPGROUP
                column = clocks.agent(first * LANES, "wgmma", first)
                rows = expand(np.array([first], np.intp))[int(warp) - first] * LANES
                time = ASYNC + commits[len(commits) - newest - 1]
                clocks.known[0, rows : rows + LANES, column] = time


def merge(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32] | None) -> npt.NDArray[np.int32]:
    """The later of two times everywhere; columns that one of them lacks are never."""
    if b is None:
        return a
    if a.shape[1] < b.shape[1]:
        a, b = b, a
    result = a.copy()
    result[:, : b.shape[1]] = np.maximum(a[:, : b.shape[1]], b)
    return result


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
