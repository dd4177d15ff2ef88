"""Lane-level code, from IR and from Python: `examples/lanes`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.examples.judged import EXAMPLES, Array, judged, script

GROUP = 8


def largest(a: Array, b: Array) -> Array:
    """Of each group of columns."""
    product = np.abs(a @ b)
    groups = -(-product.shape[1] // GROUP)
    padded = np.zeros((product.shape[0], groups * GROUP))
    padded[:, : product.shape[1]] = product
    return padded.reshape(-1, groups, GROUP).max(axis=2, initial=0)


def steps(a: Array, b: Array) -> Array:
    return largest(a, b) / 127


def numbers(a: Array, b: Array) -> Array:
    most = np.repeat(largest(a, b), GROUP, axis=1)[:, : b.shape[1]]
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.rint(np.where(most > 0, a @ b * (127 / most), 0)).astype(np.int8)


def order(x: Array) -> Array:
    """The two largest; what lies beyond a row is the least."""
    padded = np.concatenate([x, np.full((len(x), 2), -np.inf)], axis=1)
    return np.argsort(-padded, axis=1, kind="stable")[:, :2]


def values(x: Array) -> Array:
    padded = np.concatenate([x, np.full((len(x), 2), np.nan)], axis=1)
    return np.take_along_axis(padded, order(x), 1)


def places(x: Array) -> Array:
    found = order(x)
    return np.where(found < x.shape[1], found, 2**31 - 1).astype(np.int32)


@pytest.fixture(params=["quantised", "top2"], scope="module")
def programs(request: pytest.FixtureRequest) -> tuple[str, list[Path | str]]:
    name = request.param
    python = script(f"lanes/{name}.py")["k"].mlir
    return name, [EXAMPLES / "lanes" / f"{name}.mlir", python]


SIZES = {
    "quantised": [
        {"m": 66, "n": 19, "k": 17, "groups": 3},
        {"m": 1, "n": 1, "k": 1, "groups": 1},
        {"m": 5, "n": 9, "k": 0, "groups": 2},
        {"m": 0, "n": 3, "k": 3, "groups": 1},
    ],
    "top2": [{"m": 6, "n": 75}, {"m": 1, "n": 1}, {"m": 3, "n": 0}, {"m": 0, "n": 4}],
}
ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "quantised": {"c": numbers, "scales": steps},
    "top2": {"values": values, "places": places},
}


@pytest.mark.parametrize("number", range(4))
def test_any_size(programs: tuple[str, list[Path | str]], number: int) -> None:
    name, both = programs
    for program in both:
        judged(program, SIZES[name][number], ANSWERS[name])
