"""The kernels of examples/data: from IR and from Python, on sizes that are no multiple, 1 and 0."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.examples.judged import EXAMPLES, Array, judged, script

DATA = EXAMPLES / "data"


def programs(name: str, kernel: str = "k") -> dict[str, Path | str]:
    """An example's kernel: the file, and what Python makes."""
    return {"mlir": DATA / f"{name}.mlir", "python": script(f"data/{name}.py")[kernel].mlir}


@pytest.mark.parametrize("how", ["mlir", "python"])
@pytest.mark.parametrize(("m", "n"), [(70, 33), (1, 1), (0, 5)])
def test_transpose(how: str, m: int, n: int) -> None:
    def y(x: Array) -> Array:
        return x.T

    judged(programs("transpose")[how], {"m": m, "n": n}, {"y": y})


@pytest.mark.parametrize("how", ["mlir", "python"])
@pytest.mark.parametrize(("m", "n"), [(18, 131), (1, 1), (3, 0)])
def test_stencil(how: str, m: int, n: int) -> None:
    def y(x: Array, a: Array) -> Array:
        p = np.pad(x, 1)
        around = p[2:, 1:-1] + p[:-2, 1:-1] + p[1:-1, 2:] + p[1:-1, :-2]
        return x + a * (around - 4 * x)

    judged(
        programs("stencil")[how], {"m": m, "n": n}, {"y": y}, given={"a": 0.25}, inputs="integers"
    )


@pytest.mark.parametrize("how", ["mlir", "python"])
@pytest.mark.parametrize("n", [2500, 1, 0])
def test_prefix_sum(how: str, n: int) -> None:
    sizes = {"n": n, "b": -(-n // 1024)}

    def s(x: Array) -> Array:
        return np.array([x[at : at + 1024].sum() for at in range(0, len(x), 1024)])

    def y(x: Array, s: Array) -> Array:
        before = np.cumsum(s) - s
        parts = [
            np.cumsum(x[at : at + 1024]) + b
            for at, b in zip(range(0, len(x), 1024), before, strict=True)
        ]
        return np.concatenate([*parts, np.zeros(0)])

    judged(programs("prefix_sum", "sums")[how], sizes, {"s": s}, entry="sums")
    judged(programs("prefix_sum", "prefix")[how], sizes, {"y": y}, entry="prefix")


def test_prefix_sum_of_many_blocks() -> None:
    """What lies before a block takes several steps: 1030 blocks, whose last two are looked at."""
    module = script("data/prefix_sum.py")
    n = 1030 * 1024
    x = np.random.default_rng(1).integers(-3, 4, n).astype(np.float32)
    s = x.reshape(-1, 1024).sum(1).astype(np.float32)
    y = np.full(n, np.nan, np.float32)
    module["prefix"].compile().launch((1030,), (128,), x, s, y, on="emulator")
    np.testing.assert_array_equal(y, np.cumsum(x.astype(np.float64)))


@pytest.mark.parametrize("how", ["mlir", "python"])
@pytest.mark.parametrize(("m", "n"), [(600, 100), (1, 1), (0, 3), (5, 0)])
def test_histogram(how: str, m: int, n: int) -> None:
    x = np.random.default_rng(m).integers(-3, n + 3, m).astype(np.int32)

    def h(x: Array, h: Array) -> Array:
        return h + np.bincount(x[(x >= 0) & (x < len(h))], minlength=len(h))

    judged(programs("histogram")[how], {"m": m, "n": n}, {"h": h}, given={"x": x})


@pytest.mark.parametrize("how", ["mlir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(11, 9, 70), (1, 1, 1), (0, 4, 8), (2, 3, 0)])
def test_embedding(how: str, m: int, n: int, k: int) -> None:
    ids = np.random.default_rng(m).integers(-2, n + 2, m).astype(np.int32)
    sizes = {"m": m, "n": n, "k": k}

    def y(table: Array, ids: Array) -> Array:
        return np.concatenate([table, np.zeros((1, k))])[np.where((ids < 0) | (ids >= n), n, ids)]

    def dtable(dy: Array, ids: Array, dtable: Array) -> Array:
        found = dtable.copy()
        there = (ids >= 0) & (ids < n)
        np.add.at(found, ids[there], dy[there])
        return found

    given = {"ids": ids}
    forward, backward = (programs("embedding", name)[how] for name in ("forward", "backward"))
    judged(forward, sizes, {"y": y}, entry="forward", given=given)
    judged(backward, sizes, {"dtable": dtable}, entry="backward", given=given)


@pytest.mark.parametrize("how", ["mlir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(9, 140, 2), (2, 1, 3), (0, 4, 2), (3, 0, 2)])
def test_top_k(how: str, m: int, n: int, k: int) -> None:
    """Many equals; an infinity of each sign counts like any number."""
    x = np.random.default_rng(n).integers(-9, 9, (m, n)).astype(np.float32)
    x[:, 1::7], x[:, 3:5] = -np.inf, np.inf

    def places(x: Array) -> Array:
        order = np.argsort(-x, axis=1, kind="stable")[:, :k]
        return np.pad(order, ((0, 0), (0, k - order.shape[1])), constant_values=-1)

    def values(x: Array) -> Array:
        at = places(x)
        return np.where(at < 0, -np.inf, np.take_along_axis(np.pad(x, ((0, 0), (0, 1))), at, 1))

    sizes = {"m": m, "n": n, "k": k}
    judged(programs("top_k")[how], sizes, {"values": values, "places": places}, given={"x": x})
