"""Random loops over tiles, on the emulator: every tile is visited once, by however many blocks."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

import fragir
from fragir.sweeps import Plan, Result, Sweep, Task

ORDERS = ("", "rows", "columns", "linear", "grouped", "hilbert")


def loop_program(random: Random) -> tuple[str, int]:
    """A kernel that adds one to each element of the tiles that its blocks visit; its dimensions."""
    rank = random.choice([2, 2, 3])
    names = "bmn"[-rank:]
    sizes = [random.choice([None, None, random.randint(1, 90)]) for _ in names]
    if rank == 3 and sizes[0]:
        sizes[0] = random.randint(1, 4)
    memory = f"memref<{'x'.join('?' if n is None else str(n) for n in sizes)}xi32>"
    tile = (random.choice([1, 4, 8, 16]), random.choice([1, 8, 32]))
    order = random.choice(ORDERS)
    if order == "grouped" and random.random() < 0.7:
        order += f" {random.randint(1, 9)}"
    words = f"{order} {random.choice(['', 'persistent'])}"
    if random.random() < 0.5:
        words += f" cluster {random.randint(1, 5)}"
    type_ = f"!frag.tile<{tile[0]}x{tile[1]}xi32>"
    lines, extents = list[str](), list[str]()
    for dim, (name, size) in enumerate(zip(names, sizes, strict=True)):
        lines.append(f"%d{dim} = arith.constant {dim} : index")
        lines.append(f"%{name} = memref.dim %c, %d{dim} : {memory}")
        extents.append(f"%{name}" if size is None or random.random() < 0.3 else str(size))
    at = [f"%i{dim}" for dim in range(rank)]
    shape = (1, *tile)[-rank:]
    listed = ", ".join(f'"{name}"' for name in names)
    text = "\n  ".join(
        [
            f"func.func @count(%c: {memory} {{frag.sizes = [{listed}]}}) {{",
            *lines,
            "%one = arith.constant 1 : i32",
            f"%t = frag.fill %one : {type_}",
            f"frag.for_tiles ({', '.join(at)}) of ({', '.join(extents)}) "
            f"by ({', '.join(map(str, shape))}) {words} {{",
            f"  frag.atomic add %t, %c[{', '.join(at)}] masked : "
            f"{type_}, {memory}{', index' * rank}",
            "}",
            "func.return",
        ]
    )
    return f"{text}\n}}\n", rank


def check(random: Random) -> list[str]:
    """What is wrong with a loop that is drawn."""
    text, rank = loop_program(random)
    kernel = fragir.compile(text, target="sm_90a")
    for _ in range(3):
        drawn = [random.randint(1, 4), random.randint(1, 90), random.randint(1, 90)][-rank:]
        shape = [
            own if isinstance(own, int) else size
            for own, size in zip(kernel.signature[0].dims, drawn, strict=True)
        ]
        resident = random.randint(1, 12)
        c = np.zeros(shape, np.int32)
        kernel(c, on="emulator", resident=resident)
        if (c != 1).any():
            place = tuple(int(i) for i in np.argwhere(c != 1)[0])
            return [f"{shape}, {resident} blocks at once: {place} {c[place]} times: {text}"]
    return []


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, batch = task.random(), task.parameters["batch"]
    findings = [each for _ in range(batch) for each in check(random)]
    return {"findings": findings, "programs": batch}


SWEEP = Sweep(tasks, run, {"batch": 20}, seconds=300.0)
