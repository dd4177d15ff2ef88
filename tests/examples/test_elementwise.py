"""Kernels that take every element by itself, from IR and from Python: `examples/elementwise`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.judged import EXAMPLES, Array, judged, script
from tests.passes.test_random import LOW, philox

FOLDER = EXAMPLES / "elementwise"


def program(name: str, kernel: str = "") -> Path | str:
    """A kernel from IR, or one from Python by its name there."""
    if not kernel:
        return FOLDER / f"{name}.mlir"
    return script(f"elementwise/{name}.py")[kernel].mlir


@pytest.mark.parametrize(
    ("entry", "kernel", "n"),
    [
        ("add_f32", "", 4097),
        ("add_f32", "", 0),
        ("add_f32", "k", 4097),
        ("add_f32", "k", 1),
        ("add_f16", "", 2048),
        ("add_f16", "halves", 2051),
    ],
)
def test_vector_add(entry: str, kernel: str, n: int) -> None:
    def add(x: Array, y: Array) -> Any:
        return x + y

    judged(program("vector_add", kernel), {"n": n}, {"z": add}, entry=entry)


@pytest.mark.parametrize("entry", ["add_f32", "add_f16"])
def test_vector_add_is_wide(entry: str) -> None:
    """Of a whole tile 16 bytes are moved at a time."""
    from fragir import compile

    ptx = compile((FOLDER / "vector_add.mlir").read_text(), entry=entry).ptx
    whole, part = ptx[ptx.index("bra") :].split("bra.uni")
    words = whole.count(".global.v4.b32")
    assert words == {"add_f32": 12, "add_f16": 6}[entry]
    assert whole.count(".global") == words
    assert part.count(".global.v4") == 0


def dropped(seed: float, p: float, x: Array) -> Array:
    """x / (1 - p) where the upper 24 of four words of Philox in turn, as a fraction, reach p."""
    key = [int(seed) & LOW, int(seed) >> 32 & LOW]
    bits = [word for i in range(-(-len(x) // 4)) for word in philox([i, 0, 0, 0], key)]
    uniform = (np.array(bits[: len(x)], np.uint64) >> np.uint64(8)) / 2.0**24
    return np.where(uniform >= p, x * (np.float32(1) / np.float32(1 - p)), 0)


@pytest.mark.parametrize(("kernel", "n"), [("", 1029), ("", 0), ("k", 1029), ("k", 1)])
def test_dropout(kernel: str, n: int) -> None:
    given = {"seed": -(1 << 40) - 3, "p": 0.375}
    judged(program("dropout", kernel), {"n": n}, {"y": dropped}, given=given, rtol=1e-6)


def rotated(x: Array, cos: Array, sin: Array, axis: int) -> Array:
    a, b = np.moveaxis(x, axis, 0)
    c, s = cos[:, None], sin[:, None]
    return np.stack([a * c - b * s, a * s + b * c], axis)


@pytest.mark.parametrize(
    ("entry", "kernel", "sizes"),
    [
        ("halves", "", (5, 3, 67)),
        ("halves", "", (0, 2, 3)),
        ("halves", "k", (5, 3, 67)),
        ("halves", "k", (1, 1, 1)),
        ("neighbours", "", (5, 3, 67)),
        ("neighbours", "neighbours", (1, 1, 1)),
    ],
)
def test_rotary(entry: str, kernel: str, sizes: tuple[int, int, int]) -> None:
    def turned(x: Array, cos: Array, sin: Array) -> Array:
        return rotated(x, cos, sin, 2 if entry == "halves" else 3)

    named = dict(zip("shd", sizes, strict=True))
    judged(program("rotary", kernel), named, {"y": turned}, entry=entry, rtol=2e-3)


def gelu(x: Array) -> Array:
    return x / 2 * (1 + np.array([math.erf(v * math.sqrt(0.5)) for v in x]))


def gelu_tanh(x: Array) -> Array:
    return x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize(
    ("entry", "kernel", "n"),
    [
        ("gelu", "", 1500),
        ("gelu", "", 0),
        ("gelu", "k", 1500),
        ("gelu", "k", 1),
        ("gelu_tanh", "", 1500),
        ("gelu_tanh", "with_tanh", 1),
    ],
)
def test_gelu(entry: str, kernel: str, n: int) -> None:
    answer = gelu if entry == "gelu" else gelu_tanh
    judged(program("gelu", kernel), {"n": n}, {"y": answer}, entry=entry)
