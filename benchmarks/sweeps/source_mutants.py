"""Small faults in our own source, one at a time: those that no test sees.

A task is ten mutants of a room, in a process of its own (`benchmarks/mutation.py`); `mutants` are
drawn by seed from the lines that the room's tests reach. What tests reach is collected once and
kept in `build/mutation`. A finding is a mutant that survives the room's tests. Not every one is a
gap: some change nothing.
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
    "fragir/isa": ("tests/isa", "tests/cli/test_instructions.py", "tests/cli/test_emit.py"),
    "fragir/ptx": ("tests/ptx",),
    "fragir/emulator": ("tests/emulator", "--deselect=tests/emulator/test_mutants.py"),
    "fragir/reference": ("tests/reference",),
    "fragir/builder": ("tests/builder",),
    "fragir/cli": ("tests/cli",),
    "dialects": ("tests/golden", "tests/passes"),
    "passes": ("tests/golden", "tests/passes", "tests/properties"),
}
TOGETHER = 10  # mutants of a task: the room's tests are imported once for all of them


def tasks(plan: Plan) -> Sequence[Any]:
    rooms = [plan.parameters["room"]] if plan.parameters["room"] else list(ROOMS)
    parts = -(-plan.parameters["mutants"] // TOGETHER)
    return sample([[room, part, parts] for room in rooms for part in range(1, parts + 1)], plan)


def run(task: Task) -> Result:
    room, part, parts = task.what
    modules = [str(path.relative_to(ROOT)) for path in sorted((ROOT / room).rglob("*.py"))]
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder, "results.json")
        command = [sys.executable, "benchmarks/mutation.py", *modules, "--json", str(results)]
        command += ["--most", str(task.parameters["mutants"]), "--seed", str(task.seed)]
        command += ["--part", f"{part}/{parts}", "--cache", "build/mutation"]
        done = subprocess.run(
            [*command, "--tests", *ROOMS[room]], cwd=ROOT, capture_output=True, text=True
        )
        if done.returncode not in (0, 1) or not results.exists():
            raise RuntimeError(f"{room}: {(done.stderr or done.stdout)[-2000:]}")
        documents = json.loads(results.read_text())
    return {
        "findings": [f"{d['module']}: {m}" for d in documents for m in d["survivors"]],
        "mutants": sum(d["judged"] for d in documents),
        "unreached": sum(len(d["unreached"]) for d in documents) if part == 1 else 0,
        "verdicts": [verdict for d in documents for verdict in d["verdicts"]],
    }


SWEEP = Sweep(tasks, run, {"room": "", "mutants": 60}, seconds=7200)
