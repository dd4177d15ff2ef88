"""CuTe's layouts `shape:stride`: read and printed.

CuTe writes a fragment as a (thread, value) layout: its two top-level modes map the thread and the
value to one index, the number of the element in the tile counted down the columns (M x N, the row
fastest). Given the tile's shape, that is a layout with the axes lane and element:

>>> c = from_cute("((4,8),(2,2)):((32,1),(16,8))", (16, 8))
>>> print(c)
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
>>> to_cute(c)
'((4,8),(2,2)):((32,1),(16,8))'

Static integers may be written as CuTe prints them, `_4`. A layout that CuTe maps to memory is read
with one dimension:

>>> print(from_cute("(8,(4,2)):(16,(1,4))", dims=("element",), axes=("row", "col")))
row [8:16] col [8:1] dims (element)
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from fragir.layout.arguments import names, point, takes
from fragir.layout.composition import compose
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point

Tree = int | tuple["Tree", ...]


@takes(str)
def from_cute(
    text: str,
    shape: Point | None = None,
    *,
    axes: tuple[str, ...] = ("lane", "element"),
    dims: tuple[str, ...] = ("row", "col"),
) -> Layout:
    """The layout of a CuTe text; every top-level mode is the axis of that place.

    `shape` is the extent of the tile in every dimension, of which the first is counted fastest; it
    is needed unless there is one dimension. Raises LayoutError for a syntax error, where shape and
    stride do not match, where there are not as many top-level modes as axes, and where an index
    lies outside of the tile or a mode runs across its border.
    """
    axes, dims = names(axes, "the axes"), names(dims, "the dimensions")
    if shape is not None:
        shape = point(shape, len(dims), "the shape", 1)
    left, colon, right = text.partition(":")
    if not colon:
        raise LayoutError(f"A CuTe layout is shape:stride, but there is no ':' in {_cut(text)}.")
    sizes, strides = _parse(left), _parse(right)
    if len(axes) == 1:
        sizes, strides = (sizes,), (strides,)
    if not isinstance(sizes, tuple) or not isinstance(strides, tuple) or len(sizes) != len(axes):
        raise LayoutError(f"{_cut(text)} does not have {len(axes)} modes: ({', '.join(axes)}).")
    if len(strides) != len(sizes):
        raise LayoutError(f"Shape and stride of {_cut(text)} have different numbers of modes.")
    flat = Layout(
        tuple(
            Axis(name, tuple(_modes(size, stride, text)))
            for name, size, stride in zip(axes, sizes, strides, strict=True)
        ),
        ("index",),
    )
    if len(dims) == 1 and shape is None:
        return replace(flat, dims=dims).simplified()
    if shape is None or len(shape) != len(dims):
        raise LayoutError(f"A CuTe layout of a tile needs its shape ({', '.join(dims)}).")
    return compose(counted(shape, dims), flat).simplified()


@takes(Layout)
def to_cute(layout: Layout, shape: Point | None = None) -> str:
    """The layout in CuTe's notation, its points numbered in a tile of this shape.

    The first dimension is counted fastest; without `shape`, the layout's own is taken. Raises
    LayoutError for an offset or predicate, and for a shape smaller than the layout.
    """
    if layout.offset or layout.where:
        raise LayoutError(f"CuTe's notation has neither offset nor predicate: {layout}.")
    extents = layout.shape if shape is None else point(shape, layout.rank, "the shape", 1)
    if len(extents) != layout.rank or any(
        n < m for n, m in zip(extents, layout.shape, strict=True)
    ):
        raise LayoutError(f"The layout of shape {layout.shape} does not fit into {extents}.")
    place = 1
    places: list[int] = []
    for extent in extents:
        places.append(place)
        place *= extent
    sizes: list[Tree] = []
    strides: list[Tree] = []
    for axis in layout.axes:
        modes = axis.modes or (Mode(1, (0,) * layout.rank),)
        steps = [sum(s * p for s, p in zip(m.stride, places, strict=True)) for m in modes]
        sizes.append(modes[0].size if len(modes) == 1 else tuple(m.size for m in modes))
        strides.append(steps[0] if len(modes) == 1 else tuple(steps))
    if len(sizes) == 1:
        return f"{_text(sizes[0])}:{_text(strides[0])}"
    return f"{_text(tuple(sizes))}:{_text(tuple(strides))}"


def counted(shape: Point, dims: tuple[str, ...] = ("row", "col")) -> Layout:
    """The layout from an element's number in a tile to its coordinates, the first dim fastest.

    >>> print(counted((16, 8)))
    index [16:(1,0) 8:(0,1)]
    """
    modes = (
        Mode(extent, tuple(int(dim == other) for other in range(len(shape))))
        for dim, extent in enumerate(shape)
    )
    return Layout((Axis("index", tuple(modes)),), dims)


def _modes(size: Tree, stride: Tree, text: str) -> Iterator[Mode]:
    """The leaves of a mode in order; nesting says nothing about the function."""
    if isinstance(size, int) and isinstance(stride, int):
        yield Mode(size, (stride,))
    elif isinstance(size, tuple) and isinstance(stride, tuple) and len(size) == len(stride):
        pairs = zip(size, stride, strict=True)
        yield from chain.from_iterable(_modes(s, d, text) for s, d in pairs)
    else:
        raise LayoutError(f"Shape and stride of {_cut(text)} do not have the same nesting.")


def _text(tree: Tree) -> str:
    return str(tree) if isinstance(tree, int) else f"({','.join(map(_text, tree))})"


_TOKEN = re.compile(r"\s*(?:(_?\d{1,100})(?!\d)|([(),]))")
_DEEPEST = 32
"""Brackets within brackets; CuTe's own layouts have four or five."""


def _parse(text: str) -> Tree:
    """Nested tuples of integers."""
    open_: list[list[Tree]] = []
    done: Tree | None = None
    position, end = 0, len(text.rstrip())
    expected = "A number or ("
    while position < end:
        match = _TOKEN.match(text, position)
        if match is None:
            wrong = text[position:].lstrip()[0]
            raise LayoutError(f"{wrong!r} is not part of a CuTe layout.")
        sign, position = match[2], match.end()
        is_value = sign in (None, "(")
        if is_value != expected.startswith("A number"):
            raise LayoutError(f"{expected} is missing in the CuTe layout {_cut(text)}.")
        if sign == "(":
            open_.append([])
            if len(open_) > _DEEPEST:
                raise LayoutError(f"The CuTe layout has brackets more than {_DEEPEST} deep.")
            continue
        if sign == ",":
            expected = "A number or ("
            continue
        value: Tree = tuple(open_.pop()) if sign == ")" else int(match[1].strip("_"))
        if open_:
            open_[-1].append(value)
            expected = "A comma or )"
        elif text[position:end].strip():
            raise LayoutError(f"{_cut(text[position:end])} is left over in the CuTe layout.")
        else:
            done = value
    if done is None:
        raise LayoutError(f"{expected} is missing in the CuTe layout {_cut(text)}.")
    return done


def _cut(text: str) -> str:
    """A text in a message, cut where it is long."""
    text = text.strip()
    return repr(text if len(text) <= 80 else f"{text[:77]}...")
