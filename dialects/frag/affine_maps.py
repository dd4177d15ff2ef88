"""A memref's layout as strides or as an affine map, which xDSL and MLIR understand.

Exclusive or is no affine expression, but a bit of it is: the sum of bits, modulo two. So flipped
bits are taken out of the sum of the added digits and put back flipped. Of a coordinate d, the bit
of value p is (d floordiv p) mod 2.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir.affine import AffineExpr, AffineMap

from fragir.layout import Layout


def affine_map(layout: Layout) -> AffineMap:
    """From one coordinate an axis to the layout's one dimension.

    >>> print(affine_map(Layout.parse("row [64:72] col [64:1]")))
    (d0, d1) -> (((d0 * 72) + d1))
    """
    layout = layout.simplified()
    result = AffineExpr.constant(layout.origin[0])
    flips: dict[int, list[AffineExpr]] = {}
    for number, axis in enumerate(layout.axes):
        coordinate, place, size = AffineExpr.dimension(number), 1, axis.size
        for mode in axis.modes:
            if mode.xor:
                for bit, flipped in _bits(coordinate, place, mode.size, mode.step[0]):
                    flips.setdefault(bit, []).append(flipped)
            elif mode.step[0]:
                digit = _floor(coordinate, place)
                if place * mode.size < size:
                    digit = digit % mode.size
                result = result + digit * mode.stride[0]
            place *= mode.size
    total = result
    for bit, flipped in sorted(flips.items()):
        old = _floor(total, 1 << bit) % 2
        new = old
        for one in flipped:
            new = new + one
        result = result - old * (1 << bit) + new % 2 * (1 << bit)
    return AffineMap(len(layout.axes), 0, (result,))


def strides_of_layout(layout: Layout) -> tuple[int, ...] | None:
    """One stride an axis; None where an axis has no single one, or elements begin later on."""
    if layout.exclusive:
        layout = layout.simplified()
    if layout.exclusive or layout.offset:
        return None
    strides: list[int] = []
    for axis in layout.simplified().axes:
        if len(axis.modes) > 1:
            return None
        strides.append(axis.modes[0].stride[0] if axis.modes else 1)
    return tuple(strides)


def _bits(
    coordinate: AffineExpr, place: int, size: int, column: int
) -> Iterator[tuple[int, AffineExpr]]:
    """Which bits a flipped digit flips: (number of the bit, 0 or 1)."""
    for number in range(size.bit_length() - 1):
        moved = column << number
        for bit in range(moved.bit_length()):
            if moved >> bit & 1:
                yield bit, _floor(coordinate, place << number) % 2


def _floor(value: AffineExpr, divisor: int) -> AffineExpr:
    return value if divisor == 1 else value // divisor
