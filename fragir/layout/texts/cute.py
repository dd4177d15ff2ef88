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

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from fragir.layout.arguments import require_names, require_point, require_shape, takes
from fragir.layout.chain import LayoutChain, chained, cute_swizzle
from fragir.layout.composition import compose
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point, default_dims
from fragir.layout.shared import Swizzle
from fragir.layout.texts.encoding import Cursor

# -- cute tree -------------------------------------------------------------------------------------
# CuTe's texts as trees: `shape:stride`, basis strides `2@1`, swizzles, parts joined by `o`.
#
# (8,(4,2)):(16,(1,4))                      integers ((4,8),2):((2@1,1@0),1@1)
# coordinates: E<1>{} is 1@1, E<0,1>{} is 1@1@0 Sw<3,4,3> o 0 o (8,64):(64,1)             a swizzle,
# an offset, a layout; `S<3,4,3>` in CuTe's IR Sw<3,4,3> o smem_ptr[16b](unset) o ...    a swizzle
# of bytes over elements of 16 bits

_INTEGER = re.compile(r"_?(\d{1,100})(?!\d)")
_BASIS = re.compile(r"@(\d{1,9})(?!\d)")
SWIZZLE = re.compile(r"Sw?<\s*(\d{1,9})\s*,\s*(\d{1,9})\s*,\s*(-?\d{1,9})\s*>")
_ELEMENT = re.compile(r"smem_ptr(?:_flag)?\[(\d{1,9})b\]\s*\(unset\)")
_O = re.compile(r"o(?![A-Za-z])")
_DEEPEST = 32
"""Brackets within brackets; CuTe's own layouts have four or five."""


class Leaf(NamedTuple):
    """A number, of a basis where it has a path: which coordinate, which of that one's ...."""

    value: int
    path: Point
    at: int


Tree: TypeAlias = "Leaf | tuple[Tree, ...]"


@dataclass(frozen=True)
class Term:
    """One part of a composition: the one that is set."""

    at: int
    swizzle: Point | None = None
    element_bits: int | None = None
    offset: int | None = None
    shape: Tree = ()
    stride: Tree = ()


def leaves(tree: Tree) -> Iterator[Leaf]:
    """The numbers in order."""
    if isinstance(tree, Leaf):
        yield tree
    else:
        for branch in tree:
            yield from leaves(branch)


def read_terms(text: str) -> tuple[Cursor, list[Term]]:
    """The parts of a text, outermost first. Raises LayoutError with the column."""
    cursor = Cursor(text, "the CuTe layout")
    if ":" not in text and "<" not in text:
        raise cursor.error(
            f"A CuTe layout is shape:stride, but there is no ':' in {clip(text)}.", 0
        )
    terms = [_term(cursor)]
    while cursor.take(_O):
        terms.append(_term(cursor))
    if not cursor.done:
        rest = text[cursor.position :]
        raise cursor.error(f"{clip(rest)} is left over in the CuTe layout.")
    return cursor, terms


def _term(cursor: Cursor) -> Term:
    cursor.skip()
    at = cursor.position
    if found := cursor.take(SWIZZLE):
        return Term(at, swizzle=(int(found[1]), int(found[2]), int(found[3])))
    if found := cursor.take(_ELEMENT):
        return Term(at, element_bits=int(found[1]))
    shape = _Trees(cursor).tree()
    if isinstance(shape, Leaf) and not cursor.sign(":"):
        return Term(at, offset=shape.value)
    if not isinstance(shape, Leaf) and not cursor.sign(":"):
        if not cursor.done:
            raise cursor.error(f"{clip(cursor.text[cursor.position :])} is left over.")
        raise cursor.error(
            f"A CuTe layout is shape:stride, but there is no ':' after {clip(cursor.text[at:])}."
        )
    return Term(at, shape=shape, stride=_Trees(cursor).tree())


class _Trees:
    """Nested tuples of numbers."""

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.start = cursor.position
        self.depth = 0

    def tree(self) -> Tree:
        cursor = self.cursor
        if not cursor.sign("("):
            return self.leaf()
        self.depth += 1
        if self.depth > _DEEPEST:
            raise cursor.error(f"The CuTe layout has brackets more than {_DEEPEST} deep.")
        branches = [self.tree()]
        while cursor.sign(","):
            branches.append(self.tree())
        if not cursor.sign(")"):
            self.refuse("A comma or )")
        self.depth -= 1
        return tuple(branches)

    def leaf(self) -> Leaf:
        cursor = self.cursor
        cursor.skip()
        at = cursor.position
        if cursor.text.startswith("?", at):
            raise cursor.error(
                "'?' is a number that is known when the kernel runs.",
                at,
                hint="a layout here has numbers only",
            )
        if cursor.text.startswith("-", at):
            raise cursor.error("A stride is not negative.", at)
        number = cursor.take(_INTEGER)
        if number is None:
            self.refuse("A number or (")
        assert number is not None
        path: list[int] = []
        while basis := cursor.take(_BASIS):
            path.append(int(basis[1]))
        return Leaf(int(number[1]), tuple(reversed(path)), at)

    def refuse(self, expected: str) -> None:
        cursor = self.cursor
        here = cursor.text[cursor.position : cursor.position + 1]
        if here and here not in "(),:o@":
            raise cursor.error(f"{here!r} is not part of a CuTe layout.")
        text = clip(cursor.text[self.start :])
        raise cursor.error(f"{expected} is missing in the CuTe layout {text}.")


def clip(text: str) -> str:
    """A text in a message, cut where it is long."""
    text = text.strip()
    return repr(text if len(text) <= 80 else f"{text[:77]}...")


def modes(shape: Tree, stride: Tree, cursor: Cursor, at: int) -> Iterator[tuple[int, Leaf]]:
    """Sizes and strides in order; nesting says nothing about the function."""
    if isinstance(shape, Leaf) and isinstance(stride, Leaf):
        if shape.path:
            raise cursor.error("A size is a number, not a basis.", shape.at)
        yield shape.value, stride
        return
    if isinstance(shape, Leaf) or isinstance(stride, Leaf) or len(shape) != len(stride):
        text = clip(cursor.text[at:])
        raise cursor.error(f"Shape and stride of {text} do not have the same nesting.", at)
    for size, step in zip(shape, stride, strict=True):
        yield from modes(size, step, cursor, at)


__all__ = ["SWIZZLE", "Leaf", "Term", "Tree", "clip", "leaves", "modes", "read_terms"]


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
    axes = None if axes is None else require_names(axes, "the axes")
    if shape is not None:
        shape = require_shape(shape, "the shape")
        dims = require_names(dims, "the dimensions") if dims else default_dims(len(shape))
        shape = require_point(shape, len(dims), "the shape", 1)
    elif dims is not None:
        dims = require_names(dims, "the dimensions")
        if not reader.paths and len(dims) > 1:
            raise LayoutError(f"A CuTe layout of a tile needs its shape ({', '.join(dims)}).")
    inner = chained(*reader.links(axes, dims, shape))
    if shape is None or isinstance(inner, LayoutChain):
        return inner
    return compose(counting_layout(shape, dims or default_dims(len(shape))), inner).simplified()


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
        text = clip(cursor.text[term.at :])
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
    if _are_flat(paths):
        return [(dim,) for dim in range(paths[-1][0] + 1)]
    return paths


def _are_flat(paths: Sequence[Point]) -> bool:
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

    return cute_text(layout, shape, basis)


def counting_layout(shape: Point, dims: tuple[str, ...] = ("row", "col")) -> Layout:
    """The layout from an element's number in a tile to its coordinates, the first dim fastest.

    >>> print(counting_layout((16, 8)))
    index [16:(1,0) 8:(0,1)]
    """
    modes = (
        Mode(extent, tuple(int(dim == other) for other in range(len(shape))))
        for dim, extent in enumerate(shape)
    )
    return Layout((Axis("index", tuple(modes)),), dims)


# -- cute writer -----------------------------------------------------------------------------------
# A layout in CuTe's notation.

_Tree: TypeAlias = "str | tuple[_Tree, ...]"


def cute_text(layout: Layout, shape: Point | None, basis: bool) -> str:
    """The text of `to_cute`."""
    if layout.where or (layout.offset and (basis or layout.rank > 1)):
        raise LayoutError(f"CuTe's notation has neither offset nor predicate: {layout}.")
    if basis:
        return _plain_text(layout, _basis)
    places: list[int] = []
    if layout.rank > 1 or shape is not None:
        extents = (
            layout.shape if shape is None else require_point(shape, layout.rank, "the shape", 1)
        )
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
            text = _plain_text(plain, lambda stride: str(stride[0]))
            return f"{cute_swizzle(swizzle[0])} o {swizzle[1].origin[0]} o {text}"
    text = _plain_text(
        layout, lambda stride: str(sum(s * p for s, p in zip(stride, places, strict=True)))
    )
    return f"{layout.origin[0]} o {text}" if layout.offset else text


def _plain_text(layout: Layout, number: Callable[[Point], str]) -> str:
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
        sizes.append(_joined_tree([str(mode.size) for mode in modes]))
        strides.append(_joined_tree(steps))
    if len(sizes) == 1:
        return f"{_text(sizes[0])}:{_text(strides[0])}"
    return f"{_text(tuple(sizes))}:{_text(tuple(strides))}"


def _joined_tree(items: list[str]) -> _Tree:
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
