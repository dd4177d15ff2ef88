"""Operands of products that memory holds across K, by mma.sync: right for every type, transposition
and size, without conflicts of banks, in few instructions."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.passes.lowering.tile_access import neighbours
from fragir.passes.tiling.operand_layouts import spread_rows
from fragir.reference.formats import decode, encode

Array = npt.NDArray[Any]
NAMES = {"si8": "s8", "ui8": "u8", "f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
SUMS = {"si8": "i32", "ui8": "i32", "f64": "f64"}
TARGETS = {"f8E4M3FN": "sm_89", "f8E5M2": "sm_89"}
SIDES = list(product([False, True], repeat=2))  # A transposed, B transposed


def program(element: str, shapes: list[str], sides: tuple[bool, bool], tile: str = "") -> str:
    """C = A B of matrices with these shapes in memory."""
    out = SUMS.get(element, "f32")
    a, b = (f"memref<{shape}x{element}>" for shape in shapes[:2])
    c = f"memref<{shapes[2]}x{out}>"
    words = [" transposed" if side else "" for side in sides]
    at = f" {{tile = array<i64: {tile}>}}" if tile else ""
    return (
        f"func.func @gemm(%a: {a}, %b: {b}, %c: {c}) {{\n"
        f"  frag.matmul %a{words[0]}, %b{words[1]} into %c{at} : {a}, {b} into {c}\n"
        "  func.return\n}\n"
    )


def operand(rng: np.random.Generator, element: str, shape: tuple[int, int]) -> tuple[Array, Array]:
    """A matrix of small whole numbers, as stored and as it means."""
    values = rng.integers(0 if element == "ui8" else -3, 4, shape)
    name = NAMES.get(element, element)
    stored = encode(values.astype(np.float64), name)
    return stored, decode(stored, name).astype(np.float64)


def run(
    kernel: fragir.Kernel, element: str, sizes: tuple[int, int, int], sides: tuple[bool, bool]
) -> Any:
    """Runs a product with every check, compares it with numpy's, and gives the report."""
    rng = np.random.default_rng(sum(sizes))
    m, n, k = sizes
    a, left = operand(rng, element, (k, m) if sides[0] else (m, k))
    b, right = operand(rng, element, (n, k) if sides[1] else (k, n))
    types = {"i32": np.int32, "f64": np.float64, "f32": np.float32}
    c = np.zeros((m, n), types[SUMS.get(element, "f32")])
    report = kernel(a, b, c, on="emulator", check=True)
    assert report.findings == []
    expected = (left.T if sides[0] else left) @ (right.T if sides[1] else right)
    np.testing.assert_array_equal(c, expected)
    return report


def compiled(
    element: str,
    sizes: tuple[int, int, int] | None,
    sides: tuple[bool, bool],
    tile: str = "",
    target: str | None = None,
) -> fragir.Kernel:
    m, n, k = sizes or ("?", "?", "?")
    shapes = [f"{k}x{m}" if sides[0] else f"{m}x{k}", f"{n}x{k}" if sides[1] else f"{k}x{n}"]
    text = program(element, [*shapes, f"{m}x{n}"], sides, tile)
    return fragir.compile(text, target=target or TARGETS.get(element, "sm_80"))


@pytest.mark.parametrize(
    ("element", "sides"),
    [*product(["si8", "tf32", "f64"], SIDES), ("f8E4M3FN", (False, False))],
    ids=str,
)
def test_static_sizes(element: str, sides: tuple[bool, bool]) -> None:
    """Every access takes the passes that it needs; bytes come by ldmatrix only."""
    sizes = 64, 128, 128 if element == "si8" else 48
    kernel = compiled(element, sizes, sides)
    report = run(kernel, element, sizes, sides)
    conflicts = report.statistics.conflicts
    assert conflicts["passes"] == conflicts["passes_needed"]
    assert conflicts["sectors"] == conflicts["sectors_needed"]
    assert element in ("tf32", "f64") or "ld.shared" not in kernel.ptx


@pytest.mark.parametrize(
    ("element", "sides"),
    [("ui8", (False, False)), ("si8", (True, False)), ("f8E5M2", (True, True))],
)
def test_sizes_known_at_run_time(element: str, sides: tuple[bool, bool]) -> None:
    """No multiples of anything; columns of C that a lane has are stored one by one then."""
    kernel = compiled(element, None, sides, "64, 64, 64")
    for sizes in ((65, 67, 71), (3, 130, 64)):
        run(kernel, element, sizes, sides)


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize("size", [4, 8])
def test_rows_are_spread(size: int, width: int) -> None:
    """32 bytes of four rows in a row, 16 of eight, are in different banks, no place twice."""
    layout = spread_rows((2, 16, 256 // size), 8 * size, width)
    places: dict[tuple[int, ...], int] = {}
    for matrix, row, col in np.ndindex(2, 16, 256 // size):
        point = layout(matrix=matrix, row=row, col=col)
        assert point is not None
        places[matrix, row, col] = point[0]
    assert sorted(places.values()) == list(range(len(places)))
    for rows, together in ((4, 32), (8, 16)):
        for row in range(0, 16, rows):
            for col in range(0, 256 // size, together // size):
                words = {
                    places[1, row + r, col + c] % (128 // size)
                    for r in range(rows)
                    for c in range(together // size)
                }
                assert len(words) == 128 // size


def test_narrow_tiles() -> None:
    """Parts of warps that are no multiple of 16 columns are read as before."""
    sizes = 32, 8, 64
    kernel = compiled("si8", sizes, (False, False), "32, 8, 64")
    run(kernel, "si8", sizes, (False, False))
    assert "ld.shared" in kernel.ptx


def test_instructions_of_a_step() -> None:
    """Of the 128x128x64 product of bytes: a prmt for each register of B, none for A."""
    kernel = compiled("si8", (256, 256, 512), (False, False), "128, 128, 64")
    loops = re.findall(r"\$loop_\d+:(.*?)bra \$loop", kernel.ptx, re.S)
    count = {
        word: len(re.findall(rf"\b{word}\b", loops[-1])) for word in ("ldmatrix", "prmt", "mma")
    }
    assert count == {"ldmatrix": 16, "prmt": 32, "mma": 64}


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("order", ["8:2 2:1", "8:4 4:1"])
def test_tiles_in_another_order(element: str, order: str) -> None:
    """Neighbours in memory that are elements of several fragments are accessed together."""
    tile = f'!frag.tile<32x64x{element}, #frag.mma<m16n8k16.f16, c, warps = [2, 1], n = "{order}">>'
    memory = f"memref<32x64x{element}>"
    text = f"""
func.func @copy(%a: {memory}, %d: {memory}) attributes {{frag.warps = array<i64: 2, 1>}} {{
  %t = frag.load %a[0, 0] : {memory} -> {tile}
  frag.store %t, %d[0, 0] : {tile}, {memory}
  func.return
}}
"""
    kernel = fragir.compile(text)
    array = (
        np.arange(32 * 64).reshape(32, 64).astype(np.float32 if element == "f32" else np.float16)
    )
    found = np.zeros_like(array)
    kernel.launch(1, None, array, found, on="emulator", check=True)
    np.testing.assert_array_equal(found, array)
    assert "st.global.b" not in kernel.ptx.replace("st.global.b64", "")
    assert "ld.global.b" not in kernel.ptx.replace("ld.global.b64", "")


def test_neighbours() -> None:
    assert neighbours([(0, 0), (1, 0), (0, 1), (1, 1)], 1, 1, 4) == [[0, 2], [1, 3]]
    assert neighbours([(0, 1), (0, 2)], 1, 1, 2) == []  # no multiple of two begins them
    assert neighbours([(0, 0), (0, 1)], 1, 2, 2) == []  # nothing gained
