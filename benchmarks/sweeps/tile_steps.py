"""The steps of random programs of tiles, written with the builder.

Elementwise work, casts, reductions, scans, broadcasts, other shapes, parts, products, masked loads,
gathers, random bits, atomics, in loops and branches; with those of `tile_staging`, all that
`tile_programs` draws from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from random import Random
from typing import Any, TypeAlias

import numpy as np

import fragir
from fragir.builder.kernel import KernelBuilder
from fragir.builder.types import condition as CONDITION
from fragir.builder.values import Scalar, Tile

F16, BF16, F32, S32 = fragir.f16, fragir.bf16, fragir.f32, fragir.s32
F64, S64 = fragir.f64, fragir.s64
FLOATS, NUMBERS = (F16, BF16, F32), (F16, BF16, F32, S32)
#: What is computed with now and then, besides.
WIDE = (F64, S64)
#: What is only moved, and cast to what is computed with.
BYTES = (fragir.s8, fragir.u8, fragir.e4m3, fragir.e5m2, fragir.e3m2, fragir.e2m3, fragir.e2m1)
NIBBLES = (fragir.s4, fragir.u4)
STORED = (*BYTES, *NIBBLES, fragir.tf32)
ANY = (*NUMBERS, *WIDE, CONDITION)
WARPS = ((1, 1), (2, 1), (4, 1), (2, 2))
MORE_WARPS = ((1, 2), (1, 4), (8, 1), (4, 2))
#: Shapes of tiles, and of the arrays they are loaded from: the tile's, or smaller and masked.
SHAPES = ((64,), (128,), (16, 32), (32, 32), (64, 16), (16, 64), (4, 8, 16), (2, 3, 32), (12, 40))
MORE_SHAPES = (
    *((16, 3), (5, 6), (1, 128), (1, 1), (16, 8), (8, 8), (33, 7), (64, 64), (100,), (7,), (1,)),
    *((2, 16, 16), (3, 5, 8), (2, 2, 8, 8), (1, 4, 2, 16), (2, 3, 4, 5)),
)
LARGEST, SMALLEST = 4096, 32
TARGETS = ("sm_80", "sm_90a")
MORE_TARGETS = ("sm_75", "sm_86", "sm_89", "sm_100a", "sm_120a")


def number_of(target: str) -> int:
    """The number of a target: 90 of sm_90a."""
    return int("".join(filter(str.isdigit, target)))


class Writer:
    """A kernel while it grows, and the tiles that it may go on with."""

    def __init__(self, random: Random, k: KernelBuilder, warps: tuple[int, int], target: str):
        self.random, self.k, self.warps, self.target = random, k, warps, target
        self.tiles: list[Tile] = []
        self.sizes: dict[str, int] = {}
        self.inputs = 0
        self.depth = 0
        self.numbers = [e for e in NUMBERS if e != BF16 or self.since(80)]
        self.staged_loops = self.has_rings = self.has_groups = False

    def since(self, number: int) -> bool:
        """Whether the target is this one or a later one."""
        return number_of(self.target) >= number

    def some(self, *chances: tuple[Any, float]) -> Any:
        """One of several, each as often as it says."""
        names, weights = zip(*chances, strict=True)
        return self.random.choices(names, weights)[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """One of those that there are."""
        return self.random.choice(SHAPES if self.random.random() < 0.7 else MORE_SHAPES)

    def memory(self, shape: Sequence[int], element: Any) -> Any:
        """Another argument; some of its sizes may be its own matter."""
        self.inputs += 1
        name, sizes = f"m{self.inputs}", list[Any](shape)
        packed = element in NIBBLES
        for dim in range(len(sizes) - packed):
            if self.random.random() < 0.1:
                sizes[dim] = f"size{self.inputs}_{dim}"
                self.sizes[sizes[dim]] = shape[dim]
        return self.k.memory(name, element, tuple(sizes))

    def keep(self, tile: object) -> None:
        least = 1 if self.random.random() < 0.3 else SMALLEST
        if isinstance(tile, Tile) and least <= np.prod(tile.shape) <= LARGEST:
            self.tiles.append(tile)

    def any(self, *elements: Any) -> Tile:
        """One of the last tiles of such a type, or a new one."""
        allowed = elements or (*self.numbers, *WIDE)
        found = [t for t in self.tiles[-6:] if t.element in allowed]
        return self.random.choice(found) if found else self.loaded(self.shape, *elements)

    def like(self, tile: Tile) -> Tile:
        """A tile of the same type whose shape goes with this one's."""
        same = [t for t in self.tiles if t.element == tile.element and t.shape == tile.shape]
        if len(tile.shape) > 1 and self.random.random() < 0.4 and tile.element in NUMBERS:
            return tile.max(self.random.randrange(len(tile.shape)), keepdims=True)
        return self.random.choice(same or [tile])

    def loaded(self, shape: Sequence[int], *elements: Any) -> Tile:
        """A tile of memory that is as large, or smaller."""
        often = self.random.random() < 0.8
        number = self.random.choice(self.numbers if often else WIDE)
        wanted = [e for e in elements if e != CONDITION and (e != BF16 or self.since(80))]
        element = self.random.choice(wanted or [F32]) if elements else number
        outside = self.random.random() < 0.4
        sizes = [n - self.random.randrange(n // 2 + 1) if outside else n for n in shape]
        if self.depth:  # arguments stand outside of loops
            return self.k.fill(self.random.randint(-3, 3), shape, element)
        other = self.random.choice([None, 1, -2]) if outside else None
        if element in STORED:
            sizes[-1] += sizes[-1] % 2  # rows end at bytes
            other = None
        at = [0] * len(sizes)
        if len(shape) > 1 and element not in NIBBLES and self.random.random() < 0.1:
            turned = [*sizes[:-2], sizes[-1], sizes[-2]]
            array = self.memory(turned, element)
            return self.k.load(
                array, at, shape=tuple(shape), transposed=True, masked=outside, other=other
            )
        array = self.memory(sizes, element)
        return self.k.load(array, at, shape=tuple(shape), masked=outside, other=other)

    def step(self, steps: Steps) -> None:
        """One operation more, where it fits what there is."""
        names = [name for name in steps for _ in range(steps[name][1])]
        with suppress(Unfit):
            steps[self.random.choice(names)][0](self)


#: Steps by name: what writes them, and how often they are drawn.
Steps: TypeAlias = Mapping[str, tuple[Callable[[Writer], None], int]]


class Unfit(Exception):
    """What is there does not suit the operation."""


def _load(w: Writer) -> None:
    w.keep(w.loaded(w.shape))


def _arithmetic(w: Writer) -> None:
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


def _function(w: Writer) -> None:
    x = w.any(F32)
    function = w.random.choice([w.k.tanh, w.k.exp2, w.k.erf, w.k.sin, w.k.floor, abs])
    w.keep(function(w.k.max(w.k.min(x, 4.0), -4.0)))


def _compare(w: Writer) -> None:
    x = w.any()
    w.keep(w.random.choice([lambda: x > w.like(x), lambda: x <= 0, lambda: x == w.like(x)])())


def _select(w: Writer) -> None:
    where = w.any(CONDITION)
    fits = [t for t in w.tiles if t.shape == where.shape and t.element in NUMBERS]
    if where.element != CONDITION or not fits:
        raise Unfit
    x = w.random.choice(fits)
    w.keep(w.k.select(where if w.random.random() < 0.7 else ~where, x, w.random.randint(-1, 1)))


def _cast(w: Writer) -> None:
    x = w.any(*NUMBERS, *WIDE, CONDITION)
    to = w.random.choice([*w.numbers, *WIDE] if w.random.random() < 0.3 else w.numbers)
    if x.element == CONDITION:
        to = w.random.choice([F32, S32])
    elif takes_two_roundings(x.element, to, w):
        raise Unfit
    elif to in (S32, S64):
        x = w.k.max(w.k.min(x, 100), -100)
    w.keep(x.cast(to))


def takes_two_roundings(from_: Any, to: Any, w: Writer) -> bool:
    """Whether PTX has no cvt from one type to another that rounds once (PTX ISA 9.2, 9.7.9.22)."""
    return to == BF16 and from_ in (F64, S32, S64) and not w.since(90)


def _stored(w: Writer) -> None:
    """A tile of a type that is only moved: moved about, and cast to one that is computed with."""
    if w.depth:
        raise Unfit
    element = w.random.choice(STORED)
    x = w.loaded(w.shape, element)
    if element in NIBBLES:
        size, n = int(np.prod(x.shape)), x.shape[-1]
        moves: list[Callable[[], Tile]] = [lambda: x, lambda: x.reshape(size // n, n)]
    else:
        moves = [
            lambda: x,
            lambda: x.reshape(-1),
            lambda: x.transpose(*reversed(range(len(x.shape)))),
        ]
        moves += (
            [lambda: w.k.concatenate([x, x], 0), lambda: w.k.join(x, x)] if len(x.shape) < 4 else []
        )
        moves += [lambda: x.broadcast(0, 2)] if len(x.shape) < 4 else []
    x = w.random.choice(moves)()
    w.keep(x if w.random.random() < 0.3 else x.cast(w.random.choice([F16, F32])))


def _narrowed(w: Writer) -> None:
    """Small numbers as a type that is only moved."""
    x = w.any(F16, F32, S32)
    to = [fragir.s8, fragir.u8] + ([fragir.e4m3, fragir.e5m2] if w.since(89) else [])
    if w.target in ("sm_100a", "sm_120a"):
        to += [fragir.e3m2, fragir.e2m3, fragir.e2m1]
    w.keep(w.k.max(w.k.min(x, 3), 0).cast(w.random.choice(to)))


def _shift(w: Writer) -> None:
    x = w.any(S32, S64)
    by: Any = w.random.choice([0, 1, 7, 31])
    if w.random.random() < 0.5:
        by = w.random.choice([x, *(t for t in w.tiles if t.shape == x.shape)])
        by = (by & 15) if by.element == x.element else 3
    w.keep(x >> by if w.random.random() < 0.7 else (x & 255) << by)


def _bits(w: Writer) -> None:
    x = w.any(S32, S64)
    y = w.like(x)
    w.keep(w.random.choice([lambda: x & y, lambda: x | 5, lambda: x ^ y, lambda: ~x])())


def _reduce(w: Writer) -> None:
    x = w.any(*ANY)
    if len(x.shape) == 1:
        raise Unfit
    axis = w.random.randrange(len(x.shape))
    if x.element == CONDITION:
        w.keep(w.random.choice([x.any, x.all])(axis))
    else:
        kinds = [x.sum, x.sum, x.max, x.min, x.argmax]
        w.keep(w.random.choice(kinds)(axis))


def _reduce_by(w: Writer) -> None:
    """The largest and where it stands, by a region."""
    x = w.any(F32, S32)
    if len(x.shape) == 1:
        raise Unfit
    axis = w.random.randrange(len(x.shape))

    def larger(x: Scalar, i: Scalar, y: Scalar, j: Scalar) -> tuple[Scalar, Scalar]:
        ahead = (x > y) | ((x == y) & (i < j))
        return w.k.select(ahead, x, y), w.k.select(ahead, i, j)

    for tile in w.k.reduce([x, w.k.iota(axis, x.shape)], axis, larger):
        w.keep(tile)


def _scan(w: Writer) -> None:
    x = w.any()
    kinds = [x.cumsum, x.cumsum, x.cummax, x.cummin]
    axis = w.random.randrange(len(x.shape))
    words = {word: w.random.random() < 0.3 for word in ("exclusive", "reverse")}
    w.keep(w.random.choice(kinds)(axis, **words))


def _random(w: Writer) -> None:
    """Bits, of which few are kept: sums of them stay small."""
    offsets = w.any(S32)
    first, *_ = w.k.random(w.random.getrandbits(31), offsets)
    w.keep(first & 7)


def _scalar(w: Writer) -> None:
    """A number of the whole block goes into every element."""
    x = w.any(F32, S32)
    w.keep(x - w.random.choice([x.max, x.min])())


def _broadcast(w: Writer) -> None:
    x = w.any(*ANY)
    if len(x.shape) == 4:
        raise Unfit
    w.keep(x.broadcast(w.random.randrange(len(x.shape) + 1), w.random.choice([2, 3, 8, 16])))


def _transpose(w: Writer) -> None:
    x = w.any(*ANY)
    w.keep(x.transpose(*w.random.sample(range(len(x.shape)), len(x.shape))))


def _reshape(w: Writer) -> None:
    x = w.any(*ANY)
    size = int(np.prod(x.shape))
    first = w.random.choice([n for n in (1, 2, 4, 8, 16) if size % n == 0])
    w.keep(w.random.choice([x.reshape(first, -1), x.reshape(-1, first), x.reshape(-1)]))


def _slice(w: Writer) -> None:
    x = w.any()
    if w.random.random() < 0.5:
        dim = w.random.randrange(len(x.shape))
        half = x.shape[dim] // 2
        if half == 0:
            raise Unfit
        part = w.random.choice([slice(half), slice(half, 2 * half), slice(0, 2 * half, 2)])
        w.keep(x[(slice(None),) * dim + (part,)])
        return
    parts = list[slice]()
    for n in x.shape:  # any part of any dimension
        length = w.random.choice([n, max(1, n // 2), w.random.randint(1, n)])
        first = w.random.randint(0, n - length)
        parts.append(slice(first, first + length))
    w.keep(x[tuple(parts)])


def _join(w: Writer) -> None:
    x = w.any()
    same = [t for t in w.tiles if t.shape == x.shape and t.element == x.element] or [x]
    y = w.random.choice(same)
    if len(x.shape) < 4 and w.random.random() < 0.5:
        w.keep(w.k.join(x, y))
    else:
        w.keep(w.k.concatenate([x, y], w.random.randrange(len(x.shape))))


def _split(w: Writer) -> None:
    x = w.any()
    if int(np.prod(x.shape)) % 2 or x.shape[-1] % 2:
        raise Unfit
    first, second = x.reshape(-1, 2).split()
    w.keep(first)
    w.keep(second)


def _iota(w: Writer) -> None:
    shape = w.random.choice([t.shape for t in w.tiles[-4:]] or SHAPES)
    w.keep(w.k.iota(w.random.randrange(len(shape)), shape))


def factors(w: Writer) -> tuple[Any, Any, int, Any]:
    """Types of A and B, the least K, and the type of the sums, of a product that the target has."""
    chances = [((F16, F16, 16, F32), 4.0), ((F16, F16, 16, F16), 0.5)]
    chances += [((fragir.s8, fragir.s8, 32, S32), 0.5), ((fragir.u8, fragir.s8, 32, S32), 0.2)]
    if w.since(80):
        chances += [((BF16, BF16, 16, F32), 3.0), ((fragir.tf32, fragir.tf32, 8, F32), 1.0)]
        chances += [((F64, F64, 4, F64), 0.3)]
    if w.since(89):
        chances += [((fragir.e4m3, fragir.e5m2, 32, F32), 0.4)]
    return w.some(*chances)


def _mma(w: Writer) -> None:
    rows, columns = w.random.choice([16, 32, 64]), w.random.choice([8, 16, 32])
    first, second, least, sums = factors(w)
    k = least * w.random.choice([1, 2])
    fitting = [t for t in w.tiles if t.shape == (rows, k) and t.element == first]
    if w.depth and (first in STORED or second in STORED):
        raise Unfit
    a = w.random.choice(fitting) if fitting else w.loaded((rows, k), first)
    fitting = [t for t in w.tiles if t.shape == (k, columns) and t.element == second]
    b = w.random.choice(fitting) if fitting else w.loaded((k, columns), second)
    found = [t for t in w.tiles if t.shape == (rows, columns) and t.element == sums]
    c = w.random.choice(found) if found else w.k.fill(0, (rows, columns), sums)
    w.keep(w.k.mma(a, b, c))


def _batches(w: Writer) -> None:
    batch, rows = w.random.choice([1, 2, 3, 4]), w.random.choice([16, 32, 64])
    first, second, least, sums = factors(w)
    if w.depth and (first in STORED or second in STORED):
        raise Unfit
    a = w.loaded((batch, rows, least), first)
    b = w.loaded((batch, least, w.random.choice([8, 16])), second)
    w.keep(w.k.mma(a, b, w.k.fill(0, (batch, rows, b.shape[-1]), sums)))


def _gather(w: Writer) -> None:
    if w.depth:
        raise Unfit
    places = w.any(S32)
    memory = w.memory((w.random.choice([7, 32, 100]),), w.random.choice(FLOATS))
    w.keep(w.k.gather(memory, (places,), shape=places.shape, masked=True))


def _atomic(w: Writer) -> None:
    if w.depth:
        raise Unfit
    x = w.any(S32)
    memory = w.memory((x.shape[-1],), S32)
    row = x.reshape(-1, x.shape[-1])
    places = w.k.iota(1, row.shape)
    w.k.atomic(w.random.choice(["add", "max", "xor"]), row, memory, (places,))


def _scatter(w: Writer) -> None:
    """Every element at a place of its own."""
    if w.depth:
        raise Unfit
    x = w.any()
    x = x.reshape(-1)
    memory = w.memory((x.shape[0] + 3,), x.element)
    w.k.scatter(x, memory, (w.k.iota(0, x.shape) + w.random.randint(0, 3),))


def goes_on(tile: Tile, x: Tile) -> bool:
    """Whether a loop or branch that carries one may hand on the other: their types are one."""
    return tile.ssa is not None and x.ssa is not None and tile.ssa.type == x.ssa.type


def _loop(w: Writer) -> None:
    x = w.any()
    kept, w.depth = len(w.tiles), w.depth + 1
    with w.k.loop(0, w.random.randint(1, 3), 1, x=x) as loop:
        w.tiles.append(loop.x)
        for _ in range(w.random.randint(1, 3)):
            w.step(COMPUTING)
        same = [t for t in w.tiles[kept:] if goes_on(t, x)]
        loop.x = w.random.choice(same)
    del w.tiles[kept:]
    w.depth -= 1
    w.keep(loop.x)


def _branch(w: Writer) -> None:
    x = w.any()
    kept, w.depth = len(w.tiles), w.depth + 1
    with w.k.if_(w.k.block_id() < w.random.randint(0, 1), x=x) as branch:
        w.step(COMPUTING)
        same = [t for t in w.tiles[kept:] if goes_on(t, x)]
        branch.x = w.random.choice([*same, x])
    del w.tiles[kept:]
    w.depth -= 1
    w.keep(branch.x)


#: What needs no memory but arguments.
COMPUTING: Steps = {
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
    "stored": (_stored, 3),
    "narrowed": (_narrowed, 1),
    "shift": (_shift, 1),
    "bits": (_bits, 1),
    "scatter": (_scatter, 1),
    "gather": (_gather, 1),
    "atomic": (_atomic, 1),
    "loop": (_loop, 2),
    "branch": (_branch, 1),
}
