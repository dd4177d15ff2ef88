"""`frag-raster`: each tile is visited once, in the order that was asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir.compilation.kernel import EMULATED_RESIDENT, Kernel
from fragir.reference import evaluate
from fragir.scheduling.l2 import curve, tile_order
from fragir.sweeps import Plan, runner

ORDERS = ("", "rows", "columns", "linear", "grouped 1", "grouped 3", "grouped", "hilbert")

# atomics count: a tile that two blocks visit has 2, one that none does 0
COUNT = """
func.func @count(%c: memref<?x?xi32> {frag.sizes = ["m", "n"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1 : i32
  %t = frag.fill %one : !frag.tile<4x8xi32>
  %m = memref.dim %c, %c0 : memref<?x?xi32>
  %n = memref.dim %c, %c1 : memref<?x?xi32>
  frag.for_tiles (%row, %col) of (%m, %n) by (4, 8) WORDS {
    frag.atomic add %t, %c[%row, %col] masked : !frag.tile<4x8xi32>, memref<?x?xi32>, index, index
  }
  func.return
}
"""
BATCH = """
func.func @count(%c: memref<?x?x?xi32> {frag.sizes = ["b", "m", "n"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %one = arith.constant 1 : i32
  %t = frag.fill %one : !frag.tile<4x8xi32>
  %b = memref.dim %c, %c0 : memref<?x?x?xi32>
  %m = memref.dim %c, %c1 : memref<?x?x?xi32>
  %n = memref.dim %c, %c2 : memref<?x?x?xi32>
  frag.for_tiles (%i, %row, %col) of (%b, %m, %n) by (1, 4, 8) WORDS {
    frag.atomic add %t, %c[%i, %row, %col] masked
        : !frag.tile<4x8xi32>, memref<?x?x?xi32>, index, index, index
  }
  func.return
}
"""


@cache
def compiled(program: str, words: str) -> Kernel:
    return fragir.compile(program.replace("WORDS", words), target="sm_90a")


@st.composite
def loops(draw: st.DrawFn) -> str:
    words = draw(st.sampled_from(ORDERS))
    persistent = draw(st.sampled_from(("", " persistent")))
    return f"{words}{persistent}{draw(st.sampled_from(('', ' cluster 2', ' cluster 3')))}"


@settings(max_examples=30, deadline=None)
@given(loops(), st.integers(1, 70), st.integers(1, 90), st.integers(1, 9), st.integers(0, 3))
def test_each_tile_is_visited_once(words: str, m: int, n: int, resident: int, batch: int) -> None:
    program, shape = (BATCH, (batch, m, n)) if batch else (COUNT, (m, n))
    kernel = compiled(program, words)
    c = np.zeros(shape, np.int32)
    kernel(c, on="emulator", resident=resident)
    assert (c == 1).all()


@settings(max_examples=15, deadline=None)
@given(loops(), st.integers(1, 40), st.integers(1, 40), st.integers(1, 6))
def test_the_meaning_visits_each_tile_once(words: str, m: int, n: int, blocks: int) -> None:
    from xdsl.dialects import func

    module = fragir.parse(COUNT.replace("WORDS", words))
    function = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    (found,) = evaluate(function, [np.zeros((m, n), np.int32)], grid=(blocks, 1, 1))
    assert found is not None
    assert (found.value == 1).all()


# --- orders ---------------------------------------------------------------------------------------

# a block writes its number, a persistent one its turn
NUMBER = """
func.func @number(%c: memref<?x?xi32> {frag.sizes = ["m", "n"]}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = memref.dim %c, %c0 : memref<?x?xi32>
  %n = memref.dim %c, %c1 : memref<?x?xi32>
  %x = frag.block_id x
  %number = arith.index_cast %x : index to i32
  %t = frag.fill %number : !frag.tile<1x1xi32>
  frag.for_tiles (%row, %col) of (%m, %n) by (1, 1) WORDS {
    frag.store %t, %c[%row, %col] masked : !frag.tile<1x1xi32>, memref<?x?xi32>
  }
  func.return
}
"""


@pytest.mark.parametrize("words", ["linear", "grouped 1", "grouped 4", "hilbert"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (8, 1), (7, 5), (8, 16), (13, 6), (11, 23)])
def test_tiles_come_in_their_order(words: str, shape: tuple[int, int]) -> None:
    c = np.zeros(shape, np.int32)
    compiled(NUMBER, words)(c, on="emulator")
    order, _, group = words.partition(" ")
    places = list(tile_order(*shape, order, int(group or 1)))
    assert [int(c[place]) for place in places] == list(range(len(places)))


def test_one_dimension_of_the_grid_has_room_for_any_number_of_rows() -> None:
    sizes = {"m": 70_000, "n": 3}
    assert compiled(NUMBER, "linear").grid(sizes) == (210_000, 1, 1)
    assert compiled(NUMBER, "rows").grid(sizes) == (3, 70_000, 1)
    batch = {"b": 100_000, "m": 9, "n": 9}
    assert compiled(BATCH, "linear").grid(batch) == (600_000, 1, 1)


def test_a_cluster_has_neighbours_along_m() -> None:
    for words in ("rows", "columns", "grouped 2", "hilbert", "rows persistent"):
        c = np.full((6, 5), -1, np.int32)
        compiled(NUMBER, f"{words} cluster 2")(c, on="emulator", resident=1000)
        if words == "columns":  # block x is the row
            assert (c == np.arange(6)[:, None]).all()
        else:
            assert (c[1::2] == c[::2] + 1).all()
            assert (c[::2] % 2 == 0).all()


def neighbours() -> Iterator[tuple[int, int]]:
    return ((rows, columns) for rows in range(1, 25) for columns in range(1, 25))


def test_the_curve_goes_from_tile_to_neighbouring_tile() -> None:
    for rows, columns in neighbours():
        way = list(curve(rows, columns))
        assert sorted(way) == [(r, c) for r in range(rows) for c in range(columns)]
        steps = [abs(a - c) + abs(b - d) for (a, b), (c, d) in pairwise(way)]
        diagonal = max(rows, columns) % 2 == 1 and min(rows, columns) % 2 == 0
        assert steps.count(1) >= len(steps) - diagonal
        assert max(steps, default=1) <= 2


# --- code and grids -------------------------------------------------------------------------------


def test_plain_loops_are_what_one_writes_by_hand() -> None:
    start = """
func.func @f(%c: memref<?x?xf32> {frag.sizes = ["m", "n"]}) GRID {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %one = arith.constant 1.0 : f32
  %t = frag.fill %one : !frag.tile<32x64xf32>
  %m = memref.dim %c, %c0 : memref<?x?xf32>
  %n = memref.dim %c, %c1 : memref<?x?xf32>
"""
    store = "frag.store %t, %c[%row, %col] masked : !frag.tile<32x64xf32>, memref<?x?xf32>\n"
    loop = start.replace("GRID", "") + (
        f"  frag.for_tiles (%row, %col) of (%m, %n) by (32, 64) {{\n    {store}  }}\n"
        "  func.return\n}"
    )
    grid = "attributes {frag.grid = #frag.grid<n by 64, m by 32>}"
    by_hand = start.replace("GRID", grid) + (
        "  %x = frag.block_id x\n  %y = frag.block_id y\n  %c64 = arith.constant 64 : index\n"
        "  %c32 = arith.constant 32 : index\n  %col = arith.muli %x, %c64 : index\n"
        f"  %row = arith.muli %y, %c32 : index\n  {store}  func.return\n}}"
    )
    kernels = fragir.compile(loop), fragir.compile(by_hand)
    assert kernels[0].grid_attribute == kernels[1].grid_attribute
    statements = [
        sorted(line.split()[0] for line in kernel.ptx.splitlines() if line.startswith("\t"))
        for kernel in kernels
    ]
    assert statements[0] == statements[1]
    assert "div" not in kernels[0].ptx
    assert "rem" not in kernels[0].ptx


def test_residents_are_whole_clusters_and_no_more_than_tiles() -> None:
    kernel = compiled(COUNT, "grouped 2 persistent cluster 2")
    sizes = {"m": 40, "n": 80}  # 10 x 10 tiles, 5 x 10 clusters
    assert kernel.grid(sizes) == (100, 1, 1)
    assert kernel.grid(sizes, 7) == (6, 1, 1)
    assert kernel.grid(sizes, 1) == (2, 1, 1)
    assert kernel.grid({"m": 4, "n": 8}, 132) == (2, 1, 1)
    assert kernel.resident("emulator") == EMULATED_RESIDENT
    assert kernel.resident("emulator", sizes) == 100 // 2
    assert kernel.resident("emulator", {"m": 8, "n": 8}) == EMULATED_RESIDENT
    assert kernel.resident("emulator", {"m": 4000, "n": 8000}) == 256 * 32 // prod(kernel.block)
    assert compiled(COUNT, "rows").resident("emulator") is None


def test_nothing_is_launched_for_an_empty_matrix() -> None:
    for words in ("rows", "hilbert persistent"):
        compiled(COUNT, words)(np.zeros((0, 8), np.int32), on="emulator")


def test_a_pass_says_the_order_of_loops_that_have_none() -> None:
    text = COUNT.replace("WORDS", "")
    passes = "frag-raster{order=grouped group=2 persistent=true},frag-place,convert-frag-to-ptx"
    kernel = fragir.compile(text, passes=passes)
    assert str(kernel.grid_attribute) == str(compiled(COUNT, "grouped 2 persistent").grid_attribute)
    with pytest.raises(fragir.FragirError, match="order = spiral: an order is one of rows"):
        fragir.compile(text, passes="frag-raster{order=spiral},frag-place,convert-frag-to-ptx")


# --- from Python ----------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [{}, {"order": "grouped", "group": 2, "persistent": True}])
def test_loops_from_python(words: dict[str, Any]) -> None:
    with fragir.kernel("twice") as k:
        c = k.memory("c", fragir.s32, ("m", "n"))
        with k.for_tiles((k.size("m"), k.size("n")), (16, 32), **words) as (row, col):
            t = k.load(c, (row, col), shape=(16, 32), masked=True)
            k.store(t + t + k.grid_size("z").cast(fragir.s32), c, (row, col), masked=True)
    kernel = k.compile()
    c = np.arange(40 * 70, dtype=np.int32).reshape(40, 70)
    wanted = 2 * c + 1
    kernel(c, on="emulator")
    assert (c == wanted).all()


def test_mistakes_in_python_are_told() -> None:
    def loop(*arguments: Any, **words: Any) -> None:
        with fragir.kernel("f") as k:
            k.memory("c", fragir.s32, ("m", "n"))
            with k.for_tiles(*arguments, **words):
                with k.for_tiles((8, 8), (4, 4)):
                    pass

    for arguments, words, text in (
        (((8, 8), (4, 4)), {}, "share them out twice"),
        (((8, 8), (4,)), {}, "tiles of 1 dimensions for a matrix of 2"),
        (
            ((8, 8), (4, 4)),
            {"order": "spiral"},
            "one of rows, columns, linear, grouped",
        ),
        (((8, 8), (4, 4)), {"group": 2}, "only order="),
        (((8, 8), (4, 4)), {"order": "grouped", "group": 0}, "group"),
    ):
        with pytest.raises(fragir.FragirError, match=text):
            loop(*arguments, **words)


def test_the_sweep() -> None:
    (found,) = runner.results("rasters", Plan(seed=1, count=1, parameters={"batch": 2}))
    assert found["failed"] is None
    assert found["result"] is not None
    assert found["result"]["findings"] == []
