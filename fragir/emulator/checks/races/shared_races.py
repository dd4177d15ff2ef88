"""What is remembered of accesses to shared memory, and how two of them clash.

Accesses clash where they overlap, one is a write, and the later one does not know of the earlier
one. Two strong accesses (atomics, volatile, relaxed ...) do not race, and neither do writes that
leave a place as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.barriers import MbarrierObjects
from fragir.emulator.checks.races.clocks import (
    COLUMN_BITS,
    COLUMN_MASK,
    MBARRIER,
    PENDING,
    SITE_MASK,
    STRONG,
    TIME_SHIFT,
    record,
    site_of,
    unlike,
)
from fragir.emulator.checks.races.context import AccessGroup, Context
from fragir.emulator.checks.races.hearsay import Hearsay
from fragir.emulator.checks.races.shared_places import CHUNK, SharedPlaces
from fragir.emulator.checks.races.strong_accesses import is_unseen_in_shared
from fragir.emulator.checks.races.undisputed import (
    BY_NUMPY,
    LOGGED,
    OVERLAP,
    CompiledLedgers,
    UndisputedShared,
)
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, Bools
from fragir.emulator.program.flow import branches, targets

if TYPE_CHECKING:
    from fragir.emulator.machine.transfers import Copy
    from fragir.emulator.program.program import Program


def _lockstep(program: Program) -> set[int]:
    """Sites of volatile loads that do not poll: they see what a lane of the same warp has written
    only where the warp's lanes go together."""
    edges = [
        (to, at)
        for at in branches(program).polling
        for to in targets(program, program.code[at].ins, program.code[at].scope)
    ]
    return {
        at
        for at, placed in enumerate(program.code[: SITE_MASK + 1])
        if "volatile" in placed.ins.opcode
        and program.opcode(placed.ins).access == "load"
        and not any(start <= at <= end for start, end in edges)
    }


class SharedRaces:
    """`strong_writes`: whether atomics or strong stores may act on shared memory.

    `overlap`: whether lanes of one store have written one place; who asks has to clear it.
    """

    def __init__(
        self,
        context: Context,
        places: SharedPlaces,
        mbarriers: MbarrierObjects,
        told: Hearsay,
        strong_writes: bool,
    ) -> None:
        self.machine, self.clocks = context.machine, context.clocks
        self.sites, self.findings = context.sites, context.findings
        self.excuses = context.excuses
        self.places, self.mbarriers, self.told = places, mbarriers, told
        self.strong_writes, self.overlap = strong_writes, False
        self.compiled: CompiledLedgers | None = None
        self._undisputed = UndisputedShared(self.clocks, places)
        code, row = self.sites.program.code[: SITE_MASK + 1], self.sites.program.opcode
        self._writing = np.array([row(p.ins).access != "load" for p in code])
        self._reading = np.array([row(p.ins).access in ("load", "atomic") for p in code])
        self._lockstep = _lockstep(self.sites.program)
        #: Pairs of sites that are no race, as the later write has left the bytes as they were.
        self.excused: set[tuple[int, int]] = set()
        self.suspects: list[tuple[I64, npt.NDArray[np.uint8], I64, I64, int]] = []

    # -- findings --------------------------------------------------------------------------------

    def clash(self, what: str, site: int, lane: int, at: int, rec: int) -> None:
        """Report an access of `lane` that the one in `rec` is not ordered before.

        `what`: read, write; invisible: written, but not seen by the asynchronous proxy; source: it
        may still be read by that.
        """
        other, column = site_of(rec), rec & COLUMN_MASK
        if column != MBARRIER and what in ("read", "write"):
            self._race(what, site, other, lane, at, rec)
            return
        who = self.findings.who(lane, rec)
        if column == MBARRIER:
            harmless = bool(self._writes(site)) and self.mbarriers.is_harmless_write(site, lane, at)
            text = f"a live mbarrier lies here ({who})"
            text += ", though nobody has used it" if harmless else ""
            letter = "mbarrier.init" if harmless else None
            self.findings.shared("mbarrier", site, other, lane, at, text, letter)
        elif what == "invisible":
            text = f"the asynchronous proxy does not see what {who} wrote without fence.proxy.async"
            letter = self._letter(what, site, lane, rec)
            self.findings.shared("proxy-fence", site, other, lane, at, text, letter)
        else:
            text = f"{who} may still read these bytes; wait for it first"
            text += self.clocks.waited_for(lane, column)
            self.findings.shared("pending-source", site, other, lane, at, text)

    def _race(self, what: str, site: int, other: int, lane: int, at: int, rec: int) -> None:
        told = self.told.knows(lane, rec, None)
        letter = None if told is None else told.sentence
        if self.findings.is_said("shared", "race", letter, site, other):
            return
        who = self.findings.who(lane, rec)
        text = f"nothing orders this after the {what} of the same bytes: {who}"
        if rec & STRONG and site in self._lockstep:
            text += "; lanes of a warp need not go together, and only bar.warp.sync orders them"
        text += "" if told is None else told.words
        self.findings.shared("race", site, other, lane, at, text, letter, rec)

    def _letter(self, what: str, site: int, lane: int, rec: int) -> str | None:
        """The sentence that is all that speaks against an access, if there is one.

        No machine gets it wrong when wgmma reads what cp.async has copied, or when a copy comes to
        where tcgen05.alloc has left its address.
        """
        if what in ("read", "write"):
            told = self.told.knows(lane, rec, None)
            return None if told is None else told.sentence
        reader, writer = (self.sites.instruction(s).opcode for s in (site, site_of(rec)))
        copied = writer[:2] == ("cp", "async") and "bulk" not in writer
        harmless = (reader[0] == "wgmma" and copied) or writer[:2] == ("tcgen05", "alloc")
        return "proxies" if what == "invisible" and harmless else None

    def clash_each(
        self,
        what: str,
        site: int,
        bad: Bools,
        lanes: I64,
        at: I64,
        recs: I64,
        pairs: bool = False,
    ) -> None:
        """Report accesses that `bad` names, in arrays that broadcast to its shape.

        One of every severity (`pairs`: of every instruction that they clash with), and one of every
        mbarrier there.
        """
        lanes, at, recs = (np.broadcast_to(each, bad.shape)[bad] for each in (lanes, at, recs))
        memory = self.machine.memory
        if what == "write" and memory.poisoned:
            alone = memory.poison[at >> 2] == 0
            lanes, at, recs = lanes[alone], at[alone], recs[alone]  # others stop the run themselves
        objects = recs & COLUMN_MASK == MBARRIER
        kinds = np.where(objects, -1 - (at & ~np.int64(7)), site_of(recs))
        first = np.unique(kinds, return_index=True)[1]
        if self.told.is_any_told:  # of lanes some may have been told, and not others
            first = np.arange(len(kinds))
        said: set[tuple[int, str | None]] = set()
        for index in np.sort(first).tolist():
            lane, rec = int(lanes[index]), int(recs[index])
            kind = int(kinds[index]) if objects[index] or pairs else 0
            letter = None if objects[index] else self._letter(what, site, lane, rec)
            if (kind, letter) not in said:
                said.add((kind, letter))
                self.clash(what, site, lane, int(at[index]), rec)

    def _writes(self, sites: I64 | int) -> Bools:
        """Which instructions write, by their sites."""
        return self._writing[np.minimum(sites, len(self._writing) - 1)]

    # -- accesses of threads -----------------------------------------------------------------------

    def _spread_places(self, at: I64, lanes: I64, size: int) -> tuple[I64, I64, I64]:
        """(places, lanes, byte positions), one row for each access."""
        places = self.places.places(at, size)
        return places, np.broadcast_to(lanes[:, None], places.shape), places << self.places.shift

    def read(self, site: int, group: AccessGroup, size: int, strong: bool) -> None:
        shared, clocks = self.places, self.clocks
        lockstep = strong and site in self._lockstep
        if (strong or not self.strong_writes) and not lockstep:
            quick = self._undisputed if self.compiled is None else self.compiled
            if quick.read(site, group, size, strong):
                return
        at, lanes = group.at, group.lanes
        places = shared.places(at, size)
        recs = shared.written[places]
        if not clocks.are_settled(recs):
            places, who, where = self._spread_places(at, lanes, size)
            bad = clocks.unordered(who, recs)
            if strong:
                near = (recs & COLUMN_MASK) // LANES == who % clocks.lanes // LANES
                bad &= (recs & STRONG == 0) | (near & lockstep)
            if bad.any() and self._drop_seen(bad, places, who, recs).any():
                self.clash_each("write", site, bad, who, where, recs)
        if self.strong_writes and not strong:
            self._after_strong_writes(site, at, lanes, size)
        mine = record(clocks.now, group.pick(clocks.own), site, strong)
        settled = int(shared.read_time[places].max()) <= clocks.lowest
        shared.note_reads(places, group, mine, clocks.lowest, settled)
        shared.read_time[places] = shared.newest_read = clocks.now

    def _after_strong_writes(self, site: int, at: I64, lanes: I64, size: int) -> None:
        """A plain read must know of all atomics, not of the last one only."""
        shared, clocks = self.places, self.clocks
        places, who, where = self._spread_places(at, lanes, size)
        late = shared.read_time[places] > clocks.lowest
        if not late.any():
            return
        recs = shared.read[:, places[late]].T
        lanes = np.broadcast_to(who[late][:, None], recs.shape)
        bad = (recs & STRONG != 0) & self._writes(site_of(recs)) & clocks.unordered(lanes, recs)
        if bad.any() and self._drop_seen(bad, places[late][:, None], lanes, recs).any():
            self.clash_each("write", site, bad, lanes, where[late][:, None], recs)

    def write(
        self,
        site: int,
        group: AccessGroup,
        size: int,
        strong: bool = False,
        time: int | None = None,
    ) -> None:
        shared, clocks = self.places, self.clocks
        at, lanes = group.at, group.lanes
        if strong:
            clocks.now += 1  # later than what has been read
        when = clocks.now if time is None else time
        if not shared.chunk_read.shape[1]:
            quick = self._undisputed if self.compiled is None else self.compiled
            found = quick.write(site, group, size, strong, when)
            if found != BY_NUMPY:
                if found & LOGGED:
                    places = shared.places(at, size)
                    who = np.broadcast_to(lanes[:, None], places.shape)
                    self._after_logged_reads(site, places, who, strong)
                self.overlap |= found & OVERLAP != 0
                return
        places = shared.places(at, size)
        recs = shared.written[places]
        if not clocks.are_settled(recs):
            late = recs >> TIME_SHIFT > clocks.lowest
            if strong:
                late &= recs & STRONG == 0
            if late.any():
                _, who, where = self._spread_places(at, lanes, size)
                bad = clocks.unordered(who, recs) & late
                if not bad.any() or not self._drop_seen(bad, places, who, recs).any():
                    pass
                elif time is None:
                    self._suspect(site, bad, who, where, recs)
                else:
                    self.clash_each("write", site, bad, who, where, recs)
        self.after_reads(site, places, np.broadcast_to(lanes[:, None], places.shape), strong)
        mine = record(when, group.pick(clocks.own), site, strong)
        shared.written[places] = mine[:, None]
        shared.written_at(when)
        if not group.are_apart and (shared.written[places] != mine[:, None]).any():
            self.overlap = True
        if strong:  # an atomic reads too, and the last write does not know of all before it
            shared.note_reads(places, group, mine, clocks.lowest, settled=True)
            shared.read_time[places] = shared.newest_read = clocks.now

    def after_reads(
        self, site: int, places: I64, who: I64, strong: bool, alone: bool = False
    ) -> None:
        """What has been read here must be known to those who write; `alone`: to one lane."""
        shared, clocks = self.places, self.clocks
        times = shared.read_time[places]
        if (
            times.size
            and int(times.max()) > clocks.lowest
            and (late := times > clocks.floor[who]).any()
        ):
            recs = shared.read[:, places[late]].T
            open_ = recs >> TIME_SHIFT > clocks.lowest
            if strong:
                open_ &= recs & STRONG == 0
            if open_.any():
                self._unknown_reads(site, places[late], who[late], recs, open_)
        self._after_logged_reads(site, places, who, strong)
        if shared.chunk_read.shape[1]:
            where = places << shared.shift
            recs = shared.chunk_read[where[:, :: max(CHUNK // shared.unit, 1)] // CHUNK]
            lanes = np.broadcast_to(who[:, :1, None], recs.shape)
            if alone:
                columns = np.moveaxis(recs, -1, 0)
                some = unlike(columns)
                asked = np.full(some.shape, who.flat[0])
                if not clocks.unordered(asked, columns.ravel()[some]).any():
                    return
            bad = clocks.unordered(lanes, recs)
            if bad.any():
                self.clash_each("source", site, bad, lanes, where[:, :1, None], recs)

    def _after_logged_reads(self, site: int, places: I64, who: I64, strong: bool) -> None:
        """The same of what later reads have pushed out."""
        shared = self.places
        if (found := shared.log.forgotten_reads(places)) is not None:
            which, recs = found
            lanes, where = who.reshape(-1)[which], places.reshape(-1)[which] << shared.shift
            bad = self.clocks.unordered(lanes, recs)
            if strong:
                bad &= recs & STRONG == 0
            if bad.any() and self._drop_seen(bad, places.reshape(-1)[which], lanes, recs).any():
                self.clash_each("read", site, bad, lanes, where, recs)

    def _unknown_reads(self, site: int, places: I64, who: I64, recs: I64, late: Bools) -> None:
        """`recs` `[access, slot]`: the last reads of places, each for the lanes of its mask."""
        row, slot = np.nonzero(late)
        masks, found = self.places.masks[slot, places[row]], recs[row, slot]
        several = masks & (masks - np.uint32(1)) != 0
        entry = np.flatnonzero(~several)
        found_all = found[entry]
        if several.any():
            many = np.flatnonzero(several)
            bits = masks[many][:, None] >> np.arange(LANES, dtype=np.uint32) & np.uint32(1)
            each, lane = np.nonzero(bits)
            spread = found[many][each] & ~np.int64(LANES - 1) | lane
            entry = np.concatenate([entry, many[each]])
            found_all = np.concatenate([found_all, spread])
        found, lanes = found_all, who[row][entry]
        bad = self.clocks.unordered(lanes, found)
        if bad.any():
            writing = self._writes(site_of(found))
            bad &= ~writing | self._drop_seen(bad & writing, places[row[entry]], lanes, found)
            at = places[row[entry]] << self.places.shift
            for what, which in (("write", bad & writing), ("read", bad & ~writing)):
                self.clash_each(what, site, which, lanes, at, found)

    def _drop_seen(self, bad: Bools, places: I64, lanes: I64, recs: I64) -> Bools:
        """`bad`, changed: without strong writes that a read has seen, of which the lanes know."""
        if (strong := bad & (recs & STRONG != 0)).any():
            places, lanes, recs = (
                np.broadcast_to(each, bad.shape)[strong] for each in (places, lanes, recs)
            )
            bad[strong] = is_unseen_in_shared(
                self.places, self.clocks, self._reading, places, lanes, recs
            )
        return bad

    # -- writes that change nothing do not race ----------------------------------------------------

    def _suspect(self, site: int, bad: Bools, who: I64, where: I64, recs: I64) -> None:
        """Unordered writes: look afterwards whether the bytes have changed."""
        bad_where = np.nonzero(bad)
        lanes, at, found = who[bad_where], where[bad_where], recs[bad_where]
        objects = found & COLUMN_MASK == MBARRIER
        if objects.any():
            self.clash_each("write", site, objects, lanes, at, found)
            lanes, at, found = lanes[~objects], at[~objects], found[~objects]
        old = self.machine.memory.shared.bytes[at[:, None] + np.arange(self.places.unit)]
        self.suspects.append((lanes, old, at, found, site))

    def resolve(self) -> None:
        bytes_ = self.machine.memory.shared.bytes
        for lanes, old, at, recs, site in self.suspects:
            changed = (bytes_[at[:, None] + np.arange(old.shape[1])] != old).any(1)
            if changed.any():
                self.clash_each("write", site, changed, lanes, at, recs, pairs=True)
            if not changed.all():
                others = site_of(recs[~changed])
                self.excused.update((site, other) for other in set(others.tolist()))
                self.excuses.note(site, others)
        self.suspects.clear()

    # -- cp.async ----------------------------------------------------------------------------------

    def note_copy(self, copy: Copy) -> None:
        """What cp.async writes is not there before it is done."""
        lanes = copy.lanes.ravel()
        group = AccessGroup(copy.into.ravel(), lanes)
        self.write(self.sites.current, group, copy.size, time=PENDING)

    def copy_complete(self, copy: Copy) -> None:
        clocks, shared = self.clocks, self.places
        places = shared.places(copy.into.ravel(), copy.size)
        site = site_of(shared.written[places])
        mine = record(clocks.now, clocks.own[copy.lanes.ravel()], 0)
        shared.written[places] = mine[:, None] | site << COLUMN_BITS
        shared.written_at(clocks.now)
