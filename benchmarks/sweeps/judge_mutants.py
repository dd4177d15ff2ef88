"""Kernels with one numerical fault: fragir judge passes none that a tolerance of 1e-2 finds.

A task is a kernel that Triton compiled, as it is or with one fault (those of `numeric-mutants`),
judged by its cases, and run once more for `numpy.allclose`. `only_judge` counts those that
allclose passes and the judge fails; some of the rest are the same function at these sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from fragir.emulator import EmulationError
from fragir.emulator import run as emulate
from fragir.judge import CaseLimits, Judging
from fragir.judge.judging import judge_prepared
from fragir.judge.sandbox import Prepared, PreparedCases, prepare
from fragir.reference.formats import decode
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.numeric_mutation import numeric_mutants
from tests.judge import triton_cases

KERNELS = {
    "softmax": "softmax.sm_80",
    "layer_norm": "layer_norm.sm_80",
    "gemm_f16": "gemm.sm_80",
    "gemm_wgmma": "gemm.sm_90",
    "gemm_bf16": "gemm_bf16.sm_80",
    "gemm_tf32": "gemm_tf32.sm_80",
    "gemm_fp8": "gemm_fp8.sm_89",
    "gemm_fp8_wgmma": "gemm_fp8.sm_90",
    "gemm_special": "gemm_special.sm_90",
    "gemm_tma": "gemm_tma.sm_90",
    "attention": "attention.sm_80",
    "attention_causal": "attention_causal.sm_80",
}
#: Faults of a kernel; of more some are taken at regular distances.
MOST = 40
LIMIT = (20_000_000, 60.0)


def tasks(plan: Plan) -> Sequence[Any]:
    """A kernel and the number of its mutant, -1 for none."""
    every: list[list[Any]] = []
    for name, title in KERNELS.items():
        count = len(numeric_mutants(text_of(title)))
        some = min(count, MOST)
        every += [[name, -1], *([name, i * count // some] for i in range(some))]
    return sample(every, plan)


@cache
def text_of(title: str) -> str:
    return (triton_cases.FOLDER / f"{title}.ptx").read_text("utf-8")


@cache
def prepared_cases(name: str) -> PreparedCases:
    return prepare(f"{triton_cases.__file__}:{name}", 1, CaseLimits())


def is_close(text: str, prepared: Prepared, *, at_once: bool = False) -> bool | None:
    """Whether allclose passes what the kernel gives; None where it does not come to its end.

    Copies and products are there as late as may be, or `at_once`.
    """
    case = prepared.case
    memory = case.memory()
    try:
        for call in case.calls:
            arguments = case.arguments(call, memory)
            emulate(
                text,
                call.entry,
                grid=call.grid,
                block=call.block,
                cluster=call.cluster,
                shared=call.shared,
                arguments=arguments,
                limit=LIMIT,
                asynchrony="early" if at_once else "late",
                jobs=1,
            )
    except EmulationError:
        return None
    return all(
        np.allclose(decode(case.views[view].of(memory), element), wanted, rtol=1e-2, atol=1e-2)
        for (view, element), wanted in zip(case.outputs, prepared.results, strict=True)
    )


def run(task: Task) -> Result:
    name, number = str(task.what[0]), int(task.what[1])
    text, what = text_of(KERNELS[name]), "as it is"
    if number >= 0:
        mutant = numeric_mutants(text)[number]
        text, what = mutant.text, f"line {mutant.line}: {mutant.what}"
    cases = prepared_cases(name)
    close = [is_close(text, one) for one in cases.cases]
    verdict = judge_prepared(text, cases, Judging(limit=LIMIT, jobs=1))
    passes, near = verdict.word == "pass", all(close)
    findings: list[str] = []
    if passes and not near:
        findings = [f"{name}, {what}: passes, and allclose fails"]
    if number < 0 and not passes:
        findings = [f"{name}: is right, and it is {verdict.word}: {verdict.reasons[0].message}"]
    return {
        "what": what,
        "verdict": verdict.word,
        "equality": verdict.equality,
        "stopped": int(None in close),
        "allclose_finds": int(not near and None not in close),
        "judge_finds": int(not passes),
        "only_judge": int(near and not passes),
        "findings": findings,
    }


SWEEP = Sweep(tasks, run, seconds=300.0)
