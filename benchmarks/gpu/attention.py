"""Attention beside PyTorch's and Triton's: 16384 tokens of 2048 numbers, sequences of 8192, f16.

Of the answer some rows are held against numpy in f64; of the others none may be left unwritten.
A run counts 2 m n d for Q K^T and for P V each and each head, half of that where it is causal,
whatever a kernel computes in vain.
"""

from __future__ import annotations

import runpy
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.gpu import peers
from benchmarks.gpu.contest import Maker, contest, on_gpu, ours
from benchmarks.gpu.kernels import Judge, drawn, far
from benchmarks.gpu.kit import TARGET, Kit, Work
from benchmarks.gpu.triton_cubins import Maker as TritonMaker
from benchmarks.gpu.triton_cubins import triton

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

Array = np.ndarray[Any, np.dtype[Any]]
FOLDER = Path(__file__).parents[2] / "examples/attention"
UNITS = {
    "d128 causal": (128, True),
    "d128": (128, False),
    "d64 causal": (64, True),
    "d64": (64, False),
}
"""Columns of a head, and whether it is causal."""
TILES = ((128, 64, 8), (128, 128, 8), (64, 64, 4))
"""Queries and keys at a time, warps; the first is the example's own."""
OVERLAPPED: dict[str, dict[str, Any]] = {
    "128x160": {"cols": 160},
    "128x128 in turn": {"ping_pong": True},
    "128x128": {},
}
"""What is said of the overlapped kernel; the last is the example's own."""
TRITON = ((128, 64, 8, 3), (128, 128, 8, 2), (128, 64, 4, 3), (64, 64, 4, 3))
"""Queries and keys at a time, warps, stages."""
SAMPLES = 24
"""Rows of the answer that are looked at."""

PACKAGES = ("torch",)


def units(kit: Kit) -> list[str]:
    return list(UNITS)


def prepare(kit: Builder) -> None:
    """Kernels of both widths."""
    make = TritonMaker(kit).make
    for d in dict.fromkeys(d for d, _ in UNITS.values()):
        for build in kernels(kit, d).values():
            kit.carry_kernel(build())
        for tile in kit.size(TRITON, TRITON[:1]):
            halves, numbers = dict.fromkeys("qkvo", "*fp16:16"), dict.fromkeys("hg", "i32")
            sizes = {"m": "i32:16", "n": "i32:16", "causal": "i32"}
            request = {
                "kernel": "attention",
                "signature": {**halves, "lse": "*fp32:16", **numbers, **sizes},
                "constants": {"TM": tile[0], "TN": tile[1], "D": d},
                "warps": tile[2],
                "stages": tile[3],
                "target": 90,
            }
            make(triton_name(d, tile), request)


def kernels(kit: Kit, d: int) -> dict[str, Callable[[], Any]]:
    """fragir's kernels by names, to be compiled."""
    plain, overlapped = (
        runpy.run_path(str(FOLDER / name), run_name="example")["forward"]
        for name in ("forward.py", "forward_overlapped.py")
    )
    found: dict[str, Callable[[], Any]] = {}
    for tile in kit.size(TILES, TILES[:1]):
        name = f"fragir {tile[0]}x{tile[1]} w{tile[2]}"
        found[name] = lambda tile=tile: plain(d, TARGET, tile).compile()
    for name in kit.size(list(OVERLAPPED), list(OVERLAPPED)[-1:]):
        how = OVERLAPPED[name]
        found[f"fragir overlapped {name}"] = lambda how=how: overlapped(d, **how).compile()
    return found


def triton_name(d: int, tile: tuple[int, int, int, int]) -> str:
    return f"Triton {tile[0]}x{tile[1]} w{tile[2]} s{tile[3]} d{d}"


def run(work: Work) -> dict[str, Any]:
    """TFLOP/s of every contender."""
    kit, (d, causal) = work.kit, UNITS[work.unit]
    length, heads = kit.size((8192, 2 * 2048 // d), (128, 2))
    q, k, v = (drawn((heads, length, d), np.float16, seed) for seed in range(3))
    o, lse = np.empty_like(q), np.empty((heads, length), np.float32)
    wanted = list(samples(q, k, v, causal))
    with on_gpu((q, k, v, o, lse)) as arrays:
        given = (*arrays, int(causal))
        makers: dict[str, Maker] = {
            name: lambda build=build: ours(build(), given)
            for name, build in kernels(kit, d).items()
        }
        for way in peers.ATTENTION:
            makers[way] = partial(peers.attention, *arrays[:4], "f16", way, causal=causal)
        for tile in kit.size(TRITON, TRITON[:1]):
            grid = length // tile[0], heads
            sizes = heads, heads, length, length, int(causal)
            name = triton_name(d, tile)
            makers[name] = partial(triton, kit, name, (*arrays, *sizes), grid)
        judge = Judge(arrays[3], lambda _, found: wrong(wanted, found))
        found = contest(work, judge.of(makers), judge, rounds=kit.size(20, 2))
    operations = 4 * length * length * d * heads / (2 if causal else 1)
    for one in found["results"].values():
        middle, low, high = one["ms"]
        one["tflops"] = [operations / ms / 1e9 for ms in (middle, high, low)]
    return {"heads": heads, "length": length, "d": d, "causal": causal, **found}


def samples(q: Array, k: Array, v: Array, causal: bool) -> Iterator[tuple[int, int, Array, Array]]:
    """(head, row, answer, how far from it one may be), the first and last rows among them.

    P and the answer are rounded to f16, each to within 2^-11 of itself. Of the many roundings of P
    ten times the deviation of their sum is allowed, more than chance comes to; that of the answer
    counts twice, and 2^-20 stands for f32's.
    """
    heads, length, d = q.shape
    rng = np.random.default_rng(0)
    rows = np.concatenate([[0, 1, length - 1], rng.integers(0, length, SAMPLES - 3)])
    for head, row in zip(rng.integers(0, heads, SAMPLES), rows, strict=True):
        seen = row + 1 if causal else length
        scores = k[head, :seen].astype(np.float64) @ q[head, row].astype(np.float64) / d**0.5
        p = np.exp(scores - scores.max())
        terms = (p / p.sum())[:, None] * v[head, :seen].astype(np.float64)
        answer = terms.sum(0)
        spread = np.sqrt((terms * terms).sum(0))
        yield int(head), int(row), answer, 2**-10 * abs(answer) + 10 * 2**-11 * spread + 2**-20


def wrong(wanted: list[tuple[int, int, Array, Array]], found: Array) -> str:
    """What is wrong with an answer."""
    for head, row, answer, bound in wanted:
        if problem := far(found[head, row].astype(np.float64), answer, bound):
            return f"head {head}, row {row}: {problem}"
    return ""
