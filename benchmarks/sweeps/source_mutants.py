"""Small faults in our own source, one at a time: those that no test sees.

A task is some modules of a room, in a process of its own (`benchmarks/mutation.py`): `most` mutants
of each. A finding is a mutant that survives the room's tests. Not every one is a gap: some change
nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fragir.sweeps import Plan, Result, Sweep, Task, sample

ROOT = Path(__file__).resolve().parents[2]
#: Room -> its tests, those that run without ptxas where they can.
ROOMS: dict[str, tuple[str, ...]] = {
    "fragir/layout": ("tests/layout",),
    "fragir/isa": ("tests/isa", "tests/layout"),
    "fragir/ptx": ("tests/ptx",),
    "fragir/emulator": ("tests/emulator", "--deselect=tests/emulator/test_mutants.py"),
    "fragir/reference": ("tests/reference",),
    "fragir/builder": ("tests/builder",),
    "fragir/cli": ("tests/cli",),
    "dialects": ("tests/golden", "tests/passes"),
    "passes": ("tests/golden", "tests/passes", "tests/properties"),
}
TOGETHER = 8  # modules of a task: the room's tests run once for all of them


def tasks(plan: Plan) -> Sequence[Any]:
    rooms = [plan.parameters["room"]] if plan.parameters["room"] else list(ROOMS)
    found: list[list[str]] = []
    for room in rooms:
        modules = [str(p.relative_to(ROOT)) for p in sorted((ROOT / room).rglob("*.py"))]
        found += [[room, *modules[i : i + TOGETHER]] for i in range(0, len(modules), TOGETHER)]
    return sample(found, plan)


def run(task: Task) -> Result:
    room, *modules = task.what
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        command = [sys.executable, "benchmarks/mutation.py", *modules, "--json", str(results)]
        command += ["--most", str(task.parameters["most"]), "--seed", str(task.seed)]
        done = subprocess.run(
            [*command, "--tests", *ROOMS[room]], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{modules}: {done.stderr[-500:]}")
        documents = json.loads(results.read_text())
    return {
        "findings": [f"{d['module']}: {m}" for d in documents for m in d["survivors"]],
        "mutants": sum(d["judged"] for d in documents),
        "unreached": sum(len(d["unreached"]) for d in documents),
    }


SWEEP = Sweep(tasks, run, {"room": "", "most": 20}, seconds=7200)
