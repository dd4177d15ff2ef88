"""Plans of conversions between register layouts: the cheapest way, as data.

>>> from fragir.layout.layout import Layout
>>> sums = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)]")
>>> operand = Layout.parse("lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0) 2:(0,16)]")
>>> plan = plan_conversion(sums, operand, 8)
>>> plan.way, plan.counts
('shuffles', {'selp': 4, 'shfl': 4, 'prmt': 4})

`plan.moves` says how far data travel and what no plan can undercut; `plan.program` is what a thread
does where its warp is enough, `plan.through` what it does through shared memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Literal, overload

from typing_extensions import deprecated

from fragir.deprecation import warn
from fragir.errors import short_text
from fragir.layout.combine import permuted
from fragir.layout.conversion import Conversion, LanePoints, points_of
from fragir.layout.conversion import sources as sources_of
from fragir.layout.display import Drawn
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP, LayoutError, Point
from fragir.layout.planning.access import SharedAccess
from fragir.layout.planning.bounds import Movement, least_price, moves_of
from fragir.layout.planning.costs import COSTS, FEATURES, Costs, Features
from fragir.layout.planning.padding import PaddedRows, padded_rows
from fragir.layout.planning.program import (
    Linear,
    WordProgram,
    gather_words,
    lanewise,
    repeat_program,
    side_by_side,
)
from fragir.layout.planning.registers import LayoutPair, pair_of, words_of
from fragir.layout.planning.shared import SharedPlan, shared_plan
from fragir.layout.planning.sync import Meeting
from fragir.layout.planning.warp import price, warp_plan

if TYPE_CHECKING:
    from fragir.layout.planning.colouring import TablePlan


# -- narrow ----------------------------------------------------------------------------------------
# Elements of 1 and 4 bits that part from those they share a byte with: with a byte for each.
#
# Words are taken apart into words of bytes, those are converted as elements of 8 bits, and words of
# elements are made of them again. What that takes beside the conversion is the same for every word.

APART = {4: {"and": 2, "shr": 1, "prmt": 2}, 1: {"shr": 7, "and": 16, "mul": 8}}
"""Instructions that make bytes of one word of elements of so many bits."""
TOGETHER = {4: {"prmt": 2, "shl": 1, "or": 1}, 1: {"mul": 8, "shr": 8, "shl": 7, "or": 7}}
"""Instructions that make one word of elements of words of bytes."""


def beside_bytes(given: int, wanted: int, bits: int) -> Counter[str]:
    """Instructions beside the conversion of bytes, for so many elements of source and target."""
    found: Counter[str] = Counter()
    for elements, each in ((given, APART[bits]), (wanted, TOGETHER[bits])):
        for name, count in each.items():
            found[name] += words_of(elements, bits) * count
    return found


Way = Literal["nothing", "registers", "bytes", "shuffles", "shared", "elements"]
"""How a conversion is done: not at all; other names for words; byte permutes and selects; shuffles;
through shared memory; element by element through shared memory, where no better plan is known."""

MOST_WORDS = 8
"""Words of a fragment up to which a conversion from tables is tried: planning takes some ms."""

Turn = tuple[tuple[SharedAccess, ...], tuple[SharedAccess, ...]]


@dataclass(frozen=True)
class Through:
    """A whole fragment's way through shared memory.

    A thread makes the words of `before`, which stores name by number. In each turn it stores, waits
    for its `meeting`, and loads; `after` makes its fragment of all words loaded, which are its
    inputs. Turns use the same memory: a second wait stands between them. `scratch` is in bytes;
    `passes` are what the stores and the loads of one warp take.
    """

    before: WordProgram
    turns: tuple[Turn, ...]
    after: WordProgram
    meeting: Meeting
    scratch: int
    passes: tuple[int, int]

    @property
    def barriers(self) -> int:
        """How often a thread waits; once more before its scratch memory is used again."""
        return 2 * len(self.turns) - 1

    @cached_property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name."""
        accesses = [a for turn in self.turns for side in turn for a in side]
        barrier = "bar.warp.sync" if self.meeting.reach == "warp" else "bar.sync"
        found: dict[str, int] = {}
        for name in (access.name for access in accesses):
            found[name] = found.get(name, 0) + 1
        for program in (self.before, self.after):
            for name, count in program.counts.items():
                found[name] = found.get(name, 0) + count
        return {**found, barrier: self.barriers}


@dataclass(frozen=True)
class ConversionPlan(Drawn):
    """The cheapest known conversion between two layouts of elements of `bits`.

    `moves` is None where the layouts are not said over F2. Of `program`, `through`, `permutation`,
    `rows` and `apart` one is given: `program` takes and gives the fragment's 32-bit words,
    `permutation` names for every element of the target one of the source, in the same lane, where
    whole words have other names, `rows` is the memory through which single elements go, and `apart`
    the conversion of elements of less than a byte with a byte for each.
    """

    source: Layout
    target: Layout
    bits: int
    way: Way
    cost: float
    least: float
    """What no plan can undercut, by the costs."""
    moves: Movement | None = None
    program: WordProgram | None = None
    through: Through | None = None
    permutation: tuple[int, ...] | None = None
    rows: PaddedRows | None = None
    apart: ConversionPlan | None = None

    def __repr__(self) -> str:
        steps = " + ".join(f"{count} {name}" for name, count in self.counts.items())
        priced = f"{self.cost:g} half cycles, {self.least:g} at least"
        return short_text(f"<conversion by {self.way}: {steps or 'no instructions'}; {priced}>")

    @property
    def free(self) -> bool:
        """Whether it takes no instruction at all."""
        return self.way in ("nothing", "registers")

    @property
    def counts(self) -> dict[str, int]:
        """Instructions of one thread by name, without lane formulas and moves of names.

        Empty for `elements`, whose accesses depend on the lowering.
        """
        if self.program is not None:
            return self.program.counts
        if self.apart is not None:
            return dict(self._beside + Counter(self.apart.counts))
        return {} if self.through is None else self.through.counts

    @property
    def _beside(self) -> Counter[str]:
        """Instructions beside the conversion of bytes."""
        given, wanted = (side.sizes.get("element", 1) for side in (self.source, self.target))
        return beside_bytes(given, wanted, self.bits)

    @property
    def scratch(self) -> int:
        """Bytes of shared memory."""
        if self.apart is not None:
            return self.apart.scratch
        if self.rows is not None:
            return self.rows.scratch
        return 0 if self.through is None else self.through.scratch

    @property
    def least_shuffles(self) -> int:
        """The number of shuffles that no program inside of a warp can undercut."""
        if self.moves is None:
            return 0
        pair = pair_of(self.source, self.target, self.bits)
        return self.moves.shuffles * (1 if pair is None else pair.times)


_HOPEFUL = 1.5
"""Shuffles that are reckoned dearer by this factor than shared memory are not planned out."""


@lru_cache(maxsize=512)
def plan_conversion(
    source: Layout,
    target: Layout,
    bits: int,
    features: Features = FEATURES,
    costs: Costs = COSTS,
) -> ConversionPlan:
    """The cheapest conversion of elements of `bits` from one register layout to another.

    The axes are element, lane and warp; elements of 1 to 4 bits are moved by the byte where both
    layouts keep the same ones together. Raises LayoutError for different numbers of lanes or warps
    and for an element that the target wants and the source does not hold, naming it.
    """
    pair = pair_of(source, target, bits)
    if pair is None:
        return _by_elements(source, target, bits, features, costs)
    moves, least = moves_of(pair), least_price(pair, costs)
    warp = warp_plan(pair.source, pair.target, pair.bits, costs, features)
    if warp is not None and not warp.crosses:
        program = assemble_program(warp.program, pair)
        same = program.outputs == tuple(range(program.inputs))
        way: Way = "bytes" if program.steps else "nothing" if same else "registers"
        return ConversionPlan(
            source, target, bits, way, price(program, costs), least, moves, program
        )
    try:
        shared = shared_plan(pair.source, pair.target, pair.bits, features, costs)
    except LayoutError:
        sources_of(source, target)  # names the element that is missing
        raise
    through = _through(shared, pair, features)
    waits = through.barriers * costs.barrier(through.meeting.reach)
    cost = shared.work * pair.times + shared.formulas + waits
    if warp is not None and warp.reckoned * pair.times <= _HOPEFUL * cost:
        program = assemble_program(warp.program, pair)
        shuffled = price(program, costs)
        if shuffled <= cost:
            return ConversionPlan(source, target, bits, "shuffles", shuffled, least, moves, program)
    return ConversionPlan(source, target, bits, "shared", cost, least, moves, through=through)


@overload
def plan(
    source: Layout, target: Layout, bits: int, features: Features = ..., costs: Costs = ...
) -> ConversionPlan: ...
@overload
@deprecated("write fragir.layout.sources; goes in fragir 0.3")
def plan(source: Layout, target: Layout) -> Conversion: ...
def plan(
    source: Layout,
    target: Layout,
    bits: int | None = None,
    features: Features = FEATURES,
    costs: Costs = COSTS,
) -> ConversionPlan | Conversion:
    """How elements of `bits` get from one register layout to another: `plan_conversion`.

    Without `bits` it is `fragir.layout.sources`, what has to move, with a DeprecationWarning.
    """
    if bits is None:
        warn(
            "fragir.layout.plan of two layouts is fragir.layout.sources now, and goes in fragir 0.3"
        )
        return sources_of(source, target)
    return plan_conversion(source, target, bits, features, costs)


@lru_cache(maxsize=4096)

# --- whole fragments -----------------------------------------------------------------------------


def assemble_program(program: WordProgram, pair: LayoutPair) -> WordProgram:
    """The program for the whole fragments of a pair: done for each of its times."""
    if pair.times > 1:
        return repeat_program(program, pair.source_words, pair.target_words)
    return program


def _through(shared: SharedPlan, pair: LayoutPair, features: Features) -> Through:
    """A shared plan for each of the pair's times: as many side by side as fit, then in turns."""
    before, after = shared.before, shared.after
    steps, numbers = side_by_side(before, pair.source_words)
    # accesses name the words that are made
    whole = WordProgram(sum(map(len, pair.source_words)), steps, ())
    loaded = after.inputs
    turns: list[Turn] = []
    beside = min(pair.times, max(1, features.scratch // shared.scratch))
    for first in range(0, pair.times, beside):
        together = range(first, min(first + beside, pair.times))
        for stores, loads in shared.turns:
            moved = [
                (
                    _moved_accesses(stores, place * shared.scratch, numbers[time].__getitem__),
                    _moved_accesses(loads, place * shared.scratch, (time * loaded).__add__),
                )
                for place, time in enumerate(together)
            ]
            turns.append(
                (_joined_accesses(m[0] for m in moved), _joined_accesses(m[1] for m in moved))
            )
    loads_pair = replace(
        pair,
        source_words=tuple(
            tuple(range(time * loaded, (time + 1) * loaded)) for time in range(pair.times)
        ),
    )
    return Through(
        whole,
        tuple(turns),
        assemble_program(after, loads_pair),
        shared.meeting,
        shared.scratch * beside,
        (shared.passes[0] * pair.times, shared.passes[1] * pair.times),
    )


def _moved_accesses(
    accesses: Iterable[SharedAccess], offset: int, word: Callable[[int], int]
) -> tuple[SharedAccess, ...]:
    return tuple(
        replace(
            access,
            address=_shifted_address(access.address, offset),
            words=tuple(map(word, access.words)),
        )
        for access in accesses
    )


def _shifted_address(address: Linear, offset: int) -> Linear:
    return replace(address, start=address.start + offset) if offset else address


def _joined_accesses(groups: Iterable[tuple[SharedAccess, ...]]) -> tuple[SharedAccess, ...]:
    return tuple(access for group in groups for access in group)


# --- what is not said over F2 --------------------------------------------------------------------


def _by_elements(
    source: Layout, target: Layout, bits: int, features: Features, costs: Costs
) -> ConversionPlan:
    """Inside of registers where that is enough; else element by element through shared memory."""
    inside = True
    if _lanes(source) >= WARP <= _lanes(target) or _warps(source) != _warps(target):
        found = sources_of(source, target)
        if found.permutation is not None:
            plan = _renaming_plan(source, target, bits, costs, found.permutation)
            if plan is not None:
                return plan
        inside = found.kind == "warp"
    if bits in APART:
        return _byte_plan(source, target, bits, features, costs)
    rows = padded_rows(source, target, max(8, bits))
    work = sum(rows.passes) * costs.wavefront + sum(rows.accesses) * costs.issue
    cost = work + 2 * costs.formula + costs.block_barrier
    tables = _by_tables(source, target, bits) if inside else None
    if tables is not None:
        program = tables.program
        # every number that lanes look up is a formula of its own
        numbers = {lanewise(step) for step in program.steps} - {None}
        shuffled = price(program, costs) + costs.formula * len(numbers)
        if shuffled <= cost:
            return ConversionPlan(source, target, bits, "shuffles", shuffled, 0.0, program=program)
    return ConversionPlan(source, target, bits, "elements", cost, 0.0, rows=rows)


def _renaming_plan(
    source: Layout, target: Layout, bits: int, costs: Costs, permutation: tuple[int, ...]
) -> ConversionPlan | None:
    """Elements in another order in each lane; None where they are parts of bytes."""
    given, per = source.sizes.get("element", 1), max(1, 32 // bits)
    order = _filled_permutation(permutation, per, given)
    if _are_whole_words(order, per):
        same = order == tuple(range(given))
        way: Way = "nothing" if same else "registers"
        return ConversionPlan(source, target, bits, way, 0.0, 0.0, permutation=order)
    unit = bits
    while unit < 8 and (halved := _by_pairs(order)) is not None:
        order, unit, given = halved, 2 * unit, -(-given // 2)
    if unit not in (8, 16):
        return None
    per = 32 // unit
    words = (order[first : first + per] for first in range(0, len(order), per))
    program = gather_words(words_of(given, unit), words, unit // 8)
    cost = price(program, costs)
    return ConversionPlan(source, target, bits, "bytes", cost, 0.0, program=program)


def _filled_permutation(permutation: Sequence[int], per: int, given: int) -> tuple[int, ...]:
    """The permutation with a source for the elements that no lane wants (-1): what keeps words of
    `per` elements whole, if there is such, of so many elements given.
    """
    filled: list[int] = []
    for first in range(0, len(permutation), per):
        word = permutation[first : first + per]
        known = next(((e, place) for place, e in enumerate(word) if e >= 0), (0, 0))
        begin = known[0] - known[1]
        whole = begin % per == 0 and all(e in (-1, begin + i) for i, e in enumerate(word))
        if whole and begin + len(word) <= given:
            filled += range(begin, begin + len(word))
        else:
            filled += [known[0] if e < 0 else e for e in word]
    return tuple(filled)


def _are_whole_words(order: Sequence[int], per: int) -> bool:
    """Whether whole words of `per` elements are renamed, so that no element moves in one."""
    return all(
        order[i] % per == 0 and tuple(order[i : i + per]) == tuple(range(order[i], order[i] + per))
        for i in range(0, len(order), per)
    )


def _by_pairs(order: Sequence[int]) -> tuple[int, ...] | None:
    """The order of elements twice as large; None where two that share one part."""
    firsts = order[::2]
    pairs = [e for first in firsts for e in (first, first + 1)]
    if any(e % 2 for e in firsts) or list(order) != pairs:
        return None
    return tuple(e // 2 for e in firsts)


def _byte_plan(
    source: Layout, target: Layout, bits: int, features: Features, costs: Costs
) -> ConversionPlan:
    """Elements of less than a byte with a byte for each."""
    moved = plan_conversion(source, target, 8, features, costs)
    way = "bytes" if moved.free else moved.way
    plan = ConversionPlan(source, target, bits, way, moved.cost, 0.0, apart=moved)
    beside = sum(plan.counts.values()) - sum(moved.counts.values())
    return replace(plan, cost=moved.cost + beside * (costs.move + costs.issue))


def _lanes(layout: Layout) -> int:
    return layout.sizes.get("lane", 1)


def _warps(layout: Layout) -> int:
    return layout.sizes.get("warp", 1) * max(1, _lanes(layout) // WARP)


def _by_tables(source: Layout, target: Layout, bits: int) -> TablePlan | None:
    """Shuffles by tables of points; None for fragments of many words, whose selects would be."""
    sides = source, permuted(target, source.dims)
    most = max(words_of(side.sizes.get("element", 1), bits) for side in sides)
    if bits not in (8, 16, 32, 64) or most > MOST_WORDS:
        return None
    from fragir.layout.planning.colouring import table_plan  # few programs need it

    numbers: dict[Point, int] = {}
    first, second = (
        [
            [
                [None if p is None else numbers.setdefault(p, len(numbers)) for p in lane]
                for lane in _whole_warp(warp)
            ]
            for warp in points_of(side, min(WARP, _lanes(side)))
        ]
        for side in sides
    )
    return table_plan(first, second, bits)


def _whole_warp(lanes: Sequence[LanePoints]) -> Sequence[LanePoints]:
    """What 32 lanes hold; those beyond the layout's begin anew."""
    return [lanes[lane % len(lanes)] for lane in range(WARP)]
