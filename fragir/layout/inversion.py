"""Inverses: layouts from matrix coordinates back to hardware coordinates.

The inverse of a fragment has the axes row and col and the dimensions lane and element:

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> print(inverse(c))
row [8:(4,0) 2:(0,2)] col [2:(0,1) 4:(1,0)] dims (lane,element)
>>> inverse(c)(row=11, col=3)
(13, 3)

A *right inverse* R needs every point of the tile to be held: L(R(p)) = p. Where an element is held
several times it names the first copy. A *left inverse* needs every slot to hold something else:
R(L(x)) = x. It is asked only for points that are held; where there are gaps it rounds down.
"""

from __future__ import annotations

from fragir.layout.arguments import takes
from fragir.layout.digits import Digit, along, digits_of, unit
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode


@takes(Layout)
def inverse(layout: Layout) -> Layout:
    """The two-sided inverse of a bijection. Raises LayoutError naming the mode in the way."""
    _refuse_replication(layout, "No inverse")
    return right_inverse(layout)


@takes(Layout)
def right_inverse(layout: Layout) -> Layout:
    """R with layout(R(p)) == p for every point p of `layout.shape`; among copies the first.

    Raises LayoutError naming the mode before which a gap is left or that overlaps another.
    """
    _refuse_offset(layout)
    return _build(layout, digits_of(layout, "No right inverse"), gaps=False)


@takes(Layout)
def left_inverse(layout: Layout) -> Layout:
    """R with R(layout(x)) == x for every slot x.

    R's axes reach as far as the layout's shape, rounded up where the coarsest mode leaves a gap
    before its end. Raises LayoutError naming the mode that is replicated, overlaps another, or has
    a stride that the finer modes do not divide.
    """
    _refuse_offset(layout)
    _refuse_replication(layout, "No left inverse")
    return _build(layout, digits_of(layout, "No left inverse"), gaps=True)


def _build(layout: Layout, digits: list[Digit], gaps: bool) -> Layout:
    what = "No left inverse" if gaps else "No right inverse"
    names = layout.names
    axes: list[Axis] = []
    for dim, name in enumerate(layout.dims):
        modes: list[Mode] = []
        covered = 1
        for digit in along(digits, dim):
            if digit.stride % covered:
                raise LayoutError(
                    f"{what}: {digit} overlaps finer ones, which cover {covered} along {name}."
                )
            if digit.stride > covered:
                if not gaps:
                    raise LayoutError(
                        f"{what}: {digit} leaves a gap; finer modes cover {covered} along {name}."
                    )
                modes.append(Mode(digit.stride // covered, (0,) * len(names)))
            stride = unit(names.index(digit.axis), len(names), digit.place)
            modes.append(Mode(digit.size, stride))
            covered = digit.stride * digit.size
        axes.append(Axis(name, tuple(modes)))
    return Layout(tuple(axes), names)


def _refuse_offset(layout: Layout) -> None:
    if layout.offset or layout.where:
        raise LayoutError(f"A layout with an offset or predicate has no inverse layout: {layout}.")


def _refuse_replication(layout: Layout, what: str) -> None:
    for axis in layout.axes:
        for mode in axis.modes:
            if mode.size > 1 and not any(mode.stride):
                raise LayoutError(f"{what}: mode {mode} of axis {axis.name} replicates.")
