"""Steps of random programs that stage tiles in shared memory: allocations, copies, rings, roles.

Also conversions that are written, beside products or not. `tile_programs` draws from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Operation

import fragir
from benchmarks.sweeps.tile_steps import (
    BF16,
    COMPUTING,
    CONDITION,
    F16,
    F32,
    NIBBLES,
    NUMBERS,
    S32,
    WIDE,
    Steps,
    Unfit,
    Writer,
)
from fragir.builder.values import Tile
from fragir.dialects.elements import element_bits
from fragir.layout import Layout
from fragir.layout.distribution import dims_of

SWIZZLES = (32, 64, 128)


# --- shared memory --------------------------------------------------------------------------------


def place_of(w: Writer, shape: Sequence[int], element: Any) -> dict[str, Any]:
    """How shared memory of a shape lies: in rows, swizzled, or in rows that are further apart."""
    row = shape[-1] * element_bits(element) // 8
    fitting = [s for s in SWIZZLES if row % s == 0]
    if fitting and w.random.random() < 0.4:
        return {"swizzle": w.random.choice(fitting)}
    if len(shape) == 2 and element not in NIBBLES and w.random.random() < 0.3:
        rows, columns = shape
        apart = columns + w.random.choice([1, 2, 4, 8])
        return {"layout": f"row [{rows}:{apart}] col [{columns}:1]"}
    return {}


def _staged(w: Writer) -> None:
    """A tile goes through shared memory, and comes back as a whole, turned, or in part."""
    if w.depth:
        raise Unfit
    x = w.any()
    if len(x.shape) == 1:
        x = x.reshape(w.random.choice([n for n in (1, 2, 4, 8) if x.shape[0] % n == 0]), -1)
    memory = w.k.shared(x.shape, x.element, **place_of(w, x.shape, x.element))
    w.k.store(x, memory, [0] * len(x.shape))
    w.k.barrier()
    _read(w, memory, x.shape)
    if w.random.random() < 0.5:  # dead, and nobody may still read it
        w.k.barrier()


def _read(w: Writer, memory: Any, shape: Sequence[int]) -> None:
    at, part = [0] * len(shape), list(shape)
    way = w.random.randrange(4)
    if way == 0:
        part[-2:] = part[:-3:-1]
        w.keep(w.k.load(memory, at, shape=part, transposed=True))
        return
    if way == 1:
        dim = w.random.randrange(len(shape))
        part[dim] = max(1, part[dim] // 2)
        at[dim] = w.random.randint(0, shape[dim] - part[dim])
    w.keep(w.k.load(memory, at, shape=part))


def _copied(w: Writer) -> None:
    """A copy into shared memory, in whatever way, and what is then loaded."""
    if w.depth:
        raise Unfit
    rows, columns = w.random.choice([8, 16, 32, 64, 5]), w.random.choice([8, 16, 32, 64, 24])
    element = w.random.choice([*w.numbers, F16, F16, fragir.s8])
    outside = w.random.random() < 0.3
    source = w.memory((rows - outside * w.random.randint(0, 4), columns), element)
    memory = w.k.shared((rows, columns), element, **place_of(w, (rows, columns), element))
    later = w.random.random() < 0.5 and not w.has_rings
    w.has_groups |= later
    w.k.copy(source, (0, 0), memory, masked=outside, asynchronous=later)
    if later:
        w.k.commit()
        w.k.wait()
    w.k.barrier()
    if element in NUMBERS:
        _read(w, memory, (rows, columns))
    else:
        w.keep(w.k.load(memory, (0, 0), shape=(rows, columns)))
    if w.random.random() < 0.5:
        w.k.barrier()


def _dead(w: Writer) -> None:
    """Memory that nobody reads, written or not."""
    if w.depth:
        raise Unfit
    shape = w.random.choice([(1, 1), (8, 16), (32, 32), (2, 8, 16)])
    element = w.random.choice(w.numbers)
    memory = w.k.shared(shape, element, **place_of(w, shape, element))
    if w.random.random() < 0.5:
        w.k.store(w.k.fill(1, shape, element), memory, [0] * len(shape))


# --- rings ----------------------------------------------------------------------------------------


def _ring(w: Writer) -> None:
    """A loop over slots that are filled as it goes, which adds tiles or products."""
    if w.depth or w.has_groups:  # groups of copies are counted by hand, or by rings
        raise Unfit
    w.has_rings = True
    turns, slots = w.random.randint(1, 4), w.random.randint(1, 3)
    rows = w.random.choice([16, 32])
    element = w.random.choice([F16, BF16]) if w.since(80) else F16
    products = w.random.random() < 0.6
    shapes = [(rows, 32), (32, w.random.choice([8, 16, 32]))] if products else [(rows, 32)]
    sources = [w.memory((turns * s[0], s[1]), element) for s in shapes]
    parts = [w.k.part(s, element, **place_of(w, s, element)) for s in shapes]
    ring = w.k.ring(slots, parts)
    sums = (rows, shapes[-1][1])
    with w.k.loop(0, turns, 1, x=w.k.fill(0, sums, F32)) as loop:
        slot = ring.acquire()
        for source, part, shape in zip(sources, slot.parts, shapes, strict=True):
            fill(w, source, (loop.index * shape[0], 0), part, shape)
        slot.publish()
        slot = ring.wait()
        tiles = [w.k.load(p, (0, 0), shape=s) for p, s in zip(slot.parts, shapes, strict=True)]
        slot.release()
        last: Tile = loop.x
        loop.x = w.k.mma(tiles[0], tiles[-1], last) if products else last + tiles[0].cast(F32)
    w.keep(loop.x)


def fill(w: Writer, source: Any, at: Sequence[Any], part: Any, shape: Sequence[int]) -> None:
    """Fills a part of a slot, one way or the other."""
    way = w.random.randrange(3)
    if way == 0:
        w.k.store(w.k.load(source, at, shape=shape), part, [0] * len(shape))
    else:
        w.k.copy(source, at, part, asynchronous=way == 1)


def _pipeline(w: Writer) -> None:
    """Products of loads in a loop, whose turns passes may have ahead."""
    if w.depth or w.has_groups:
        raise Unfit
    w.has_rings = True
    turns, rows, columns = w.random.randint(1, 4), w.random.choice([16, 32, 64]), 32
    element = w.random.choice([F16, BF16]) if w.since(80) else F16
    a, b = w.memory((rows, turns * 32), element), w.memory((turns * 32, columns), element)
    masked = w.random.random() < 0.5
    with w.k.loop(0, turns * 32, 32, x=w.k.fill(0, (rows, columns), F32)) as loop:
        x = w.k.load(a, (0, loop.index), shape=(rows, 32), masked=masked)
        y = w.k.load(b, (loop.index, 0), shape=(32, columns), masked=masked)
        if w.random.random() < 0.3:
            y = (y.cast(F32) * 2).cast(element)
        loop.x = w.k.mma(x, y, loop.x)
    if w.random.random() < 0.8:
        last: Tile = loop.x
        assert last.ssa is not None
        assert isinstance(last.ssa.owner, Operation)
        last.ssa.owner.attributes["frag.stages"] = IntegerAttr(w.random.randint(2, 4), i64)
        w.staged_loops = True
    w.keep(loop.x)


# --- layouts that are written ---------------------------------------------------------------------


def layout_of(w: Writer, shape: Sequence[int]) -> Layout:
    """Some layout of a tile: its digits are dealt to elements, lanes and warps at random."""
    digits: list[tuple[int, tuple[int, ...]]] = []
    for dim, size in enumerate(shape):
        stride = 1
        while size > 1:
            part = 2 if size % 2 == 0 else size
            digits.append((part, tuple(stride * (d == dim) for d in range(len(shape)))))
            size, stride = size // part, stride * part
    w.random.shuffle(digits)
    still = (0,) * len(shape)
    texts: list[str] = []
    for axis, count in (("warp", prod(w.warps)), ("lane", 32)):
        modes: list[tuple[int, tuple[int, ...]]] = []
        while count > 1:
            twos = [digit for digit in digits if digit[0] == 2]
            mode = twos[0] if twos and w.random.random() < 0.9 else (2, still)
            if mode in digits:
                digits.remove(mode)
            modes.append(mode)
            count //= 2
        texts.append(_axis(axis, modes))
    texts.append(_axis("element", digits))
    names = "" if len(shape) < 4 else f" dims ({','.join(dims_of(len(shape)))})"
    return Layout.parse(" ".join(texts) + names)


def _axis(name: str, modes: Sequence[tuple[int, tuple[int, ...]]]) -> str:
    written = [
        f"{size}:{step[0] if len(step) == 1 else '(' + ','.join(map(str, step)) + ')'}"
        for size, step in modes
    ]
    return f"{name} [{' '.join(written)}]"


def _convert(w: Writer) -> None:
    """A tile in a layout that is written: any, or that of an operand of a product."""
    halves = w.random.random() < 0.5
    x = w.any(F16, BF16) if halves else w.any(*NUMBERS, *WIDE, CONDITION)
    operands = [
        o
        for o, (m, n) in {"a": (16, 16), "b": (16, 8), "c": (16, 8)}.items()
        if len(x.shape) == 2
        and x.element in (F16, BF16)
        and x.shape[0] % (m * (1 if o == "b" else w.warps[0])) == 0
        and x.shape[1] % (n * (1 if o == "a" else w.warps[1])) == 0
    ]
    if operands and w.random.random() < 0.7:
        kind = "f16" if x.element == F16 else "bf16"
        w.keep(
            w.k.convert(x, fragir.fragment(f"m16n8k16.{kind}", w.random.choice(operands), w.warps))
        )
    else:
        w.keep(w.k.convert(x, layout_of(w, x.shape)))


STAGING: Steps = {
    "staged": (_staged, 4),
    "copied": (_copied, 3),
    "dead": (_dead, 1),
    "ring": (_ring, 2),
    "pipeline": (_pipeline, 1),
    "convert": (_convert, 3),
}


# --- roles ----------------------------------------------------------------------------------------


def write_roles(w: Writer, steps: int) -> None:
    """A role that fills slots, and one or two that read them and go on with what they read."""
    k, random = w.k, w.random
    turns, slots = random.randint(1, 4), random.randint(1, 3)
    shape = (random.choice([16, 32]), 32)
    element = random.choice([F16, BF16, F32, S32])
    source = w.memory((turns * shape[0], shape[1]), element)
    results = [w.memory(shape, element) for _ in range(random.randint(1, 2))]
    whole = w.random.random() < 0.5  # boxes of a tensor map fill it
    place = {} if whole else place_of(w, shape, element)
    ring = k.ring(slots, [k.part(shape, element, **place)])
    with k.role("fill", warps=random.choice([(1, 1), (2, 1)])):
        with k.loop(0, turns, 1) as loop:
            slot = ring.acquire()
            if whole and w.since(90):
                k.copy(source, (loop.index * shape[0], 0), slot.parts[0], tma=True)
            else:
                fill(w, source, (loop.index * shape[0], 0), slot.parts[0], shape)
            slot.publish()
    for number, result in enumerate(results):
        w.warps = random.choice([(1, 1), (2, 1), (2, 2)])
        with k.role(f"read{number}", warps=w.warps):
            with k.loop(0, turns, 1, x=k.fill(0, shape, element)) as loop:
                slot = ring.wait()
                x: Tile = k.load(slot.parts[0], (0, 0), shape=shape)
                slot.release()
                loop.x = k.max(loop.x, x)
            w.tiles[:] = [loop.x]
            w.depth += 1  # arguments stand outside
            for _ in range(steps // 2):
                w.step({**COMPUTING, "convert": (_convert, 3)})
            w.depth -= 1
            same = [t for t in w.tiles if t.shape == shape and t.element == element]
            k.store(same[-1], result, (0, 0))
    w.tiles.clear()
