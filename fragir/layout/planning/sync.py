"""Which warps exchange data through shared memory, and so must wait for each other.

A warp needs the points of its target that its own registers do not hold from other warps. Modulo
what one warp holds (registers and lanes), those are combinations of the source's warp columns: the
warp bits of these combinations span a space U, the least that works. Warps that differ by a vector
of U form a group: it shares scratch memory of its own and one barrier. With U = 0 a warp is alone,
and waits for its own lanes only.

Warps may hold the same points: the combinations of warp columns that one warp holds itself span a
space C, which meets U in zero. Then groups may be joined to those of U + C: fewer warps store
(those without a part in C), but more of them wait for each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from fragir.layout.f2 import Subspace, image
from fragir.layout.modes import LayoutError
from fragir.layout.planning.access import SharedSide
from fragir.layout.planning.program import Linear
from fragir.layout.planning.registers import RegisterColumns

Reaches = Literal["warp", "group", "block"]


@dataclass(frozen=True, slots=True)
class Meeting:
    """The warps that exchange data.

    `warps` wait together; `number` says which of the `groups` of so many a warp belongs to.
    """

    warps: int
    groups: int
    number: Linear

    @property
    def reach(self) -> Reaches:
        """Who waits for whom."""
        return "warp" if self.warps == 1 else "block" if self.groups == 1 else "group"


@dataclass(frozen=True, slots=True)
class Crossing:
    """Two layouts in coordinates of what one group of warps holds (`dims` bits)."""

    source: SharedSide
    target: SharedSide
    dims: int
    meeting: Meeting
    starts: tuple[tuple[int, int], ...] = ((0, 0),)
    """For every round the elements of source and target where it begins (see `rounds`)."""
    copies: int = 0
    """The dimension of C: of 2^copies warps that hold the same points one could store."""
    spared: tuple[int, ...] = ()
    """For joined groups the columns of a number that is zero in the warps that store."""


def crossing(
    source: RegisterColumns, target: RegisterColumns, bits: int, joined: bool = False
) -> Crossing:
    """What moves between which warps; groups with the same points `joined` or each for itself.

    LayoutError where the target has points that the source lacks.
    """
    if bits == 64:  # a value is two words: one more register, which both sides keep
        source, target = source.by_halves(), target.by_halves()
        bits = 32
    unit, inside = bits // 8, {8: 2, 16: 1}.get(bits, 0)
    count = max(len(source.warp), len(target.warp))
    warps = [side.warp + (0,) * (count - len(side.warp)) for side in (source, target)]
    together, same = _together(source, target, warps)
    parts = Subspace()  # of a warp's number, in C
    for warp in together:
        parts.add(warp)
    if joined:
        for index, warp in enumerate(same):
            together.add(warp)
            parts.add(warp, 1 << index)
    # the warp of each group whose number the group has, and where the group's points start
    first = [together.rest(1 << k) for k in range(count)]
    start = [image(warps[0], warp) for warp in first]
    own = [image(warps[0], warp ^ 1 << k) for k, warp in enumerate(first)]
    theirs = [column ^ begin for column, begin in zip(warps[1], start, strict=True)]
    element, slots = _needed_registers(source)
    places = Subspace()
    for column in sorted({*element, *source.lane, *own} - {0}):
        places.add(column, 1 << len(places))

    def placed(columns: Sequence[int]) -> tuple[int, ...]:
        found = [places.solve(column) for column in columns]
        if None in found:
            raise LayoutError("The target has points of the tile that the source has not.")
        return tuple(place for place in found if place is not None)

    span = Subspace()
    kept = [(c, 1 << i) for i, c in enumerate(target.element) if span.add(c)]
    return Crossing(
        SharedSide(
            placed(element),
            slots,
            placed(source.lane),
            placed(own),
            inside,
            unit,
            _copies(source.lane),
        ),
        SharedSide(
            placed([column for column, _ in kept]),
            tuple(slot for _, slot in kept),
            placed(target.lane),
            placed(theirs),
            inside,
            unit,
        ),
        len(places),
        _meeting(together, first),
        copies=len(same),
        spared=tuple(parts.solve(w ^ 1 << k) or 0 for k, w in enumerate(first)) if joined else (),
    )


def _together(
    source: RegisterColumns, target: RegisterColumns, warps: Sequence[Sequence[int]]
) -> tuple[Subspace, list[int]]:
    """The space U of warp numbers, and a basis of C; see above."""
    held = Subspace()
    for column in source.element + source.lane:
        held.add(column)
    same: list[int] = []
    for k, column in enumerate(warps[0]):
        if not held.add(column, 1 << k):
            same.append((held.solve(column) or 0) | 1 << k)
    needed = target.element + target.lane
    needed += tuple(a ^ b for a, b in zip(*warps, strict=True))
    others = [held.solve(column) for column in needed]
    if None in others:
        raise LayoutError("The target has points of the tile that the source has not.")
    return Subspace(warp for warp in others if warp), same


def _needed_registers(source: RegisterColumns) -> tuple[list[int], tuple[int, ...]]:
    """The registers worth storing: those whose points no other register and no lane has."""
    span = Subspace(source.lane)
    kept = [(c, 1 << i) for i, c in enumerate(source.element) if span.add(c)]
    return [column for column, _ in kept], tuple(slot for _, slot in kept)


def _copies(lane: Sequence[int]) -> int:
    """The bits of lanes whose columns lower ones make, as a mask."""
    span, mask = Subspace(), 0
    for k, column in enumerate(lane):
        if not span.add(column):
            mask |= 1 << k
    return mask


def _meeting(together: Subspace, first: Sequence[int]) -> Meeting:
    numbers = Subspace()
    for warp in sorted(set(first) - {0}):
        numbers.add(warp, 1 << len(numbers))
    number = Linear(0, (), tuple(numbers.solve(warp) or 0 for warp in first))
    return Meeting(1 << len(together), 1 << len(numbers), number)
