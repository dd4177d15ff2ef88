"""Dynamic sizes of equal names are one number: what is tested for one is known of the others."""

from __future__ import annotations

import numpy as np
import pytest

import fragir

PROGRAM = """
func.func @add(%a: memref<?xf32> {{frag.sizes = ["n"]}},
               %b: memref<?xf32> {{frag.sizes = ["{name}"]}},
               %c: memref<?xf32> {{frag.sizes = ["n"]}}) {{
  %x = frag.load %a[0] masked : memref<?xf32> -> !frag.tile<32xf32>
  %y = frag.load %b[0] masked : memref<?xf32> -> !frag.tile<32xf32>
  %z = frag.map %x, %y : !frag.tile<32xf32>, !frag.tile<32xf32> -> !frag.tile<32xf32> {{
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    frag.yield %w : f32
  }}
  frag.store %z, %c[0] masked : !frag.tile<32xf32>, memref<?xf32>
  func.return
}}
"""


@pytest.mark.parametrize(("name", "tests"), [("n", 1), ("k", 2)])
def test_one_test_for_equal_names(name: str, tests: int) -> None:
    kernel = fragir.compile(PROGRAM.format(name=name))
    assert kernel.ptx.count("setp.lt") == tests
    a, b = np.arange(20, dtype=np.float32), np.ones(20, np.float32)
    c = np.zeros(20, np.float32)
    assert kernel(a, b, c, on="emulator", check=True).findings == []
    assert (c == a + 1).all()


def test_sizes_of_equal_names_must_agree() -> None:
    kernel = fragir.compile(PROGRAM.format(name="n"))
    arrays = [np.zeros(size, np.float32) for size in (20, 19, 20)]
    with pytest.raises(fragir.FragirError, match=r"\bn\b.*(19|20)"):
        kernel(*arrays, on="emulator")
