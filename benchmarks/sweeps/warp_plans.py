"""Random conversions inside of warps, planned and run lane by lane: every element arrives.

Layouts are random maps over F2: permutations of bits, permutations with some bits added, any
invertible map, replicated on either side, with warps that move within themselves. The number of
shuffles is held against what is counted from the tables of both layouts. Conversions that are no
maps over F2 are tables of random points.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fragir.layout.f2 import image, rank
from fragir.layout.planning.colouring import table_plan
from fragir.layout.planning.registers import RegisterColumns
from fragir.layout.planning.simulate import elements_of_words, simulate, words_of_points
from fragir.layout.planning.warp import WarpPlan, warp_plan
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import attempt

KINDS = ("permutation", "sparse", "full", "replicated")
TABLES = ("single", "copies")
"""Kinds of conversions between tables of any points: each held once, or with copies."""
BITS = (8, 16, 32, 64)


def drawn(
    rng: random.Random, kind: str, bits: int, most: int = 6
) -> tuple[RegisterColumns, RegisterColumns, int]:
    """Two layouts of one tile with up to `most` bits of elements, such that no warp gives any."""
    elements, warps = rng.randint(0, most), rng.choice((0, 0, 1, 2))
    count = elements + 5
    columns = [1 << bit for bit in range(count + warps)]
    if kind == "full":
        columns = _invertible(rng, count + warps)
    inner, outer = columns[:count], columns[count:]
    target = list(inner)
    rng.shuffle(target)
    target_warps = list(outer)
    if kind == "full":
        target = [image(inner, vector) for vector in _invertible(rng, count)]
    elif kind == "sparse":
        for _ in range(rng.randint(1, 4)):
            i, j = rng.sample(range(count), 2)
            target[i] ^= target[j]
    if kind in ("sparse", "full"):
        target_warps = [
            column ^ (image(inner, rng.getrandbits(count)) if rng.random() < 0.5 else 0)
            for column in outer
        ]
    source = list(inner)
    if kind == "replicated":
        lost = sum(1 << bit for bit in rng.sample(range(count), rng.randint(1, 3)))
        source, target = ([c & ~lost for c in side] for side in (source, target))
        if rng.random() < 0.5:
            rng.shuffle(target)
        if rng.random() < 0.3:  # a copy of other registers
            target.insert(rng.randint(0, elements), rng.choice(target))
    first = RegisterColumns(tuple(source[:elements]), tuple(source[elements:]), tuple(outer))
    cut = len(target) - 5
    return (
        first,
        RegisterColumns(tuple(target[:cut]), tuple(target[cut:]), tuple(target_warps)),
        bits,
    )


def _invertible(rng: random.Random, count: int) -> list[int]:
    while True:
        columns = [rng.getrandbits(count) for _ in range(count)]
        if rank(columns) == count:
            return columns


def points(side: RegisterColumns) -> list[list[int]]:
    """The point of every thread's elements."""
    threads = product(range(1 << len(side.warp)), range(32))
    return [
        [
            image(side.warp, warp) ^ image(side.lane, lane) ^ image(side.element, element)
            for element in range(1 << len(side.element))
        ]
        for warp, lane in threads
    ]


def lost(source: RegisterColumns, target: RegisterColumns, bits: int, plan: WarpPlan) -> int:
    """How many of the target's slots do not hold their element after the program has run."""
    return lost_points(points(source), points(target), bits, plan.program)


def lost_points(
    held: Sequence[Sequence[int]], wanted: Sequence[Sequence[int]], bits: int, program: Any
) -> int:
    """The same for tables of points, -1 being nothing."""
    found = elements_of_words(simulate(program, words_of_points(held, bits)), bits)
    expected: NDArray[np.int64] = np.array(wanted, dtype=np.int64).T
    wrong = np.zeros(expected.shape, dtype=bool)
    for part in range(found.shape[1]):
        share = expected >> part * bits & (1 << min(bits, 62)) - 1
        wrong |= (found[: len(expected), part] != share) & (expected >= 0)
    return int(wrong.sum())


def least_shuffles(source: RegisterColumns, target: RegisterColumns, bits: int) -> tuple[int, int]:
    """(words that the busiest lane lacks, lanes that it has to read), from the tables.

    Whatever the program: a shuffle brings a lane one word. The second number holds for one hop.
    """
    held, wanted = points(source), points(target)
    lack = lanes = 0
    for thread, mine in enumerate(wanted):
        away = set(mine) - set(held[thread])
        lack = max(lack, -(-len(away) * bits // 32))
        warp = thread // 32 * 32
        lanes = max(lanes, _covering(away, [set(one) for one in held[warp : warp + 32]]))
    return lack, lanes


def _covering(away: set[int], givers: list[set[int]]) -> int:
    """How many of the lanes hold all that is away; lanes hold the same or nothing in common."""
    classes = {frozenset(giver & away) for giver in givers if giver & away}
    return len(classes)


def fault(kind: str, bits: int, rng: random.Random) -> None:
    """Raise where a plan is wrong, or not as short as it says."""
    source, target, _ = drawn(rng, kind, bits)
    plan = warp_plan(source, target, bits)
    assert plan is not None, f"no plan for {source} -> {target}"
    what = f"{bits} bit, {source} -> {target}: {plan.counts}"
    assert not lost(source, target, bits, plan), what
    lack, lanes = least_shuffles(source, target, bits)
    assert plan.bound == lack, f"{what}: bound {plan.bound}, {lack} counted"
    moved = plan.counts.get("shfl", 0) + plan.counts.get("movmatrix", 0)
    assert moved >= lack, f"{what}: {lack} counted"
    if len(plan.route.moves) == 1:
        assert moved == max(lack, lanes), f"{what}: {lack} words, {lanes} lanes counted"
    if kind == "permutation" and plan.bound:
        # a layer for each bit of lanes before and after, one for each bit that leaves a word
        mixed = (lanes if lanes & 1 else lanes - 1).bit_length()
        layers = 2 * mixed + {8: 2, 16: 1}.get(bits, 0)
        steps = plan.counts.get("prmt", 0) + plan.counts.get("selp", 0)
        assert steps <= layers * len(plan.program.outputs), f"{what}: {steps} steps"


def drawn_tables(
    rng: random.Random, copies: bool
) -> tuple[list[list[list[int | None]]], list[list[list[int | None]]]]:
    """Any points in any slots of some lanes, slots without a point among them."""
    lanes, elements = rng.randint(1, 32), rng.randint(1, 6)
    wanted = rng.randint(1, 6)
    warps = rng.choice((1, 1, 2))
    source: list[list[list[int | None]]] = []
    target: list[list[list[int | None]]] = []
    for warp in range(warps):
        slots = lanes * elements
        held: list[int | None] = [warp * 256 + slot for slot in range(slots)]
        if copies:
            held = [rng.choice(held[: 1 + slots // 2]) for _ in held]
        held = [point if rng.random() < 0.9 else None for point in held]
        rng.shuffle(held)
        there = [point for point in held if point is not None]
        asked: list[int | None] = list(there)
        rng.shuffle(asked)
        missing = lanes * wanted - len(asked)
        asked += [rng.choice(there) if copies and there else None for _ in range(missing)]
        source.append(_rows(held, elements, lanes))
        target.append(_rows(asked, wanted, lanes))
    return source, target


def _rows(points: Sequence[int | None], count: int, lanes: int) -> list[list[int | None]]:
    rows = [list(points[lane * count : lane * count + count]) for lane in range(lanes)]
    return rows + [[None] * count for _ in range(32 - lanes)]


def fault_of_tables(kind: str, bits: int, rng: random.Random) -> None:
    """Raise where a plan of tables is wrong, or has more shuffles than the busiest lane words."""
    source, target = drawn_tables(rng, kind == "copies")
    plan = table_plan(source, target, bits)
    assert plan is not None, f"no plan for {source} -> {target}"
    flat = [
        [[-1 if point is None else point for point in lane] for warp in side for lane in warp]
        for side in (source, target)
    ]
    what = f"{bits} bit, {source} -> {target}: {plan.counts}"
    assert not lost_points(flat[0], flat[1], bits, plan.program), what
    shuffles = plan.counts.get("shfl", 0)
    assert shuffles >= plan.bound, what
    if kind == "single" and bits >= 32:
        assert shuffles == plan.bound, f"{what}: bound {plan.bound}"


def tasks(plan: Plan) -> Sequence[Any]:
    return list(product((*KINDS, *TABLES), BITS)) * (plan.count or 4)


def run(task: Task) -> Result:
    """A batch of conversions of one kind."""
    kind, bits = task.what
    findings: list[str] = []
    for number in range(task.parameters["batch"]):
        rng = random.Random(f"{task.seed}/{task.index}/{number}")
        judge = fault if kind in KINDS else fault_of_tables
        trial = attempt(partial(judge, kind, bits, rng), seconds=30.0)
        if trial.finding is not None or trial.error is not None:
            findings.append(f"conversion {number}: {trial.finding or trial.error}")
    return {"conversions": task.parameters["batch"], "findings": findings}


SWEEP = Sweep(tasks, run, {"batch": 100}, seconds=600.0)
