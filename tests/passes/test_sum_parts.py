"""Sums that several blocks add up: which part each has, and what becomes of the parts."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects import func

import fragir
from benchmarks.sweeps.pipelines import Config, check, text_of
from fragir.compilation.kernel import Kernel
from fragir.reference import evaluate

# every step of every tile is counted, and each part with how many there are
COUNT = """
func.func @count(%c: memref<?x?x?x?xi32> {frag.sizes = ["b", "m", "n", "k"]},
                 %q: memref<?x?x?x?xi32> {frag.sizes = ["b", "m", "n", "s"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1 : i32
  %t = frag.fill %one : !frag.tile<1xi32>
  %b = memref.dim %c, %c0 : memref<?x?x?x?xi32>
  %m = memref.dim %c, %c1 : memref<?x?x?x?xi32>
  %n = memref.dim %c, %c2 : memref<?x?x?x?xi32>
  %k = memref.dim %c, %c3 : memref<?x?x?x?xi32>
  frag.for_tiles (%i, %row, %col) along (%from, %to, %part, %parts) of (%b, %m, %n, %k)
      by (1, 1, 1, STEP) WORDS {
    scf.for %at = %from to %to step %c1 {
      frag.atomic add %t, %c[%i, %row, %col, %at] masked
          : !frag.tile<1xi32>, memref<?x?x?x?xi32>, index, index, index, index
    }
    %s = arith.index_cast %parts : index to i32
    %counted = frag.fill %s : !frag.tile<1xi32>
    frag.atomic add %counted, %q[%i, %row, %col, %part] masked
        : !frag.tile<1xi32>, memref<?x?x?x?xi32>, index, index, index, index
  }
  func.return
}
"""


@cache
def counting(words: str, step: int) -> Kernel:
    return fragir.compile(program(words, step), target="sm_90a")


def program(words: str, step: int) -> str:
    return COUNT.replace("WORDS", words).replace("STEP", str(step))


@st.composite
def loops(draw: st.DrawFn) -> tuple[str, int]:
    """Words of a loop, and how many parts a tile has at most."""
    order = draw(st.sampled_from(("", "columns", "linear", "grouped 2", "hilbert")))
    even = draw(st.booleans())
    parts = draw(st.integers(2 if even else 1, 4))
    persistent = even or draw(st.booleans())
    words = f"{order} {'persistent' * persistent} {'even' if even else 'split'} {parts}"
    return words, parts


def function_of(text: str) -> func.FuncOp:
    return next(op for op in fragir.parse(text).walk() if isinstance(op, func.FuncOp))


def holds(c: Any, q: Any, parts: int, words: str) -> None:
    """Each step once; the parts of a tile are numbered, and each says how many there are."""
    assert (c == 1).all(), words
    for counts in q.reshape(-1, q.shape[-1]):
        found = int(counts[0])
        assert 1 <= found <= parts, words
        assert list(counts) == [found] * found + [0] * (len(counts) - found), words


@settings(max_examples=25, deadline=None)
@given(
    loops(),
    st.sampled_from((1, 4)),
    st.tuples(*[st.integers(1, 3)] * 3, st.integers(0, 21)),
    st.integers(1, 7),
)
def test_each_step_is_in_one_part(
    loop: tuple[str, int], step: int, sizes: tuple[int, int, int, int], resident: int
) -> None:
    words, parts = loop
    c, q = np.zeros(sizes, np.int32), np.zeros((*sizes[:3], parts + 1), np.int32)
    counting(words, step)(c, q, on="emulator", resident=resident)
    holds(c, q, parts, words)


@settings(max_examples=15, deadline=None)
@given(loops(), st.tuples(*[st.integers(1, 3)] * 3, st.integers(0, 9)), st.integers(1, 5))
def test_the_meaning_has_each_step_in_one_part(
    loop: tuple[str, int], sizes: tuple[int, int, int, int], blocks: int
) -> None:
    words, parts = loop
    arrays = np.zeros(sizes, np.int32), np.zeros((*sizes[:3], parts + 1), np.int32)
    c, q = evaluate(function_of(program(words, 2)), list(arrays), grid=(blocks, 1, 1))
    assert c is not None
    assert q is not None
    holds(c.value, q.value, parts, words)


# --- products -------------------------------------------------------------------------------------

SMALL = "tile = array<i64: 64, 64, 32>"
SIZES = (80, 144, 208)


def config(target: str, schedule: str, element: str, **more: Any) -> Config:
    words = ", ".join(word for word in (schedule, SMALL) if word)
    return Config(target, words, element, (False, False), "none", SIZES, False)._replace(**more)


CASES = [
    config("sm_80", "", "f16", out="f16", parts="split_k = 2 : i64", batch="abc"),
    config("sm_80", "", "f64", parts="stream_k = 3 : i64", epilogue="bias"),
    config("sm_90a", "", "f8E4M3FN", parts="split_k = 3 : i64", epilogue="old", through=False),
    config("sm_90a", "roles", "bf16", out="bf16", parts="stream_k = 3 : i64", batch="bc"),
    config("sm_90a", "roles", "f16", parts="stream_k = 2 : i64", epilogue="old", through=False),
    config("sm_90a", "roles, cluster = 2 : i64", "f16", parts="split_k = 2 : i64", epilogue="old"),
    config("sm_90a", "roles, consumers = 2 : i64", "si8", parts="split_k = 2 : i64"),
    config("sm_120a", "roles", "f16", turned=(True, True), batch="ac"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.target} {c.element} {c.parts} {c.batch}")
def test_products(case: Config) -> None:
    """Exact, silent in every check under three schedules, nothing that ptxas says, counts zero."""
    assert check(case) == []


@pytest.mark.parametrize("words", ["split_k = 3 : i64", "stream_k = 3 : i64"])
@pytest.mark.parametrize("through", [True, False])
def test_the_bound_of_sums_in_parts(words: str, through: bool) -> None:
    case = config("sm_80", "", "f16", parts=words, through=through, batch="abc")
    case = case._replace(epilogue="none" if through else "old")
    text = text_of(case)
    kernel = fragir.compile(text, target="sm_80")
    rng = np.random.default_rng(4)
    m, n, k = SIZES
    a = rng.standard_normal((2, 2, m, k)).astype(np.float16)
    b = rng.standard_normal((2, 2, k, n)).astype(np.float16)
    c = rng.standard_normal((2, 2, m, n)).astype(np.float32)
    more: list[Any] = []
    if through:
        more = [np.full((3, 2, 2, m, n), np.nan, np.float32), np.zeros((2, 2, 9, 9), np.int32)]
    wanted = evaluate(function_of(text), [a, b, c, *more], target="sm_80")[2]
    assert wanted is not None
    kernel(a, b, c, *more, on="emulator", resident=5)
    error = np.abs(c.astype(np.float64) - wanted.value)
    assert (error <= wanted.bound).all()
    assert error.max() > wanted.bound.max() / 2000  # and it says something
    assert not through or (more[1] == 0).all()


def test_each_launch_has_the_same_result() -> None:
    """The parts are added in their order, whichever block comes last."""
    case = config("sm_90a", "roles", "f16", parts="split_k = 4 : i64", out="f16")
    kernel = fragir.compile(text_of(case), target="sm_90a")
    rng = np.random.default_rng(4)
    m, n, k = SIZES
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    results: list[Any] = []
    for seed in (None, 1, 2):
        c = np.zeros((m, n), np.float16)
        memory = [np.zeros((4, m, n), np.float32), np.zeros((2, 3), np.int32)]
        kernel(a, b, c, *memory, on="emulator", resident=2, schedule=seed)
        results.append(c)
    assert all((c == results[0]).all() for c in results)
