"""Products in tensor memory of any sizes: blocks alone, pairs of them, clusters that share B.

Each is drawn by the task's seed: types, orders of A and B, epilogue, C's type, columns of a tile,
stages, sizes from zero on, most of them no multiple of a tile; sizes are known to the compiler or
only to the launch. It is compiled, run on small whole numbers, so that the answer is exact, under
three schedules of the emulator with every check, and assembled: no spills.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import fragir
from benchmarks.sweeps.pipelines import OUTS, SUMS, Config, check, text_of
from fragir.sweeps import Plan, Result, Sweep, Task

ELEMENTS = ("f16", "bf16", "tf32", "f8E4M3FN", "f8E5M2", "si8", "ui8")
WAYS = ("cluster = 1 : i64", "pair", "pair", "cluster = 2 : i64")
UNIT = 16
"""Elements of which a row that a tensor map takes has a multiple."""
K_STEPS = {"tf32": 32, "f8E4M3FN": 128, "f8E5M2": 128, "si8": 128, "ui8": 128}
"""Elements of K in 128 bytes, the widest swizzle; 64 of those of 16 bits."""


def drawn(random: Random) -> Config:
    """A product."""
    element = random.choice(ELEMENTS)
    crossed = ((False, True),) if element == "tf32" else ((0, 0), (0, 1), (1, 0), (1, 1))
    left, right = random.choice(crossed)
    way = random.choice(WAYS)
    step = 32 if element in ("si8", "ui8", "f8E4M3FN", "f8E5M2") else 16
    columns = step * random.randint(1, 256 // step) if random.random() < 0.5 else 64
    depth = K_STEPS.get(element, 64)
    given = [way, f"tile = array<i64: 128, {columns}, {depth}>"]
    if random.random() < 0.5:
        given.append(f"stages = {random.randint(1, 3)} : i64")
    static = random.random() < 0.5
    least = 1 if static else 0

    def size(most: int, contiguous: bool) -> int:
        found = random.choice([least, 1, random.randint(least, 40), random.randint(least, most)])
        return -(-found // UNIT) * UNIT if contiguous else found

    m, n, k = size(530, bool(left)), size(3 * columns, not right), size(5 * depth, True)
    out = random.choice(("", *OUTS.get(element, ())))
    epilogue = random.choice(("none", "none", "old", "bias")) if element not in SUMS else "none"
    turned = bool(left), bool(right)
    return Config("sm_100a", ", ".join(given), element, turned, epilogue, (m, n, k), static, out)


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


def run(task: Task) -> Result:
    config = drawn(task.random())
    told = check(config)
    kernel = fragir.compile(text_of(config), target=config.target)
    paired = "cta_group::2" in kernel.ptx
    return {
        "findings": told or [],
        "programs": 1,
        "refused": int(told is None),
        "pairs": int(paired),
        "in_tensor_memory": int("tcgen05.mma" in kernel.ptx),
    }


SWEEP = Sweep(tasks, run, {}, seconds=120.0)
