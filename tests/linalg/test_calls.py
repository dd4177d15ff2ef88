"""Functions that call others of their module: what is called stands in the call's place."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir.errors import FragirError
from tests.linalg.judging import judged

M = "tensor<8x8xf32>"
INTO = f"""func.func private @into(%p: {M}, %q: {M}) -> ({M}, {M}) {{
  %r = linalg.add ins(%p, %q : {M}, {M}) outs(%q : {M}) -> {M}
  return %p, %r : {M}, {M}
}}
"""
TWICE = f"""func.func @main(%x: {M}, %y: {M}) -> ({M}, {M}) {{
  %a:2 = call @into(%x, %y) : ({M}, {M}) -> ({M}, {M})
  %b:2 = call @into(%a#1, %a#0) : ({M}, {M}) -> ({M}, {M})
  return %b#0, %b#1 : {M}, {M}
}}
"""


def arrays() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(-8, 8, (8, 8)).astype(np.float32) for _ in range(2)]


def test_results_lie_where_the_function_that_is_called_puts_them() -> None:
    """%x and %y are both written: what was called computed into its second argument."""
    x, y = arrays()
    found = judged(INTO + TWICE, ["x", "y"], [x, y], "sm_80")
    assert [array.tolist() for array in found] == [(x + x + y).tolist(), (x + y).tolist()]


def test_memory_that_is_called_with_changes() -> None:
    text = """func.func private @double(%m: memref<4x8xf32>) {
  linalg.add ins(%m, %m : memref<4x8xf32>, memref<4x8xf32>) outs(%m : memref<4x8xf32>)
  return
}
func.func @main(%x: memref<4x8xf32>) {
  call @double(%x) : (memref<4x8xf32>) -> ()
  call @double(%x) : (memref<4x8xf32>) -> ()
  return
}
"""
    x = arrays()[0][:4]
    (found,) = judged(text, ["x"], [x], "sm_80")
    np.testing.assert_array_equal(found, 4 * x)


def test_a_program_of_tiles_calls() -> None:
    text = """func.func private @load(%m: memref<32x32xf32>) -> !frag.tile<32x32xf32> {
  %c0 = arith.constant 0 : index
  %t = frag.load %m[%c0, %c0] : memref<32x32xf32> -> !frag.tile<32x32xf32>
  return %t : !frag.tile<32x32xf32>
}
func.func @main(%x: memref<32x32xf32>, %y: memref<32x32xf32>) {
  %c0 = arith.constant 0 : index
  %t = call @load(%x) : (memref<32x32xf32>) -> !frag.tile<32x32xf32>
  frag.store %t, %y[%c0, %c0] : !frag.tile<32x32xf32>, memref<32x32xf32>
  return
}
"""
    x = np.arange(1024, dtype=np.float32).reshape(32, 32)
    (found,) = judged(text, ["x"], [x], "sm_80")
    np.testing.assert_array_equal(found, x)


def test_a_function_that_is_called_may_be_compiled_alone() -> None:
    kernel = fragir.compile(INTO + TWICE, target="sm_80", entry="into")
    assert kernel.name == "into"
    assert fragir.compile(INTO + TWICE, target="sm_80").name == "main"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        (INTO.replace("%r = linalg.add", "%s:2 = call @into(%p, %q) : (M, M) -> (M, M)\n  %r = "
                      "linalg.add").replace("M", M) + TWICE, "@into calls itself", 2),
        (TWICE + f"func.func private @into({M}, {M}) -> ({M}, {M})\n", "@into has no body", 2),
    ],
    ids=["recursive", "declared"],
)  # fmt: skip
def test_what_cannot_be_called(text: str, message: str, line: int) -> None:
    with pytest.raises(FragirError, match=message) as caught:
        fragir.compile(text, target="sm_80", entry="main")
    assert caught.value.line == line
