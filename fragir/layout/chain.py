"""Chains: layouts after each other whose composition is no layout of digits.

A swizzle over rows of 80 elements, say, carries between the digits that it exchanges:

>>> from fragir.layout.layout import Layout
>>> from fragir.layout.shared import Swizzle
>>> padded = Layout.parse("row [8:80] col [80:1]")
>>> chain = LayoutChain((Swizzle(3, 4, 3), padded))
>>> print(chain)
Sw<3,4,3> o row [8:80] col [80:1]
>>> chain(row=3, col=7)
(231,)

A chain evaluates, makes an array and is compared with others. It has no modes, so neither the IR
nor the planner of conversions takes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

from fragir.errors import kind_of
from fragir.layout.composition import compose
from fragir.layout.display import Drawn
from fragir.layout.layout import Layout
from fragir.layout.modes import LayoutError, Point
from fragir.layout.shared import Swizzle
from fragir.layout.slots import tabulated

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


Link: TypeAlias = Layout | Swizzle


@dataclass(frozen=True)
class LayoutChain(Drawn):
    """`parts[0](parts[1](...))`, the last one first asked. A swizzle takes one coordinate.

    Raises LayoutError unless the last part is a layout and each part's dimensions are the axes of
    the one before it, in any order.
    """

    parts: tuple[Link, ...]

    def __post_init__(self) -> None:
        for part in self.parts:
            if not isinstance(cast("object", part), Layout | Swizzle):
                raise LayoutError(f"A chain is made of layouts and swizzles, not {kind_of(part)}.")
        if not self.parts or not isinstance(self.parts[-1], Layout):
            raise LayoutError("A chain ends in a layout, whose axes are its own.")
        dims, shape = self.parts[-1].dims, self.parts[-1].shape
        for part in reversed(self.parts[:-1]):
            if isinstance(part, Swizzle):
                if len(dims) != 1:
                    raise LayoutError(f"A swizzle takes one coordinate, not ({', '.join(dims)}).")
                continue
            for name, extent in zip(dims, shape, strict=True):
                if name not in part.names or extent > part.size(name):
                    raise LayoutError(
                        f"The dimension {name} of {extent} does not fit the axes of {part}."
                    )
            dims, shape = part.dims, part.shape

    @property
    def inner(self) -> Layout:
        """The part that is asked first; its axes and sizes are the chain's."""
        return cast("Layout", self.parts[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the axes, in order."""
        return self.inner.names

    @property
    def sizes(self) -> dict[str, int]:
        """The size of every axis by name, in order."""
        return self.inner.sizes

    @property
    def dims(self) -> tuple[str, ...]:
        """The names of the dimensions."""
        return next((p.dims for p in self.parts if isinstance(p, Layout)), ())

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self.dims)

    @cached_property
    def shape(self) -> Point:
        """Per dimension one more than the largest coordinate. Looks at every slot."""
        held = [point for _, point in self.slots() if point is not None]
        return tuple(max(x) + 1 for x in zip(*held, strict=True))

    @cached_property
    def reason(self) -> str:
        """Why this is no layout of digits; names the mode."""
        try:
            self.as_layout()
        except LayoutError as error:
            return error.message
        return "it is one, written as a chain"

    def as_layout(self) -> Layout:
        """The chain as one layout. Raises LayoutError naming the mode if it is none."""
        found = self.inner
        for part in reversed(self.parts[:-1]):
            found = _after(part, found)
        return found

    def __call__(self, **coordinates: int) -> Point | None:
        """The point of this slot; None if it holds nothing. Raises LayoutError as `Layout` does."""
        return self._outer(self.inner(**coordinates))

    def _outer(self, point: Point | None) -> Point | None:
        dims = self.inner.dims
        for part in reversed(self.parts[:-1]):
            if point is None:
                return None
            if isinstance(part, Swizzle):
                point = (part(point[0]),)
            else:
                point = part(**dict(zip(dims, point, strict=True)))
                dims = part.dims
        return point

    def slots(self) -> Iterator[tuple[Point, Point | None]]:
        """Every slot and what it holds, as `Layout.slots`."""
        return ((slot, self._outer(point)) for slot, point in self.inner.slots())

    def array(self) -> NDArray[np.int64]:
        """An array of shape (sizes of the axes..., rank); -1 where nothing is held."""
        import numpy as np

        nothing = (-1,) * self.rank
        flat = [nothing if point is None else point for _, point in self.slots()]
        return np.array(flat, np.int64).reshape((*self.sizes.values(), self.rank))

    def equivalent(self, other: Layout | LayoutChain) -> bool:
        """Whether both are the same function, by looking at every slot."""
        if self.dims != other.dims:
            return False
        mine, others = (
            {n: size for n, size in one.sizes.items() if size > 1} for one in (self, other)
        )
        if mine != others:
            return False
        tables = [tabulated(one.names, one.slots(), tuple(mine)) for one in (self, other)]
        return tables[0] == tables[1]

    def function(self, names: tuple[str, ...]) -> Mapping[Point, Point | None]:
        """What every slot holds, its coordinates in this order of the axes."""
        return tabulated(self.names, self.slots(), names)

    def __str__(self) -> str:
        return " o ".join(cute_swizzle(p) if isinstance(p, Swizzle) else str(p) for p in self.parts)


def cute_swizzle(swizzle: Swizzle) -> str:
    """A swizzle in CuTe's notation."""
    return f"Sw<{swizzle.bits},{swizzle.base},{swizzle.shift}>"


def chained(*parts: object) -> Layout | LayoutChain:
    """The composition of these, outermost first: a layout if it is one of digits, else a chain.

    The parts are layouts, swizzles, chains, and whatever can be a layout; the last is no swizzle.
    Raises LayoutError where dimensions and axes do not fit.
    """
    links = [link for part in parts for link in _links(part)]
    chain = LayoutChain(tuple(links))
    found = chain.inner
    for number, part in enumerate(reversed(links[:-1]), 1):
        try:
            found = _after(part, found)
        except LayoutError:
            if any(extent > size for extent, size in _reach(part, found)):
                raise
            rest = links[: len(links) - number]
            return LayoutChain((*rest, found.simplified()))
    return found.simplified()


def _links(part: object) -> Sequence[Link]:
    if isinstance(part, LayoutChain):
        return part.parts
    if isinstance(part, Layout | Swizzle):
        return (part,)
    made = getattr(part, "as_layout", None)
    if made is None:
        raise LayoutError(f"A chain is made of layouts and swizzles, not {kind_of(part)}.")
    found: Layout = made()
    return (found,)


def _after(part: Link, inner: Layout) -> Layout:
    return compose(part, inner) if isinstance(part, Layout) else part * inner


def _reach(part: Link, inner: Layout) -> Iterator[tuple[int, int]]:
    """How far the inner layout goes and how far the outer one's axes do."""
    if isinstance(part, Layout):
        for name, extent in zip(inner.dims, inner.shape, strict=True):
            yield extent, part.size(name)
