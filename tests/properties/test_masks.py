"""Masked accesses at any index, negative and near 2^31 too, against numpy.

What lies outside reads as 0 or as the given value, and is not written. The emulator ends a run that
touches anything outside of a buffer.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import fragir
from fragir.compiler import Kernel

from .judge import judge

ROWS, COLS = 16, 32
TYPES = {"f32": np.float32, "f16": np.float16, "i8": np.int8}
Array = np.ndarray[Any, np.dtype[Any]]

HEAD = "func.func @f(%a: memref<{a}>, %c: memref<{c}>, %i: index, %j: index) {{"
LOAD = """
  %t = frag.load %a[%i, %j] {how} masked : memref<{a}> -> !frag.tile<16x32x{type}>
  frag.store %t, %c[0, 0] : !frag.tile<16x32x{type}>, memref<{c}>"""
STORE = """
  %t = frag.load %a[0, 0] : memref<{a}> -> !frag.tile<16x32x{type}>
  frag.store %t, %c[%i, %j] {how} masked : !frag.tile<16x32x{type}>, memref<{c}>"""
COPY = """
  %s = memref.alloc() : memref<16x32x{type}, #frag.shared<swizzle = {swizzle}>>
  frag.copy {how} %a[%i, %j] to %s[] masked
    : memref<{a}> to memref<16x32x{type}, #frag.shared<swizzle = {swizzle}>>
  frag.commit
  frag.wait 0
  frag.barrier
  %t = frag.load %s[0, 0]
    : memref<16x32x{type}, #frag.shared<swizzle = {swizzle}>> -> !frag.tile<16x32x{type}>
  frag.store %t, %c[0, 0] : !frag.tile<16x32x{type}>, memref<{c}>"""
SHARED = """
  %s = memref.alloc() : memref<24x64x{type}, #frag.shared<swizzle = {swizzle}>>
  frag.copy %a[0, 0] to %s[]
    : memref<{a}> to memref<24x64x{type}, #frag.shared<swizzle = {swizzle}>>
  frag.barrier
  %t = frag.load %s[%i, %j] {how} masked
    : memref<24x64x{type}, #frag.shared<swizzle = {swizzle}>> -> !frag.tile<16x32x{type}>
  frag.store %t, %c[0, 0] : !frag.tile<16x32x{type}>, memref<{c}>"""
END = "\n  func.return\n}}"


@cache
def kernel(body: str, target: str, **words: Any) -> Kernel:
    return fragir.compile((HEAD + body + END).format(**words), target=target)


def window(
    array: Array, i: int, j: int, rows: int = ROWS, cols: int = COLS, other: float = 0
) -> Array:
    """The part of an array at (i, j), `other` where there is none."""
    result = np.full((rows, cols), other, array.dtype)
    for r in range(rows):
        for c in range(cols):
            if 0 <= i + r < array.shape[0] and 0 <= j + c < array.shape[1]:
                result[r, c] = array[i + r, j + c]
    return result


def content(rows: int, cols: int, name: str) -> Array:
    numbers = np.arange(1, rows * cols + 1)
    return (numbers % 113 + 1).reshape(rows, cols).astype(TYPES[name])


# where tiles of 16 x 32 and arrays of some 20 x 40 meet, and where sums wrap around
EDGES = [-(2**31), -(2**31) + 7, 2**31 - 1, 2**31 - 16, 2**30, -(2**30)]
INDEX = st.one_of(st.integers(-34, 42), st.sampled_from([-32, -16, -8, -1, 0, 8, 16]))
INDICES = st.one_of(st.tuples(INDEX, INDEX), st.tuples(INDEX, st.sampled_from(EDGES)),
                    st.tuples(st.sampled_from(EDGES), INDEX))  # fmt: skip
few = settings(max_examples=6, deadline=None)


def launch(made: Kernel, a: Array, c: Array, i: int, j: int) -> None:
    made.launch((1, 1, 1), None, a, c, i, j, on="emulator")


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("extents", ["?x?", "24x64"])
@given(INDICES)
@example((-1, 0))
@example((0, -1))
@few
def test_loads(name: str, extents: str, at: tuple[int, int]) -> None:
    a, c = content(24, 64 if extents == "24x64" else 41, name), content(ROWS, COLS, name)
    words = {"a": f"{extents}x{name}", "c": f"16x32x{name}", "type": name, "how": ""}
    launch(kernel(LOAD, "sm_80", **words), a, c, *at)
    assert np.array_equal(c, window(a, *at))


@pytest.mark.parametrize("name", ["f16", "f32"])
@given(INDICES)
@few
def test_transposed_loads(name: str, at: tuple[int, int]) -> None:
    a, c = content(24, 41, name), content(ROWS, COLS, name)
    words = {"a": f"?x?x{name}", "c": f"16x32x{name}", "type": name, "how": "transposed"}
    launch(kernel(LOAD, "sm_80", **words), a, c, *at)
    assert np.array_equal(c, window(a, *at, COLS, ROWS).T)


#: Type -> a value as the IR writes it, and as numpy has it.
OTHER = {"f32": ("-12.0", -12.0), "f16": ("0xFC00", -np.inf), "i8": ("-7", -7)}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("extents", ["?x?", "24x64"])
@pytest.mark.parametrize("how", ["", "transposed"])
@given(INDICES)
@example((-1, -8))
@example((20, 60))
@settings(max_examples=3, deadline=None)
def test_another_value_outside(name: str, extents: str, how: str, at: tuple[int, int]) -> None:
    """A constant, in wide accesses and narrow ones."""
    a, c = content(24, 64 if extents == "24x64" else 41, name), content(ROWS, COLS, name)
    written, number = OTHER[name]
    body = f"\n  %x = arith.constant {written} : {name}" + LOAD.replace("masked", "masked other %x")
    words = {"a": f"{extents}x{name}", "c": f"16x32x{name}", "type": name, "how": how}
    shape = (COLS, ROWS) if how else (ROWS, COLS)
    wanted = window(a, *at, *shape, other=number)
    launch(kernel(body, "sm_80", **words), a, c, *at)
    assert np.array_equal(c, wanted.T if how else wanted)


@pytest.mark.parametrize("extents", ["?", "1x?", "?x1"])
def test_another_value_beside_a_broadcast(extents: str) -> None:
    """An argument of the kernel; the reference agrees."""
    at = "%i" if extents == "?" else "%i, %j"
    text = f"""
    func.func @f(%a: memref<{extents}xf32>, %c: memref<16x32xf32>, %x: f32, %i: index, %j: index) {{
      %t = frag.load %a[{at}] masked other %x broadcast
        : memref<{extents}xf32> -> !frag.tile<16x32xf32>
      frag.store %t, %c[0, 0] : !frag.tile<16x32xf32>, memref<16x32xf32>
      func.return
    }}"""
    made = judge(text, "sm_80", {"a_d0": 9, "a_d1": 9}, scalars={"x": 5.5, "i": 0, "j": 0})
    assert made.ptx.count("ld.global") > 0


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("extents", ["?x?", "24x64"])
@given(INDICES)
@example((-1, -8))
@few
def test_stores(name: str, extents: str, at: tuple[int, int]) -> None:
    a, c = content(ROWS, COLS, name), -content(24, 64 if extents == "24x64" else 41, name)
    words = {"a": f"16x32x{name}", "c": f"{extents}x{name}", "type": name, "how": ""}
    expected = c.copy()
    for r in range(ROWS):
        for column in range(COLS):
            x, y = at[0] + r, at[1] + column
            if 0 <= x < c.shape[0] and 0 <= y < c.shape[1]:
                expected[x, y] = a[r, column]
    launch(kernel(STORE, "sm_80", **words), a, c, *at)
    assert np.array_equal(c, expected)


@pytest.mark.parametrize(("target", "how"), [("sm_80", "async"), ("sm_80", ""), ("sm_75", "")])
@pytest.mark.parametrize(("swizzle", "name"), [(64, "f16"), (0, "f32")])
@pytest.mark.parametrize("extents", ["?x?", "24x64"])
@given(INDICES)
@example((0, -8))
@few
def test_copies(
    target: str, how: str, swizzle: int, name: str, extents: str, at: tuple[int, int]
) -> None:
    a, c = content(24, 64 if extents == "24x64" else 41, name), content(ROWS, COLS, name)
    words = {"a": f"{extents}x{name}", "c": f"16x32x{name}", "type": name}
    launch(kernel(COPY, target, how=how, swizzle=swizzle, **words), a, c, *at)
    assert np.array_equal(c, window(a, *at))


@pytest.mark.parametrize("swizzle", [0, 128])
@given(INDICES)
@example((-1, -8))
@few
def test_loads_from_shared_memory(swizzle: int, at: tuple[int, int]) -> None:
    a, c = content(24, 64, "f16"), content(ROWS, COLS, "f16")
    words = {"a": "24x64xf16", "c": "16x32xf16", "type": "f16", "how": ""}
    launch(kernel(SHARED, "sm_80", swizzle=swizzle, **words), a, c, *at)
    assert np.array_equal(c, window(a, *at))


@pytest.mark.parametrize("at", [(-1, 0), (-9, -2), (3, -32), (20, 40), (0, 2), (-40, 0)])
def test_static_indices(at: tuple[int, int]) -> None:
    i, j = at
    a, c = content(24, 64, "f32"), content(ROWS, COLS, "f32")
    body = LOAD.replace("%i, %j", f"{i}, {j}")
    words = {"a": "24x64xf32", "c": "16x32xf32", "type": "f32", "how": ""}
    launch(kernel(body, "sm_80", **words), a, c, 0, 0)
    assert np.array_equal(c, window(a, *at))


@given(INDEX, st.integers(-6, 8))
@few
def test_packed_elements(i: int, pairs: int) -> None:
    """Two s4 to a byte, at an even column."""
    j = 8 * pairs
    a = np.arange(24 * 16, dtype=np.uint8).reshape(24, 16)
    c = np.full((16, 32), 77, np.uint8)
    words = {"a": "24x32xsi4", "c": "16x64xsi4"}
    made = kernel(
        """
  %eight = arith.constant 8 : index
  %k = arith.muli %j, %eight : index
  %t = frag.load %a[%i, %k] masked : memref<{a}> -> !frag.tile<16x64xsi4>
  frag.store %t, %c[0, 0] : !frag.tile<16x64xsi4>, memref<{c}>""",
        "sm_80",
        **words,
    )
    launch(made, a, c, i, pairs)
    assert np.array_equal(c, window(a, i, j // 2, 16, 32))
