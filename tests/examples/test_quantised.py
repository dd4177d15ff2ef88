"""Products of narrow numbers with scales, from IR and from Python: `examples/quantised`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.examples.judged import EXAMPLES, Array, judged, script

FOLDER = EXAMPLES / "quantised"


def sources(name: str, kernel: str = "k") -> list[Any]:
    """The kernel from IR and from Python."""
    return [FOLDER / f"{name}.mlir", script(f"quantised/{name}.py")[kernel].mlir]


def w4a16(a: Array, w: Array, scale: Array) -> Array:
    """From the values in memory, in memory's order: number 8 t + 4 h + p of 32 is 8 p + 2 t + h."""
    depth = a.shape[1]
    place = np.arange(int(w.shape[1]))
    within = place % 32
    number = place - within + within % 4 * 8 + within // 8 * 2 + within // 4 % 2
    real = np.zeros(w.shape)
    real[:, number] = w
    scales = np.repeat(scale, 64, axis=0)[:depth]
    return a @ (real.T[:depth] * scales)


@pytest.mark.parametrize("source", sources("w4a16"), ids=["ir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(17, 66, 130), (1, 1, 1), (0, 3, 7), (5, 3, 0)])
def test_w4a16(m: int, n: int, k: int, source: Any) -> None:
    sizes = {"m": m, "n": n, "k": k, "packed": -(-k // 32) * 32, "groups": -(-k // 64)}
    judged(source, sizes, {"c": w4a16}, rtol=2e-3)


def w4a16_zeros(a: Array, w: Array, zeros: Array, scale: Array) -> Array:
    depth, n = w.shape[0], scale.shape[1]
    below, by = (np.repeat(x, 128, axis=0)[:depth, :n] for x in (zeros, scale))
    return a @ ((w[:, :n] - below) * by)


@pytest.mark.parametrize("source", sources("w4a16_zeros"), ids=["ir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(17, 66, 130), (1, 1, 1), (0, 3, 7), (5, 3, 0)])
def test_w4a16_zeros(m: int, n: int, k: int, source: Any) -> None:
    sizes = {"m": m, "n": n, "k": k, "packed": -(-n // 32) * 32, "groups": -(-k // 128)}
    judged(source, sizes, {"c": w4a16_zeros}, rtol=2e-2)


def w8a8(a: Array, w: Array, a_scale: Array, w_scale: Array) -> Array:
    return a @ w.T * a_scale[:, None] * w_scale


def w8a8_groups(a: Array, w: Array, a_scale: Array, w_scale: Array) -> Array:
    depth = a.shape[1]
    x, y = (v * np.repeat(s, 128, axis=0)[:depth].T for v, s in ((a, a_scale), (w, w_scale)))
    return x @ y.T


def fp8(a: Array, w: Array, a_scale: Array, w_scale: Array) -> Array:
    n, depth = w.shape
    x = a * np.repeat(a_scale, 128, axis=0)[:depth].T
    blocks = np.repeat(np.repeat(w_scale, 128, axis=0), 128, axis=1)
    return x @ (w.T * blocks[:depth, :n])


@pytest.mark.parametrize("python", [False, True], ids=["ir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(17, 66, 130), (1, 1, 1), (5, 3, 0)])
def test_w8a8(m: int, n: int, k: int, python: bool) -> None:
    rng, parts = np.random.default_rng(0), -(-k // 128)
    for name, kernel, answer, groups in (
        ("w8a8", "k", w8a8, ()),
        ("w8a8_groups", "groups", w8a8_groups, (parts,)),
    ):
        given = {  # such that f16 has room
            f"{side}_scale": rng.uniform(-0.01, 0.01, (*groups, size)).astype(np.float32)
            for side, size in (("a", m), ("w", n))
        }
        sizes = {"m": m, "n": n, "k": k, **dict.fromkeys(["groups"][: len(groups)], parts)}
        source = sources("w8a8", kernel)[python]
        judged(source, sizes, {"c": answer}, entry=name, given=given)


@pytest.mark.parametrize("python", [False, True], ids=["ir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(17, 130, 130), (1, 1, 1), (5, 3, 0)])
def test_fp8(m: int, n: int, k: int, python: bool) -> None:
    sizes = {"m": m, "n": n, "k": k, "groups": -(-k // 128), "blocks": -(-n // 128)}
    for name, kernel, target in (
        ("fp8", "k", "sm_89"),
        ("fp8_warpgroups", "by_warpgroups", "sm_90a"),
    ):
        source = sources("fp8", kernel)[python]
        judged(source, sizes, {"c": fp8}, target, entry=name)


def block_scaled(block: int) -> Callable[[Array, Array, Array, Array], Array]:
    def answer(a: Array, w: Array, a_scale: Array, w_scale: Array) -> Array:
        x, y = (
            v * np.repeat(np.abs(s), block, axis=1)[:, : v.shape[1]]  # a sign does not count
            for v, s in ((a, a_scale), (w, w_scale))
        )
        return x @ y.T

    return answer


@pytest.mark.parametrize("python", [False, True], ids=["ir", "python"])
@pytest.mark.parametrize(("m", "n", "k"), [(17, 66, 130), (1, 1, 1), (5, 3, 0)])
def test_block_scaled(m: int, n: int, k: int, python: bool) -> None:
    for name, kernel, dim, block in (("mxfp8", "k", "k", 32), ("nvfp4", "nvfp4", "packed", 16)):
        depth = k if dim == "k" else -(-k // 32) * 32
        sizes = {"m": m, "n": n, dim: depth, "blocks": -(-depth // block)}
        source = sources("block_scaled", kernel)[python]
        judged(source, sizes, {"c": block_scaled(block)}, "sm_120a", entry=name)
