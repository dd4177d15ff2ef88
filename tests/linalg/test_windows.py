"""Poolings: windows lie along memory as the results do, not along lanes, unless they are long."""

from typing import Any

import numpy as np
import pytest

import fragir
from tests.roofline.programs import named

Array = np.ndarray[Any, np.dtype[Any]]


def program(
    operation: str,
    image: tuple[int, ...],
    window: tuple[int, int],
    by: tuple[int, int],
    element: str,
) -> tuple[str, tuple[int, ...]]:
    """A pooling with a stride and a dilation, and the shape of what it gives."""
    stride, dilation = by
    at = operation.split("_")[1].index("h")
    result = list(image)
    for dim, size in enumerate(window, at):
        result[dim] = (image[dim] - dilation * (size - 1) - 1) // stride + 1
    shapes = ("x".join((*map(str, shape), element)) for shape in (image, window, result))
    first, second, third = shapes
    words = f"strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}>"
    text = named(operation, (first, second), third, f" {{{words} : tensor<2xi64>}}")
    return text, tuple(result)


def pooled(operation: str, x: Array, window: tuple[int, int], by: tuple[int, int]) -> Array:
    """The largest of, or the sums of, windows and zero."""
    stride, dilation = by
    at = operation.split("_")[1].index("h")
    views = np.lib.stride_tricks.sliding_window_view(
        x, [dilation * (size - 1) + 1 for size in window], axis=(at, at + 1)
    )[..., ::dilation, ::dilation]
    views = views[(slice(None),) * at + (slice(None, None, stride),) * 2]
    return np.maximum(views.max((-1, -2)), 0) if "max" in operation else views.sum((-1, -2))


@pytest.mark.parametrize(
    ("operation", "image", "window", "by"),
    [
        ("pooling_nhwc_max", (2, 11, 13, 19), (3, 2), (2, 1)),
        ("pooling_nhwc_sum", (2, 11, 13, 19), (3, 3), (1, 2)),
        ("pooling_nchw_sum", (2, 19, 11, 13), (3, 3), (2, 1)),
        ("pooling_nchw_max", (1, 1, 40, 40), (1, 33), (1, 1)),
        ("pooling_nhwc_sum", (3, 40, 40, 9), (40, 40), (40, 1)),
    ],
)
def test_poolings(
    operation: str, image: tuple[int, ...], window: tuple[int, int], by: tuple[int, int]
) -> None:
    text, shape = program(operation, image, window, by, "f32")
    kernel = fragir.compile(text, target="sm_80")
    x = np.random.default_rng(0).integers(-8, 9, image).astype(np.float32)
    y = np.zeros(shape, np.float32)
    assert not kernel(x, np.zeros(window, np.float32), y, on="emulator", check=True).findings
    np.testing.assert_array_equal(y, pooled(operation, x, window, by))


@pytest.mark.parametrize(
    ("operation", "image", "wide"),
    [
        ("pooling_nhwc_max", (32, 114, 114, 64), True),  # eight channels of a lane
        ("pooling_nchw_max", (32, 64, 114, 114), False),  # every second element of a row
    ],
)
def test_windows_fill_what_is_read(operation: str, image: tuple[int, ...], wide: bool) -> None:
    text, _ = program(operation, image, (3, 3), (2, 1), "f16")
    kernel = fragir.compile(text, target="sm_90a")
    assert ("ld.global.v4" in kernel.ptx) == wide
    assert "shfl" not in kernel.ptx
    assert all(one.factor < 1.7 for one in kernel.lint())  # 64 bytes are in five sectors, or six
