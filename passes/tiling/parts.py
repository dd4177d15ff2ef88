"""Sums in parts: how many, how much memory they take, and which part a block adds up."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.dialects.frag.grid import LEAST
from fragir.dialects.frag.matmul_sums import most_parts
from fragir.dialects.frag.raster import Along
from fragir.dialects.shorthands import constant_of
from fragir.errors import FragirError
from fragir.passes.tiling.curve import Indices, Number
from fragir.passes.tiling.gemm_schedule import (
    Schedule,
    ScheduleChoice,
    configuration_of,
    problem_of,
)
from fragir.passes.tiling.schedule import is_suitable
from fragir.scheduling.candidates import (
    FRAG_TILE,
    Configuration,
    GemmProblem,
    SearchSpace,
    in_parts,
)
from fragir.scheduling.choice import choose
from fragir.scheduling.cost import deep

# -- part count ------------------------------------------------------------------------------------
# Into how many parts the sums of a product are cut that gives memory for them and no number.


def with_parts(product: frag.MatmulOp, choice: ScheduleChoice, target: str) -> Schedule:
    """The schedule of a choice, or one with parts that is a tenth cheaper. Sums stay whole where a
    size is not known: how many tiles there are decides it."""
    m, n, k = product.sizes()
    schedule = choice.schedule
    if not (m and n and k and all(product.batch())):
        return schedule
    problem = problem_of(product, (m, n, k), target)
    for given in (choice.given, ("tile",)):
        found = cheapest_in_parts(problem, choice._replace(given=given), most_parts(product))
        if found is None or found.parts == 1:
            return schedule
        cut = schedule._replace(
            tile=found.tile,
            warps=found.warps,
            stages=found.stages,
            parts=(found.parts, found.even),
        )
        if is_suitable(product, cut):
            return cut
    return schedule


def cheapest_in_parts(
    problem: GemmProblem, choice: ScheduleChoice, most: int
) -> Configuration | None:
    """The cheapest schedule with up to `most` parts, or that of the choice itself; None where none
    is known. Where attributes say tile and the like, only the number of parts is open."""
    own = configuration_of(choice.schedule)
    parts = in_parts(most)
    if not parts:
        return own
    space = space_of_parts(choice.schedule)
    if space is None:
        return None
    if choice.given:
        shapes = (own.tile, own.warps, own.stages)
        return choose(problem, own, space=space._replace(parts=parts, only=shapes))
    return choose(problem, own, space=deep(space._replace(parts=parts), problem))


def space_of_parts(schedule: Schedule) -> SearchSpace | None:
    """What is enumerated beside a schedule: its roles and clusters stay."""
    if not schedule.roles:
        return FRAG_TILE
    from fragir.passes.tiling.gemm_schedule import space_of

    return space_of(schedule)


# -- parts memory ----------------------------------------------------------------------------------
# How much memory a product's parts of sums and their counts take: checked, and told the launch.


def note_least(function: func.FuncOp, product: frag.MatmulOp, schedule: Schedule) -> None:
    """Writes `frag.least` at the arguments that parts go through; FragirError where one is too
    small whatever a launch brings. What is no argument of the function is not known."""
    arguments: list[SSAValue] = list(function.body.block.args)
    assert schedule.parts is not None
    if product.c not in arguments:
        return
    *batch, m, n = frag.size_names(function, arguments.index(product.c))[0]
    tile_m, tile_n, _ = schedule.tile
    parts = frag.Extent(schedule.parts[0])
    whole = [frag.Extent(size) for size in batch]
    needed = (
        [parts, *whole, frag.Extent(m), frag.Extent(n)],
        [*whole, frag.Extent(m, tile_m), frag.Extent(n, tile_n)],
    )
    for value, least in zip(product.through(), needed, strict=True):
        if value in arguments:
            least = [frag.Extent(e.least()) if isinstance(e.size, int) else e for e in least]
            _note(function, arguments.index(value), least)


def _note(function: func.FuncOp, index: int, least: Sequence[frag.Extent]) -> None:
    dims, _ = frag.size_names(function, index)
    known = [
        (size, extent.size)
        for size, extent in zip(dims, least, strict=True)
        if isinstance(size, int) and isinstance(extent.size, int)
    ]
    if any(size < low for size, low in known):
        name = function.body.block.args[index].name_hint or f"arg{index}"
        shape, wanted = ("x".join(str(x) for x in sizes) for sizes in (dims, least))
        raise FragirError(
            f"%{name} is {shape}, the parts of sums take {wanted}",
            hint="make it that large, or leave its sizes to the launch: ?",
        )
    if all(size == extent.size for size, extent in zip(dims, least, strict=True)):
        return  # as with every size that has a name, the launch checks it
    count = len(function.body.block.args)
    old = function.arg_attrs
    entries = list(old.data) if old is not None else [DictionaryAttr({})] * count
    entries[index] = DictionaryAttr({**entries[index].data, LEAST: frag.LeastAttr(tuple(least))})
    function.arg_attrs = ArrayAttr(entries)


# -- sum shares ------------------------------------------------------------------------------------
# Which part of a tile's sum a block adds up: `split` and `even` of `frag.for_tiles`.


class _Steps:
    """The steps of a sum."""

    def __init__(self, at: Indices, along: Along):
        known = along.extent if isinstance(along.extent, int) else constant_of(along.extent)
        self.size, self.parts = along.step, along.parts
        self.extent: Number = along.extent if known is None else known
        self.count = at.ceil(self.extent, self.size, "steps")

    def range(self, at: Indices, first: Number, end: Number) -> list[SSAValue]:
        """Steps as a part of the sum: its first element, and the one behind its last."""
        start = at.value(at.mul(first, self.size, "from"))
        return [start, at.value(at.least(at.mul(end, self.size), self.extent))]


class SplitSum:
    """As many parts of each tile's sum, of equal numbers of steps."""

    def __init__(self, at: Indices, along: Along):
        self._steps = _Steps(at, along)
        self._each = at.ceil(self._steps.count, along.parts)

    def share(self, at: Indices, part: Number) -> list[SSAValue]:
        """What the body gets of one of the parts."""
        first = at.mul(part, self._each)
        own = self._steps.range(at, first, at.add(first, self._each))
        return [*own, at.value(part), at.value(self._steps.parts)]


class SplitShares:
    """All tiles' first parts, then all their second ones, and so on."""

    def __init__(self, at: Indices, along: Along, tiles: Number, first: Number, step: Number):
        self._sum, self._tiles = SplitSum(at, along), tiles
        self.turns = first, at.mul(tiles, along.parts), step
        """From where to where a block counts, and by how much."""

    def tile(self, at: Indices, number: Number) -> Number:
        """Which tile a turn has."""
        return at.rem(number, self._tiles)

    def shares(self, at: Indices, number: Number) -> list[SSAValue]:
        """What the body gets of the sum."""
        return self._sum.share(at, at.div(number, self._tiles))


class EvenShares:
    """Equal shares of the steps of all tiles, one after the other (stream-K).

    Block b of n has the steps from b s on, s = ceil(all / n), or more where a tile would have more
    parts than it may: a tile of t steps has ceil(t / s) + 1 of them at most.
    """

    def __init__(self, at: Indices, along: Along, tiles: Number, block: Number, blocks: Number):
        self._steps = steps = _Steps(at, along)
        # of an empty sum each tile has a step, which is empty too
        self._of_tile = at.most(steps.count, 1)
        every = at.mul(tiles, self._of_tile)
        fewest = at.ceil(self._of_tile, along.parts - 1)
        self._share = at.most(at.div(at.sub(at.add(every, blocks), 1), blocks), fewest)
        self._block = block
        self._first = at.mul(block, self._share)
        self._end = at.least(at.add(self._first, self._share), every)
        behind = at.div(at.sub(at.add(self._end, self._of_tile), 1), self._of_tile)
        self.turns = at.div(self._first, self._of_tile), behind, 1

    def tile(self, at: Indices, number: Number) -> Number:
        """Which tile a turn has."""
        return number

    def shares(self, at: Indices, number: Number) -> list[SSAValue]:
        """What the body gets of the sum."""
        start = at.mul(number, self._of_tile)
        after = at.add(start, self._of_tile)
        own = self._steps.range(
            at,
            at.sub(at.most(self._first, start), start),
            at.sub(at.least(self._end, after), start),
        )
        before = at.div(start, self._share)
        last = at.div(at.sub(after, 1), self._share)
        parts = at.add(at.sub(last, before), 1)
        return [*own, at.value(at.sub(self._block, before)), at.value(parts)]
