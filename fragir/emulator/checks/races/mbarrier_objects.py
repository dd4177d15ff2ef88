"""Mbarriers as objects in memory: initialised before they are used, and left alone while in use."""

from __future__ import annotations

import numpy as np

from fragir.emulator.checks.races.context import Context
from fragir.emulator.checks.races.records import MBARRIER, PENDING, TIME_SHIFT, record, site_of
from fragir.emulator.checks.races.scopes import CLUSTER
from fragir.emulator.checks.races.shared_places import SharedPlaces
from fragir.emulator.numbers.types import I64


class MbarrierObjects:
    def __init__(self, context: Context, places: SharedPlaces) -> None:
        self.clocks, self.sites = context.clocks, context.sites
        self.findings, self.places = context.findings, places
        self.start_wave()

    def start_wave(self) -> None:
        """New blocks: there is no mbarrier."""
        self.live: dict[int, int] = {}  # position -> the record of its initialisation
        self.used: set[int] = set()  # those that anybody has arrived at, or looked at
        self.lost: dict[int, int] = {}  # overwritten before any use -> by which instruction
        #: Initialised, and not yet known to be visible to the asynchronous proxy: its record, lane.
        self.unfenced: dict[int, tuple[int, int]] = {}

    def initialise(self, position: int, lane: int) -> None:
        """mbarrier.init."""
        clocks = self.clocks
        if position in self.live:
            rec = self.live[position]
            harmless = self.unused(position, lane)
            text = "this mbarrier is in use; mbarrier.inval it before another mbarrier.init"
            if harmless:
                text = "this mbarrier is valid, though nobody has used it"
            letter = "mbarrier.init" if harmless else None
            self._say("mbarrier", site_of(rec), lane, position, text, letter)
        self.used.discard(position)
        self.lost.pop(position, None)
        self.live[position] = record(clocks.now, int(clocks.own[lane]), self.sites.current)
        self.unfenced[position] = self.live[position], lane
        if self.places.unit <= 8:
            self._hold(position, record(PENDING, MBARRIER, self.sites.current))
        clocks.now += 1

    def invalidate(self, position: int, lane: int) -> None:
        """mbarrier.inval."""
        self.live.pop(position, None)
        rec = record(self.clocks.now, int(self.clocks.own[lane]), self.sites.current)
        self._hold(position, rec)

    def _hold(self, position: int, rec: int) -> None:
        places = self.places
        places.written_at(rec >> TIME_SHIFT)
        for at in range(position >> places.shift, (position + 7 >> places.shift) + 1):
            places.written[at] = rec

    def unused(self, position: int, lane: int) -> bool:
        """Whether a lane knows of an mbarrier's initialisation and nobody has used it since."""
        rec = self.live.get(position)
        if rec is None or position in self.used:
            return False
        return not self.clocks.unordered(np.array([lane]), np.array([rec])).any()

    def overwritten(self, site: int, lane: int, at: int) -> bool:
        """An ordinary write to a live mbarrier; whether it does no harm, as long as it is so."""
        position = at & ~7
        if not self.unused(position, lane):
            return False
        del self.live[position]
        self.lost[position] = site
        return True

    def use(self, position: int, lanes: I64) -> None:
        """Those who use an mbarrier must know that it has been initialised."""
        self.used.add(position)
        if (site := self.lost.pop(position, None)) is not None:
            where = self.findings.what_at(record(0, 0, site))
            text = f"this mbarrier has been overwritten by {where}"
            self._say("mbarrier", site, int(lanes[0]), position, text)
        rec = self.live.get(position)
        if rec is None:
            return
        bad = self.clocks.unordered(lanes, np.full(lanes.shape, rec, np.int64))
        if bad.any():
            lane = int(lanes[bad][0])
            who = self.findings.who(lane, rec)
            text = f"nothing orders this after the mbarrier's initialisation: {who}"
            self._say("mbarrier", site_of(rec), lane, position, text)

    # -- the asynchronous proxy must see the initialisation ------------------------------------

    def initialisations_fenced(self, lanes: I64) -> None:
        """fence.mbarrier_init, or the cluster's barrier: what these lanes have initialised."""
        if self.unfenced:
            these = {int(lane) for lane in lanes}
            self.unfenced = {p: x for p, x in self.unfenced.items() if x[1] not in these}

    def fence(self, lanes: I64) -> None:
        """fence.mbarrier_init: others will see which mbarriers these lanes have initialised."""
        self.initialisations_fenced(lanes)
        clocks = self.clocks
        for scope in clocks.levels:
            if scope <= CLUSTER:
                clocks.known[clocks.fenced(scope), lanes, clocks.own[lanes]] = clocks.now
        clocks.now += 1

    def signalled(self, position: int, lane: int) -> None:
        """A bulk copy is issued that will signal an mbarrier."""
        rec, _ = self.unfenced.pop(position, (0, 0))
        if not rec or not self.clocks.invisible(np.array([lane]), np.array([rec])).any():
            return
        who = self.findings.who(lane, rec)
        text = f"it signals an mbarrier, and nothing makes {who} visible to the "
        text += "asynchronous proxy (fence.mbarrier_init or fence.proxy.async)"
        self._say("proxy-fence", site_of(rec), lane, position, text, "proxies")

    def _say(
        self, kind: str, other: int, lane: int, position: int, text: str, letter: str | None = None
    ) -> None:
        self.findings.shared(kind, self.sites.current, other, lane, position, text, letter)
