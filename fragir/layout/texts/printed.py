"""Linear layouts as Triton prints them: where each bit of a register, lane or warp goes.

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

from fragir.layout.arguments import takes
from fragir.layout.distribution import dims_of
from fragir.layout.layout import Layout
from fragir.layout.modes import Point
from fragir.layout.texts.bases import bases_of, from_bases, inverse_bases
from fragir.layout.texts.cursor import Cursor

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
    cursor.end()
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
