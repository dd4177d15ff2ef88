"""Random programs of all operations on tiles, written with the builder, judged by the reference.

Elementwise work, casts, reductions, scans, broadcasts, other shapes, parts, products, masked loads,
gathers, random bits, atomics, in loops and branches, over random shapes, element types and warps:
compiled, assembled and run with every check.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import func

import fragir
from fragir.builder.kernel import KernelBuilder
from fragir.builder.types import condition as CONDITION
from fragir.builder.values import Scalar, Tile
from fragir.compiler import parse
from fragir.errors import FragirError
from fragir.reference import compare, evaluate, outputs
from fragir.reference.inputs import generate, resolve, slots
from fragir.sweeps import Plan, Result, Sweep, Task

F16, BF16, F32, S32 = fragir.f16, fragir.bf16, fragir.f32, fragir.s32
FLOATS, NUMBERS = (F16, BF16, F32), (F16, BF16, F32, S32)
WARPS = ((1, 1), (2, 1), (4, 1), (2, 2))
#: Shapes of tiles, and of the arrays they are loaded from: the tile's, or smaller and masked.
SHAPES = ((64,), (128,), (16, 32), (32, 32), (64, 16), (16, 64), (4, 8, 16), (2, 3, 32), (12, 40))
LARGEST, SMALLEST = 4096, 32


class TileProgram(NamedTuple):
    """A kernel, its text, and the target it is for."""

    kernel: KernelBuilder
    target: str

    @property
    def text(self) -> str:
        """The MLIR."""
        return self.kernel.mlir


class _Writer:
    """A kernel while it grows, and the tiles that it may go on with."""

    def __init__(self, random: Random, k: KernelBuilder, warps: tuple[int, int]):
        self.random, self.k, self.warps = random, k, warps
        self.tiles: list[Tile] = []
        self.inputs = 0
        self.depth = 0

    def memory(self, shape: Sequence[int], element: Any) -> Any:
        """Another argument."""
        self.inputs += 1
        return self.k.memory(f"m{self.inputs}", element, tuple(shape))

    def keep(self, tile: object) -> None:
        if isinstance(tile, Tile) and SMALLEST <= np.prod(tile.shape) <= LARGEST:
            self.tiles.append(tile)

    def any(self, *elements: Any) -> Tile:
        """One of the last tiles of such a type, or a new one."""
        found = [t for t in self.tiles[-6:] if t.element in (elements or NUMBERS)]
        return (
            self.random.choice(found)
            if found
            else self.loaded(self.random.choice(SHAPES), *elements)
        )

    def like(self, tile: Tile) -> Tile:
        """A tile of the same type whose shape goes with this one's."""
        same = [t for t in self.tiles if t.element == tile.element and t.shape == tile.shape]
        if len(tile.shape) > 1 and self.random.random() < 0.4 and tile.element in NUMBERS:
            return tile.max(self.random.randrange(len(tile.shape)), keepdims=True)
        return self.random.choice(same or [tile])

    def loaded(self, shape: Sequence[int], *elements: Any) -> Tile:
        """A tile of memory that is as large, or smaller."""
        element = self.random.choice([e for e in elements or NUMBERS if e != CONDITION] or [F32])
        outside = self.random.random() < 0.4
        sizes = [n - self.random.randrange(n // 2 + 1) if outside else n for n in shape]
        if self.depth:  # arguments stand outside of loops
            return self.k.fill(self.random.randint(-3, 3), shape, element)
        other = self.random.choice([None, 1, -2]) if outside else None
        at = [0] * len(sizes)
        array = self.memory(sizes, element)
        return self.k.load(array, at, shape=tuple(shape), masked=outside, other=other)

    def step(self) -> None:
        """One operation more, where it fits what there is."""
        names = [name for name in STEPS for _ in range(STEPS[name][1])]
        with suppress(_Unfit):
            STEPS[self.random.choice(names)][0](self)


class _Unfit(Exception):
    """What is there does not suit the operation."""


def _load(w: _Writer) -> None:
    w.keep(w.loaded(w.random.choice(SHAPES)))


def _arithmetic(w: _Writer) -> None:
    x = w.any()
    y = w.like(x)
    match w.random.randrange(4):
        case 0:
            w.keep(x + y if w.random.random() < 0.5 else x - y)
        case 1:
            w.keep(x * y)
        case 2:
            w.keep(w.k.max(x, y) - w.random.randint(0, 3))
        case _:
            w.keep(w.k.min(x, w.random.randint(-2, 5)) * 2 + y)


def _function(w: _Writer) -> None:
    x = w.any(F32)
    function = w.random.choice([w.k.tanh, w.k.exp2, w.k.erf, w.k.sin, w.k.floor, abs])
    w.keep(function(w.k.max(w.k.min(x, 4.0), -4.0)))


def _compare(w: _Writer) -> None:
    x = w.any()
    w.keep(w.random.choice([lambda: x > w.like(x), lambda: x <= 0, lambda: x == w.like(x)])())


def _select(w: _Writer) -> None:
    where = w.any(CONDITION)
    fits = [t for t in w.tiles if t.shape == where.shape and t.element in NUMBERS]
    if where.element != CONDITION or not fits:
        raise _Unfit
    x = w.random.choice(fits)
    w.keep(w.k.select(where if w.random.random() < 0.7 else ~where, x, w.random.randint(-1, 1)))


def _cast(w: _Writer) -> None:
    x = w.any(*NUMBERS, CONDITION)
    to = w.random.choice(NUMBERS)
    if x.element == CONDITION:
        to = w.random.choice([F32, S32])
    elif S32 in (to, x.element) and (to in (F16, BF16) or x.element in (F16, BF16)):
        raise _Unfit  # takes two roundings
    elif to == S32:
        x = w.k.max(w.k.min(x, 100), -100)
    w.keep(x.cast(to))


def _reduce(w: _Writer) -> None:
    x = w.any(*NUMBERS, CONDITION)
    if len(x.shape) == 1:
        raise _Unfit
    axis = w.random.randrange(len(x.shape))
    if x.element == CONDITION:
        w.keep(w.random.choice([x.any, x.all])(axis))
    else:
        kinds = [x.sum, x.sum, x.max, x.min, x.argmax]
        w.keep(w.random.choice(kinds)(axis))


def _reduce_by(w: _Writer) -> None:
    """The largest and where it stands, by a region."""
    x = w.any(F32, S32)
    if len(x.shape) == 1:
        raise _Unfit
    axis = w.random.randrange(len(x.shape))

    def larger(x: Scalar, i: Scalar, y: Scalar, j: Scalar) -> tuple[Scalar, Scalar]:
        ahead = (x > y) | ((x == y) & (i < j))
        return w.k.select(ahead, x, y), w.k.select(ahead, i, j)

    for tile in w.k.reduce([x, w.k.iota(axis, x.shape)], axis, larger):
        w.keep(tile)


def _scan(w: _Writer) -> None:
    x = w.any()
    kinds = [x.cumsum, x.cumsum, x.cummax, x.cummin]
    axis = w.random.randrange(len(x.shape))
    words = {word: w.random.random() < 0.3 for word in ("exclusive", "reverse")}
    w.keep(w.random.choice(kinds)(axis, **words))


def _random(w: _Writer) -> None:
    """Bits, of which few are kept: sums of them stay small."""
    offsets = w.any(S32)
    first, *_ = w.k.random(w.random.getrandbits(31), offsets)
    w.keep(first & 7)


def _scalar(w: _Writer) -> None:
    """A number of the whole block goes into every element."""
    x = w.any(F32, S32)
    w.keep(x - w.random.choice([x.max, x.min])())


def _broadcast(w: _Writer) -> None:
    x = w.any(*NUMBERS, CONDITION)
    if len(x.shape) == 4:
        raise _Unfit
    w.keep(x.broadcast(w.random.randrange(len(x.shape) + 1), w.random.choice([2, 3, 8, 16])))


def _transpose(w: _Writer) -> None:
    x = w.any(*NUMBERS, CONDITION)
    w.keep(x.transpose(*w.random.sample(range(len(x.shape)), len(x.shape))))


def _reshape(w: _Writer) -> None:
    x = w.any(*NUMBERS, CONDITION)
    size = int(np.prod(x.shape))
    first = w.random.choice([n for n in (1, 2, 4, 8, 16) if size % n == 0])
    w.keep(w.random.choice([x.reshape(first, -1), x.reshape(-1, first), x.reshape(-1)]))


def _slice(w: _Writer) -> None:
    x = w.any()
    dim = w.random.randrange(len(x.shape))
    half = x.shape[dim] // 2
    if half == 0:
        raise _Unfit
    part = w.random.choice([slice(half), slice(half, 2 * half), slice(0, 2 * half, 2)])
    w.keep(x[(slice(None),) * dim + (part,)])


def _join(w: _Writer) -> None:
    x = w.any()
    same = [t for t in w.tiles if t.shape == x.shape and t.element == x.element] or [x]
    y = w.random.choice(same)
    if len(x.shape) < 4 and w.random.random() < 0.5:
        w.keep(w.k.join(x, y))
    else:
        w.keep(w.k.concatenate([x, y], w.random.randrange(len(x.shape))))


def _split(w: _Writer) -> None:
    x = w.any()
    if int(np.prod(x.shape)) % 2 or x.shape[-1] % 2:
        raise _Unfit
    first, second = x.reshape(-1, 2).split()
    w.keep(first)
    w.keep(second)


def _iota(w: _Writer) -> None:
    shape = w.random.choice([t.shape for t in w.tiles[-4:]] or SHAPES)
    w.keep(w.k.iota(w.random.randrange(len(shape)), shape))


def _mma(w: _Writer) -> None:
    rows, warps = w.random.choice([16, 32, 64]), w.warps
    k, columns = w.random.choice([16, 32]), w.random.choice([8, 16, 32])
    if rows < 16 * warps[0] or columns < 8 * warps[1]:
        raise _Unfit
    fitting = [t for t in w.tiles if t.shape == (rows, k) and t.element in (F16, BF16)]
    a = w.random.choice(fitting) if fitting else w.loaded((rows, k), F16)
    b = w.loaded((k, columns), a.element)
    sums = [t for t in w.tiles if t.shape == (rows, columns) and t.element == F32]
    c = w.random.choice(sums) if sums else w.k.fill(0, (rows, columns), F32)
    w.keep(w.k.mma(a, b, c))


def _batches(w: _Writer) -> None:
    batch, rows, warps = w.random.choice([1, 2, 3]), w.random.choice([16, 32]), w.warps
    if rows < 16 * warps[0] or warps[1] > 1:
        raise _Unfit
    a = w.loaded((batch, rows, 16), F16, BF16)
    b = w.loaded((batch, 16, 8), a.element)
    w.keep(w.k.mma(a, b))


def _gather(w: _Writer) -> None:
    if w.depth:
        raise _Unfit
    places = w.any(S32)
    memory = w.memory((w.random.choice([7, 32, 100]),), w.random.choice(FLOATS))
    w.keep(w.k.gather(memory, (places,), shape=places.shape, masked=True))


def _atomic(w: _Writer) -> None:
    if w.depth:
        raise _Unfit
    x = w.any(S32)
    memory = w.memory((x.shape[-1],), S32)
    row = x.reshape(-1, x.shape[-1])
    places = w.k.iota(1, row.shape)
    w.k.atomic(w.random.choice(["add", "max", "xor"]), row, memory, (places,))


def _loop(w: _Writer) -> None:
    x = w.any()
    kept, w.depth = len(w.tiles), w.depth + 1
    with w.k.loop(0, w.random.randint(1, 3), 1, x=x) as loop:
        w.tiles.append(loop.x)
        for _ in range(w.random.randint(1, 3)):
            w.step()
        same = [t for t in w.tiles[kept:] if t.shape == x.shape and t.element == x.element]
        loop.x = w.random.choice(same)
    del w.tiles[kept:]
    w.depth -= 1
    w.keep(loop.x)


def _branch(w: _Writer) -> None:
    x = w.any()
    kept, w.depth = len(w.tiles), w.depth + 1
    with w.k.if_(w.k.block_id() < w.random.randint(0, 1), x=x) as branch:
        w.step()
        same = [t for t in w.tiles[kept:] if t.shape == x.shape and t.element == x.element]
        branch.x = w.random.choice([*same, x])
    del w.tiles[kept:]
    w.depth -= 1
    w.keep(branch.x)


#: Steps by name: what writes them, and how often they are drawn.
STEPS: dict[str, tuple[Callable[[_Writer], None], int]] = {
    "load": (_load, 2),
    "arithmetic": (_arithmetic, 4),
    "function": (_function, 2),
    "compare": (_compare, 1),
    "select": (_select, 2),
    "cast": (_cast, 2),
    "reduce": (_reduce, 3),
    "reduce_by": (_reduce_by, 1),
    "scan": (_scan, 1),
    "random": (_random, 1),
    "scalar": (_scalar, 1),
    "broadcast": (_broadcast, 2),
    "transpose": (_transpose, 1),
    "reshape": (_reshape, 1),
    "slice": (_slice, 1),
    "join": (_join, 1),
    "split": (_split, 1),
    "iota": (_iota, 1),
    "mma": (_mma, 2),
    "batches": (_batches, 1),
    "gather": (_gather, 1),
    "atomic": (_atomic, 1),
    "loop": (_loop, 2),
    "branch": (_branch, 1),
}


def tile_program(seed: int, steps: int = 8) -> TileProgram:
    """The program of a seed: so many steps, and its last tiles stored."""
    random = Random(seed)
    warps = random.choice(WARPS)
    target = random.choice(("sm_80", "sm_90a"))
    with fragir.kernel("program", warps=warps, target=target) as k:
        writer = _Writer(random, k, warps)
        writer.keep(writer.loaded(random.choice(SHAPES)))
        for _ in range(steps):
            writer.step()
        for number, tile in enumerate(writer.tiles[-3:]):
            if tile.element == CONDITION:
                tile = tile.cast(F32)
            result = k.memory(f"result{number}", tile.element, tile.shape)
            k.store(tile, result, [0] * len(tile.shape))
    return TileProgram(k, target)


ASYNCHRONY = ("late", "early", "random")
#: Reasons for which a program may be refused.
REFUSALS = ("registers of every lane", "threads do not divide")


def check(program: TileProgram, seed: int, assemble: bool) -> tuple[list[str], int]:
    """What is wrong with a program, and how many elements no bound judges."""
    kernel = program.kernel.compile()
    found = [str(warning) for warning in kernel.assembled.warnings] if assemble else []
    function = next(op for op in parse(program.text).ops if isinstance(op, func.FuncOp))
    arguments = slots(function)
    values = generate(function, arguments, resolve(arguments, {}, {}), {}, "normal", seed)
    expected = evaluate(function, values, target=program.target, grid=(1, 1, 1))
    how: dict[str, Any] = {"schedule": seed % 3 or None, "asynchrony": ASYNCHRONY[seed % 3]}
    report = kernel.launch((1, 1, 1), None, *values, on="emulator", check=True, **how)
    found += map(str, report.findings)
    unjudged = 0
    for number in outputs(function):
        reference, slot = expected[number], arguments[number]
        assert reference is not None
        judged = compare(reference, values[number], slot.element, allow_unjudged=1.0)
        unjudged += judged.unjudged
        if not judged.passed:
            found.append(f"{slot.name}: {judged}")
    return found, unjudged


def refused(error: FragirError) -> bool:
    """Whether a program may be refused for this reason: lanes that must hold all of a dimension
    may have to hold too much."""
    return any(reason in error.message for reason in REFUSALS)


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


def run(task: Task) -> Result:
    random, findings, unfit, unjudged = task.random(), list[str](), 0, 0
    for _ in range(task.parameters["batch"]):
        seed = random.getrandbits(48)
        program = tile_program(seed, task.parameters["steps"])
        try:
            wrong, free = check(program, seed, task.parameters["ptxas"])
            unjudged += free
        except FragirError as error:
            unfit += refused(error)
            wrong = [] if refused(error) else [str(error)]
        findings += [f"seed {seed}: {each}: {program.text}" for each in wrong]
    batch = task.parameters["batch"]
    return {"findings": findings, "programs": batch, "refused": unfit, "unjudged": unjudged}


SWEEP = Sweep(tasks, run, {"batch": 10, "steps": 8, "ptxas": True}, seconds=600.0)
