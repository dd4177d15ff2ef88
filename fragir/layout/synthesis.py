"""From a function back to modes: the layout that is a given table, if any is.

A layout's simplified form is unique, so it can be read off greedily. Along one axis the first mode
has the stride f(1) - f(0), and its size is how long f goes on in this step; the rest of the modes
are those of the function x -> f(size * x). What remains is to see that the sum of the axes is the
whole function, point by point.

>>> print(from_function({"lane": 8, "element": 6}, lambda at: (at[0] // 2, at[1] % 3 + at[0] % 2)))
lane [2:(0,1) 4:(1,0)] element [3:(0,1) 2:(0,0)]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate, islice, product
from math import prod
from operator import mul
from typing import cast

from fragir.errors import require_whole_number
from fragir.layout.exclusive import LayoutKernel, pack, unpack
from fragir.layout.fitting import GridDigit, digits_of
from fragir.layout.layout import Layout
from fragir.layout.modes import Axis, LayoutError, Mode, Point

MOST_CHAINS = 64
"""Ways to cut axes with odd parts into digits that are tried."""

LARGEST_FUNCTION = 1 << 17
"""Slots at which a function is asked for its value."""


def from_function(
    sizes: Mapping[str, int],
    function: Callable[[Point], Point],
    dims: tuple[str, ...] = ("row", "col"),
    *,
    exclusive: bool = False,
) -> Layout:
    """The layout with axes of these sizes that maps the coordinates `x` to `function(x)`.

    With `exclusive`, digits may also be exclusive-ored where no sums are the function. Raises
    LayoutError naming the first slot for which no layout agrees with the function.

    >>> print(from_function({"a": 4, "b": 4}, lambda at: (at[0] ^ at[1],), ("x",), exclusive=True))
    a [4:1] b [4:^1] dims (x)
    """
    if not isinstance(cast("object", sizes), Mapping) or not callable(function):
        raise LayoutError("from_function takes sizes by name and a function of coordinates.")
    for name, size in sizes.items():
        require_whole_number(size, f"the size of {name}", 1)
    if prod(sizes.values()) > LARGEST_FUNCTION:
        raise LayoutError(
            f"The function has {prod(sizes.values())} slots; at most {LARGEST_FUNCTION} are "
            "looked at one by one."
        )
    try:
        return _of_sums(sizes, function, dims)
    except LayoutError:
        found = _of_flips(sizes, function, dims) if exclusive else None
        if found is None:
            raise
        return found


def _of_flips(
    sizes: Mapping[str, int], function: Callable[[Point], Point], dims: tuple[str, ...]
) -> Layout | None:
    """The layout with exclusive-ored modes that is a function; None where none is found."""
    slots = product(*map(range, tuple(sizes.values())[::-1]))  # the first axis fastest
    points = [function(slot[::-1]) for slot in slots]
    if min(map(min, points), default=0) < 0:
        return None
    width = max(map(max, points)).bit_length()
    values = [pack(point, width) for point in points]
    for chains in islice(product(*map(_chains, sizes.items())), MOST_CHAINS):
        grid = [digit for chain in chains for digit in chain]
        try:
            bits, forced = digits_of(values, grid, lambda x: unpack(x, len(dims), width))
        except LayoutError:
            continue
        kernel = LayoutKernel(tuple(sizes), len(dims), width, values[0], bits, forced)
        return Layout(kernel.canonical, dims, kernel.point(values[0]))
    return None


def _chains(axis: tuple[str, int]) -> Iterator[list[GridDigit]]:
    """The digits that an axis may have: its prime factors in every order, bits first."""
    name, size = axis
    for order in _orders(_primes(size)):
        places = accumulate(order[:-1], mul, initial=1)
        yield [GridDigit(name, place, n) for place, n in zip(places, order, strict=False)]


def _primes(number: int) -> tuple[int, ...]:
    """The prime factors, ascending."""
    factors: list[int] = []
    factor = 2
    while number > 1:
        while number % factor == 0:
            factors.append(factor)
            number //= factor
        factor += 1
    return tuple(factors)


def _orders(factors: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All orders of these factors, equal ones not told apart; the ascending one first."""
    if not factors:
        yield ()
    for factor in sorted(set(factors)):
        at = factors.index(factor)
        for rest in _orders(factors[:at] + factors[at + 1 :]):
            yield (factor, *rest)


def _of_sums(
    sizes: Mapping[str, int], function: Callable[[Point], Point], dims: tuple[str, ...]
) -> Layout:
    """The layout of added modes that is a function; LayoutError where there is none."""
    names = tuple(sizes)
    zero = (0,) * len(names)
    origin = function(zero)
    axes: list[Axis] = []
    for index, (name, size) in enumerate(sizes.items()):
        points = [function((*zero[:index], x, *zero[index + 1 :])) for x in range(size)]
        axes.append(Axis(name, _modes(name, points)))
    layout = _build(axes, dims, origin, names)
    # The sum over the axes, checked everywhere.
    for slot, point in layout.slots():
        wanted = function(slot)
        if wanted != point:
            place = ", ".join(f"{name} {x}" for name, x in zip(names, slot, strict=True))
            raise LayoutError(
                f"No layout is this function: at {place} it gives {wanted}, but its axes add up "
                f"to {point}."
            )
    return layout


def _build(
    axes: Sequence[Axis], dims: tuple[str, ...], origin: Point, names: tuple[str, ...]
) -> Layout:
    if min(origin, default=0) < 0:
        place = ", ".join(f"{name} 0" for name in names)
        raise LayoutError(f"No layout is this function: at {place} it gives {origin}.")
    return Layout(tuple(axes), dims, origin)


def _modes(name: str, points: Sequence[Point]) -> tuple[Mode, ...]:
    """The modes of one axis from the points along it."""
    modes: list[Mode] = []
    origin = points[0]
    step = 1  # how far apart in the axis the coordinates are that are left to explain
    while step < len(points):
        stride = _difference(points[step], origin)
        if min(stride, default=0) < 0:
            raise LayoutError(
                f"No layout is this function: from {name} 0 to {name} {step} it goes back, from "
                f"{origin} to {points[step]}."
            )
        rest = len(points) // step
        size = next(
            (
                x
                for x in range(2, rest)
                if _difference(points[x * step], origin) != tuple(x * s for s in stride)
            ),
            rest,
        )
        if rest % size:
            after = ", ".join(str(_difference(p, origin)) for p in points[size * step :: step][:2])
            raise LayoutError(
                f"No layout is this function: along {name} the step {stride} ends at "
                f"{name} {size * step}, which does not divide the size {len(points)}; "
                f"from there on it goes to {after}."
            )
        modes.append(Mode(size, stride))
        step *= size
    for x, (point, sum_) in enumerate(
        zip(points, Axis(name, tuple(modes)).points(len(origin)), strict=True)
    ):
        if _difference(point, origin) != sum_:
            expected = tuple(o + s for o, s in zip(origin, sum_, strict=True))
            raise LayoutError(
                f"No layout is this function: at {name} {x} it gives {point}, but the steps before "
                f"add up to {expected}."
            )
    return tuple(modes)


def _difference(a: Point, b: Point) -> Point:
    return tuple(x - y for x, y in zip(a, b, strict=True))
