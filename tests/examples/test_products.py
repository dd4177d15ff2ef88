"""Products beside the plain one, from IR and from Python: `examples/products`."""

from __future__ import annotations

import math

import numpy as np
import pytest

import fragir
from tests.examples.judged import EXAMPLES, Array, judged, script

KERNELS = {  # the kernels of a script by the names of the file's functions
    "batched": {"batched": "k"},
    "convolution": {"convolution": "k"},
    "grouped": {"grouped": "k"},
    "mlp": {"mlp_hidden": "k", "mlp_out": "out"},
    "split_k": {"split_k": "k", "split_k_parts": "parts", "split_k_total": "total"},
    "stream_k": {"stream_k": "k"},
}
SIZES = [(66, 5, 45), (1, 1, 1), (0, 5, 3), (3, 5, 0)]
"""M, N and K: no multiple of anything, one, and zero."""


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_same_program(name: str) -> None:
    """What the script says in Python is the file's program, to the PTX: both are judged below."""
    program = (EXAMPLES / f"products/{name}.mlir").read_text()
    defined = script(f"products/{name}.py")
    for function, kernel in KERNELS[name].items():
        by_hand = fragir.compile(program, entry=function, target="sm_80")
        assert defined[kernel].compile("sm_80").ptx == by_hand.ptx


def product(a: Array, b: Array) -> Array:
    return a @ b


@pytest.mark.parametrize(("m", "n", "k"), [(3, 66, 45), *SIZES[1:]])
def test_batched(m: int, n: int, k: int) -> None:
    sizes = {"b": 2 if n > 1 else 1, "m": m, "n": n, "k": k}
    judged(EXAMPLES / "products/batched.mlir", sizes, {"c": product})


def test_empty_batch() -> None:
    judged(EXAMPLES / "products/batched.mlir", {"b": 0, "m": 3, "n": 5, "k": 7}, {"c": product})


@pytest.mark.parametrize(
    ("lengths", "n", "k"),
    [((66, 0, 1), 5, 45), ((1,), 1, 1), ((0, 0), 5, 3), ((3, 0, 2), 5, 0)],
)
def test_grouped(lengths: tuple[int, ...], n: int, k: int) -> None:
    ends = np.cumsum(lengths)
    starts = ends - lengths

    def each(a: Array, b: Array) -> Array:
        group = np.repeat(np.arange(len(lengths)), lengths)
        return np.einsum("mk,mkn->mn", a, b[group])

    judged(
        EXAMPLES / "products/grouped.mlir",
        {"m": int(ends[-1]), "n": n, "k": k, "g": len(lengths)},
        {"c": each},
        given={"starts": starts.astype(np.int32), "ends": ends.astype(np.int32)},
    )


def added(a: Array, b: Array, c: Array) -> Array:
    return c + a @ b


@pytest.mark.parametrize(("m", "n", "k"), [(3, 66, 101), *SIZES[1:]])
def test_split_k(m: int, n: int, k: int) -> None:
    """By atomics, and by evenly divided steps."""
    for name in ("split_k", "stream_k"):
        judged(
            EXAMPLES / f"products/{name}.mlir",
            {"m": m, "n": n, "k": k},
            {"c": added},
            entry=name,
        )


@pytest.mark.parametrize(
    ("m", "n", "k", "parts"), [(3, 5, 101, 3), (1, 1, 1, 1), (3, 5, 0, 2), (3, 5, 7, 0)]
)
def test_split_k_in_two_passes(m: int, n: int, k: int, parts: int) -> None:
    program = EXAMPLES / "products/split_k.mlir"

    def each(a: Array, b: Array) -> Array:
        part = np.arange(k) // 32 % max(parts, 1)
        terms = [a[:, part == s] @ b[part == s] for s in range(parts)]
        return np.array(terms).reshape(parts, m, n)

    def in_order(p: Array) -> Array:
        """Each sum rounds to f32: the order is part of the answer."""
        total = np.zeros((m, n), np.float32)
        for s in p:
            total += s.astype(np.float32)
        return total

    sizes = {"m": m, "n": n, "s": parts}
    judged(program, {**sizes, "k": k}, {"p": each}, entry="split_k_parts")
    judged(program, sizes, {"c": in_order}, entry="split_k_total")


@pytest.mark.parametrize(("m", "h", "k"), [(5, 66, 45), *SIZES[1:]])
def test_mlp(m: int, h: int, k: int) -> None:
    program = EXAMPLES / "products/mlp.mlir"

    def gelu(x: Array, w: Array, bias: Array) -> Array:
        v = x @ w + bias
        return v * 0.5 * (1 + np.vectorize(math.erf, otypes=[float])(v / math.sqrt(2)))

    def out(hidden: Array, w: Array) -> Array:
        return hidden @ w

    judged(program, {"m": m, "h": h, "k": k}, {"hidden": gelu}, entry="mlp_hidden")
    judged(program, {"m": m, "h": h, "n": 5}, {"y": out}, entry="mlp_out")


@pytest.mark.parametrize(
    ("images", "filters", "stride", "padding"),
    [
        ((2, 5, 6, 33), (2, 2, 5), 1, 1),
        ((1, 6, 7, 3), (2, 1, 66), 2, 1),  # stride 2 leaves out the last line
        ((2, 1, 1, 1), (1, 1, 1), 1, 0),
        ((0, 4, 4, 3), (3, 3, 5), 1, 1),
        ((1, 0, 3, 2), (1, 1, 2), 1, 1),  # padding alone
        ((1, 2, 3, 0), (1, 2, 5), 1, 0),
        ((1, 2, 3, 2), (1, 1, 0), 1, 0),
        ((1, 2, 3, 2), (3, 3, 5), 1, 0),  # filters larger than the image: no places
    ],
)
def test_convolution(
    images: tuple[int, int, int, int], filters: tuple[int, int, int], stride: int, padding: int
) -> None:
    n, height, width, c = images
    kh, kw, o = filters
    rows = max((height + 2 * padding - kh) // stride + 1, 0)
    cols = max((width + 2 * padding - kw) // stride + 1, 0)

    def convolved(x: Array, f: Array) -> Array:
        """By its definition: each place of y, and what of the image lies under it."""
        around = np.zeros((n, height + 2 * padding, width + 2 * padding, c))
        around[:, padding : padding + height, padding : padding + width] = x.reshape(images)
        y = np.zeros((n, rows, cols, o))
        for i, v, u in np.ndindex(n, rows, cols):
            top, left = v * stride, u * stride
            under = around[i, top : top + kh, left : left + kw]
            y[i, v, u] = np.einsum("vuc,vuco->o", under, f)
        return y.reshape(n * rows * cols, o)

    judged(
        EXAMPLES / "products/convolution.mlir",
        {
            **{"pixels": n * height * width, "places": n * rows * cols},
            **{"c": c, "o": o, "kh": kh, "kw": kw},
        },
        {"y": convolved},
        given={"height": height, "width": width, "stride": stride, "padding": padding},
    )
