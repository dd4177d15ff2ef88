"""Layouts with exclusive or: one simplified form a function, and an algebra that never errs.

Exhaustive tasks write every layout of a small shape, each digit added or exclusive-ored, and hold
all that are one function against each other. The others draw layouts and ask the algebra.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any

from fragir.layout import (
    Axis,
    Layout,
    LayoutError,
    Mode,
    Swizzle,
    XorMode,
    compose,
    concatenated,
    left_inverse,
    quotient,
    right_inverse,
    shifted,
)
from fragir.sweeps import Plan, Result, Sweep, Task

Chain = tuple[tuple[int, ...], ...]

# Sizes of the digits of each axis, the strides, the offsets.
SHAPES: list[tuple[Chain, range, tuple[int, ...]]] = [
    (((2,), (2,)), range(8), (0, 1, 2, 3)),
    (((2, 2),), range(8), (0, 1, 2, 3)),
    (((2, 3),), range(8), (0, 1, 2, 3)),
    (((3,), (2,)), range(8), (0, 1, 2, 3)),
    (((2,), (2,), (2,)), range(8), (0, 1, 3)),
    (((2, 2, 2),), range(4), (0, 1, 2)),
    (((2, 2), (2,)), range(4), (0, 1, 2)),
    (((2, 3), (2,)), range(8), (0, 1, 3)),
    (((2, 2, 3),), range(4), (0, 1, 2)),
    (((3,), (2,), (2,)), range(4), (0, 1, 2)),
    (((2, 2), (2, 2)), range(4), (0,)),
    (((2,), (3, 2), (2,)), range(4), (0,)),
]


def texts(chain: Chain, steps: range, offset: int) -> Iterator[Layout]:
    """All layouts of one dimension whose axes have digits of these sizes, in this order."""
    sizes = [size for axis in chain for size in axis]
    kinds = [(Mode, XorMode) if size == 2 else (Mode,) for size in sizes]
    for columns in product(steps, repeat=len(sizes)):
        for xored in product(*kinds):
            digits = iter([k(n, (c,)) for k, n, c in zip(xored, sizes, columns, strict=True)])
            axes = (
                Axis("abcd"[number], tuple(next(digits) for _ in axis))
                for number, axis in enumerate(chain)
            )
            yield Layout(tuple(axes), ("index",), (offset,))


def several_forms(sizes: Chain, steps: range, offsets: Sequence[int]) -> tuple[int, list[str]]:
    """How many layouts there are, and what is wrong with their simplified forms."""
    forms: defaultdict[bytes, dict[str, str]] = defaultdict(dict)
    wrong: list[str] = []
    tried = 0
    for chain in product(*(sorted(set(permutations(axis))) for axis in sizes)):
        for offset in offsets:
            for one in texts(chain, steps, offset):
                tried += 1
                table, simple = one.array(), one.simplified()
                if (simple.array() != table).any() or simple.simplified() != simple:
                    wrong.append(f"{one} is not {simple}")
                if simple.exclusive and not one.exclusive:
                    wrong.append(f"{one} became {simple}")
                if one.shape[0] != table.max() + 1:
                    wrong.append(f"{one} has not the shape {one.shape}")
                forms[table.tobytes()].setdefault(str(simple), str(one))
    wrong += [f"one function: {found}" for found in forms.values() if len(found) > 1]
    return tried, wrong


def random_layout(
    rng: random.Random, names: str, dims: tuple[str, ...], most: int = 3, offset: bool = True
) -> Layout:
    """Digits of size 2, 3, 4 and 6, those of two and four often exclusive-ored."""
    axes: list[Axis] = []
    for name in names:
        modes: list[Mode] = []
        for _ in range(rng.randrange(most + 1)):
            size = rng.choice((2, 2, 2, 4, 3, 6))
            kind = XorMode if size in (2, 4) and rng.random() < 0.5 else Mode
            step = tuple(rng.choice((0, 0, 1, 2, 3, 4, 6, 8, 12, 16)) for _ in dims)
            modes.append(kind(size, step))
        axes.append(Axis(name, tuple(modes)))
    start = tuple(rng.randrange(5) for _ in dims) if offset and rng.random() < 0.3 else ()
    return Layout(tuple(axes), dims, start)


def rewritten(rng: random.Random, one: Layout) -> Layout:
    """Another text, perhaps of the same function: digits cut, added or exclusive-ored."""
    axes: list[Axis] = []
    for axis in one.axes:
        modes: list[Mode] = []
        for mode in axis.modes:
            match rng.randrange(4):
                case 0 if mode.size == 4:
                    modes.append(mode.moving(2, mode.step))
                    modes.append(mode.moving(2, tuple(2 * s for s in mode.step)))
                case 1 if mode.size in (2, 4):
                    modes.append((Mode if mode.xor else XorMode)(mode.size, mode.step))
                case 2 if mode.size == 6:
                    modes.append(Mode(3, mode.step))
                    modes.append(Mode(2, tuple(3 * s for s in mode.step)))
                case _:
                    modes.append(mode)
        axes.append(Axis(axis.name, tuple(modes)))
    return Layout(tuple(axes), one.dims, one.offset)


def check_forms(rng: random.Random) -> str | None:
    one = random_layout(rng, "ab", ("row", "col"))
    table = one.array()
    if (one.simplified().array() != table).any():
        return f"{one} is not {one.simplified()}"
    for _ in range(6):
        other = rewritten(rng, one)
        same = (other.array() == table).all()
        if same != one.equivalent(other) or (same and one.simplified() != other.simplified()):
            return f"{one} and {other}: same is {same}"
    return None


def check_compose(rng: random.Random) -> str | None:
    inner, outer = random_layout(rng, "ab", ("x", "y"), 2), random_layout(rng, "yx", ("byte",))
    axes: list[Axis] = []
    for axis in outer.axes:  # as long as the inner layout reaches
        extent = inner.shape[inner.dims.index(axis.name)]
        more = 1 << (-(-extent // axis.size)).bit_length()
        axes.append(Axis(axis.name, (*axis.modes, XorMode(more, (rng.randrange(16),)))))
    outer = Layout(tuple(axes), outer.dims, outer.offset)
    points = inner.array()
    wanted = outer.array()[points[..., 1], points[..., 0]]
    got = compose(outer, inner)
    return None if (got.array() == wanted).all() else f"{outer} after {inner}: {got}"


def check_inverses(rng: random.Random) -> str | None:
    one = random_layout(rng, "ab", ("x", "y"), offset=False)
    slots = dict(one.slots())
    back = _unless_refused(left_inverse, one)
    for slot, point in slots.items() if back else ():
        if back and back(**dict(zip(one.dims, point or (), strict=True))) != slot:
            return f"left inverse of {one}: {back}"
    back = right_inverse(one) if back is None else _unless_refused(right_inverse, one)
    for point in set(slots.values()) if back else ():
        slot = back and back(**dict(zip(one.dims, point or (), strict=True)))
        if slots[slot or ()] != point:
            return f"right inverse of {one}: {back}"
    return None


def _unless_refused(inverse: Callable[[Layout], Layout], one: Layout) -> Layout | None:
    try:
        return inverse(one)
    except LayoutError:
        return None


def check_sums(rng: random.Random) -> str | None:
    one, other = (random_layout(rng, names, ("x", "y"), 2) for names in ("ab", "bc"))
    got = concatenated(one, other)
    size = one.size("b")
    for (a, b, c), point in got.slots():
        first, second = one(a=a, b=b % size), other(b=b // size, c=c)
        if point != tuple(x + y for x, y in zip(first or (), second or (), strict=True)):
            return f"{one} + {other}: {got}"
    if not concatenated(one, quotient(got, one)).equivalent(got):
        return f"{got} by {one}: {quotient(got, one)}"
    return None


def check_steps(rng: random.Random) -> str | None:
    one = random_layout(rng, "ab", ("x", "y"))
    by = (rng.randrange(-3, 9), rng.randrange(-3, 9))
    got = shifted(one, by)
    return None if (got.array() == one.array() + by).all() else f"{one} by {by}: {got}"


def check_swizzles(rng: random.Random) -> str | None:
    one = random_layout(rng, "ab", ("byte",))
    bits = rng.randrange(4)
    swizzle = Swizzle(bits, rng.randrange(4), rng.choice((-1, 1)) * rng.randrange(bits, 5))
    got = swizzle * one
    wanted = [swizzle(int(point)) for point in one.array().flat]
    return None if got.array().ravel().tolist() == wanted else f"{swizzle} of {one}: {got}"


CHECKS: dict[str, Callable[[random.Random], str | None]] = {
    "forms": check_forms,
    "compose": check_compose,
    "inverses": check_inverses,
    "sums": check_sums,
    "steps": check_steps,
    "swizzles": check_swizzles,
}


def tasks(plan: Plan) -> Sequence[Any]:
    """Every small shape, and `count` batches of each check."""
    drawn = [[name, number] for name in CHECKS for number in range(plan.count or 20)]
    return [["all", number] for number in range(len(SHAPES))] + drawn


def run(task: Task) -> Result:
    kind: str = task.what[0]
    number: int = task.what[1]
    if kind == "all":
        sizes, steps, offsets = SHAPES[number]
        tried, findings = several_forms(sizes, steps, offsets)
        return {"findings": findings[:20], "tried": tried, "refused": 0}
    rng = task.random()
    findings: list[str] = []
    refused = 0
    for _ in range(task.parameters["batch"]):
        try:
            found = CHECKS[kind](rng)
        except LayoutError:
            refused += 1
        else:
            findings += [found] if found else []
    return {"findings": findings, "tried": task.parameters["batch"], "refused": refused}


SWEEP = Sweep(tasks, run, {"batch": 500}, seconds=600.0)
