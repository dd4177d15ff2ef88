"""Boxes of tensor maps from layouts, against the copies that the emulator makes."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np
import pytest

from fragir.errors import FragirError
from fragir.isa.tensor_boxes import tensor_boxes
from fragir.layout import Layout
from fragir.layout.shared import swizzled_elements
from tests.emulator.test_bulk_tensor import tile


@pytest.mark.parametrize(
    ("shape", "width"),
    [((64, 64), 128), ((16, 128), 128), ((12, 64), 64), ((8, 32), 32), ((32, 24), 0)],
)
def test_boxes_put_every_element_where_the_layout_does(shape: tuple[int, int], width: int) -> None:
    layout = swizzled_elements(shape, 16, width)
    boxes = tensor_boxes(layout, 16)
    rows, cols = boxes.box
    array = np.arange(64 * 256, dtype=np.uint16).reshape(64, 256)
    memory: dict[int, int] = {}
    for number, start in enumerate(boxes.panels):
        swizzle = cast("Literal[0, 32, 64, 128]", boxes.swizzle)
        copied, _ = tile(array, boxes.box, (0, number * cols), swizzle)
        memory |= {start // 2 + at: int(value) for at, value in enumerate(copied.ravel())}
    assert rows >= shape[0]
    for row in range(shape[0]):
        for col in range(shape[1]):
            place = layout(row=row, col=col)
            assert place is not None
            assert memory[place[0]] == array[row, col]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("row [64:72] col [64:1]", "no box of a tensor map fills"),
        ("row [64:1] col [64:64]", "no box of a tensor map fills"),
        ("row [64:^72] col [64:1]", "no box of a tensor map fills"),
        ("row [8:^72 64:512] col [64:1]", "its sides are 256 at most"),
        ("row [64:64] col [64:1] where row%2==0", "is no matrix of whole bytes"),
    ],
)
def test_other_layouts_are_refused(text: str, message: str) -> None:
    with pytest.raises(FragirError, match=message):
        tensor_boxes(Layout.parse(text), 16)
