"""Foreign PTX lifted to the `ptx` dialect, printed, parsed and written back: the same machine code.

A task is a file. The SASS of what is written back is held against that of the file, function by
function, instruction by instruction; registers, predicates and barriers of the scoreboard may have
other numbers. `passes` (as in "cse,canonicalize") are applied in between: then what comes out is
assembled and counted, and may differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fragir.compilation import pipeline, program
from fragir.errors import FragirError
from fragir.ptx import parse
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from fragir.toolchain import ptxas, sass

ROOT = Path(__file__).resolve().parents[2]
#: The PTX that the repository keeps, from nvcc, Triton and by hand.
KEPT = ("tests/foreign/cuda", "tests/foreign/triton_ptx", "tests/ptx/data", "examples")
_LINE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(.*?)\s*;", re.MULTILINE)
_NUMBER = re.compile(r"\b(UR|UP|R|P|B|SB)\d+\b")
_LABEL = re.compile(r"\.L_x_\d+")
#: Why a file is left out: it has no counterpart, or ptxas does not take it either.
INDIRECT = "indirect branches"


def files(folder: str) -> list[str]:
    """The PTX files of a folder, or those that are kept, by path."""
    folders = [Path(folder)] if folder else [ROOT / kept for kept in KEPT]
    return [str(path) for each in folders for path in sorted(each.rglob("*.ptx"))]


def instructions(text: str, target: str) -> dict[str, list[str]]:
    """The SASS of every function, registers without their numbers."""
    found = sass.functions(sass.disassemble(ptxas.assemble(text, target).cubin))
    return {name: _lines(code) for name, code in sorted(found.items())}


def _lines(code: str) -> list[str]:
    """The instructions of a function, its labels numbered anew."""
    labels: dict[str, str] = {}

    def label(found: re.Match[str]) -> str:
        return labels.setdefault(found[0], f".L{len(labels)}")

    return [_LABEL.sub(label, _NUMBER.sub(r"\1", line)) for line in _LINE.findall(code)]


def there_and_back(text: str, passes: str = "") -> str:
    """PTX through the dialect, printed and parsed on the way."""
    module = program.parse(str(program.lift(text)))
    if passes:
        pipeline.run(pipeline.parse(passes), module)
    return program.emit(program.parse(str(module)))


def difference(before: Sequence[str], after: Sequence[str]) -> str:
    """Where two sequences of instructions part."""
    if sorted(before) == sorted(after):
        what = "the same instructions in another order"
    else:
        what = f"{len(before)} and {len(after)} instructions"
    pairs = enumerate(zip(before, after, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(before), len(after)))
    parted = [code[at] if at < len(code) else "nothing" for code in (before, after)]
    return f"{what}, from instruction {at} on: {parted[0]} for {parted[1]}"


def judge(path: str, passes: str) -> Result:
    """How many functions of a file, and instructions, are the same; what differs."""
    result: Result = dict.fromkeys(("functions", "same", "instructions", "left_out"), 0)
    result |= {"differs": [], "findings": []}
    text = Path(path).read_text("utf-8")
    try:
        target, *options = parse(text).target
        if "debug" in options:  # ptxas would optimise what is written back
            return result | {"left_out": 1, "why": "debugging information is not lifted"}
        before = instructions(text, target)
    except FragirError as error:
        return result | {"left_out": 1, "why": f"not PTX that ptxas takes: {error.message}"}
    try:
        after = instructions(there_and_back(text, passes), target)
    except FragirError as error:
        if INDIRECT in error.message:
            return result | {"left_out": 1, "why": error.message}
        return result | {"findings": [f"{Path(path).name}: {error}"]}
    result["functions"] = len(before)
    for name, code in before.items():
        result["instructions"] += len(code)
        if code == after.get(name):
            result["same"] += 1
        else:
            result["differs"].append(f"{name}: {difference(code, after.get(name, ()))}")
    if after.keys() != before.keys():
        result["findings"].append(f"{Path(path).name}: functions are {', '.join(after)}")
    return result


def tasks(plan: Plan) -> Sequence[Any]:
    return sample(files(str(plan.parameters.get("folder") or "")), plan)


def run(task: Task) -> Result:
    return judge(task.what, str(task.parameters["passes"]))


SWEEP = Sweep(tasks, run, {"folder": "", "passes": ""}, seconds=300.0)
