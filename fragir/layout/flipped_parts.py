"""Sub-tiles of layouts with exclusive-ored digits.

Each dimension is cut at the part's extent, which is a composition, exact or refused: the layout
then says which part an element lies in and where in it. Digits that move from part to part must
have one value in the part that is asked for; the others stay.

>>> from fragir.layout.layout import Layout
>>> tile = Layout.parse("lane [8:^(1,8)] element [8:(0,1) 8:(0,8)]")
>>> flipped_part(tile, (0, 0), (4, 64), "element")[0]
Layout.parse('lane [4:^(1,8) 2:(0,0)] element [64:(0,1)] where lane/4%2==0')

In the second half of the rows the columns are flipped by 32 too:

>>> flipped_part(tile, (4, 0), (4, 64), "element")[0]
Layout.parse('lane [4:^(1,8) 2:(0,0)] element [32:(0,1) 2:^(0,32)] offset (0,32) where lane/4%2==1')
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod

from fragir.layout.composition import compose
from fragir.layout.digits import unit
from fragir.layout.exclusive import Bit, Forced, LayoutKernel
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import LARGEST_TABLE, Axis, Condition, LayoutError, Mode, Point

_Digit = tuple[str, int]
"""The axis of a digit and its place there."""


def flipped_part(
    layout: Layout, start: Point, shape: Point, element: str
) -> tuple[Layout, tuple[int, ...]]:
    """What `fragir.layout.subtile` says of a layout with exclusive-ored digits."""
    try:
        whole = compose(_cutter(layout, shape), replace(layout, where=()))
    except LayoutError as error:
        raise LayoutError(f"No sub-tile of {shape}: {error.message}") from error
    kernel = whole.kernel
    fixed = _fixed(layout, kernel, start, shape)
    where = list(layout.where)
    elements = [0]
    axes: list[Axis] = []
    origin: list[int] = []
    for number, name in enumerate(layout.names):
        digits = sorted((d.place, d.size) for d in (*kernel.bits, *kernel.forced) if d.axis == name)
        modes: list[Mode] = []
        for place, size in digits:
            if (name, place) not in fixed:
                modes.append(Mode(size, unit(number, len(layout.names), place)))
                if name == element:
                    elements = [e + i * place for i in range(size) for e in elements]
            elif name != element:
                modes.append(Mode(size, (0,) * len(layout.names)))
                where.append(Condition(name, place, size, fixed[name, place]))
        axes.append(Axis(name, tuple(modes)))
        origin.append(sum(fixed.get((name, place), 0) * place for place, _ in digits))
    inside = tuple(
        Axis(axis.name, tuple(m.moving(m.size, m.step[: layout.rank]) for m in axis.modes))
        for axis in whole.axes
    )
    part = compose(
        Layout(inside, layout.dims, whole.origin[: layout.rank]),
        Layout(tuple(axes), layout.names, tuple(origin), tuple(where)),
    )
    base = origin[layout.names.index(element)]
    return part.simplified(), tuple(base + number for number in elements)


def _cutter(layout: Layout, shape: Point) -> Layout:
    """From the layout's points to where they are in their part, and which part that is."""
    rank = layout.rank
    axes: list[Axis] = []
    for dim, (name, extent, whole) in enumerate(zip(layout.dims, shape, layout.shape, strict=True)):
        count = -(-whole // extent)
        if count == 1 or not extent & (extent - 1):  # flips within powers of two stay inside
            extent, count = _power(extent), _power(count)
        inside, which = unit(dim, 2 * rank, 1), unit(rank + dim, 2 * rank, 1)
        axes.append(Axis(name, (Mode(extent, inside), Mode(count, which))))
    return Layout(tuple(axes), (*layout.dims, *(f"part of {name}" for name in layout.dims)))


def _power(number: int) -> int:
    """The least power of two that is not smaller."""
    return 1 << (number - 1).bit_length()


def _fixed(layout: Layout, kernel: LayoutKernel, start: Point, shape: Point) -> dict[_Digit, int]:
    """The values that digits have in a part; those that stay inside of all parts are not there.

    LayoutError where no one value does, or nothing is held there.
    """
    mask = (1 << kernel.width * layout.rank) - 1  # which part: the last dimensions are lowest
    wanted = 0
    for at, extent in zip(start, shape, strict=True):
        wanted = wanted << kernel.width | at // extent
    bits = [bit for bit in kernel.bits if bit.column & mask]
    span = Subspace()
    for number, bit in enumerate(bits):
        if not span.add(bit.column & mask, 1 << number):
            raise _undecided(layout, bit, shape)
    forced = [digit for digit in kernel.forced if digit.stride & mask]
    if prod(digit.size for digit in forced) > LARGEST_TABLE:
        raise LayoutError(f"No sub-tile: more than {LARGEST_TABLE} sums would be looked at.")
    found: dict[_Digit, int] | None = None
    for values in product(*(range(digit.size) for digit in forced)):
        steps = [value * digit.stride for value, digit in zip(values, forced, strict=True)]
        solution = span.solve((kernel.start + sum(steps)) & mask ^ wanted)
        if solution is None:
            continue
        if found is not None:
            raise _undecided(layout, forced[-1], shape)
        found = {(d.axis, d.place): value for value, d in zip(values, forced, strict=True)}
        found |= {(bit.axis, bit.place): solution >> n & 1 for n, bit in enumerate(bits)}
    if found is None:
        raise LayoutError(f"Nothing is held from {start} on in a part of {shape}.")
    return found


def _undecided(layout: Layout, digit: Bit | Forced, shape: Point) -> LayoutError:
    place = 1
    for mode in layout.axis(digit.axis).modes:
        place *= mode.size
        if place > digit.place:
            return LayoutError(
                f"No sub-tile of {shape}: in which part an element lies is decided by mode {mode} "
                f"of axis {digit.axis} together with others."
            )
    raise AssertionError("a digit is one of its axis")
