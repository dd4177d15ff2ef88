"""What checks leave to straight-line runs: accesses and barriers of which they say nothing.

Where a check has something to say, the library stops in front of the instruction (`native/source/
watch.c`), and its step runs with everything around it. So what a launch reports is the same. Two
things decide that: which instructions may be executed there at all (`Hooks.compiled`), and whether
one of their registers may hold undefined bits at the moment.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fragir.emulator.checks.conflicts import Conflicts
from fragir.emulator.checks.definedness.definedness import Definedness
from fragir.emulator.checks.extents import Extents
from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.located import is_windowed
from fragir.emulator.checks.races.races import Races
from fragir.emulator.checks.races.undisputed import (
    LARGEST,
    CompiledLedgers,
    GlobalPointers,
    describe,
    noted_bits,
)
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.native.straight import WATCHED, WatchedLaunch, address_of
from fragir.emulator.numbers.types import Array

if TYPE_CHECKING:
    from fragir.emulator.checks.races.ledger import Ledger
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction

_NOTED = 3  # kinds of records of a ledger
ANYWHERE = -1  # instead of a space

H = TypeVar("H", bound=Hooks)


class CompiledRuns:
    """`ledgers`: of the races, by the library."""

    def __init__(
        self,
        machine: Machine,
        program: Program,
        definedness: Definedness,
        races: Races,
        conflicts: Conflicts,
        ledgers: CompiledLedgers,
        extents: Extents | None,
    ) -> None:
        self.machine, self.program = machine, program
        self.definedness, self.races, self.conflicts = definedness, races, conflicts
        self.compiled, self.extents = ledgers, extents
        #: The positions of accesses, and their bounds.
        self._accesses: dict[int, tuple[int, int, int] | None] = {}
        #: Ledgers as they were told, and the arrays of their records then.
        self._ledgers: list[Ledger] = []
        self._told: list[Array | None] = []
        self._pointers: ctypes.Array[GlobalPointers] = (GlobalPointers * 0)()
        conflicts.runs = self

    @classmethod
    def of(cls, machine: Machine, program: Program) -> CompiledRuns | None:
        """That of a launch with all checks; None where the library is not in use."""

        def hook(kind: type[H]) -> H | None:
            return next((hook for hook in machine.hooks if isinstance(hook, kind)), None)

        definedness, races, conflicts = hook(Definedness), hook(Races), hook(Conflicts)
        if definedness is None or races is None or conflicts is None:
            return None
        ledgers = races.shared.compiled
        if ledgers is None:
            return None
        return cls(machine, program, definedness, races, conflicts, ledgers, hook(Extents))

    # Made when a run is first encoded: most launches are too small for that.

    @cached_property
    def rows(self) -> Array:
        """What is known of accesses, by position of the instruction: WATCHED."""
        rows = np.zeros(len(self.program.code), WATCHED)
        rows["ledger"] = -1
        races = self.races
        for at, bounds in self._accesses.items():
            ins, row = self.program.code[at].ins, rows[at]
            local = "local" in ins.opcode
            row["site"] = site = races.sites.of(ins)
            row["races"] = not is_windowed(ins) and not local
            row["priced"] = not local and self.conflicts.counts(ins)
            row["cached"] = races.globally.through_cache(site)
            row["updates"] = races.globally.updates.loads
            row["space"], row["low"], row["high"] = bounds or (ANYWHERE, 0, 0)
        return rows

    @cached_property
    def _launch(self) -> WatchedLaunch:
        launch = WatchedLaunch()
        self._keeps = self._describe(launch)
        return launch

    @property
    def address(self) -> int:
        """Of what the library is told of the launch."""
        return ctypes.addressof(self._launch)

    def _describe(self, launch: WatchedLaunch) -> list[object]:
        """Fills in what stays; gives the arrays."""
        machine, plane, clocks = self.machine, self.definedness.plane, self.races.clocks
        room = np.empty((3, machine.warps * LANES), np.int64)
        bytes_ = np.empty(machine.warps * LANES * LARGEST, np.uint8)
        launch.knowledge, launch.shared = self.compiled.addresses()
        files = [
            [address_of(file), file.nbytes, address_of(plane.machine.files[width])]
            for width, file in machine.files.items()
        ]
        registers = np.array(files, np.uint64)
        launch.files, launch.widths = address_of(registers), len(files)
        launch.shared_bits = address_of(plane.memory.shared.bytes)
        launch.local_bits = address_of(plane.memory.local.bytes)
        launch.positions, launch.lanes, launch.patterns = (address_of(part) for part in room)
        launch.bytes = address_of(bytes_)
        launch.floor, launch.uneven = address_of(clocks.floor), address_of(clocks.uneven)
        launch.warps = machine.warps
        launch.rows = address_of(self.rows)
        memory, homes = plane.memory, (machine.memory.shared_home, machine.memory.local_home)
        launch.shared_home, launch.local_home = (address_of(home) for home in homes)
        arrays = [room, bytes_, memory.shared.bytes, memory.local.bytes, *homes]
        return [*arrays, clocks.floor, clocks.uneven, registers, plane.machine.files]

    # -- what is left to runs ----------------------------------------------------------------------

    def takes(self, d: Decoder, at: int, asked: Iterable[Hooks]) -> bool:
        """Whether the instruction at a position is; `asked`: the checks that look at it."""
        ins = self.program.code[at].ins
        if not all(hook.compiled(d, ins) for hook in asked):
            return False
        if self.program.opcode(ins).access:
            self._accesses[at] = None if self.extents is None else self.extents.bounds(d, ins)
        d.watched.add(id(ins))
        return True

    # -- calls -------------------------------------------------------------------------------------

    def involved(self, ins: Instruction) -> int:
        """The registers that are looked at where one of them is in doubt, as bits."""
        return self.definedness.involved(ins)

    def doubt(self) -> int:
        """The registers that may hold undefined bits."""
        return self.definedness.undefined.doubtful

    def begin(self) -> None:
        """Tells what has changed since the last call."""
        launch, races = self._launch, self.races
        clocks, places = races.clocks, races.global_places
        launch.now, launch.lowest = clocks.now, clocks.lowest
        launch.logs = races.shared_places.log.entries
        launch.resident = self.machine.resident
        launch.first_warp = self.machine.first_block * self.machine.warps_per_block
        alone = clocks.width == clocks.lanes and clocks.planes == 1
        launch.joins = alone and not races.strong.meets
        self.compiled.begin(places.owner_of)
        if len(places.ledgers) != len(self._ledgers):
            self._ledgers = list(places.ledgers.values())
            self._told = [None] * len(self._ledgers)
            self._pointers = (GlobalPointers * len(self._ledgers))()
            launch.ledgers, launch.buffers = ctypes.addressof(self._pointers), len(self._ledgers)
        for index, ledger in enumerate(self._ledgers):
            pointers = self._pointers[index]
            if self._told[index] is not ledger.records:
                self._told[index] = ledger.records
                describe(ledger, pointers)
            pointers.noted = noted_bits(ledger)
            pointers.copied = len(ledger.copied)

    def end(self) -> None:
        """Takes back what calls change."""
        launch, clocks = self._launch, self.races.clocks
        if clocks.now != launch.now:
            self.machine.barriers.uncounted = True
        clocks.now, clocks.lowest = launch.now, launch.lowest
        self.compiled.end()
        for pointers, ledger in zip(self._pointers, self._ledgers, strict=True):
            noted = pointers.noted
            ledger.noted[:] = [noted >> kind & 1 != 0 for kind in range(_NOTED)]

    # -- what accesses cost ------------------------------------------------------------------------

    def collect(self) -> Iterable[tuple[Instruction, bool, int, int]]:
        """Instructions, whether in shared memory, paid and needed since the last time."""
        if "rows" not in self.__dict__:
            return ()
        rows, code = self.rows, self.program.code
        found = np.argwhere(rows["needed"] > 0).tolist()
        costs = [
            (
                code[at].ins,
                bool(space),
                int(rows["paid"][at, space]),
                int(rows["needed"][at, space]),
            )
            for at, space in found
        ]
        rows["paid"] = rows["needed"] = 0
        return costs

    def dearest(self, instruction: Instruction, shared: bool, excess: int, warp: int) -> None:
        """What is known as the dearest access."""
        at = self.definedness.flow.by_instruction[id(instruction)]
        self.rows["excess"][at, int(shared)] = excess
        self.rows["warp"][at, int(shared)] = warp

    def forget(self) -> None:
        """No access has been the dearest."""
        if "rows" in self.__dict__:
            self.rows["excess"] = self.rows["warp"] = 0
