"""CuTe's layouts: read and printed.

CuTe writes a fragment as a (thread, value) layout: its two top-level modes map the thread and the
value to one index, the number of the element in the tile counted down the columns (M x N, the row
fastest). Given the tile's shape, that is a layout with the axes lane and element:

>>> c = from_cute("((4,8),(2,2)):((32,1),(16,8))", (16, 8))
>>> print(c)
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]
>>> to_cute(c)
'((4,8),(2,2)):((32,1),(16,8))'

Strides that are bases (`2@1` moves by two along dimension 1) say the coordinates themselves, so no
shape is needed:

>>> from_cute("((4,8),(2,2)):((2@1,1@0),(1@1,8@0))") == c
True
>>> to_cute(c, basis=True)
'((4,8),(2,2)):((2@1,1@0),(1@1,8@0))'

Static integers may be written as CuTe prints them, `_4`. A layout that CuTe maps to memory is read
with one dimension, and may have an offset and a swizzle before it:

>>> print(from_cute("(8,(4,2)):(16,(1,4))", dims=("element",), axes=("row", "col")))
row [8:16] col [8:1] dims (element)
>>> print(from_cute("Sw<3,4,3> o 0 o (8,128):(128,1)"))
row [8:^144] col [128:1]

What is no layout of digits, such as a swizzle over rows of 80, is a `LayoutChain`, which evaluates
and compares. In `Sw<3,4,3> o smem_ptr[16b](unset) o ...` the swizzle permutes bytes; it is read
as one of elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fragir.layout.arguments import names, point, shape_of, takes
from fragir.layout.chain import LayoutChain, chained
from fragir.layout.composition import compose
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, default_dims
from fragir.layout.shared import Swizzle
from fragir.layout.texts.cursor import Cursor
from fragir.layout.texts.cute_tree import Leaf, Term, cut, leaves, modes, read_terms

_FRAGMENT = ("lane", "element")
_INDEX = ("index",)


@takes(str)
def from_cute(
    text: str,
    shape: Point | None = None,
    *,
    axes: tuple[str, ...] | None = None,
    dims: tuple[str, ...] | None = None,
) -> Layout | LayoutChain:
    """The layout of a CuTe text; every top-level mode is the axis of that place.

    `shape` is the extent of the tile in every dimension, of which the first is counted fastest.
    With it, or with basis strides, the text is a fragment: its axes are lane and element, its
    dimensions row and col (`default_dims`). Otherwise it is memory, from row and col (`index` if
    there is one mode) to `index`. `axes` and `dims` name them otherwise; where only `dims` are
    named, the axes are lane and element.

    Raises LayoutError with the column for a syntax error, where shape and stride do not match,
    where there are not as many top-level modes as axes, and where an index lies outside of the tile
    or a mode runs across its border.
    """
    reader = _Reader(text)
    axes = None if axes is None else names(axes, "the axes")
    if shape is not None:
        shape = shape_of(shape, "the shape")
        dims = names(dims, "the dimensions") if dims else default_dims(len(shape))
        shape = point(shape, len(dims), "the shape", 1)
    elif dims is not None:
        dims = names(dims, "the dimensions")
        if not reader.paths and len(dims) > 1:
            raise LayoutError(f"A CuTe layout of a tile needs its shape ({', '.join(dims)}).")
    inner = chained(*reader.links(axes, dims, shape))
    if shape is None or isinstance(inner, LayoutChain):
        return inner
    return compose(counted(shape, dims or default_dims(len(shape))), inner).simplified()


class _Reader:
    """The parts of a text, and what they say together."""

    def __init__(self, text: str) -> None:
        self.cursor, self.terms = read_terms(text)
        self.inner = self.terms[-1]
        if self.inner.swizzle or self.inner.element_bits or self.inner.offset is not None:
            raise self.cursor.error("A composition ends in shape:stride.", self.inner.at)
        self.outer = next((term for term in self.terms if term.shape != ()), self.inner)
        self.paths = _paths(self.outer, self.cursor)

    def links(
        self, axes: tuple[str, ...] | None, dims: tuple[str, ...] | None, shape: Point | None
    ) -> list[Layout | Swizzle]:
        """Layouts and swizzles, outermost first."""
        axes = axes or self._axes(memory=shape is None and not self.paths and dims is None)
        alone = sum(term.shape != () for term in self.terms) == 1
        named = dims if shape is None else None
        found: list[Layout | Swizzle] = [self._layout(self.inner, axes, named if alone else None)]
        bits = 8
        for term in reversed(self.terms[:-1]):
            last = found[0]
            if term.offset is not None:
                if not isinstance(last, Layout) or last.rank != 1:
                    raise self.cursor.error("An offset is added to one number.", term.at)
                found[0] = replace(last, offset=(last.origin[0] + term.offset,))
            elif term.element_bits is not None:
                bits = term.element_bits
            elif term.swizzle is not None:
                found.insert(0, self._swizzle(term, bits))
            else:
                inner = _dims(found)
                found.insert(0, self._layout(term, inner, named if term is self.outer else None))
        return found

    def _axes(self, memory: bool) -> tuple[str, ...]:
        count = 1 if isinstance(self.inner.shape, Leaf) else len(self.inner.shape)
        if not memory:
            return _FRAGMENT
        return _INDEX if count == 1 else default_dims(count)

    def _swizzle(self, term: Term, bits: int) -> Swizzle:
        assert term.swizzle is not None
        count, base, shift = term.swizzle
        down = bits.bit_length() - 4  # elements of so many bytes: 2^down
        if bits & (bits - 1) or down < 0 or base < down:
            raise self.cursor.error(f"The swizzle moves parts of elements of {bits} bits.", term.at)
        try:
            return Swizzle(count, base - down, shift)
        except LayoutError as error:
            raise self.cursor.error(error.message, term.at) from error

    def _layout(self, term: Term, axes: tuple[str, ...], dims: tuple[str, ...] | None) -> Layout:
        """One shape:stride. Integers have the dimension `index` unless it is named."""
        sizes, strides, cursor = term.shape, term.stride, self.cursor
        text = cut(cursor.text[term.at :])
        if len(axes) == 1:
            sizes, strides = (sizes,), (strides,)
        if isinstance(sizes, Leaf) or isinstance(strides, Leaf) or len(sizes) != len(axes):
            raise cursor.error(
                f"{text} does not have {len(axes)} modes: ({', '.join(axes)}).", term.at
            )
        if len(strides) != len(sizes):
            raise cursor.error(
                f"Shape and stride of {text} have different numbers of modes.", term.at
            )
        paths = _paths(term, cursor)
        if dims is None:
            dims = _names(paths)
        if len(dims) != max(1, len(paths)):
            raise cursor.error(
                f"{text} has {max(1, len(paths))} dimensions, not ({', '.join(dims)}).", term.at
            )

        def mode(size: int, leaf: Leaf) -> Mode:
            if not paths:
                return Mode(size, (leaf.value,))
            return Mode(size, tuple(leaf.value * (leaf.path == path) for path in paths))

        return Layout(
            tuple(
                Axis(name, tuple(mode(*pair) for pair in modes(size, stride, cursor, term.at)))
                for name, size, stride in zip(axes, sizes, strides, strict=True)
            ),
            dims,
        )


def _dims(links: Sequence[Layout | Swizzle]) -> tuple[str, ...]:
    return next(link.dims for link in links if isinstance(link, Layout))


def _paths(term: Term, cursor: Cursor) -> list[Point]:
    """The coordinates that basis strides name, in order; none where strides are integers."""
    given = [leaf for leaf in leaves(term.stride) if leaf.value]
    paths = sorted({leaf.path for leaf in given if leaf.path})
    if not paths:
        return []
    for leaf in given:
        inside = next(
            (p for p in paths if p != leaf.path and p[: len(leaf.path)] == leaf.path), None
        )
        if inside is not None:
            raise cursor.error(
                "One stride is of a coordinate, another of a part of it or of a number.", leaf.at
            )
    if _flat(paths):
        return [(dim,) for dim in range(paths[-1][0] + 1)]
    return paths


def _flat(paths: Sequence[Point]) -> bool:
    return all(len(path) == 1 for path in paths)


def _names(paths: Sequence[Point]) -> tuple[str, ...]:
    """The dimensions of these coordinates: `row, col`, or `row_0, row_1, col` where they nest."""
    if not paths:
        return _INDEX
    count = max(path[0] for path in paths) + 1
    if count > 3:
        raise LayoutError(f"A layout of {count} coordinates needs names for them: dims=(...).")
    outer = default_dims(count)
    return tuple("_".join((outer[path[0]], *map(str, path[1:]))) for path in paths)


@takes(Layout)
def to_cute(layout: Layout, shape: Point | None = None, *, basis: bool = False) -> str:
    """The layout in CuTe's notation, its points numbered in a tile of this shape.

    The first dimension is counted fastest; without `shape`, the layout's own is taken. With `basis`
    strides say coordinates (`2@1`). A layout to one number may have an offset and a swizzle, which
    then stand before it. Raises LayoutError for a predicate, an offset or exclusive or that cannot
    be said so, and for a shape smaller than the layout.
    """
    from fragir.layout.texts.cute_writer import cute_text

    return cute_text(layout, shape, basis)


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
