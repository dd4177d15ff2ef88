"""Products of what lies anywhere: factors go through shared memory on their way to tensor cores."""

from typing import Any

import numpy as np
import pytest

import fragir
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


def test_many_large_tiles_do_not_spill() -> None:
    shapes = "32x58x58x64xf16", "3x3x64x128xf16"
    text = named("conv_2d_nhwc_hwcf", shapes, "32x56x56x128xf32")
    kernel = fragir.compile(text, target="sm_90a")
    assert kernel.assembled.entries[kernel.name].spill_stores == 0
    assert all(one.factor < 3 for one in kernel.lint())
