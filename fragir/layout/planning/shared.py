"""Conversions through shared memory: store, wait, load, without bank conflicts.

The tile is stored to scratch memory and loaded from there. `shared_plan` chooses the instructions
of both sides (plain accesses of up to 16 bytes, `stmatrix`, `ldmatrix`), and where each point
stands, so that no bank is met twice (see `banks`), as few warps as can be wait for each other (see
`sync`), and the whole costs least.

>>> from fragir.layout.planning.registers import RegisterColumns
>>> rows = RegisterColumns((1, 2, 64), (4, 8, 16, 32, 128))
>>> cols = RegisterColumns((128, 64, 32), (16, 8, 4, 2, 1))
>>> plan = shared_plan(rows, cols, 32)
>>> plan.counts
{'st.64': 4, 'ld.64': 4, 'bar.warp.sync': 1}
>>> plan.passes, plan.scratch, plan.stores[1].address
((8, 8), 1024, Linear(start=128, lane=(8, 16, 32, 64, 512), warp=()))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import permutations
from typing import Literal

from fragir.errors import short_text
from fragir.layout.f2 import Subspace, image, rank
from fragir.layout.planning.access import (
    MATRICES,
    Reach,
    SharedAccess,
    SharedSide,
    Way,
    address_columns,
    common_order,
    passes_of,
    registers_beside,
    shifts,
    ways,
)
from fragir.layout.planning.costs import COSTS, FEATURES, Costs, Features
from fragir.layout.planning.program import Linear, WordProgram, gather_words
from fragir.layout.planning.registers import RegisterColumns
from fragir.layout.planning.sync import Crossing, Meeting, crossing

# -- rounds ----------------------------------------------------------------------------------------
# Conversions through little shared memory: in rounds, each with a part of the registers.
#
# Let x_1 .. x_k be registers of both sides, independent of all columns of lanes and warps. The tile
# falls into 2^k parts, by what they contribute; each part is converted as the one where they are
# zero, with other words at the same addresses. So a round needs the 2^k-th part of the memory, and
# differs from the others in the numbers of its words alone.


def in_rounds(moved: Crossing, wanted: int) -> Crossing:
    """One of 2^wanted rounds of a conversion, or of as many as there can be."""
    source, target = moved.source, moved.target
    threads = source.lane + source.warp + target.lane + target.warp
    span = Subspace(threads)
    # registers that accesses would hold together come last
    both = [c for c in reversed(common_order(source, target)[0]) if c in target.numbers]
    turned = [column for column in both if span.add(column)][:wanted]
    if not turned:
        return moved
    units = (1 << index for index in range(moved.dims))
    rest = Subspace(turned)
    kept = [c for c in (*threads, *source.element, *target.element, *units) if rest.add(c)]
    dims = moved.dims - len(turned)
    places = Subspace()
    for index, vector in enumerate((*sorted(kept), *turned)):
        places.add(vector, 1 << index)
    mask = (1 << dims) - 1

    def part(side: SharedSide) -> tuple[SharedSide, list[int]]:
        """The side in one round, and the elements that the rounds begin with."""
        begin = [side.numbers.solve(column) or 0 for column in turned]
        inner = Subspace()
        element: list[int] = []
        slots: list[int] = []
        for column, slot in zip(side.element, side.slots, strict=True):
            place = places.solve(column) or 0
            if inner.add(place & mask):
                element.append(place & mask)
                slots.append(slot ^ image(begin, place >> dims))

        def placed(columns: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(places.solve(column) or 0 for column in columns)

        reduced = replace(
            side,
            element=tuple(element),
            slots=tuple(slots),
            lane=placed(side.lane),
            warp=placed(side.warp),
        )
        return reduced, [image(begin, number) for number in range(1 << len(turned))]

    first, stored = part(source)
    second, loaded = part(target)
    starts = tuple(zip(stored, loaded, strict=True))
    return replace(moved, source=first, target=second, dims=dims, starts=starts)


CROWDED = 32
"""With so many ldmatrix.x4 (128 registers) ptxas copies a register for most of them unless the
registers of each are side by side in the fragment (ptxas 13.2, "acc to B" of
benchmarks/conversions.py)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Two ways with an address map that suits both; `passes` of store and load."""

    store: Way
    load: Way
    address: tuple[int, ...]
    passes: tuple[int, int]
    cost: float


@dataclass(frozen=True)
class SharedPlan:
    """A conversion through shared memory.

    A thread makes the words that `before` says, stores them, waits (`meeting`), loads, and makes
    its fragment as `after` says. With more than one of `rounds` this happens in turns on the same
    memory: `turns` has the stores and the loads of each, with a second wait between turns.
    `scratch` is in bytes, for all groups of warps together; addresses know the group. `passes` are
    what the stores and the loads of one warp take (of one that stores, where others hold the same).
    """

    source: RegisterColumns
    target: RegisterColumns
    bits: int
    meeting: Meeting
    scratch: int
    rounds: int
    passes: tuple[int, int]
    costs: Costs
    moved: Crossing = field(repr=False)
    choice: Choice = field(repr=False)

    def __repr__(self) -> str:
        steps = " + ".join(f"{count} {name}" for name, count in self.counts.items())
        return short_text(f"<conversion through {self.scratch} bytes of shared memory: {steps}>")

    @property
    def stores(self) -> tuple[SharedAccess, ...]:
        """What every thread stores, of all rounds."""
        return self._store_program[1]

    @property
    def before(self) -> WordProgram:
        """The words that are stored, of the fragment's words."""
        return self._store_program[0]

    @property
    def loads(self) -> tuple[SharedAccess, ...]:
        """What every thread loads, of all rounds."""
        return self._load_program[1]

    @property
    def after(self) -> WordProgram:
        """The target's fragment of the words loaded; its inputs are numbered as loads say."""
        return self._load_program[0]

    @property
    def turns(self) -> tuple[tuple[tuple[SharedAccess, ...], tuple[SharedAccess, ...]], ...]:
        """The stores and the loads of each round."""
        sides: list[list[tuple[SharedAccess, ...]]] = []
        for accesses in (self.stores, self.loads):
            each = len(accesses) // self.rounds
            sides.append([accesses[i : i + each] for i in range(0, len(accesses), each)])
        return tuple(zip(*sides, strict=True))

    @cached_property
    def cost(self) -> float:
        """The price of one warp's conversion, in half cycles."""
        waits = (2 * self.rounds - 1) * self.costs.barrier(self.meeting.reach)
        return self.work + self.formulas + waits

    @cached_property
    def work(self) -> float:
        """The price of instructions and passes, without lane formulas and barriers."""
        costs = self.costs
        permutes = len(self.before.steps) + len(self.after.steps)
        issued = permutes + len(self.stores) + len(self.loads)
        stored = self.passes[0] / (1 << self.moved.copies if self.moved.spared else 1)
        return (
            (stored + self.passes[1]) * costs.wavefront
            + permutes * costs.move
            + issued * costs.issue
        )

    @property
    def formulas(self) -> float:
        """The price of what lanes compute of their own number, once."""
        return (2 + bool(self.choice.store.spared or self.moved.spared)) * self.costs.formula

    @cached_property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name; lane formulas are not among them."""
        found: dict[str, int] = {}
        for name in (access.name for access in self.stores + self.loads):
            found[name] = found.get(name, 0) + 1
        permutes = len(self.before.steps) + len(self.after.steps)
        if permutes:
            found["prmt"] = permutes
        barrier = "bar.warp.sync" if self.meeting.reach == "warp" else "bar.sync"
        return {**found, barrier: 2 * self.rounds - 1}

    @cached_property
    def _store_program(self) -> tuple[WordProgram, tuple[SharedAccess, ...]]:
        side, way = self.moved.source, self.choice.store
        addresses, held = _accesses(self, side, way)
        held = [
            tuple(start ^ slot for slot in word) for start, _ in self.moved.starts for word in held
        ]
        before = gather_words(_words(len(self.source.element), self.bits), held, side.unit)
        lanes = tuple(way.spared & 1 << k for k in range(len(side.lane)))
        warps = tuple(part << len(lanes) for part in self.moved.spared)
        unless = Linear(0, lanes, warps) if any(lanes + warps) else None
        return before, self._accesses_of_rounds(way, "st", addresses, before.outputs, unless)

    @cached_property
    def _load_program(self) -> tuple[WordProgram, tuple[SharedAccess, ...]]:
        side, way = self.moved.target, self.choice.load
        addresses, held = _accesses(self, side, way)
        per = 1 << side.inside
        where: dict[int, int] = {}
        for turn, (_, start) in enumerate(self.moved.starts):
            for number, word in enumerate(held, turn * len(held)):
                for place, slot in enumerate(word):
                    where[start ^ slot] = number * per + place
        elements = [where[slot] for slot in _elements(self.target.element, self.bits)]
        wanted = (elements[i : i + per] for i in range(0, len(elements), per))
        words = range(len(held) * self.rounds)
        return gather_words(len(words), wanted, side.unit), self._accesses_of_rounds(
            way, "ld", addresses, words
        )

    def _accesses_of_rounds(
        self,
        way: Way,
        kind: Literal["st", "ld"],
        addresses: Sequence[Linear],
        words: Sequence[int],
        unless: Linear | None = None,
    ) -> tuple[SharedAccess, ...]:
        """The accesses of all rounds, which take or give those words in their order."""
        name = MATRICES[kind] if way.matrices else kind
        each = max(1, way.size // 4)
        many = [address for _ in self.moved.starts for address in addresses]
        return tuple(
            SharedAccess(
                name,
                way.size,
                tuple(words[i * each : (i + 1) * each]),
                address,
                way.matrices,
                way.trans,
                unless,
            )
            for i, address in enumerate(many)
        )


@lru_cache(maxsize=512)
def shared_plan(
    source: RegisterColumns,
    target: RegisterColumns,
    bits: int,
    features: Features = FEATURES,
    costs: Costs = COSTS,
) -> SharedPlan:
    """The cheapest conversion of elements of `bits` (8, 16, 32 or 64) through shared memory.

    LayoutError where the target has points that the source lacks.
    """
    plan = _plan_through_shared(
        source, target, bits, crossing(source, target, bits), features, costs
    )
    if plan.meeting.reach == "warp" or not plan.moved.copies:
        return plan
    joined = crossing(source, target, bits, joined=True)
    other = _plan_through_shared(source, target, bits, joined, features, costs)
    return min(plan, other, key=lambda plan: (plan.scratch > features.scratch, plan.cost))


def _plan_through_shared(
    source: RegisterColumns,
    target: RegisterColumns,
    bits: int,
    moved: Crossing,
    features: Features,
    costs: Costs,
) -> SharedPlan:
    groups, unit = moved.meeting.groups, moved.source.unit
    most = features.scratch // groups
    if unit << moved.dims > most:
        moved = in_rounds(moved, moved.dims - (most // unit).bit_length() + 1)
    choice = _cheapest(moved, features, costs)
    scratch, rounds = (unit << moved.dims) * groups, len(moved.starts)
    passes = rounds * choice.passes[0], rounds * choice.passes[1]
    return SharedPlan(
        source, target, bits, moved.meeting, scratch, rounds, passes, costs, moved, choice
    )


def _cheapest(moved: Crossing, features: Features, costs: Costs) -> Choice:
    """The cheapest two ways; those that cannot be cheaper than what is found are not tried."""
    source, target = moved.source, moved.target
    orders = common_order(source, target)
    stores = ways(source, target, features.stmatrix, orders[0])
    loads = ways(target, source, features.ldmatrix, orders[1])

    def least(way: Way) -> float:
        work = way.permutes * (costs.move + costs.issue) + way.count * costs.issue
        return work + way.passes * costs.wavefront + bool(way.spared) * costs.formula

    firsts = [(least(way), i, way) for i, way in enumerate(stores)]
    seconds = [(least(way), i, way) for i, way in enumerate(loads)]
    pairs = sorted((a[0] + b[0], a[1], b[1]) for a in firsts for b in seconds)
    best: Choice | None = None
    for hoped, i, j in pairs:
        if best is not None and best.cost <= hoped:
            break
        choice = _matched_ways(moved, stores[i], loads[j], hoped, costs)
        if choice is not None and (best is None or choice.cost < best.cost):
            best = choice
    assert best is not None, "single elements always work"
    if best.passes != (best.store.passes, best.load.passes):
        return best
    wide, narrow = _by_width(best.store, best.load)
    crowded = best.load.matrices and best.load.count >= CROWDED
    ahead = registers_beside(best.load, target) if crowded else ()
    address = address_columns(wide, narrow, moved.dims, source.unit, simple=True, ahead=ahead)
    return best if address is None else replace(best, address=tuple(address))


def _matched_ways(
    moved: Crossing, store: Way, load: Way, hoped: float, costs: Costs
) -> Choice | None:
    """Two ways with their addresses; None where they hold other points together."""
    unit = moved.source.unit
    wide, narrow = _by_width(store, load)
    if wide.low[: len(narrow.low)] != narrow.low:
        return None
    address = address_columns(wide, narrow, moved.dims, unit)
    if address is None:
        return None
    lost = [
        passes_of([image(address, c) for c in (*way.reach.low, *way.reach.served)], unit)
        for way in (store, load)
    ]
    passes = store.passes * lost[0], load.passes * lost[1]
    more = sum(passes) - store.passes - load.passes
    return Choice(store, load, tuple(address), passes, hoped + more * costs.wavefront)


def _by_width(store: Way, load: Way) -> tuple[Reach, Reach]:
    """What both ways touch, the wider vector first."""
    if len(store.reach.low) < len(load.reach.low):
        return load.reach, store.reach
    return store.reach, load.reach


def _accesses(
    plan: SharedPlan, side: SharedSide, way: Way
) -> tuple[list[Linear], list[tuple[int, ...]]]:
    """The addresses of a side's accesses, and the elements of their words, of one round."""
    address, unit = plan.choice.address, side.unit

    def bytes_(columns: Iterable[int]) -> list[int]:
        return [image(address, column) * unit for column in columns]

    size = unit << plan.moved.dims
    group = plan.meeting.number.warp
    warp = tuple(at | i * size for at, i in zip(bytes_(side.warp), group, strict=True))
    if way.matrices:
        slots, together = side.numbers, way.matrices.bit_length() - 1
        rows, beside = bytes_(way.rows), registers_beside(way, side)
        rest = _numbering(dict(zip(beside, bytes_(beside), strict=True)), together, rows, warp)
        lane = (*rows, *bytes_(rest[:together]), *(0,) * (2 - together))
        inside = _sums([(0, slots.solve(c) or 0) for c in way.word])
        words = _sums([(at, slots.solve(c) or 0) for at, c in zip(bytes_(rest), rest, strict=True)])
        starts = [at for at, _ in words[:: way.matrices]]
        held = [tuple(slot ^ part for _, part in inside) for _, slot in words]
    else:
        lane = tuple(bytes_(side.lane))
        width = 1 << len(way.reach.low)
        per = min(width, 1 << side.inside)
        single = sorted(_sums(list(zip(bytes_(side.element), side.slots, strict=True))))
        starts = [at for at, _ in single[::width]]
        order = [slot for _, slot in single]
        held = [tuple(order[i : i + per]) for i in range(0, len(order), per)]
    return [Linear(start, lane, warp) for start in starts], held


def _numbering(
    beside: Mapping[int, int], together: int, rows: Sequence[int], warp: Sequence[int]
) -> list[int]:
    """The registers beside a matrix, with those first that lanes 3 and 4 are to number.

    `beside` has their addresses. They are chosen so that addresses take the fewest shifts (with a
    mask each), and the registers left the fewest other beginnings: one for each sum of bits that
    threads reach too.
    """

    def price(first: Sequence[int]) -> int:
        threads = (*rows, *(beside[column] for column in first), *(0,) * (2 - together), *warp)
        reached = 0
        for column in threads:
            reached |= column
        begins = rank(at & reached for column, at in beside.items() if column not in first)
        return 2 * len(shifts(threads)) + (1 << begins)

    first = min(permutations(beside, together), key=price)
    return [*first, *(column for column in beside if column not in first)]


def _sums(columns: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The sums of all sets of pairs, the first pair's bit the lowest of the index."""
    found = [(0, 0)]
    for a, b in columns:
        found += [(x ^ a, y ^ b) for x, y in found]
    return found


def _elements(element: Sequence[int], bits: int) -> list[int]:
    """For every element of a fragment the first one that holds the same point."""
    columns = [column << 1 for column in element] if bits == 64 else list(element)
    if bits == 64:
        columns.insert(0, 1)
    span, found = Subspace(), [0]
    for index, column in enumerate(columns):
        same = span.solve(column)
        if same is None:
            same = 1 << index
            span.add(column, same)
        found += [slot ^ same for slot in found]
    return found


def _words(element_bits: int, bits: int) -> int:
    """32-bit words of a fragment."""
    return max(1, (bits << element_bits) // 32)
