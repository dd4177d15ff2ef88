"""Blocks and their tiles in Python: the methods `block_id`, `grid_size` and `for_tiles`."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64

from fragir.builder.places import fail, items, place, require_number, require_shape, require_word
from fragir.builder.tiles import TileOperations
from fragir.builder.trace import Trace
from fragir.builder.values import IndexOperand, Memory, Scalar
from fragir.dialects import frag
from fragir.dialects.frag.kernels import BLOCKS_PER_SM, MOST_RESIDENT
from fragir.dialects.frag.raster import Along
from fragir.dialects.limits import MAPPED_DIMENSIONS


class TileLoop:
    """The `with` of a loop over tiles; see `Kernel.for_tiles`."""

    def __init__(self, trace: Trace, op: frag.ForTilesOp):
        self._trace, self._op, self._location = trace, op, place()

    def __enter__(self) -> tuple[Scalar, ...]:
        if any(scope.kind == "loop over tiles" for scope in self._trace.scopes):
            fail(
                "a loop over tiles inside of another one: blocks would share them out twice",
                "give one loop three dimensions, or write k.loop",
            )
        block = self._op.body.block
        self._trace.open("loop over tiles", block)
        return tuple(Scalar(self._trace, argument) for argument in block.args)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._trace.close()
        if kind is None:
            self._trace.insert(self._op, location=self._location)


class GridOperations(TileOperations):
    """Which block this is, and what it computes."""

    def block_id(self, dimension: str = "x") -> Scalar:
        """The block's place in the grid along "x", "y" or "z"."""
        op = frag.BlockIdOp(_dimension(dimension))
        return Scalar(self.trace, self.trace.insert(op, f"b{dimension}").result)

    def grid_size(self, dimension: str = "x") -> Scalar:
        """The number of blocks of the grid along "x", "y" or "z"."""
        op = frag.GridSizeOp(_dimension(dimension))
        return Scalar(self.trace, self.trace.insert(op, f"blocks_{dimension}").result)

    def blocks_per_sm(self, blocks: int) -> None:
        """A multiprocessor is to hold so many blocks, at least: ptxas gives their threads no more
        registers than that allows, rather spills (`.minnctapersm`).
        """
        count = require_number(blocks, "blocks_per_sm")
        if not 1 <= count <= MOST_RESIDENT:
            fail(f"a multiprocessor holds 1 to {MOST_RESIDENT} blocks, not {count}")
        self.trace.attributes[BLOCKS_PER_SM] = IntegerAttr(count, i64)

    def for_tiles(
        self,
        sizes: Sequence[IndexOperand],
        tile: Sequence[int],
        *,
        order: str | None = None,
        group: int | None = None,
        persistent: bool = False,
        cluster: int | None = None,
        share: tuple[int, int] | None = None,
        along: tuple[IndexOperand, int] | None = None,
        split: int | None = None,
        even: int | None = None,
        groups: Memory | None = None,
    ) -> TileLoop:
        """A block's share of the tiles that cover a matrix; Python runs through the body once.

            with k.for_tiles((k.size("m"), k.size("n")), (128, 256), order="grouped") as (row, col):
                ...

        `sizes` and `tile` have rows and columns, and before them those of a batch. `order`
        is "rows", "columns", "linear" (rows along one dimension of the grid, which alone may have
        more than 65535 blocks), "grouped" (`group` rows of tiles at a time) or "hilbert"; with
        `persistent` as many blocks as run at once visit tile after tile; `cluster` neighbouring
        blocks get tiles below each other; `share=(0, 2)`: of a block's tiles every other one, from
        the first on, while another role has `share=(1, 2)`. The launch's grid follows from it.

        `along=(k.size("k"), 64)` cuts the sum over k in steps of 64 as well: the loop also gives
        from, to, part and parts. `split=4`: so many parts a tile; `even=4`, persistent: blocks
        share all steps evenly, a tile has so many parts at most.

        `groups=ends`, persistent: rows are in groups, which end where an array of s32 says; the
        loop also gives the group and its end.
        """
        from fragir.dialects.frag.raster import ORDERS

        extents = [self.trace.index(size, "a size") for size in items(sizes) or [sizes]]
        shape = require_shape(tile)
        if not 2 <= len(extents) <= MAPPED_DIMENSIONS or len(shape) != len(extents):
            fail(
                f"tiles of {len(shape)} dimensions for a matrix of {len(extents)}",
                "write rows and columns of both, and before them those of a batch",
            )
        if order is not None and require_word(order, "order") not in ORDERS:
            fail(f"order is {order!r}", f"write one of {', '.join(ORDERS)}")
        if group is not None and order != "grouped":
            fail('only order="grouped" has groups')
        op = frag.ForTilesOp(
            extents,
            shape,
            order=order,
            group=None if group is None else require_number(group, "group", 1),
            persistent=persistent,
            cluster=None if cluster is None else require_number(cluster, "cluster", 1),
            share=None if share is None else _share(share, persistent),
            along=self._along(along, split, even),
            groups=None if groups is None else self._memory(groups),
        )
        more = ("from", "to", "part", "parts") if groups is None else ("group", "end")
        names = [*("matrix" for _ in shape[2:]), "row", "col", *more]
        for argument, name in zip(op.body.block.args, names, strict=False):
            argument.name_hint = name
        return TileLoop(self.trace, op)

    def _along(
        self, along: tuple[IndexOperand, int] | None, split: int | None, even: int | None
    ) -> Along | None:
        counts = [n for n in (split, even) if n is not None]
        if along is None and not counts:
            return None
        given = items(along) or []
        if len(given) != 2 or len(counts) != 1:
            fail(
                "a sum is cut along a size, in steps, into parts",
                'write along=(k.size("k"), 64), split=4, or even=4 in a persistent loop',
            )
        step = require_number(given[1], "a step", 1)
        parts = require_number(counts[0], "the number of parts", 1 if even is None else 2)
        extent = self.trace.index(given[0], "a size")
        return Along(extent, step, parts, even is not None)

    def head(self, memory: Memory, end: IndexOperand) -> Memory:
        """An array up to row `end`: what follows lies outside, where masked accesses do nothing."""
        op = frag.HeadOp(self._memory(memory), self.trace.scalar(end, IndexType(), "the end"))
        return Memory(self.trace, self.trace.insert(op).result, (None, *memory.sizes[1:]))

    def arrive(self, counts: Memory, at: Sequence[IndexOperand], parts: IndexOperand) -> Scalar:
        """Counts the blocks that come here, in a number of global memory that is zero at first;
        whether this is the last of so many parts. It is zero again then, and the last block sees
        what the others wrote before.
        """
        places = [self.trace.index(index, "an index") for index in items(at) or [at]]
        number = self.trace.scalar(parts, IndexType(), "the number of parts")
        op = frag.ArriveOp(self._memory(counts), places, number)
        return Scalar(self.trace, self.trace.insert(op, "last").is_last)


def _share(share: Sequence[int], persistent: bool) -> tuple[int, int]:
    found = items(share) or []
    if len(found) != 2 or not persistent:
        fail(f"share is {share!r}", "write persistent=True, share=(0, 2)")
    count = require_number(found[1], "shares", 1)
    at = require_number(found[0], "a share's number", 0)
    if at >= count:
        fail(f"there is no share {at} of {count}", "shares are counted from 0")
    return at, count


def _dimension(dimension: str) -> frag.Dimension:
    if require_word(dimension, "a dimension") not in ("x", "y", "z"):
        fail(f"a grid has no dimension {dimension!r}", 'write "x", "y" or "z"')
    return frag.Dimension(dimension)
