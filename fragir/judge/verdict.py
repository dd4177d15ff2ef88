"""What a judgement says: a word, why, and what it did not look at; as JSON and as SARIF."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field

from fragir.emulator.checks.coverage import Covered
from fragir.emulator.report import ArrayValues, Schedules
from fragir.errors import short_text
from fragir.judge.meanings import EXIT, Document, Word
from fragir.judge.sarif import log
from fragir.redundancy import NotNeeded

#: What wins where there are several reasons.
_GRAVITY: tuple[Word, ...] = ("fail", "unsupported", "incomplete")


@dataclass(frozen=True)
class Reason:
    """Why the verdict is no `pass`, or would not be one with `strict` (`verdict` is then "pass").

    `kind` is in `fragir.judge.meanings.meanings()`. `case`: which, from 0 on. `line` and `col`
    are of the PTX.
    """

    verdict: Word
    kind: str
    message: str
    case: int | None = None
    file: str | None = None
    line: int | None = None
    col: int | None = None

    def __repr__(self) -> str:
        place = "" if self.line is None else f" at line {self.line}"
        return short_text(f"<{self.verdict}: {self.kind}{place}: {self.message}>")

    def document(self) -> Document:
        return {
            "verdict": self.verdict,
            "kind": self.kind,
            "message": " ".join(self.message.split()),
            "case": self.case,
            "file": self.file,
            "line": self.line,
            "col": self.col,
        }


@dataclass(frozen=True)
class JudgedLaunch:
    """One launch: shapes of its arrays in the order of the arguments; `instructions` of warps.
    `equality` is that of its case."""

    case: int
    entry: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shapes: list[list[int]]
    equality: str
    instructions: int
    covered: Covered

    def document(self) -> Document:
        return {
            "case": self.case,
            "entry": self.entry,
            "grid": list(self.grid),
            "block": list(self.block),
            "shapes": self.shapes,
            "equality": self.equality,
            "instructions": self.instructions,
            "coverage": coverage_document(self.covered),
        }


def coverage_document(covered: Covered) -> Document:
    return {
        "statements": list(covered.counts),
        "missed": covered.missed,
        "branches_one_way": covered.branches_one_way,
        "guards_one_way": covered.guards_one_way,
    }


@dataclass
class Judgement:
    """What is known of a kernel after its cases.

    `reasons`: all that speaks against a pass; `letters`: what is wrong by the letter of the PTX ISA
    only. `coverage`: by entry, of all launches together. `untried`: by the name of a size, kinds of
    sizes that no case has, each with one. `schedules`, `data`: None where no run came to its end.
    `compared`: lines at which data was compared. `unproved`: why it is not known to be the same
    function, and the first case of which it is not. `not_needed`, where it was asked for: what of
    the synchronisation could go, or why that is not said.
    """

    reasons: list[Reason] = field(default_factory=list[Reason])
    letters: list[Reason] = field(default_factory=list[Reason])
    launches: list[JudgedLaunch] = field(default_factory=list[JudgedLaunch])
    coverage: dict[str, Covered] = field(default_factory=dict[str, Covered])
    unlaunched: list[str] = field(default_factory=list[str])
    untried: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    schedules: Schedules | None = None
    data: ArrayValues | None = None
    assumes: dict[str, str] = field(default_factory=dict[str, str])
    compared: list[int] = field(default_factory=list[int])
    unproved: dict[str, int] = field(default_factory=dict[str, int])
    not_needed: NotNeeded | str | None = None
    sandbox: str = "none"
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict[str, str])

    def __repr__(self) -> str:
        return f"<{self.word}: {len(self.launches)} launches, {len(self.reasons)} reasons>"

    @property
    def word(self) -> Word:
        """The gravest of the reasons, or pass."""
        found = {reason.verdict for reason in self.reasons}
        for word in _GRAVITY:
            if word in found:
                return word
        return "pass"

    @property
    def exit_code(self) -> int:
        return EXIT[self.word]

    @property
    def equality(self) -> str:
        """The weakest of all launches."""
        found = {launch.equality for launch in self.launches}
        weak = (word for word in ("not decided", "bounded") if word in found)
        return next(weak, next(iter(sorted(found)), "not decided"))

    def document(self) -> Document:
        """The document of `fragir judge --json`."""
        return {
            "verdict": self.word,
            "reasons": [reason.document() for reason in self.reasons],
            "letters": [reason.document() for reason in self.letters],
            "equality": self.equality,
            "schedules": self._schedules(),
            "data": self._data(),
            "structure": [] if self.data is None else self.data.structure,
            "launches": [launch.document() for launch in self.launches],
            "coverage": {e: coverage_document(c) for e, c in sorted(self.coverage.items())},
            "unlaunched": self.unlaunched,
            "untried": self.untried,
            "compared": self.compared,
            "unproved": [{"case": case, "why": why} for why, case in self.unproved.items()],
            "assumes": [
                {"name": name, "means": self.assumes[name]} for name in sorted(self.assumes)
            ],
            "sandbox": self.sandbox,
            "seed": self.seed,
            "versions": self.versions,
            **self._not_needed(),
        }

    def _not_needed(self) -> Document:
        match self.not_needed:
            case None:
                return {}
            case str():
                return {"not_needed": {"refused": self.not_needed}}
            case _:
                return {"not_needed": self.not_needed.document()}

    def _schedules(self) -> Document | str | None:
        if self.schedules is None:
            return None
        if self.schedules.every:
            return "every"
        opened = [{"line": one.line, "why": one.why} for one in self.schedules.open]
        return {"ran": 1, "open": opened}

    def _data(self) -> Document | str | None:
        if self.data is None or self.data.every:
            return None if self.data is None else "every value"
        return {"these": True, "open": [asdict(one) for one in self.data.open]}

    def sarif(self, kernel: str) -> Document:
        """The reasons as a log of SARIF 2.1.0; `kernel`: the file they are in."""
        return log([(kernel, self.document(), None)], self.versions.get("fragir", "0"))


def union(covered: Iterable[tuple[str, Covered]]) -> dict[str, Covered]:
    """By entry, of all runs together."""
    found: dict[str, Covered] = {}
    for entry, one in covered:
        found[entry] = found[entry] | one if entry in found else one
    return found
