"""The kernels of examples/attention: against numpy, on every machine that they are for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import between, loops, wgmma_wait
from tests.examples.judged import EXAMPLES, judged, script

Array = npt.NDArray[Any]
FOLDER = EXAMPLES / "attention"


def scores(q: Array, k: Array, causal: int) -> Array:
    """Q K^T / sqrt(d) of every query head, -inf where a query does not see the key."""
    h, m, d = q.shape
    g, n, _ = k.shape
    shared = np.repeat(k, h // g, axis=0) if g else k
    found = np.einsum("hmd,hnd->hmn", q.astype(np.float64), shared) / np.sqrt(d)
    if causal:
        i, j = np.indices((m, n))
        found[:, j > i + n - m] = -np.inf
    return found


def sums(q: Array, k: Array, causal: int) -> Array:
    """The logarithm of the sum of e^score over every row; -inf where it is empty."""
    s = scores(q, k, causal)
    top = s.max(-1, initial=-1e30)
    with np.errstate(divide="ignore"):
        return top + np.log(np.exp(s - top[..., None]).sum(-1))


def weights(q: Array, k: Array, causal: int) -> Array:
    """The softmax; zeros where a query sees no key."""
    s = scores(q, k, causal)
    p = np.exp(s - s.max(-1, initial=-1e30)[..., None])
    total = p.sum(-1, keepdims=True)
    return p / np.where(total == 0, 1, total)


def attention(q: Array, k: Array, v: Array, causal: int) -> Array:
    h, g = len(q), len(v)
    return weights(q, k, causal) @ np.repeat(v, h // g, axis=0)


FORWARD: Mapping[str, Callable[..., Array]] = {"o": attention, "lse": sums}


def sized(h: int, g: int, m: int, n: int) -> dict[str, int]:
    return {"h": h, "g": g, "m": m, "n": n}


# heads, heads of keys, queries, keys, causal
@pytest.mark.parametrize(
    ("h", "g", "m", "n", "causal"),
    [(1, 1, 1, 1, 1), (2, 1, 70, 97, 1)],
)
def test_forward(h: int, g: int, m: int, n: int, causal: int) -> None:
    sizes = sized(h, g, m, n)
    judged(FOLDER / "forward.mlir", sizes, FORWARD, given={"causal": causal})


# more queries than keys: the first of them see none
@pytest.mark.parametrize(
    ("h", "g", "m", "n", "causal"), [(1, 1, 70, 35, 1), (2, 2, 3, 0, 0), (1, 1, 0, 5, 0)]
)
def test_forward_in_python(h: int, g: int, m: int, n: int, causal: int) -> None:
    text = script("attention/forward.py")["k"].mlir
    judged(text, sized(h, g, m, n), FORWARD, given={"causal": causal})


@pytest.mark.parametrize(("m", "n"), [(130, 9), (2, 0)])
def test_forward_by_wgmma(m: int, n: int) -> None:
    path = FOLDER / "forward_wgmma.mlir"
    judged(path, sized(1, 1, m, n), FORWARD, "sm_90a", given={"causal": 1})


@pytest.mark.parametrize(("d", "target"), [(64, "sm_90a"), (128, "sm_80")])
def test_forward_of_other_heads(d: int, target: str) -> None:
    kernel = script("attention/forward.py")["forward"](d, target)
    judged(kernel.mlir, sized(1, 1, 5, 67), FORWARD, target, given={"causal": 1})


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("d", [64, 128])
def test_nothing_is_between_the_products(d: int, target: str) -> None:
    kernel = script("attention/forward.py")["forward"](d, target)
    found = fragir.explain_layouts(kernel.mlir, target=target).conversions
    # the loop over whole blocks, and that over masked ones
    assert [(x.cost, x.steps) for x in found if x.trips > 1] == [(0, "nothing")] * 2
    # two exchanges of the largest of each of two rows in both, and of the sum behind them
    assert kernel.compile().ptx.count("shfl.sync") == 12


def test_forward_overlapped() -> None:
    """Roles, rings that TMA fills, two products under way; causal."""
    path = FOLDER / "forward_overlapped.mlir"
    judged(path, sized(1, 1, 5, 67), FORWARD, "sm_90a", given={"causal": 1})
    kernel = script("attention/forward_overlapped.py")["k"]
    assert fragir.compile(path.read_text(), target="sm_90a").ptx == kernel.compile().ptx


def softmax(s: Array) -> tuple[Array, Array]:
    """The weights of scores, and the logarithm of their sum; zeros and -inf where none is seen."""
    top = s.max(-1, initial=-1e30)
    e = np.exp(s - top[..., None])
    total = e.sum(-1)
    with np.errstate(divide="ignore"):
        return e / np.where(total == 0, 1, total)[..., None], top + np.log(total)


def halves(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float16)


def overlapped(how: Mapping[str, Any], *given: Any) -> tuple[Array, Array]:
    """O and lse of a kernel of forward_overlapped.py for q, k, v and what else it takes."""
    kernel = script("attention/forward_overlapped.py")["forward"](64, **how).compile()
    q, k, v, *others = given
    o = np.full_like(q, np.nan)
    lse = np.full((len(q), 2) if "varlen" in how else q.shape[:2], np.nan, np.float32)
    assert kernel(q, k, v, o, lse, *others, on="emulator", check=True).findings == []
    return o, lse


def assert_near(found: tuple[Array, Array], o: Array, lse: Array) -> None:
    """P and O are rounded to f16."""
    assert np.abs(found[0] - o).max() < 2**-9
    np.testing.assert_allclose(found[1], lse, atol=1e-5)


@pytest.mark.parametrize(("m", "n", "window"), [(5, 300, 140), (150, 70, 9)])
def test_windows(m: int, n: int, window: int) -> None:
    """Blocks that both ends of the window cut, whole ones between them, queries without a key."""
    q, k, v = halves(1, m, 64), halves(1, n, 64), halves(1, n, 64)
    i, j = np.indices((m, n))
    p, lse = softmax(np.where(j > i + n - m - window, scores(q, k, 1), -np.inf))
    assert_near(overlapped({"window": True}, q, k, v, 1, window), p @ v, lse)


def test_sequences_behind_each_other() -> None:
    """Lengths of queries and keys; one has no query, one no key. Two heads, one of keys."""
    lengths = np.array([[3, 5], [0, 2], [130, 140], [2, 0]])
    ends = lengths.cumsum(0)
    q, k, v = halves(135, 128), halves(147, 64), halves(148, 64)[:147]
    found = overlapped({"varlen": True}, q, k, v, *(x.astype(np.int32) for x in ends.T), 1)
    o, lse = np.empty((135, 128)), np.empty((135, 2))
    for (m, n), (to, k_to) in zip(lengths, ends, strict=True):
        rows, keys = slice(to - m, to), slice(k_to - n, k_to)
        p, logs = softmax(scores(q[rows].reshape(m, 2, 64).swapaxes(0, 1), k[None, keys], 1))
        o[rows], lse[rows] = (p @ v[keys]).swapaxes(0, 1).reshape(m, 128), logs.T
    assert_near(found, o, lse)


def test_pages() -> None:
    """Two sequences of four query heads over two of keys each; pages lie in any order."""
    lengths, table = np.array([130, 7], np.int32), np.array([[4, 1], [2, 0]], np.int32)
    q, k, v = halves(8, 3, 64), halves(5, 2, 128, 64), halves(5, 2, 128, 64)[::-1].copy()
    o, lse = overlapped({"paged": True}, q, k, v, table, lengths, 1)
    for at, pages, n in zip((slice(4), slice(4, 8)), table, lengths, strict=True):
        keys, values = (np.concatenate(list(x[pages]), axis=1)[:, :n] for x in (k, v))
        p, logs = softmax(scores(q[at], keys, 1))
        assert_near((o[at], lse[at]), p @ np.repeat(values, 2, axis=0), logs)


def test_warpgroups_in_turn() -> None:
    q, k, v = halves(2, 70, 64), halves(1, 140, 64), halves(1, 141, 64)[:, :140]
    p, lse = softmax(scores(q, k, 0))
    assert_near(overlapped({"ping_pong": True}, q, k, v, 0), p @ v, lse)


@pytest.mark.parametrize(("element", "near"), [("bf16", 2**-6), ("e4m3", 2**-4)])
def test_other_elements(element: str, near: float) -> None:
    """P is rounded to them; V of e4m3 is transposed on the way, and has a scale as Q K^T has."""
    name = "bfloat16" if element == "bf16" else "float8_e4m3fn"
    q, k, v = (
        x.astype(getattr(ml_dtypes, name)) for x in (halves(2, 5, 64), *halves(2, 1, 140, 64))
    )
    kernel = script("attention/forward_overlapped.py")["forward"](
        64, element=getattr(fragir, element)
    )
    o, lse = np.zeros(q.shape, ml_dtypes.bfloat16), np.zeros(q.shape[:2], np.float32)
    scales = (0.5, 2.0) if element == "e4m3" else ()
    report = kernel.compile()(q, k, v, o, lse, 1, *scales, on="emulator", check=True)
    assert report.findings == []
    qk_scale, v_scale = scales or (1, 1)
    p, logs = softmax(scores(q, k.astype(np.float64), 1) * qk_scale)
    wanted = p @ v.astype(np.float64) * v_scale
    assert np.abs(o.astype(np.float64) - wanted).max() < near
    np.testing.assert_allclose(lse, logs, atol=2**-12)  # fp8's sums have few bits


# instructions of the loop over keys that all queries see
@pytest.mark.parametrize(
    ("d", "keys", "most"),
    [(64, 128, 410), (96, 160, 510), (128, 128, 450), (192, 96, 430), (256, 64, 400)],
)
def test_the_softmax_runs_while_a_product_does(d: int, keys: int, most: int) -> None:
    """SASS: between the wait for Q K^T and that for P V stands every exponential of a lane's scores
    and of its two rows, and both products are issued before."""
    kernel = script("attention/forward_overlapped.py")["forward"](d).compile()
    assert kernel.assembled.warnings == []
    assert all(entry.spill_stores == 0 for entry in kernel.assembled.entries.values())
    masked, whole = (x for x in loops(disassemble(kernel.cubin)) if x.tensor and x.depth == 2)
    assert len(whole.instructions) <= most
    assert whole.counts["SHFL"] == 4  # the largest; the sum is added up behind the loop
    assert whole.counts["SEL"] == 0
    for loop in (masked, whole):
        (counts,) = between(loop.instructions, wgmma_wait(1), wgmma_wait(0))
        assert counts["MUFU"] == keys // 2 + 2
        assert not any(opcode.startswith("HGMMA") for opcode in counts)


def shares(q: Array, k: Array, lse: Array, causal: int) -> Array:
    """P, from the rows' sums; zeros where a query does not see the key."""
    s = scores(q, k, causal)
    return np.where(s == -np.inf, 0, np.exp(s - lse[..., None]))


def score_gradients(
    q: Array, k: Array, v: Array, do: Array, lse: Array, delta: Array, causal: int
) -> Array:
    """dS, with the scale of Q K^T."""
    dp = do @ np.repeat(v, len(do) // len(v), axis=0).transpose(0, 2, 1)
    return shares(q, k, lse, causal) * (dp - delta[..., None]) / np.sqrt(q.shape[-1])


def of_groups(x: Array, g: int) -> Array:
    """The sum over the query heads that share a head of keys."""
    return x.reshape(g, len(x) // g, *x.shape[1:]).sum(1)


def dq(q: Array, k: Array, v: Array, do: Array, lse: Array, delta: Array, causal: int) -> Array:
    ds = score_gradients(q, k, v, do, lse, delta, causal)
    return ds @ np.repeat(k, len(q) // len(k), axis=0)


def dk(q: Array, k: Array, v: Array, do: Array, lse: Array, delta: Array, causal: int) -> Array:
    ds = score_gradients(q, k, v, do, lse, delta, causal)
    return of_groups(ds.transpose(0, 2, 1) @ q, len(k))


def dv(q: Array, k: Array, do: Array, lse: Array, causal: int) -> Array:
    return of_groups(shares(q, k, lse, causal).transpose(0, 2, 1) @ do, len(k))


def delta(o: Array, do: Array) -> Array:
    return (o * do).sum(-1)


BACKWARD: Mapping[str, Mapping[str, Callable[..., Array]]] = {
    "delta": {"delta": delta},
    "dkdv": {"dk": dk, "dv": dv},
    "dq": {"dq": dq},
}


@pytest.mark.parametrize("part", ["dkdv", "dq"])
def test_backward(part: str) -> None:
    path = FOLDER / "backward.mlir"
    judged(path, sized(2, 1, 35, 70), BACKWARD[part], entry=part, given={"causal": 1})


@pytest.mark.parametrize(
    ("part", "h", "g", "m", "n", "causal"),
    [
        ("dkdv", 1, 1, 70, 35, 1),
        ("dkdv", 1, 1, 0, 3, 1),
        ("dq", 1, 1, 1, 1, 0),
        ("dq", 1, 1, 3, 0, 0),
    ],
)
def test_backward_in_python(part: str, h: int, g: int, m: int, n: int, causal: int) -> None:
    text = script("attention/backward.py")[part].mlir
    judged(text, sized(h, g, m, n), BACKWARD[part], given={"causal": causal})


def test_products_of_rows() -> None:
    answers = BACKWARD["delta"]
    judged(FOLDER / "backward.mlir", {"h": 2, "m": 65}, answers, entry="delta")
    judged(script("attention/backward.py")["delta"].mlir, {"h": 1, "m": 0}, answers)


@pytest.mark.parametrize(("name", "target"), [("forward", "sm_80"), ("forward_wgmma", "sm_90a")])
def test_nothing_is_between_the_products_of_bf16(name: str, target: str) -> None:
    text = (FOLDER / f"{name}.mlir").read_text().replace("xf16", "xbf16")
    found = fragir.explain_layouts(text, target=target).conversions
    assert [(x.cost, x.steps) for x in found if x.trips > 1] == [(0, "nothing")]
    assert fragir.compile(text, target=target).ptx.count("shfl.sync") == 8


@pytest.mark.parametrize(("part", "count"), [("dkdv", 2), ("dq", 1)])
def test_nothing_is_between_the_products_of_the_gradient(part: str, count: int) -> None:
    """P and dS are operands where they are; only answers are moved, on the way to memory."""
    kernel = script("attention/backward.py")[part]
    found = fragir.explain_layouts(kernel.mlir, target="sm_80").conversions
    inside, behind = [x for x in found if x.trips > 1], [x for x in found if x.trips == 1]
    assert [(x.cost, x.steps) for x in inside] == [(0, "nothing")] * count
    assert len(behind) == count
    assert all("frag.store" in x.asked_by for x in behind)


@pytest.mark.parametrize("name", ["forward", "backward"])
def test_scripts_pass(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    script(f"attention/{name}.py")["main"]()
    assert capsys.readouterr().out.endswith("PASS\n")


def test_sums_of_wgmma_stay_in_their_registers() -> None:
    """What the loop carries is scaled and added to where it is."""
    ptx = script("attention/forward.py")["forward"](64, "sm_90a").compile().ptx
    behind = ptx[ptx.rindex("wgmma.wait_group") :]
    moved = re.findall(r"mov\.b32 %\w+, %f", behind[: behind.index("bra ")])
    assert len(moved) == 2  # the largest of two rows; no sum
