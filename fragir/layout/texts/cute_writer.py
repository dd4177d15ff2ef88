"""A layout in CuTe's notation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeAlias

from fragir.layout.arguments import point
from fragir.layout.chain import LayoutChain, chained, cute_swizzle
from fragir.layout.layout import Layout
from fragir.layout.modes import LayoutError, Mode, Point
from fragir.layout.shared import Swizzle

_Tree: TypeAlias = "str | tuple[_Tree, ...]"


def cute_text(layout: Layout, shape: Point | None, basis: bool) -> str:
    """The text of `to_cute`."""
    if layout.where or (layout.offset and (basis or layout.rank > 1)):
        raise LayoutError(f"CuTe's notation has neither offset nor predicate: {layout}.")
    if basis:
        return _plain(layout, _basis)
    places: list[int] = []
    if layout.rank > 1 or shape is not None:
        extents = layout.shape if shape is None else point(shape, layout.rank, "the shape", 1)
        if any(n < m for n, m in zip(extents, layout.shape, strict=True)):
            raise LayoutError(f"The layout of shape {layout.shape} does not fit into {extents}.")
        place = 1
        for extent in extents:
            places.append(place)
            place *= extent
    else:
        places.append(1)
        swizzle = _swizzle_before(layout)
        if swizzle is not None:
            plain = replace(swizzle[1], offset=())
            text = _plain(plain, lambda stride: str(stride[0]))
            return f"{cute_swizzle(swizzle[0])} o {swizzle[1].origin[0]} o {text}"
    text = _plain(
        layout, lambda stride: str(sum(s * p for s, p in zip(stride, places, strict=True)))
    )
    return f"{layout.origin[0]} o {text}" if layout.offset else text


def _plain(layout: Layout, number: Callable[[Point], str]) -> str:
    sizes: list[_Tree] = []
    strides: list[_Tree] = []
    for axis in layout.axes:
        modes = axis.modes or (Mode(1, (0,) * layout.rank),)
        wrong = next((mode for mode in modes if mode.xor), None)
        if wrong is not None:
            raise LayoutError(
                f"CuTe's notation cannot say mode {wrong} of axis {axis.name}: it is combined by "
                "exclusive or and no swizzle of all."
            )
        steps = [number(mode.stride) for mode in modes]
        sizes.append(_joined([str(mode.size) for mode in modes]))
        strides.append(_joined(steps))
    if len(sizes) == 1:
        return f"{_text(sizes[0])}:{_text(strides[0])}"
    return f"{_text(tuple(sizes))}:{_text(tuple(strides))}"


def _joined(items: list[str]) -> _Tree:
    return items[0] if len(items) == 1 else tuple(items)


def _text(tree: _Tree) -> str:
    return tree if isinstance(tree, str) else f"({','.join(map(_text, tree))})"


def _basis(stride: Point) -> str:
    moved = [(step, dim) for dim, step in enumerate(stride) if step]
    if not moved:
        return "0"
    if len(moved) > 1:
        raise LayoutError(f"CuTe's basis strides move along one dimension, but one is {stride}.")
    return f"{moved[0][0]}@{moved[0][1]}"


def _swizzle_before(layout: Layout) -> tuple[Swizzle, Layout] | None:
    """A swizzle and a layout of sums that together are this one; None where there are none."""
    if not any(mode.xor for axis in layout.axes for mode in axis.modes):
        return None
    for swizzle in _swizzles(layout):
        inner = chained(swizzle, layout)  # a swizzle is its own inverse
        if not isinstance(inner, LayoutChain) and not any(
            m.xor for a in inner.axes for m in a.modes
        ):
            return swizzle, inner
    return None


def _swizzles(layout: Layout) -> Iterator[Swizzle]:
    """The swizzles that could stand before it: a bit that a column has besides its highest."""
    bits = [
        column[0]
        for name in layout.names
        for column in layout.kernel.columns(name)
        if column[0] & (column[0] - 1)
    ]
    if not bits:
        return
    low = min((bit & -bit).bit_length() - 1 for bit in bits)
    for shift in sorted({bit.bit_length() - (bit & -bit).bit_length() for bit in bits}):
        for count in range(1, shift + 1):
            yield Swizzle(count, low, shift)
            yield Swizzle(count, low, -shift)


__all__ = ["cute_text"]
