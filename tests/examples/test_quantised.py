"""Products of narrow numbers with scales, from IR and from Python: `examples/quantised`."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import fragir
from tests.examples.judged import EXAMPLES, Array, judged, script

FOLDER = EXAMPLES / "quantised"
SIZES = [(17, 66, 130), (1, 1, 1), (0, 3, 7)]
KERNELS = {  # the kernels of a script by the names of the file's functions
    "block_scaled": {"mxfp8": "k", "nvfp4": "nvfp4"},
    "block_scaled_matmul": {"mxfp8": "k", "nvfp4": "nvfp4"},
    "fp8": {"fp8": "k", "fp8_warpgroups": "by_warpgroups"},
    "fp8_grouped": {"fp8_grouped": "k"},
    "w4a16": {"w4a16": "k"},
    "w4a16_few": {"w4a16_few": "k"},
    "w4a16_zeros": {"w4a16_zeros": "k"},
    "w8a8": {"w8a8": "k", "w8a8_groups": "groups"},
}


def wide(k: int) -> int:
    """K as a multiple of 16 bytes, where it is more than one: rows are copied by whole vectors."""
    return k if k == 1 else -(-k // 16) * 16


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_same_program(name: str) -> None:
    """What the script says is the file's program but for names: the file's are judged below."""
    program = (FOLDER / f"{name}.mlir").read_text()
    defined = script(f"quantised/{name}.py")
    for function, kernel in KERNELS[name].items():
        target = defined[kernel].target
        by_hand = fragir.compile(program, entry=function, target=target)
        assert statements(defined[kernel].compile(target).ptx) == statements(by_hand.ptx)


def statements(ptx: str) -> list[str]:
    """The body of a kernel, registers and labels numbered as they come."""
    lines = [line.strip() for line in ptx.partition("\n{")[2].splitlines()]
    body = [line for line in lines if not line.startswith((".reg", "//"))]
    assert len(body) > 100
    names: dict[str, str] = {}
    named = re.compile(r"%[A-Za-z_]\w*|\w+_shared\b|\$?L_\w+|\[\w+\]")
    return [named.sub(lambda m: names.setdefault(m[0], f"%{len(names)}"), line) for line in body]


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


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_w4a16(m: int, n: int, k: int) -> None:
    sizes = {"m": m, "n": n, "k": k, "packed": -(-k // 32) * 32, "groups": -(-k // 64)}
    judged(FOLDER / "w4a16.mlir", sizes, {"c": w4a16}, rtol=2e-3)


@pytest.mark.parametrize(("m", "n", "k"), [(17, 130, 650), (1, 1, 1)])
def test_w4a16_of_few_rows(m: int, n: int, k: int) -> None:
    """Parts and counts are the launcher's, the bits the same each time."""
    sizes = {"m": m, "n": n, "k": k, "packed": -(-k // 32) * 32, "groups": -(-k // 64)}
    judged(FOLDER / "w4a16_few.mlir", sizes, {"c": w4a16}, rtol=2e-3)


def w4a16_zeros(a: Array, w: Array, zeros: Array, scale: Array) -> Array:
    depth, n = w.shape[0], scale.shape[1]
    below, by = (np.repeat(x, 128, axis=0)[:depth, :n] for x in (zeros, scale))
    return a @ ((w[:, :n] - below) * by)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_w4a16_zeros(m: int, n: int, k: int) -> None:
    sizes = {"m": m, "n": n, "k": k, "packed": -(-n // 32) * 32, "groups": -(-k // 128)}
    judged(FOLDER / "w4a16_zeros.mlir", sizes, {"c": w4a16_zeros}, rtol=2e-2)


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


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_w8a8(m: int, n: int, k: int) -> None:
    rng, parts = np.random.default_rng(0), -(-k // 128)
    for name, answer, groups, depth in (
        ("w8a8", w8a8, (), k),
        ("w8a8_groups", w8a8_groups, (parts,), wide(k)),
    ):
        given = {  # such that f16 has room
            f"{side}_scale": rng.uniform(-0.01, 0.01, (*groups, size)).astype(np.float32)
            for side, size in (("a", m), ("w", n))
        }
        sizes = {"m": m, "n": n, "k": depth, **dict.fromkeys(["groups"][: len(groups)], parts)}
        judged(FOLDER / "w8a8.mlir", sizes, {"c": answer}, entry=name, given=given)


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_fp8(m: int, n: int, k: int) -> None:
    for name, target, depth in (("fp8", "sm_89", k), ("fp8_warpgroups", "sm_90a", wide(k))):
        sizes = {"m": m, "n": n, "k": depth, "groups": -(-k // 128), "blocks": -(-n // 128)}
        judged(FOLDER / "fp8.mlir", sizes, {"c": fp8}, target, entry=name)


def fp8_grouped(a: Array, w: Array, a_scale: Array, w_scale: Array, ends: Array) -> Array:
    depth, columns = a.shape[1], w.shape[1]
    x = a * np.repeat(a_scale, 128, axis=1)[:, :depth]
    wide = np.repeat(np.repeat(w_scale, 128, axis=1)[:, :columns], 128, axis=2)[:, :, :depth]
    starts = [0, *map(int, ends[:-1])]
    parts = [
        x[first : int(end)] @ (matrix * scale).T
        for first, end, matrix, scale in zip(starts, ends, w, wide, strict=True)
    ]
    return np.concatenate(parts)


@pytest.mark.parametrize(
    ("lengths", "n", "k"), [((17, 0, 70), 144, 272), ((1,), 1, 16), ((0, 0), 3, 16)]
)
def test_fp8_grouped(lengths: tuple[int, ...], n: int, k: int) -> None:
    ends = np.cumsum(lengths).astype(np.int32)
    sizes = {"m": int(ends[-1]), "n": n, "k": k, "g": len(lengths)}
    sizes |= {"k_by_128": -(-k // 128), "n_by_128": -(-n // 128)}
    program = FOLDER / "fp8_grouped.mlir"
    judged(program, sizes, {"c": fp8_grouped}, "sm_90a", given={"ends": ends})


def block_scaled(block: int) -> Callable[[Array, Array, Array, Array], Array]:
    def answer(a: Array, w: Array, a_scale: Array, w_scale: Array) -> Array:
        x, y = (
            v * np.repeat(np.abs(s), block, axis=1)[:, : v.shape[1]]  # a sign does not count
            for v, s in ((a, a_scale), (w, w_scale))
        )
        return x @ y.T

    return answer


@pytest.mark.parametrize(("m", "n", "k"), SIZES)
def test_block_scaled(m: int, n: int, k: int) -> None:
    for name, dim, block in (("mxfp8", "k", 32), ("nvfp4", "packed", 16)):
        depth = k if dim == "k" else -(-k // 32) * 32
        sizes = {"m": m, "n": n, dim: depth, "blocks": -(-depth // block)}
        judged(
            FOLDER / "block_scaled.mlir", sizes, {"c": block_scaled(block)}, "sm_120a", entry=name
        )


@pytest.mark.parametrize("target", ["sm_100a", "sm_120a"])
def test_block_scaled_matmul(target: str) -> None:
    sizes = {"m": 37, "n": 72, "k": 96, "blocks": 3}
    program, answer = FOLDER / "block_scaled_matmul.mlir", {"c": block_scaled(32)}
    judged(program, sizes, answer, target, entry="mxfp8")


def test_no_products() -> None:
    """K is zero: what is under way is waited for, C is zero."""
    sizes = {"m": 5, "n": 3, "k": 0, "packed": 0, "groups": 0}
    judged(FOLDER / "w4a16.mlir", sizes, {"c": w4a16})
