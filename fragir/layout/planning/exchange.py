"""One hop: words prepared in their lanes, one shuffle each, and taken apart where they arrive.

A target's lane d reads lanes M_LL d + V (`pull`), a share of its words from each. A matrix X from
lanes to V makes C = M_LL + X invertible; step t in V is the shuffle in which lane d reads lane
C d + t. The elements of one step are those of N = ker M_LE; a subspace of N with as many elements
as fit travels in one word, the others take one shuffle each. So the number of shuffles is the
number of words of a lane, less those that it reads from itself. Which word a step carries is linear
in step and lane on both sides (`LocalMap`): it is prepared before and taken apart after.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from fragir.layout.f2 import Subspace, image, kernel
from fragir.layout.planning.local import Chooser, LocalMap
from fragir.layout.planning.program import OWN, Builder, WordProgram
from fragir.layout.planning.registers import LANE_BITS, RegisterColumns

# -- pull ------------------------------------------------------------------------------------------
# Where every register of a conversion's target comes from: a map over F2.
#
# For the columns S of a source and D of a target the map M takes each bit of the target's element,
# lane and warp to a slot of the source, so that S M = D. A target's lane is made of the source's
# lanes M_LL d + V, with V the lanes that the element bits of the target lie in; V is chosen as
# small as it can be, and a lane reads itself where it can.

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


def spread_slots(pull: Pull) -> tuple[int, ...]:
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


@dataclass(frozen=True)
class Exchange:
    """One hop of a conversion: which lane reads which (C, X), and what a word carries."""

    pull: Pull
    inside: int
    """2^inside elements are a word."""
    lane: tuple[int, ...]
    """The slots read by the bits of the lane (of other copies than the pull's, perhaps)."""
    within: tuple[int, ...]
    """X: the part of V that each bit of the lane reads from in step zero."""
    packed: tuple[int, ...]
    """The elements, as sums of the target's kept bits, that travel in one word."""
    beside: tuple[int, ...]
    """Those that travel in further words of the same step."""
    steps: int = 0
    """Steps before and after, as they are reckoned before the program is made."""

    @property
    def mixed(self) -> int:
        """m: 2^m lanes are read by each."""
        return len(self.pull.others)

    @cached_property
    def reached_lane(self) -> tuple[int, ...]:
        """C: the lane that a lane reads from in step zero."""
        return tuple(lane_of(s) ^ x for s, x in zip(self.lane, self.within, strict=True))

    @cached_property
    def warps(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """What the warp's bits add to X and to C."""
        lanes = self.pull.lanes
        moved = [lane_of(slot) for slot in self.pull.warp]
        inner = tuple(lane if lane in lanes else 0 for lane in moved)
        return inner, tuple(a ^ b for a, b in zip(moved, inner, strict=True))

    @cached_property
    def keeps(self) -> bool:
        """Whether step zero is the own lane, and needs no shuffle."""
        return self.reached_lane == OWN and not any(self.warps[1])

    @property
    def shuffles(self) -> int:
        """Words sent."""
        sent = 1 << self.mixed + len(self.beside)
        return sent - (sent >> self.mixed if self.keeps else 0)

    # --- what is sent, and what of it is read

    @cached_property
    def before(self) -> LocalMap:
        """The source's element in each unit of the word (step, place) that a lane sends."""
        others = self.pull.others
        back = _back(self.reached_lane)
        inner, outer = self.warps

        def sent(lane: int) -> int:
            """What a lane adds by being the sender."""
            return self._wanted_element(0, image(back, lane))

        step = [
            self._wanted_element(1 << bit, image(back, lane_of(self.pull.element[bit])))
            for bit in others
        ]
        warp = [
            element_of(slot) ^ self._step_of(part) ^ sent(moved)
            for slot, part, moved in zip(self.pull.warp, inner, outer, strict=True)
        ]
        return LocalMap(
            self.inside,
            (*step, *(self._wanted_element(vector, 0) for vector in self.beside)),
            tuple(self._wanted_element(vector, 0) for vector in self.packed),
            tuple(sent(lane) for lane in OWN),
            tuple(warp),
        )

    @cached_property
    def after(self) -> LocalMap:
        """The received word (step, place) and its unit for each element of the target."""
        placed = self._coordinates
        words = self.mixed + len(self.beside)
        low, b = (1 << words) - 1, self.inside

        def at(coordinates: int) -> int:
            return (coordinates & low) << b | coordinates >> words

        inner = self.pull.lanes
        whole = [at(placed.solve(kept) or 0) for kept in self.pull.whole]
        lane = tuple(at(inner.solve(part) or 0) for part in self.within)
        warp = tuple(at(inner.solve(part) or 0) for part in self.warps[0])
        return LocalMap(b, tuple(whole[b:]), tuple(whole[:b]), lane, warp)

    @cached_property
    def wanted_elements(self) -> LocalMap:
        """The source's element for each element of the target, whatever lane it is in."""
        b = self.inside
        whole = [self._wanted_element(kept, 0) for kept in self.pull.whole]
        lane, warp = (tuple(map(element_of, side)) for side in (self.lane, self.pull.warp))
        return LocalMap(b, tuple(whole[b:]), tuple(whole[:b]), lane, warp)

    def _wanted_element(self, kept: int, lane: int) -> int:
        """The source's element of a reader's element in a step: it lies at `kept` + X lane."""
        part = image(self.within, lane)
        return (
            image([element_of(slot) for slot in self.pull.element], kept)
            ^ self._step_of(part)
            ^ image([element_of(slot) for slot in self.lane], lane)
        )

    def _step_of(self, part: int) -> int:
        """The source's element that a part of V adds."""
        steps_of = self.pull.lanes.solve(part) or 0
        others = [element_of(self.pull.element[bit]) for bit in self.pull.others]
        return image(others, steps_of)

    @cached_property
    def _coordinates(self) -> Subspace:
        """Combinations of the target's kept bits as step, place and unit."""
        vectors = [1 << bit for bit in self.pull.others]
        return Subspace([*vectors, *self.beside, *self.packed])

    # --- the program

    def program(self, inputs: int) -> WordProgram:
        """The instructions, for so many words of the source."""
        builder = Builder(inputs)
        before, after = self.before, self.after
        renamed = _in_place(before) if after.choices else None
        if renamed is not None:
            own = self._own_words() if before.choices else None
            if own is not None:
                return self._merge(builder, renamed, own)
            before, after = renamed, _placed_units(after, self.wanted_elements)
        words = before.emit(builder, lambda word: word)
        kept = (1 << self.mixed) - 1 if self.keeps else -1
        received = [
            self._shuffle(builder, word, index) if index & kept or not self.keeps else word
            for index, word in enumerate(words)
        ]
        return builder.program(after.emit(builder, received.__getitem__))

    def _shuffle(self, builder: Builder, word: int, index: int) -> int:
        lanes = [lane_of(self.pull.element[bit]) for bit in self.pull.others]
        step = image(lanes, index & (1 << self.mixed) - 1)
        return builder.shuffle(word, builder.number(step, self.reached_lane, self.warps[1]))

    def _own_words(self) -> list[int] | None:
        """The one word of the source that each output takes where it reads its own lane.

        None where that depends on the thread or the unit, or where there are more than two lanes.
        """
        after, wanted, b = self.after, self.wanted_elements, self.inside
        if self.mixed != 1 or not self.keeps or after.choices != 1:
            return None
        ways = set[int]()
        for step, element in zip(
            after.unit + after.threads, wanted.unit + wanted.threads, strict=True
        ):
            if step >> b & 1:
                ways.add(element >> b)
            elif element >> b:
                return None
        if len(ways) != 1:
            return None
        (way,) = ways
        return [
            image(wanted.word, word) >> b ^ (way if image(after.word, word) >> b & 1 else 0)
            for word in range(1 << len(wanted.word))
        ]

    def _merge(self, builder: Builder, before: LocalMap, own: Sequence[int]) -> WordProgram:
        """Own words are taken from the source where they are, others as they arrive."""
        b, after, wanted = self.inside, self.after, self.wanted_elements
        sent = LocalMap(
            b, before.word[1:], before.unit, before.lane, before.warp, before.start ^ before.word[0]
        ).emit(builder, lambda word: word)
        received = [self._shuffle(builder, word, 1) for word in sent]
        way = next(c >> b for c in after.unit + after.threads if c >> b)
        mask = (1 << b) - 1
        columns = [
            [(step >> b & 1) << b | element & mask for step, element in zip(*sides, strict=True)]
            for sides in (
                (after.unit, wanted.unit),
                (after.lane, wanted.lane),
                (after.warp, wanted.warp),
            )
        ]
        columns[0] += [1 << bit for bit in range(len(after.unit), b)]
        choose = Chooser(builder, b, *columns)
        outputs = list[int]()
        for output, mine in enumerate(own):
            index = image(after.word, output) >> b
            start = (index & 1) << b | image(wanted.word, output) & mask
            index = index if index & 1 else index ^ way
            outputs.append(choose(mine, received[index >> 1], start, 0))
        return builder.program(outputs)


def _back(columns: Sequence[int]) -> list[int]:
    """An inverse matrix; where there is none, one of the vectors that can be reached."""
    span = Subspace(columns)
    for bit in range(len(columns)):
        span.add(1 << bit)
    return [span.solve(1 << bit) or 0 for bit in range(len(columns))]


def _in_place(before: LocalMap) -> LocalMap | None:
    """The same words with every unit where it is in the source; None where two fall together."""
    b, mask = before.inside, (1 << before.inside) - 1
    units = [c & mask for c in before.unit]
    words = [c >> b for c in before.unit]
    place = Subspace()
    single = all(place.add(unit, 1 << bit) for bit, unit in enumerate(units))
    if not single and any(words):
        return None
    for bit in range(b):
        place.add(1 << bit)

    def moved(column: int) -> int:
        return (column >> b ^ image(words, place.solve(column & mask) or 0)) << b

    return LocalMap(
        b,
        tuple(map(moved, before.word)),
        tuple(moved(1 << bit) | 1 << bit for bit in range(b)),
        tuple(map(moved, before.lane)),
        tuple(map(moved, before.warp)),
    )


def _placed_units(after: LocalMap, wanted: LocalMap) -> LocalMap:
    """What arrives, with units where they were in the source."""
    b, mask = after.inside, (1 << after.inside) - 1

    def both(first: Sequence[int], second: Sequence[int]) -> tuple[int, ...]:
        return tuple(a & ~mask | c & mask for a, c in zip(first, second, strict=True))

    return LocalMap(
        b,
        both(after.word, wanted.word),
        both(after.unit, wanted.unit),
        both(after.lane, wanted.lane),
        both(after.warp, wanted.warp),
    )
