"""How `frag.lanes` is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.ir import Attribute, Operation, Region, SSAValue
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from fragir.dialects.frag.attributes import LayoutAttr
from fragir.dialects.frag.types import TileType


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
        _stated(parser, name, type_, layout, position)
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
            layouts.append(_stated(parser, f"result {len(outputs) - 1}", type_, layout, here))
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


def _stated(
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
