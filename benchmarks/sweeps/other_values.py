"""Kernels that the passes write, with other contents of their arrays.

A task is one kernel of `tests/emulator/generated.py` and one other content of its arrays: random
bits, NaNs among them, or its own in another order. The same lanes come to the same statements and
access the same addresses, and the checks find nothing. What is said to depend on some arguments,
offsets of groups, is judged with these as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fragir.emulator import EmulationError, Report
from fragir.emulator import run as emulate
from fragir.ptx import parse
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from tests.emulator.generated import NAMES, launches
from tests.emulator.mutation import Subject
from tests.emulator.other_values import executed, other_values


def tasks(plan: Plan) -> Sequence[Any]:
    """(kernel, number of the other content)."""
    others = int(plan.parameters["others"])
    return sample([(name, other) for name in NAMES for other in range(others)], plan)


def run(task: Task) -> Result:
    name, other = str(task.what[0]), int(task.what[1])
    findings = [text for one in launches(name) for text in differences(one, other)]
    return {"findings": findings}


def differences(one: Subject, other: int) -> list[str]:
    """What a launch does otherwise with another content."""
    launch: dict[str, Any] = {
        "grid": one.blocks,
        "block": (one.block,),
        "cluster": (one.cluster,),
        "shared": one.shared,
    }

    def checked(arguments: Sequence[object], structure: Sequence[str]) -> Report:
        return emulate(one.text, arguments=arguments, check=True, structure=structure, **launch)

    first = checked(one.arguments(), ()).data
    assert first is not None
    structure = sorted({found.argument or "" for found in first.open})
    data = checked(one.arguments(), structure).data if structure else first
    assert data is not None
    if not data.every:
        return [f"{one.name}: it is judged for these values only: {data.open}"]
    (kernel,) = parse(one.text).entries.values()
    names = [parameter.variables[0].name.text for parameter in kernel.parameters or ()]
    kept = [names.index(name) for name in structure]

    def others() -> list[object]:
        return other_values(one.arguments(), np.random.default_rng(other), kept)

    before = executed(one.text, None, one.arguments(), **launch)
    try:
        found = checked(others(), structure).findings
        after = executed(one.text, None, others(), **launch)
    except EmulationError as error:
        return [f"{one.name}, other {other}: {error}"]
    texts = [f"{one.name}, other {other}: {f.line}: {f.kind}: {f.message}" for f in found]
    for at, what in sorted(before.keys() | after.keys()):
        if before[at, what] != after[at, what]:
            texts.append(f"{one.name}, other {other}: other {what} at character {at}")
    return texts


SWEEP = Sweep(tasks, run, parameters={"others": 10}, seconds=120.0)
