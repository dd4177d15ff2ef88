"""What a run gives back."""

from __future__ import annotations

import linecache
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from fragir.errors import FragirError, short_text

#: error: wrong results are possible; letter: wrong by the text of the PTX ISA, harmless on every
#: machine known (the message quotes the sentence); remark: it only costs time.
Severity: TypeAlias = Literal["error", "letter", "remark"]


#: Where a line of the PTX comes from in the program that it was made of, FILE:LINE:COL, or "".
Places: TypeAlias = Callable[[int], str]
_LINE = re.compile(r"\bline (\d+)\b")


def placed_words(text: str, places: Places) -> str:
    """A sentence that names lines of the PTX, with those of the program in their place:
    `line 49` is `k.py:8:5 (PTX 49)`."""

    def placed(found: re.Match[str]) -> str:
        place = places(int(found[1]))
        return f"{place} (PTX {found[1]})" if place else found[0]

    return _LINE.sub(placed, text)


# -- why -------------------------------------------------------------------------------------------
# What barriers have to do with a finding: their phases, who has come to them, who has not.


def _numbers(numbers: Iterable[int]) -> str:
    """`0-3, 5`."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def counted(number: int, word: str) -> str:
    """`1 arrival`, `2 arrivals`."""
    return f"{number} {word}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Party:
    """Threads of a block at a statement: `lanes` of them in `warps`, at a line of the PTX."""

    block: tuple[int, ...]
    warps: tuple[int, ...]
    lanes: int
    line: int | None

    @property
    def warps_text(self) -> str:
        return f"warp{'' if len(self.warps) == 1 else 's'} {_numbers(self.warps)}"

    def text(self, block: tuple[int, ...] | None = None) -> str:
        """In words; without its block where that is `block`."""
        where = "" if self.block == block else f"block {self.block} "
        place = "" if self.line is None else f" at line {self.line}"
        return f"{where}{self.warps_text} ({counted(self.lanes, 'lane')}){place}"


#: before: the same warp has arrived there in the phase before; ahead: from where it stands it can
#: come to an arrival at this barrier; may: to one whose barrier is not known before it runs; none:
#: to none at all.
Ground: TypeAlias = Literal["before", "ahead", "may", "none"]
#: What is said of the line of an arrival, or of a copy.
_GROUNDS: dict[Ground, str] = {
    "before": "in the phase before its {what} was at line {line}",
    "ahead": "ahead of it is the {what} at line {line}",
    "may": "ahead of it is the {what} at line {line}, which may be for this barrier",
    "none": "no {what} for this barrier is ahead of it",
}


@dataclass(frozen=True, slots=True)
class Awaited:
    """Threads that have not come to a barrier: where they stand, and what they do there.

    `arrival`: the line of the arrival (`copy`: of the copy whose bytes count) that they would come
    to, None where there is none; `ground`: how that is known.
    """

    party: Party
    does: str
    arrival: int | None
    ground: Ground
    copy: bool = False

    @property
    def ground_text(self) -> str:
        what = "copy" if self.copy else "arrival"
        return _GROUNDS[self.ground].format(what=what, line=self.arrival)

    def text(self, block: tuple[int, ...]) -> str:
        """In words; without its block where that is `block`."""
        return f"{self.party.text(block)}, which {self.does}: {self.ground_text}"


@dataclass(frozen=True, slots=True)
class BarrierSeen:
    """A phase of a barrier: an mbarrier, a barrier of a block by its number, that of a cluster.

    `phase` counts from 0, since the initialisation of an mbarrier or the block's beginning, None
    where it was not counted; `parity`: what a wait for the phase's end names. `came` of `wants`
    arrivals (of barriers of blocks and clusters: threads) are there, and `bytes` of copies are
    missing. `arrived` is None where nobody took down who came, `awaited` where nobody has looked
    who did not. `offset`: of an mbarrier, in the shared memory of its block. `ended`: the phase is
    over.
    """

    name: str
    block: tuple[int, ...]
    phase: int | None
    parity: int | None
    came: int
    wants: int
    bytes: int = 0
    waiting: tuple[Party, ...] = ()
    arrived: tuple[Party, ...] | None = ()
    awaited: tuple[Awaited, ...] | None = None
    offset: int | None = None
    ended: bool = False

    @property
    def phase_text(self) -> str:
        """`phase 2 of mbarrier full[0] (parity 0, shared offset 8)`, as far as it is known."""
        known = [] if self.parity is None else [f"parity {self.parity}"]
        known += [] if self.offset is None else [f"shared offset {self.offset}"]
        phase = "" if self.phase is None else f"phase {self.phase} of "
        return f"{phase}{self.name}" + (f" ({', '.join(known)})" if known else "")

    @property
    def lacks(self) -> str:
        """What the phase waits for, in words."""
        word = "thread" if self.parity is None else "arrival"
        parts = [counted(self.wants - self.came, word)] if self.came < self.wants else []
        parts += [counted(self.bytes, "byte")] if self.bytes > 0 else []
        return " and ".join(parts) or "nothing"

    def lines(self) -> list[str]:
        """In words: a line of what it is, and indented ones of who came, and who did not."""
        word = "threads" if self.parity is None else "arrivals"
        head = f"{self.phase_text} of block {self.block}: "
        if self.ended:
            head += f"it has ended with {self.wants} {word}"
        else:
            head += f"{self.came} of {self.wants} {word} have come, it lacks {self.lacks}"
        if self.bytes < 0:
            head += f", and {-self.bytes} bytes more have come than it expects"
        found = [head]
        found += [f"  waits: {party.text(self.block)}" for party in self.waiting]
        found += [f"  arrived: {party.text(self.block)}" for party in self.arrived or ()]
        if self.arrived == () and not self.came:
            found.append("  arrived: nobody")
        found += [f"  not arrived: {one.text(self.block)}" for one in self.awaited or ()]
        if self.awaited == () and self.lacks != "nothing":
            found.append("  not arrived: no thread has an arrival here ahead of it")
        return found


@dataclass(frozen=True, slots=True)
class Link:
    """A part of a cycle: who waits for which phase, which lacks the arrival of the next one."""

    party: Party
    barrier: BarrierSeen
    awaited: Awaited

    def text(self) -> str:
        other = self.awaited.party
        where = "" if other.block == self.party.block else f"block {other.block} "
        return (
            f"{self.party.warps_text} waits at line {self.party.line} for "
            f"{self.barrier.phase_text}, which lacks {self.barrier.lacks}, from "
            f"{where}{other.warps_text}: {self.awaited.ground_text}"
        )


@dataclass(frozen=True, slots=True)
class Why:
    """The protocol behind a deadlock, a race or a broken rule: which barriers, who has come to
    them, who waits for whom in a circle, and what else is known, in sentences. `places`: of a
    compiled kernel, the program's place of each line of the PTX that is named."""

    barriers: tuple[BarrierSeen, ...] = ()
    cycle: tuple[Link, ...] = ()
    notes: tuple[str, ...] = ()
    places: tuple[tuple[int, str], ...] = ()

    def __repr__(self) -> str:
        return short_text(f"<{'; '.join(line.strip() for line in self.lines())}>")

    def lines(self) -> list[str]:
        """In words, the cycle first."""
        known = dict(self.places)
        return [placed_words(line, lambda number: known.get(number, "")) for line in self._lines()]

    def at(self, places: Places) -> Why:
        """The same, of a kernel whose lines come from these places."""
        named = {int(number) for line in self._lines() for number in _LINE.findall(line)}
        return replace(self, places=tuple((number, places(number)) for number in sorted(named)))

    def _lines(self) -> list[str]:
        found: list[str] = []
        if self.cycle:
            found.append("they wait for each other:" if len(self.cycle) > 1 else "it waits:")
            found += [f"  {link.text()}" for link in self.cycle]
        for barrier in self.barriers:
            found += barrier.lines()
        return [*found, *self.notes]


# -- findings --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong that did not stop the run.

    `kind` is one of `KINDS`; line and col are places in the PTX (1-based). `subject`: what of the
    instruction it is about (a register, an operand, the other line of a race), for telling apart
    findings at one place. `severity`: see `Severity`; remarks are in `Report.remarks`.
    `other`: line and col of the other access, where it is about two. `count`: how many
    findings of this cause it stands for, as their first (`gather`). `places`: of the program that
    the PTX was made of, its statement and the other access's, as FILE:LINE:COL (compiled kernels).
    `compiled_from`: the same of foreign PTX, as its `.loc` say it. `why`: the barriers that it is
    about.
    """

    kind: str
    message: str
    file: str | None = None
    line: int | None = None
    col: int | None = None
    warp: int | None = None
    lane: int | None = None
    address: int | None = None
    subject: str = ""
    severity: Severity = "error"
    other: tuple[int | None, int | None] | None = None
    count: int = 1
    places: tuple[str, ...] = ()
    why: Why | None = None
    compiled_from: tuple[str, ...] = ()

    def __repr__(self) -> str:
        times = f", {self.times}" if self.count > 1 else ""
        return short_text(
            f"<{self.severity} {self.kind} at {self.place or 'no line'}{times}: {self.message}>",
            130,
        )

    @property
    def place(self) -> str:
        """Where it is, in words: of a compiled kernel `k.py:8:5 (PTX 49)`, of foreign PTX
        `k.ptx:49:5`, with `(k.cu:8:5)` where it has a `.loc`."""
        if self.places:
            return f"{self.places[0]} (PTX {self.line})"
        place = ":".join(str(x) for x in (self.file, self.line, self.col) if x is not None)
        return f"{place} ({self.compiled_from[0]})" if self.compiled_from else place

    @property
    def times(self) -> str:
        """`16 accesses`, or `16 times` where it is about none."""
        return f"{self.count} {'times' if self.address is None else 'accesses'}"

    @property
    def statements(self) -> tuple[object, ...]:
        """The statement that it is about, of races both, by which a cause is told apart."""
        if self.places:
            return self.places
        if self.other is not None:
            return (self.line, self.col), self.other
        return self.file, self.line, self.col, self.subject


BOTH_WAYS = "; so it is the other way round"


def gather(*runs: Iterable[Finding], ordered: bool = False) -> list[Finding]:
    """The findings of one kind at the same statements as one, which is the first of the gravest.

    Those of one run are counted together; of several runs, which find the same, the largest count
    is kept. Which of two accesses comes first depends on the schedule, so that they are one pair,
    unless `ordered`: of one regular run both orders tell of two barriers that a loop lacks. Where
    there is an error to tell of two accesses, no letter is kept.
    """
    found: dict[tuple[object, ...], Finding] = {}
    both: dict[tuple[object, ...], None] = {}
    for run in runs:
        counts = Counter[tuple[object, ...]]()
        for one in run:
            # Operands are wrong each for its own reason; where a run stood at its limit is chance.
            at = () if one.kind == "limit" else one.statements
            pair = at if ordered or one.other is None else frozenset(at)
            key = one.kind, pair, one.kind == "fragment" and one.subject
            counts[key] += one.count
            known = found.setdefault(key, one)
            if pair != at and known.statements != one.statements:
                both[key] = None
            graver = one if (known.severity, one.severity) == ("letter", "error") else known
            found[key] = replace(graver, count=max(counts[key], known.count))
    for key in both:
        message = found[key].message
        if BOTH_WAYS not in message:
            found[key] = replace(found[key], message=message + BOTH_WAYS)
    worse = {one.statements for one in found.values() if one.severity == "error"}
    return [
        one
        for one in found.values()
        if one.severity != "letter" or one.other is None or one.statements not in worse
    ]


def place_findings(findings: Iterable[Finding], places: Places) -> list[Finding]:
    """Findings of a compiled kernel by the statements of its program, gathered."""
    found: list[Finding] = []
    for one in findings:
        lines = [one.line, *([] if one.other is None else [one.other[0]])]
        at = tuple(places(line) for line in lines if line is not None)
        if len(at) == len(lines) and all(at):
            why = one.why and one.why.at(places)
            words = placed_words(one.message, places)
            one = replace(one, places=at, message=words, why=why, compiled_from=())
        found.append(one)
    return gather(found)


#: kind -> what it means.
KINDS: dict[str, str] = {
    "uninitialised": "a register or shared memory was used before anything was written there",
    "fragment": "elements of an mma or wgmma operand that do not belong to the matrix it holds",
    "race": "accesses to the same bytes, one a write, that nothing orders",
    "read-only": "ld.global.nc or ldu of bytes that the kernel writes",
    "proxy-fence": "wgmma or a bulk copy accesses what threads wrote without fence.proxy.async",
    "pending-source": "shared memory is overwritten that a wgmma or bulk copy may still read",
    "pending-copy": "bytes that an asynchronous copy has yet to write are used (stops the run)",
    "mbarrier": "an mbarrier is used before its initialisation, initialised twice, miscounted",
    "tensor-memory": "tensor memory is allocated, freed or addressed against its rules",
    "pending-tensor": "tensor memory that a tcgen05 instruction has yet to write (stops the run)",
    "divergent": "a collective instruction is not executed by the lanes that it needs, together",
    "wgmma-fence": "registers of a wgmma were written, or read, without a wgmma.fence before it",
    "wgmma-registers": "registers of a pending wgmma are touched (stops the run)",
    "cluster-barrier": "barrier.cluster.arrive and .wait of a thread do not take turns",
    "schedule": "an arrival or a wait may fall into another phase of a barrier than it did",
    "registers": "setmaxnreg asks for more than the block's pool has, or in the wrong direction",
    "operand": "an operand holds what PTX gives no meaning: metadata, a size, a parity",
    "unretired": "an asynchronous copy or wgmma was still pending when its thread exited",
    "out-of-bounds": "an access beyond a variable; outside memory altogether it stops the run",
    "misaligned": "an address is no multiple of the size of the access (stops the run)",
    "deadlock": "nothing can change any more; the message says who waits where (stops the run)",
    "limit": "the run was stopped at the limit that was set for it (stops the run)",
    "stopped": "anything else because of which the kernel cannot go on (stops the run)",
    "bank-conflict": "lanes access different words of one bank of shared memory (a remark)",
    "uncoalesced": "a global access touches at least twice the sectors it needs (a remark)",
}

DEPENDS = "schedule-dependent"
#: Kinds of what several runs of a launch show together; `fragir check` finds them.
OF_SEVERAL_RUNS: dict[str, str] = {
    DEPENDS: "two legal schedules give different results in a buffer that the kernel writes"
}

#: Kinds that cost time and are no faults: remarks.
PERFORMANCE = frozenset({"bank-conflict", "uncoalesced"})


@dataclass(slots=True)
class FragmentUse:
    """What arrived in one operand of one tensor-core instruction (`run(..., fragments=True)`).

    The matrix of `shape` (rows, columns) and elements of `bits` bits lies in `buffer`: its element
    [0,0] at byte `first` in the lowest execution and at `last` in the highest; `row_stride` and
    `column_stride` are in bits. `count`: executions, one for each warp (wgmma: warpgroup).
    `consistent`: whether every element that was loaded belongs to that matrix.
    """

    line: int | None
    mnemonic: str
    operand: str
    shape: tuple[int, int]
    bits: int
    buffer: str
    first: int
    last: int
    row_stride: int
    column_stride: int
    consistent: bool
    count: int = 0

    def __repr__(self) -> str:
        size = " x ".join(map(str, self.shape))
        fits = "" if self.consistent else ", no matrix"
        return (
            f"<{self.operand} of line {self.line}: {size} of {self.buffer} at {self.first}{fits}>"
        )


@dataclass(slots=True)
class Statistics:
    """Counts over a whole launch.

    `instructions`: warp instructions by opcode word; `lanes`: lane instructions issued (32 for
    each warp instruction); `mma`: tensor-core instructions (wgmma counts once per warpgroup);
    `loaded` and `stored`: bytes by space. `conflicts`, counted with `check` only: passes that
    shared memory took (`passes`) and had to (`passes_needed`), sectors of 32 bytes of global memory
    that warps touched (`sectors`) and would fill (`sectors_needed`).
    """

    instructions: Counter[str] = field(default_factory=Counter[str])
    lanes: int = 0
    mma: int = 0
    loaded: Counter[str] = field(default_factory=Counter[str])
    stored: Counter[str] = field(default_factory=Counter[str])
    conflicts: Counter[str] = field(default_factory=Counter[str])
    rounds: int = 0
    seconds: float = 0.0
    decode_seconds: float = 0.0

    def __repr__(self) -> str:
        moved = self.loaded["global"], self.stored["global"]
        return (
            f"<{self.total} warp instructions, {self.mma} of them on tensor cores; "
            f"{moved[0]} bytes loaded, {moved[1]} stored>"
        )

    @property
    def total(self) -> int:
        """All warp instructions."""
        return sum(self.instructions.values())

    def add(self, other: Statistics) -> None:
        """Counts those of another launch too."""
        self.instructions += other.instructions
        self.loaded += other.loaded
        self.stored += other.stored
        self.conflicts += other.conflicts
        self.lanes += other.lanes
        self.mma += other.mma
        self.rounds += other.rounds
        self.seconds += other.seconds
        self.decode_seconds += other.decode_seconds


@dataclass(frozen=True, slots=True)
class OpenSchedule:
    """An instruction whose outcome is up to the schedule, by its line in the PTX, and why."""

    line: int | None
    why: str


@dataclass(frozen=True, slots=True)
class Schedules:
    """For which schedules a run with checks speaks: for every one, or for those that ran where some
    instructions are `open`. `assumptions`: what that takes for granted, by name."""

    open: list[OpenSchedule]
    assumptions: list[str]

    @property
    def every(self) -> bool:
        return not self.open

    def with_(self, other: Schedules | None) -> Schedules:
        """Of two launches."""
        if other is None:
            return self
        return Schedules(
            [*self.open, *(one for one in other.open if one not in self.open)],
            [*self.assumptions, *(a for a in other.assumptions if a not in self.assumptions)],
        )


@dataclass(frozen=True, slots=True)
class OpenValue:
    """What depends on the contents of an array beside data: `what` of the instruction at a line,
    and which parameter's or variable's contents; None where that is not followed."""

    line: int | None
    what: str
    argument: str | None


@dataclass(frozen=True, slots=True)
class ArrayValues:
    """For which contents of the arrays a run with checks speaks: for every one, or for these where
    something is `open`. `structure`: the arguments whose contents count as part of the launch."""

    open: list[OpenValue]
    structure: list[str]

    @property
    def every(self) -> bool:
        return not self.open

    def with_(self, other: ArrayValues | None) -> ArrayValues:
        """Of two launches."""
        if other is None:
            return self
        return ArrayValues(
            [*self.open, *(one for one in other.open if one not in self.open)],
            [*self.structure, *(n for n in other.structure if n not in self.structure)],
        )


@dataclass(slots=True)
class Report:
    """Statistics and findings of one launch; `fragments` where they were asked for.

    `remarks` are findings of severity remark (the kinds in `PERFORMANCE`), `findings` all others.
    `schedules` and `data`: with checks, for which schedules and for which contents of the arrays
    they speak.
    `printed`: what the kernel printed, one text for each lane's printf, in the order of execution.
    `notes`: sentences on the launch, say of constants that nobody has set.
    """

    statistics: Statistics = field(default_factory=Statistics)
    findings: list[Finding] = field(default_factory=list[Finding])
    remarks: list[Finding] = field(default_factory=list[Finding])
    fragments: list[FragmentUse] = field(default_factory=list[FragmentUse])
    printed: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])
    schedules: Schedules | None = None
    data: ArrayValues | None = None

    def __repr__(self) -> str:
        ran = f"{self.statistics.total} warp instructions, {self.statistics.mma} on tensor cores"
        return f"<{ran}; {len(self.findings)} findings, {len(self.remarks)} remarks>"

    def add(self, other: Report) -> None:
        """Has what another launch has given, too."""
        self.statistics.add(other.statistics)
        self.findings += other.findings
        self.remarks += other.remarks
        self.fragments += other.fragments
        self.printed += other.printed
        self.notes += [note for note in other.notes if note not in self.notes]
        if other.schedules is not None:
            self.schedules = other.schedules.with_(self.schedules)
        if other.data is not None:
            self.data = other.data.with_(self.data)


Asynchrony: TypeAlias = Literal["late", "early", "random"]


@dataclass(eq=False)
class EmulationError(FragirError):
    """What went wrong while a kernel ran: names kernel, line, warp, lane, address.

    `kind` is one of `KINDS` (report.py); `warp` is the number in its block. `why`: of a deadlock,
    the barriers at which it stands still. The line is that of the PTX; of a compiled kernel it is
    the program's, and `ptx_line` the other. `compiled_from`: what a `.loc` says of it.
    """

    kind: str = "stopped"
    warp: int | None = None
    lane: int | None = None
    address: int | None = None
    report: Report | None = None  # what was found before
    why: Why | None = None
    ptx_line: int | None = None
    compiled_from: str = ""

    @property
    def place(self) -> str:
        """As of a `Finding`."""
        place = super().place
        if self.ptx_line is not None:
            return f"{place} (PTX {self.ptx_line})"
        return f"{place} ({self.compiled_from})" if self.compiled_from else place

    def put_at(self, places: Places) -> None:
        """Says of an error of a compiled kernel where in the program it is."""
        if self.line is None or not (place := places(self.line)):
            return
        self.message = placed_words(self.message, places)
        self.why = self.why and self.why.at(places)
        self.ptx_line = self.line
        self.file, line, col = place.rsplit(":", 2)
        self.line, self.col = int(line), int(col)
        self.source = linecache.getline(self.file, self.line).rstrip("\n") or None
