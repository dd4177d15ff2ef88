"""Every mma and wgmma from the matrix level to the emulator: exact, within bounds, one-hot.

A task is one form of an instruction: its program is compiled, ptxas must take it without a warning,
and the emulator's results must be right (`tests/families/judges.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from fragir import isa
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from fragir.sweeps.faults import error_text
from tests.families import judges
from tests.families.every import Case


def tasks(plan: Plan) -> Sequence[Any]:
    """[mnemonic, form] of what `only`, a shell pattern, lets through."""
    cases = [case for family in judges.FAMILIES for case in judges.every_case(family)]
    only = plan.parameters["only"]
    found = [[c.instruction.mnemonic, c.form] for c in cases]
    return sample([each for each in found if fnmatchcase(each[0], only)], plan)


def run(task: Task) -> Result:
    mnemonic, form = task.what
    case = Case(isa.lookup(mnemonic), form)
    findings: list[str] = []
    held = [judges.products_are_exact, judges.random_products_are_within_the_bound]
    if judges.one_hot_says_something(case):
        held.append(judges.one_element_hits_one)
    for judge in held:
        try:
            judge(case)
        except AssertionError as error:
            findings.append(f"{judges.name(case)}: {judge.__name__}: {error_text(error)}")
    if task.parameters["ptxas"]:
        findings += [f"{judges.name(case)}: ptxas: {w}" for w in _warnings(case)]
    judges.compiled.cache_clear()  # a kernel is not asked for again
    return {"judged": len(held), "findings": findings}


def _warnings(case: Case) -> list[str]:
    return [str(warning) for warning in judges.compiled(case).assembled.warnings]


SWEEP = Sweep(tasks, run, {"only": "*", "ptxas": True}, seconds=300.0)
