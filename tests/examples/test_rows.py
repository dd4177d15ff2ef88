"""Kernels whose rows are reduced, from IR and from Python: `examples/rows`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fragir
from tests.examples.judged import EXAMPLES, Array, judged, script

SIZES = [(9, 260), (1, 1), (0, 5), (9, 0)]
"""No multiple of anything; rows longer than the part that a block reads at a time."""
IGNORED = -100
KERNELS = {  # the kernels of a script by the names of the file's functions
    "column_sums": {"column_sums": "k"},
    "cross_entropy": {"cross_entropy": "k", "cross_entropy_backward": "backward"},
    "layer_norm": {
        "layer_norm": "k",
        "layer_norm_backward": "backward",
        "layer_norm_weights": "weights",
    },
    "rms_norm": {"rms_norm": "k", "rms_norm_backward": "backward", "rms_norm_weights": "weights"},
    "softmax": {"softmax": "k", "softmax_backward": "backward"},
}


def judge(
    function: str, sizes: dict[str, int], answers: dict[str, Callable[..., Any]], **more: Any
) -> None:
    """The function of the IR; `test_same_program` has those of Python."""
    name = next(name for name, kernels in KERNELS.items() if function in kernels)
    judged(EXAMPLES / f"rows/{name}.mlir", sizes, answers, entry=function, **more)


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_same_program(name: str) -> None:
    """What the script says in Python is the file's program, to the PTX: both are judged below."""
    program = (EXAMPLES / f"rows/{name}.mlir").read_text()
    defined = script(f"rows/{name}.py")
    for function, kernel in KERNELS[name].items():
        by_hand = fragir.compile(program, entry=function, target="sm_80")
        assert defined[kernel].compile("sm_80").ptx == by_hand.ptx


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(1, keepdims=True, initial=-np.inf))
    return e / e.sum(1, keepdims=True)


def softmax_backward(y: Array, dy: Array) -> Array:
    return y * (dy - (y * dy).sum(1, keepdims=True))


def mean_of(x: Array) -> Array:
    """Over the columns, 0 where there are none."""
    return x.sum(1, keepdims=True) / max(x.shape[1], 1)


def centred(x: Array) -> Array:
    return x - mean_of(x)


def means_of(x: Array) -> Array:
    return mean_of(x)[:, 0]


def layer_rstd(x: Array, eps: float) -> Array:
    return 1 / np.sqrt(mean_of(centred(x) ** 2) + eps)


def layer_rstds(x: Array, eps: float) -> Array:
    return layer_rstd(x, eps)[:, 0]


def layer_norm(x: Array, gamma: Array, beta: Array, eps: float) -> Array:
    return centred(x) * layer_rstd(x, eps) * gamma + beta


def layer_hat(x: Array, means: Array, rstds: Array) -> Array:
    return (x - means[:, None]) * rstds[:, None]


def layer_backward(x: Array, gamma: Array, means: Array, rstds: Array, dy: Array) -> Array:
    hat, g = layer_hat(x, means, rstds), dy * gamma
    return rstds[:, None] * (g - mean_of(g) - hat * mean_of(g * hat))


def rms_rstd(x: Array, eps: float) -> Array:
    return 1 / np.sqrt(mean_of(x * x) + eps)


def rms_rstds(x: Array, eps: float) -> Array:
    return rms_rstd(x, eps)[:, 0]


def rms_norm(x: Array, gamma: Array, eps: float) -> Array:
    return x * rms_rstd(x, eps) * gamma


def rms_backward(x: Array, gamma: Array, rstds: Array, dy: Array) -> Array:
    hat, g = x * rstds[:, None], dy * gamma
    return rstds[:, None] * (g - hat * mean_of(g * hat))


def column_sums(x: Array) -> Array:
    return x.sum(0)


def in_parts(rows: Array, parts: int) -> Array:
    """Column sums: 16 rows for the first part, 16 for the next, and round again."""
    sums = np.zeros((parts, rows.shape[1]))
    for row, values in enumerate(rows):
        sums[row // 16 % parts] += values
    return sums


def logsums_of(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(np.exp(x).sum(1))


def losses_of(x: Array, targets: Array) -> Array:
    counts = targets != IGNORED
    losses = np.zeros(len(targets))
    losses[counts] = logsums_of(x)[counts] - x[counts, targets[counts].astype(int)]
    return losses


def cross_entropy_backward(x: Array, targets: Array, logsums: Array, dlosses: Array) -> Array:
    counts = targets != IGNORED
    dx = np.exp(x - logsums[:, None])
    dx[np.flatnonzero(counts), targets[counts].astype(int)] -= 1
    return np.where(counts, dlosses, 0)[:, None] * dx


@pytest.mark.parametrize(("m", "n"), [(17, 129), *SIZES[1:]])
def test_softmax(m: int, n: int) -> None:
    judge("softmax", {"m": m, "n": n}, {"y": softmax})


def test_softmax_of_extremes() -> None:
    """A row that begins with -inf, of the lowest numbers, and of large ones."""
    x = np.full((3, 200), -np.inf, np.float32)
    x[0, 150:] = np.arange(50)
    x[1] = np.finfo(np.float32).min
    x[2] = np.linspace(1000, 1100, 200)
    judge("softmax", {"m": 3, "n": 200}, {"y": softmax}, given={"x": x})


@pytest.mark.parametrize(("m", "n"), [(17, 129), *SIZES[1:]])
def test_softmax_backward(m: int, n: int) -> None:
    judge("softmax_backward", {"m": m, "n": n}, {"dx": softmax_backward})


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_layer_norm(m: int, n: int) -> None:
    answers = {"y": layer_norm, "means": means_of, "rstds": layer_rstds}
    judge("layer_norm", {"m": m, "n": n}, answers, given={"eps": 1e-5})


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_layer_norm_backward(m: int, n: int) -> None:
    judge("layer_norm_backward", {"m": m, "n": n}, {"dx": layer_backward})


@pytest.mark.parametrize(("m", "n", "parts"), [(35, 130, 2), (1, 1, 1), (0, 5, 2), (9, 0, 1)])
def test_layer_norm_weights(m: int, n: int, parts: int) -> None:
    """The answers are not rounded on the way; the reference is, and may have no bound but 0."""

    def dgammas(x: Array, means: Array, rstds: Array, dy: Array) -> Array:
        return in_parts(dy * layer_hat(x, means, rstds), parts)

    def dbetas(dy: Array) -> Array:
        return in_parts(dy, parts)

    answers = {"dgammas": dgammas, "dbetas": dbetas}
    judge("layer_norm_weights", {"m": m, "n": n, "parts": parts}, answers, rtol=2**-22)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_rms_norm(m: int, n: int) -> None:
    answers = {"y": rms_norm, "rstds": rms_rstds}
    judge("rms_norm", {"m": m, "n": n}, answers, given={"eps": 1e-5})


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_rms_norm_backward(m: int, n: int) -> None:
    judge("rms_norm_backward", {"m": m, "n": n}, {"dx": rms_backward})


@pytest.mark.parametrize(("m", "n", "parts"), [(35, 130, 2), (1, 1, 1), (0, 5, 2), (9, 0, 1)])
def test_rms_norm_weights(m: int, n: int, parts: int) -> None:
    def dgammas(x: Array, rstds: Array, dy: Array) -> Array:
        return in_parts(dy * x * rstds[:, None], parts)

    answers = {"dgammas": dgammas}
    judge("rms_norm_weights", {"m": m, "n": n, "parts": parts}, answers, rtol=2**-22)


@pytest.mark.parametrize(("m", "n"), [(45, 77), *SIZES[1:]])
def test_column_sums(m: int, n: int) -> None:
    judge("column_sums", {"m": m, "n": n}, {"y": column_sums})


def targets_for(m: int, n: int) -> Array:
    """Some rows are ignored, all of them where there is no column."""
    targets = np.random.default_rng(1).integers(0, max(n, 1), m).astype(np.int32)
    targets[2::3] = IGNORED
    return targets if n else np.full(m, IGNORED, np.int32)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_cross_entropy(m: int, n: int) -> None:
    given = {"targets": targets_for(m, n), "ignored": IGNORED}
    answers = {"losses": losses_of, "logsums": logsums_of}
    judge("cross_entropy", {"m": m, "n": n}, answers, given=given)


@pytest.mark.parametrize(("m", "n"), SIZES)
def test_cross_entropy_backward(m: int, n: int) -> None:
    given = {"targets": targets_for(m, n), "ignored": IGNORED}
    answers = {"dx": cross_entropy_backward}
    judge("cross_entropy_backward", {"m": m, "n": n}, answers, given=given)
