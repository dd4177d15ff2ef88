"""Races on global memory: between lanes, blocks and waves; and updates that get lost in a warp."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import (
    COLUMN_MASK,
    DEVICE,
    STRONG,
    TIME_SHIFT,
    Clocks,
    record,
    site_of,
)
from fragir.emulator.checks.races.context import AccessGroup, Context, Excuses
from fragir.emulator.checks.races.global_places import READ_ELSEWHERE, Clash, GlobalPlaces
from fragir.emulator.checks.races.hearsay import Hearsay
from fragir.emulator.checks.races.ledger import READ, WRITE, Ledger
from fragir.emulator.checks.races.strong_accesses import ObservedWrites
from fragir.emulator.checks.races.undisputed import (
    BY_NUMPY,
    LANES_TOO,
    OVERLAP,
    CompiledLedgers,
    UndisputedGlobal,
)
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I32, I64, Bools
from fragir.emulator.program.dataflow import Dataflow, dataflow

if TYPE_CHECKING:
    from fragir.emulator.machine.transfers import Copy
    from fragir.emulator.program.program import Program


# -- lost updates ----------------------------------------------------------------------------------
# Updates of global memory that get lost within a warp: read, change, store, without an atomic.
#
# Lanes of one warp that read a place, and store there what they have made of it, overwrite each
# other: in one store, or one after the other once both have read. Whether what is stored comes from
# what was read is looked up in the program, through arithmetic, not through collectives: what a
# warp has agreed on is the same in every lane.

#: Indices of accesses, rows, records of the others.
Lost: TypeAlias = tuple[I64, I64, I64]
NONE: Lost = (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))


_ELSEWHERE = frozenset({"shared", "local", "param", "const"})  # not in global memory


class LostUpdates:
    """`loads`: whether global memory is read at all."""

    def __init__(self, program: Program, clocks: Clocks) -> None:
        self.program, self.clocks = program, clocks
        self._from: dict[int, set[Any]] = {}
        self.loads = any(
            row.access == "load" and not _ELSEWHERE.intersection(words)
            for row, words in program.rows()
        )

    @cached_property
    def _flow(self) -> Dataflow:
        return dataflow(self.program)

    def derives(self, store: int, load: int) -> bool:
        """Whether the store at a site stores what comes of the load at another."""
        code = self.program.code
        row = self.program.opcode
        from_, to = row(code[load].ins), row(code[store].ins)
        if from_.access != "load" or to.access != "store" or from_.together or to.together:
            return False
        flow = self._flow
        if load not in self._from:
            start = flow.of(code[load].ins).written
            self._from[load] = flow.closure(start, lambda ins: not row(ins).apart)
        each = flow.of(code[store].ins)
        return any(r in self._from[load] for operand in each.operands[1:] for r in operand)

    def before(
        self, ledger: Ledger, site: int, rows: I64, lanes: I64, mine: I64, owner: I32
    ) -> Lost:
        """(index of the access, row, record of the other) where another lane came between.

        A lane has read the place, another one of its warp has written there since, and now the
        lane stores. Before the store is noted. Of several lanes that read together one is known:
        for the others it must be that nothing orders the two writes.
        """
        last = ledger.records[WRITE][rows]
        apart = (last ^ mine[:, None]) & COLUMN_MASK
        bad = (apart != 0) & (apart < 32)
        if not bad.any():
            return NONE
        bad &= ledger.owners[WRITE][rows] == owner[:, None]
        if not bad.any():
            return NONE
        read = ledger.records[READ][rows]
        who = np.broadcast_to(lanes[:, None], bad.shape)
        reader = (read ^ mine[:, None]) & COLUMN_MASK == 0
        bad &= reader | self.clocks.unordered(who, last)
        bad &= (read ^ mine[:, None]) & COLUMN_MASK < 32
        bad &= ledger.owners[READ][rows] == owner[:, None]
        bad &= read >> TIME_SHIFT < last >> TIME_SHIFT
        return self._derived_updates(site, bad, rows, read, last)

    def together(self, ledger: Ledger, site: int, rows: I64, mine: I64, owner: I32) -> Lost:
        """The same where lanes of one store have read the place; after the store is noted."""
        last, read = ledger.records[WRITE][rows], ledger.records[READ][rows]
        apart = (last ^ mine[:, None]) & COLUMN_MASK
        bad = (apart != 0) & (apart < 32) & (ledger.owners[WRITE][rows] == owner[:, None])
        if not bad.any():
            return NONE
        bad &= ledger.owners[READ][rows] == owner[:, None]
        reader = read & COLUMN_MASK
        stores = (reader == last & COLUMN_MASK) | (reader == mine[:, None] & COLUMN_MASK)
        return self._derived_updates(site, bad & stores, rows, read, last)

    def _derived_updates(self, site: int, bad: Bools, rows: I64, read: I64, last: I64) -> Lost:
        """Of those the ones that store what they have read."""
        for load in distinct_sites(read[bad]):
            if not self.derives(site, load):
                bad &= site_of(read) != load
        return np.nonzero(bad)[0], rows[bad], last[bad]


def distinct_sites(records: I64) -> list[int]:
    """The sites of records, each once."""
    return np.unique(site_of(records)).tolist()


LOST = READ_ELSEWHERE + 1  # beside the kinds of records: an update that gets lost


def _writers(records: I64, owners: I32) -> I64:
    """The sites of records for `Excuses`: no writer, or an earlier grid, is what is found."""
    return np.where(owners > 0, site_of(records), Excuses.FOUND)


@dataclass(frozen=True, slots=True)
class Suspects:
    """Writes of one instruction that clash if they change the bytes: `old` are those before,
    `[access, byte]`, and `writers` the sites that had written them; the rest as in `Clash`."""

    site: int
    lanes: I64
    positions: I64
    kind: int
    records: I64
    owners: I32
    old: npt.NDArray[np.uint8]
    writers: I64


class GlobalRaces:
    """`overlap`: whether lanes of one store have written one place; who asks has to clear it."""

    def __init__(
        self, context: Context, places: GlobalPlaces, updates: LostUpdates, told: Hearsay
    ) -> None:
        self.machine, self.clocks = context.machine, context.clocks
        self.sites, self.findings = context.sites, context.findings
        self.excuses = context.excuses
        self.places, self.updates, self.told = places, updates, told
        self.observed = ObservedWrites(places)
        self.overlap = False
        self.compiled: CompiledLedgers | None = None
        self._undisputed = UndisputedGlobal(self.clocks)
        #: The buffer that the instruction at a site has accessed last.
        self._guesses: dict[int, Ledger] = {}
        #: Pairs of sites that are no race, as the later write has left the bytes as they were.
        self.excused: set[tuple[int, int]] = set()
        self.suspects: list[Suspects] = []

    def access(self, kind: str, site: int, group: AccessGroup, size: int, scope: int) -> None:
        clocks = self.clocks
        if kind != "load":
            clocks.now += 1  # later than what has been read
        elif scope:
            self.observed.note(group, size, scope)
        guess = self._guesses.get(site)  # an instruction mostly stays in one buffer
        if guess is not None and (not guess.copied or kind == "load"):
            if self._quickly(kind, site, group, size, scope, guess):
                return
        for ledger, which in self.places.by_buffer(group.at):
            if ledger.copied and kind != "load":
                ledger.note_copied()
            part = group.some(which)
            if ledger is not guess:
                self._guesses[site] = ledger
                if self._quickly(kind, site, part, size, scope, ledger):
                    continue
            rows, kept = ledger.rows(part.at, size)
            if kept is not None:
                part = part.some(kept)
            if not len(rows):
                continue
            mine = record(clocks.now, part.pick(clocks.own), site, scope > 0)
            owner = part.pick(self.places.owner_of)
            if kind == "load":
                self._load(site, ledger, part, rows, mine, owner, scope)
            else:
                self._store(kind, site, ledger, part, rows, mine, owner, scope)

    def _quickly(
        self, kind: str, site: int, part: AccessGroup, size: int, scope: int, ledger: Ledger
    ) -> bool:
        """The common case; whether that was all."""
        quick = self._undisputed if self.compiled is None else self.compiled
        if kind == "load" and ledger.is_written and self.through_cache(site):
            return False
        plain = kind == "store" and not scope and self.updates.loads
        owner_of = self.places.owner_of
        found = quick.access(kind, site, part, size, scope, ledger, owner_of, plain)
        if found == BY_NUMPY:
            return False
        ledger.noted[READ if kind == "load" else WRITE] = True
        several = found & OVERLAP != 0
        self.overlap |= several
        who = part.lanes
        if several and 0 < scope < DEVICE:
            rows = ledger.places(part.at, size)
            beyond = self.places.beyond(ledger, rows, who, scope)
            self._suspect(site, who, ledger, beyond, kind)
        if plain and found & LANES_TOO:
            rows = ledger.places(part.at, size)
            mine = record(self.clocks.now, part.pick(self.clocks.own), site)
            owner = part.pick(owner_of)
            self._report_lost(
                site, ledger, who, self.updates.together(ledger, site, rows, mine, owner)
            )
        return True

    def _report_lost(self, site: int, ledger: Ledger, who: I64, lost: Lost) -> None:
        index, rows, recs = lost
        if len(index):
            nobody = np.zeros(len(index), np.int32)
            self._suspect(site, who, ledger, Clash(LOST, index, rows, recs, nobody), "store")

    def _load(
        self,
        site: int,
        ledger: Ledger,
        part: AccessGroup,
        rows: I64,
        mine: I64,
        owner: I32,
        scope: int,
    ) -> None:
        if ledger.is_written:
            cached = self.through_cache(site)
            if cached:
                self._read_only(site, ledger, rows, part.lanes)
            if cached and self.places.earlier is None:
                clash = None
            else:
                clash = self.places.clash(ledger, WRITE, rows, part, mine, owner, scope)
            if clash is not None:
                clash = clash.some(clash.owners < 0) if cached else clash
                self._suspect(site, part.lanes, ledger, clash, "load")
        ledger.note_read(rows, mine, owner, part.are_apart)

    def _store(
        self,
        kind: str,
        site: int,
        ledger: Ledger,
        part: AccessGroup,
        rows: I64,
        mine: I64,
        owner: I32,
        scope: int,
    ) -> None:
        whole, who = self.places, part.lanes
        for how in (WRITE, READ, READ_ELSEWHERE):
            if ledger.noted[how]:
                clash = whole.clash(ledger, how, rows, part, mine, owner, scope)
                if clash is not None:
                    self._suspect(site, who, ledger, clash, kind)
        plain = kind == "store" and not scope and self.updates.loads
        lost: list[Lost] = []
        if plain and ledger.is_written:
            lost.append(self.updates.before(ledger, site, rows, who, mine, owner))
        several = ledger.note_write(rows, mine, owner, part.are_apart)
        self.overlap |= several
        if several and 0 < scope < DEVICE:
            self._suspect(site, who, ledger, whole.beyond(ledger, rows, who, scope), kind)
        if plain and several:
            lost.append(self.updates.together(ledger, site, rows, mine, owner))
        for one in lost:
            self._report_lost(site, ledger, who, one)

    def through_cache(self, site: int) -> bool:
        """Whether a load may see what was in memory before."""
        return self.sites.row(site).read_only or "nc" in self.sites.instruction(site).opcode

    def _read_only(self, site: int, ledger: Ledger, rows: I64, lanes: I64) -> None:
        """ld.global.nc and ldu may see old bytes, whatever orders them after a write."""
        written = ledger.owners[WRITE][rows] > 0
        if not written.any():
            return
        i, j = (int(x) for x in np.argwhere(written)[0])
        rec, owner = int(written[i, j]), int(ledger.owners[WRITE, rows[i, j]])
        lane, position = int(lanes[i]), int(ledger.position(rows[i, j]))
        text = "the kernel writes these bytes, and .nc may read what was there before: "
        text += self.who(lane, rec, owner)
        other = site_of(rec)
        self.findings.globally(site, other, lane, position, text, "read-only")

    def _suspect(self, site: int, who: I64, ledger: Ledger, clash: Clash, kind: str) -> None:
        """A write that leaves the bytes as they are does not race: look afterwards.

        `who`: the lanes of all accesses.
        """
        if clash.kind == WRITE:
            clash = clash.some(self.observed.unseen(ledger, clash, who))
        if not len(clash.index):
            return
        lanes, positions = who[clash.index], ledger.position(clash.rows)
        if kind == "load":
            self._clash_each(site, lanes, positions, clash.kind, clash.records, clash.owners)
            return
        unit = np.arange(1 << ledger.shift)
        old = self.machine.memory.globals.bytes[positions[:, None] + unit]
        writers = _writers(ledger.records[WRITE][clash.rows], ledger.owners[WRITE][clash.rows])
        self.suspects.append(
            Suspects(site, lanes, positions, clash.kind, clash.records, clash.owners, old, writers)
        )

    def resolve(self) -> None:
        bytes_ = self.machine.memory.globals.bytes
        # that an update gets lost says more than that two writes have no order
        for one in sorted(self.suspects, key=lambda one: one.kind != LOST):
            now = bytes_[one.positions[:, None] + np.arange(one.old.shape[1])]
            changed = (now != one.old).any(axis=1)
            if changed.any():
                self._clash_each(
                    one.site,
                    one.lanes[changed],
                    one.positions[changed],
                    one.kind,
                    one.records[changed],
                    one.owners[changed],
                )
            if not changed.all():
                records, owners = one.records[~changed], one.owners[~changed]
                others = set(site_of(records).tolist())
                self.excused.update((one.site, other) for other in others)
                who = _writers(records, owners) if one.kind != LOST else np.zeros(0, np.int64)
                self.excuses.note(one.site, one.writers[~changed], who)
        self.suspects.clear()

    def _clash_each(
        self, site: int, lanes: I64, positions: I64, how: int, records: I64, owners: I32
    ) -> None:
        """Report clashes; one of each pair of instructions, where all would say the same."""
        which = np.arange(len(lanes))
        if how == LOST:
            which = which[:1]
        elif not self.told.is_any_told:  # nobody was told of anything: see `clash`
            which = np.sort(np.unique(site_of(records), return_index=True)[1])
        for i in which:
            self.clash(site, int(lanes[i]), int(positions[i]), how, int(records[i]), int(owners[i]))

    def clash(self, site: int, lane: int, position: int, how: int, rec: int, owner: int) -> None:
        if how == LOST:
            text = f"lane {rec & LANES - 1} of the same warp has read the same bytes too, and "
            text += "changes them: one of the two updates is lost without an atomic"
            self.findings.globally(site, site, lane, position, text)
            return
        other = site_of(rec)
        cluster = None if owner == self.places.owner_of[lane] else owner
        in_warp = cluster is None and ((rec ^ self.clocks.own[lane]) & COLUMN_MASK) < LANES
        if in_warp and self.findings.is_said("global", "race", None, site, site):
            return  # that an update gets lost
        told = self.told.knows(lane, rec, cluster)
        stale = told is self.told.looked and how == WRITE and self._read_before(lane, position, rec)
        if told is self.told.looked and how == WRITE and self.places.strengths[site]:
            return  # a strong read is no L1 cache's: so last blocks read by volatile loads
        letter = None if told is None or stale else told.sentence
        if self.findings.is_said("global", "race", letter, site, other):
            return
        earlier = self.places.earlier if owner < 0 else None
        if earlier is not None:
            who = earlier.who(position, how, owner) + earlier.why(owner)
        else:
            who = self.who(lane, rec, owner)
        what = "write" if how == WRITE else "read"
        text = f"nothing orders this after the {what} of the same bytes: {who}"
        if earlier is None and rec & STRONG and self.places.strengths[site]:
            text += "; the scope of one of the two leaves the other thread out"
        text += "" if told is None else told.words
        if stale:
            text += "; its block has read these bytes before, and an L1 cache may still have them"
        known = None if earlier is not None or cluster is not None else rec
        self.findings.globally(site, other, lane, position, text, letter=letter, rec=known)

    def _read_before(self, lane: int, position: int, rec: int) -> bool:
        """Whether a lane's block has read a place, past its L1 cache, before a write."""
        ((ledger, _),) = self.places.by_buffer(np.array([position]))
        row = ledger.rows(np.array([position]), 1 << ledger.shift)[0].ravel()
        per = self.machine.warps_per_block * LANES
        reads = ledger.records[READ:, row].ravel()
        mine = ledger.owners[READ:, row].ravel() == self.places.owner_of[lane]
        mine &= (reads & COLUMN_MASK) // per == self.clocks.own[lane] // per
        mine &= (reads & STRONG == 0) & (reads >> TIME_SHIFT < rec >> TIME_SHIFT)
        return bool(mine.any())

    def who(self, lane: int, rec: int, owner: int) -> str:
        """The instruction and the thread of a record, for messages."""
        if owner == self.places.owner_of[lane]:
            return self.findings.who(lane, rec)
        return self.findings.who_elsewhere(rec, owner)

    def others(self, at: I64, lanes: I64, size: int) -> Bools:
        """Which of the lanes have written where another lane was the last to write."""
        result = np.zeros(len(at), np.bool_)
        for ledger, which in self.places.by_buffer(at):
            who = lanes[which]
            rows, kept = ledger.rows(at[which], size)
            if kept is None:
                owner = self.places.owner_of[who]
                result[which] = ledger.others(rows, self.clocks.own[who], owner)
            elif len(rows):
                who = who[kept]
                found = ledger.others(rows, self.clocks.own[who], self.places.owner_of[who])
                there = np.arange(len(at))[which][kept]
                result[there] = found
        return result

    def report_overwritten(self, site: int, lane: int, position: int) -> None:
        """Lanes of one store write different values to one place."""
        if self.findings.is_said("global", "race", None, site, site):
            return  # that an update gets lost
        text = "another lane writes another value to the same bytes"
        self.findings.globally(site, site, lane, position, text)

    def note_copied(self, copy: Copy) -> None:
        """What cp.async reads, where it reads all of its bytes."""
        at, lanes = copy.source.ravel(), copy.lanes.ravel()
        if copy.given is not None:
            whole = copy.given.ravel() == copy.size
            at, lanes = at[whole], lanes[whole]
        if at.size:
            self.access("load", self.sites.current, AccessGroup(at, lanes), copy.size, 0)
