"""Every slot of a layout one by one, and whether the slots cover a box.

A slot is one coordinate for each axis. The functions take a layout's parts: its axes, its origin
(the offset written out) and its conditions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING

from fragir.layout.modes import LARGEST_TABLE, Axis, Condition, LayoutError, Point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def check_slots(axes: Sequence[Axis]) -> None:
    """LayoutError where there are more slots than are looked at one by one."""
    slots = prod(axis.size for axis in axes)
    if slots > LARGEST_TABLE:
        raise LayoutError(
            f"The layout has {slots} slots; at most {LARGEST_TABLE} are looked at one by one."
        )


def each_slot(
    axes: Sequence[Axis], origin: Point, where: Sequence[Condition]
) -> Iterator[tuple[Point, Point | None]]:
    """Every slot and what it holds, the last axis fastest; LayoutError beyond `LARGEST_TABLE`."""
    check_slots(axes)
    done: list[tuple[Point, Point | None]] = [((), origin)]
    for axis in axes:
        conditions = [c for c in where if c.axis == axis.name]
        points = [
            (index, point if all(c(index) for c in conditions) else None)
            for index, point in enumerate(axis.points(len(origin)))
        ]
        done = [
            ((*at, index), None if start is None or step is None else _sum(start, step))
            for at, start in done
            for index, step in points
        ]
    return iter(done)


def slot_array(
    axes: Sequence[Axis], origin: Point, where: Sequence[Condition]
) -> NDArray[np.int64]:
    """What the slots hold as an array of shape (sizes of the axes..., rank); -1 for nothing."""
    import numpy as np

    check_slots(axes)
    points, held = np.array(origin, np.int64), np.array(True)
    for axis in axes:
        conditions = [c for c in where if c.axis == axis.name]
        steps = np.array(list(axis.points(len(origin))), np.int64).reshape(-1, len(origin))
        kept = np.array([all(c(i) for c in conditions) for i in range(axis.size)], np.bool_)
        points, held = points[..., None, :] + steps, held[..., None] & kept
    return np.where(held[..., None], points, -1)


def all_hold(axes: Sequence[Axis], where: Sequence[Condition]) -> bool:
    """Whether every slot holds something."""
    sizes = {axis.name: axis.size for axis in axes}
    return all(
        condition.modulus == 1
        or (condition.value == 0 and sizes[condition.axis] <= condition.divisor)
        for condition in where
    )


def covers_box(axes: Sequence[Axis], extents: Sequence[int]) -> bool:
    """Whether the sums of digits are all the points of a box of this size, each once.

    The point next to the corner along a dimension is one digit's stride, and a row of the box
    is cut by that digit's runs in one way only. So every other stride is a multiple of the
    run along this dimension, and the same holds for the box counted in runs: all digits go
    along one dimension, and each goes on where the finer ones end.
    """
    digits: list[list[tuple[int, int]]] = [[] for _ in extents]
    for axis in axes:
        for mode in axis.modes:
            moved = [dim for dim, stride in enumerate(mode.stride) if stride]
            if mode.size == 1:
                continue
            if len(moved) != 1:
                return False
            digits[moved[0]].append((mode.stride[moved[0]], mode.size))
    for along, extent in zip(digits, extents, strict=True):
        covered = 1
        for stride, size in sorted(along):
            if stride != covered:
                return False
            covered *= size
        if covered != extent:
            return False
    return True


def _sum(a: Point, b: Point) -> Point:
    if len(a) == 2:  # by far the most frequent case, and this is the innermost loop
        return a[0] + b[0], a[1] + b[1]
    return tuple(x + y for x, y in zip(a, b, strict=True))
