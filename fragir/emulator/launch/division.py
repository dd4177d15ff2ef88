"""Blocks side by side: forked processes run some of a launch's blocks each, in the same memory.

A launch begins in one process. Once it has computed for `AFTER` seconds, the blocks left are cut
into as many ranges as there are jobs, and a process is forked for each range but the first. Each
goes on where the launch was: with its blocks of the wave that runs, the others leave it; then with
those of later waves.

The result is that of one process, or is thrown away. From the fork on every process notes which
bytes of global memory it reads and writes. Where none has written what another has read or written
it does not matter who was first; and each block is the same, whichever others are on the machine
with it. If they have met, if anything was found or went wrong, or a process died, `Again` is
raised: the launch starts anew in one process. Until then nothing is written to the caller's arrays.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import sys
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.checks.races.clocks import strength
from fragir.emulator.machine.arena import Footprint, shared_bytes
from fragir.emulator.machine.watch import BEAT, Moment
from fragir.emulator.numbers.types import count_of, kind_of, width_of
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.errors import pass_on, require_whole_number
from fragir.ptx.opcodes.row import Opcode

if TYPE_CHECKING:
    from fragir.emulator.checks.hooks import Hooks
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.scheduler import Scheduler


# -- obstacles -------------------------------------------------------------------------------------
# Whether the blocks of a launch may run in several processes, each some of them.
#
# What blocks do to each other's memory is found while they run (`machine/arena.py`). Here is
# the rest: what a launch does that is one for all its blocks, and what makes it likely that they
# meet, so that it were in vain.

#: Warps of a launch below which more of them at once take no longer: numpy's calls are what costs.
LEAST_WARPS = 32
#: Functions that may be called: a failed assertion ends the run, whoever it is.
_HARMLESS = {"__assertfail"}
_SPACES = ("global", "shared", "local", "param", "const")
_UNIT = 4  # bytes: the largest unit of a footprint


def can_fork() -> bool:
    """Whether processes can be forked that share memory, and go on where their parent was."""
    return sys.platform == "linux" and hasattr(os, "fork")


def obstacle(program: Program, *, warps: int, clusters: int) -> str | None:
    """Why the blocks of a program do not run side by side, in a clause; None where they may.

    `warps` and `clusters`: of the grid.
    """
    if not can_fork():
        return "processes are forked on Linux alone"
    if clusters < 2 or warps < LEAST_WARPS:
        return "there are too few blocks"
    others = sorted(program.externs - _HARMLESS)
    if others:
        return f"{others[0]} is called, which is one for all blocks"
    for row, words in _distinct(program):
        if row.takes_cluster:
            return f"{row.name} takes blocks off the launch"
        if row.tensor_map == "changes":
            return f"{row.name} changes tensor maps"
        accesses = row.access or row.strong  # fences and barriers alone reach nobody
        if accesses and strength(row, words) and space_of(words) not in ("shared", "local"):
            return f"{'.'.join(words)} may reach other blocks"
    return None


def _distinct(program: Program) -> list[tuple[Opcode, tuple[str, ...]]]:
    """The rows of a program's instructions, each opcode once."""
    return [(row, words) for words, row in {words: row for row, words in program.rows()}.items()]


def space_of(words: tuple[str, ...]) -> str:
    """The first state space that an opcode names: that of its destination; else generic."""
    found = (space for word in words for space in _SPACES if word.split("::")[0] == space)
    return next(found, "generic")


def unit_of(program: Program) -> int:
    """Bytes of the smallest access to global memory, at most 4: the unit of footprints."""
    unit = _UNIT
    for row, words in _distinct(program):
        plain = row.access and not row.together and row.bits != "fill"
        if plain and space_of(words) in ("global", "generic"):
            unit = min(unit, max(width_of(kind_of(words)) // 8, 1) * count_of(words))
    return unit


#: Seconds of computing before a launch is divided: some ten times what that costs.
AFTER = 0.1
_TICK = 0.1  # seconds between two looks while others are waited for
#: What a process tells on the board: blocks done, warp instructions, whether all is in vain.
_DONE, _INSTRUCTIONS, _FAILED = range(3)


class Again(Exception):
    """The launch must be run anew, in one process."""


@dataclass(slots=True)
class WavePiece:
    """What a process has done of one wave: its rounds."""

    wave: int
    rounds: int


@dataclass(slots=True)
class ProcessAnswer:
    """What a process sends when it is done.

    `runs`: how often each basic block ran, by its position; `partials`: what each check gathered.
    """

    runs: dict[int, int]
    mma: int
    loaded: Counter[str]
    stored: Counter[str]
    pieces: list[WavePiece]
    partials: list[Any]


@dataclass(slots=True)
class ForkedProcess:
    """A forked process: `number` on the board, what it is read from, its footprint."""

    number: int
    pid: int
    pipe: int
    footprint: Footprint
    data: bytearray = field(default_factory=bytearray)


class Division:
    """A launch whose blocks may run in `jobs` processes.

    `total` and `wave`: blocks of the grid, and of those that are on the machine together; `unit`:
    of footprints, bytes.
    """

    def __init__(
        self,
        machine: Machine,
        scheduler: Scheduler,
        hooks: Sequence[Hooks],
        *,
        total: int,
        wave: int,
        jobs: int,
        unit: int,
    ) -> None:
        self.machine, self.scheduler, self.hooks = machine, scheduler, hooks
        self.watch, self.report = scheduler.watch, machine.report
        self.statistics = machine.report.statistics
        self.total, self.wave, self.jobs, self.unit = total, wave, jobs, unit
        self.number = 0  # of this process; 0 is the one that the launch began in
        self.divided = False
        self.children: list[ForkedProcess] = []
        self.pieces: list[WavePiece] = []
        self._refused = False
        self._start, self._end = 0, total  # of the blocks of this process
        self._first = self._next = 0  # of the wave that runs; where the next one begins
        self._done = 0  # blocks that have ended
        self.idle = False  # whether this process has no blocks of the wave that runs
        self._began = 0.0
        self._own = Footprint(0, unit)
        self._board: npt.NDArray[np.int64] = np.zeros((1, 3), np.int64)
        self._before: list[Any] = []  # what checks have gathered before the fork
        self._said = 0  # remarks and notes then
        self._rounds = 0
        self._instructions = 0
        self._pipe = -1

    def run(self, progress: Callable[[float], None] | None) -> None:
        """Run all blocks. Raises Again, or what goes wrong before the launch is divided."""
        self._began = time.thread_time()
        self.scheduler.divide = self
        try:
            self._waves(progress)
            if self.number:
                self._answer()
            elif self.divided:
                self._join(progress)
        except BaseException as problem:
            if self.number:  # a forked process ends here, whatever it is
                self._board[self.number, _FAILED] = 1
                os._exit(1)
            pass_on(problem)
            if self.divided and isinstance(problem, Exception):
                raise Again from problem
            raise
        finally:
            self.scheduler.divide = None
            self._end_children()

    def _waves(self, progress: Callable[[float], None] | None) -> None:
        """The waves of this process; those of a divided launch are pieces of the same waves."""
        machine = self.machine
        while self._next < self._end:
            self._first = first = self._next
            wave = first // self.wave
            self._next = min((wave + 1) * self.wave, self._end)
            machine.start_wave(first, self._next - first)
            self.scheduler.run_wave()
            if self.divided:
                self._keep(wave)
            self._done = self._next - self._start
            self._show(progress)

    # -- dividing ----------------------------------------------------------------------------------

    def is_due(self) -> bool:
        """Whether to divide now. Raises Again where another process has failed already."""
        if self.divided:
            if self._board[:, _FAILED].any():
                raise Again
            return False
        late = time.thread_time() - self._began > AFTER
        return late and not self._refused and not self.report.findings

    def divide(self) -> None:
        """Fork a process for each range of blocks but the first. Refused where it cannot be."""
        cuts = self._cuts()
        parts = len(cuts) - 1
        if parts < 2:
            self._refused = True
            return
        size = len(self.machine.memory.globals.bytes)
        room = 2 * Footprint.room(size, self.unit)
        try:
            marks = shared_bytes(room * (parts - 1)).reshape(parts - 1, room)
            self._board = shared_bytes(24 * parts).view(np.int64).reshape(parts, 3)
            self._own = Footprint(size, self.unit)
        except MemoryError:
            self._refused = True
            return
        self.divided = True
        self._before = [hook.partial() for hook in self.hooks]
        self._said = self._words()
        for number in range(1, parts):
            footprint = Footprint(size, self.unit, marks[number - 1])
            try:
                child = self._fork(number, footprint)
            except OSError as problem:
                raise Again from problem
            if child is None:
                self._become(number, footprint)
                break
            self.children.append(child)
        self._take_part(cuts[self.number], cuts[self.number + 1])

    def _cuts(self) -> list[int]:
        """Where the ranges begin and end: at whole clusters, of about one size.

        They begin with the wave that runs, unless a check looks at clusters that have begun as a
        whole; then the first range has all of that wave.
        """
        size, total = self.machine.cluster_size, self.total
        begin = self._first // size
        rest = total // size - begin
        warps = rest * size * self.machine.warps_per_block
        parts = max(min(self.jobs, rest, 2 * warps // LEAST_WARPS), 1)
        cuts = [(begin + rest * k // parts) * size for k in range(parts + 1)]
        if size > 1 and self.hooks:
            cuts = [cuts[0], *(max(cut, self._next) for cut in cuts[1:])]
        cuts = sorted(set(cuts))
        return [*cuts[:-1], total]

    def _fork(self, number: int, footprint: Footprint) -> ForkedProcess | None:
        """The forked process; None in that process itself."""
        read, write = os.pipe()
        try:
            with warnings.catch_warnings():
                # Python warns where there are other threads, whose locks nobody would release in
                # the forked process. It takes none: it computes, writes to its pipe and exits.
                warnings.simplefilter("ignore", DeprecationWarning)
                pid = os.fork()
        except OSError:
            os.close(read)
            os.close(write)
            raise
        if pid:
            os.close(write)
            return ForkedProcess(number, pid, read, footprint)
        os.close(read)
        self._pipe = write
        return None

    def _become(self, number: int, footprint: Footprint) -> None:
        """In a forked process, at once."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # its parent ends it
        gc.freeze()  # what was there is not this process's to finalise
        for child in self.children:
            os.close(child.pipe)
        self.children = []
        self.number, self._own = number, footprint
        parent, watch = os.getppid(), self.watch

        def beat(moment: Moment) -> None:
            if os.getppid() != parent:
                os._exit(1)
            self._tell()

        watch.heartbeat = beat

    def _take_part(self, first: int, end: int) -> None:
        """Go on with the blocks first..end-1 alone."""
        machine = self.machine
        self._end = end
        machine.jobs = 1
        machine.memory.globals.footprint = self._own
        statistics = self.statistics
        if self.number:
            for block in self.scheduler.blocks.values():
                block.runs = 0
            statistics.mma = 0
            statistics.loaded.clear()
            statistics.stored.clear()
        self._rounds, statistics.rounds = statistics.rounds, 0
        self._instructions = self.watch.executed
        if not self.number:
            self.watch.elsewhere = lambda: int(self._board[1:, _INSTRUCTIONS].sum())
        here = [min(max(cut, self._first), self._next) - self._first for cut in (first, end)]
        machine.leave(*here)
        self.idle = here[0] == here[1]
        self._start, self._done = (first, 0) if self.number else (0, self._done)
        self._next = min(self._next, end) if first < self._next else first

    # -- while it runs -----------------------------------------------------------------------------

    def _keep(self, wave: int) -> None:
        """A piece of a wave has ended."""
        if self.report.findings or (self.number and self._words() > self._said):
            raise Again
        if not self.idle:
            self.pieces.append(WavePiece(wave, self.statistics.rounds))
        self.idle, self.statistics.rounds = False, 0

    def _words(self) -> int:
        """How many remarks and notes there are, which a forked process keeps to itself."""
        return len(self.report.remarks) + len(self.report.notes)

    def _show(self, progress: Callable[[float], None] | None) -> None:
        if self.number:
            self._tell()
            return
        watch = self.watch
        watch.share = (self._done + int(self._board[1:, _DONE].sum())) / self.total
        if progress is not None:
            progress(watch.share)

    def _tell(self) -> None:
        line = self._board[self.number]
        line[_INSTRUCTIONS] = self.watch.executed - self._instructions
        line[_DONE] = self._done

    # -- the end -----------------------------------------------------------------------------------

    def _answer(self) -> None:
        """Send what this process has done, and end it."""
        runs = {start: block.runs for start, block in self.scheduler.blocks.items() if block.runs}
        found = self.statistics
        partials = [hook.partial() for hook in self.hooks]
        answer = ProcessAnswer(runs, found.mma, found.loaded, found.stored, self.pieces, partials)
        data = pickle.dumps(answer)
        while data:
            data = data[os.write(self._pipe, data) :]
        os._exit(0)

    def _join(self, progress: Callable[[float], None] | None) -> None:
        """Wait for the others, and make one result of all."""
        self._wait(progress)
        if self._board[:, _FAILED].any():
            raise Again
        answers: list[ProcessAnswer] = []
        for child in self.children:
            answers.append(pickle.loads(child.data))  # EOFError where it has died
            if self._own.meets(child.footprint):
                raise Again
            self._own.add(child.footprint)
        for answer in answers:
            self._add(answer)
        self._join_waves([piece for answer in answers for piece in answer.pieces])
        self._merge([answer.partials for answer in answers])
        most = self.watch.instructions
        if most is not None:
            counted = sum(block.runs * block.size for block in self.scheduler.blocks.values())
            if counted > most:
                raise Again  # one process stops there

    def _wait(self, progress: Callable[[float], None] | None) -> None:
        """Read what the others send until they end."""
        watch, beat = self.watch, time.perf_counter()
        open_ = {child.pipe: child for child in self.children}
        while open_:
            ready, _, _ = select.select(list(open_), [], [], _TICK)
            for pipe in ready:
                data = os.read(pipe, 1 << 20)
                open_[pipe].data += data
                if not data:
                    del open_[pipe]
            if self._board[:, _FAILED].any():
                raise Again
            if open_:
                self._show(progress)
                if watch.heartbeat is not None and time.perf_counter() - beat > BEAT:
                    beat = time.perf_counter()
                    watch.heartbeat(Moment(watch.share, watch.executed + watch.elsewhere(), None))

    def _add(self, answer: ProcessAnswer) -> None:
        for start, runs in answer.runs.items():
            self.scheduler.block(start).runs += runs
        self.statistics.mma += answer.mma
        self.statistics.loaded.update(answer.loaded)
        self.statistics.stored.update(answer.stored)

    def _join_waves(self, others: list[WavePiece]) -> None:
        """Rounds as if each wave had run as a whole."""
        rounds: defaultdict[int, int] = defaultdict(int)
        for piece in (*self.pieces, *others):
            rounds[piece.wave] = max(rounds[piece.wave], piece.rounds)
        self.statistics.rounds = self._rounds + sum(rounds.values())

    def _merge(self, others: list[list[object]]) -> None:
        """What checks have gathered: before the fork, then in the order of the blocks."""
        own = [hook.partial() for hook in self.hooks]
        for partials in (self._before, own, *others):
            for hook, partial in zip(self.hooks, partials, strict=True):
                hook.merge(partial)

    def _end_children(self) -> None:
        """No process is left behind, and none is waited for that nobody needs."""
        for child in self.children:
            os.close(child.pipe)
            try:
                os.kill(child.pid, signal.SIGKILL)
                os.waitpid(child.pid, 0)
            except (ProcessLookupError, ChildProcessError):  # somebody has waited for it already
                continue
        self.children = []


# -- jobs ------------------------------------------------------------------------------------------
# How many threads or processes a launch may use.

#: Microseconds of computing in each period, and the period.
QUOTA = Path("/sys/fs/cgroup/cpu.max")
#: The environment's default, for all launches.
VARIABLE = "FRAGIR_JOBS"


def jobs_of(asked: int | None) -> int:
    """The jobs of a launch: what was asked for, else FRAGIR_JOBS, else the cores it may use.

    EmulationError where that is no whole number from 1 on.
    """
    if asked is not None:
        return require_whole_number(asked, "jobs", 1)
    text = os.environ.get(VARIABLE, "")
    if not text:
        return _cores()
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise EmulationError(
            f"{VARIABLE} is {text!r}, which is no number of jobs",
            hint="set it to a whole number from 1 on, or to nothing for the cores of the machine",
        )
    return int(text)


def _cores() -> int:
    """The cores that this process may use, as a container restricts them too."""
    if hasattr(os, "sched_getaffinity"):
        return max(min(len(os.sched_getaffinity(0)), _quota()), 1)
    return os.cpu_count() or 1


def _quota() -> int:
    """The cores' worth of time that a control group of Linux has; many where it has no quota."""
    try:
        quota, period = QUOTA.read_text().split()
        return -(-int(quota) // int(period))
    except (OSError, ValueError):  # no such file, or "max"
        return 1 << 16
