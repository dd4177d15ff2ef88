"""Groups of rows: which tiles they have, and their products."""

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
from fragir.errors import FragirError
from fragir.reference import evaluate

# each element of a group's rows counts its group
COUNT = """
func.func @count(%c: memref<?x?xi32> {frag.sizes = ["m", "n"]},
                 %ends: memref<?xi32> {frag.sizes = ["g"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %m = memref.dim %c, %c0 : memref<?x?xi32>
  %n = memref.dim %c, %c1 : memref<?x?xi32>
  frag.for_tiles (%row, %col) within (%group, %end) of (%m, %n) by (4, 8) ORDER persistent
      groups %ends : memref<?xi32> {
    %number = arith.index_cast %group : index to i32
    %more = arith.addi %number, %one : i32
    %t = frag.fill %more : !frag.tile<4x8xi32>
    %own = frag.head %c to %end : memref<?x?xi32>
    frag.atomic add %t, %own[%row, %col] masked
        : !frag.tile<4x8xi32>, memref<?x?xi32>, index, index
  }
  func.return
}
"""


@cache
def counting(order: str) -> Kernel:
    return fragir.compile(COUNT.replace("ORDER", order), target="sm_90a")


def expected(sizes: list[int], rows: int, columns: int) -> Any:
    numbers = np.repeat(np.arange(len(sizes)) + 1, sizes)
    column = np.concatenate([numbers, np.zeros(rows - len(numbers), int)])
    return np.repeat(column[:, None], columns, 1)


GROUPS = st.lists(st.integers(0, 11), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(("", "columns", "linear", "grouped 2", "hilbert")),
    GROUPS,
    st.integers(0, 6),
    st.integers(1, 20),
    st.integers(1, 7),
)
def test_each_row_is_in_its_group(
    order: str, sizes: list[int], rest: int, columns: int, resident: int
) -> None:
    rows = max(1, sum(sizes) + rest)
    c, ends = np.zeros((rows, columns), np.int32), np.cumsum(sizes).astype(np.int32)
    counting(order)(c, ends, on="emulator", resident=resident)
    assert (c == expected(sizes, rows, columns)).all()


@settings(max_examples=15, deadline=None)
@given(GROUPS, st.integers(1, 12), st.integers(1, 5))
def test_the_meaning_has_each_row_in_its_group(sizes: list[int], columns: int, blocks: int) -> None:
    module = fragir.parse(COUNT.replace("ORDER", ""))
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    rows = sum(sizes) + 2
    arrays = np.zeros((rows, columns), np.int32), np.cumsum(sizes).astype(np.int32)
    found = evaluate(function, list(arrays), grid=(blocks, 1, 1))[0]
    assert found is not None
    assert (found.value == expected(sizes, rows, columns)).all()


SIZES = (104, 80, 72)


@pytest.mark.parametrize(
    "config",
    [
        Config("sm_80", "tile = array<i64: 64, 64, 32>", "f16", (False, True), "bias", SIZES, True),
        Config("sm_80", "", "f64", (False, False), "none", SIZES, False),
        Config("sm_90a", "", "bf16", (True, False), "old", SIZES, False, "bf16"),
        Config("sm_90a", "roles", "f16", (False, False), "none", SIZES, False, "f16"),
        Config("sm_120a", "roles, consumers = 2 : i64", "f16", (False, True), "old", SIZES, True),
    ],
    ids=lambda c: f"{c.target} {c.schedule[:5]} {c.element}",
)
def test_products(config: Config) -> None:
    """Exact, silent in every check under three schedules, and nothing that ptxas says."""
    assert check(config._replace(groups=True)) == []


def test_the_bound() -> None:
    config = Config("sm_80", "", "f16", (False, False), "none", SIZES, False, groups=True)
    text = text_of(config)
    function = next(op for op in fragir.parse(text).walk() if isinstance(op, func.FuncOp))
    rng = np.random.default_rng(4)
    m, n, k = SIZES
    a, b = (rng.standard_normal(s).astype(np.float16) for s in ((m, k), (4, k, n)))
    c, ends = rng.standard_normal((m, n)).astype(np.float32), np.array([7, 50, 50, 90], np.int32)
    wanted = evaluate(function, [a, b, c, ends], target="sm_80")[2]
    assert wanted is not None
    before = c.copy()
    fragir.compile(text, target="sm_80")(a, b, c, ends, on="emulator")
    assert (np.abs(c.astype(np.float64) - wanted.value) <= wanted.bound).all()
    assert (c[90:] == before[90:]).all()
    assert not wanted.bound[90:].any()


@pytest.mark.parametrize("ends", [[7, 5, 8, 9], [7, 7, 90, 105]])
def test_ends_that_are_none(ends: list[int]) -> None:
    """Groups begin where others end, and end within the matrix."""
    config = Config("sm_80", "", "f16", (False, False), "none", SIZES, False, groups=True)
    module = fragir.parse(text_of(config))
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    m, n, k = SIZES
    arrays = [np.ones((m, k), np.float16), np.ones((4, k, n), np.float16)]
    with pytest.raises(
        FragirError, match=r"group \d of 104 rows begins at 7 and ends at|ends at 105"
    ):
        evaluate(function, [*arrays, np.ones((m, n), np.float32), np.array(ends, np.int32)])
