"""Tiles of any extents over any warps: what is placed with copies, overlaps or padding is right.

Shapes of one to four dimensions, odd ones and such of fewer elements than threads among them; all
element types; one operation each, between loads and a store: compiled, and run with every check
beside the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import fragir
from fragir.builder.kernel import KernelBuilder
from fragir.builder.values import Scalar, Tile
from fragir.sweeps import Plan, Result, Sweep, Task

from .tile_programs import TileProgram, check

F16, BF16, F32, F64, S32, S8 = (
    fragir.f16,
    fragir.bf16,
    fragir.f32,
    fragir.f64,
    fragir.s32,
    fragir.s8,
)
NUMBERS = (F16, BF16, F32, F64, S32)
WARPS = ((1, 1), (2, 1), (4, 1), (8, 1), (2, 2), (1, 4), (3, 1))
LARGEST = 2048


class Odd:
    """A kernel that does one thing to a tile."""

    def __init__(self, random: Random, k: KernelBuilder, shape: Sequence[int], element: Any):
        self.random, self.k, self.shape, self.element = random, k, tuple(shape), element
        self.results = 0
        self.inputs = 0

    def load(self, shape: Sequence[int] | None = None, element: Any = None) -> Tile:
        """A tile of an argument of its own."""
        shape, element = tuple(shape or self.shape), element or self.element
        self.inputs += 1
        memory = self.k.memory(f"x{self.inputs}", element, shape)
        return self.k.load(memory, (0,) * len(shape), shape=shape)

    def store(self, tile: Tile) -> None:
        """A result."""
        self.results += 1
        memory = self.k.memory(f"y{self.results}", tile.element, tile.shape)
        self.k.store(tile, memory, (0,) * len(tile.shape))

    def axis(self) -> int:
        return self.random.randrange(len(self.shape))

    def part(self, size: int) -> slice:
        """A part of a dimension."""
        start = self.random.randrange(size)
        stop = self.random.randrange(start, size) + 1
        return slice(start, stop, self.random.choice([1, 1, 2, 3]))


def _twice(o: Odd) -> None:
    x = o.load()
    o.store(x + x)


def _reduce(o: Odd) -> None:
    x, axis = o.load(), o.axis()
    if len(o.shape) == 1:
        x, axis = x.reshape(1, -1), 1
    kinds = [x.sum, x.sum, x.max, x.min, x.argmax]
    o.store(o.random.choice(kinds)(axis))


def _reduce_by(o: Odd) -> None:
    x, axis = o.load(), o.axis()
    if len(o.shape) == 1:
        x, axis = x.reshape(1, -1), 1

    def added(a: Scalar, b: Scalar) -> tuple[Scalar]:
        return (a + b,)

    (found,) = o.k.reduce([x], axis, added)
    o.store(found)


def _logic(o: Odd) -> None:
    """Whether all, or any, of a row's are, and the sum of all as a number."""
    x = o.load(element=S32)
    o.store(
        (x - x.sum())
        if o.random.random() < 0.5
        else x + (x > 0).reshape(1, -1).any(1).cast(S32).max()
    )


def _scan(o: Odd) -> None:
    x = o.load()
    o.store(o.random.choice([x.cumsum, x.cummax])(o.axis(), reverse=o.random.random() < 0.5))


def _transpose(o: Odd) -> None:
    o.store(o.load().transpose(*o.random.sample(range(len(o.shape)), len(o.shape))))


def _reshape(o: Odd) -> None:
    sizes = [1] * o.random.randint(1, 4)
    rest = [n for n in o.shape]
    for size in rest:
        for prime in _primes(size):
            sizes[o.random.randrange(len(sizes))] *= prime
    o.store(o.load().reshape(*sizes))


def _primes(number: int) -> list[int]:
    found, factor = list[int](), 2
    while number > 1:
        while number % factor == 0:
            found.append(factor)
            number //= factor
        factor += 1
    return found


def _slice(o: Odd) -> None:
    o.store(o.load()[tuple(o.part(size) for size in o.shape)])


def _concatenate(o: Odd) -> None:
    axis = o.axis()
    other = [n if d != axis else o.random.randint(1, n) for d, n in enumerate(o.shape)]
    tiles = [o.load(), o.load(other)]
    o.random.shuffle(tiles)
    o.store(o.k.concatenate(tiles, axis))


def _join(o: Odd) -> None:
    x, y = o.load(), o.load()
    if len(o.shape) == 4:
        o.store(x - y)
        return
    joined = o.k.join(x, y)
    if o.random.random() < 0.5:
        joined = joined.reshape(*o.shape[:-1], -1)
    o.store(joined)


def _split(o: Odd) -> None:
    first, second = o.load((*o.shape[:3], 2)).split()
    o.store(first - second)


def _broadcast(o: Odd) -> None:
    axis = o.axis()
    x = o.load()
    o.store(x - x.max(axis, keepdims=True) if len(o.shape) > 1 else x - x.max())


def _gather(o: Odd) -> None:
    memory = o.k.memory("from", o.element, (50,))
    places = o.load(element=S32)
    o.store(o.k.gather(memory, (places,), shape=o.shape, masked=True))


def _iota(o: Odd) -> None:
    o.store(o.k.iota(o.axis(), o.shape) + o.load(element=S32))


def _random(o: Odd) -> None:
    first, *_ = o.k.random(7, o.load(element=S32))
    o.store(first & 7)


def _atomic(o: Odd) -> None:
    """Sums of what is in memory: what is added twice is seen."""
    x = o.load(element=S32)
    o.k.atomic("add", x, o.k.memory("sums", S32, o.shape), (0,) * len(o.shape))
    o.store(x)


def _ticket(o: Odd) -> None:
    """What memory held."""
    x = o.load(element=S32)
    sums = o.k.memory("sums", S32, o.shape)
    old = o.k.atomic("add", x, sums, (0,) * len(o.shape), old=True)
    assert old is not None
    o.store(old)


def _scatter_add(o: Odd) -> None:
    x = o.load(element=S32)
    places = o.k.iota(o.axis(), o.shape)
    o.k.atomic("add", x, o.k.memory("sums", S32, (64,)), (places,), masked=True)


def _compare(o: Odd) -> None:
    x, y = o.load(), o.load()
    o.store(o.k.select(x > y, x, -y))


def _staged(o: Odd) -> None:
    """Through shared memory and back."""
    x = o.load()
    memory = o.k.shared((1, *o.shape)[-max(2, len(o.shape)) :], o.element)
    at = (0,) * len(memory.shape)
    o.k.store(x, memory, at)
    o.k.barrier()
    o.store(o.k.load(memory, at, shape=o.shape))


def _product(o: Odd) -> None:
    m, n, k = (o.random.choice([1, 3, 4, 8, 16, 17, 24, 32, 48]) for _ in range(3))
    element = o.random.choice([F16, BF16, S8])
    o.store(o.k.mma(o.load((m, k), element), o.load((k, n), element)))


OPERATIONS: dict[str, Callable[[Odd], None]] = {
    "twice": _twice,
    "reduce": _reduce,
    "reduce_by": _reduce_by,
    "logic": _logic,
    "scan": _scan,
    "transpose": _transpose,
    "reshape": _reshape,
    "slice": _slice,
    "concatenate": _concatenate,
    "join": _join,
    "split": _split,
    "broadcast": _broadcast,
    "gather": _gather,
    "iota": _iota,
    "random": _random,
    "atomic": _atomic,
    "ticket": _ticket,
    "scatter_add": _scatter_add,
    "compare": _compare,
    "staged": _staged,
    "product": _product,
}


def any_shape(random: Random) -> tuple[int, ...]:
    """Extents of a tile, few of them powers of two."""
    rank = random.choice([1, 2, 2, 2, 3, 4])
    most = {1: LARGEST, 2: 64, 3: 20, 4: 9}[rank]
    while True:
        shape = tuple(
            random.choice(
                [random.randint(1, most), random.randint(1, 8), 1 << random.randint(0, 5)]
            )
            for _ in range(rank)
        )
        size = 1
        for extent in shape:
            size *= extent
        if size <= LARGEST:
            return shape


def odd_program(seed: int, operation: str | None = None) -> tuple[str, TileProgram]:
    """The program of a seed, and what it does."""
    random = Random(seed)
    name = operation or random.choice(sorted(OPERATIONS))
    shape, element = any_shape(random), random.choice(NUMBERS)
    target = random.choice(("sm_80", "sm_90a"))
    with fragir.kernel("odd", warps=random.choice(WARPS), target=target) as k:
        OPERATIONS[name](Odd(random, k, shape, element))
    return f"{name} {shape} {element}", TileProgram(k.mlir, target)


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


def run(task: Task) -> Result:
    random, findings, unjudged = task.random(), list[str](), 0
    for _ in range(task.parameters["batch"]):
        seed = random.getrandbits(48)
        what, program = odd_program(seed)
        verdict = check(program, seed, task.parameters["ptxas"])
        unjudged += verdict.unjudged
        wrong = verdict.findings
        if verdict.refusal is not None:
            wrong = [*wrong, f"refused: {verdict.refusal.sentence}"]
        findings += [f"seed {seed}: {what}: {each}: {program.text}" for each in wrong]
    return {"findings": findings, "programs": task.parameters["batch"], "unjudged": unjudged}


SWEEP = Sweep(tasks, run, {"batch": 10, "ptxas": True}, seconds=600.0)
