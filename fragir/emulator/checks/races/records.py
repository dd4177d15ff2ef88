"""What is remembered of accesses to shared memory, and how two of them clash.

Accesses clash where they overlap, one is a write, and the later one does not know of the earlier
one. Two strong accesses (atomics, volatile, relaxed ...) do not race, and neither do writes that
leave a place as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.hooks import Sited
from fragir.emulator.checks.letters import quote
from fragir.emulator.checks.races.clocks import (
    COLUMN_BITS,
    COLUMN_MASK,
    SITE_MASK,
    STRONG,
    TIME_SHIFT,
    Clocks,
    record,
)
from fragir.emulator.checks.races.shadow import CHUNK, RaceShadow
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.numbers.types import I64, Bools

if TYPE_CHECKING:
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program

MBARRIER = COLUMN_MASK  # the column that holds a live mbarrier
_NEVER = (1 << 31) - 1


class Records(Sited):
    """`strong_writes`: whether atomics or strong stores may act on shared memory."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        clocks: Clocks,
        shadow: RaceShadow,
        strong_writes: bool,
    ) -> None:
        super().__init__(machine, program)
        self.clocks, self.shadow, self.strong_writes = clocks, shadow, strong_writes
        code = [p.ins for p in program.code]
        #: Where each instruction is; those of very long programs share the last number.
        self.sites = {id(ins): min(at, SITE_MASK) for at, ins in enumerate(code)}
        self.suspects: list[tuple[I64, npt.NDArray[np.uint8], I64, I64, int]] = []
        self.said: set[tuple[str, int, int]] = set()

    # -- findings --------------------------------------------------------------------------------

    def find(
        self,
        kind: str,
        site: int,
        other: int,
        lane: int,
        at: int,
        message: str,
        letter: str | None = None,
    ) -> None:
        """A finding at an instruction, once for every pair of instructions.

        `letter`: the sentence in `LETTERS` that is all that speaks against it.
        """
        offset = at % max(self.machine.memory.shared_stride, 1)
        text = f"at shared offset {offset}: {message}"
        self.say_once("shared", kind, letter, site, other, text, lane=lane, address=offset)

    def say_once(
        self,
        space: str,
        kind: str,
        letter: str | None,
        site: int,
        other: int,
        text: str,
        *,
        lane: int,
        address: int,
    ) -> None:
        """A finding about two instructions and one space, once."""
        said = f"{space} {kind} {letter}", site, other
        if said in self.said:
            return
        self.said.add(said)
        ins = self.program.code[site].ins
        text = f"{ins.mnemonic} {text}"
        self.found(
            self.program,
            ins.at,
            kind,
            text if letter is None else f"{text}. {quote(letter)}",
            lane=lane,
            address=address,
            subject=f"{other}",
            severity=None if letter is None else "letter",
        )

    def what_at(self, rec: int) -> str:
        """The instruction of a record, for messages."""
        site = rec >> COLUMN_BITS & SITE_MASK
        ins = self.program.code[min(site, len(self.program.code) - 1)].ins
        return f"{ins.mnemonic} of line {self.program.error('', ins.at).line}"

    def who(self, lane: int, rec: int) -> str:
        """The instruction and the lane of a record, for messages."""
        column, text = rec & COLUMN_MASK, self.what_at(rec)
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
        if column == MBARRIER:
            harmless = bool(self._writes(np.array([site << COLUMN_BITS]))[0])
            harmless = harmless and self.overwritten(site, lane, at)
            text = f"a live mbarrier lies here ({who})"
            text += ", though nobody has used it" if harmless else ""
            letter = "mbarrier.init" if harmless else None
            self.find("mbarrier", site, other, lane, at, text, letter)
        elif what == "invisible":
            text = f"the asynchronous proxy does not see what {who} wrote without fence.proxy.async"
            letter = "proxies" if self._copied_for_wgmma(site, other) else None
            self.find("proxy-fence", site, other, lane, at, text, letter)
        elif what == "source":
            text = f"{who} may still read these bytes; wait for it first"
            self.find("pending-source", site, other, lane, at, text)
        else:
            text = f"nothing orders this after the {what} of the same bytes: {who}"
            letter = "warp" if self.told_of(lane, rec) else None
            if letter is not None:
                text += "; a lane of this warp knows of it, and has told the others by a shuffle"
            self.find("race", site, other, lane, at, text, letter)

    def _copied_for_wgmma(self, site: int, other: int) -> bool:
        """Whether wgmma reads what cp.async has copied, which no machine gets wrong."""
        reader, writer = (self.program.code[s].ins.opcode for s in (site, other))
        return reader[0] == "wgmma" and writer[:2] == ("cp", "async") and "bulk" not in writer

    def told_of(self, lane: int, rec: int, cluster: int | None = None) -> bool:
        """Whether a lane of the same warp knows of an access and has told this one."""
        raise NotImplementedError

    def overwritten(self, site: int, lane: int, at: int) -> bool:
        """An ordinary write to a live mbarrier; whether it does no harm."""
        raise NotImplementedError

    def tell(self, what: str, site: int, bad: Bools, lanes: I64, at: I64, recs: I64) -> None:
        everywhere = np.broadcast_to(lanes, bad.shape)
        found = (tuple(int(i) for i in index) for index in np.argwhere(bad)[:LANES])
        index = next(found)
        while self.told_of(int(everywhere[index]), int(recs[index])):
            if (after := next(found, None)) is None:
                break
            index = after  # what nobody was told of is worse
        position = int(np.broadcast_to(at, bad.shape)[index])
        lane = int(everywhere[index])
        memory = self.machine.memory
        if what == "write" and memory.poisoned and memory.poison[position >> 2]:
            return  # a pending copy: the access itself stops the run
        self.clash(what, site, lane, position, int(recs[index]))

    def _writes(self, recs: I64) -> Bools:
        """Which records are of instructions that write."""
        if not hasattr(self, "_kinds"):
            code = self.program.code[: SITE_MASK + 1]
            self._kinds = np.array([p.ins.opcode[0] not in ("ld", "ldu") for p in code])
        return self._kinds[np.minimum(recs >> COLUMN_BITS & SITE_MASK, len(self._kinds) - 1)]

    # -- accesses of threads -----------------------------------------------------------------------

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
        if self.strong_writes and not strong:
            self._after_strong_writes(site, at, lanes, size)
        mine = record(clocks.now, clocks.own[lanes], site, strong)
        shadow.note_reads(places, at, lanes, mine, clocks.lowest)
        shadow.read_time[places] = clocks.now

    def _after_strong_writes(self, site: int, at: I64, lanes: I64, size: int) -> None:
        """A plain read must know of all atomics, not of the last one only."""
        shadow, clocks = self.shadow, self.clocks
        places, who, where = self._spread(at, lanes, size)
        late = shadow.read_time[places] > clocks.lowest
        if not late.any():
            return
        recs = shadow.read[places[late]]
        lanes = np.broadcast_to(who[late][:, None], recs.shape)
        bad = (recs & STRONG != 0) & self._writes(recs) & clocks.unordered(lanes, recs)
        if bad.any():
            self.tell("write", site, bad, lanes, where[late][:, None], recs)

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
        places = shadow.places(at, size)
        recs = shadow.written[places]
        late = recs >> TIME_SHIFT > clocks.lowest
        if strong:
            late &= recs & STRONG == 0
        if late.any():
            _, who, where = self._spread(at, lanes, size)
            bad = clocks.unordered(who, recs) & late
            if bad.any() and time is None:
                self._suspect(site, bad, who, where, recs)
            elif bad.any():
                self.tell("write", site, bad, who, where, recs)
        self._after_reads(site, places, np.broadcast_to(lanes[:, None], places.shape), strong)
        mine = record(clocks.now if time is None else time, clocks.own[lanes], site, strong)
        shadow.written[places] = mine[:, None]
        if strong:  # an atomic reads too, and the last write does not know of all before it
            shadow.note_reads(places, at, lanes, mine, _NEVER)
            shadow.read_time[places] = clocks.now

    def _after_reads(self, site: int, places: I64, who: I64, strong: bool) -> None:
        """What has been read here must be known to those who write."""
        shadow, clocks = self.shadow, self.clocks
        times = shadow.read_time[places]
        if (
            times.size
            and int(times.max()) > clocks.lowest
            and (late := times > clocks.floor[who]).any()
        ):
            recs = shadow.read[places[late]]
            open_ = recs >> TIME_SHIFT > clocks.lowest
            if strong:
                open_ &= recs & STRONG == 0
            if open_.any():
                self._unknown_reads(site, places[late], who[late], recs, open_)
        if (found := shadow.forgotten(places)) is not None:
            which, recs = found
            lanes, where = who.reshape(-1)[which], places.reshape(-1)[which] << shadow.shift
            bad = clocks.unordered(lanes, recs)
            if strong:
                bad &= recs & STRONG == 0
            if bad.any():
                self.tell("read", site, bad, lanes, where, recs)
        if shadow.chunk_read.shape[1]:
            where = places << shadow.shift
            recs = shadow.chunk_read[where[:, :: max(CHUNK // shadow.unit, 1)] // CHUNK]
            lanes = np.broadcast_to(who[:, :1, None], recs.shape)
            bad = clocks.unordered(lanes, recs)
            if bad.any():
                self.tell("source", site, bad, lanes, where[:, :1, None], recs)

    def _unknown_reads(self, site: int, places: I64, who: I64, recs: I64, late: Bools) -> None:
        """`recs` `[access, slot]`: the last reads of places, each for the lanes of its mask."""
        row, slot = np.nonzero(late)
        masks, found = self.shadow.masks[places[row], slot], recs[row, slot]
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
            index = int(np.flatnonzero(bad)[0])
            rec = int(found[index])
            what = "write" if self._writes(np.array([rec]))[0] else "read"
            at = int(places[row[entry[index]]]) << self.shadow.shift
            self.clash(what, site, int(lanes[index]), at, rec)

    # -- writes that change nothing do not race ----------------------------------------------------

    def _suspect(self, site: int, bad: Bools, who: I64, where: I64, recs: I64) -> None:
        """Unordered writes: look afterwards whether the bytes have changed."""
        unit = self.shadow.unit
        bytes_ = self.machine.memory.shared.bytes
        for index in np.argwhere(bad)[:64]:
            i, j = (int(x) for x in index)
            at = int(where[i, j])
            if int(recs[i, j]) & COLUMN_MASK == MBARRIER:
                self.clash("write", site, int(who[i, j]), at, int(recs[i, j]))
                continue
            old = bytes_[at : at + unit].copy()
            self.suspects.append((who[i], old, where[i, j : j + 1], recs[i, j : j + 1], site))

    def resolve(self) -> None:
        bytes_ = self.machine.memory.shared.bytes
        for who, old, where, recs, site in self.suspects:
            at = int(where[0])
            if (bytes_[at : at + len(old)] != old).any():
                self.clash("write", site, int(who[0]), at, int(recs[0]))
        self.suspects.clear()
