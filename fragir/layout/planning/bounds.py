"""What a conversion has to move, and what no plan can undercut: by ranks alone, in microseconds.

A destination lane reads lanes of its source; the words that one shuffle brings are at most one a
lane. So the number of shuffles is bounded by how many other lanes each lane reads from, and the
passes over shared memory by the bytes that come in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fragir.layout.f2 import Subspace
from fragir.layout.layout import Layout
from fragir.layout.planning.costs import COSTS, Costs
from fragir.layout.planning.registers import LayoutPair, RegisterColumns, pair_of

Reach = Literal["nothing", "registers", "bytes", "lanes", "warps"]
"""How far data travel: not at all, to other registers of the lane, to other bytes of them (or to
registers that depend on the lane), to other lanes of the warp, to other warps."""


@dataclass(frozen=True, slots=True)
class Movement:
    """What a conversion moves, once for each of the pair's `times`.

    `words` are the different words of one destination lane, `mixed` the dimension of the space of
    lanes that each lane reads from, `own` whether a lane may be one of its own sources.
    """

    reach: Reach
    words: int
    mixed: int
    own: bool

    @property
    def shuffles(self) -> int:
        """The least number of shuffles that any program has, one hop or several.

        With a word for every source lane at least. A shuffle brings a lane at most four bytes; a
        lane needs `words` of them, of which only those of its own part need none.
        """
        if self.reach != "lanes":
            return 0
        kept = self.words >> self.mixed if self.own else 0
        return self.words - kept


def moves_of(pair: LayoutPair) -> Movement:
    """What a conversion moves."""
    source, target = pair.source, pair.target
    inside = {8: 2, 16: 1}.get(pair.bits, 0)
    scale = 2 if pair.bits == 64 else 1
    words = scale << max(0, len(Subspace(target.element)) - inside)
    local = Subspace(source.element)
    reach_lane = local.copy()
    for column in source.lane:
        reach_lane.add(column)
    threads = [a ^ b for a, b in zip(source.lane, target.lane, strict=True)]
    sides = (_warps(pair, source.warp), _warps(pair, target.warp))
    warps = [a ^ b for a, b in zip(*sides, strict=True)]
    if any(c not in reach_lane for c in (*target.element, *target.lane, *warps)):
        return Movement("warps", words, 0, False)
    reps = local.copy()
    mixed = sum(reps.add(column) for column in target.element)
    own = all(column in reps for column in (*threads, *warps))
    if mixed or not own:
        return Movement("lanes", words, mixed, own)
    if source.element == target.element and not any(threads) and not any(warps):
        return Movement("nothing", words, 0, True)
    if not any(threads) and not any(warps) and _are_words_whole(source, target, inside):
        return Movement("registers", words, 0, True)
    return Movement("bytes", words, 0, True)


def least_price(pair: LayoutPair, costs: Costs = COSTS) -> float:
    """What no plan of the stated costs can undercut; exact where nothing is moved."""
    moves = moves_of(pair)
    if moves.reach in ("nothing", "registers"):
        return 0.0
    if moves.reach == "bytes":
        return pair.times * moves.words * (costs.move + costs.issue)
    words = moves.words * pair.times
    # each word comes in once, four of them with one instruction at best
    through = words * costs.wavefront + -(-words // 4) * costs.issue
    if moves.reach == "warps":
        return through + costs.group_barrier
    shuffled = moves.shuffles * pair.times * (costs.shuffle + costs.issue)
    return min(shuffled, through + costs.warp_barrier)


def conversion_bound(source: Layout, target: Layout, bits: int, costs: Costs = COSTS) -> float:
    """What no conversion can undercut, by ranks alone; 0 where it may be free.

    Never more than `plan_conversion(...).cost`.
    """
    if source == target:
        return 0.0
    pair = pair_of(source, target, bits)
    return 0.0 if pair is None else least_price(pair, costs)


def _are_words_whole(source: RegisterColumns, target: RegisterColumns, inside: int) -> bool:
    """Whether every word of the target is one of the source's (`inside` bits lie in a word)."""
    if source.element[:inside] != target.element[:inside]:
        return False
    registers = Subspace(source.element[inside:])
    return all(column in registers for column in target.element[inside:])


def _warps(pair: LayoutPair, columns: tuple[int, ...]) -> tuple[int, ...]:
    """The warps' columns, filled up with zeros to the longer side's."""
    longest = max(len(pair.source.warp), len(pair.target.warp))
    return columns + (0,) * (longest - len(columns))
