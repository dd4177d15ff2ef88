"""Every slot of a layout one by one, and whether the slots cover a box.

A slot is one coordinate for each axis. The functions take a layout's parts: its axes, its origin
(the offset written out) and its conditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from fragir.layout.f2 import xor
from fragir.layout.modes import LARGEST_TABLE, Axis, Condition, LayoutError, Mode, Point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Nested: TypeAlias = "list[Nested] | Point | None"


def tabulated(
    axes: Sequence[str], slots: Iterable[tuple[Point, Point | None]], names: Sequence[str]
) -> dict[Point, Point | None]:
    """What every slot holds, its coordinates in this order of the axes; others are of size one."""
    at = [axes.index(name) for name in names]
    return {tuple(slot[i] for i in at): point for slot, point in slots}


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
    if any(mode.xor for axis in axes for mode in axis.modes):
        return _each_exclusive_slot(axes, origin, where)
    done: list[tuple[Point, Point | None]] = [((), origin)]
    for axis in axes:
        steps = list(enumerate(held_steps(axis, len(origin), where)))
        done = [((*at, index), sum_of(start, step)) for at, start in done for index, step in steps]
    return iter(done)


def _each_exclusive_slot(
    axes: Sequence[Axis], origin: Point, where: Sequence[Condition]
) -> Iterator[tuple[Point, Point | None]]:
    """`each_slot` where modes are exclusive-ored: their columns come after all sums."""
    rank = len(origin)
    still = (0,) * rank
    added = [
        Axis(a.name, tuple(Mode(m.size, still) if m.xor else m for m in a.modes)) for a in axes
    ]
    flips = [_flips(axis, rank) if any(m.xor for m in axis.modes) else None for axis in axes]
    for slot, point in each_slot(added, origin, where):
        if point is not None:
            for table, index in zip(flips, slot, strict=True):
                if table is not None:
                    point = xor(point, table[index])
        yield slot, point


def without_flips(axes: Iterable[Axis], rank: int) -> tuple[Axis, ...]:
    """The axes with what is exclusive-ored standing still."""
    still = (0,) * rank
    return tuple(
        Axis(a.name, tuple(Mode(m.size, still) if m.xor else m for m in a.modes)) for a in axes
    )


def flipped_point(
    point: Point | None, axes: Iterable[Axis], coordinates: Mapping[str, int]
) -> Point | None:
    """The point of a slot from that of its sums: with the columns of its xored digits."""
    for axis in axes if point is not None else ():
        rest = coordinates.get(axis.name, 0)
        for mode in axis.modes:
            rest, digit = divmod(rest, mode.size)
            for bit in range(digit.bit_length() if mode.xor else 0):
                if digit >> bit & 1 and point is not None:
                    point = xor(point, tuple([step << bit for step in mode.step]))
    return point


def _flips(axis: Axis, rank: int) -> list[Point]:
    """What the xored digits flip for every coordinate of an axis."""
    points: list[Point] = [(0,) * rank]
    for mode in axis.modes:
        if not mode.xor:
            points *= mode.size
            continue
        for bit in range(mode.size.bit_length() - 1):
            column = tuple(step << bit for step in mode.step)
            points += [xor(point, column) for point in points]
    return points


def slot_array(
    axes: Sequence[Axis], origin: Point, where: Sequence[Condition]
) -> NDArray[np.int64]:
    """What the slots hold as an array of shape (sizes of the axes..., rank); -1 for nothing."""
    import numpy as np

    check_slots(axes)
    rank = len(origin)
    points: NDArray[np.int64] = np.array(origin, np.int64)
    for axis in axes:
        points = points[..., None, :] + _step_array(axis, rank)
    for number, axis in enumerate(axes):
        if any(mode.xor for mode in axis.modes):
            points ^= _flip_array(axis, rank).reshape(
                axis.size, *[1] * (len(axes) - number - 1), rank
            )
    for condition in where:
        number = next(i for i, axis in enumerate(axes) if axis.name == condition.axis)
        refused = np.array([not condition(x) for x in range(axes[number].size)], np.bool_)
        points[(slice(None),) * number + (refused,)] = -1
    return points


def _step_array(axis: Axis, rank: int) -> NDArray[np.int64]:
    """The sums of added digits for every coordinate of an axis; shape (size, rank)."""
    import numpy as np

    steps = np.zeros((1, rank), np.int64)
    for mode in axis.modes:
        digits = np.arange(mode.size)[:, None, None]
        stride = np.zeros(rank, np.int64) if mode.xor else np.array(mode.step, np.int64)
        steps = (digits * stride + steps).reshape(-1, rank)
    return steps


def _flip_array(axis: Axis, rank: int) -> NDArray[np.int64]:
    """What the xored digits flip for every coordinate of an axis; shape (size, rank)."""
    import numpy as np

    flips = np.zeros((1, rank), np.int64)
    for mode in axis.modes:
        if mode.xor:
            for bit in range(mode.size.bit_length() - 1):
                flips = np.concatenate([flips, flips ^ (np.array(mode.step, np.int64) << bit)])
        else:
            flips = np.tile(flips, (mode.size, 1))
    return flips


def nested_points(points: Iterator[Point | None], sizes: Sequence[int]) -> Nested:
    """What the slots hold, in order, as lists in lists of these lengths."""
    if not sizes:
        return next(points)
    return [nested_points(points, sizes[1:]) for _ in range(sizes[0])]


def copies(holders: Mapping[Point, Sequence[Point]]) -> int:
    """How many slots hold each point; LayoutError if points differ in this."""
    counts = {len(slots): point for point, slots in holders.items()}
    if len(counts) > 1:
        (few, a), (many, b) = min(counts.items()), max(counts.items())
        raise LayoutError(f"Element {a} is held {few} times, but element {b} {many} times.")
    return next(iter(counts), 0)


def do_all_hold(axes: Sequence[Axis], where: Sequence[Condition]) -> bool:
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


def held_steps(axis: Axis, rank: int, where: Sequence[Condition]) -> list[Point | None]:
    """The steps along an axis; None where a condition leaves a coordinate out."""
    conditions = [condition for condition in where if condition.axis == axis.name]
    return [
        point if all(condition(index) for condition in conditions) else None
        for index, point in enumerate(axis.points(rank))
    ]


def sum_of(a: Point | None, b: Point | None) -> Point | None:
    """Where two steps lead; None where one is none."""
    if a is None or b is None:
        return None
    if len(a) == 2:  # by far the most frequent case, and this is the innermost loop
        return a[0] + b[0], a[1] + b[1]
    return tuple([x + y for x, y in zip(a, b, strict=True)])
