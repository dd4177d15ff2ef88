"""tcgen05.mma of every kind, M, N and cta_group on the emulator: equal to exact arithmetic.

Types, orders of A and B, swizzles, where A lies, scales and what else an instruction may have are
drawn; operands are random, or an A with one element. Every other product is run with checks, which
are silent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

import numpy as np

from fragir.sweeps import Plan, Result, Sweep, Task
from tests.emulator.tensor_products import Case, make_trial

_SMALL = ("e4m3", "e5m2", "e2m3", "e3m2", "e2m1")
#: Types of A and B by kind.
TYPES: dict[str, tuple[str, ...]] = {
    "f16": ("f16", "bf16"),
    "tf32": ("tf32",),
    "f8f6f4": _SMALL,
    "i8": ("u8", "s8"),
    "mxf8f6f4": _SMALL,
    "mxf4": ("e2m1",),
    "mxf4nvf4": ("e2m1",),
}
_VECTORS = {
    "mxf8f6f4": ("scale_vec::1X", "block32"),
    "mxf4": ("scale_vec::2X", "block32"),
    "mxf4nvf4": ("scale_vec::2X", "scale_vec::4X", "block16", "block32"),
}
_SWIZZLES = (0, 2, 4, 6)
_BYTES = {"f16": 2, "bf16": 2, "tf32": 4}


def shapes(kind: str) -> Iterator[tuple[int, int, bool, bool, tuple[int, ...]]]:
    """(cta_group, M, whether sparse, whether .ws, every N) of a kind."""
    scaled = kind in _VECTORS
    for sparse in (False, True):
        for group, rows in ((1, (64, 128)), (2, (128, 256))):
            for m in rows:
                if scaled and (m == 64 or (sparse and group == 2 and m == 128)):
                    continue
                step = 8 * group * (2 if kind == "i8" else 1)
                columns = tuple(range(step, 257, step))
                if kind == "i8" and group == 1:
                    columns = (8, 16, 24, *range(32, 257, 16))
                yield group, m, sparse, False, columns
        for m in () if scaled else (32, 64, 128):
            yield 1, m, sparse, True, (64, 128) if sparse else (64, 128, 256)


def draw(random: Random, kind: str, shape: tuple[int, int, bool, bool], n: int) -> Case:
    """A product of a kind and shape, with everything else at random."""
    group, m, sparse, ws = shape
    a, b = (random.choice(TYPES[kind]) for _ in "ab")
    b = a if kind == "f16" else b
    result = {"i8": "s32"}.get(kind, "f32")
    if kind == "f8f6f4" or (kind == "f16" and a == "f16"):
        result = random.choice(("f32", "f16"))
    tensor_a = random.random() < 0.4
    majors, swizzles = list[str](), list[int]()
    for which, (element, extent) in enumerate(((a, m // group), (b, n // group))):
        size = _BYTES.get(element, 1)
        turns = element in (*_BYTES, "u8", "s8", "e4m3", "e5m2") and kind not in (
            "mxf4",
            "mxf4nvf4",
        )
        turns = turns and extent * size % 16 == 0 and not (which == 0 and tensor_a)
        major = "mn" if turns and random.random() < 0.4 else "k"
        fits = [s for s in _SWIZZLES if major == "k" or extent * size % _WIDTHS[s] == 0]
        swizzle = random.choice(fits)
        if major == "mn" and element == "tf32":
            major, swizzle = ("mn", 1) if extent % 32 == 0 else ("k", 2)
        if major == "k" and sparse and which == 1 and swizzle == 6:
            swizzle = 2  # 64 bytes of a row do not fit
        majors.append(major)
        swizzles.append(swizzle)
    more: dict[str, Any] = {}
    if kind in _VECTORS:
        more["vector"] = random.choice(_VECTORS[kind])
        four = more["vector"] in ("scale_vec::4X", "block16")
        more["scale"] = random.choice(("ue4m3", "ue8m0")) if four else "ue8m0"
        firsts = (0, 1, 2, 3) if kind == "mxf8f6f4" else (0,) if four else (0, 2)
        more["first"] = random.choice(firsts), random.choice(firsts)
    elif not ws:
        more["masked"] = random.random() < 0.2
        more["shift"] = random.choice((0, 0, 2)) if kind in ("f16", "tf32") else 0
        more["shift"] = 0 if result == "f16" else more["shift"]
    if kind != "i8":
        more["negate"] = random.random() < 0.2, random.random() < 0.2
    return Case(
        kind, a, b, m, n, result, group, sparse, ws, tensor_a,
        (majors[0], majors[1]), (swizzles[0], swizzles[1]),
        accumulates=random.random() < 0.8, **more,
    )  # fmt: skip


_WIDTHS = {0: 16, 2: 128, 4: 64, 6: 32}


def check(case: Case, seed: int, *, one_hot: bool, checked: bool) -> list[str]:
    """What is wrong with a product."""
    trial = make_trial(case, seed, one_hot)
    found, report = trial.run(check=checked)
    wrong = int(np.sum(found != trial.expected))
    problems = [f"{wrong} of {found.size} elements are wrong: {case}"] if wrong else []
    return problems + [f"{finding.message}: {case}" for finding in report.findings]


def tasks(plan: Plan) -> Sequence[Any]:
    return [(kind, *shape) for kind in TYPES for shape in shapes(kind)]


def run(task: Task) -> Result:
    kind, group, m, sparse, ws, columns = task.what
    random, findings, count = task.random(), list[str](), 0
    for n in columns:
        for one_hot in (False, True):
            case = draw(random, kind, (group, m, sparse, ws), n)
            checked = count % 2 == 0
            findings += check(case, random.getrandbits(32), one_hot=one_hot, checked=checked)
            count += 1
    return {"findings": findings, "products": count}


SWEEP = Sweep(tasks, run, {}, seconds=600.0)
