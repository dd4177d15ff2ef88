"""Mutated PTX: read, and run for a moment: a clear error or none, no hang, no bloat.

A task is a batch of mutants: runs of lines of real files, which the reader must read or refuse, and
whole small kernels, which the emulator then runs with arguments that fit by chance. Nothing is said
of results. `--set keep=FOLDER` writes the mutants with findings there.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fragir.emulator import run as emulate
from fragir.emulator.report import Asynchrony
from fragir.ptx import PtxSyntaxError, parse, tree
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import Attempt, attempt

ROOT = Path(__file__).parents[2]
#: Real files, and correct kernels small enough to be run many times.
TEXTS = ("tests/ptx/data/*.ptx",)
KERNELS = (
    *("tests/ptx/data/features*.ptx", "tests/emulator/patterns/*.ptx"),
    "tests/foreign/triton_ptx/*.ptx",
)
LARGEST = 10_000  # characters of a kernel
LIMIT = 1000  # warp instructions of a run; seconds would depend on the machine

JUNK = (
    *(
        "\0",
        "\x1b",
        "\xa0",
        "é",
        "\U0001f600",
        "\ud800",
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        ";",
        ",",
        '"',
    ),
    *("/*", "*/", "//", "#", "@", "@@DWARF ", "!", "|", "+-", "<<", "?", ":", ".", "..", "::", "%"),
    *("$", "_", "\r", "0x", "0f3F8", "0d", "1e", "099", "0b2", "1" * 40, "a" * 300, "{" * 80),
    *("(" * 80, "-" * 80, " " * 500, ".reg .b32 ", ".loc 1 ", ".section .x {", "bra ", "call ("),
    *(".entry k(", '.pragma "', "WARP_SZ", "generic("),
)
NUMBERS = ("0", "1", "-1", "3", "31", "32", "255", "65536", "2147483647", "4294967295", "1e9")
_WORD = re.compile(r"[%$.\w]+")


def mutated(rng: random.Random, text: str) -> str:
    """One to six edits: runs changed, dropped, doubled, moved; bits flipped; junk; cut off."""
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        at = rng.randrange(len(text) + 1)
        end = min(len(text), at + rng.choice((0, 1, 1, 2, 5, 30, 200)))
        way = rng.randrange(7)
        if way == 0:
            text = text[:at] + rng.choice(JUNK) + text[end:]
        elif way == 1:
            text = text[:at] + text[end:]
        elif way == 2:
            text = text[:at] + text[at:end] * rng.choice((2, 2, 3, 50)) + text[end:]
        elif way == 3:
            other = rng.randrange(len(text) + 1)
            text = text[:at] + text[other : other + end - at] + text[end:]
        elif way == 4:
            text = text[:at] + chr(rng.randrange(256)) + text[at + 1 :]
        elif way == 5 and at < len(text):
            text = text[:at] + chr(ord(text[at]) ^ 1 << rng.randrange(7)) + text[at + 1 :]
        elif way == 6 and rng.random() < 0.1:
            text = text[:at]
    return text


def reworded(rng: random.Random, text: str) -> str:
    """One to four edits that mostly still parse: words and lines changed for others of the text."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        words = list(_WORD.finditer(text))
        lines = text.splitlines(keepends=True)
        at = rng.randrange(len(lines))
        way = rng.randrange(6)
        if way < 3:
            word = rng.choice(words)
            new = rng.choice(words)[0] if way < 2 else rng.choice(NUMBERS)
            text = text[: word.start()] + new + text[word.end() :]
        elif way == 3:  # a modifier more, less, or another
            word = rng.choice([w for w in words if "." in w[0]] or words)
            parts = word[0].split(".")
            place = rng.randrange(len(parts))
            others = rng.choice(words)[0].split(".")
            parts[place : place + rng.randrange(2)] = rng.choices(others, k=rng.randrange(2))
            text = text[: word.start()] + ".".join(parts) + text[word.end() :]
        elif way == 4:
            text = "".join([*lines[:at], *lines[at + 1 :]])
        else:
            to = rng.randrange(len(lines))
            text = "".join([*lines[:to], lines[at], *lines[to:]])
    return text


def fragment(rng: random.Random, texts: Sequence[Sequence[str]]) -> str:
    """Some lines of a file, mostly as the body of a kernel, or all of it; mutated."""
    file = rng.choice(texts)
    first = rng.randrange(len(file))
    body = "".join(file[first : first + rng.randint(1, 12)])
    text = "".join(file) if rng.random() < 0.02 else body
    if rng.random() < 0.7 and text is body:
        text = f".version 8.7\n.target sm_90a\n.entry k()\n{{\n{body}}}\n"
    return mutated(rng, text)


def read(text: str) -> Attempt[tree.Module]:
    """Reads a text; what it is refused with must say all that an error has to."""
    trial = attempt(lambda: parse(text, "fuzz.ptx"))
    if not isinstance(trial.error, PtxSyntaxError):
        other = trial.error is not None and trial.finding is None
        return Attempt(finding=f"another error: {trial.error}") if other else trial
    error = trial.error
    first, *shown = str(error).split("\n")
    wrong = (
        error.line is None
        or not 1 <= error.line <= text.count("\n") + 1
        or not first.startswith(f"fuzz.ptx:{error.line}:{error.col}: ")
        or len(first) >= 2000
        or len(shown) != 2
        or shown[1].strip() != "^"
    )
    return Attempt(finding=f"an error without its place: {error}") if wrong else trial


def run_shortly(rng: random.Random, module: tree.Module) -> Attempt[object]:
    """Emulates an entry of a module under one of many circumstances."""
    entries = [f for f in module.items if isinstance(f, tree.Function) and f.kind == "entry"]
    entry = rng.choice(entries) if entries else None
    arguments = [_argument(rng, p) for p in entry.parameters or ()] if entry else []
    modes: tuple[Asynchrony, ...] = ("late", "early", "random")
    asynchrony = rng.choice(modes)
    block, grid = rng.choice((1, 32, 33, 64, 128, 256)), rng.choice((1, 1, 2, 4))
    asked = _required_threads(entry)
    if asked is not None and rng.random() < 0.9:
        block = asked
    shared, check = rng.choice((0, 0, 1024, 48 << 10)), rng.random() < 0.5
    schedule = rng.choice((None, 1))
    return attempt(
        lambda: emulate(
            module,
            entry.name.text if entry else None,
            block=(block,),
            grid=(grid,),
            arguments=arguments,
            shared=shared,
            check=check,
            schedule=schedule,
            asynchrony=asynchrony,
            limit=LIMIT,
        )
    )


def _required_threads(entry: tree.Function | None) -> int | None:
    """What `.reqntid` of a kernel asks for, as far as it is small."""
    for directive in entry.directives if entry else ():
        if isinstance(directive, tree.FunctionDirective) and directive.name == "reqntid":
            first = directive.values[0] if directive.values else None
            if isinstance(first, tree.Integer) and 0 < first.value <= 512:
                return first.value
    return None


def _argument(rng: random.Random, parameter: tree.Declaration) -> Any:
    """Something for a parameter: arrays for what may be pointers, small numbers."""
    if parameter.type.endswith("64") and rng.random() < 0.9:
        return np.zeros(rng.choice((64, 1 << 14)), np.uint32)
    if parameter.type.startswith("f"):
        return 1.5
    return rng.choice((0, 1, 3, 16, 64))


@cache
def texts() -> list[list[str]]:
    """The lines of the real files."""
    paths = sorted(path for pattern in TEXTS for path in ROOT.glob(pattern))
    return [path.read_text("utf-8").splitlines(keepends=True) for path in paths]


@cache
def kernels() -> list[str]:
    paths = sorted(path for pattern in KERNELS for path in ROOT.glob(pattern))
    return [text for text in (path.read_text("utf-8") for path in paths) if len(text) < LARGEST]


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 500)


def run(task: Task) -> Result:
    """A batch of mutants."""
    counts = {"mutants": 0, "read": 0, "run": 0, "ended": 0}
    findings: list[str] = []
    for number in range(task.parameters["batch"]):
        rng = random.Random(f"{task.seed}/{task.index}/{number}")
        runnable = rng.random() < 0.5
        edit = reworded if rng.random() < 0.8 else mutated
        text = edit(rng, rng.choice(kernels())) if runnable else fragment(rng, texts())
        trial: Attempt[Any] = read(text)
        counts["mutants"] += 1
        counts["read"] += trial.value is not None
        if runnable and trial.value is not None:
            trial = run_shortly(rng, trial.value)
            counts["run"] += 1
            counts["ended"] += trial.value is not None
        if trial.finding is not None:
            findings.append(f"mutant {number}: {trial.finding}")
            if task.parameters["keep"]:
                _keep(Path(task.parameters["keep"]), f"{task.index}-{number}.ptx", text)
    return {**counts, "findings": findings}


def _keep(folder: Path, name: str, text: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(text.encode("utf-8", "surrogatepass"))


SWEEP = Sweep(tasks, run, {"batch": 100, "keep": ""}, seconds=300.0)
