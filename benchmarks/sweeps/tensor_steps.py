"""Every mma, wgmma and wmma by the compiled core and by numpy: the same bits.

A task is one arithmetic (how an instruction computes, dense or sparse): all instructions that share
it, on registers of any bits, of numbers close to each other, of subnormals, with Inf and NaN, and
with a C that nearly cancels the products.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from fragir.emulator.native.library import library
from fragir.emulator.tensor_cores import Wgmma
from fragir.errors import FragirError
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.native.steps import KINDS, Case, by_arithmetic, results


def tasks(plan: Plan) -> Sequence[Any]:
    """[[mnemonic, target], ...] of each arithmetic whose first mnemonic `only` lets through."""
    only = plan.parameters["only"]
    groups = [
        [[case.mnemonic, case.target] for case in cases]
        for cases in by_arithmetic()
        if any(fnmatchcase(case.mnemonic, only) for case in cases)
    ]
    return sample(groups, plan)


def run(task: Task) -> Result:
    found = library()
    if found is None:
        raise FragirError("the compiled core is not there", hint="`make core` builds it")
    findings: list[str] = []
    each = max(1, task.parameters["outputs"] // len(task.what) // len(KINDS))
    outputs = 0
    rng = np.random.default_rng(task.random().getrandbits(64))
    for mnemonic, target in task.what:
        case = Case(mnemonic, target)
        for kind in KINDS:
            size = 0
            while size < each:
                lanes = 128 if isinstance(case.op, Wgmma) else 32
                warps = min(64, max(1, (each - size) // (case.op.d.count * lanes)))
                for wanted, got in results(case.op, rng, kind, warps, found):
                    size += wanted.size
                    wrong = np.argwhere(wanted != got)
                    if len(wrong):
                        at = tuple(wrong[0])
                        what = f"{wanted[at]:#x}, not {got[at]:#x}"
                        findings.append(f"{case}, {kind}: {len(wrong)} differ; at {at}: {what}")
            outputs += size
    return {"outputs": outputs, "findings": findings}


SWEEP = Sweep(tasks, run, {"only": "*", "outputs": 500_000}, seconds=1200.0)
