"""Which part of a tile's sum a block adds up: `split` and `even` of `frag.for_tiles`."""

from __future__ import annotations

from xdsl.ir import SSAValue

from fragir.dialects.constants import constant_of
from fragir.dialects.frag.raster import Along
from fragir.passes.tiling.indices import Indices, Number


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
