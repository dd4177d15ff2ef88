"""Races: accesses that overlap, at least one a write, and that nothing orders.

`Races` is the check. It makes the parts, each with one subject, and tells them what happens:

- who knows of whose accesses: `clocks` in a cluster, `clusters` in the others;
- what makes an order: `barriers`, `mbarrier_phases`, `strong_accesses`; `hearsay` makes none;
- what is remembered of every place of memory: `shared_places`, `global_places`;
- the rules: `shared_races`, `bulk_copies`, `wgmma`, `mbarrier_objects` and `block_exits` in shared
  memory, `global_races`, `lost_updates` and `global_copies` in global memory, `stores` in both;
- what is said of it: `findings`.

A part is given in its constructor whom it asks and tells, and the `Context`, which all share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.located import is_windowed
from fragir.emulator.checks.operand_contents import quote
from fragir.emulator.checks.protocols.history import history_of
from fragir.emulator.checks.races.asynchronous import BulkCopies, WgmmaReads
from fragir.emulator.checks.races.barriers import (
    Arrivals,
    Barriers,
    MbarrierObjects,
    MbarrierPhases,
)
from fragir.emulator.checks.races.block_exits import BlockExits
from fragir.emulator.checks.races.clocks import (
    ASYNC,
    COLUMN_MASK,
    SITE_MASK,
    Clocks,
    fenced_spaces,
    levels,
    proxies,
    scope_of,
    strength,
    strengths,
)
from fragir.emulator.checks.races.context import AccessGroup, Context, Excuses, Findings
from fragir.emulator.checks.races.global_copies import GlobalCopies
from fragir.emulator.checks.races.global_places import GlobalPlaces, GridAccesses
from fragir.emulator.checks.races.global_races import GlobalRaces, LostUpdates
from fragir.emulator.checks.races.hearsay import Clusters, Hearsay
from fragir.emulator.checks.races.shared_places import SharedPlaces, unit_of
from fragir.emulator.checks.races.shared_races import SharedRaces
from fragir.emulator.checks.races.strong_accesses import StrongAccesses
from fragir.emulator.checks.races.tensor_memory import TensorRaces
from fragir.emulator.checks.races.undisputed import compiled_ledgers
from fragir.emulator.checks.synchronisation import Sites
from fragir.emulator.instructions.access import get, shape_of, stored_rows
from fragir.emulator.machine.events import Access
from fragir.emulator.machine.lanes import LANE_BITS, Mask, Select, Step
from fragir.emulator.numbers.types import I64, Array, distinct

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.events import BarrierEvent, Event
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.straight import Terminator
    from fragir.emulator.machine.tensor_work import (
        TensorAccess,
        TensorCommit,
        TensorStatement,
        TensorWork,
    )
    from fragir.emulator.machine.transfers import Copy, Issue, Transfer
    from fragir.emulator.program.program import Program
    from fragir.ptx.opcodes.row import Opcode
    from fragir.ptx.tree import Instruction


# -- stores ----------------------------------------------------------------------------------------
# Behind a store: which suspects are real, and whether its lanes wrote different values.


class Stores:
    def __init__(self, context: Context, shared: SharedRaces, globally: GlobalRaces) -> None:
        self.machine, self.clocks, self.sites = context.machine, context.clocks, context.sites
        self.shared, self.globally, self.excuses = shared, globally, context.excuses

    def strong(self, step: Step) -> Step:
        """Behind an atomic or a strong store: which suspects are real."""

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            if self.shared.suspects:
                self.shared.resolve()
            if self.globally.suspects:
                self.globally.resolve()

        return run

    def plain(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        """Behind a store: which suspects are real, and did lanes write different values."""
        kind, width, count = shape_of(d, ins)
        stored = stored_rows(d, ins, 1, kind, width, count)
        rows = [r for r in stored if r is not None]
        if len(rows) < len(stored):
            return self.strong(step)
        place = d.place(ins, 0, d.space(ins))
        machine, site = self.machine, self.sites.of(ins)
        size = width * len(rows)

        def run(sel: Select, mask: Mask) -> None:
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
                self.excuses.note(site)
                if bad.any():
                    index = int(np.flatnonzero(bad)[0])
                    lane, position = int(who[index]), int(at[index])
                    if arena is machine.memory.shared:
                        rec = int(self.shared.places.written[position >> self.shared.places.shift])
                        self.shared.clash("write", site, lane, position, rec)
                    else:
                        self.globally.report_overwritten(site, lane, position)

        return run


class Races(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        kinds = proxies(program)
        blocks = machine.grid[0] * machine.grid[1] * machine.grid[2]
        reach = levels(program, blocks=blocks, cluster=machine.cluster_size)
        strong_writes = any(
            (row.access in ("store", "atomic") or row.bits == "store later")
            and strength(row, words)
            and "global" not in words
            for row, words in program.rows()
        )
        #: Of instructions: the site, the strength, whether it reads constants or parameters.
        self._known: dict[int, tuple[int, int, bool]] = {}
        self._late = False  # whether times are out of their range
        self.by_memory = bool(reach)  # whether plain memory is used to synchronise
        self.clocks = clocks = Clocks(machine, kinds, reach)
        self.sites = Sites(program, SITE_MASK)
        findings = Findings(machine, program, clocks, self.found)
        self.excuses = Excuses()
        context = Context(machine, clocks, self.sites, findings, self.excuses)
        self.shared_places = SharedPlaces(machine, unit_of(program), kinds > 0)
        self.clusters = Clusters(machine, clocks)
        self.told = Hearsay(clocks)
        self.mbarriers = MbarrierObjects(context, self.shared_places)
        self.exits = BlockExits(context, self.shared_places)
        self.strong = StrongAccesses(context, self.clusters, self.told)
        arrivals = Arrivals(context)
        self.barriers = Barriers(context, arrivals, self.strong, self.mbarriers, self.exits)
        self.phases = MbarrierPhases(context, arrivals, self.mbarriers, self.exits)
        self.shared = SharedRaces(
            context, self.shared_places, self.mbarriers, self.told, strong_writes
        )
        self.bulk = BulkCopies(context, self.shared, self.mbarriers, self.phases)
        self.wgmma = WgmmaReads(context, self.shared)
        self.tensor: TensorRaces | None = None
        if any(row.name.startswith("tcgen05.") for row, _ in program.rows()):
            self.tensor = TensorRaces(context, program, self.bulk)
            self.phases.defers = self.tensor.without
        self.global_places = GlobalPlaces(
            machine, clocks, self.clusters, strengths(program, SITE_MASK)
        )
        if self.global_places.earlier is not None:
            findings.earlier = self.global_places.earlier.place
        updates = LostUpdates(program, clocks)
        self.globally = GlobalRaces(context, self.global_places, updates, self.told)
        self.global_copies = GlobalCopies(context, self.globally)
        self.stores = Stores(context, self.shared, self.globally)
        by_site = self.global_places.strengths
        self.shared.compiled = compiled_ledgers(
            clocks, self.shared_places, by_site, self.excuses.excused
        )
        self.globally.compiled = self.shared.compiled
        if len(program.code) > SITE_MASK:
            machine.report.notes.append(
                f"races: the instructions from the {SITE_MASK:,}th on are not told apart"
            )

    def partial(self) -> Any:
        found = self.excuses.excused.copy()
        self.excuses.excused[...] = 0
        return found

    def merge(self, partial: Any) -> None:
        self.excuses.excused |= partial

    def for_next_grid(self) -> GridAccesses:
        places, own = self.global_places, len(self.program.code)
        said = self.globally.findings
        return GridAccesses(
            places.ledgers,
            places.strengths[:own],
            self.clusters.published,
            said.who_elsewhere,
            said.place_of,
        )

    # -- what happens ------------------------------------------------------------------------------

    def on_launch_start(self) -> None:
        if (history := history_of(self.machine)) is not None:
            clocks = self.clocks
            history.now = lambda: clocks.now

    def on_wave_start(self) -> None:
        parts = (self.told, self.mbarriers, self.exits, self.strong, self.barriers, self.phases)
        for part in (
            *parts,
            self.bulk,
            self.global_copies.overwrites,
            self.wgmma,
            self.shared_places,
            self.clocks,
        ):
            part.start_wave()
        if self.tensor is not None:
            self.tensor.start_wave()
        first = self.machine.first_block // self.machine.cluster_size
        self.global_places.start_wave(first + 1)

    def on_access(self, access: Access) -> None:
        if access.space == "local":
            return
        ins = access.instruction
        known = self._known.get(id(ins))
        if known is None:
            scope = strength(self.program.opcode(ins), ins.opcode)
            known = self._known[id(ins)] = self.sites.of(ins), scope, is_windowed(ins)
        site, scope, constant = known
        strong = scope > 0
        memory = self.machine.memory
        for arena, at, lanes in access.parts():
            if not at.size:
                continue
            if arena is memory.globals:
                if not constant:
                    group = AccessGroup.of(access, at, lanes)
                    self.globally.access(access.kind, site, group, access.size, scope)
            elif arena is not memory.shared:
                continue
            elif access.kind == "load":
                self.shared.read(site, AccessGroup.of(access, at, lanes), access.size, strong)
            else:
                self.shared.write(site, AccessGroup.of(access, at, lanes), access.size, strong)
        if self.by_memory and strong:
            self.strong.hand_on(access, scope)

    def on_copy_issue(self, copy: Copy) -> None:
        self.shared.note_copy(copy)
        self.globally.note_copied(copy)

    def on_copy_complete(self, copy: Copy) -> None:
        self.shared.copy_complete(copy)

    def on_transfer_issue(self, transfer: Transfer) -> None:
        now = self.clocks.now
        self.bulk.issue(transfer)
        self.global_copies.issue(transfer, now)

    def on_transfer_complete(self, transfer: Transfer) -> None:
        self.bulk.complete(transfer)
        self.global_copies.complete(transfer)

    def on_wgmma_issue(self, item: Issue) -> None:
        self.wgmma.issue(item)

    def on_tensor_meet(
        self, form: TensorStatement, name: str, lane: int, other: int | None
    ) -> None:
        if self.tensor is not None and name != "dealloc":
            self.tensor.permit(form, name, lane)
        if name == "alloc" and other is not None and not self.exits.has_begun(other, lane):
            block, _ = self.machine.place(other * self.machine.warps_per_block)
            text = f"nothing tells that block {block}, the other one of the pair, has been launched"
            text += f". {quote('pair')}"
            self.machine.tensor.say(form, text, lane, severity="letter")

    def on_tensor_access(self, access: TensorAccess) -> None:
        if self.tensor is not None:
            self.tensor.access(access)

    def on_tensor_issue(self, work: TensorWork) -> None:
        if self.tensor is not None:
            self.tensor.issue(work)

    def on_tensor_commit(self, commit: TensorCommit) -> None:
        if self.tensor is not None:
            self.tensor.commit(commit)

    def on_tensor_arrive(self, commit: TensorCommit, position: int) -> None:
        if self.tensor is not None:
            vector, agent, time = self.tensor.arriving(commit, position)
            self.phases.handing_on = vector
            self.exits.commit_arrives(position, commit.lane, agent, time)

    def on_tensor_free(self, block: int, first: int, count: int, lane: int) -> None:
        if self.tensor is not None:
            self.tensor.free(self.sites.current, block, first, count, lane)

    def on_barrier(
        self,
        kind: BarrierEvent,
        scope: Literal["block", "cluster"],
        number: int,
        lanes: I64,
    ) -> None:
        self.barriers.event(kind, scope, number, lanes)

    def on_mbarrier(self, kind: Event, position: int, lanes: I64) -> None:
        self.phases.event(kind, position, lanes)

    def on_leave(self, warps: I64) -> None:
        self.exits.leave(self.machine.block_of[warps].tolist())

    def on_wave_end(self) -> None:
        self.exits.finish()
        if self.clocks.now >= ASYNC and not self._late:
            self._late = True
            text = f"races: what happens after {ASYNC:,} events that order accesses is not judged"
            self.machine.report.notes.append(text)

    # -- what is wrapped ---------------------------------------------------------------------------

    def wrap_terminator(
        self, d: Decoder, instruction: Instruction, terminator: Terminator
    ) -> Terminator:
        if self.program.opcode(instruction).ends == "allocation":
            return self.sites.during_terminator(instruction, terminator)
        return self.sites.during_barrier(instruction, terminator)

    def wrap(self, d: Decoder, group: Sequence[Instruction], step: Step) -> Step:
        ins = group[0]
        words, row = ins.opcode, d.program.opcode(ins)
        if self.tensor is not None:
            if row.bits != "tensor load":
                step = self.tensor.using(group, step)
            if row.name in ("tcgen05.wait::ld", "tcgen05.wait::st"):
                return self._after(step, partial(self.tensor.wait, row.name[-2:] == "ld"))
            elif row.name == "tcgen05.fence::after_thread_sync":
                return self._after(step, self.tensor.fence)
        if row.bits == "fill":
            return self.stores.strong(step)
        if row.bits == "store later":
            return self.sites.during(ins, step)
        alone = row.access in ("store", "atomic") and not row.together
        if alone and d.space(ins) in ("shared", "generic", "global"):
            if row.access == "store" and not strength(row, words):
                return self.stores.plain(d, ins, step)
            return self.stores.strong(step)
        if row.name == "wgmma.commit_group":
            return self._after(step, self.wgmma.commit)
        if row.name == "wgmma.wait_group":
            newest = d.literal(ins, 0) or 0
            return self._after(step, partial(self.wgmma.wait, newest))
        if row.name == "cp.async.bulk.commit_group":
            return self._after(step, self.bulk.commit)
        if row.name == "cp.async.bulk.wait_group":
            number = d.literal(ins, 0) or 0
            return self._after(step, partial(self.bulk.wait, number, "read" in words))
        if row.name == "griddepcontrol" and "wait" in words and self.machine.running:
            return self._after(step, self.clusters.wait_for_grids)
        if row.fence:
            return self._wrap_fence(row, words, step)
        if row.name == "bar.warp.sync":
            return self._wrap_warp(d, ins, step)
        if row.asynchronous or row.bits == "wgmma":
            return self.sites.during(ins, step)
        if self.by_memory and row.bits in ("shuffle", "warp"):
            return self._after(step, self.told.shuffled.tell_warps)
        return step

    def compiled(self, d: Decoder, instruction: Instruction) -> bool:
        """Barriers of blocks, and plain accesses where the last record of a place says all."""
        row = d.program.opcode(instruction)
        if self.tensor is not None and id(instruction) in self.tensor.registers.users:
            return False
        if row.ends:
            return row.ends == "barrier" and self.machine.cluster_size == 1
        if row.access not in ("load", "store") or row.together:
            return False
        if strength(row, instruction.opcode) or self.shared.compiled is None:
            return False
        if d.space(instruction) not in ("shared", "generic"):
            return True
        return row.access == "store" or not self.shared.strong_writes

    def _after(self, step: Step, action: Callable[[I64], None]) -> Step:
        ids = self.machine.lane_ids

        def run(sel: Select, mask: Mask) -> None:
            step(sel, mask)
            action(get(ids, sel, mask).ravel())

        return run

    def _wrap_warp(self, d: Decoder, ins: Instruction, step: Step) -> Step:
        ids = self.machine.lane_ids
        members = d.source(ins, 0, "u32")

        def run(sel: Select, mask: Mask) -> None:
            if self.strong.meets:
                self._meet(ids[sel], members[sel], mask)
            step(sel, mask)
            if mask is None and (members[sel] == np.uint32(0xFFFFFFFF)).all():
                self.clocks.join_warps(ids[sel].ravel())
                return
            for group in groups_of(ids[sel], members[sel], mask):
                self.clocks.join(group)

        return run

    def _meet(self, ids: I64, members: Array, mask: Mask) -> None:
        for group in groups_of(ids, members, mask):
            self.strong.arrive(group)
            self.strong.meet(group)

    def _wrap_fence(self, row: Opcode, words: tuple[str, ...], step: Step) -> Step:
        if row.fence == "asynchronous":
            spaces = fenced_spaces(words)
            both = (self.clocks.proxy, self.clocks.proxy_global)
            planes = {plane for plane, named in zip(both, spaces, strict=True) if named}
            for plane in sorted(planes):
                step = self._after(step, partial(self.clocks.fence, plane=plane))
                if self.by_memory:
                    step = self._after(step, partial(self.told.fence, plane=plane))
            return step
        if row.fence == "initialisations":
            return self._after(step, self.mbarriers.fence)
        if row.fence == "memory":
            return self._after(step, partial(self.strong.fence, scope=scope_of(words)))
        return step


def groups_of(ids: I64, members: Array, mask: Mask) -> Iterator[I64]:
    """The lanes `[warp, lane]` that meet by a membermask."""
    here = np.ones(ids.shape, np.bool_) if mask is None else mask
    for row, named, there in zip(ids, members, here, strict=True):
        for value in distinct(named[there]):
            yield row[there & (named == value) & (value & LANE_BITS != 0)]
