"""Random tiles: the methods `random`, `uniform` and `normal` of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fragir.builder.checks import items
from fragir.builder.places import fail
from fragir.builder.tiles import TileOperations
from fragir.builder.types import f32, s32, s64, type_name
from fragir.builder.values import Scalar, Tile
from fragir.dialects import frag

#: What makes 31 bits a number below 1: a little less than 2**-31, as in Triton.
SCALE = 4.6566127342e-10


class RandomOperations(TileOperations):
    """Random numbers as functions of a seed and of offsets: Philox 4x32-10.

    Equal seeds and offsets give equal numbers, wherever they are asked for, so that a mask needs
    no memory: whoever wants it again computes it again. They are those of Triton's `tl.randint4x`,
    `tl.rand` and `tl.randn` (of its approximations of log, sin and cos, up to their errors).
    """

    def random(
        self, seed: Scalar | int, offsets: Tile | Sequence[Tile]
    ) -> tuple[Tile, Tile, Tile, Tile]:
        """Four tiles of random bits, s32.

        `seed` is s32, s64 or a number of Python's; `offsets` is a tile of s32, or up to four, the
        words of the counter, the lowest first. All four cost what one costs.
        """
        words = [offsets] if isinstance(offsets, Tile) else items(offsets)
        if not words or len(words) > 4:
            fail(f"offsets are {offsets!r}", "give a tile of s32, or up to four of one shape")
        counter = [self._word(word) for word in words]
        op = self.trace.insert(frag.RandomOp(self._seed(seed), counter))
        first, second, third, fourth = (self.trace.wrap(result) for result in op.results)
        return first, second, third, fourth

    def uniform(self, seed: Scalar | int, offsets: Tile | Sequence[Tile]) -> Tile:
        """Numbers from 0 to below 1, f32: of the first tile of `random`, 2**31 equally likely."""
        return self._uniform(self.random(seed, offsets)[0])

    def normal(self, seed: Scalar | int, offsets: Tile | Sequence[Tile]) -> Tile:
        """Normally distributed numbers of mean 0 and variance 1, f32, from the first two tiles of
        `random`, by Box and Muller: none is beyond 5.7."""
        first, second, _, _ = self.random(seed, offsets)
        radius = self.sqrt(-2.0 * self.log(self.max(self._uniform(first), 1.0e-7)))
        return radius * self.cos(6.283185307179586 * self._uniform(second))

    def _uniform(self, bits: Tile) -> Tile:
        return self.select(bits < 0, ~bits, bits).cast(f32) * SCALE

    def _seed(self, seed: object) -> SSAValue:
        given = self.trace.operand(seed)
        if isinstance(given, Scalar) and given.type in (s32, s64):
            return self.trace.use(given)
        if not isinstance(given, int):
            fail(f"the seed is {given!r}, it must be a number, s32 or s64", "use .cast(fragir.s64)")
        return self.trace.constant(given, s64)

    def _word(self, tile: object) -> SSAValue:
        if not isinstance(tile, Tile):
            fail(f"offsets are {tile!r}, they must be tiles of s32", "k.iota makes one")
        if tile.element != s32:
            fail(f"offsets are s32, not {type_name(tile.element)}", "use .cast(fragir.s32)")
        return self._tile(tile)
