"""Which tiles a block visits: index arithmetic instead of `frag.for_tiles`, and the grid."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import Block, BlockArgument, OpResult, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.shorthands import constant_of
from fragir.errors import FragirError
from fragir.passes.tiling.curve import INDEX, Indices, Number

PLAIN = ("rows", "columns")


class Raster(NamedTuple):
    """In which order the tiles of a loop are visited, and by how many blocks."""

    order: str
    group: int
    """Rows of tiles of a group, in clusters; 0 but for grouped."""
    persistent: bool

    @classmethod
    def of(
        cls, loop: frag.ForTilesOp, target: str, order: str, group: int, persistent: bool
    ) -> Raster:
        """What a loop says, else the given order, group and so on; 0 is the group that fits."""
        if loop.order is not None:
            order = loop.order.data
            group = 0 if loop.group is None else loop.group.value.data
        if order == "grouped" and not group:
            from fragir.scheduling.devices import device_for  # few programs need it
            from fragir.scheduling.l2 import best_group

            rows, columns = loop.tile_shape[-2:]
            device = device_for(target)
            group = best_group(rows * loop.blocks, columns, device.sms // loop.blocks)
        persistent = persistent or loop.persistent is not None
        return cls(order, group if order == "grouped" else 0, persistent)


def take_cluster(function: func.FuncOp, loop: frag.ForTilesOp) -> None:
    """Gives a loop the clusters of its function; FragirError where it says others."""
    if "frag.cluster" not in function.attributes:
        return
    from fragir.dialects.frag.kernels import cluster_of

    x, y, z = cluster_of(function)
    if (y, z) != (1, 1):
        raise FragirError(
            f"clusters of {x}x{y}x{z} blocks: loops over tiles go by clusters along x",
            hint=f"write frag.cluster = array<i64: {x * y * z}, 1, 1>",
        )
    if loop.cluster is None:
        loop.cluster = IntegerAttr(x, i64)
    elif loop.blocks != x:
        raise FragirError(f"the loop says clusters of {loop.blocks}, its function of {x} blocks")


def lower_loop(function: func.FuncOp, loop: frag.ForTilesOp, raster: Raster) -> None:
    """Replaces a loop by its body for the block's tile, or a loop over its tiles."""
    set_grid(function, loop, raster)
    if raster.persistent:
        _persistent(loop, raster)
        return
    at = Indices(InsertPoint.before(loop), loop.location)
    starts = _own_tile(at, loop, raster)
    Rewriter.inline_block(loop.body.block, InsertPoint.before(loop), starts)
    Rewriter.erase_op(loop)


def _own_tile(at: Indices, loop: frag.ForTilesOp, raster: Raster) -> list[SSAValue]:
    """The tile of a block where there is a block for each, or for each part of its sum."""
    *outer, rows, columns = loop.tile_shape
    cluster = loop.blocks
    if raster.order in PLAIN:
        x = at.block(frag.Dimension.X, "bx")
        if raster.order == "columns":  # neighbours along x are neighbours along M
            column, row = at.block(frag.Dimension.Y, "by"), x
        elif cluster == 1:
            # the order of instructions of a kernel that was tiled without this operation
            start = at.value(at.mul(x, columns, "col"))
            row = at.mul(at.block(frag.Dimension.Y, "by"), rows, "row")
            matrix, part = _matrix(at, loop, frag.Dimension.Z)
            return [*at.starts(matrix, outer, ()), at.value(row), start, *part]
        else:
            column = at.div(x, cluster)
            band = at.mul(at.block(frag.Dimension.Y, "by"), cluster)
            row = at.add(band, at.rem(x, cluster))
        matrix, part = _matrix(at, loop, frag.Dimension.Z)
        return [*at.starts((*matrix, row, column), loop.tile_shape), *part]
    number: Number = at.block(frag.Dimension.X, "bx")
    tiles = Tiles(at, loop)
    if raster.order == "linear":  # batches are counted along x, too
        of_matrix = at.mul(at.mul(tiles.bands, tiles.columns), cluster)
        matrix, part, number = _in_line(at, loop, number, of_matrix)
    else:
        matrix, part = _matrix(at, loop, frag.Dimension.Y)
    band, column = tiles.place(at.div(number, cluster), raster)
    row = at.add(at.mul(band, cluster), at.rem(number, cluster))
    return [*at.starts((*matrix, row, column), loop.tile_shape), *part]


def _matrix(
    at: Indices, loop: frag.ForTilesOp, dimension: frag.Dimension
) -> tuple[list[Number], list[SSAValue]]:
    """Which matrix of a batch a block has, and its part of the sum, if that is cut: both are
    counted along one dimension of the grid."""
    if len(loop.tile_shape) == 2 and loop.along() is None:
        return [], []
    return _matrix_of(at, loop, at.block(dimension, f"b{dimension.value}"))


def _in_line(
    at: Indices, loop: frag.ForTilesOp, number: Number, of_matrix: Number
) -> tuple[list[Number], list[SSAValue], Number]:
    """The same of the n-th block, each matrix having so many; and which of them it is."""
    if len(loop.tile_shape) == 2 and loop.along() is None:
        return [], [], number
    which = at.div(number, of_matrix)
    rest = at.sub(number, at.mul(which, of_matrix))
    return *_matrix_of(at, loop, which), rest


def _matrix_of(
    at: Indices, loop: frag.ForTilesOp, number: Number
) -> tuple[list[Number], list[SSAValue]]:
    along, matrices = loop.along(), BatchMatrices(at, loop)
    if along is None:
        return matrices.place(number), []
    from fragir.passes.tiling.parts import SplitSum  # few programs need it

    total = matrices.total
    part = at.div(number, total)
    own = SplitSum(at, along).share(at, part)
    return matrices.place(at.sub(number, at.mul(part, total))), own


def _persistent(loop: frag.ForTilesOp, raster: Raster) -> None:
    """A loop over every n-th tile, n being the number of blocks, or of clusters."""
    at = Indices(InsertPoint.before(loop), loop.location)
    cluster, along = loop.blocks, loop.along()
    number = at.block(frag.Dimension.X, "bx")
    blocks = at.insert(frag.GridSizeOp(frag.Dimension.X), "blocks")
    tiles, matrices = Tiles(at, loop), BatchMatrices(at, loop)
    groups = None
    if loop.ends is not None:
        groups = RowGroups(at, loop.ends, loop.tile_shape[0])
        tiles.bands = groups.bands(at)
    of_matrix = at.mul(tiles.bands, tiles.columns, "tiles")
    total = at.mul(of_matrix, matrices.total, "tiles")
    first, step = at.div(number, cluster), at.div(blocks, cluster)
    end, cut = total, None
    if along is not None:
        from fragir.passes.tiling.parts import EvenShares, SplitShares

        kind = EvenShares if along.even else SplitShares
        cut = kind(at, along, total, first, step)
        first, end, step = cut.turns
    share, shares = loop.shared_out
    if shares > 1:
        first, step = at.add(first, at.mul(step, share)), at.mul(step, shares)
    lane = at.rem(number, cluster)
    body = Block(arg_types=[INDEX])
    body.args[0].name_hint = "tile"
    inside = Indices(InsertPoint.at_end(body), loop.location)
    tiles.at = matrices.at = inside
    rest: Number = body.args[0]
    if cut is not None:
        rest = cut.tile(inside, rest)
    matrix: list[Number] = []
    if len(loop.tile_shape) > 2:
        which = inside.div(rest, of_matrix)
        rest = inside.sub(rest, inside.mul(which, of_matrix))
        matrix = matrices.place(which)
    band, column = tiles.place(rest, raster)
    row = inside.add(inside.mul(band, cluster), lane)
    if groups is None:
        starts = inside.starts((*matrix, row, column), loop.tile_shape)
    else:
        own_row, *within = groups.place(inside, row)
        starts = [own_row, *inside.starts((column,), loop.tile_shape[-1:], ("col",)), *within]
    if cut is not None:
        starts += cut.shares(inside, body.args[0])
    Rewriter.inline_block(loop.body.block, InsertPoint.at_end(body), starts)
    Indices(InsertPoint.at_end(body), loop.location).insert_op(scf.YieldOp())
    at.insert_op(scf.ForOp(at.value(first), at.value(end), at.value(step), [], body))
    Rewriter.erase_op(loop)


def _fold(number: Number) -> Number:
    known = number if isinstance(number, int) else constant_of(number)
    return number if known is None else known


class Tiles:
    """How many tiles there are, and which is the n-th."""

    def __init__(self, at: Indices, loop: frag.ForTilesOp):
        self.at = at
        rows, columns = loop.tile_shape[-2:]
        extents = [_fold(extent) for extent in loop.all_extents()[-2:]]
        # a band is as many rows of tiles as a cluster has blocks
        self.bands = at.ceil(extents[-2], rows * loop.blocks, "rows")
        self.columns = at.ceil(extents[-1], columns, "cols")

    def place(self, number: Number, raster: Raster) -> tuple[Number, Number]:
        """Band and column of the n-th tile of a matrix."""
        at = self.at
        if raster.order in ("rows", "linear"):
            band = at.div(number, self.columns)
            return band, at.sub(number, at.mul(band, self.columns))
        if raster.order == "columns":
            column = at.div(number, self.bands)
            return at.sub(number, at.mul(column, self.bands)), column
        if raster.order == "grouped":
            return self._in_groups(number, raster.group)
        from fragir.passes.tiling.curve import place_on_curve  # few programs need it

        return place_on_curve(at, number, self.bands, self.columns)

    def _in_groups(self, number: Number, group: int) -> tuple[Number, Number]:
        """`group` bands at a time, column by column; the last group has what is left."""
        at = self.at
        tiles = at.mul(self.columns, group)
        index = at.div(number, tiles)
        rest = at.sub(number, at.mul(index, tiles))
        first = at.mul(index, group)
        if isinstance(self.bands, int) and self.bands % group == 0:
            height: Number = group
        else:
            height = at.least(at.sub(self.bands, first), group)
        column = at.div(rest, height)
        return at.add(first, at.sub(rest, at.mul(column, height))), column


class BatchMatrices:
    """How many matrices a batch has, or groups of them, and which is the n-th."""

    def __init__(self, at: Indices, loop: frag.ForTilesOp):
        self.at = at
        sizes, extents = loop.tile_shape[:-2], loop.all_extents()[:-2]
        self._counts = [
            at.ceil(_fold(extent), size) for extent, size in zip(extents, sizes, strict=True)
        ]

    @property
    def total(self) -> Number:
        """How many there are."""
        total: Number = 1
        for count in self._counts:
            total = self.at.mul(total, count)
        return total

    def place(self, number: Number) -> list[Number]:
        """The n-th one's place in every dimension of the batch; the last one goes fastest."""
        found: list[Number] = []
        for count in self._counts[:0:-1]:
            rest = self.at.div(number, count)
            found.append(self.at.sub(number, self.at.mul(rest, count)))
            number = rest
        return [number, *reversed(found)] if self._counts else []


# --- the grid -------------------------------------------------------------------------------------


def set_grid(function: func.FuncOp, loop: frag.ForTilesOp, raster: Raster) -> None:
    """Notes on the function how many blocks its loop takes; FragirError where it has others."""
    needed = grid_of(function, loop, raster)
    found = function.attributes.get("frag.grid")
    if found is None and needed is not None:
        function.attributes["frag.grid"] = needed
    elif found is None:
        raise FragirError(
            "the sizes of the matrix are none of memory's, so that a launch does not know how many "
            "tiles there are; write the grid: frag.grid = #frag.grid<...>"
        )
    elif raster.persistent:
        if isinstance(found, frag.GridAttr) and len(found.data) > 1:
            raise FragirError(f"a persistent loop takes a grid of one dimension, not {found}")
    elif needed is not None and needed != found:
        raise FragirError(f"a block for every tile is {needed}, but the function has {found}")


def grid_of(function: func.FuncOp, loop: frag.ForTilesOp, raster: Raster) -> frag.GridAttr | None:
    """The grid that a loop takes; None where sizes have no names."""
    sizes = [_size(function, extent) for extent in loop.all_extents()]
    if any(size is None for size in sizes):
        return None
    extents = [
        frag.Extent(size, tile)
        for size, tile in zip(sizes, loop.tile_shape, strict=True)
        if size is not None
    ]
    *outer, rows, columns = extents
    cluster, along = loop.blocks, loop.along()
    if along is not None and along.parts > 1:  # of even shares so many at most
        outer = [frag.Extent(along.parts), *outer]
    matrices = [_product(tuple(outer))] if outer else []
    bands = frag.Extent(rows.size, rows.divisor * cluster)
    whole = () if cluster == 1 else (frag.Extent(cluster),)
    if loop.ends is not None:
        count = _size_of(function, loop.ends, 0)
        if count is None:
            return None
        outer = [frag.Extent(count)]  # each group has a tile more than its rows fill, perhaps
    if raster.persistent:
        factors = (*outer, bands, columns, *whole)
        return frag.GridAttr((frag.BlockCount(factors, True, cluster),))
    if raster.order == "rows":
        return frag.GridAttr((_product((columns, *whole)), bands, *matrices))
    if raster.order == "columns":
        return frag.GridAttr((_product((bands, *whole)), columns, *matrices))
    if raster.order == "linear":
        return frag.GridAttr((_product((*outer, bands, columns, *whole)),))
    return frag.GridAttr((_product((bands, columns, *whole)), *matrices))


def _product(factors: tuple[frag.Extent, ...]) -> frag.Extent | frag.BlockCount:
    return factors[0] if len(factors) == 1 else frag.BlockCount(factors)


def _size(function: func.FuncOp, extent: int | SSAValue) -> int | str | None:
    """A number, or the name of the size of memory that a value is; None for anything else."""
    if isinstance(extent, int):
        return extent
    op = extent.owner if isinstance(extent, OpResult) else None
    if op is None or op.name not in ("memref.dim", "arith.constant"):
        return None
    if op.name == "arith.constant":
        return constant_of(extent)
    dim = constant_of(op.operands[1])
    return None if dim is None else _size_of(function, op.operands[0], dim)


def _size_of(function: func.FuncOp, memory: SSAValue, dim: int) -> int | str | None:
    """A size of memory, a number or its name; None of what is no argument."""
    if not isinstance(memory, BlockArgument) or memory not in function.body.block.args:
        return None
    dims, _ = frag.size_names(function, memory.index)
    return dims[dim] if dim < len(dims) else None


# -- row groups ------------------------------------------------------------------------------------
# Which tiles groups of rows have: where they end, memory says when the kernel runs.


class RowGroups:
    """The groups of a loop over tiles, each of them cut into bands of so many rows."""

    def __init__(self, at: Indices, ends: SSAValue, rows: int):
        self._ends, self._rows = ends, rows
        self._first, self._one = at.value(0), at.value(1)
        self._count = at.insert(memref.DimOp(ends, self._first), "groups")

    def _bands(self, at: Indices, group: SSAValue, start: SSAValue) -> tuple[SSAValue, Number]:
        """Where a group ends that begins at `start`, and how many bands it has."""
        given = at.insert(memref.LoadOp.get(self._ends, [group]))
        end = at.insert(arith.IndexCastOp(given, INDEX), "end")
        size = at.insert(arith.MaxSIOp(at.insert(arith.SubiOp(end, start)), at.value(0)))
        return end, at.ceil(size, self._rows)

    def bands(self, at: Indices) -> SSAValue:
        """How many there are of all groups."""
        body = Block(arg_types=[INDEX, INDEX, INDEX])
        group, bands, start = body.args
        inside = Indices.at_end(body, at)
        end, count = self._bands(inside, group, start)
        inside.insert_op(scf.YieldOp(inside.value(inside.add(bands, count)), end))
        zero = self._first
        loop = scf.ForOp(zero, self._count, self._one, [zero, zero], body)
        at.insert_op(loop)
        loop.results[0].name_hint = "bands"
        return loop.results[0]

    def place(self, at: Indices, band: Number) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The first row of the n-th band, its group, and where that ends."""
        body = Block(arg_types=[INDEX] * 6)
        each, before, start, row, group, end = body.args
        inside = Indices.at_end(body, at)
        own_end, count = self._bands(inside, each, start)
        number = inside.value(inside.sub(band, before))  # beyond all bands if it is negative
        here = inside.below(number, count)
        own_row = inside.add(start, inside.mul(number, self._rows))
        inside.insert_op(
            scf.YieldOp(
                inside.value(inside.add(before, count)),
                own_end,
                inside.select(here, own_row, row),
                inside.select(here, each, group),
                inside.select(here, own_end, end),
            )
        )
        zero = self._first
        loop = scf.ForOp(zero, self._count, self._one, [zero] * 5, body)
        at.insert_op(loop)
        _, _, row, group, end = loop.results
        for value, name in ((row, "row"), (group, "group"), (end, "end")):
            value.name_hint = name
        return row, group, end
