"""Loops that go on while a condition holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects import func

import fragir
from fragir import Scalar, f16, f32, s32
from fragir.errors import FragirError

Array = npt.NDArray[Any]

# the tile is halved until none is above 1, seven times at most
HALVED = """
func.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %c: memref<1xi32>)
    attributes {frag.warps = array<i64: 2, 1>} {
  %t0 = frag.load %x[0] : memref<64xf32> -> !frag.tile<64xf32>
  %n0 = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %most = arith.constant 7 : i32
  %t, %n = scf.while (%a = %t0, %i = %n0) : (!frag.tile<64xf32>, i32)
      -> (!frag.tile<64xf32>, i32) {
    %m = frag.reduce max dim 0 %a : !frag.tile<64xf32> -> f32
    %limit = arith.constant 1.0 : f32
    %large = arith.cmpf ogt, %m, %limit : f32
    %few = arith.cmpi slt, %i, %most : i32
    %both = arith.andi %large, %few : i1
    scf.condition(%both) %a, %i : !frag.tile<64xf32>, i32
  } do {
  ^bb0(%b: !frag.tile<64xf32>, %j: i32):
    %h = frag.map %b : !frag.tile<64xf32> -> !frag.tile<64xf32> {
    ^bb1(%v: f32):
      %half = arith.constant 0.5 : f32
      %r = arith.mulf %v, %half : f32
      frag.yield %r : f32
    }
    %k = arith.addi %j, %one : i32
    scf.yield %h, %k : !frag.tile<64xf32>, i32
  }
  frag.store %t, %y[0] : !frag.tile<64xf32>, memref<64xf32>
  %nt = frag.fill %n : !frag.tile<1xi32>
  frag.store %nt, %c[0] : !frag.tile<1xi32>, memref<1xi32>
  func.return
}
"""


@pytest.mark.parametrize(("scale", "turns"), [(0.5, 0), (5, 3), (1000, 7)])
def test_no_turn_some_and_the_most(scale: float, turns: int) -> None:
    x = (np.random.default_rng(1).random(64) * scale).astype(np.float32)
    y, c = np.zeros(64, np.float32), np.zeros(1, np.int32)
    kernel = fragir.compile(HALVED)
    assert kernel.assembled.warnings == []
    for schedule in (None, 1, 2):
        report = kernel.launch((1,), (64,), x, y, c, on="emulator", check=True, schedule=schedule)
        assert report.findings == []
        assert c == turns
        np.testing.assert_array_equal(y, x / 2**turns)


def test_the_reference_goes_on_as_long() -> None:
    from fragir.reference import evaluate

    x = (np.random.default_rng(2).random(64) * 40).astype(np.float32)
    arrays = [x, np.zeros(64, np.float32), np.zeros(1, np.int32)]
    function = next(iter(fragir.parse(HALVED).ops))
    assert isinstance(function, func.FuncOp)
    _, halved, turns = evaluate(function, arrays, target="sm_80", grid=(1, 1, 1))
    assert halved is not None
    assert turns is not None
    np.testing.assert_array_equal(halved.value, x / 64)
    assert turns.value == 6


def test_products_in_other_layouts_inside() -> None:
    """C = A^n until its largest is beyond a limit: the sum is the operand of the next turn."""

    def small(now: Any) -> Scalar:
        return abs(now.p).max() < 100

    with fragir.kernel("power", warps=(2, 1)) as k:
        a = k.memory("a", f16, (32, 32))
        c = k.memory("c", f32, (32, 32))
        turns = k.memory("turns", s32, (1,))
        b = k.load(a, (0, 0), shape=(32, 32))
        one = k.load(a, (0, 0), shape=(32, 32)).cast(f32)
        zero = k.constant(0, s32)
        with k.while_(small, p=one, n=zero) as loop:
            loop.p = k.mma(loop.p.cast(f16), b, k.fill(0, (32, 32), f32))
            loop.n = loop.n + 1
        k.store(loop.p, c, (0, 0))
        k.store(k.fill(loop.n, (1,), s32), turns, (0,))
    rng = np.random.default_rng(3)
    source = rng.integers(-1, 2, (32, 32)).astype(np.float16)
    result, count = np.zeros((32, 32), np.float32), np.zeros(1, np.int32)
    report = k.compile()(source, result, count, on="emulator", check=True)
    assert report.findings == []
    wanted, n = source.astype(np.float64), 0
    while np.abs(wanted).max() < 100:
        wanted, n = wanted @ source, n + 1
    assert n > 0
    assert count == n
    np.testing.assert_array_equal(result, wanted)


def test_conditions_are_carried_and_swapped() -> None:
    """Two tiles of truth values change places each turn."""
    with fragir.kernel("swap") as k:
        x = k.memory("x", s32, (32,))
        y = k.memory("y", s32, (32,))
        t = k.load(x, (0,), shape=(32,))
        start = dict(p=t > 0, q=t > 1, i=0)
        with k.while_(lambda now: now.i < 3, **start) as loop:  # pyright: ignore
            loop.p, loop.q = loop.q, loop.p
            loop.i = loop.i + 1
        one = k.fill(1, (32,), s32)
        k.store(k.select(loop.p, one, 0) + k.select(loop.q, one * 10, 0), y, (0,))
    source, result = np.arange(-2, 30, dtype=np.int32), np.zeros(32, np.int32)
    assert k.compile()(source, result, on="emulator", check=True).findings == []
    np.testing.assert_array_equal(result, (source > 1) + 10 * (source > 0))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("scf.yield %h, %k : !frag.tile<64xf32>, i32", "scf.yield %h : !frag.tile<64xf32>"),
         "scf.yield passes on"),
        (("scf.condition(%both) %a, %i : !frag.tile<64xf32>, i32",
          "scf.condition(%both) %i, %a : i32, !frag.tile<64xf32>"), "scf.condition passes on"),
    ],
)  # fmt: skip
def test_what_is_passed_on_must_be_what_is_taken(change: tuple[str, str], message: str) -> None:
    with pytest.raises(FragirError, match=message):
        fragir.compile(HALVED.replace(*change))
