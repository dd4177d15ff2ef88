"""The report of `fragir validate`: what was run where, and how it went; kept and resumed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.emit import emit_ptx
from fragir.sweeps.definition import Plan, Result, Sweep, Task, sample
from fragir.validation import probes
from fragir.validation.probes import ProbeOutcome
from fragir.validation.questions import instructions

Document = dict[str, Any]
FACT_KEYS = ("name", "asks", "assumed", "found", "words")


@dataclass(frozen=True)
class Job:
    """One kernel to probe: an instruction, where its A comes from, the target."""

    instruction: Instruction
    variant: str
    target: str

    @property
    def key(self) -> tuple[str, str, str]:
        return self.instruction.mnemonic, self.variant, self.target


def jobs(only: str | None, target: str | None) -> list[Job]:
    """What there is to probe: on one target, or each where it is native.

    `only` is a shell pattern over mnemonics. FragirError where nothing matches.
    """
    found = list(_jobs(only, target))
    if not found:
        where = f" of {target}" if target else ""
        raise FragirError(
            f"no instruction{where} that can be probed matches {only or '*'}",
            hint="`fragir instructions` lists them; tensor memory's cannot be probed",
        )
    return found


def _jobs(only: str | None, target: str | None) -> Iterator[Job]:
    from fnmatch import fnmatchcase

    from fragir import isa
    from fragir.isa.emit import default_target
    from fragir.validation.probes import can_probe

    for instruction in isa.instructions(target=target):
        if not can_probe(instruction):
            continue
        if only is not None and not fnmatchcase(instruction.mnemonic, only):
            continue
        for variant in instruction.variants or ("registers",):
            yield Job(instruction, variant, target or default_target(instruction))


def entry_of(job: Job, outcome: ProbeOutcome | None, error: str | None = None) -> Document:
    """The entry of a job: its outcome, or why there is none."""
    instruction, variant, target = job.key
    return {
        "mnemonic": instruction,
        "variant": variant,
        "target": target,
        "lowering": job.instruction.lowering.get(target),
        "ptx_sha256": outcome.ptx_hash if outcome else None,
        "cases": dict(outcome.cases) if outcome else {},
        "mismatches": outcome.mismatches if outcome else 0,
        "first": outcome.first if outcome else None,
        "error": error,
    }


@dataclass
class ValidationReport:
    """The results so far. `head` says where and with what; results of another head are not kept."""

    head: Document
    entries: dict[tuple[str, str, str], Document] = field(
        default_factory=dict[tuple[str, str, str], Document]
    )
    facts: list[Document] = field(default_factory=list[Document])
    """What was asked of the machine (`fragir.validation.facts`), with `name`."""

    def add(self, job: Job, entry: Document) -> None:
        """Enters what `entry_of` has made of a job."""
        self.entries[job.key] = entry

    def document(self) -> Document:
        """The whole report as JSON."""
        entries = list(self.entries.values())
        summary = {
            "instructions": len(entries),
            "cases": sum(sum(e["cases"].values()) for e in entries),
            "mismatches": sum(e["mismatches"] for e in entries),
            "failed": sum(bool(e["mismatches"] or e["error"]) for e in entries),
        }
        facts = [{key: fact[key] for key in FACT_KEYS} for fact in self.facts]
        return {**self.head, "summary": summary, "instructions": entries, "facts": facts}

    def resume(self, text: str, name: str) -> int:
        """Takes over the entries of an earlier report that were made alike and have no error.

        The date may differ. FragirError where `text` is no report, or one of another machine.
        """
        try:
            earlier: Document = json.loads(text)
            entries: list[Document] = earlier["instructions"]
            head = {key: earlier[key] for key in self.head}
            keys = [(e["mnemonic"], e["variant"], e["target"]) for e in entries]
        except (ValueError, KeyError, TypeError) as error:
            hint = "name another file, or leave out --resume to replace it"
            raise FragirError("this is no report of `fragir validate`", name, hint=hint) from error
        differing = [k for k in self.head if k != "date" and head[k] != self.head[k]]
        if differing:
            raise FragirError(
                f"this report has another {' and '.join(differing)}",
                name,
                hint="leave out --resume to replace it",
            )
        for key, entry in zip(keys, entries, strict=True):
            if entry["error"] is None:
                self.entries[key] = entry
        return len(self.entries)

    def is_done(self, job: Job, ptx_hash: str) -> bool:
        """Whether the job's entry stands, made with the same kernel."""
        entry = self.entries.get(job.key)
        return entry is not None and entry["ptx_sha256"] == ptx_hash


# -- sweep -----------------------------------------------------------------------------------------
# Probes of instructions with products known exactly, on the emulator or a GPU.
#
# `fragir validate` runs the same tasks in its own process and keeps a report of them.


def tasks(plan: Plan) -> list[list[str]]:
    """[mnemonic, variant, target] of every kernel; FragirError for parameters that do not fit."""
    place, target = plan.parameters["on"], plan.parameters["target"]
    if place not in ("emulator", "gpu"):
        raise FragirError(f"`on` is emulator or gpu, not {place!r}")
    if plan.parameters["cases"] < 1:
        raise FragirError(f"`cases` is at least 1, not {plan.parameters['cases']}")
    if target is not None:
        from fragir.isa.targets import require_target

        require_target(target)
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
    return Job(instructions(target)[mnemonic], variant, target)


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
