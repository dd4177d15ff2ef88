"""The largest or smallest number and where it is: many at a time, the first of several alike."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import fragir

Array = np.ndarray[Any, np.dtype[Any]]


def best(
    shape: Sequence[int],
    kept: Sequence[int],
    *,
    element: str = "f32",
    compare: str = "cmpf ogt",
    value: str = "%m = arith.select %g, %a, %v : {e}",
    gone: int = 1,
) -> str:
    """The best number over the dimensions that are not kept, and its place along one of them."""
    loops = ", ".join(f"d{d}" for d in range(len(shape)))
    result = ", ".join(f"d{d}" for d in kept)
    kinds = ", ".join('"parallel"' if d in kept else '"reduction"' for d in range(len(shape)))
    held = "".join(f"{shape[d]}x" for d in kept)
    maps = f"affine_map<({loops}) -> ({loops})>, " + ", ".join(
        [f"affine_map<({loops}) -> ({result})>"] * 2
    )
    return f"""
func.func @f(%x: memref<{"x".join(map(str, shape))}x{element}>,
             %y: memref<{held}{element}>, %i: memref<{held}i64>) {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%x : memref<{"x".join(map(str, shape))}x{element}>)
      outs(%y, %i : memref<{held}{element}>, memref<{held}i64>) {{
  ^bb0(%a: {element}, %v: {element}, %at: i64):
    %j = linalg.index {gone} : index
    %k = arith.index_cast %j : index to i64
    %g = arith.{compare}, %a, %v : {element}
    {value.format(e=element)}
    %n = arith.select %g, %k, %at : i64
    linalg.yield %m, %n : {element}, i64
  }}
  func.return
}}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("shape", "kept", "gone"),
    [((7, 333), (0,), 1), ((333, 7), (1,), 0), ((3, 2100), (0,), 1), ((2, 100, 40), (0, 2), 1)],
)
@pytest.mark.parametrize("name", ["max", "min", "select", "integers"])
def test_best_and_place(
    name: str, shape: tuple[int, ...], kept: tuple[int, ...], gone: int, target: str
) -> None:
    smallest = name == "min"
    ways: dict[str, dict[str, str]] = {
        "max": {"value": "%m = arith.maximumf %a, %v : {e}"},
        "min": {"compare": "cmpf olt", "value": "%m = arith.minimumf %v, %a : {e}"},
        "select": {},
        "integers": {"element": "i32", "compare": "cmpi sgt"},
    }
    kernel = fragir.compile(best(shape, kept, gone=gone, **ways[name]), target=target)
    generator = np.random.default_rng(1)
    # few different numbers, so that the best one is there several times
    x = generator.integers(-9, 10, shape).astype(np.int32 if name == "integers" else np.float32)
    start = 100 if smallest else -100
    y = np.full([shape[d] for d in kept], start, x.dtype)
    i = np.full(y.shape, 77, np.int64)
    assert not kernel(x, y, i, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, x.min(axis=gone) if smallest else x.max(axis=gone))
    np.testing.assert_array_equal(i, x.argmin(axis=gone) if smallest else x.argmax(axis=gone))


def test_what_memory_held_is_the_first() -> None:
    kernel = fragir.compile(best((4, 700), (0,)), target="sm_80")
    x = np.random.default_rng(2).integers(0, 5, (4, 700)).astype(np.float32)
    y = np.array([9, 4, -1, 4], np.float32)
    i = np.array([50, 51, 52, 53], np.int64)
    kernel(x, y, i, on="emulator")
    np.testing.assert_array_equal(y, [9, 4, 4, 4])
    np.testing.assert_array_equal(i, [50, 51, x[2].argmax(), 53])


def test_a_nan_stays_where_it_does_in_a_maximum() -> None:
    text = best((2, 900), (0,), value="%m = arith.maximumf %a, %v : {e}")
    kernel = fragir.compile(text, target="sm_80")
    x = np.zeros((2, 900), np.float32)
    x[0, 456] = np.nan
    y, i = np.full(2, -np.inf, np.float32), np.zeros(2, np.int64)
    kernel(x, y, i, on="emulator")
    np.testing.assert_array_equal(y, [np.nan, 0])


@pytest.mark.parametrize(
    ("shape", "kept", "gone"), [((200003,), (), 0), ((2, 60000), (0,), 1), ((50000, 3), (1,), 0)]
)
def test_long_ones_are_cut_into_parts(
    shape: tuple[int, ...], kept: tuple[int, ...], gone: int
) -> None:
    kernel = fragir.compile(best(shape, kept, gone=gone), target="sm_90a")
    assert len(kernel.parts) == 2
    x = np.random.default_rng(3).integers(0, 5000, shape).astype(np.float32)
    y = np.full([shape[d] for d in kept], -1, np.float32)
    i = np.full(y.shape, -7, np.int64)
    assert not kernel(x, y, i, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, x.max(axis=gone))
    np.testing.assert_array_equal(i, x.argmax(axis=gone))


def test_it_is_no_longer_one_lane_a_row() -> None:
    kernel = fragir.compile(best((64, 32000), (0,)), target="sm_90a")
    assert all(one.factor < 2 for one in kernel.lint())
