"""Every program of `examples/` judged against its own meaning, as `fragir judge` judges PTX.

A task is a function of a program, at the sizes of the command in its header, or the kernel that the
script beside it writes in its place. `pass`: no finding, for every schedule, the same function as
the program means, the same integers, or within the bound of its meaning. What cannot be decided is
`incomplete`, with the reason.
"""

from __future__ import annotations

import re
import runpy
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects import func

from fragir.builder.kernel import KernelBuilder
from fragir.cli.exact import follow_trial
from fragir.cli.trial import Trial
from fragir.compiler import parse
from fragir.emulator import Report
from fragir.errors import FragirError
from fragir.sweeps import Plan, Result, Sweep, Task, sample
from fragir.sweeps.faults import fault

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT = (200_000_000, 600.0)


@dataclass(frozen=True)
class Example:
    """A function of a program of `examples/` and how it is run; `text` of a script's."""

    program: str
    entry: str
    target: str
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    given: dict[str, Any] = field(default_factory=dict[str, Any])
    text: str | None = None


#: Functions that no header has a command for, and that need sizes, arrays that are no data, or a
#: target that their operations do not tell.
FURTHER = (
    Example("attention/backward.mlir", "delta", "sm_80", {"h": 2, "m": 65}),
    Example("data/embedding.mlir", "backward", "sm_80", {"m": 70, "n": 100, "k": 300}),
    Example("elementwise/vector_add.mlir", "add_f16", "sm_80", {"n": 2051}),
    Example(
        "products/grouped.mlir",
        "grouped",
        "sm_80",
        {"m": 67, "n": 5, "k": 45, "g": 3},
        {"starts": [0, 66, 66], "ends": [66, 66, 67]},
    ),
    Example(
        "quantised/fp8_grouped.mlir",
        "fp8_grouped",
        "sm_90a",
        {"m": 45, "n": 150, "k": 160, "g": 3, "k_by_128": 2, "n_by_128": 2},
        {"ends": [10, 10, 45]},
    ),
    Example("stmatrix.mlir", "stmatrix", "sm_90"),
)
#: What has no command of its own because a function of the host launches it.
_LAUNCHED = {"quantised/w4a16_few.mlir": ("zeros", "w4a16_few")}


def examples() -> Iterator[Example]:
    """Every function of every program."""
    further = {(one.program, one.entry): one for one in FURTHER}
    for path in sorted(EXAMPLES.rglob("*.mlir")):
        program, text = str(path.relative_to(EXAMPLES)), path.read_text("utf-8")
        functions = [op for op in parse(text, path.name).ops if isinstance(op, func.FuncOp)]
        commands = dict(_commands(program, text, functions[0].sym_name.data))
        for function in functions:
            name = function.sym_name.data
            if name in _LAUNCHED.get(program, ()):
                continue
            found = further.get((program, name)) or commands.get(name)
            yield found or Example(program, name, target_of(program, function))


def of_scripts(found: Sequence[Example]) -> Iterator[Example]:
    """The kernels of scripts that are named as the function of the program beside them."""
    for path in sorted({(EXAMPLES / one.program).with_suffix(".py") for one in found}):
        if not path.exists():
            continue
        name = str(path.relative_to(EXAMPLES))
        defined = runpy.run_path(str(path), run_name="example").values()
        kernels = {each.name: each.mlir for each in defined if isinstance(each, KernelBuilder)}
        for one in found:
            if one.program == name.replace(".py", ".mlir") and one.entry in kernels:
                yield replace(one, program=name, text=kernels[one.entry])


def _commands(program: str, text: str, first: str) -> Iterator[tuple[str, Example]]:
    """By the name of the function, what `fragir run` is to be called with in a header."""
    for line in text.splitlines():
        if not line.startswith("//"):
            return
        if not (found := re.match(r"//\s+fragir run \S+\s*(.*)", line)):
            continue
        words = iter(shlex.split(found[1]))
        options = [(word.removeprefix("--"), next(words)) for word in words]
        one = dict(options)
        sizes = dict(pair.split("=") for pair in one.get("size", "").split(",") if pair)
        given = dict(value.split("=") for word, value in options if word == "arg")
        entry, target = one.get("entry", first), one.get("target", "sm_80")
        whole = {name: int(size) for name, size in sizes.items()}
        yield entry, Example(program, entry, target, whole, given)


def target_of(program: str, function: func.FuncOp) -> str:
    """The oldest of a few targets that has what the function uses."""
    names = {op.name for op in function.walk()}
    if "frag.wgmma" in names:
        return "sm_90a"
    return "sm_89" if "fp8" in program else "sm_80"


def tasks(plan: Plan) -> Sequence[Any]:
    """The programs' functions, and the scripts'."""
    found = list(examples())
    return sample([asdict(one) for one in (*found, *of_scripts(found))], plan)


def run(task: Task) -> Result:
    one = Example(**task.what)
    found = judge_example(one)
    wrong = [f"{one.program}, {one.entry}: {why}" for why in found["reasons"]]
    return {**found, "findings": wrong if found["verdict"] == "fail" else []}


def judge_example(one: Example) -> Result:
    """The verdict, its reasons, and what it holds for."""
    text = one.text or (EXAMPLES / one.program).read_text("utf-8")
    trial = Trial(text, one.program, one.entry or None, one.target, "emulator", None, LIMIT, 1)
    try:
        trial.compile()
        with tempfile.TemporaryDirectory() as folder:
            trial.prepare(one.sizes, _given(one, Path(folder)), "normal", 0)
        trial.choose_entry()
        trial.evaluate()
        trial.results = trial.copies()
        options = {"check": True, "jobs": 1, "target": one.target, "limit": LIMIT}
        report = trial.run_once(trial.results, options)
        trial.judge()
        equalities = follow_trial(trial, 0)
    except FragirError as error:
        if fault(error):
            raise
        return _verdict([("incomplete", error.sentence)], None, "not decided")
    reasons: list[tuple[str, str]] = []
    if trial.mismatches:
        reasons.append(("fail", f"{trial.mismatches} elements are not what the program means"))
    for name, equality in equalities.items():
        if equality.different:
            reasons.append(("fail", f"{name} is {equality.sentence}"))
    if trial.unjudged_count:
        reasons.append(("incomplete", f"{trial.unjudged_count} elements have no bound"))
    return _verdict(reasons, report, _equality(trial, equalities))


def _given(one: Example, folder: Path) -> dict[str, str]:
    """Arguments as `--arg` has them; lists are files of s32."""
    given: dict[str, str] = {}
    for name, value in one.given.items():
        given[name] = str(value)
        if isinstance(value, list):
            given[name] = str(folder / f"{name}.npy")
            np.save(given[name], np.array(value, np.int32))
    return given


def _equality(trial: Trial, equalities: dict[str, Any]) -> str:
    names = [trial.slots[i].name for i in trial.expected]
    if names and all(name in equalities and not equalities[name].undecided for name in names):
        return "exact (2^-60)"
    if all(name in equalities for name in names):
        return "bounded"
    return "numbers" if not equalities else "bounded"


def _verdict(reasons: list[tuple[str, str]], report: Report | None, equality: str) -> Result:
    schedules = None if report is None else report.schedules
    data = None if report is None else report.data
    if report is not None:
        found = [one for one in report.findings if one.severity == "error"]
        reasons += [("fail", f"line {one.line}: {one.kind}: {one.message}") for one in found]
    if schedules is not None and not schedules.every:
        for line, why in sorted({(one.line, one.why) for one in schedules.open}, key=str):
            reasons.append(("incomplete", f"line {line}: {why}"))
    words = {word for word, _ in reasons}
    return {
        "verdict": next((word for word in ("fail", "incomplete") if word in words), "pass"),
        "reasons": [why for _, why in reasons],
        "equality": equality,
        "every_schedule": int(schedules is not None and schedules.every),
        "every_value": int(data is not None and data.every),
        "by_value": [] if data is None else sorted({f"{x.line}: {x.what}" for x in data.open}),
        "passes": int(not words),
    }


SWEEP = Sweep(tasks, run, seconds=900.0)
