"""Products in tensor memory: frag.tcgen05_mma, and loads and stores of what lies there.

Tensor memory is that of a ring (`frag.ring`): who multiplies acquires a slot, adds all of K up in
it and publishes it; others await it, load it and release it. The products of a role are started by
one of its threads and go on by themselves. A slot of shared memory that they read is released, and
one of tensor memory that they write is published, when they are done (tcgen05.commit): nothing
waits for that in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import IntegerAttr, MemRefType, UnitAttr, i1, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.attributes import HALVED, ExplicitLayoutAttr
from fragir.dialects.frag.memory_layout import check_memory, halved_dimension
from fragir.dialects.frag.products import flag, memory_dimensions
from fragir.dialects.frag.tensor_scales import kind_named, read_scales, scale_columns
from fragir.dialects.frag.types import (
    TileType,
    holds_operand,
    holds_scales,
    is_shared,
    is_tensor_memory,
    tile_of,
)
from fragir.dialects.interfaces import (
    DimensionsInterface,
    LayoutDemand,
    LayoutInterface,
    MemoryInterface,
    Names,
    Threads,
)
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa.tensor_products import KINDS, check_shape, depths
from fragir.layout import Layout
from fragir.layout.modes import WARP

M = 128
"""Rows of one product of a block, each a lane of tensor memory."""
MOST_COLUMNS = 256
"""Columns of one product."""
COLUMN_BITS = 32


def columns_of(type_: MemRefType[Attribute]) -> int:
    """Columns of tensor memory that a matrix takes."""
    rows, columns = type_.get_shape()[-2:]
    if holds_scales(type_):
        return scale_columns(rows, columns)
    return -(-rows // M) * -(-columns // elements_of_column(type_))


def column_of(type_: MemRefType[Attribute], element: int) -> int:
    """The column of tensor memory, from the first on, in which an element of a row begins.

    Those of an operand share columns, a sum has one of its own.
    """
    return element // elements_of_column(type_)


def elements_of_column(type_: MemRefType[Attribute]) -> int:
    """How many elements of a row share a column."""
    return COLUMN_BITS // element_bits(type_.element_type) if holds_operand(type_) else 1


def elements_of_register(type_: MemRefType[Attribute]) -> int:
    """How many elements of a row share a register of a thread that loads or stores them."""
    return COLUMN_BITS // element_bits(type_.element_type)


@op_definition
class TensorMmaOp(IRDLOperation, MemoryInterface, DimensionsInterface):
    """`d = a b + d` in tensor memory (tcgen05.mma), d = a b where `if` says no.

        frag.tcgen05_mma %a, %b transposed into %d if %later : memref<128x64xf16,
          #frag.shared<swizzle = 128>>, memref<64x64xf16, #frag.shared<swizzle = 128>>
          into memref<128x64xf32, #frag.tensor>

    In memory A is M x K and B is K x N; `transposed` says that the memory holds K x M or N x K.
    M is a multiple of 128, N of 16. It is started here and done when the slot of tensor memory is
    awaited; whoever multiplies may release the slots that it reads at once. `scaled %sfa, %sfb`
    multiplies blocks along K by scales in tensor memory, which have a row for each row of A or
    column of B: memref<128x4xf8E8M0FNU, #frag.tensor<scales>> (`frag.tcgen05_copy`).

    `pair` multiplies for two blocks of a cluster at once (cta_group::2), each of which has A and D
    of its own and half of B, `#frag.shared<swizzle = 128, pair = row>`: `pair = row` of a B that
    is N x K, `transposed`, else `pair = col`. N is at most 256. Both blocks run the same program;
    the role that multiplies is the even block's alone. PTX ISA 9.2, sections 9.7.16.5 and
    9.7.16.10.
    """

    name = "frag.tcgen05_mma"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    scales = var_operand_def(MemRefType)
    d = operand_def(MemRefType)
    later = opt_operand_def(i1)
    a_transposed = opt_prop_def(UnitAttr)
    b_transposed = opt_prop_def(UnitAttr)
    pair = opt_prop_def(UnitAttr)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = (
        "(`pair` $pair^)? $a (`transposed` $a_transposed^)? `,` $b (`transposed` $b_transposed^)?"
        " (`scaled` $scales^)? `into` $d (`if` $later^)? attr-dict"
        " `:` type($a) `,` type($b) (`scaled` type($scales)^)? `into` type($d)"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        d: SSAValue | Operation,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        later: SSAValue | Operation | None = None,
        scales: Sequence[SSAValue | Operation] = (),
        pair: bool = False,
    ):
        super().__init__(
            operands=[a, b, scales, d, later],
            properties={
                "a_transposed": flag(a_transposed),
                "b_transposed": flag(b_transposed),
                "pair": flag(pair),
            },
        )

    @property
    def group(self) -> int:
        """Blocks that it multiplies for, as in `.cta_group::2`."""
        return 1 if self.pair is None else 2

    def elements(self) -> tuple[str, str, str]:
        """The element types of A, B and D, by name."""
        a, b, d = (
            element_name(memref_type(value.type).element_type) for value in (self.a, self.b, self.d)
        )
        return a, b, d

    @property
    def kind(self) -> str:
        """As in `.kind::f16`; FragirError where there is none for these types and scales."""
        a, b, _ = self.elements()
        return kind_named(a, b, *self.scaling())

    def scaling(self) -> tuple[str, int]:
        """The type of the scales, and how many of K each is for; ("", 0) without any."""
        return read_scales(self.scales, *self.shapes())

    def shapes(self) -> tuple[int, int, int]:
        """(M, N, K); VerifyException where the operands disagree."""
        a, b, d = (memref_type(value.type).get_shape() for value in (self.a, self.b, self.d))
        if any(len(shape) != 2 or min(shape) < 1 for shape in (a, b, d)):
            raise VerifyException(
                f"{self.name} multiplies matrices of static sizes; pick one of a stack with "
                "frag.view"
            )
        (m, k), (k_b, n) = a, b
        if self.a_transposed is not None:
            m, k = k, m
        if self.b_transposed is not None:
            k_b, n = n, k_b
        if (m, n) != tuple(d) or k != k_b:
            raise VerifyException(
                f"{self.name}: {m}x{k} times {k_b}x{n} is not {d[0]}x{d[1]}; write `transposed` "
                "after an operand that memory holds the other way round"
            )
        return m, n, k

    def blocks(self) -> tuple[int, int]:
        """How many products M and N are cut into."""
        m, n, _ = self.shapes()
        return m // M, -(-n // MOST_COLUMNS)

    def reads(self) -> list[SSAValue]:
        """A, B, their scales, and what is there."""
        return [self.a, self.b, *self.scales, self.d]

    def writes(self) -> list[SSAValue]:
        """D."""
        return [self.d]

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """M x K and K x N, turned where memory holds them so; scales have a row for each of M or
        N."""
        yield self.a, memory_dimensions(("m", "k"), self.a_transposed)
        yield self.b, memory_dimensions(("k", "n"), self.b_transposed)
        for value, name in zip(self.scales, "mn", strict=False):
            yield value, (name, None)
        yield self.d, ("m", "n")

    def verify_(self) -> None:
        for name, value in (("a", self.a), ("b", self.b)):
            if name == "a" and holds_operand(value.type):
                continue
            if not is_shared(value.type):
                raise VerifyException(
                    f"{self.name}: {name} lies in {value.type}; it multiplies what lies in shared "
                    "memory, memref<..., #frag.shared<swizzle = 128>>"
                )
            check_memory(self.name, memref_type(value.type), pair=self.pair is not None)
        if not holds_sums(self.d.type):
            raise VerifyException(
                f"{self.name}: d is {self.d.type}; the sums lie in tensor memory, "
                "memref<..., #frag.tensor>"
            )
        m, n, k = self.shapes()
        *both, d = self.elements()
        try:
            kind = self.kind
            _check_sums(kind, both, d)
            if m % M:
                raise FragirError(f"M = {m} is no multiple of {M}")
            if n % 16 or (n > MOST_COLUMNS and n % MOST_COLUMNS):
                raise FragirError(
                    f"N = {n} is no multiple of 16 up to {MOST_COLUMNS}, nor one of {MOST_COLUMNS}"
                )
            self._check_pair(n)
            self._check_operand()
            check_shape(kind, self.group * M, min(n, MOST_COLUMNS), group=self.group, ws=False)
            step = depths(kind)[0]
            if k % step:
                raise FragirError(f"K = {k} is no multiple of {step}, the K of one instruction")
            turned = self.a_transposed is not None or self.b_transposed is None
            if "e2m1x2" in both and turned:
                raise FragirError(
                    "two elements of 4 bits that share a byte are neighbours along K",
                    hint="let A be M x K, and B N x K, `transposed`",
                )
        except FragirError as error:
            raise VerifyException(f"{self.name}: {error}") from error

    def _check_pair(self, n: int) -> None:
        """FragirError where a pair does not share B, or what else it should share."""
        if self.pair is None:
            return
        a, b = memref_type(self.a.type), memref_type(self.b.type)
        wanted = int(self.b_transposed is None)
        if halved_dimension(a) is not None or halved_dimension(b) != wanted:
            raise FragirError(
                f"a pair shares B, half of its columns in each block, and A is each block's own; "
                f"here A is {a} and B {b}",
                hint=f"write #frag.shared<swizzle = 128, pair = {HALVED[wanted]}> for B alone",
            )
        if self.scales:
            raise FragirError("a pair multiplies without scales here")
        if n > MOST_COLUMNS:
            raise FragirError(f"N = {n} of a pair is more than {MOST_COLUMNS}")

    def _check_operand(self) -> None:
        """FragirError where A in tensor memory is not as products read it here."""
        if not holds_operand(self.a.type):
            return
        if self.a_transposed is not None:
            raise FragirError("A in tensor memory is M x K", hint="store it so, transposed")
        if self.pair is not None or self.scales:
            what = "a pair" if self.pair is not None else "a product with scales"
            raise FragirError(f"{what} reads A from shared memory here, not {self.a.type}")


def holds_sums(type_: Attribute) -> bool:
    """Whether a memref lies in tensor memory and holds sums."""
    return is_tensor_memory(type_) and not (holds_scales(type_) or holds_operand(type_))


def _check_sums(kind: str, multiplied: Sequence[str], d: str) -> None:
    results = [name for name in KINDS[kind].results if name != "f16" or "bf16" not in multiplied]
    if d not in results:
        of = f"{' by '.join(multiplied)}, kind::{kind},"
        raise FragirError(f"the sums of {of} are {' or '.join(results)}, not {d}")


@op_definition
class TensorLoadOp(IRDLOperation, MemoryInterface, LayoutInterface):
    """A tile of what lies in tensor memory (tcgen05.ld), by one warpgroup or more.

        %t = frag.tcgen05_load %d : memref<128x64xf32, #frag.tensor> -> !frag.tile<128x64xf32>
        %u = frag.tcgen05_load %d from 32 : memref<...> -> !frag.tile<128x32xf32>

    With `from` it is of the columns from one on. A warp reaches 32 lanes, so a thread holds a row,
    or, of several warpgroups, part of one; it holds one in each 128 rows. PTX ISA 9.2, section
    9.7.16.8.
    """

    name = "frag.tcgen05_load"
    memory = operand_def(MemRefType)
    column = opt_prop_def(IntegerAttr.constr(i64))
    tile = result_def(TileType)
    traits = traits_def(MemoryReadEffect())
    assembly_format = "$memory (`from` $column^)? attr-dict `:` type($memory) `->` type($tile)"

    def __init__(self, memory: SSAValue | Operation, tile: TileType | None = None, column: int = 0):
        type_ = memref_type(SSAValue.get(memory).type)
        shape, element = type_.get_shape(), type_.element_type
        super().__init__(
            operands=[memory],
            properties={"column": IntegerAttr(column, i64) if column else None},
            result_types=[tile or TileType(shape, element)],
        )

    @property
    def first(self) -> int:
        """The first column."""
        return 0 if self.column is None else self.column.value.data

    def reads(self) -> list[SSAValue]:
        return [self.memory]

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """A row in a thread; columns are divided among warpgroups."""
        yield _row_demand(self.tile, threads, "what tcgen05.ld gives")

    def verify_(self) -> None:
        if not is_tensor_memory(self.memory.type) or holds_scales(self.memory.type):
            raise VerifyException(
                f"{self.name} loads from tensor memory, memref<..., #frag.tensor>, not from "
                f"{self.memory.type}"
            )
        if not _fits(self.memory, self.tile.type, self.first):
            at = f" from column {self.first} on" if self.first else ""
            raise VerifyException(f"{self.name}: {self.memory.type} gives no {self.tile.type}{at}")
        _check_whole(self.name, self.memory, self.tile.type, self.first)


@op_definition
class TensorStoreOp(IRDLOperation, MemoryInterface, LayoutInterface):
    """Puts a tile into tensor memory (tcgen05.st), by one warpgroup or more.

        frag.tcgen05_store %t to %p : !frag.tile<128x64xf16>, memref<128x64xf16,
          #frag.tensor<operand>>
        frag.tcgen05_store %u to %p from 32 : ...

    With `from` into the columns from one on. Threads hold rows as those that `frag.tcgen05_load`
    gives. Products read it as A when the slot that holds it is published. PTX ISA 9.2, section
    9.7.16.8.
    """

    name = "frag.tcgen05_store"
    tile = operand_def(TileType)
    memory = operand_def(MemRefType)
    column = opt_prop_def(IntegerAttr.constr(i64))
    traits = traits_def(MemoryWriteEffect())
    assembly_format = (
        "$tile `to` $memory (`from` $column^)? attr-dict `:` type($tile) `,` type($memory)"
    )

    def __init__(self, tile: SSAValue | Operation, memory: SSAValue | Operation, column: int = 0):
        super().__init__(
            operands=[tile, memory],
            properties={"column": IntegerAttr(column, i64) if column else None},
        )

    @property
    def first(self) -> int:
        """The first column."""
        return 0 if self.column is None else self.column.value.data

    def writes(self) -> list[SSAValue]:
        return [self.memory]

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """A row in a thread, as of a load."""
        yield _row_demand(self.tile, threads, "what tcgen05.st takes")

    def verify_(self) -> None:
        if not is_tensor_memory(self.memory.type) or holds_scales(self.memory.type):
            raise VerifyException(
                f"{self.name} stores into tensor memory, memref<..., #frag.tensor>, not into "
                f"{self.memory.type}"
            )
        tile = tile_of(self.tile)
        if not _fits(self.memory, tile, self.first):
            at = f" from column {self.first} on" if self.first else ""
            raise VerifyException(f"{self.name}: {self.memory.type} takes no {tile}{at}")
        _check_whole(self.name, self.memory, tile, self.first)


def _fits(memory: SSAValue, tile: TileType, first: int) -> bool:
    """Whether a tile is some columns of memory, all rows of them."""
    type_ = memref_type(memory.type)
    shape = type_.get_shape()
    return (
        len(tile.shape) == len(shape)
        and tile.shape[0] == shape[0]
        and type_.element_type == tile.element_type
        and 0 <= first <= shape[1] - tile.shape[1]
    )


def _check_whole(name: str, memory: SSAValue, tile: TileType, first: int) -> None:
    """VerifyException where a thread would have a part of a register, or of a column."""
    type_ = memref_type(memory.type)
    if tile.shape[1] % elements_of_register(type_) or first % elements_of_column(type_):
        raise VerifyException(
            f"{name}: {elements_of_register(type_)} elements of {type_} share a register; columns "
            f"{first} to {first + tile.shape[1]} are no whole ones"
        )


def _row_demand(tile: SSAValue, threads: Threads, reason: str) -> LayoutDemand:
    rows, columns = tile_of(tile).shape
    groups = threads.warpgroups[0] * threads.warpgroups[1]
    return LayoutDemand(tile, ExplicitLayoutAttr(row_in_thread(rows, columns, groups)), reason)


def row_in_thread(rows: int, columns: int, groups: int) -> Layout:
    """Which thread of so many warpgroups gets which element by tcgen05.ld.32x32b.

    FragirError where they cannot divide the columns.

    >>> print(row_in_thread(128, 64, 2))
    warp [4:(32,0) 2:(0,32)] lane [32:(1,0)] element [32:(0,1)]
    """
    if columns % groups or (groups > 1 and columns // groups % 8):
        raise FragirError(
            f"{groups} warpgroups do not divide {columns} columns of tensor memory into parts of "
            "whole eights",
            hint="let fewer warpgroups load it",
        )
    each = columns // groups
    warp = "4:(32,0)" + (f" {groups}:(0,{each})" if groups > 1 else "")
    element = f"{each}:(0,1)" + (f" {rows // M}:({M},0)" if rows > M else "")
    return Layout.parse(f"warp [{warp}] lane [{WARP}:(1,0)] element [{element}]")
