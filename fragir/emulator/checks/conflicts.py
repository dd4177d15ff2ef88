"""What accesses to memory cost: bank conflicts of shared memory, sectors of global memory.

Shared memory has 32 banks of 4 bytes. Lanes are served together as long as they make 128 bytes: 32
lanes of up to 4 bytes, 16 of 8, 8 of 16 (and of the rows of ldmatrix and stmatrix). Each of these
groups takes as many passes as there are different words in the busiest bank. Global memory is
moved in sectors of 32 bytes. Both are remarks about an instruction, summed over the launch.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from fragir.emulator.checks.hooks import Hooks
from fragir.emulator.checks.located import is_windowed
from fragir.emulator.machine.events import Access
from fragir.emulator.machine.lanes import LANES
from fragir.emulator.native import library
from fragir.emulator.numbers.types import I64, distinct

if TYPE_CHECKING:
    from fragir.emulator.instructions.operands import Decoder
    from fragir.emulator.machine.arena import AccessPattern
    from fragir.emulator.machine.machine import Machine
    from fragir.emulator.machine.memory import Arena
    from fragir.emulator.program.program import Program
    from fragir.ptx.tree import Instruction


# -- compiled prices -------------------------------------------------------------------------------
# Bank conflicts and sectors counted by the compiled core (`native/source/planes.c`).

_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64


class CompiledPrices:
    """`function`: fragir_prices of the library."""

    def __init__(self, function: Any) -> None:
        function.argtypes = [_POINTER, _POINTER, *3 * [_NUMBER], ctypes.c_int, _POINTER]
        function.restype = ctypes.c_int
        self._function = function
        self._found = np.zeros(4, np.int64)
        self._out = self._found.__array_interface__["data"][0]

    def total(
        self, at: I64, lanes: I64, size: int, shared: bool
    ) -> tuple[int, int, int, int] | None:
        """(paid, needed, the most that a warp pays more than it must, that warp); None where lanes
        do not ascend."""
        at = np.ascontiguousarray(at)
        where: int = at.__array_interface__["data"][0]
        whole = lanes.ndim == 2 and lanes.shape[1] == LANES and lanes.shape == at.shape
        first = int(lanes[0, 0]) if whole else 0
        if whole and int(lanes[-1, -1]) - first + 1 == lanes.size:  # neighbours
            done = self._function(where, None, first, at.size, size, int(shared), self._out)
        else:
            lanes = np.ascontiguousarray(lanes)
            them: int = lanes.__array_interface__["data"][0]
            done = self._function(where, them, 0, at.size, size, int(shared), self._out)
        if not done:
            return None
        paid, needed, excess, warp = self._found.tolist()
        return paid, needed, excess, warp


@cache
def _prices(quick: ctypes.PyDLL) -> CompiledPrices:
    return CompiledPrices(quick.fragir_prices)


def compiled_prices() -> CompiledPrices | None:
    """What the compiled core has; None where it is not in use."""
    quick = library.quick()
    return None if quick is None else _prices(quick)


BANKS, WORD, SECTOR = 32, 4, 32
#: A global access is remarked upon where it moves this many times the sectors it needs, and
#: more than the one that an unaligned start costs.
EXCESS = 2
_ABSENT = -1
KEPT = 64  # patterns of an instruction whose price is remembered
FEW = 3  # patterns of one step that are priced one by one


@dataclass(frozen=True, slots=True)
class Worst:
    """The dearest access of an instruction: what it costs more than it must, and whose it is.

    `thread`: counted through the grid, a warp having 32. Of equals that of the lowest warp counts,
    and of its own the first, so that it does not matter which blocks run together.
    """

    excess: int
    thread: int
    address: int
    detail: str

    def beats(self, other: Worst) -> bool:
        if self.excess != other.excess:
            return self.excess > other.excess
        return self.thread // LANES < other.thread // LANES


NOTHING = Worst(0, -1, 0, "")
#: By instruction and kind of memory: passes or sectors paid, needed, and the dearest access.
Costs: TypeAlias = "dict[tuple[int, bool], tuple[int, int, Worst]]"


@dataclass(slots=True)
class Cost:
    """What one instruction's accesses to one kind of memory have cost so far."""

    instruction: Instruction
    shared: bool
    paid: int = 0
    needed: int = 0
    worst: Worst = NOTHING
    patterns: dict[bytes, tuple[int, int, str]] = field(
        default_factory=dict[bytes, "tuple[int, int, str]"]
    )


@dataclass(slots=True)
class PricedPattern:
    """What an access like the last ones of its instruction costs: `excess`: the most that a warp
    pays more than it must, `warp`: which."""

    pattern: AccessPattern
    moved: int
    cost: Cost
    paid: int
    needed: int
    excess: int
    warp: int


class CountsElsewhere(Protocol):
    """What straight-line runs have cost (`compiled_runs.py`)."""

    def collect(self) -> Iterable[tuple[Instruction, bool, int, int]]:
        """Instructions, whether in shared memory, paid and needed since the last time."""
        ...

    def dearest(self, instruction: Instruction, shared: bool, excess: int, warp: int) -> None:
        """What is known as the dearest access."""
        ...

    def forget(self) -> None:
        """No access has been the dearest."""
        ...


class Conflicts(Hooks):
    def __init__(self, machine: Machine, program: Program) -> None:
        super().__init__(machine, program)
        self.costs: dict[tuple[int, bool], Cost] = {}
        self._prices = compiled_prices()
        #: By instruction: whether it is looked at.
        self._counts: dict[int, bool] = {}
        #: By instruction: what it cost when it was last counted.
        self._priced: dict[int, PricedPattern] = {}
        #: Who has what straight-line runs have cost.
        self.runs: CountsElsewhere | None = None

    def compiled(self, d: Decoder, instruction: Instruction) -> bool:
        """Accesses."""
        return bool(self.program.opcode(instruction).access)

    def counts(self, ins: Instruction) -> bool:
        """Whether an instruction is looked at: what goes through caches of its own is not."""
        counts = self._counts.get(id(ins))
        if counts is None:
            counts = self.program.opcode(ins).bits != "fill" and not is_windowed(ins)
            self._counts[id(ins)] = counts
        return counts

    def on_access(self, access: Access) -> None:
        if access.pattern is not None and self._again(access, access.pattern):
            return
        if not self.counts(access.instruction) or access.space == "local":
            return
        for arena, at, lanes in access.parts():
            if at.size and arena is not self.machine.memory.local:
                self._count(access, arena, at, lanes)

    def _again(self, access: Access, pattern: AccessPattern) -> bool:
        """Counts an access that is like an earlier one; whether that was all."""
        last = self._priced.get(id(access.instruction))
        if last is None or last.pattern is not pattern:
            return False
        cost, worst = last.cost, last.cost.worst
        if (access.moved - last.moved) % (WORD if cost.shared else SECTOR):
            return False
        if last.excess >= worst.excess and last.excess:
            first = self._base() // LANES + last.warp
            if last.excess > worst.excess or first < worst.thread // LANES:
                return False
        cost.paid += last.paid
        cost.needed += last.needed
        return True

    def _count(self, access: Access, arena: Arena, at: I64, lanes: I64) -> None:
        shared = arena is self.machine.memory.shared
        cost = self._cost(access.instruction, shared)
        paid, needed = cost.paid, cost.needed
        excess, warp = self._price_all(cost, access, at, lanes)
        if access.pattern is not None:
            self._priced[id(access.instruction)] = PricedPattern(
                *(access.pattern, access.moved, cost),
                *(cost.paid - paid, cost.needed - needed, excess, warp),
            )

    def _price_all(self, cost: Cost, access: Access, at: I64, lanes: I64) -> tuple[int, int]:
        """Counts what every warp pays; the most that one pays more than it must, and which."""
        shared = cost.shared
        if self._prices is not None:
            found = self._prices.total(at, lanes, access.size, shared)
            if found is not None:
                paid, needed, excess, warp = found
                cost.paid += paid
                cost.needed += needed
                if excess and excess >= cost.worst.excess:
                    which = lanes.ravel() // LANES == warp
                    rows, _ = by_warp(at.ravel()[which], lanes.ravel()[which])
                    self._weigh(cost, access, _relative(rows, shared)[0], excess, warp, lanes)
                return excess, warp
        if at.ndim == 2 and at.shape[1] == LANES:
            rows, warps = at, lanes[:, 0] // LANES
        else:
            rows, warps = by_warp(at.ravel(), lanes.ravel())
        relative = _relative(rows, shared)
        rest, excess, which = np.arange(len(rows)), 0, 0
        for _ in range(FEW):  # mostly all warps access alike
            pattern = relative[rest[0]]
            if len(cost.patterns) == KEPT and pattern.tobytes() not in cost.patterns:
                break  # they do not come again
            paid, needed, _ = self._price(cost, access, pattern)
            same = (relative[rest] == pattern).all(axis=1)
            alike = int(same.sum())
            cost.paid += paid * alike
            cost.needed += needed * alike
            if paid - needed > excess:
                excess, which = paid - needed, int(rest[0])
            rest = rest[~same]
            if not len(rest):
                break
        if len(rest):
            each, least = (passes_of if shared else sectors_of)(relative[rest], access.size)
            cost.paid += int(each.sum())
            cost.needed += int(least.sum())
            most = int((each - least).argmax())
            if int(each[most] - least[most]) > excess:
                excess, which = int(each[most] - least[most]), int(rest[most])
        if excess and excess >= cost.worst.excess:
            self._weigh(cost, access, relative[which], excess, int(warps[which]), lanes)
        return excess, int(warps[which])

    def _price(self, cost: Cost, access: Access, pattern: I64) -> tuple[int, int, str]:
        """(paid, needed, in words) of a pattern."""
        text = pattern.tobytes()
        found = cost.patterns.get(text)
        if found is None:
            found = (passes if cost.shared else sectors)(pattern, access.size)
            if len(cost.patterns) < KEPT:
                cost.patterns[text] = found
        return found

    def _weigh(
        self, cost: Cost, access: Access, pattern: I64, excess: int, warp: int, lanes: I64
    ) -> None:
        """Keep the access of a warp where it is the dearest so far."""
        thread = self._base() + warp * LANES + int(np.flatnonzero(pattern != _ABSENT)[0])
        if Worst(excess, thread, 0, "").beats(cost.worst):
            every = access.address.ravel()
            own = int((lanes.ravel() // LANES == warp).argmax()) % every.size
            detail = self._price(cost, access, pattern)[2]
            cost.worst = Worst(excess, thread, int(every[own]), detail)
            if self.runs is not None:
                self.runs.dearest(cost.instruction, cost.shared, excess, thread // LANES)

    def _collect(self) -> None:
        """Adds what straight-line runs have cost."""
        for ins, shared, paid, needed in () if self.runs is None else self.runs.collect():
            self._cost(ins, shared).paid += paid
            self._cost(ins, shared).needed += needed

    def _cost(self, ins: Instruction, shared: bool) -> Cost:
        key = (id(ins), shared)
        cost = self.costs.get(key)
        if cost is None:
            cost = self.costs[key] = Cost(ins, shared)
        return cost

    def _base(self) -> int:
        """The number of the wave's first thread, counted through the grid, a warp having 32."""
        return self.machine.first_block * self.machine.warps_per_block * LANES

    # -- blocks in several processes -----------------------------------------------------------

    def partial(self) -> Costs:
        self._collect()
        if self.runs is not None:
            self.runs.forget()
        taken = {key: (c.paid, c.needed, c.worst) for key, c in self.costs.items()}
        for cost in self.costs.values():
            cost.paid, cost.needed, cost.worst = 0, 0, NOTHING
        return taken

    def merge(self, partial: Costs) -> None:
        instructions = {id(placed.ins): placed.ins for placed in self.program.code}
        for key, (paid, needed, worst) in partial.items():
            cost = self._cost(instructions[key[0]], key[1])
            cost.paid += paid
            cost.needed += needed
            if worst.beats(cost.worst):
                cost.worst = worst

    # -- the verdict -----------------------------------------------------------------------------

    def on_launch_end(self) -> None:
        self._collect()
        total = self.machine.report.statistics.conflicts
        for cost in self.costs.values():
            word = "passes" if cost.shared else "sectors"
            total[word] += cost.paid
            total[f"{word}_needed"] += cost.needed
        for cost in sorted(self.costs.values(), key=lambda each: each.instruction.at):
            limit = cost.needed if cost.shared else EXCESS * cost.needed - 1
            straddles = not cost.shared and cost.worst.excess < 2
            if cost.paid <= limit or straddles:
                continue
            kind = "bank-conflict" if cost.shared else "uncoalesced"
            at = cost.instruction.at
            worst = cost.worst
            message = f"{cost.instruction.mnemonic}: {worst.detail}"
            lane = worst.thread - self._base()
            self.found(self.program, at, kind, message, lane=lane, address=worst.address)


def _relative(rows: I64, shared: bool) -> I64:
    """Positions `[warp, lane]` counted from the first word or sector that each warp touches."""
    unit = WORD if shared else SECTOR
    present = rows != _ABSENT
    if present.all():
        return rows - (rows.min(axis=1) // unit * unit)[:, None]
    first = np.where(present, rows, np.iinfo(np.int64).max).min(axis=1)
    return np.where(present, rows - (first // unit * unit)[:, None], _ABSENT)


def by_warp(at: I64, lanes: I64) -> tuple[I64, I64]:
    """Positions as [warp, lane], absent ones marked, and the numbers of the warps."""
    if (
        len(at) % LANES == 0
        and (lanes % LANES == np.tile(np.arange(LANES), len(at) // LANES)).all()
    ):
        return at.reshape(-1, LANES), lanes[::LANES] // LANES
    warps, row = np.unique(lanes // LANES, return_inverse=True)
    result = np.full((len(warps), LANES), _ABSENT, np.int64)
    result[row, lanes % LANES] = at
    return result, warps


def passes_of(patterns: I64, size: int) -> tuple[I64, I64]:
    """(passes taken, passes needed) of every row of `[warp, lane]`; see `passes`."""
    group = max(1, min(LANES, BANKS * WORD // max(size, WORD)))
    rows = patterns.reshape(-1, group)
    absent = rows == _ABSENT
    parts = max(1, size // WORD)
    words = (rows[:, :, None] // WORD + np.arange(parts)).reshape(len(rows), -1)
    words = np.where(np.repeat(absent, parts, axis=1), _ABSENT, words)
    words.sort(axis=1)
    new = words != _ABSENT
    new[:, 1:] &= words[:, 1:] != words[:, :-1]
    row, column = np.nonzero(new)
    banks = np.bincount(row * BANKS + words[row, column] % BANKS, minlength=len(rows) * BANKS)
    paid = banks.reshape(len(rows), BANKS).max(axis=1)
    needed = ~absent.all(axis=1)
    per = LANES // group
    return paid.reshape(-1, per).sum(axis=1), needed.reshape(-1, per).sum(axis=1)


def sectors_of(patterns: I64, size: int) -> tuple[I64, I64]:
    """(sectors touched, sectors needed) of every row of `[warp, lane]`; see `sectors`."""
    absent = patterns == _ABSENT
    starts = np.sort(patterns, axis=1)
    new = starts != _ABSENT
    new[:, 1:] &= starts[:, 1:] != starts[:, :-1]
    needed = -(-new.sum(axis=1) * size // SECTOR)
    first = np.where(absent, _ABSENT, patterns // SECTOR)
    last = np.where(absent, _ABSENT, (patterns + size - 1) // SECTOR)
    touched = np.sort(np.concatenate([first, last], axis=1), axis=1)
    other = touched != _ABSENT
    other[:, 1:] &= touched[:, 1:] != touched[:, :-1]
    return other.sum(axis=1), needed


def passes(pattern: I64, size: int) -> tuple[int, int, str]:
    """(passes that it takes, passes without conflicts, who collides) of one warp's access."""
    group = max(1, min(LANES, BANKS * WORD // max(size, WORD)))
    paid = needed = worst = 0
    detail = ""
    for start in range(0, LANES, group):
        lanes = np.arange(start, start + group)
        lanes = lanes[pattern[lanes] != _ABSENT]
        if not len(lanes):
            continue
        words = pattern[lanes][:, None] // WORD + np.arange(max(1, size // WORD))
        owners = np.broadcast_to(lanes[:, None], words.shape).ravel()
        unique, which = np.unique(words.ravel(), return_index=True)
        count = np.bincount(unique % BANKS, minlength=BANKS)
        busiest = int(count.argmax())
        paid += int(count[busiest])
        needed += 1
        if count[busiest] > max(1, worst):
            worst = int(count[busiest])
            who = owners[which[unique % BANKS == busiest]]
            detail = f"{worst}-way bank conflict between lanes {', '.join(map(str, who))}"
    return paid, needed, detail


def sectors(pattern: I64, size: int) -> tuple[int, int, str]:
    """(sectors touched, sectors needed, in words) of one warp's access."""
    start = pattern[pattern != _ABSENT]
    unique = distinct(start)
    touched = distinct(np.concatenate([unique // SECTOR, (unique + size - 1) // SECTOR]))
    bytes_needed = len(distinct(unique[:, None] + np.arange(size)))
    needed = -(-bytes_needed // SECTOR)
    return (
        len(touched),
        needed,
        f"a warp touches {len(touched)} sectors of {SECTOR} bytes for {bytes_needed} bytes, "
        f"which {needed} would hold",
    )
