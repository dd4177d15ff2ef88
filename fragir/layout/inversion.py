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

Inverses as far as they go, and what two layouts of memory have in common.

>>> from fragir.layout.layout import Layout
>>> gap = Layout.parse("index [4:1 2:8]")
>>> print(partial_right_inverse(gap))
index [4:1]
>>> copies = Layout.parse("lane [4:(0,0) 8:(1,0)] element [2:(0,1)]")
>>> print(partial_left_inverse(copies))
row [8:(4,0)] col [2:(0,1)] dims (lane,element)

What both a row-major and a padded tile hold side by side is a row:

>>> plain = Layout.parse("row [8:16] col [16:1]")
>>> padded = Layout.parse("row [8:24] col [16:1]")
>>> max_common_vector(plain, padded)
16
>>> print(max_common_layout(plain, padded))
index [16:(0,1)]
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isqrt

from fragir.layout.arguments import takes
from fragir.layout.composition import compose
from fragir.layout.digits import Digit, along, digits_of, unit
from fragir.layout.exclusive import Bit, pack
from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.modes import (
    Axis,
    LayoutError,
    Mode,
    XorMode,
    binary_digits,
    coalesce_modes,
)


@takes(Layout)
def inverse(layout: Layout) -> Layout:
    """The two-sided inverse of a bijection. Raises LayoutError naming the mode in the way."""
    _check_no_replication(layout, "No inverse")
    if layout.exclusive and not layout.kernel.is_injective:
        raise LayoutError(f"No inverse: {_dependent(layout)} holds what others hold too.")
    return right_inverse(layout)


@takes(Layout)
def right_inverse(layout: Layout) -> Layout:
    """R with layout(R(p)) == p for every point p of `layout.shape`; among copies the first.

    Raises LayoutError naming the mode before which a gap is left or that overlaps another.
    """
    _check_no_offset(layout)
    if layout.exclusive:
        return _by_bits(layout, gaps=False)
    return _build(layout, digits_of(layout, "No right inverse"), gaps=False)


@takes(Layout)
def left_inverse(layout: Layout) -> Layout:
    """R with R(layout(x)) == x for every slot x.

    R's axes reach as far as the layout's shape, rounded up where the coarsest mode leaves a gap
    before its end. Raises LayoutError naming the mode that is replicated, overlaps another, or has
    a stride that the finer modes do not divide.
    """
    _check_no_offset(layout)
    _check_no_replication(layout, "No left inverse")
    if layout.exclusive:
        if not layout.kernel.is_injective:
            raise LayoutError(f"No left inverse: {_dependent(layout)} holds what others hold too.")
        return _by_bits(layout, gaps=True)
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


def _by_bits(layout: Layout, gaps: bool) -> Layout:
    """The inverse where modes are exclusive-ored: of the linear bits and of the sums apart.

    They must not meet in any bit of the point. Then its bits that columns reach are solved over F2,
    and each digit that is added is read off at its stride.
    """
    what = "No left inverse" if gaps else "No right inverse"
    kernel, names = layout.kernel, layout.names
    reached = summed = 0
    for bit in kernel.bits:
        reached |= bit.column
    for cluster in kernel.clusters:
        summed |= cluster.mask
    if reached & summed:
        digit = next(d for c in kernel.clusters if c.mask & reached for d in c.digits)
        raise LayoutError(f"{what}: {digit} meets bits that are exclusive-ored.")
    span = Subspace(bit.column for bit in kernel.bits)
    pieces: list[list[tuple[int, Mode]]] = [[] for _ in layout.dims]
    used = list[Bit]()  # above odd digits
    for place in range(kernel.rank * kernel.width):
        if reached >> place & 1:
            dim = kernel.rank - 1 - place // kernel.width
            number = 1 << place % kernel.width
            chosen = span.solve(1 << place)
            if chosen is None:
                if not gaps:
                    dims = layout.dims[dim]
                    raise LayoutError(f"{what}: nothing holds {dims} {number} alone.")
                span.add(1 << place)  # asked together with others only, which then say it
                chosen = 0
            bits = [bit for index, bit in enumerate(kernel.bits) if chosen >> index & 1]
            pieces[dim].append((number, _reader(bits, names, what)))
            used += [bit for bit in bits if bit.place & (bit.place - 1)]
    if len(set(used)) < len(used):
        raise LayoutError(
            f"{what}: {_odd_bit_text(used[-1])} is an exclusive or of bits of the point."
        )
    for digit in kernel.forced:
        stride = kernel.point(digit.stride)
        moved = [dim for dim, step in enumerate(stride) if step]
        if len(moved) > 1:
            raise LayoutError(f"{what}: {digit} moves along {layout.dims[moved[0]]} and others.")
        for dim in moved:
            back = unit(names.index(digit.axis), len(names), digit.place)
            pieces[dim].append((stride[dim], Mode(digit.size, back)))
    axes = [
        Axis(
            name, tuple(_in_places(sorted(found, key=lambda p: p[0]), len(names), gaps, what, name))
        )
        for name, found in zip(layout.dims, pieces, strict=True)
    ]
    return Layout(tuple(axes), names).simplified()


def _reader(bits: Sequence[Bit], names: tuple[str, ...], what: str) -> Mode:
    """The digit of the inverse that sets these bits of the slot."""
    slot = dict.fromkeys(names, 0)
    for bit in bits:
        slot[bit.axis] += bit.place
    odd = [bit for bit in bits if bit.place & (bit.place - 1)]
    if not odd:
        return XorMode(2, tuple(slot.values()))
    if len(bits) > 1:
        raise LayoutError(f"{what}: {_odd_bit_text(odd[0])} changes together with other bits.")
    return Mode(2, tuple(slot.values()))


def _odd_bit_text(bit: Bit) -> str:
    return f"bit {bit.place} of axis {bit.axis}, above a digit that is no power of two,"


def _in_places(
    pieces: list[tuple[int, Mode]], rank: int, gaps: bool, what: str, name: str
) -> Iterator[Mode]:
    """Digits of an axis at given places, with what moves nothing in the gaps."""
    covered = 1
    for place, mode in pieces:
        if place % covered:
            raise LayoutError(
                f"{what}: the digit at {place} overlaps finer ones, which cover {covered} along "
                f"{name}."
            )
        if place > covered:
            if not gaps:
                raise LayoutError(
                    f"{what}: the digit at {place} leaves a gap; finer ones cover {covered} along "
                    f"{name}."
                )
            yield Mode(place // covered, (0,) * rank)
        yield mode
        covered = place * mode.size


def _dependent(layout: Layout) -> str:
    """A bit that others move the point as far as; a digit that is added, if there is none."""
    span = Subspace()
    for bit in layout.kernel.bits:
        if not span.add(bit.column):
            return f"bit {bit.place} of axis {bit.axis}"
    return str(layout.kernel.forced[-1])


def _check_no_offset(layout: Layout) -> None:
    if layout.offset or layout.where:
        raise LayoutError(f"A layout with an offset or predicate has no inverse layout: {layout}.")


def _check_no_replication(layout: Layout, what: str) -> None:
    for axis in layout.axes:
        for mode in axis.modes:
            if mode.size > 1 and not any(mode.step):
                raise LayoutError(f"{what}: mode {mode} of axis {axis.name} replicates.")


@takes(Layout)
def partial_right_inverse(layout: Layout) -> Layout:
    """R with layout(R(p)) == p for the points of a box as large as the layout holds without gap.

    Along each dimension the box goes as far as single digits reach point by point from zero (CuTe's
    right_inverse, which ends where a gap begins). Raises LayoutError for an offset or predicate.
    """
    _check_no_offset(layout)
    if layout.kernel.is_linear:
        return _partial_by_bits(layout)
    names = layout.names
    axes: list[Axis] = []
    for dim, name in enumerate(layout.dims):
        modes: list[Mode] = []
        covered = 1
        for stride, size, axis, place in sorted(_digits(layout, dim)):
            if stride > covered:
                break
            if stride == covered:
                modes.append(Mode(size, unit(names.index(axis), len(names), place)))
                covered *= size
        axes.append(Axis(name, coalesce_modes(modes)))
    return Layout(tuple(axes), names)


def _digits(layout: Layout, dim: int) -> list[tuple[int, int, str, int]]:
    """(stride, size, axis, place) of the digits that move along this dimension only."""
    found: list[tuple[int, int, str, int]] = []
    for axis in layout.axes:
        place = 1
        for mode in coalesce_modes(axis.modes):
            if not mode.xor and mode.stride[dim] and sum(map(bool, mode.stride)) == 1:
                found.append((mode.stride[dim], mode.size, axis.name, place))
            place *= mode.size
    return found


def _partial_by_bits(layout: Layout) -> Layout:
    """All is linear over bits: solve for the points 1, 2, 4, ... of each dimension."""
    span, bits = Subspace(), list[tuple[int, int]]()
    for at, name in enumerate(layout.names):
        for bit, column in enumerate(layout.kernel.packed_columns(name)):
            span.add(column, 1 << len(bits))
            bits.append((at, 1 << bit))
    axes: list[Axis] = []
    for dim, name in enumerate(layout.dims):
        shift = (layout.rank - 1 - dim) * layout.kernel.width
        modes: list[Mode] = []
        for bit in range(layout.kernel.width):
            found = span.solve(1 << shift + bit)
            if found is None:
                break
            point = [0] * len(layout.names)
            for number, (at, place) in enumerate(bits):
                if found >> number & 1:
                    point[at] |= place
            modes.append(XorMode(2, tuple(point)))
        axes.append(Axis(name, tuple(modes)))
    return Layout(tuple(axes), layout.names).simplified()


@takes(Layout)
def partial_left_inverse(layout: Layout) -> Layout:
    """R with R(layout(x)) == x for every slot whose replicated digits are zero.

    Of slots that hold the same point, it names the one with the least coordinates. Raises
    LayoutError for an offset or predicate, and where the rest has no left inverse (modes that
    overlap, or strides that finer ones do not divide).
    """
    _check_no_offset(layout)
    seen = Subspace() if layout.kernel.is_linear else None
    axes: list[Axis] = []
    for axis in reversed(layout.axes):  # the last one's coordinates are the least of a slot's
        modes: list[Mode] = []
        for mode in coalesce_modes(axis.modes):
            pieces = list(binary_digits(mode)) if seen is not None else [mode]
            for piece in pieces:
                packed = pack(piece.step, layout.kernel.width)
                fresh = seen.add(packed) if seen is not None else bool(packed)
                modes.append(piece if fresh else Mode(piece.size, (0,) * layout.rank))
        axes.insert(0, Axis(axis.name, tuple(modes)))
    return _with_gaps(left_inverse(_without_copies(axes, layout.dims)), axes, layout.names)


def _without_copies(axes: list[Axis], dims: tuple[str, ...]) -> Layout:
    return Layout(tuple(Axis(a.name, tuple(m for m in a.modes if any(m.step))) for a in axes), dims)


def _with_gaps(inverse: Layout, axes: list[Axis], names: tuple[str, ...]) -> Layout:
    """The inverse, its results put back to the places that the digits have among copies."""
    outer: list[Axis] = []
    for at, axis in enumerate(axes):
        place = 1
        modes: list[Mode] = []
        for mode in axis.modes:
            if any(mode.step):
                modes.append(Mode(mode.size, unit(at, len(names), place)))
            place *= mode.size
        outer.append(Axis(axis.name, tuple(modes)))
    return compose(Layout(tuple(outer), names), inverse)


@takes(Layout, Layout)
def max_common_layout(first: Layout, second: Layout) -> Layout:
    """The slots that both layouts hold at 0, 1, 2, ..., as far as they agree.

    Both go from the same axes to one dimension. The result goes from `index` to the axes.
    """
    _check_no_offset(first)
    _check_no_offset(second)
    if first.rank != 1 or second.rank != 1:
        raise LayoutError("Vectors are looked for in layouts of one dimension, places in memory.")
    if set(first.names) != set(second.names):
        raise LayoutError(
            f"The axes ({', '.join(first.names)}) and ({', '.join(second.names)}) differ."
        )
    back = partial_right_inverse(second)
    kept: list[Mode] = []
    covered = 1
    for mode in back.axes[0].modes if back.axes else ():
        part = _agreeing(first, mode, back.dims, covered)
        if part > 1:
            kept.append(mode.moving(part, mode.step))
            covered *= part
        if part < mode.size:
            break
    return Layout((Axis("index", coalesce_modes(kept)),), back.dims)


def _agreeing(layout: Layout, mode: Mode, names: tuple[str, ...], covered: int) -> int:
    """How much of a digit of coordinates the layout holds at `covered` times its value."""
    for size in _divisors(mode.size):
        step = Layout((Axis("index", (mode.moving(size, mode.step),)),), names)
        even = Layout((Axis("index", (Mode(size, (covered,)),)),), layout.dims)
        try:
            if compose(layout, step).equivalent(even):
                return size
        except LayoutError:
            continue
    return 1


def _divisors(size: int) -> list[int]:
    """Divisors above one, the largest first; of a large number those that have a small partner."""
    small = [n for n in range(1, min(isqrt(size), 4096) + 1) if size % n == 0]
    return sorted({*small, *(size // n for n in small)} - {1}, reverse=True)


@takes(Layout, Layout)
def max_common_vector(first: Layout, second: Layout) -> int:
    """How many elements, from the first on, both layouts hold side by side in the same order."""
    return max_common_layout(first, second).size("index")
