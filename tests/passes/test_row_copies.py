"""Copies into shared memory of rows at every alignment: `cp.async` of 16, 8 and 4 bytes, and words
shifted in registers; sizes known when compiled, promised, or known at run time only."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir

from ..families.programs import random

Array = npt.NDArray[Any]
SIZES = {"f16": 2, "si8": 1, "tf32": 4, "f64": 8}
WARPS = (2, 1)


def program(
    element: str,
    matrix: str,
    tile: tuple[int, int],
    at: tuple[str, str],
    *,
    swizzle: int = 0,
    promise: str = "",
    masked: bool = True,
) -> str:
    """Copies a tile from (i, j) of a matrix to shared memory, and from there to D."""
    rows, cols = tile
    space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
    shared = f"memref<{rows}x{cols}x{element}, {space}>"
    held = f"!frag.tile<{rows}x{cols}x{element}>"
    result = f"memref<{rows}x{cols}x{element}>"
    word = " masked" if masked else ""
    return f"""
func.func @copy(%a: {matrix} {{frag.sizes = ["m", "n"]}}, %d: {result}, %i: index, %j: index)
    attributes {{frag.warps = array<i64: {WARPS[0]}, {WARPS[1]}>{promise}}} {{
  %s = memref.alloc() : {shared}
  frag.copy async %a[{at[0]}, {at[1]}] to %s[]{word} : {matrix} to {shared}
  frag.commit
  frag.wait 0
  frag.barrier
  %t = frag.load %s[0, 0] : {shared} -> {held}
  frag.store %t, %d[0, 0] : {held}, {result}
  func.return
}}
"""


def part(array: Array, tile: tuple[int, int], i: int, j: int) -> Array:
    """The tile at (i, j), zeros outside of the array."""
    result = np.zeros(tile, array.dtype)
    for row in range(tile[0]):
        for col in range(tile[1]):
            if 0 <= i + row < array.shape[0] and 0 <= j + col < array.shape[1]:
                result[row, col] = array[i + row, j + col]
    return result


def copied(kernel: fragir.Kernel, array: Array, tile: tuple[int, int], i: int, j: int) -> None:
    """Runs a copy and compares every bit; the emulator refuses accesses outside of the array."""
    found = np.ones(tile, array.dtype)
    report = kernel.launch(1, None, array, found, i, j, on="emulator", check=True)
    assert report.findings == []
    np.testing.assert_array_equal(found, part(array, tile, i, j))


@pytest.mark.parametrize(
    ("element", "swizzle"), [("f16", 64), ("si8", 0), ("tf32", 64), ("f64", 0)]
)
def test_sizes_known_at_run_time(element: str, swizzle: int) -> None:
    """Every remainder of the row's length, the tile inside, at an edge, and beyond."""
    size = SIZES[element]
    tile = (24, 128 // size)
    kernel = fragir.compile(
        program(element, f"memref<?x?x{element}>", tile, ("%i", "%j"), swizzle=swizzle)
    )
    rng = np.random.default_rng(1)
    cols = tile[1]
    for extra in (0, 1, 2):
        for i, j in ((3, cols), (20, 1), (0, -3)):
            array = random(rng, element, (27, 2 * cols + extra))
            copied(kernel, array, tile, i, j)
    for shape in ((1, 1), (30, 5)):
        copied(kernel, random(rng, element, shape), tile, 0, 0)


@pytest.mark.parametrize(
    ("element", "cols", "widths", "words"),
    [
        ("f16", 64, {16}, False),
        ("f16", 68, {8}, False),
        ("f16", 70, {4}, False),
        ("f16", 71, set[int](), True),
        ("si8", 72, {8}, False),
        ("si8", 76, {4}, False),
        ("si8", 74, set[int](), True),
        ("tf32", 66, {8}, False),
        ("tf32", 67, {4}, False),
        ("f64", 67, {8}, False),
    ],
    ids=str,
)
def test_static_sizes(element: str, cols: int, widths: set[int], words: bool) -> None:
    """One way only where the size is known, the widest that it allows."""
    tile = (16, 64)
    kernel = fragir.compile(program(element, f"memref<20x{cols}x{element}>", tile, ("%i", "0")))
    found = {
        int(n) for n in re.findall(r"cp\.async\.c.\.shared\.global [^;]*\], (\d+)", kernel.ptx)
    }
    assert found == widths
    assert ("prmt" in kernel.ptx) is words
    array = random(np.random.default_rng(2), element, (20, cols))
    for i in (0, 3, 19):
        copied(kernel, array, tile, i, 0)


@pytest.mark.parametrize(("by", "width"), [(2, 4), (4, 8)])
def test_promises(by: int, width: int) -> None:
    """What divides a size decides, too; only whether rows begin at 16 bytes is asked."""
    tile = (16, 64)
    promise = f", frag.divisible = {{n = {by}}}"
    kernel = fragir.compile(program("f16", "memref<?x?xf16>", tile, ("%i", "0"), promise=promise))
    assert f", {width}" in kernel.ptx
    assert "prmt" not in kernel.ptx
    for cols in (by, 64 + by, 128):
        copied(kernel, random(np.random.default_rng(3), "f16", (20, cols)), tile, 1, 0)


@pytest.mark.parametrize("element", ["f16", "si8"])
def test_rows_apart(element: str) -> None:
    """A tile that is all inside of rows of odd length: the last row ends with the memory."""
    tile, stride = (16, 64), 71
    matrix = f"memref<16x64x{element}, strided<[{stride}, 1]>>"
    kernel = fragir.compile(program(element, matrix, tile, ("0", "0"), masked=False))
    room = random(np.random.default_rng(4), element, (16, stride))
    array = np.lib.stride_tricks.as_strided(
        room.ravel()[: 15 * stride + 64], (16, 64), (stride * room.itemsize, room.itemsize)
    )
    copied(kernel, array, tile, 0, 0)


def test_without_cp_async() -> None:
    """Machines without cp.async shift words, too."""
    tile = (16, 64)
    kernel = fragir.compile(program("f16", "memref<?x?xf16>", tile, ("%i", "%j")), target="sm_75")
    for cols in (64, 65, 66, 71):
        copied(kernel, random(np.random.default_rng(5), "f16", (20, cols)), tile, 2, 0)


@pytest.mark.parametrize("element", ["f16", "si8"])
def test_products_of_every_remainder(element: str) -> None:
    """Products whose K and N are no multiples of anything, against numpy."""
    out = "i32" if element == "si8" else "f32"
    text = f"""
func.func @gemm(%a: memref<?x?x{element}>, %b: memref<?x?x{element}>, %c: memref<?x?x{out}>) {{
  frag.matmul %a, %b into %c {{tile = array<i64: 64, 64, 32>}}
      : memref<?x?x{element}>, memref<?x?x{element}> into memref<?x?x{out}>
  func.return
}}
"""
    kernel = fragir.compile(text, target="sm_80")
    rng = np.random.default_rng(6)
    for m, n, k in ((65, 67, 71), (3, 66, 34)):
        a, b = (random(rng, element, shape) for shape in ((m, k), (k, n)))
        a, b = (np.round(x.astype(np.float32)).astype(x.dtype) for x in (a, b))
        c = np.zeros((m, n), np.int32 if out == "i32" else np.float32)
        kernel(a, b, c, on="emulator", check=True)
        np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
