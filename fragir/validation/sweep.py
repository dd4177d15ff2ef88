"""Probes of instructions with products known exactly, on the emulator or a GPU.

`fragir validate` runs the same tasks in its own process and keeps a report of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import Any

from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.emit import emit_ptx
from fragir.sweeps.definition import Plan, Result, Sweep, Task, sample
from fragir.validation import probes
from fragir.validation.report import Job, entry_of, jobs


def tasks(plan: Plan) -> Sequence[Any]:
    """[mnemonic, variant, target] of every kernel; FragirError for parameters that do not fit."""
    place, target = plan.parameters["on"], plan.parameters["target"]
    if place not in ("emulator", "gpu"):
        raise FragirError(f"`on` is emulator or gpu, not {place!r}")
    if plan.parameters["cases"] < 1:
        raise FragirError(f"`cases` is at least 1, not {plan.parameters['cases']}")
    if target is not None:
        from fragir.isa.targets import known

        known(target)
    elif place == "gpu":
        target = target_of_gpu()
    return sample([list(job.key) for job in jobs(plan.parameters["only"], target)], plan)


def target_of_gpu() -> str:
    """What to compile for on the GPU of this machine. FragirError where there is none."""
    from fragir.toolchain import driver

    reason = driver.available()
    if reason is not None:
        raise FragirError(f"no GPU can be used: {reason}", hint="the emulator needs none")
    return probes.gpu_target(driver.gpu().target)


def job_of(task: Task) -> Job:
    mnemonic, variant, target = task.what
    return Job(_instructions(target)[mnemonic], variant, target)


@cache
def _instructions(target: str) -> dict[str, Instruction]:
    from fragir import isa

    return {each.mnemonic: each for each in isa.instructions(target=target)}


def kernel_hash(job: Job) -> str:
    """Names the kernel that probes a job."""
    return hashlib.sha256(emit_ptx(job.instruction, job.target, job.variant).encode()).hexdigest()


def run(task: Task) -> Result:
    """The entry of one kernel in the report of `fragir validate`."""
    job = job_of(task)
    on_gpu = task.parameters["on"] == "gpu"
    try:
        outcome = probes.probe(
            job.instruction,
            job.variant,
            job.target,
            probes.gpu_runner if on_gpu else probes.emulator_runner,
            against=probes.emulator_runner if on_gpu else None,
            cases=task.parameters["cases"],
            seed=task.seed,
        )
    except FragirError as error:
        entry, found = entry_of(job, None, error.sentence), error.sentence
    else:
        entry, found = entry_of(job, outcome), outcome.first
    return {
        "tried": sum(entry["cases"].values()),
        "mismatches": entry["mismatches"],
        "findings": [found] if found else [],
        "entry": entry,
    }


PARAMETERS = {"on": "emulator", "only": None, "target": None, "cases": 32}
SWEEP = Sweep(tasks, run, PARAMETERS, seconds=600)
