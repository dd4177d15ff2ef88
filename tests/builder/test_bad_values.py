"""Bad values of every kind: one clear error, where nothing is to be done nothing is done."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from benchmarks.sweeps import api_calls
from fragir.errors import FragirError
from fragir.sweeps import Task

# those that run a kernel with what is no bad value for them take their time
SAMPLE = [name for name in sorted(api_calls.CALLS) if name.split()[1] not in ("launch", "argument")]


@pytest.mark.parametrize("name", SAMPLE[::9])
def test_calls(name: str) -> None:
    """`fragir sweep api-calls` makes all of them."""
    assert api_calls.run(Task(0, name, 0))["findings"] == []


A = np.ones((32, 32), np.float16)
C = np.ones((32, 32), np.float32)
SENTENCES: dict[str, tuple[dict[str, Any], str]] = {
    "a place that is none": ({"on": "tpu"}, "on is 'tpu', it must be one of emulator, gpu, auto"),
    "a grid of four": ({"grid": (1, 1, 1, 1)}, "the grid is (1, 1, 1, 1), it must be one to three"),
    "a grid of a half": ({"grid": 1.5}, "the grid is 1.5, it must be a whole number"),
    "a grid of True": ({"grid": (True, 1)}, "the grid is True, it must be a whole number"),
    "negative shared memory": ({"shared": -1}, "there is no shared memory of -1 bytes"),
    "half a cluster": ({"cluster": 1.5}, "the cluster is 1.5, it must be a whole number"),
    "a number beyond floats": ({"alpha": 10**400}, "alpha is a whole number larger than any f32"),
    "a masked array": ({"a": np.ma.masked_array(A, A > 0)}, "a is a masked array"),
}


@pytest.mark.parametrize("case", SENTENCES)
def test_launches(case: str) -> None:
    given, words = SENTENCES[case]
    options: dict[str, Any] = {"grid": 1, "block": None, "on": "emulator", "a": A, "alpha": 1.0}
    options |= given
    grid, block, a, alpha = (options.pop(name) for name in ("grid", "block", "a", "alpha"))
    with pytest.raises(FragirError) as caught:
        api_calls.kernel().launch(grid, block, a, A, C, alpha, **options)
    assert words in caught.value.sentence


def test_a_program_that_is_none() -> None:
    with pytest.raises(FragirError, match="compile takes the text of a program or a ModuleOp, not"):
        fragir.compile(None)  # pyright: ignore[reportArgumentType]  # what is tested


@pytest.mark.parametrize(("m", "n"), [(0, 32), (32, 0), (0, 0)])
def test_matrices_without_rows_or_columns(m: int, n: int) -> None:
    """As numpy and cuBLAS: nothing happens."""
    c = np.ones((m, n), np.float32)
    a, b = np.ones((m, 16), np.float16), np.ones((16, n), np.float16)
    report = api_calls.kernel()(a, b, c, 2.0, on="emulator")
    assert report.findings == []
    assert sum(report.statistics.instructions.values()) == 0
    with pytest.raises(FragirError, match="alpha must be a number"):
        api_calls.kernel()(a, b, c, "x", on="emulator")


def test_a_sum_of_nothing_is_zero() -> None:
    """K = 0: what the epilogue makes of a sum of 0."""
    with fragir.kernel("f") as k:
        a = k.memory("a", fragir.f16, ("m", "k"))
        b = k.memory("b", fragir.f16, ("k", "n"))
        c = k.memory("c", fragir.f32, ("m", "n"))
        k.matmul(a, b, into=c, epilogue=lambda total, old: total + 2.0 * old)
    out = np.full((20, 24), 3, np.float32)
    k.compile()(np.ones((20, 0), np.float16), np.ones((0, 24), np.float16), out, on="emulator")
    assert (out == 6).all()


def test_an_expression_of_1500_terms() -> None:
    """More than Python calls functions within functions."""
    with fragir.kernel("f") as k:
        c = k.memory("c", fragir.f32, (8, 8))
        tile = k.load(c, (0, 0), shape=(8, 8))
        for _ in range(1500):
            tile = tile + 1.0
        k.store(tile, c, (0, 0))
    values = np.zeros((8, 8), np.float32)
    k.compile()(values, on="emulator")
    assert (values == 1500).all()
