"""Tiles of four-bit elements in random layouts, loaded and cast: every element must arrive.

Lanes' elements lie anywhere, in any order, in global or in swizzled shared memory, along rows or
along columns, some of them outside. What no lane can load (bytes whose halves are different lanes')
is refused and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from fragir import bf16, f16, f32, kernel, s4, s32, u4
from fragir.builder import KernelBuilder
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode, transposed
from fragir.layout.modes import Point
from fragir.sweeps import Plan, Result, Sweep, Task

FOUR_BITS = {"s4": s4, "u4": u4}
WIDE: dict[str, tuple[Any, Any]] = {
    "f16": (f16, np.float16),
    "bf16": (bf16, ml_dtypes.bfloat16),
    "f32": (f32, np.float32),
    "s32": (s32, np.int32),
}
LANE_BITS = 5


class Trial(NamedTuple):
    """What one kernel loads, and where from."""

    element: str
    wide: str
    shape: tuple[int, int]  # of the memory
    inside: tuple[int, int]  # of the array, where its size is known at the launch
    warps: int
    layout: Layout  # of the tile
    turned: bool
    shared: bool
    swizzle: int

    @property
    def masked(self) -> bool:
        """Whether the array may be smaller than the tile."""
        return not self.shared


def trial(random: Random) -> Trial:
    """A random kernel."""
    warps, rows, cols = (random.choice(some) for some in ((1, 2, 4), (8, 16, 32), (16, 32, 64)))
    points: list[Point] = [(1 << bit, 0) for bit in range(rows.bit_length() - 1)]
    points += [(0, 1 << bit) for bit in range(1, cols.bit_length() - 1)]
    random.shuffle(points)
    lanes, points = points[:LANE_BITS], points[LANE_BITS:]
    across, held = points[: warps.bit_length() - 1], points[warps.bit_length() - 1 :]
    across += [(0, 0)] * (warps.bit_length() - 1 - len(across))  # copies
    held.append((0, 1) if random.random() < 0.9 else lanes.pop())
    if len(lanes) < LANE_BITS:
        lanes.append((0, 1))
    random.shuffle(held)
    parts = {"warp": across, "lane": lanes, "element": held}
    axes = (Axis(name, tuple(Mode(2, p) for p in part)) for name, part in parts.items())
    layout = Layout(tuple(axes), ("row", "col"))
    turned, shared = random.random() < 0.4, random.random() < 0.5
    inside = (random.randint(0, rows), 2 * random.randint(0, cols // 2))
    return Trial(
        random.choice(sorted(FOUR_BITS)),
        random.choice(sorted(WIDE)),
        (rows, cols),
        (rows, cols) if shared else inside,
        warps,
        transposed(layout) if turned else layout,
        turned,
        shared,
        random.choice((0, 32)) if cols == 64 else 0,
    )


def built(given: Trial) -> KernelBuilder:
    """The kernel of a trial."""
    shape = given.shape[::-1] if given.turned else given.shape
    with kernel("k", warps=(1, given.warps)) as k:
        sizes = ("m", "n") if given.masked else given.shape
        w = k.memory("w", FOUR_BITS[given.element], sizes)
        c = k.memory("c", WIDE[given.wide][0], shape)
        if given.masked:
            k.divisible(n=2)
        source = w
        if given.shared:
            source = k.shared(given.shape, w.element, swizzle=given.swizzle)
            k.copy(w, (0, 0), source)
            k.barrier()
        tile = k.load(
            source,
            (0, 0),
            shape=shape,
            transposed=given.turned,
            masked=given.masked,
            layout=given.layout,
        )
        k.store(tile.cast(c.element), c, (0, 0))
    return k


def check(given: Trial, seed: int) -> list[str]:
    """What is wrong with a kernel, on the emulator with every check; FragirError if refused."""
    made = built(given).compile()
    rows, cols = given.inside
    packed = np.random.default_rng(seed).integers(0, 256, (rows, cols // 2)).astype(np.uint8)
    values = np.stack([packed & 15, packed >> 4], -1).reshape(rows, cols).astype(np.int64)
    wanted = np.zeros(given.shape, np.int64)
    wanted[:rows, :cols] = (values ^ 8) - 8 if given.element == "s4" else values
    wanted = wanted.T if given.turned else wanted
    found = np.full(wanted.shape, 77).astype(WIDE[given.wide][1])
    report = made(packed, found, on="emulator", check=True)
    wrong = int(np.sum(found.astype(np.int64) != wanted))
    problems = [f"{wrong} of {wanted.size} elements are wrong: {given}"] if wrong else []
    errors = [finding for finding in report.findings if finding.severity == "error"]
    return problems + [f"{finding.message}: {given}" for finding in errors]


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 50)


def run(task: Task) -> Result:
    random, findings, refused = task.random(), list[str](), 0
    batch = task.parameters["batch"]
    for number in range(batch):
        try:
            findings += check(trial(random), number)
        except FragirError as error:
            if "do not share a byte" not in str(error):
                findings.append(str(error))
            refused += 1
    return {"findings": findings, "kernels": batch, "refused": refused}


SWEEP = Sweep(tasks, run, {"batch": 20}, seconds=600.0)
