"""Kernels whose tiles and shared memory have random layouts: every element must arrive.

A matrix is copied to shared memory, loaded as a tile, stored to other shared memory, loaded as
another tile and stored to global memory; each of the four layouts is drawn: padded, turned, linear
over F2 (exclusive or), with copies of elements, with lanes that hold nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

from fragir import compile as compile_program
from fragir.layout import Axis, Layout, Mode
from fragir.layout.modes import Condition, Point, XorMode
from fragir.sweeps import Plan, Result, Sweep, Task

ELEMENTS = {"f16": np.float16, "f32": np.float32, "i8": np.int8}
LANE_BITS = 5


class Trial(NamedTuple):
    """One program, and what is asked of it."""

    program: str
    target: str
    element: str
    shape: tuple[int, int]
    warps: int
    transposed: bool


def mixed(random: Random, count: int, times: int) -> list[int]:
    """Columns of an invertible map of so many bits."""
    columns = [1 << bit for bit in range(count)]
    for _ in range(times):
        one, other = random.sample(range(count), 2)
        columns[one] ^= columns[other]
    return columns


def memory_layout(random: Random, rows: int, cols: int) -> Layout:
    """Of a memref in shared memory: powers of two by powers of two."""
    kind = random.choice(("swizzled", "linear", "padded", "turned"))
    if kind == "padded":
        axes = (rows, cols + random.choice((0, 1, 2, 4, 8, 16))), (cols, 1)
        return _plain(*axes)
    if kind == "turned":
        return _plain((rows, 1), (cols, rows + random.choice((0, 1, 2, 8))))
    bits = (rows * cols).bit_length() - 1
    kept = 3 if kind == "swizzled" else 0  # eight elements stay side by side
    columns = [1 << bit for bit in range(kept)]
    columns += [c << kept for c in mixed(random, bits - kept, random.choice((3, 20)))]
    cut = cols.bit_length() - 1
    modes = [tuple(XorMode(2, (c,)) for c in part) for part in (columns[cut:], columns[:cut])]
    return Layout((Axis("row", modes[0]), Axis("col", modes[1])), ("index",)).simplified()


def _plain(row: tuple[int, int], col: tuple[int, int]) -> Layout:
    axes = (Axis(n, (Mode(s, (step,)),)) for n, (s, step) in (("row", row), ("col", col)))
    return Layout(tuple(axes), ("index",))


def tile_layout(random: Random, rows: int, cols: int, warps: int) -> Layout:
    """Of a tile in registers, over so many warps."""
    points: list[Point] = [(1 << bit, 0) for bit in range(rows.bit_length() - 1)]
    points += [(0, 1 << bit) for bit in range(cols.bit_length() - 1)]
    if random.random() < 0.7:
        for _ in range(random.choice((2, 6, 30))):
            one, other = random.sample(range(len(points)), 2)
            points[one] = points[one][0] ^ points[other][0], points[one][1] ^ points[other][1]
    if random.random() < 0.7:
        random.shuffle(points)
    bits = LANE_BITS + warps.bit_length() - 1
    shared = max(0, bits - random.choice((0, 0, 1, 2)))  # the others hold copies
    hardware = points[:shared]
    hardware += [(0, 0)] * (bits - len(hardware))
    random.shuffle(hardware)
    lanes = hardware[:LANE_BITS]
    conditions: list[Condition] = []
    if (0, 0) in lanes and random.random() < 0.3:  # one of the copies is left out
        divisor = 1 << lanes.index((0, 0))
        conditions.append(Condition("lane", divisor, 2, random.randrange(2)))
    parts = {"warp": hardware[LANE_BITS:], "lane": lanes, "element": points[shared:]}
    axes = (Axis(name, tuple(XorMode(2, p) for p in part)) for name, part in parts.items())
    return Layout(tuple(axes), ("row", "col"), (), tuple(conditions)).simplified()


def trial(random: Random) -> Trial:
    """A random program."""
    warps, element = random.choice((1, 2, 4)), random.choice(sorted(ELEMENTS))
    rows, cols = random.choice((8, 16, 32, 64)), random.choice((8, 16, 32, 64))
    while rows * cols < 8 * warps:
        rows *= 2
    turned = rows == cols and random.random() < 0.3
    masked = " masked" if random.random() < 0.3 else ""
    extents = f"{rows}x{cols}x{element}"
    whole = f"memref<{extents}>"
    first, second = (
        f'memref<{extents}, #frag.layout<"{memory_layout(random, rows, cols)}">, #frag.shared>'
        for _ in range(2)
    )
    one, other = (
        f'!frag.tile<{extents}, #frag.layout<"{tile_layout(random, rows, cols, warps)}">>'
        for _ in range(2)
    )
    program = f"""
func.func @copies(%a: {whole}, %d: {whole}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
  %s = memref.alloc() : {first}
  %u = memref.alloc() : {second}
  frag.copy %a[0, 0] to %s[] : {whole} to {first}
  frag.barrier
  %t = frag.load %s[0, 0]{" transposed" if turned else ""}{masked} : {first} -> {one}
  frag.store %t, %u[0, 0] : {one}, {second}
  frag.barrier
  %v = frag.load %u[0, 0] : {second} -> {other}
  frag.store %v, %d[0, 0]{masked} : {other}, {whole}
  func.return
}}
"""
    target = random.choice(("sm_75", "sm_80", "sm_90a"))
    return Trial(program, target, element, (rows, cols), warps, turned)


def check(given: Trial, seed: int) -> list[str]:
    """What is wrong with a program, executed on the emulator."""
    kernel = compile_program(given.program, target=given.target)
    numbers = np.random.default_rng(seed).integers(-100, 100, given.shape)
    array = numbers.astype(ELEMENTS[given.element])
    result = np.zeros_like(array)
    kernel.launch((1, 1, 1), (32 * given.warps, 1, 1), array, result, on="emulator")
    wanted = array.T if given.transposed else array
    wrong = int(np.sum(result != wanted))
    return [f"{wrong} of {array.size} elements are wrong: {given.program}"] if wrong else []


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, findings = task.random(), list[str]()
    batch = task.parameters["batch"]
    for number in range(batch):
        findings += check(trial(random), number)
    return {"findings": findings, "kernels": batch}


SWEEP = Sweep(tasks, run, {"batch": 20}, seconds=600.0)
