"""Where every register of a conversion's target comes from: a map over F2.

For the columns S of a source and D of a target the map M takes each bit of the target's element,
lane and warp to a slot of the source, so that S M = D. A target's lane is made of the source's
lanes M_LL d + V, with V the lanes that the element bits of the target lie in; V is chosen as small
as it can be, and a lane reads itself where it can.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fragir.layout.f2 import Subspace, image, kernel
from fragir.layout.planning.registers import LANE_BITS, RegisterColumns

LANE = 16
"""A slot is a number: the element's bits from 0, the lane's from here."""
ELEMENTS = (1 << LANE) - 1


def lane_of(slot: int) -> int:
    """The lane of a slot."""
    return slot >> LANE


def element_of(slot: int) -> int:
    """The element of a slot."""
    return slot & ELEMENTS


@dataclass(frozen=True)
class Pull:
    """The slot of the source for each bit of the target.

    `element` are those of the element bits that hold different elements (`kept`); `whole` says for
    every element bit of the target which of them it adds up. `lane` and `warp` are slots within
    the own warp. `others` are the kept bits that bring a new source lane, and `own` says that a
    lane is one of its own sources.
    """

    element: tuple[int, ...]
    whole: tuple[int, ...]
    lane: tuple[int, ...]
    warp: tuple[int, ...]
    others: tuple[int, ...]
    own: bool
    source: RegisterColumns

    @cached_property
    def lanes(self) -> Subspace:
        """V: the lanes that a lane reads, as sums of `others`; to be copied, not changed."""
        span = Subspace()
        for index, bit in enumerate(self.others):
            span.add(lane_of(self.element[bit]), 1 << index)
        return span


def pull_of(source: RegisterColumns, target: RegisterColumns) -> Pull | None:
    """What the target reads; None where an element has to come from another warp."""
    near = Subspace(source.element)
    far = near.copy()
    for bit, column in enumerate(source.lane):
        far.add(column, 1 << LANE + bit)
    kept = Subspace()
    element, whole, others = list[int](), list[int](), list[int]()
    for column in target.element:
        copied = kept.solve(column)
        if copied is not None:
            whole.append(copied)
            continue
        kept.add(column, 1 << len(element))
        whole.append(1 << len(element))
        slot = near.solve(column)
        if slot is None:
            slot = far.solve(column)
            if slot is None:
                return None
            near.add(column, slot)
            others.append(len(element))
        element.append(slot)
    own = True
    lane = list[int]()
    for bit, (column, mine) in enumerate(zip(target.lane, source.lane, strict=True)):
        slot = near.solve(column ^ mine)
        if slot is not None:
            slot ^= 1 << LANE + bit
        else:
            own = False
            slot = far.solve(column)
            if slot is None:
                return None
        lane.append(slot)
    warp = list[int]()
    for column in warps_between(source, target):
        slot = near.solve(column)
        if slot is None:
            slot = far.solve(column)
        if slot is None:
            return None
        warp.append(slot)
    return Pull(tuple(element), tuple(whole), tuple(lane), tuple(warp), tuple(others), own, source)


def warps_between(source: RegisterColumns, target: RegisterColumns) -> list[int]:
    """What each bit of the warp moves differently on both sides."""
    count = max(len(source.warp), len(target.warp))
    sides = (side.warp + (0,) * (count - len(side.warp)) for side in (source, target))
    return [a ^ b for a, b in zip(*sides, strict=True)]


def spread(pull: Pull) -> tuple[int, ...]:
    """The lanes' slots such that lanes which would read the same read different copies.

    A source whose lanes repeat each other has slots that hold the same element; adding their
    difference changes who is read, not what.
    """
    source = pull.source
    count = len(source.element)
    copies = [
        vector & (1 << count) - 1 | vector >> count << LANE
        for vector in kernel(source.element + source.lane)
    ]
    copies = [copy for copy in copies if lane_of(copy)]
    reached = Subspace(pull.lanes)
    lane = list(pull.lane)
    late = [bit for bit in range(LANE_BITS) if not reached.add(lane_of(lane[bit]))]
    for bit in late:
        for copy in copies:
            if reached.add(lane_of(lane[bit] ^ copy)):
                lane[bit] ^= copy
                break
    return tuple(lane)


def senders(lane: Sequence[int], lanes: Subspace) -> list[int] | None:
    """For each bit of the reading lane a part of V, so that all lanes read from different ones.

    `lane` are the lanes read by the bits of a lane. What comes back is added to them: it is zero
    but where lanes would coincide, and None where V has too little room.
    """
    inside = kernel([lanes.rest(column) for column in lane])
    lost = kernel(lane)
    reached = Subspace(image(lane, vector) for vector in inside)
    free = [vector for vector in lanes if reached.add(vector)]
    if len(free) < len(lost):
        return None
    added = [0] * len(lane)
    for vector, part in zip(lost, free, strict=False):
        added[vector.bit_length() - 1] = part
    return added
