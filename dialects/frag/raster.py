"""Loops over the tiles of a matrix, shared out among the blocks of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    UnitAttr,
    i32,
    i64,
)
from xdsl.dialects.utils import (
    parse_dynamic_index_list_without_types,
    print_dynamic_index_list,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoMemoryEffect, NoTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.memory import Dimension, DimensionAttr
from fragir.dialects.frag.tiles import Index, join_indices, split_indices
from fragir.dialects.frag.types import is_shared
from fragir.dialects.limits import MAPPED_DIMENSIONS
from fragir.dialects.shorthands import integers, memref_type

ORDERS = ("rows", "columns", "linear", "grouped", "hilbert")
SHARES = ("%from", "%to", "%part", "%parts")
CUTS = ("split", "even")
WITHIN = ("%group", "%end")
MOST_BLOCKS = 16  # of a cluster (CUDA C++ Programming Guide, cudaLimits of clusters)


class Along(NamedTuple):
    """How a sum is cut into parts."""

    extent: int | SSAValue
    step: int
    """A part is a number of these, but for the end of the sum."""
    parts: int
    """Of a tile: so many, or with `even` so many at most."""
    even: bool


@op_definition
class ForTilesOp(IRDLOperation):
    """A block's share of the tiles of a matrix, or of a batch of matrices.

    `frag.for_tiles (%row, %col) of (%m, %n) by (128, 256) grouped 8 persistent {...}`: the body is
    run for tiles of 128 x 256 that cover m x n; %row and %col are the tile's first row and column.
    Extents are numbers or values of index. Dimensions before the last two count the matrices of a
    batch. The blocks of the grid together visit every tile once.

    The order says which tiles are computed side by side, and so what stays in the L2 cache: `rows`
    and `columns`, one after the other; `linear`, rows along x, which alone may have more than 65535
    blocks; `grouped G`, G rows of tiles at a time, column by column; `grouped` with the G that
    reads least; `hilbert`, a curve from tile to neighbouring tile; else `frag-raster` chooses.

    `persistent`: a grid of as many blocks as run at once, each visits tile after tile. Else there
    is a block for every tile. `cluster N`: N neighbouring blocks get tiles below each other, and
    visit as many; where N does not divide the rows of tiles, the last ones lie outside of the
    matrix, and the body masks what it loads and stores. `share I of N`, of a persistent loop: of
    the tiles that the block visits only every N-th one, from the I-th (counted from 0) on. So N
    roles deal them out among themselves.

    `(%row, %col) along (%from, %to, %part, %parts) of (%m, %n, %k) by (128, 256, 64)` also cuts
    the sum over k: the body adds up what lies from %from to %to, part %part of %parts of its tile
    (where it begins behind the end of k there is nothing).
    `split N`: each tile has N parts, of equal numbers of steps of 64, later ones perhaps none.
    `even N`, of a persistent loop: the blocks share all steps of all tiles evenly (stream-K), so
    that a part begins and ends anywhere in a tile, of which there are N parts at most. A tile has a
    part at least, if k is 0 an empty one; its parts together are the sum, each step once.

    `(%row, %col) within (%group, %end) of (%m, %n) ... persistent groups %ends : memref<?xi32>`:
    the rows are in groups, of which the g-th ends before row %ends[g], where the next one begins.
    Tiles begin with a group's first row; what lies from %end on is another's (`frag.head`).
    """

    name = "frag.for_tiles"
    extents = var_operand_def(IndexType)
    ends = opt_operand_def(MemRefType)
    static_extents = prop_def(DenseArrayBase.constr(i64))
    tile = prop_def(DenseArrayBase.constr(i64))
    order = opt_prop_def(StringAttr)
    group = opt_prop_def(IntegerAttr.constr(i64))
    persistent = opt_prop_def(UnitAttr)
    cluster = opt_prop_def(IntegerAttr.constr(i64))
    share = opt_prop_def(DenseArrayBase.constr(i64))
    step = opt_prop_def(IntegerAttr.constr(i64))
    parts = opt_prop_def(IntegerAttr.constr(i64))
    even = opt_prop_def(UnitAttr)
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(NoTerminator())

    def __init__(
        self,
        extents: Sequence[Index],
        tile: Sequence[int],
        body: Region | None = None,
        *,
        order: str | None = None,
        group: int | None = None,
        persistent: bool = False,
        cluster: int | None = None,
        share: tuple[int, int] | None = None,
        along: Along | None = None,
        groups: SSAValue | Operation | None = None,
    ):
        extents = [*extents, *(() if along is None else (along.extent,))]
        dynamic, static = split_indices(extents)
        if body is None:
            count = len(extents) if along is None else len(extents) + 3
            count += 0 if groups is None else len(WITHIN)
            body = Region(Block(arg_types=[IndexType()] * count))
        super().__init__(
            operands=[dynamic, groups],
            properties={
                "static_extents": static,
                "tile": DenseArrayBase.from_list(i64, list(tile)),
                "order": None if order is None else StringAttr(order),
                "group": None if group is None else IntegerAttr(group, i64),
                "persistent": UnitAttr() if persistent else None,
                "cluster": None if cluster is None else IntegerAttr(cluster, i64),
                "share": None if share is None else DenseArrayBase.from_list(i64, share),
                "step": None if along is None else IntegerAttr(along.step, i64),
                "parts": None if along is None else IntegerAttr(along.parts, i64),
                "even": UnitAttr() if along is not None and along.even else None,
            },
            regions=[body],
        )

    def all_extents(self) -> list[int | SSAValue]:
        """The size of every dimension that tiles have, constants as numbers."""
        found = join_indices(self.extents, self.static_extents)
        return found if self.step is None else found[:-1]

    def along(self) -> Along | None:
        """How the sum is cut, if it is."""
        if self.step is None or self.parts is None:
            return None
        extent = join_indices(self.extents, self.static_extents)[-1]
        even = self.even is not None
        return Along(extent, self.step.value.data, self.parts.value.data, even)

    @property
    def places(self) -> list[SSAValue]:
        """The first elements of the tile, as the body gets them."""
        return list(self.body.block.args[: len(self.tile)])

    @property
    def part(self) -> list[SSAValue]:
        """What the body gets besides: of the sum's parts from, to, part, parts; of groups of rows
        the group and its end."""
        return list(self.body.block.args[len(self.tile) :])

    @property
    def tile_shape(self) -> list[int]:
        """The tile's size in every dimension."""
        return integers(self.tile)

    @property
    def blocks(self) -> int:
        """The blocks of a cluster; 1 without one."""
        return 1 if self.cluster is None else self.cluster.value.data

    @property
    def shared_out(self) -> tuple[int, int]:
        """Which of how many shares of the block's tiles it visits: (0, 1) is all of them."""
        if self.share is None:
            return 0, 1
        at, count = integers(self.share)
        return at, count

    @classmethod
    def parse(cls, parser: Parser) -> ForTilesOp:
        places = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
        )
        shares = None
        within = None
        for word, names in (("along", SHARES), ("within", WITHIN)):
            if parser.parse_optional_keyword(word):
                here = parser.pos
                found = parser.parse_comma_separated_list(
                    parser.Delimiter.PAREN, lambda: parser.parse_argument(expect_type=False)
                )
                if len(found) != len(names):
                    parser.raise_error(f"write {word} ({', '.join(names)})", here)
                places += found
                shares, within = (found, within) if word == "along" else (shares, found)
        parser.parse_keyword("of")
        position = parser.pos
        dynamic, static = parse_dynamic_index_list_without_types(
            parser, DYNAMIC_INDEX, delimiter=parser.Delimiter.PAREN
        )
        parser.parse_keyword("by")
        tile = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, lambda: parser.parse_integer(allow_boolean=False)
        )
        order = next((word for word in ORDERS if parser.parse_optional_keyword(word)), None)
        group = None if order is None else parser.parse_optional_integer()
        persistent = parser.parse_optional_keyword("persistent") is not None
        cluster = parser.parse_integer() if parser.parse_optional_keyword("cluster") else None
        share = None
        if parser.parse_optional_keyword("share"):
            at = parser.parse_integer(allow_boolean=False)
            parser.parse_keyword("of")
            share = at, parser.parse_integer(allow_boolean=False)
        cut = next((word for word in CUTS if parser.parse_optional_keyword(word)), None)
        if (cut is None) != (shares is None):
            parser.raise_error(
                f"a sum in parts is written along ({', '.join(SHARES)}), with split N or even N"
            )
        parts = None if cut is None else parser.parse_integer(allow_boolean=False)
        step = None if cut is None else tile.pop()
        ends: list[SSAValue] = []
        if parser.parse_optional_keyword("groups"):
            memory = parser.parse_unresolved_operand()
            parser.parse_punctuation(":")
            ends = [parser.resolve_operand(memory, parser.parse_type())]
        if bool(ends) != (within is not None):
            parser.raise_error(
                f"groups of rows are written within ({', '.join(WITHIN)}), with groups %ends"
            )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        here = parser.pos
        if (word := parser.parse_optional_identifier()) is not None:
            parser.raise_error(
                f"{word} is no word of frag.for_tiles: write an order ({', '.join(ORDERS)}), "
                "persistent, cluster N, share I of N, split N or even N, groups %ends, in this "
                "order",
                here,
            )
        body = parser.parse_region([place.resolve(IndexType()) for place in places])
        op = cls.create(
            operands=[
                *parser.resolve_operands(dynamic, [IndexType()] * len(dynamic), position),
                *ends,
            ],
            properties={
                "operandSegmentSizes": DenseArrayBase.from_list(i32, [len(dynamic), len(ends)]),
                "static_extents": DenseArrayBase.from_list(i64, static),
                "tile": DenseArrayBase.from_list(i64, tile),
                **({} if order is None else {"order": StringAttr(order)}),
                **({} if group is None else {"group": IntegerAttr(group, i64)}),
                **({"persistent": UnitAttr()} if persistent else {}),
                **({} if cluster is None else {"cluster": IntegerAttr(cluster, i64)}),
                **({} if share is None else {"share": DenseArrayBase.from_list(i64, share)}),
                **({} if step is None else {"step": IntegerAttr(step, i64)}),
                **({} if parts is None else {"parts": IntegerAttr(parts, i64)}),
                **({"even": UnitAttr()} if cut == "even" else {}),
            },
            regions=[body],
        )
        if attributes is not None:
            op.attributes |= attributes.data
        return op

    def print(self, printer: Printer) -> None:
        printer.print_string(" (")
        printer.print_list(self.places, printer.print_ssa_value)
        if self.step is not None or self.ends is not None:
            printer.print_string(") within (" if self.step is None else ") along (")
            printer.print_list(self.part, printer.print_ssa_value)
        printer.print_string(") of ")
        static = integers(self.static_extents)
        print_dynamic_index_list(
            printer, DYNAMIC_INDEX, self.extents, static, delimiter=Parser.Delimiter.PAREN
        )
        sizes = self.tile_shape if self.step is None else [*self.tile_shape, self.step.value.data]
        printer.print_string(f" by ({', '.join(map(str, sizes))})")
        if self.order is not None:
            printer.print_string(f" {self.order.data}")
        if self.group is not None:
            printer.print_string(f" {self.group.value.data}")
        if self.persistent is not None:
            printer.print_string(" persistent")
        if self.cluster is not None:
            printer.print_string(f" cluster {self.cluster.value.data}")
        if self.share is not None:
            at, count = self.shared_out
            printer.print_string(f" share {at} of {count}")
        if (along := self.along()) is not None:
            printer.print_string(f" {'even' if along.even else 'split'} {along.parts}")
        if self.ends is not None:
            printer.print_string(" groups ")
            printer.print_ssa_value(self.ends)
            printer.print_string(" : ")
            printer.print_attribute(self.ends.type)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)

    def verify_(self) -> None:
        count = len(self.static_extents) - (self.step is not None)
        places = self.body.block.args
        self._verify_along()
        self._verify_groups()
        if not 2 <= count <= MAPPED_DIMENSIONS:
            raise VerifyException(
                f"frag.for_tiles: {count} dimensions; it takes rows and columns, and up to "
                f"{MAPPED_DIMENSIONS - 2} dimensions of a batch before them"
            )
        cut = 0 if self.step is None else len(SHARES)
        cut += 0 if self.ends is None else len(WITHIN)
        for found, what in (
            (len(places) - cut, "values"),
            (len(self.tile_shape), "sizes of the tile"),
        ):
            if found != count:
                raise VerifyException(f"frag.for_tiles: {found} {what} for {count} dimensions")
        if any(not isinstance(place.type, IndexType) for place in places):
            raise VerifyException("frag.for_tiles: the body takes places of type index")
        if min(self.tile_shape) < 1:
            raise VerifyException("frag.for_tiles: a tile's sizes are 1 or more")
        if any(n < 0 for n in integers(self.static_extents) if n != DYNAMIC_INDEX):
            raise VerifyException("frag.for_tiles: sizes of the matrix are 0 or more")
        self._verify_words()
        parent = self.parent_op()
        while parent is not None:
            if isinstance(parent, ForTilesOp):
                raise VerifyException(
                    "frag.for_tiles stands in another one: blocks would share out the tiles twice; "
                    "give one loop three dimensions, or write scf.for"
                )
            parent = parent.parent_op()

    def _verify_along(self) -> None:
        if (self.step is None) != (self.parts is None):
            raise VerifyException(
                "frag.for_tiles: a sum is cut in steps, into parts; write along "
                f"({', '.join(SHARES)}) with split N or even N"
            )
        along = self.along()
        if along is None:
            if self.even is not None:
                raise VerifyException("frag.for_tiles: even is said of parts; write even N")
            return
        if along.step < 1 or along.parts < (2 if along.even else 1):
            raise VerifyException(
                f"frag.for_tiles: {along.parts} parts of steps of {along.step}; a step is 1 or "
                "more, split 1 or more, even 2 or more"
            )
        if along.even and (self.persistent is None or self.share is not None):
            raise VerifyException(
                "frag.for_tiles: even shares are those of a persistent loop of which a role has "
                "all tiles; write persistent, and no share"
            )

    def _verify_groups(self) -> None:
        if self.ends is None:
            return
        memory = memref_type(self.ends.type)
        if is_shared(memory) or memory.element_type != i32 or len(memory.get_shape()) != 1:
            raise VerifyException(
                f"frag.for_tiles: groups of rows end where a memref<?xi32> says, not {memory}"
            )
        lone = self.step is None and len(self.tile) == 2 and self.blocks == 1
        if not lone or self.persistent is None:
            raise VerifyException(
                "frag.for_tiles: groups are those of rows of one matrix, whose sums are whole, "
                "without clusters; write persistent"
            )

    def _verify_words(self) -> None:
        order = None if self.order is None else self.order.data
        if order is not None and order not in ORDERS:
            raise VerifyException(f"frag.for_tiles: an order is one of {', '.join(ORDERS)}")
        if self.group is not None and (order != "grouped" or self.group.value.data < 1):
            raise VerifyException(
                "frag.for_tiles: a group is 1 or more rows of tiles, and stands behind grouped"
            )
        if not 1 <= self.blocks <= MOST_BLOCKS:
            raise VerifyException(
                f"frag.for_tiles: a cluster has 1 to {MOST_BLOCKS} blocks, not {self.blocks}"
            )
        if self.share is not None:
            given = integers(self.share)
            if len(given) != 2 or not 0 <= given[0] < given[1] or self.persistent is None:
                raise VerifyException(
                    "frag.for_tiles: a share is one of those of a persistent loop, counted from 0; "
                    "write persistent share 0 of 2"
                )


@op_definition
class GridSizeOp(IRDLOperation):
    """The number of blocks of the grid along a dimension."""

    name = "frag.grid_size"
    dimension = prop_def(DimensionAttr)
    result = result_def(IndexType)
    traits = traits_def(NoMemoryEffect(), Pure())
    assembly_format = "$dimension attr-dict"

    def __init__(self, dimension: Dimension):
        super().__init__(
            properties={"dimension": DimensionAttr(dimension)}, result_types=[IndexType()]
        )
