"""Faults in kernels of Triton and nvcc that a tolerance of 1e-2 passes: fragir judge finds all.

A task is one of `tests/judge/planted.py`: allclose must pass what it computes (copies and products
come late, or at once), the judge must not, and its reason must be of the kind that is expected; or
one of the kernels as it is, which passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from benchmarks.sweeps.judge_mutants import LIMIT, is_close
from fragir.judge import CaseLimits, Judging
from fragir.judge.judging import judge_prepared
from fragir.judge.sandbox import PreparedCases, prepare
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.judge.planted import PLANTED, Planted


def tasks(plan: Plan) -> Sequence[Any]:
    """[number, whether with the fault]; every case once without."""
    first = {one.right_name: number for number, one in reversed(list(enumerate(PLANTED)))}
    every = [[number, False] for number in sorted(first.values())]
    return sample([*every, *([number, True] for number in range(len(PLANTED)))], plan)


@cache
def prepared_cases(case: str) -> PreparedCases:
    return prepare(case, 1, CaseLimits())


def judged(one: Planted, text: str) -> Any:
    return judge_prepared(text, prepared_cases(one.cases), Judging(limit=LIMIT, jobs=1))


def run(task: Task) -> Result:
    number, faulty = int(task.what[0]), bool(task.what[1])
    one = PLANTED[number]
    if not faulty:
        verdict = judged(one, one.right())
        right = verdict.word == "pass"
        said = [f"{reason.kind}: {reason.message}" for reason in verdict.reasons]
        findings = [] if right else [f"{one.right_name}: is right, and it is {verdict.word}"]
        return {
            "kernel": one.right_name,
            "verdict": verdict.word,
            "why": said,
            "equality": verdict.equality,
            "every_schedule": int(verdict.schedules is not None and verdict.schedules.every),
            "every_value": int(verdict.data is not None and verdict.data.every),
            "findings": findings,
        }
    text = one.text()
    cases = prepared_cases(one.cases).cases
    near = any(all(is_close(text, case, at_once=soon) for case in cases) for soon in (False, True))
    verdict = judged(one, text)
    kinds = [reason.kind for reason in verdict.reasons]
    found = verdict.word != "pass" and bool({*kinds} & {*one.finds})
    findings = [] if near else [f"{one.name}: allclose finds it"]
    if not found:
        findings.append(f"{one.name}: {verdict.word}, {kinds}")
    return {
        "kernel": one.kernel,
        "fault": one.why,
        "verdict": verdict.word,
        "why": [f"{reason.kind}: {reason.message}" for reason in verdict.reasons],
        "allclose_passes": int(near),
        "judge_finds": int(found),
        "findings": findings,
    }


SWEEP = Sweep(tasks, run, seconds=300.0)
