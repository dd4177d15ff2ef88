"""Products of what lies anywhere: factors go through shared memory, to tensor cores or to lanes.

These hold sums of several rows and columns.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.layout import Layout
from fragir.passes.structured.staged import register_layout
from fragir.toolchain.sass import disassemble
from fragir.toolchain.sass_loops import loops
from tests.roofline.programs import named

Array = np.ndarray[Any, np.dtype[Any]]


def images(shape: tuple[int, ...], seed: int) -> Array:
    """Small whole numbers, of which sums of products are exact."""
    return np.random.default_rng(seed).integers(-2, 3, shape).astype(np.float16)


def convolved(x: Array, f: Array) -> Array:
    """NHWC images with HWCF filters."""
    height, width = x.shape[1] - f.shape[0] + 1, x.shape[2] - f.shape[1] + 1
    y = np.zeros((x.shape[0], height, width, f.shape[3]), np.float32)
    for i in range(f.shape[0]):
        for j in range(f.shape[1]):
            part = x[:, i : i + height, j : j + width].astype(np.float32)
            y += part @ f[i, j].astype(np.float32)
    return y


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(
    ("image", "filters"),
    [
        ((2, 9, 11, 13), (3, 3, 13, 21)),
        ((1, 7, 8, 40), (2, 3, 40, 70)),
        ((3, 40, 40, 8), (1, 1, 8, 130)),
    ],
)
def test_convolutions(image: tuple[int, ...], filters: tuple[int, ...], target: str) -> None:
    height, width = image[1] - filters[0] + 1, image[2] - filters[1] + 1
    result = image[0], height, width, filters[3]
    shapes = ["x".join(map(str, shape)) for shape in (image, filters, result)]
    text = named("conv_2d_nhwc_hwcf", [f"{shape}xf16" for shape in shapes[:2]], f"{shapes[2]}xf32")
    kernel = fragir.compile(text, target=target)
    assert all(entry.spill_stores == 0 for entry in kernel.assembled.entries.values())
    x, f, y = images(image, 0), images(filters, 1), np.zeros(result, np.float32)
    assert not kernel(x, f, y, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, convolved(x, f))


@pytest.mark.parametrize(
    ("operation", "image", "filters", "result"),
    [
        ("conv_2d_nhwc_hwcf", (2, 11, 13, 40), (2, 3, 40, 70), (2, 10, 11, 70)),
        ("conv_2d_nhwc_hwcf", (1, 12, 13, 128), (1, 2, 128, 136), (1, 12, 12, 136)),
        ("conv_2d_nchw_fchw", (2, 5, 11, 13), (130, 5, 3, 2), (2, 130, 9, 12)),
        ("conv_2d_nhwc_fhwc", (2, 11, 13, 24), (70, 2, 3, 24), (2, 10, 11, 70)),
    ],
)
def test_convolutions_by_warpgroups(
    operation: str,
    image: tuple[int, ...],
    filters: tuple[int, ...],
    result: tuple[int, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Large tiles, which few blocks would have; what threads have written is fenced for wgmma."""
    monkeypatch.setattr("fragir.passes.structured.staged.BLOCKS", 1)
    inputs = text_of(image, "f16"), text_of(filters, "f16")
    kernel = fragir.compile(named(operation, inputs, text_of(result, "f32")), target="sm_90a")
    assert "wgmma" in kernel.ptx
    x, f = images(image, 0), images(filters, 1)
    y = np.zeros(result, np.float32)
    assert not kernel(x, f, y, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, MEANINGS[operation](x, f))


def test_many_large_tiles_do_not_spill() -> None:
    shapes = "32x58x58x64xf16", "3x3x64x128xf16"
    text = named("conv_2d_nhwc_hwcf", shapes, "32x56x56x128xf32")
    kernel = fragir.compile(text, target="sm_90a")
    entry = kernel.assembled.entries[kernel.name]
    assert entry.spill_stores == 0
    assert entry.registers <= 128  # so that an SM holds two blocks
    assert not kernel.lint()


# --- sums in registers ----------------------------------------------------------------------------


def numbers(shape: tuple[int, ...], type_: Any, seed: int) -> Array:
    """Small whole numbers, of which sums of products are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(type_)


def text_of(shape: tuple[int, ...], element: str) -> str:
    return "x".join((*map(str, shape), element))


@pytest.mark.parametrize(
    ("operation", "element", "m", "k", "n"),
    [
        ("matmul", "f32", 65, 37, 71),
        ("matmul_transpose_a", "f32", 70, 16, 130),
        ("matmul_transpose_b", "f32", 40, 50, 33),
        ("matmul", "f32", 1, 9, 1),
        ("matmul", "f32", 64, 0, 64),
        ("matmul", "f32", 0, 16, 5),
        ("matmul", "i32", 33, 24, 34),
        ("matmul", "f32", 1030, 17, 2050),
    ],
)
def test_products_without_tensor_cores(
    operation: str, element: str, m: int, k: int, n: int
) -> None:
    shapes = (
        (k, m) if operation.endswith("_a") else (m, k),
        (n, k) if operation.endswith("_b") else (k, n),
    )
    inputs = [text_of(shape, element) for shape in shapes]
    text = named(operation, inputs, text_of((m, n), element))
    kernel = fragir.compile(text, target="sm_80")
    type_ = np.float32 if element == "f32" else np.int32
    a, b = (numbers(shape, type_, seed) for seed, shape in enumerate(shapes))
    y = np.ones((m, n), type_)
    found = kernel(a, b, y, on="emulator", check=m < 1000)
    assert not (found.findings if m < 1000 else ())
    x, z = a.T if operation.endswith("_a") else a, b.T if operation.endswith("_b") else b
    np.testing.assert_array_equal(y, x @ z)


def test_sizes_of_a_product_that_only_the_launch_knows() -> None:
    kernel = fragir.compile(named("matmul", ("?x?xf32",) * 2, "?x?xf32"), target="sm_80")
    for m, k, n in ((70, 33, 91), (65, 16, 3), (1, 1, 1), (5, 0, 7), (0, 4, 4)):
        a, b = numbers((m, k), np.float32, 0), numbers((k, n), np.float32, 1)
        y = np.ones((m, n), np.float32)
        assert not kernel(a, b, y, on="emulator", check=True).findings
        np.testing.assert_array_equal(y, a @ b)


def test_what_is_combined_may_be_anything() -> None:
    """The shortest of all ways by two steps: sums, of which the least counts. Behind the end of
    what is reduced stands nothing that takes part."""
    kinds = '["parallel", "parallel", "reduction"]'
    maps = ", ".join(f"affine_map<(i, j, k) -> ({x})>" for x in ("i, k", "k, j", "i, j"))
    text = f"""
func.func @f(%x: memref<35x19xf32>, %z: memref<19x40xf32>, %y: memref<35x40xf32>) {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = {kinds}}}
      ins(%x, %z : memref<35x19xf32>, memref<19x40xf32>) outs(%y : memref<35x40xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    %m = arith.minimumf %c, %s : f32
    linalg.yield %m : f32
  }}
  func.return
}}
"""
    kernel = fragir.compile(text, target="sm_80")
    assert "st.shared" in kernel.ptx
    a, b = numbers((35, 19), np.float32, 0) + 20, numbers((19, 40), np.float32, 1) + 20
    y = np.full((35, 40), np.inf, np.float32)
    assert not kernel(a, b, y, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, (a[:, :, None] + b).min(axis=1))


def nchw(x: Array, f: Array) -> Array:
    return convolved(x.transpose(0, 2, 3, 1), f.transpose(2, 3, 1, 0)).transpose(0, 3, 1, 2)


def test_nothing_is_read_behind_an_end() -> None:
    """What the result holds at first, with a dimension of one element last: behind the end of a
    tile's columns begins the next row, which another block writes."""
    kinds = '["parallel", "parallel", "parallel", "reduction"]'
    maps = ", ".join(
        f"affine_map<(i, j, b, k) -> ({x})>" for x in ("b, i, k", "b, j, k", "i, j, b")
    )
    types = "memref<1x70x8xi32>, memref<1x70x8xi32>"
    text = f"""
func.func @f(%x: memref<1x70x8xi32>, %z: memref<1x70x8xi32>, %y: memref<70x70x1xi32>) {{
  linalg.generic {{indexing_maps = [{maps}], iterator_types = {kinds}}}
      ins(%x, %z : {types}) outs(%y : memref<70x70x1xi32>) {{
  ^bb0(%a: i32, %b: i32, %c: i32):
    %p = arith.muli %a, %b : i32
    %s = arith.addi %c, %p : i32
    linalg.yield %s : i32
  }}
  func.return
}}
"""
    kernel = fragir.compile(text, target="sm_80")
    assert "st.shared" in kernel.ptx
    a, b = numbers((1, 70, 8), np.int32, 0), numbers((1, 70, 8), np.int32, 1)
    y = numbers((70, 70, 1), np.int32, 2)
    wanted = y + (a[0] @ b[0].T)[:, :, None]
    assert not kernel(a, b, y, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, wanted)


def depthwise(x: Array, f: Array) -> Array:
    """NCHW images, of which each channel has its filter."""
    views = np.lib.stride_tricks.sliding_window_view(x, f.shape[1:], axis=(2, 3))
    return np.einsum("nchwij,cij->nchw", views, f)


MEANINGS: dict[str, Callable[[Array, Array], Array]] = {
    "conv_2d_nhwc_hwcf": convolved,
    "conv_2d_nhwc_fhwc": lambda x, f: convolved(x, f.transpose(1, 2, 3, 0)),
    "conv_2d_nchw_fchw": nchw,
    "depthwise_conv_2d_nchw_chw": depthwise,
}


@pytest.mark.parametrize(
    ("operation", "image", "filters", "result"),
    [
        ("conv_2d_nhwc_hwcf", (2, 9, 11, 13), (3, 3, 13, 21), (2, 7, 9, 21)),
        ("conv_2d_nhwc_hwcf", (1, 7, 8, 48), (2, 3, 48, 70), (1, 6, 6, 70)),
        ("conv_2d_nhwc_fhwc", (1, 7, 8, 24), (40, 2, 3, 24), (1, 6, 6, 40)),
        ("conv_2d_nchw_fchw", (2, 5, 11, 13), (40, 5, 3, 2), (2, 40, 9, 12)),
        ("depthwise_conv_2d_nchw_chw", (2, 5, 11, 13), (5, 3, 2), (2, 5, 9, 12)),
    ],
)
def test_convolutions_of_f32(
    operation: str, image: tuple[int, ...], filters: tuple[int, ...], result: tuple[int, ...]
) -> None:
    inputs = text_of(image, "f32"), text_of(filters, "f32")
    kernel = fragir.compile(named(operation, inputs, text_of(result, "f32")), target="sm_80")
    x, f = numbers(image, np.float32, 0), numbers(filters, np.float32, 1)
    y = np.zeros(result, np.float32)
    assert not kernel(x, f, y, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, MEANINGS[operation](x, f))


@pytest.mark.parametrize(
    ("operation", "filters", "element"),
    [
        ("conv_2d_nhwc_fhwc", "128x3x3x64x", "f16"),  # K lies along the rows of B's memory
        ("conv_2d_nhwc_fhwc", "128x3x3x64x", "f32"),
        ("conv_2d_nhwc_hwcf", "3x3x64x128x", "f32"),
    ],
)
def test_nothing_is_told_of_convolutions(operation: str, filters: str, element: str) -> None:
    inputs = f"32x58x58x64x{element}", filters + element
    kernel = fragir.compile(named(operation, inputs, "32x56x56x128xf32"), target="sm_90a")
    assert kernel.assembled.entries[kernel.name].spill_stores == 0
    assert not kernel.lint()


def test_lanes_multiply() -> None:
    """Of a main loop of f32 products nine instructions in ten are FFMA; each sum of 64 a lane takes
    16 bytes of each side four times a step."""
    text = named("matmul", ("4096x4096xf32",) * 2, "4096x4096xf32")
    kernel = fragir.compile(text, target="sm_90a")
    assembled = kernel.assembled
    (loop,) = loops(disassemble(assembled.cubin))
    counts = loop.counts
    assert (counts["FFMA"], counts["LDS"]) == (64 * 16, 4 * 16)
    assert counts["FFMA"] >= 0.9 * sum(counts.values())
    entry = assembled.entries[kernel.name]
    assert entry.spill_stores == 0
    assert entry.registers <= 128  # so that an SM holds two blocks
    assert not kernel.lint()


@pytest.mark.parametrize(
    ("shape", "warps", "bits", "expected"),
    [
        # columns: 4 of a lane, 8 lanes, 2 warps, twice; rows: 4 of a lane, 4 lanes, 4 warps, twice
        (
            (128, 128),
            (4, 2),
            32,
            "warp [4:(16,0) 2:(0,32)] lane [8:(0,4) 4:(4,0)]"
            " element [4:(0,1) 2:(0,64) 4:(1,0) 2:(64,0)]",
        ),
        # of 64 bits two make 16 bytes
        (
            (32, 32),
            (2, 2),
            64,
            "warp [2:(8,0) 2:(0,16)] lane [8:(0,2) 4:(2,0)] element [2:(0,1) 2:(1,0) 2:(16,0)]",
        ),
    ],
)
def test_where_sums_lie(
    shape: tuple[int, int], warps: tuple[int, int], bits: int, expected: str
) -> None:
    assert register_layout(shape, warps, bits) == Layout.parse(expected).simplified()


def test_few_sums_do_not_lie_so() -> None:
    assert register_layout((8, 128), (4, 2), 32) is None
