"""Reductions to few numbers, cut into parts; sums beside each other in memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compilation.kernel import Compiled
from tests.roofline.programs import reduction

TARGETS = ("sm_80", "sm_90a")
Array = np.ndarray[Any, np.dtype[Any]]


def ran(kernel: Compiled, *arrays: Array) -> None:
    """Runs with every check; nothing is found."""
    assert not kernel(*arrays, on="emulator", check=True).findings


def integers(shape: tuple[int, ...], seed: int = 0) -> Array:
    """Small whole numbers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    ("shape", "kept", "launches"),
    [
        ((65536,), (), 2),
        ((1, 98304), (0,), 2),
        ((3, 50000), (0,), 1),  # 600 KB are not worth a launch
        ((2, 100003), (0,), 2),
        ((32768, 8), (1,), 2),
        ((16384, 13), (1,), 2),
        ((8, 56, 56, 24), (3,), 2),
        ((8, 24, 56, 56), (1,), 1),  # few enough for 12 blocks
        ((600, 130), (1,), 1),
        ((7, 90, 130), (0, 2), 1),
        ((65537,), (), 2),  # a prime: no part of equal length
        ((40009, 8), (1,), 2),
    ],
)
def test_sums_are_right(
    shape: tuple[int, ...], kept: tuple[int, ...], launches: int, target: str
) -> None:
    kernel = fragir.compile(reduction("f", shape, kept), target=target)
    assert len(kernel.parts) == launches
    x = integers(shape)
    y = np.full([shape[d] for d in kept], np.nan, np.float32)
    ran(kernel, x, y)
    gone = tuple(d for d in range(len(shape)) if d not in kept)
    np.testing.assert_array_equal(y, x.sum(axis=gone))


BODIES: dict[str, tuple[str, str, Callable[[Array], Any]]] = {
    "maximumf": ("f32", "%s = arith.maximumf %a, %b : f32", lambda x: np.max(x)),
    "minimumf": ("f32", "%s = arith.minimumf %a, %b : f32", lambda x: np.min(x)),
    "squares": (
        "f32",
        "%q = arith.mulf %a, %a : f32\n    %s = arith.addf %b, %q : f32",
        lambda x: np.sum(x * x),
    ),
    "addi": ("i32", "%s = arith.addi %a, %b : i32", lambda x: np.sum(x)),
    "xori": ("i32", "%s = arith.xori %b, %a : i32", lambda x: np.bitwise_xor.reduce(x)),
}


@pytest.mark.parametrize("name", BODIES)
def test_what_memory_held_stays_part_of_it(name: str) -> None:
    element, body, expected = BODIES[name]
    text = f"""
func.func @f(%x: memref<131072x{element}>, %y: memref<{element}>) {{
  linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> ()>],
      iterator_types = ["reduction"]}}
      ins(%x : memref<131072x{element}>) outs(%y : memref<{element}>) {{
  ^bb0(%a: {element}, %b: {element}):
    {body}
    linalg.yield %s : {element}
  }}
  func.return
}}
"""
    kernel = fragir.compile(text, target="sm_90a")
    assert len(kernel.parts) == 2
    x = integers((131072,)).astype(np.float32 if element == "f32" else np.int32)
    y = np.array(100, x.dtype)
    ran(kernel, x, y)
    combined = {
        "squares": lambda: 100 + expected(x),
        "addi": lambda: 100 + expected(x),
        "xori": lambda: 100 ^ int(expected(x)),
        "maximumf": lambda: max(100, expected(x)),
        "minimumf": lambda: min(100, expected(x)),
    }
    assert y == combined[name]()


def test_a_norm_of_a_whole_array() -> None:
    text = """
#at = affine_map<(i, j) -> (i, j)>
#one = affine_map<(i, j) -> ()>
func.func @f(%x: tensor<256x512xf32>) -> tensor<256x512xf32> {
  %zero = arith.constant 0.0 : f32
  %n = arith.constant 131072.0 : f32
  %e = tensor.empty() : tensor<f32>
  %start = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %sum = linalg.generic {indexing_maps = [#at, #one], iterator_types = ["reduction", "reduction"]}
      ins(%x : tensor<256x512xf32>) outs(%start : tensor<f32>) {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<f32>
  %out = tensor.empty() : tensor<256x512xf32>
  %y = linalg.generic {indexing_maps = [#at, #one, #at], iterator_types = ["parallel", "parallel"]}
      ins(%x, %sum : tensor<256x512xf32>, tensor<f32>) outs(%out : tensor<256x512xf32>) {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %mean = arith.divf %b, %n : f32
    %d = arith.subf %a, %mean : f32
    linalg.yield %d : f32
  } -> tensor<256x512xf32>
  func.return %y : tensor<256x512xf32>
}
"""
    kernel = fragir.compile(text, target="sm_90a")
    x, y = integers((256, 512)), np.zeros((256, 512), np.float32)
    ran(kernel, x, y)
    np.testing.assert_allclose(y, x - x.mean(dtype=np.float64), atol=1e-6)
    assert not any(remark.cause == "sms" for remark in kernel.lint())


@pytest.mark.parametrize("target", TARGETS)
def test_softmax_over_the_first_dimension(target: str) -> None:
    text = """
func.func @f(%x: tensor<300x70xf32>) -> tensor<300x70xf32> {
  %e = tensor.empty() : tensor<300x70xf32>
  %r = linalg.softmax dimension(0) ins(%x : tensor<300x70xf32>)
      outs(%e : tensor<300x70xf32>) -> tensor<300x70xf32>
  func.return %r : tensor<300x70xf32>
}
"""
    kernel = fragir.compile(text, target=target)
    x, y = integers((300, 70)), np.zeros((300, 70), np.float32)
    ran(kernel, x, y)
    powers = np.exp(x.astype(np.float64) - x.max(axis=0))
    np.testing.assert_allclose(y, powers / powers.sum(axis=0), rtol=1e-5)


@pytest.mark.parametrize("target", TARGETS)
def test_lanes_lie_along_memory(target: str) -> None:
    """No request reads more sectors than its bytes fill, whichever dimension is summed."""
    for shape, kept in (((8192, 4096), (1,)), ((64, 512, 1024), (0, 2)), ((262144, 64), (1,))):
        kernel = fragir.compile(reduction("f", shape, kept), target=target)
        assert not kernel.lint()
