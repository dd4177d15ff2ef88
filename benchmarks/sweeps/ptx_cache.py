"""Mutated PTX read by the cache of statement shapes and by plain Lark: the same trees and refusals.

A task is a batch of runs of lines of real files, each with one character changed.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from fragir.ptx import PtxSyntaxError, parse, walk
from fragir.ptx.tree import Module
from fragir.sweeps import Plan, Result, Sweep, Task

DATA = Path(__file__).parents[2] / "tests" / "ptx" / "data"
HEAD = ".version 8.7\n.target sm_90a\n.entry k()\n{\n"
CHARACTERS = "".join(map(chr, range(32, 127))) + "\n\t\f\v\r\0\x1c\x85\xa0\u2028é"

Positions = list[tuple[type, object, object]]


def outcome(text: str, cache: bool) -> tuple[Module, Positions] | None:
    """The tree and the positions of all its nodes; None where the text is refused."""
    try:
        module = parse(text, cache=cache)
    except PtxSyntaxError:
        return None
    return module, [
        (type(n), getattr(n, "at", None), getattr(n, "end", None)) for n in walk(module)
    ]


def mutants(texts: Mapping[str, str], rng: random.Random, count: int) -> list[str]:
    """Runs of lines of real files, some in a body of their own, with one character changed."""
    lines = [text.split("\n") for text in texts.values()]
    made: list[str] = []
    while len(made) < count:
        file = rng.choice(lines)
        first = rng.randrange(len(file))
        text = "\n".join(file[first : first + rng.randint(1, 4)])
        if rng.random() < 0.8:
            text = f"{HEAD}{text}\n}}\n"
        for _ in range(5):
            at = rng.randrange(max(1, len(text)))
            new = rng.choice(CHARACTERS if rng.random() < 0.6 else text or "x")
            way = rng.random()
            if way < 0.4:
                made.append(text[:at] + new + text[at + 1 :])
            elif way < 0.7:
                made.append(text[:at] + text[at + 1 :])
            else:
                made.append(text[:at] + new + text[at:])
    return made


@cache
def texts() -> dict[str, str]:
    return {path.stem: path.read_text("utf-8") for path in sorted(DATA.glob("*.ptx"))}


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    findings: list[str] = []
    read = 0
    made = mutants(texts(), task.random(), task.parameters["batch"])
    for text in made:
        quick, plain = outcome(text, cache=True), outcome(text, cache=False)
        read += plain is not None
        if quick != plain:
            findings.append(f"the cache reads this otherwise: {text!r}")
    return {"mutants": len(made), "read": read, "findings": findings}


SWEEP = Sweep(tasks, run, {"batch": 300}, seconds=300.0)
