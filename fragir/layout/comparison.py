"""Where two layouts differ, and why.

>>> from fragir.layout.layout import Layout
>>> c = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
>>> other = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(8,0) 2:(0,1)]")
>>> print(difference(c, other))
lane=0, element=1 is (0, 1) in the first layout, (8, 0) in the second: element 1 alone \
moves by (0, 1) and by (8, 0)
>>> difference(c, c.simplified()) is None
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

from fragir.errors import kind_of
from fragir.layout.chain import LayoutChain
from fragir.layout.layout import Layout
from fragir.layout.modes import LARGEST_TABLE, LayoutError, Point

AnyLayout = Layout | LayoutChain


@dataclass(frozen=True)
class Difference:
    """The first slot in which two layouts differ; none where already axes or dimensions do.

    `at` are its coordinates, `first` and `second` what the layouts hold there (None: nothing).
    """

    reason: str
    at: Mapping[str, int] | None = None
    first: Point | None = None
    second: Point | None = None

    def __str__(self) -> str:
        if self.at is None:
            return self.reason
        where = ", ".join(f"{name}={x}" for name, x in self.at.items()) or "the only slot"
        held = [p if p is not None else "nothing" for p in (self.first, self.second)]
        return f"{where} is {held[0]} in the first layout, {held[1]} in the second: {self.reason}"


def difference(first: object, second: object) -> Difference | None:
    """The first slot, the last axis fastest, in which two layouts differ; None where none does.

    As in `equivalent`, axes of size one and the order of axes do not count. Chains are compared
    too, and everything that can be a layout. Raises LayoutError beyond `LARGEST_TABLE` slots that
    would be looked at.
    """
    a, b = _require_layout(first), _require_layout(second)
    if a.dims != b.dims:
        return Difference(f"the dimensions are ({', '.join(a.dims)}) and ({', '.join(b.dims)})")
    sizes = [{n: size for n, size in one.sizes.items() if size > 1} for one in (a, b)]
    for name in (*sizes[0], *sizes[1]):
        one, other = sizes[0].get(name, 1), sizes[1].get(name, 1)
        if one != other:
            return Difference(f"axis {name} has the sizes {one} and {other}")
    if isinstance(a, Layout) and isinstance(b, Layout) and not (a.where or b.where):
        if a.equivalent(b):
            return None
    elif prod(sizes[0].values()) > LARGEST_TABLE:
        raise LayoutError(f"At most {LARGEST_TABLE} slots are looked at one by one.")
    for slot in product(*map(range, sizes[0].values())):
        at = dict(zip(sizes[0], slot, strict=True))
        held, other = _held_point(a, at), _held_point(b, at)
        if held != other:
            return Difference(_reason(a, b, at), at, held, other)
    return None


def _require_layout(value: object) -> AnyLayout:
    if isinstance(value, Layout | LayoutChain):
        return value
    made = getattr(value, "as_layout", None)
    if made is None:
        raise LayoutError(f"difference takes layouts, not {kind_of(value)}.")
    found: Layout = made()
    return found


def _held_point(layout: AnyLayout, at: Mapping[str, int]) -> Point | None:
    return layout(**{name: at.get(name, 0) for name in layout.names})


def _reason(a: AnyLayout, b: AnyLayout, at: Mapping[str, int]) -> str:
    """The single digit that differs, if one alone does."""
    start = dict.fromkeys(at, 0)
    origins = _held_point(a, start), _held_point(b, start)
    if origins[0] != origins[1]:
        return f"they begin at {_point(origins[0])} and at {_point(origins[1])}"
    held = _held_point(a, at), _held_point(b, at)
    if None in held:
        return "a condition holds in one of them only"
    for name, x in at.items():
        if not x:
            continue
        alone = {**start, name: x}
        points = _held_point(a, alone), _held_point(b, alone)
        if points[0] != points[1]:
            steps = [_step(point, origin) for point, origin in zip(points, origins, strict=True)]
            return f"{name} {x} alone moves by {steps[0]} and by {steps[1]}"
    return "single coordinates agree, but they are combined differently: added, or exclusive-ored"


def _point(point: Point | None) -> str:
    return "nothing" if point is None else str(point)


def _step(point: Point | None, origin: Point | None) -> str:
    if point is None or origin is None:
        return "nothing"
    return str(tuple(x - o for x, o in zip(point, origin, strict=True)))
