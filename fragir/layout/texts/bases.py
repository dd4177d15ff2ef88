"""Layouts from bases over F2: for every bit of every axis the point that it stands for.

Linear layouts as Triton prints them: where each bit of a register, lane or warp goes.

>>> c = from_printed('''
...  - register=1 -> (0, 1)
...    register=2 -> (8, 0)
...  - lane=1 -> (0, 2)
...    lane=2 -> (0, 4)
...    lane=4 -> (1, 0)
...    lane=8 -> (2, 0)
...    lane=16 -> (4, 0)
...  - warp is a size 1 dimension
... where out dims are: [dim0 (size 16), dim1 (size 8)]
... ''')
>>> print(c)
element [2:(0,1) 2:(8,0)] lane [4:(0,2) 8:(1,0)]
>>> from_printed(to_printed(c)) == c
True

Shared memory is printed from its place (`offset`) to the element; it is read as it is written in
fragir, from the element to its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from fragir.layout.arguments import takes
from fragir.layout.distribution import dims_of
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Point, XorMode
from fragir.layout.texts.encoding import Cursor

Bases = Sequence[Point]


def from_bases(axes: Iterable[tuple[str, Bases]], dims: tuple[str, ...]) -> Layout:
    """The layout of these bases, lowest bit first, simplified. Axes keep their order."""
    return Layout(
        tuple(Axis(name, tuple(XorMode(2, basis) for basis in bases)) for name, bases in axes), dims
    ).simplified()


def bases_of(layout: Layout) -> list[tuple[str, tuple[Point, ...]]]:
    """For every axis the points of its bits, lowest first.

    Raises LayoutError for a predicate or an offset, and naming a digit that is not linear.
    """
    if layout.where or layout.offset:
        raise LayoutError(f"A layout with an offset or predicate is not linear: {layout}.")
    return [(axis.name, layout.kernel.columns(axis.name)) for axis in layout.axes]


def inverse_bases(bases: Bases, shape: Point, cursor: Cursor, at: int = 0) -> Layout:
    """From the elements of a tensor to their places, given the elements of the places' bits."""
    sizes = [extent.bit_length() - 1 for extent in shape]
    shifts = [sum(sizes[:dim]) for dim in range(len(shape))]
    span = Subspace()
    for number, point in enumerate(bases):
        if len(point) != len(shape) or any(x >= e for x, e in zip(point, shape, strict=True)):
            text = "x".join(map(str, shape))
            raise cursor.error(f"The point {list(point)} is not inside of {text}.", at)
        packed = sum(x << shift for x, shift in zip(point, shifts, strict=True))
        span.add(packed, 1 << number)
    axes: list[tuple[str, list[Point]]] = []
    for dim, (name, size) in enumerate(zip(dims_of(len(shape)), sizes, strict=True)):
        columns: list[Point] = []
        for bit in range(size):
            found = span.solve(1 << shifts[dim] + bit)
            if found is None:
                raise cursor.error(f"No place holds {1 << bit} along dimension {dim}.", at)
            columns.append((found,))
        axes.append((name, columns))
    return from_bases(axes, ("index",))


_BIT = re.compile(r"(-\s*)?([A-Za-z_]\w*)\s*=\s*(\d{1,30})\s*->\s*\(([\d\s,]*)\)")
_ONE = re.compile(r"-\s*([A-Za-z_]\w*) is a size 1 dimension")
_DIMS = re.compile(r"where out dims are:\s*\[([^\]]*)\]")
_DIM = re.compile(r"\s*([A-Za-z_]\w*) \(size (\d{1,30})\)\s*")
_NAMES = {"register": "element"}
_MEMORY = "offset"


@takes(str)
def from_printed(text: str) -> Layout:
    """The layout of a printed linear layout; register is the axis `element`.

    Raises LayoutError with the line for a syntax error, for bits that are not in order, and for
    points of another number of dimensions or outside of them.
    """
    cursor = Cursor(text, "the linear layout")
    bases: dict[str, list[Point]] = {}
    places: list[tuple[int, Point]] = []
    while True:
        if one := cursor.take(_ONE):
            bases.setdefault(one[1], [])
            continue
        cursor.skip()
        at = cursor.position
        bit = cursor.take(_BIT)
        if bit is None:
            break
        point = tuple(int(n) for n in bit[4].replace(" ", "").split(",") if n)
        known = bases.setdefault(bit[2], [])
        if int(bit[3]) != 1 << len(known):
            raise cursor.error(f"The next bit of {bit[2]} is {1 << len(known)}, not {bit[3]}.", at)
        known.append(point)
        places.append((at, point))
    found = cursor.expect(
        _DIMS, "a line such as '- lane=1 -> (0, 2)' or 'where out dims are: [...]'"
    )
    cursor.expect_end()
    shape: list[int] = []
    for dim in found[1].split(","):
        named = _DIM.fullmatch(dim)
        if named is None:
            raise cursor.error("A dimension is written as dim0 (size 16).", found.start())
        shape.append(int(named[2]))
    for at, point in places:
        if len(point) != len(shape) or any(x >= n for x, n in zip(point, shape, strict=True)):
            raise cursor.error(f"The point {point} is not inside of {tuple(shape)}.", at)
    names = dims_of(len(shape))
    if _MEMORY in bases:
        if any(map(any, bases.pop("block", []))):
            raise cursor.error("The shared memory of several blocks is not read, only of one.", 0)
        return inverse_bases(bases[_MEMORY], tuple(shape), cursor)
    axes = [(_NAMES.get(name, name), points) for name, points in bases.items()]
    return from_bases([a for a in axes if a[1] or a[0] in ("lane", "element")], names)


@takes(Layout)
def to_printed(layout: Layout) -> str:
    """The layout as Triton prints it. Raises LayoutError where it is not linear over bits."""
    lines: list[str] = []
    names = {own: theirs for theirs, own in _NAMES.items()}
    for axis, points in bases_of(layout):
        name = names.get(axis, axis)
        if not points:
            lines.append(f" - {name} is a size 1 dimension")
        for bit, point in enumerate(points):
            start = "   " if bit else " - "
            lines.append(f"{start}{name}={1 << bit} -> ({', '.join(map(str, point))})")
    extents = (1 << (extent - 1).bit_length() for extent in layout.shape)
    shape = ", ".join(f"dim{dim} (size {extent})" for dim, extent in enumerate(extents))
    return "\n".join([*lines, f"where out dims are: [{shape}]"])
