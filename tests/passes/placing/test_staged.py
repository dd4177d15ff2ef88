"""Other shapes of tiles through shared memory: where lanes would have to hold too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir

Array = npt.NDArray[Any]
Change = Callable[[Any], Any]

#: What is done to a tile, in the builder as in numpy, and whether that goes through memory.
CHANGES: dict[str, tuple[tuple[int, ...], Change, bool]] = {
    "a window of both dimensions": ((64, 64), lambda x: x[1:33, 1:33], True),
    "a window of three": ((16, 16, 16), lambda x: x[1:9, 1:9, 1:9], True),
    "odd extents in another shape": ((45, 49), lambda x: x.reshape(49, 45), True),
    "every third": ((96, 32), lambda x: x[1::3, ::5], False),
    "halves": ((64, 64), lambda x: x[32:, :32], False),
}


@pytest.mark.parametrize("change", CHANGES)
def test_every_element_arrives(change: str) -> None:
    shape, function, staged = CHANGES[change]
    given = np.arange(np.prod(shape)).reshape(shape)
    wanted = function(given)
    with fragir.kernel("change", warps=(2, 2)) as k:
        x, y = k.memory("x", fragir.f32, shape), k.memory("y", fragir.f32, wanted.shape)
        k.store(function(k.load(x, (0,) * len(shape), shape=shape)), y, (0,) * wanted.ndim)
    kernel = k.compile("sm_80")
    found = np.zeros(wanted.shape, "f4")
    report = kernel(given.astype("f4"), found, on="emulator", check=True)
    assert not report.findings
    assert (found == wanted).all()
    told = [note for note in kernel.notes if "goes through shared memory" in note]
    assert bool(told) == staged


def test_joined_conditions_and_nibbles_go_too() -> None:
    """What has no bytes of its own: conditions as words, elements of four bits as bytes."""
    text = """
    func.func @k(%x: memref<64x64xi32>, %y: memref<64x32xi32>, %a: memref<32x32xi4>,
                 %b: memref<32x32xi4>) attributes {frag.warps = array<i64: 2, 1>} {
      %t = frag.load %x[0, 0] : memref<64x64xi32> -> !frag.tile<64x64xi32>
      %p = frag.map %t : !frag.tile<64x64xi32> -> !frag.tile<64x64xi1> {
      ^bb0(%v: i32):
        %one = arith.constant 1 : i32
        %bit = arith.andi %v, %one : i32
        %odd = arith.cmpi eq, %bit, %one : i32
        frag.yield %odd : i1
      }
      %s = frag.slice %p [0, 3] {staged} : !frag.tile<64x64xi1> -> !frag.tile<64x32xi1>
      %n = frag.cast %s : !frag.tile<64x32xi1> -> !frag.tile<64x32xi32>
      frag.store %n, %y[0, 0] : !frag.tile<64x32xi32>, memref<64x32xi32>
      %u = frag.load %a[0, 0] : memref<32x32xi4> -> !frag.tile<32x32xi4>
      %w = frag.transpose %u [1, 0] {staged} : !frag.tile<32x32xi4> -> !frag.tile<32x32xi4>
      frag.store %w, %b[0, 0] : !frag.tile<32x32xi4>, memref<32x32xi4>
      func.return
    }
    """
    random = np.random.default_rng(0)
    x, y = random.integers(0, 9, (64, 64)).astype("i4"), np.zeros((64, 32), "i4")
    a, b = random.integers(0, 256, (32, 16)).astype("u1"), np.zeros((32, 16), "u1")
    report = fragir.compile(text, target="sm_80")(x, y, a, b, on="emulator", check=True)
    assert not report.findings
    assert (y == x[:, 3:35] % 2).all()
    nibbles, turned = (np.stack([m & 15, m >> 4], -1).reshape(32, 32) for m in (a, b))
    assert (turned == nibbles.T).all()
