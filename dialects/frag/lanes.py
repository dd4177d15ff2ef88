"""Regions of lane-level code: a tile's registers as each lane has them, and back.

    %q = frag.lanes %s in #frag.mma<m16n8k16.f16, c>
        : !frag.tile<16x8xf32> -> !frag.tile<16x8xf32> like %s {
    ^bb0(%lane: index, %warp: index, %x: vector<4xf32>):
      %y = ptx.shuffle_xor %x xor 1 : vector<4xf32> -> vector<4xf32>
      %z = arith.addf %x, %y : vector<4xf32>
      frag.yield %z : vector<4xf32>
    }

Every thread of the block runs the region once. It gets its number in the warp, the warp's number
in the block, and of each tile a vector of the elements that it holds, in the order of the layout's
axis `element`. What it yields are its elements of the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import (
    ArrayAttr,
    IndexType,
    IntegerAttr,
    StringAttr,
    VectorType,
    i64,
)
from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    operand_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryEffectKind, Pure, RecursiveMemoryEffect, get_effects
from xdsl.utils.exceptions import VerifyException

from fragir.dialects.definition import op_definition
from fragir.dialects.frag.attributes import LayoutAttr
from fragir.dialects.frag.pointwise import YieldOp
from fragir.dialects.frag.types import TileType, is_shared, tile_of
from fragir.dialects.interfaces import (
    LayoutDemand,
    LayoutInterface,
    MemoryInterface,
    OperandAt,
    Threads,
)
from fragir.dialects.limits import check_registers
from fragir.dialects.ptx.types import GLOBAL, SHARED, PointerType, bits, registers, vector_type
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.errors import FragirError

# --- text -----------------------------------------------------------------------------------------


class LanesText(NamedTuple):
    """What was read."""

    tiles: Sequence[SSAValue]
    layouts: Sequence[LayoutAttr]
    """Of the operands, then of the results."""
    attributes: dict[str, Attribute]
    body: Region
    outputs: Sequence[Attribute]


def parse_lanes(parser: Parser) -> LanesText:
    """`%a in #l, %b : T, T -> R like %a, R in #l {...}`; no part must be there but the region."""
    position = parser.pos
    operands: list[tuple[str, LayoutAttr | None]] = []
    unresolved: list[UnresolvedOperand] = []
    while (operand := parser.parse_optional_unresolved_operand()) is not None:
        unresolved.append(operand)
        operands.append((operand.operand_name, _parse_layout(parser)))
        if parser.parse_optional_punctuation(",") is None:
            break
    given = parser.parse_optional_attr_dict_with_keyword()
    types: list[Attribute] = []
    if unresolved:
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    tiles = parser.resolve_operands(unresolved, types, position)
    layouts = [
        _stated_layout(parser, name, type_, layout, position)
        for (name, layout), type_ in zip(operands, types, strict=True)
    ]
    known = dict(zip((name for name, _ in operands), layouts, strict=True))
    outputs: list[Attribute] = []
    if parser.parse_optional_punctuation("->"):
        while True:
            here = parser.pos
            type_ = parser.parse_type()
            layout = _parse_layout(parser)
            if layout is None and parser.parse_optional_keyword("like"):
                operand = parser.parse_unresolved_operand()
                layout = known.get(operand.operand_name)
                if layout is None:
                    parser.raise_error(f"%{operand.operand_name} is no operand", here)
            outputs.append(type_)
            layouts.append(
                _stated_layout(parser, f"result {len(outputs) - 1}", type_, layout, here)
            )
            if parser.parse_optional_punctuation(",") is None:
                break
    body = parser.parse_region()
    return LanesText(tiles, layouts, {} if given is None else dict(given.data), body, outputs)


def _parse_layout(parser: Parser) -> LayoutAttr | None:
    """`in #layout`, if it is there."""
    if parser.parse_optional_keyword("in") is None:
        return None
    position = parser.pos
    layout = parser.parse_attribute()
    if not isinstance(layout, LayoutAttr):
        parser.raise_error(f"{layout} is no layout: write #frag.mma or #frag.layout", position)
    return layout


def _stated_layout(
    parser: Parser, name: str, type_: Attribute, layout: LayoutAttr | None, position: int
) -> LayoutAttr:
    found = layout or (type_.placement if isinstance(type_, TileType) else None)
    if found is None:
        name = name if name.startswith("result") else f"%{name}"
        parser.raise_error(
            f"the layout of {name} is not stated: write `in #frag.mma<...>` or "
            "`in #frag.layout<...>` behind it",
            position,
        )
    return found


def print_lanes(
    printer: Printer,
    tiles: Sequence[SSAValue],
    held: Sequence[tuple[TileType, LayoutAttr]],
    op: Operation,
) -> None:
    """The same of an operation; `held` are the operands and then the results, with layouts."""
    count = len(tiles)
    for number, (tile, (type_, layout)) in enumerate(zip(tiles, held, strict=False)):
        printer.print_string(", " if number else " ")
        printer.print_ssa_value(tile)
        _print_layout(printer, type_, layout)
    printer.print_op_attributes(op.attributes, print_keyword=True)
    if tiles:
        printer.print_string(" : ")
        printer.print_list(tiles, lambda tile: printer.print_attribute(tile.type))
    known = {
        layout: tile for tile, (_, layout) in zip(tiles[::-1], held[:count][::-1], strict=True)
    }
    for number, (type_, layout) in enumerate(held[count:]):
        printer.print_string(", " if number else " -> ")
        printer.print_attribute(type_)
        if layout in known and type_.placement != layout:
            printer.print_string(" like ")
            printer.print_ssa_value(known[layout])
        else:
            _print_layout(printer, type_, layout)
    printer.print_string(" ")
    printer.print_region(op.regions[0])


def _print_layout(printer: Printer, type_: TileType, layout: LayoutAttr) -> None:
    """`in #layout`, unless the type has it."""
    if type_.placement != layout:
        printer.print_string(" in ")
        printer.print_attribute(layout)


# --- operations -----------------------------------------------------------------------------------

INDEX = IndexType()
NUMBERS = 2
"""The region's arguments ahead of the tiles': lane and warp."""


class HeldTile(NamedTuple):
    """A tile of an operation, and the layout in which the region has it."""

    type: TileType
    layout: LayoutAttr

    @property
    def placed_type(self) -> TileType:
        """The tile's type with this layout."""
        return self.type.with_layout(self.layout)

    @property
    def registers(self) -> VectorType[Attribute]:
        """What a lane holds of it."""
        places = self.layout.layout(*self.type.shape)
        count = places.size("element") if "element" in places.names else 1
        return vector_type(self.type.element_type, count)


@op_definition
class LanesOp(IRDLOperation, LayoutInterface, MemoryInterface):
    """Code for each lane on its registers of tiles, which have the layouts that are written.

    `in` gives the layout of a tile, operand or result, where its type does not; `like %t` is that
    of an operand. The region takes what is known of arith, math, scf, vector, and everything of
    ptx; scalars from outside are the same in every lane. Lanes may take different branches.
    """

    name = "frag.lanes"
    tiles = var_operand_def(TileType)
    layouts = prop_def(ArrayAttr)
    body = region_def("single_block")
    outputs = var_result_def(TileType)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        tiles: Sequence[SSAValue],
        layouts: Sequence[LayoutAttr],
        body: Region,
        outputs: Sequence[TileType],
    ):
        super().__init__(
            operands=[tiles],
            properties={"layouts": ArrayAttr(layouts)},
            regions=[body],
            result_types=[outputs],
        )

    def held(self) -> list[HeldTile]:
        """The operands, then the results."""
        types = [*map(tile_of, self.tiles), *(output.type for output in self.outputs)]
        found: list[HeldTile] = []
        for type_, layout in zip(types, self.layouts, strict=True):
            assert isinstance(layout, LayoutAttr)
            found.append(HeldTile(type_, layout))
        return found

    # --- interfaces ---------------------------------------------------------------------------

    def demands(self, threads: Threads) -> Iterator[LayoutDemand]:
        """Those that are written."""
        held = self.held()
        for number, (_, layout) in enumerate(held[: len(self.tiles)]):
            yield LayoutDemand(OperandAt(self, number), layout, f"operand {number}")
        for number, (_, layout) in enumerate(held[len(self.tiles) :]):
            yield LayoutDemand(self.outputs[number], layout, f"result {number}")

    def _pointers(self) -> Iterator[PointerOp]:
        return (op for op in self.body.walk() if isinstance(op, PointerOp))

    def reads(self) -> Sequence[SSAValue]:
        """All memory that the region has a pointer to, or reads numbers from."""
        from xdsl.dialects import memref

        loads = (op for op in self.body.walk() if isinstance(op, memref.LoadOp))
        found = [*(op.memory for op in self._pointers()), *(op.memref for op in loads)]
        return tuple(dict.fromkeys(found))

    def writes(self) -> Sequence[SSAValue]:
        """Memory with a pointer that something else takes than loads."""
        found = (op.memory for op in self._pointers() if _is_written(op.pointer))
        return tuple(dict.fromkeys(found))

    # --- verification -------------------------------------------------------------------------

    def verify_(self) -> None:
        count = len(self.tiles) + len(self.outputs)
        if len(self.layouts) != count or not all(isinstance(x, LayoutAttr) for x in self.layouts):
            raise VerifyException(f"frag.lanes: {count} tiles take as many layouts in `layouts`")
        names = [*_numbered_names("operand", self.tiles), *_numbered_names("result", self.outputs)]
        vectors = [_registers(name, h) for name, h in zip(names, self.held(), strict=True)]
        for output, held in zip(self.outputs, self.held()[len(self.tiles) :], strict=True):
            if output.type.placement not in (None, held.layout):
                raise VerifyException(f"frag.lanes: {output.type} is stated to be in {held.layout}")
        taken = [INDEX, INDEX, *vectors[: len(self.tiles)]]
        _check_types(
            "the region takes", self.body.block.arg_types, taken, "lane, warp, and each tile's"
        )
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("frag.lanes: the region must end in frag.yield")
        given = [value.type for value in last.values]
        _check_types("the region yields", given, vectors[len(self.tiles) :], "each result's")
        for op in self.body.walk():
            values = (*op.operands, *op.results)
            if any(isinstance(value.type, TileType) for value in values):
                raise VerifyException(
                    f"frag.lanes: {op.name} stands in the region, which sees no tiles but the "
                    "registers of its arguments"
                )

    # --- text ---------------------------------------------------------------------------------

    @classmethod
    def parse(cls, parser: Parser) -> LanesOp:
        text = parse_lanes(parser)
        return cls.create(
            operands=text.tiles,
            properties={"layouts": ArrayAttr(text.layouts)},
            attributes=text.attributes,
            regions=[text.body],
            result_types=text.outputs,
        )

    def print(self, printer: Printer) -> None:
        print_lanes(printer, self.tiles, self.held(), self)


def _numbered_names(what: str, values: Sequence[SSAValue]) -> list[str]:
    return [f"{what} {number}" for number in range(len(values))]


def _registers(name: str, held: HeldTile) -> VectorType[Attribute]:
    """The vector of a tile; VerifyException where its layout is none of it."""
    try:
        vector = held.registers
        check_registers(registers(vector), str(held.type))
        return vector
    except FragirError as error:
        raise VerifyException(f"frag.lanes: {name}: {error}") from error


def _check_types(
    what: str, found: Sequence[Attribute], wanted: Sequence[Attribute], which: str
) -> None:
    """Whether types are those that layouts make of tiles."""
    if list(found) != list(wanted):
        texts = [", ".join(map(str, types)) or "nothing" for types in (found, wanted)]
        raise VerifyException(
            f"frag.lanes: {what} ({texts[0]}), it needs ({texts[1]}): {which} elements in one lane"
        )


def _is_written(pointer: SSAValue) -> bool:
    """Whether anything but loads may use a pointer."""
    from fragir.dialects import ptx

    for use in pointer.uses:
        op = use.operation
        if isinstance(op, ptx.OffsetOp | ptx.FlipOp):
            if _is_written(op.result):
                return True
        elif not _only_reads(op):
            return True
    return False


def _only_reads(op: Operation) -> bool:
    """Whether an operation that takes a pointer reads there, and no more."""
    effects = get_effects(op)
    return bool(effects) and all(effect.kind is MemoryEffectKind.READ for effect in effects)


def _is_loose(op: Operation) -> bool:
    """Whether an operation is being built, and stands in no function yet."""
    top = op.get_toplevel_object()
    return top is op or not isinstance(top, Operation)


def enclosing_lanes(op: Operation) -> LanesOp:
    """The region that an operation stands in; VerifyException where there is none."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, LanesOp):
        parent = parent.parent_op()
    if parent is None:
        raise VerifyException(f"{op.name} stands in the region of a frag.lanes")
    return parent


@op_definition
class CoordinatesOp(IRDLOperation):
    """Where one of this lane's elements stands in its tile: an index for each dimension.

    `%i, %j = frag.coordinates operand 0 element 2 : index, index`; `result 0` is a tile that the
    region yields.
    """

    name = "frag.coordinates"
    of = prop_def(StringAttr)
    tile = prop_def(IntegerAttr.constr(i64))
    element = prop_def(IntegerAttr.constr(i64))
    place = var_result_def(IndexType)
    traits = traits_def(Pure())

    def __init__(self, of: str, tile: int, element: int, rank: int):
        super().__init__(
            properties={
                "of": StringAttr(of),
                "tile": IntegerAttr(tile, i64),
                "element": IntegerAttr(element, i64),
            },
            result_types=[[INDEX] * rank],
        )

    def held(self) -> HeldTile:
        """The tile that is meant."""
        op, number = enclosing_lanes(self), self.tile.value.data
        count = len(op.tiles)
        held = op.held()
        known = held[:count] if self.of.data == "operand" else held[count:]
        if not 0 <= number < len(known):
            raise VerifyException(f"frag.coordinates: frag.lanes has no {self.of.data} {number}")
        return known[number]

    def verify_(self) -> None:
        if self.of.data not in ("operand", "result"):
            raise VerifyException("frag.coordinates takes `operand` or `result`")
        if _is_loose(self):
            return
        held = self.held()
        count, rank = held.registers.get_shape()[0], len(held.type.shape)
        if not 0 <= self.element.value.data < count:
            raise VerifyException(
                f"frag.coordinates: a lane has elements 0 to {count - 1} of {held.type}, "
                f"not {self.element.value.data}"
            )
        if len(self.place) != rank:
            raise VerifyException(
                f"frag.coordinates: {held.type} has {rank} dimensions, not {len(self.place)}"
            )

    @classmethod
    def parse(cls, parser: Parser) -> CoordinatesOp:
        of = parser.parse_identifier(": operand or result")
        tile = parser.parse_integer()
        parser.parse_keyword("element")
        element = parser.parse_integer()
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        op = cls(of, tile, element, len(types))
        op.attributes = attributes
        return op

    def print(self, printer: Printer) -> None:
        number, element = self.tile.value.data, self.element.value.data
        printer.print_string(f" {self.of.data} {number} element {element}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.place, lambda value: printer.print_attribute(value.type))


@op_definition
class PointerOp(IRDLOperation):
    """The address of an element of memory, at indices that may differ from lane to lane.

    `%p = frag.pointer %m[%i, %j] : memref<?x64xf32> -> !ptx.ptr<global>`. Nothing checks that the
    element exists, or what lies behind it.
    """

    name = "frag.pointer"
    memory = operand_def()
    indices = var_operand_def(IndexType)
    pointer = result_def(PointerType)
    traits = traits_def(Pure())
    assembly_format = "$memory `[` $indices `]` attr-dict `:` type($memory) `->` type($pointer)"

    def __init__(self, memory: SSAValue, indices: Sequence[SSAValue]):
        pointer = SHARED if is_shared(memory.type) else GLOBAL
        super().__init__(operands=[memory, indices], result_types=[pointer])

    def verify_(self) -> None:
        if not _is_loose(self):
            enclosing_lanes(self)
        if not is_memref(self.memory.type):
            raise VerifyException(f"frag.pointer takes a memref, not {self.memory.type}")
        type_ = memref_type(self.memory.type)
        rank = len(type_.get_shape())
        if len(self.indices) != rank:
            raise VerifyException(
                f"frag.pointer: {type_} takes {rank} indices, one a dimension, not "
                f"{len(self.indices)}"
            )
        if bits(type_.element_type) < 8:
            raise VerifyException(f"frag.pointer: no single {type_.element_type} has an address")
        wanted = SHARED if is_shared(type_) else GLOBAL
        if self.pointer.type != wanted:
            raise VerifyException(f"frag.pointer: the address is a {wanted}")
