"""Matrices in shared memory as layouts, against the formula of the PTX ISA."""

from itertools import product

import pytest

from fragir.layout import Layout, LayoutError
from fragir.layout.shared import swizzled, swizzled_elements


def byte(rows: int, cols: int, bits: int, width: int, row: int, col: int) -> int:
    """PTX ISA 9.2, section 5.5.7: panels of `width` bytes, whose offsets are permuted."""
    pitch = width or cols * bits // 8
    panel, inside = divmod(col * bits // 8, pitch)
    whole = 1024 if width else 16
    x = row * pitch + inside
    if width:
        x ^= ((x >> 7) & (width // 16 - 1)) << 4
    return panel * -(-rows * pitch // whole) * whole + x


SHAPES = [(64, 64), (8, 64), (1, 8), (3, 32), (6, 16), (12, 64), (20, 96), (100, 200)]


@pytest.mark.parametrize("width", [0, 32, 64, 128])
@pytest.mark.parametrize(("rows", "cols"), SHAPES)
def test_every_element_stands_where_the_isa_says(rows: int, cols: int, width: int) -> None:
    for bits in (4, 8, 16, 32):
        counted = swizzled_elements((rows, cols), bits, width)
        some = product({*range(min(rows, 9)), rows // 2, rows - 1}, range(0, cols, 2))
        for row, col in some:
            at = {n: x for n, x in (("row", row), ("col", col)) if counted.size(n) > 1}
            wanted = byte(rows, cols, bits, width, row, col)
            assert counted(**at) == (wanted * 8 // bits,)
            if bits >= 8:
                assert swizzled((rows, cols), bits, width)(**at) == (wanted,)


def test_whole_matrices_come_first() -> None:
    stack = swizzled((3, 2, 12, 64), 16, 128)
    assert str(stack) == (
        "matrix [3:4096] matrix1 [2:2048] row [8:^144 2:1024] col [64:2] dims (byte)"
    )
    assert stack.shape[0] <= 3 * 2 * 2048


@pytest.mark.parametrize(
    ("shape", "bits", "width", "why"),
    [
        ((64, 64), 16, 16, "no 16-byte swizzle"),
        ((64,), 16, 128, "rows and columns"),
        ((8, 64), 4, 128, "do not begin at a byte"),
        ((8, 3), 4, 0, "do not begin at a byte"),
    ],
)
def test_what_is_no_matrix_in_shared_memory(
    shape: tuple[int, ...], bits: int, width: int, why: str
) -> None:
    with pytest.raises(LayoutError, match=why):
        swizzled(shape, bits, width)


def test_steps_are_counted_in_other_units() -> None:
    axis = Layout.parse("row [8:^72 3:512 1:7]").axis("row")
    bytes_ = axis.scaled(16, 8)
    assert str(bytes_) == "row [8:^144 3:1024]"
    assert str(bytes_.scaled(1, 2)) == "row [8:^72 3:512]"
    assert str(Layout.parse("row [4:5 2:1]").axis("row").scaled(3)) == "row [4:15 2:3]"
    with pytest.raises(LayoutError, match=r"Mode 8:\^72 of axis row has no steps 1/16 as long"):
        axis.scaled(1, 16)
    with pytest.raises(LayoutError, match=r"Mode 8:\^72 of axis row has no steps 3/1 as long"):
        axis.scaled(3)  # 72 ^ 144 is not three times 24 ^ 48 for every digit
