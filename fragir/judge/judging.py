"""Runs a kernel's cases with every check on, and says what that shows.

Each case runs twice, on outputs that are NaN, another NaN in each: what is the same NaN afterwards
has not been written, and what differs depends on what stood there. Both have every check, as a
kernel can tell them apart by what it finds; the second follows the data too, and counts which
statements are executed. Whatever raises is no pass.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from platform import python_version
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fragir.algebra import ROUNDS
from fragir.emulator import EmulationError, Finding, Report, Stream, run
from fragir.emulator.checks.coverage import Coverage, Covered
from fragir.emulator.checks.schedules.choices import ASSUMPTIONS
from fragir.errors import FragirError
from fragir.judge.case import untried
from fragir.judge.equality import UNDECIDED, judge_equality
from fragir.judge.following import Following, NotFollowedError
from fragir.judge.sandbox import BrokenCaseError, CaseLimits, Prepared, PreparedCases, prepare
from fragir.judge.shipping import Array, PackedCall, PackedCase
from fragir.judge.verdict import JudgedLaunch, Judgement, Reason, union
from fragir.ptx import parse
from fragir.ptx.reader import PtxSyntaxError
from fragir.redundancy import NotNeeded, not_needed
from fragir.reference.formats import FLOATS

if TYPE_CHECKING:
    from fragir.emulator.checks.selection import MakesCheck
    from fragir.ptx import Module

T = TypeVar("T")
#: Characters of a PTX file that is looked at.
MOST_CHARACTERS = 32 << 20
#: Warp instructions and seconds of one run.
LIMIT = (1_000_000_000, 600.0)


@dataclass(frozen=True)
class Judging:
    """How a kernel is judged.

    `seed`: of the case's random generator; None draws one. `rounds`: evaluations in finite fields,
    of which each proves equality but for a probability of 2^-20. `structure`: positions of
    arguments that are part of the launch, in every call, beside those that the case names.
    `strict`: what the checks find by the letter of the ISA alone is a fault, and statements that
    were not executed, or guards that went one way, make the verdict incomplete. `not_needed`: what
    of the kernel's synchronisation all launches could do without is asked, too. `limit`: warp
    instructions and seconds of each run. `case_limits`: of the process that runs the case file.
    `jobs`: as in `run`.
    """

    seed: int | None = None
    rounds: int = ROUNDS
    structure: tuple[int, ...] = ()
    strict: bool = False
    not_needed: bool = False
    limit: tuple[int | None, float | None] = LIMIT
    case_limits: CaseLimits = field(default_factory=CaseLimits)
    jobs: int | None = None


def judge(ptx: str, case: str, how: Judging | None = None, *, name: str = "<ptx>") -> Judgement:
    """The verdict on the kernels of a PTX, by the cases of MODULE:FUNCTION or FILE.py:FUNCTION.

    The case file runs in a process of its own, before any kernel does. `name` stands for the PTX in
    reasons. Raises BrokenCaseError where the case, or how its launches fit the kernel, is at fault.
    """
    how = how or Judging()
    seed = secrets.randbits(32) if how.seed is None else how.seed
    return judge_prepared(ptx, prepare(case, seed, how.case_limits, how.rounds), how, name=name)


def judge_prepared(
    ptx: str, prepared: PreparedCases, how: Judging | None = None, *, name: str = "<ptx>"
) -> Judgement:
    """The same by cases that `prepare` has made before, for several kernels of one problem."""
    how = how or Judging()
    verdict = Judgement(seed=prepared.seed, versions=_versions(), sandbox=prepared.sandbox)
    module = _read(ptx, name, verdict)
    if module is not None:
        _Judge(module, how, verdict, prepared.rounds).all(prepared.cases)
    return verdict


def _versions() -> dict[str, str]:
    packages = {package: version(package) for package in ("fragir", "numpy")}
    return {**packages, "python": python_version()}


def _read(ptx: str, name: str, verdict: Judgement) -> Module | None:
    """The tree of the text; None, and a reason in the verdict, where there is none."""
    if len(ptx) > MOST_CHARACTERS:
        text = f"the PTX has {len(ptx)} characters, more than {MOST_CHARACTERS}"
        verdict.reasons.append(Reason("incomplete", "limit", text, file=name))
        return None
    try:
        return parse(ptx, name)
    except PtxSyntaxError as error:
        place = error.file or name, error.line, error.col
        verdict.reasons.append(Reason("fail", "syntax", error.sentence, None, *place))
        return None


class _Stop(Exception):
    """A run did not come to its end; the reason stands in the verdict."""


@dataclass(frozen=True)
class _Ran:
    """One run of a case: the memory behind it, and a report and a coverage for every call."""

    memory: list[Array]
    reports: list[Report]
    covered: list[Covered]
    followed: Following | str = "it was not followed"


class _Judge:
    def __init__(self, module: Module, how: Judging, verdict: Judgement, rounds: int) -> None:
        self.module, self.how, self.verdict, self.rounds = module, how, verdict, rounds
        self.sizes: defaultdict[str, list[Sequence[int]]] = defaultdict(list)

    def all(self, cases: Sequence[Prepared]) -> None:
        verdict = self.verdict
        if not any(prepared.case.calls for prepared in cases):
            self._incomplete("nothing", "no case launches a kernel")
        for prepared in cases:
            self._before(prepared, prepared.number)
            try:
                self._case(prepared, prepared.number)
            except _Stop:
                continue
            for name, numbers in prepared.case.tiles.items():
                self.sizes[name].append(numbers)
        self._trivial(cases)
        verdict.coverage = union((one.entry, one.covered) for one in verdict.launches)
        verdict.unlaunched = sorted(set(self.module.entries) - verdict.coverage.keys())
        verdict.untried = {name: found for name, of in self.sizes.items() if (found := untried(of))}
        for one in verdict.schedules.assumptions if verdict.schedules else ():
            verdict.assumes[one] = ASSUMPTIONS[one]
        for line, why in dict.fromkeys(
            (one.line, one.why) for one in (verdict.schedules.open if verdict.schedules else ())
        ):
            self._incomplete("choice", f"{why}: it holds for the schedule that ran", line=line)
        if self.how.strict:
            self._covered()
        if self.how.not_needed:
            verdict.not_needed = self._not_needed(cases)

    def _incomplete(
        self, kind: str, message: str, number: int | None = None, line: int | None = None
    ) -> None:
        source = self.module.source
        file = source.filename if source is not None and line is not None else None
        self.verdict.reasons.append(Reason("incomplete", kind, message, number, file, line))

    def _covered(self) -> None:
        for entry, covered in sorted(self.verdict.coverage.items()):
            for what, lines in (
                ("was not executed", covered.missed),
                ("is a branch that went one way only", covered.branches_one_way),
                ("has a guard that went one way only", covered.guards_one_way),
            ):
                for line in lines:
                    self._incomplete("not covered", f"line {line} of {entry} {what}", line=line)
        for entry in self.verdict.unlaunched:
            self._incomplete("not covered", f"{entry} was not launched")

    def _not_needed(self, cases: Sequence[Prepared]) -> NotNeeded | str:
        """What all launches could do without; or why that is not asked."""
        source = self.module.source
        if source is None or self.verdict.word != "pass":
            return "what is not needed is asked of kernels that pass"
        if any(len(one.case.calls) > 1 for one in cases):
            return "what is not needed is asked of cases of one call each"
        launches = [
            {
                "entry": call.entry,
                "grid": call.grid,
                "block": call.block,
                "cluster": call.cluster,
                "shared": call.shared,
                "arguments": partial(_arguments_anew, one, call),
            }
            for one in cases
            for call in one.case.calls
        ]
        try:
            return not_needed(source.text, launches, seconds=self.how.limit[1])
        except FragirError as error:
            return error.sentence

    def _trivial(self, cases: Sequence[Prepared]) -> None:
        """References that say nothing; of some sizes any may be like that."""
        if cases and all(one.copied and not one.case.copies for one in cases):
            text = "the reference gives back an input, and so does whatever copies it"
            self._incomplete("trivial", f"{text}; Case(copies=True) says that it is meant to")
        elif cases and all(one.constant for one in cases):
            self._incomplete("trivial", "the reference gives the same whatever its inputs are")

    # -- one case ----------------------------------------------------------------------------------

    def _before(self, prepared: Prepared, number: int) -> None:
        """What makes a case say nothing, whatever the kernel does."""
        case = prepared.case
        if not case.outputs or not all(prepared.results[i].size for i in range(len(case.outputs))):
            self._incomplete("nothing", "the case has no output, or an empty one", number)
        if not case.calls:
            self._incomplete("nothing", "the case launches no kernel", number)

    def _case(self, prepared: Prepared, number: int) -> None:
        case, verdict = prepared.case, self.verdict
        runs = [self._run(case, number, counts=counts) for counts in (False, True)]
        checked, counted = runs
        for report in (*checked.reports, *counted.reports):
            self._findings(report.findings, number)
            if report.schedules is not None:
                verdict.schedules = report.schedules.with_(verdict.schedules)
            if report.data is not None:
                verdict.data = report.data.with_(verdict.data)
        changed = list(self._changes(case, number, [one.memory for one in runs]))
        verdict.reasons += changed
        written = [case.views[view].of(checked.memory) for view, _ in case.outputs]
        equality = UNDECIDED
        if not changed:
            found = judge_equality(prepared, written, counted.followed, number)
            if found.unproved is not None:
                verdict.unproved.setdefault(found.unproved, number)
            equality = found.word
            verdict.reasons += found.reasons
            verdict.assumes |= found.assumes
        if isinstance(counted.followed, Following):
            seen = {*counted.followed.compared, *counted.followed.rounded} - {0}
            verdict.compared = sorted({*verdict.compared, *seen})
        for call, report, covered in zip(case.calls, checked.reports, counted.covered, strict=True):
            arrays = [view for view in call.arrays() if view is not None]
            verdict.launches.append(
                JudgedLaunch(
                    number,
                    call.entry,
                    call.grid,
                    call.block,
                    [list(case.views[view].shape) for view in arrays],
                    equality,
                    report.statistics.total,
                    covered,
                )
            )

    def _run(self, case: PackedCase, number: int, *, counts: bool) -> _Ran:
        """One run; the one that counts statements follows the data too."""
        memory = case.memory()
        for view, element in _only_outputs(case):
            _fill(case.views[view].bytes_of(memory), element, number, second=counts)
        stream = Stream() if len(case.calls) > 1 else None
        ran = _Ran(memory, [], [])
        followed: Following | str = ran.followed
        if counts:
            try:
                followed = Following(case, memory, (self.verdict.seed, number), self.rounds)
            except NotFollowedError as error:
                followed = str(error)
        for call in case.calls:
            coverage = Coverage()
            arguments = case.arguments(call, memory)
            more: list[MakesCheck] = []
            if counts:
                more = [coverage, *([] if isinstance(followed, str) else [followed.check])]
            try:
                report = run(
                    self.module,
                    call.entry,
                    grid=call.grid,
                    block=call.block,
                    cluster=call.cluster,
                    shared=call.shared,
                    arguments=arguments,
                    stream=stream,
                    limit=self.how.limit,
                    jobs=self.how.jobs,
                    check=True,
                    checks=more,
                    structure=None if counts else self._structure(case, call),
                )
            except EmulationError as error:
                self._stopped(error, number)
                raise _Stop from error
            ran.reports.append(report)
            if counts:
                ran.covered.append(coverage.covered)
        return replace(ran, followed=followed)

    def _structure(self, case: PackedCase, call: PackedCall) -> list[int]:
        """The positions of arguments whose contents are part of the launch."""
        roots = {case.views[view].root for view in case.structure}
        return [
            position
            for position, view in enumerate(call.arrays())
            if position in self.how.structure
            or (view is not None and case.views[view].root in roots)
        ]

    def _stopped(self, error: EmulationError, number: int) -> None:
        """Enters why a run did not come to its end."""
        if error.report is None:  # it did not begin
            if error.line is None:
                if "no memory" in error.message:
                    return self._incomplete("limit", error.sentence, number)
                raise BrokenCaseError(f"case {number} does not fit the kernel: {error.sentence}")
            refused = any(text in error.message for text in _REFUSALS)
            word, kind = ("unsupported", "unsupported") if refused else ("fail", "syntax")
        else:
            self._findings(error.report.findings, number)
            word, kind = ("incomplete" if error.kind == "limit" else "fail"), error.kind
        place = error.file, error.line, error.col
        self.verdict.reasons.append(Reason(word, kind, error.sentence, number, *place))

    def _findings(self, findings: Sequence[Finding], number: int) -> None:
        for one in findings:
            place = one.file, one.line, one.col
            letter = one.severity == "letter"
            word = "fail" if not letter or self.how.strict else "pass"
            into = self.verdict.letters if word == "pass" else self.verdict.reasons
            known = {(r.kind, r.line, r.col) for r in into}
            if (one.kind, one.line, one.col) not in known:
                into.append(Reason(word, one.kind, one.message, number, *place))

    # -- memory behind two runs --------------------------------------------------------------------

    def _changes(
        self, case: PackedCase, number: int, memories: Sequence[list[Array]]
    ) -> Iterator[Reason]:
        """Outputs that were not written, or depend on what they were; inputs that have changed."""
        first, second = memories
        for index, (view, element) in enumerate(case.outputs):
            both = [case.views[view].bytes_of(memory) for memory in (first, second)]
            if (view, element) in _only_outputs(case):
                before = [_pattern(both[0].shape, element, number, second=s) for s in (False, True)]
                same = [(now == old).all(-1) for now, old in zip(both, before, strict=True)]
                missing = same[0] & same[1]
                stale = (both[0] != both[1]).any(-1) & ~missing
                of = f"of output {index}"
                yield from _elements(missing, f"{of} are not written", "unwritten", number)
                yield from _elements(stale, f"{of} depend on what stood there", "stale", number)
            elif (both[0] != both[1]).any():
                yield Reason("fail", "stale", f"output {index} differs from run to run", number)
        kept = _kept(case)
        for root, (original, keep) in enumerate(zip(case.roots, kept, strict=True)):
            for memory in memories:
                if (keep & (memory[root] != original)).any():
                    at = int(np.flatnonzero(keep & (memory[root] != original))[0])
                    yield Reason("fail", "modified", _modified(case, root, at), number)
                    break


def _arguments_anew(prepared: Prepared, call: PackedCall) -> list[object]:
    """The arguments of a call on memory of its own, outputs filled."""
    case, memory = prepared.case, prepared.case.memory()
    for view, element in _only_outputs(case):
        _fill(case.views[view].bytes_of(memory), element, prepared.number, second=False)
    return case.arguments(call, memory)


#: What messages of the emulator say of what is refused by name.
_REFUSALS = ("is not emulated", "are not supported", "is not known", "has no body")


def _only_outputs(case: PackedCase) -> list[tuple[int, str]]:
    given = {view for view, _ in case.inputs}
    return [(view, element) for view, element in case.outputs if view not in given]


def _elements(wrong: Array, what: str, kind: str, number: int) -> Iterator[Reason]:
    if wrong.any():
        at = ", ".join(str(int(i)) for i in np.argwhere(wrong)[0])
        text = f"{int(wrong.sum())} of {wrong.size} elements {what}, first [{at}]"
        yield Reason("fail", kind, text, number)


def _kept(case: PackedCase) -> list[Array]:
    """For every memory, which bytes a kernel must leave as they are: where inputs, structure or
    outputs lie, all that are no output's."""
    kept = [np.zeros(root.shape, np.uint8) for root in case.roots]
    of_data = [view for view, _ in (*case.inputs, *case.outputs)]
    for view in (*of_data, *case.structure):
        kept[case.views[view].root][:] = 1
    for view, _ in case.outputs:
        case.views[view].bytes_of(kept)[...] = 0
    return [one.astype(np.bool_) for one in kept]


def _modified(case: PackedCase, root: int, at: int) -> str:
    """What of a memory has changed, in words."""
    lists: list[tuple[str, list[int]]] = [
        ("input", [view for view, _ in case.inputs]),
        ("structure", case.structure),
    ]
    for what, views in lists:
        for index, view in enumerate(views):
            if case.views[view].root == root:
                mark = [np.zeros(one.shape, np.uint8) for one in case.roots]
                case.views[view].bytes_of(mark)[...] = 1
                if mark[root][at]:
                    return f"{what} {index} is not what it was: a byte at {at} has changed"
    return f"memory between or beside the arrays has changed: byte {at}"


# -- patterns --------------------------------------------------------------------------------------
# What outputs begin as: NaN, whose other bits are random; in a second run other NaN. Types without
# NaN begin as random numbers, and as their complements.

#: Bits of a NaN that must be set, and the bit of the sign; of types that have several NaN.
_NAN = {
    "f16": (0x7E00, 0x8000),
    "bf16": (0x7FC0, 0x8000),
    "f32": (0x7FC00000, 0x80000000),
    "tf32": (0x7FC00000, 0x80000000),
    "f64": (0x7FF8 << 48, 1 << 63),
    "e5m2": (0x7E, 0x80),
    "e4m3": (0x7F, 0x80),
}


def _pattern(shape: tuple[int, ...], element: str, number: int, *, second: bool) -> Array:
    """Bytes `[..., size of an element]`."""
    rng = np.random.default_rng([number, 0x4E614E])
    drawn = rng.integers(0, 256, shape, np.uint8)
    if element not in _NAN:
        return ~drawn if second else drawn
    fixed, sign = _NAN[element]
    whole = drawn.view(f"u{shape[-1]}")
    code = whole | whole.dtype.type(fixed)
    code = code ^ whole.dtype.type(sign) if second else code
    return np.ascontiguousarray(code).view(np.uint8)


def _fill(array: Array, element: str, number: int, *, second: bool) -> None:
    array[...] = _pattern(array.shape, element, number, second=second)


assert set(_NAN) <= set(FLOATS)
