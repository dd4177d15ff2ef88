"""The whole table by ptxas: it assembles what the table claims, and refuses what it does not.

A task asks about a few hundred instructions on one target: each in its lowest PTX version, or one
version below that and on targets that the table does not list.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

from fragir import isa
from fragir.isa import Instruction
from fragir.isa.emit import default_variant, emit_module, statement
from fragir.isa.targets import NEWEST_VERSION, TARGETS, version_key
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.isa.assembler import NoPtxas, Ptxas, installed

MINORS = {6: 6, 7: 9, 8: 9, 9: 6}
VERSIONS = [f"{major}.{minor}" for major, count in MINORS.items() for minor in range(count)]
MODULE = 300  # kernels in one module, statements of one question
OLD = ("sm_70", "sm_72")  # of ptxas 12, which is asked for what it accepts only

Form = tuple[Instruction, str]


@cache
def claimed(target: str) -> dict[str, list[Form]]:
    """What the table says that a target has, by the lowest PTX version."""
    found: dict[str, list[Form]] = defaultdict(list)
    for instruction in isa.instructions(target=target):
        if not instruction.refused:
            for a in instruction.variants or ("registers",):
                found[instruction.targets[target]].append((instruction, a))
    return found


def denied(forms: Sequence[Form], targets: Sequence[str]) -> dict[tuple[str, str], list[str]]:
    """Statements that (target, version) must refuse."""
    asked: dict[tuple[str, str], list[str]] = defaultdict(list)
    for instruction, a in forms:
        text = declared(instruction, a)
        for target in targets:
            if target in OLD:
                continue
            lowest = instruction.targets.get(target)
            if lowest is None:
                asked[target, NEWEST_VERSION].append(text)
            elif version_key(lowest) > version_key(TARGETS[target]):
                asked[target, VERSIONS[VERSIONS.index(lowest) - 1]].append(text)
    return asked


def declared(instruction: Instruction, a: str = "registers") -> str:
    """The bare instruction with the registers it uses, for a kernel that has no others."""
    operands = instruction.operands.values()
    words = [
        f".reg .{o.registers.type} %{o.name}<{o.registers.count}>;"
        for o in operands
        if o.registers.cls in ("fragment", "metadata", "scale")
    ]
    words += [".reg .b64 %b, %a_shared;", ".reg .b32 %address;"]
    if any(o.name == "b" and o.registers.cls == "fragment" for o in operands):
        words[-2] = ""
    words.append(".reg .b32 %idesc;")
    words += [f".reg .b32 %at_{o.name};" for o in operands if o.registers.cls == "address"]
    return " ".join((*words, statement(instruction, a)))


def every_form() -> list[Form]:
    return [(i, default_variant(i)) for i in isa.instructions() if not i.refused]


@cache
def _denied() -> dict[tuple[str, str], list[str]]:
    return denied(every_form(), tuple(TARGETS))


@cache
def _ptxas() -> Ptxas:
    return installed()


def tasks(plan: Plan) -> Sequence[Any]:
    """["takes" or "refuses", target, version, number of the first]."""
    asked = [
        ("takes", target, v, len(forms))
        for target in TARGETS
        for v, forms in claimed(target).items()
    ]
    asked += [("refuses", target, v, len(texts)) for (target, v), texts in _denied().items()]
    every = [
        [kind, target, version, first]
        for kind, target, version, count in asked
        for first in range(0, count, MODULE)
    ]
    return sample(every, plan)


def run(task: Task) -> Result:
    kind, target, version, first = task.what
    part = slice(first, first + MODULE)
    findings: list[str] = []
    try:
        if kind == "takes":
            forms = claimed(target)[version][part]
            error = _ptxas().run(emit_module(forms, target, version), target)
            findings = [f"{target} {version}: {' '.join(error.split())[:500]}"] if error else []
            return {"asked": len(forms), "findings": findings}
        texts = _denied()[target, version][part]
        refused = _ptxas().refusals(texts, target, version)
        findings = [
            f"{target} {version} accepts {text}"
            for text, reason in zip(texts, refused, strict=True)
            if reason is None
        ]
        return {"asked": len(texts), "findings": findings}
    except NoPtxas as error:
        return {"asked": 0, "skipped": str(error), "findings": findings}


SWEEP = Sweep(tasks, run, seconds=300.0)
