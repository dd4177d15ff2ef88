"""Conversions through shared memory between random layouts: every byte arrives, passes as planned.

A plan is run on a memory of bytes that know which byte of which point they are, for all lanes and
warps; passes over the banks are counted by `fragir.layout.wavefronts`. A task is a batch of pairs
of layouts over F2: permutations of bits, sums of them, with copies in registers, lanes and warps.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.layout.f2 import image, independent, rank
from fragir.layout.planning.access import SharedAccess
from fragir.layout.planning.costs import COSTS, Features
from fragir.layout.planning.program import Linear, Permute, WordProgram
from fragir.layout.planning.registers import RegisterColumns
from fragir.layout.planning.shared import SharedPlan, shared_plan
from fragir.layout.shared import wavefronts
from fragir.sweeps import Plan, Result, Sweep, Task

Bytes = npt.NDArray[np.int64]
"""Bytes as numbers of their own: 8 * point + place; words are [warp, lane, 4]."""

LANES = np.arange(32)
NOTHING = -1
SCRATCH = (48 * 1024, 48 * 1024, 4096, 1024)


@dataclass
class Outcome:
    """What a run found: faults in words, and passes of the stores and loads of one warp."""

    faults: list[str]
    passes: tuple[int, int]


def everywhere(number: Linear, warps: int) -> Bytes:
    """A number of every thread, as [warp, lane]."""
    lanes = np.array([image((*number.lane, 0, 0, 0, 0, 0), lane) for lane in range(32)])
    others = np.array([image((*number.warp, *[0] * 8), warp) for warp in range(warps)])
    return number.start ^ lanes[None, :] ^ others[:, None]


def fragment(side: RegisterColumns, bits: int, warps: int) -> list[Bytes]:
    """The words of every thread, each byte what the layout says."""
    size = bits // 8
    threads = everywhere(Linear(0, side.lane, side.warp), warps)
    columns = [threads ^ image(side.element, element) for element in range(1 << len(side.element))]
    bytes_ = [8 * column + place for column in columns for place in range(size)]
    bytes_ += [np.full_like(threads, NOTHING)] * (-len(bytes_) % 4)
    return [np.stack(bytes_[i : i + 4], axis=-1) for i in range(0, len(bytes_), 4)]


def executed(program: WordProgram, words: Sequence[Bytes]) -> list[Bytes]:
    """All words of a program of byte permutes, inputs first."""
    found = list(words)
    assert len(found) == program.inputs
    for step in program.steps:
        assert isinstance(step, Permute)
        both = np.concatenate([found[step.a], found[step.b]], axis=-1)
        selector = everywhere(step.selector, len(both)) if isinstance(step.selector, Linear) else 0
        places = np.stack([selector >> 4 * i & 7 for i in range(4)], axis=-1)
        found.append(np.take_along_axis(both, places, axis=-1))
    return found


@dataclass
class Scratch:
    """The scratch memory of a block; `writer` is the warp that stored a byte."""

    bytes_: Bytes
    writer: Bytes
    faults: list[str]

    def store(self, at: Bytes, values: Bytes, warp: Bytes) -> None:
        """Bytes to addresses; two different ones to one address are a fault."""
        at, values, warp = at.ravel(), values.ravel(), warp.ravel()
        if (at < 0).any() or (at >= len(self.bytes_)).any():
            self.faults.append("a store outside of the scratch memory")
            return
        before = self.bytes_[at]
        self.bytes_[at], self.writer[at] = values, warp
        if (self.bytes_[at] != values).any() or ((before != values) & (before != NOTHING)).any():
            self.faults.append("two threads store different bytes to one address")

    def load(self, at: Bytes, group: Bytes) -> Bytes:
        """The bytes at addresses, which warps of the own group must have stored."""
        if (at < 0).any() or (at >= len(self.bytes_)).any():
            self.faults.append("a load outside of the scratch memory")
            return np.full_like(at, NOTHING)
        own = np.arange(len(group)).reshape(-1, *[1] * (at.ndim - 1))
        if (group[self.writer[at]] != group[own]).any():
            self.faults.append("a warp reads what a warp of another group stored")
        return self.bytes_[at]


def matrix_bytes(access: SharedAccess, address: Bytes, matrix: int) -> Bytes:
    """Where the bytes of one word of every lane stand, by the PTX ISA's figures."""
    rows = address[:, 8 * matrix : 8 * matrix + 8]
    if not access.trans:
        return rows[:, LANES // 4, None] + 4 * (LANES[:, None] % 4) + np.arange(4)
    halves = rows[:, 2 * (LANES[:, None] % 4) + np.arange(4) // 2]
    return halves + 2 * (LANES[:, None] // 4) + np.arange(4) % 2


def passes(access: SharedAccess, address: Bytes, active: Bytes) -> int:
    """Passes over the banks of one warp's access, group of lanes by group of lanes."""
    if access.matrices:
        rows = [address[8 * m : 8 * m + 8].tolist() for m in range(access.matrices)]
        return sum(wavefronts(group, 16) for group in rows)
    lanes = {8: 16, 16: 8}.get(access.size, 32)
    total = 0
    for first in range(0, 32, lanes):
        group = slice(first, first + lanes)
        total += wavefronts(address[group][active[group]].tolist(), access.size)
    return total


def run_plan(
    plan: SharedPlan, source: RegisterColumns, target: RegisterColumns, bits: int
) -> Outcome:
    """All threads of a block carry the plan out."""
    warps = 1 << max(len(source.warp), len(target.warp))
    words = executed(plan.before, fragment(source, bits, warps))
    own = np.arange(warps)[:, None]
    group = everywhere(plan.meeting.number, warps)[:, 0]
    faults: list[str] = []
    paid = [0, 0]
    loaded: dict[int, Bytes] = {}
    for stores, loads in plan.turns:
        empty = np.full(plan.scratch, NOTHING)
        memory = Scratch(empty, empty.copy(), faults)
        for access in (*stores, *loads):
            address = everywhere(access.address, warps)
            active = np.full(address.shape, True)
            if access.unless is not None:
                active = everywhere(access.unless, warps) == 0
            aligned = 16 if access.matrices else access.size
            if (address[active] % aligned).any():
                faults.append(f"{access.name} is not aligned to {aligned} bytes")
                continue
            side = int(access in loads)
            paid[side] += passes(access, address[0], active[0])
            for place, number in enumerate(access.words):
                width = min(4, access.size)
                if access.matrices:
                    at = matrix_bytes(access, address, place)
                else:
                    at = address[:, :, None] + 4 * place + np.arange(width)
                if access.kind in ("st", "stmatrix"):
                    who = np.broadcast_to(own[:, :, None], at.shape)
                    chosen = active[:, :, None] & np.full(at.shape, True)
                    memory.store(at[chosen], words[number][..., :width][chosen], who[chosen])
                else:
                    word = np.full((warps, 32, 4), NOTHING)
                    word[..., :width] = memory.load(at, group)
                    loaded[number] = word
    inputs = [loaded[number] for number in range(plan.after.inputs)]
    result = executed(plan.after, inputs)
    arrived = [result[number] for number in plan.after.outputs]
    wanted = fragment(target, bits, warps)
    if len(arrived) != len(wanted):
        faults.append(f"{len(arrived)} words arrive where {len(wanted)} are wanted")
    for number, (got, right) in enumerate(zip(arrived, wanted, strict=False)):
        if ((got != right) & (right != NOTHING)).any():
            faults.append(f"word {number} arrives wrong")
    return Outcome(faults, (paid[0], paid[1]))


def least_passes(plan: SharedPlan) -> tuple[int, int]:
    """The passes that no address map of these two accesses undercuts, by the theory's formula."""
    store, load = plan.stores[0], plan.loads[0]
    wide = max(_held(store), _held(load))
    return (
        _least(store, wide) * len(plan.stores),
        _least(load, wide) * len(plan.loads),
    )


def _held(access: SharedAccess) -> int:
    return 16 if access.matrices else access.size


def _least(access: SharedAccess, wide: int) -> int:
    held = _held(access)
    lanes = 8 if held == 16 else 16 if held == 8 else 32
    columns = access.address.lane[: lanes.bit_length() - 1]
    spanned = independent([*columns, *(1 << i for i in range(held.bit_length() - 1))])
    inside = rank(column % max(4, wide) for column in spanned)
    # words that are left beyond the banks that the wide side's alignment leaves to this one
    free = (128 // max(4, wide)).bit_length() - 1
    shared = rank(column % 4 for column in spanned) if wide < 4 else 0
    lost = max(0, len(spanned) - inside - shared - free)
    if access.matrices:
        return access.matrices << lost
    active = LANES if access.unless is None else LANES[everywhere(access.unless, 1)[0] == 0]
    return len(set((active // lanes).tolist())) << lost


def random_pair(rng: random.Random) -> tuple[RegisterColumns, RegisterColumns, int]:
    """Two layouts of one tile and the bits of its elements."""
    bits = rng.choice([8, 16, 32, 64])
    elements = rng.randint(0, 5 if bits == 64 else 6)
    warps = rng.randint(0, 3)
    dims = elements + 5 + warps
    kind = rng.choice(["bits", "sums", "copies", "few warps", "fragments", "fragments"])
    if kind == "fragments" and elements > 1:
        return _fragment(rng, dims, elements, bits), _fragment(rng, dims, elements, bits), bits
    first = [1 << i for i in range(dims)]
    second = rng.sample(first, dims)
    if kind == "sums":
        while rank(second) < dims or second in (first,):
            second = [rng.getrandbits(dims) for _ in first]
    sides = [_side(columns, elements) for columns in (first, second)]
    if kind == "few warps":  # the same warps hold the same points
        sides[1] = _permuted(sides[0], rng, (1 << elements + 5) - 1)
    if kind == "copies":
        dropped = rng.sample(range(dims), rng.randint(1, min(3, dims)))
        kept = sum(1 << i for i in range(dims) if i not in dropped)
        sides = [_map(side, lambda c: c & kept) for side in sides]
        if rng.random() < 0.5:  # copies that are sums of others
            sides = [_mixed(side, rng) for side in sides]
    return sides[0], sides[1], bits


def _fragment(rng: random.Random, dims: int, elements: int, bits: int) -> RegisterColumns:
    """Layouts as products and memory have them: rows and columns of a matrix are the two halves."""
    ways = [[1 << i for i in range(dims // 2)], [1 << i for i in range(dims // 2, dims)]]
    along, across = ways if rng.random() < 0.5 else ways[::-1]
    word = {8: 2, 16: 1}.get(bits, 0)
    if rng.random() < 0.6:  # an operand: words along a row, four lanes a row
        element, lane = along[:word], [*along[word : word + 2], *across[:3]]
    else:  # 16 bytes of a row in a lane
        element, lane = along[: (128 // bits).bit_length() - 1][:elements], []
    rest = [1 << i for i in range(dims) if 1 << i not in (*element, *lane)]
    rng.shuffle(rest)
    lane += [rest.pop() for _ in range(5 - len(lane))]
    element += [rest.pop() for _ in range(elements - len(element))]
    return _side([*element, *lane, *rest], elements)


def _side(columns: Sequence[int], elements: int) -> RegisterColumns:
    return RegisterColumns(
        tuple(columns[:elements]),
        tuple(columns[elements : elements + 5]),
        tuple(columns[elements + 5 :]),
    )


def _map(side: RegisterColumns, change: Callable[[int], int]) -> RegisterColumns:
    return _side([change(column) for column in side.columns], len(side.element))


def _permuted(side: RegisterColumns, rng: random.Random, mask: int) -> RegisterColumns:
    inner = [c for c in side.columns if c & mask]
    return _side([*rng.sample(inner, len(inner)), *side.warp], len(side.element))


def _mixed(side: RegisterColumns, rng: random.Random) -> RegisterColumns:
    """Columns of zero become sums of the others: the same points, held otherwise."""
    present = [column for column in side.columns if column]

    def other(column: int) -> int:
        if column or rng.random() < 0.3:
            return column
        return image(present, rng.getrandbits(len(present))) if present else 0

    return _map(side, other)


def checked(
    source: RegisterColumns, target: RegisterColumns, bits: int, features: Features
) -> tuple[SharedPlan, list[str]]:
    """A plan and what is wrong with it."""
    plan = shared_plan(source, target, bits, features, COSTS)
    done = run_plan(plan, source, target, bits)
    found = list(done.faults)
    if done.passes != plan.passes:
        found.append(f"{done.passes} passes are counted, {plan.passes} planned")
    if plan.passes != least_passes(plan):
        found.append(f"{plan.passes} passes, {least_passes(plan)} would do")
    return plan, found


def text(side: RegisterColumns) -> str:
    """Columns as numbers."""
    return f"{list(side.element)} {list(side.lane)} {list(side.warp)}"


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    rng = task.random()
    findings: list[str] = []
    free = rounds = 0
    batch = task.parameters["batch"]
    for _ in range(batch):
        source, target, bits = random_pair(rng)
        features = Features(rng.random() < 0.7, rng.random() < 0.5, scratch=rng.choice(SCRATCH))
        plan, found = checked(source, target, bits, features)
        pair = f"{text(source)} -> {text(target)}, {bits} bits, {features}"
        findings += [f"{fault}: {pair}" for fault in found]
        free += plan.passes == ideal(plan)
        rounds += plan.rounds > 1
    return {"findings": findings, "plans": batch, "without_conflicts": free, "in_rounds": rounds}


def ideal(plan: SharedPlan) -> tuple[int, int]:
    """The passes of the plan's accesses if no bank were met twice."""
    first, second = (
        sum(_least(access, _held(access)) for access in accesses)
        for accesses in (plan.stores, plan.loads)
    )
    return first, second


SWEEP = Sweep(tasks, run, {"batch": 50}, seconds=300.0)
