"""Products of tiles by warpgroups: frag.wgmma."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, UnitAttr, i1
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    BaseAttr,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    result_def,
    traits_def,
)
from xdsl.irdl.declarative_assembly_format import (
    CustomDirective,
    ParsingState,
    PrintingState,
    TypeDirective,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect
from xdsl.utils.exceptions import VerifyException

from fragir import isa
from fragir.dialects.definition import op_definition
from fragir.dialects.elements import element_name
from fragir.dialects.frag import product_layouts
from fragir.dialects.frag.instructions import How, wgmma
from fragir.dialects.frag.memory_layout import check_memory
from fragir.dialects.frag.product_layouts import check_wgmma, wgmma_n
from fragir.dialects.frag.products import METADATA, A, B, C, check_metadata, flag, memory_dimensions
from fragir.dialects.frag.types import TileType, held_tile, is_shared, tile_of
from fragir.dialects.interfaces import (
    DimensionsInterface,
    LayoutDemand,
    LayoutInterface,
    MemoryInterface,
    Names,
    OperandAt,
    Threads,
    Tile,
    WarpgroupCollective,
)
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.errors import FragirError
from fragir.isa.products import wgmma_k
from fragir.isa.tiling import fitted_warps, sharing
from fragir.layout import Layout

# --- the text of its types ------------------------------------------------------------------------


@irdl_custom_directive
class Accumulators(CustomDirective):
    """The types of c and metadata, and behind `->` that of d unless it is c's."""

    c: TypeDirective
    metadata: TypeDirective
    d: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        type_ = parser.parse_type()
        self.c.set(state, (type_,))
        self.metadata.set_empty(state)
        if parser.parse_optional_punctuation(","):
            self.metadata.parse(parser, state)
        self.d.set(state, (type_,))
        if parser.parse_optional_punctuation("->"):
            self.d.parse(parser, state)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        self.c.print(printer, state, op)
        if self.metadata.is_present(op):
            printer.print_string(", ")
            printer.print_list(self.metadata.get(op), printer.print_attribute)
        if self.d.get(op) != self.c.get(op):
            printer.print_string(" -> ")
            printer.print_list(self.d.get(op), printer.print_attribute)


# --- products -------------------------------------------------------------------------------------


@op_definition
class WgmmaOp(IRDLOperation, LayoutInterface, DimensionsInterface, MemoryInterface):
    """`d = a b + c` by warpgroups (wgmma): b, and a unless it is a tile, lie in shared memory.

    In memory A is M x K and B is K x N; `transposed` says that the memory holds K x M or N x K.
    It must be swizzled, complete and visible to all (frag.wait, frag.barrier) beforehand.
    `negated` flips the sign of a float operand; `satfinite` clamps sums of integers, at every
    instruction. `sparse %metadata` multiplies a packed A, M x K/2, as in frag.mma_sparse.
    With `if`, c counts only where the condition holds. The result is there when the operation is
    done; with `async` it is in flight until `frag.await`, c may be, and what the product reads must
    stay as it is. PTX ISA 9.2, section 9.7.15.
    """

    name = "frag.wgmma"
    asynchronous = opt_prop_def(UnitAttr)
    a = operand_def(BaseAttr(TileType) | BaseAttr(MemRefType))
    b = operand_def(MemRefType)
    c = operand_def(Attribute)
    metadata = opt_operand_def(TileType)
    scale_d = opt_operand_def(i1)
    a_transposed = opt_prop_def(UnitAttr)
    b_transposed = opt_prop_def(UnitAttr)
    a_negated = opt_prop_def(UnitAttr)
    b_negated = opt_prop_def(UnitAttr)
    satfinite = opt_prop_def(UnitAttr)
    d = result_def(Attribute)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), WarpgroupCollective())
    custom_directives = (Accumulators,)
    assembly_format = (
        "(`async` $asynchronous^)? $a (`transposed` $a_transposed^)? (`negated` $a_negated^)?"
        " `,` $b (`transposed` $b_transposed^)? (`negated` $b_negated^)?"
        " `,` $c (`if` $scale_d^)? (`sparse` $metadata^)? (`satfinite` $satfinite^)? attr-dict"
        " `:` type($a) `,` type($b) `,` custom<Accumulators>(type($c), type($metadata), type($d))"
    )

    def __init__(
        self,
        a: SSAValue | Operation,
        b: SSAValue | Operation,
        c: SSAValue | Operation,
        *,
        a_transposed: bool = False,
        b_transposed: bool = False,
        a_negated: bool = False,
        b_negated: bool = False,
        metadata: SSAValue | Operation | None = None,
        satfinite: bool = False,
        asynchronous: bool = False,
        scale_d: SSAValue | Operation | None = None,
    ):
        type_ = SSAValue.get(c).type
        super().__init__(
            operands=[a, b, c, metadata, scale_d],
            properties={
                "asynchronous": flag(asynchronous),
                "a_transposed": flag(a_transposed),
                "b_transposed": flag(b_transposed),
                "a_negated": flag(a_negated),
                "b_negated": flag(b_negated),
                "satfinite": flag(satfinite),
            },
            result_types=[in_flight(type_) if asynchronous else type_],
        )

    def how(self) -> How:
        """What it says besides shapes and types."""
        return How(satfinite=self.satfinite is not None, sparse="wgmma.sp" if self.metadata else "")

    def tiles(self) -> list[SSAValue]:
        """Its operands and result that are tiles, or will be."""
        return [v for v in (self.a, self.c, self.d) if held_tile(v.type) is not None]

    def shapes(self) -> tuple[int, int, int]:
        """(M, N, K) of the whole product; VerifyException where the operands disagree."""
        c = tile_of(self.d)
        m, n = c.rows, c.cols
        a, b = _matrix(self.a, self.a_transposed), _matrix(self.b, self.b_transposed)
        if a[0] != m or b[1] != n or a[1] * (2 if self.metadata else 1) != b[0]:
            packed = "the packed " if self.metadata else ""
            raise VerifyException(
                f"frag.wgmma: {packed}{a[0]}x{a[1]} times {b[0]}x{b[1]} is not {m}x{n}; "
                "write `transposed` after an operand that memory holds the other way round"
            )
        return m, n, b[0]

    def elements(self) -> tuple[Attribute, Attribute]:
        """The element types of A and B."""
        a = self.a.type
        first = a.element_type if isinstance(a, TileType) else memref_type(a).element_type
        return first, memref_type(self.b.type).element_type

    def instruction(self, n: int) -> isa.Instruction:
        """The instruction with this N."""
        a, b = (element_name(type_) for type_ in self.elements())
        d = tile_of(self.d)
        return wgmma(n, a, b, d.element, self.how())

    def same_layout(self) -> Iterable[Sequence[Tile]]:
        """C and D."""
        return ((OperandAt(self, C), self.d),)

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """The accumulator's fragments, and those of what A has in registers."""
        tile, a, groups = tile_of(self.d), self.a.type, threads.warpgroups
        element = element_name(self.elements()[0])
        part = tile
        if tile.placement is None:
            groups = fitted_warps(groups, (tile.rows // 64, tile.cols // 8))
            # one warpgroup's share of the columns
            share = sharing(groups[1], tile.cols // 8)
            part = TileType((tile.rows, tile.cols // share), tile.element_type)
        n = wgmma_n(part, element)
        name = f"m64n{n}k{wgmma_k(element)}.{element}"
        operands: list[tuple[Tile, str, str]] = [(self.d, name, "c")]
        if isinstance(a, TileType):
            operands.append((OperandAt(self, A), name, "a"))
        yield from product_layouts.fragments(operands, "da"[: len(operands)], groups)
        if self.metadata is not None:
            yield product_layouts.selected_demand(
                self.instruction(n), "e", OperandAt(self, METADATA), groups
            )

    def alternatives(
        self, value: SSAValue, layout: Attribute, threads: Threads
    ) -> Iterator[Sequence[LayoutDemand]]:
        """D with its columns in the order in which `layout` has them, and B's rows in memory so."""
        if value is not self.c or self.b_transposed is None or self.metadata is not None:
            return
        yield from product_layouts.columns_and_rows(
            next(self.demands(threads)), OperandAt(self, B), layout
        )

    def takes_rows_in_any_order(self, memory: SSAValue) -> bool:
        """B's, where they are columns of D: those are counted alike (`alternatives`)."""
        return memory is self.b and memory is not self.a and self.b_transposed is not None

    def orders(self) -> dict[str, Layout]:
        """Dimensions that its tiles have in another order than the instruction's; what lies in
        memory is read in that order.
        """
        return product_layouts.orders_of(self.tiles())

    def reads(self) -> list[SSAValue]:
        """B, and A unless it is in registers."""
        return [v for v in (self.a, self.b) if is_memref(v.type)]

    def dimensions(self) -> Iterator[tuple[SSAValue, Names]]:
        """M x K and K x N, turned where memory holds them so; K of a packed A is another."""
        yield (
            self.a,
            memory_dimensions(("m", "k" if self.metadata is None else None), self.a_transposed),
        )
        yield self.b, memory_dimensions(("k", "n"), self.b_transposed)
        if self.metadata is not None:
            yield self.metadata, ("m", None)

    def sparsity(self) -> tuple[SSAValue, int] | None:
        """The metadata and their chunk, which is the same for every N."""
        if self.metadata is None:
            return None
        return self.metadata, self.instruction(8).operands["e"].chunk

    def verify_(self) -> None:
        self._check_in_flight()
        m, _, k = self.shapes()
        a, b, c = self.a.type, memref_type(self.b.type), tile_of(self.d)
        for name, operand in (("a", a), ("b", b)):
            if is_memref(operand):
                check_memory(self.name, operand)
            if is_memref(operand) and not is_shared(operand):
                raise VerifyException(
                    f"frag.wgmma: {name} lies in {operand}; wgmma reads shared memory only, so "
                    "copy it to a memref in #frag.shared<swizzle = ...> first"
                )
        if isinstance(a, TileType) and self.a_transposed:
            raise VerifyException("frag.wgmma: a tile in registers cannot be transposed")
        negated = self.a_negated is not None or self.b_negated is not None
        first, second = self.elements()
        try:
            check_wgmma(first, second, c, k, self.how(), negated)
            if self.metadata is not None:
                product_layouts.check_in_order(
                    self.tiles(), "metadata are for rows and K as they are"
                )
                metadata = tile_of(self.metadata)
                instruction = self.instruction(wgmma_n(c, element_name(first)))
                check_metadata(self.name, instruction, metadata, m, k)
        except FragirError as error:
            raise VerifyException(f"frag.wgmma: {error}") from error

    def _check_in_flight(self) -> None:
        """Whether c is a tile or becomes one, and d of the same shape, in flight with `async`."""
        c, d = self.c.type, self.d.type
        tile = held_tile(c)
        if tile is None:
            raise VerifyException(f"frag.wgmma: c is a tile, not {c}")
        if self.asynchronous is None:
            if c != tile:
                raise VerifyException(
                    f"frag.wgmma: c is {c}; a product that is waited for takes a tile: write "
                    "`async`, or frag.await before it"
                )
            if d != c:
                raise VerifyException(f"frag.wgmma: c is {c}, so d is, too, not {d}")
        elif d != in_flight(tile):
            raise VerifyException(f"frag.wgmma: d of an `async` product is {in_flight(tile)}")
        else:
            from fragir.dialects.frag.in_flight import check_in_flight  # few programs need it

            check_in_flight(self.d)


def in_flight(type_: Attribute) -> Attribute:
    """The type of a tile in flight, of a tile or what is so already."""
    from fragir.dialects.frag.in_flight import InFlightType  # few programs need it

    return InFlightType(type_) if isinstance(type_, TileType) else type_


def _matrix(operand: SSAValue, transposed: UnitAttr | None) -> tuple[int, int]:
    type_ = operand.type
    if isinstance(type_, TileType):
        return type_.rows, type_.cols
    shape = memref_type(type_).get_shape()
    if len(shape) != 2:
        raise VerifyException(
            f"frag.wgmma: {type_} is no matrix; pick one of a stack with frag.view"
        )
    if DYNAMIC_INDEX in shape:
        raise VerifyException(f"frag.wgmma: {type_} has dynamic sizes; wgmma's are static")
    return (shape[1], shape[0]) if transposed else (shape[0], shape[1])
