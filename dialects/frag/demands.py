"""Layouts that products dictate: each operand's fragments, spread over warps or warpgroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects.elements import element_bits
from fragir.dialects.frag.attributes import (
    DIMENSIONS,
    ExplicitLayoutAttr,
    LayoutAttr,
    MmaFragment,
    MmaLayoutAttr,
)
from fragir.dialects.frag.instructions import parse_name
from fragir.dialects.frag.lane_selected import selected_tile
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import LayoutDemand, OperandAt, Tile, value_of
from fragir.dialects.narrow import memref_type
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.spelling import mnk
from fragir.isa.tiling import fitted
from fragir.layout import Axis, Layout

Warps = tuple[int, int]


def warps_for(name: str, d: TileType, warps: Warps) -> Warps:
    """How warps, or warpgroups, lie over a product: as they are said to, or where there are too few
    instructions for that, so that most of them have some.
    """
    m, n, _ = mnk(parse_name(name).shape)
    return warps if d.products > 1 else fitted(warps, (d.rows // m, d.cols // n))


def fragments(
    operands: Iterable[tuple[Tile, str, str]], words: Iterable[str], warps: Warps
) -> Iterator[LayoutDemand]:
    """(tile, short name of the instruction, its operand) as demands; `words` name the tiles.

    Where one of them is placed with a dimension in another order, all that share it have to be.
    """
    operands = list(operands)
    orders = orders_of(value_of(tile) for tile, _, _ in operands)
    for (tile, name, operand), word in zip(operands, words, strict=True):
        own = tuple((d, order) for d, order in orders.items() if d in DIMENSIONS[operand])
        layout = MmaLayoutAttr(MmaFragment(name, operand, warps, own))
        yield LayoutDemand(tile, layout, f"operand {word}")


def orders_of(values: Iterable[SSAValue]) -> dict[str, Layout]:
    """The orders that placed operands have their dimensions in, sorted by name."""
    found: dict[str, Layout] = {}
    for value in values:
        placement = value.type.placement if isinstance(value.type, TileType) else None
        if isinstance(placement, MmaLayoutAttr):
            for name, order in placement.data.orders:
                found.setdefault(name, order)
    return dict(sorted(found.items()))


def reordered(
    a: LayoutDemand, b: LayoutDemand, layout: Attribute
) -> Iterator[tuple[LayoutDemand, LayoutDemand]]:
    """The demands for A and B with K in the order in which A is `layout`, registers renamed.

    Nothing where there is no such order, or where it is the one demanded.
    """
    from fragir.layout.reorder import free_order  # few programs need it

    tile = tile_of(value_of(a.value))
    plain = [one.layout for one in (a, b) if isinstance(one.layout, MmaLayoutAttr)]
    if len(plain) < 2 or plain[0].data.orders or not isinstance(layout, LayoutAttr):
        return
    if element_bits(tile.element_type) < 8:
        return  # what is packed lies as it lies
    try:
        order = free_order(plain[0].layout(*tile.shape), layout.layout(*tile.shape), 1)
        if order is None or order.axes[0].size == 1:
            return
        order = Layout((Axis("k", order.axes[0].modes),), ("k",))
        first, second = (in_order_of(one, "k", order) for one in (a, b))
    except FragirError:
        return
    yield first, second


def columns_reordered(
    b: LayoutDemand, c: LayoutDemand, d: LayoutDemand, layout: Attribute
) -> Iterator[Sequence[LayoutDemand]]:
    """The demands for B, C and D with N in the order in which `layout` has D, registers renamed."""
    order = _order_of_columns(d, layout)
    if order is not None:
        with suppress(FragirError):
            yield [in_order_of(one, "n", order) for one in (b, c, d)]


def columns_and_rows(
    d: LayoutDemand, b: OperandAt, layout: Attribute
) -> Iterator[Sequence[LayoutDemand]]:
    """The demands for D with N in the order in which `layout` has it, registers renamed, and for
    B, whose rows in shared memory are D's columns, so that its rows lie so.
    """
    order = _order_of_columns(d, layout)
    if order is not None:
        from fragir.dialects.frag.row_orders import row_order  # few programs need it

        rows = memref_type(b.value.type).get_shape()[-2]
        with suppress(FragirError):
            yield in_order_of(d, "n", order), LayoutDemand(b, row_order(order, rows), "operand b")


def _order_of_columns(d: LayoutDemand, layout: Attribute) -> Layout | None:
    """The order of N in which D is `layout` with registers renamed.

    None where there is no such order, or where it is the one demanded.
    """
    from fragir.layout.reorder import free_order  # few programs need it

    tile, plain = tile_of(value_of(d.value)), d.layout
    if not isinstance(plain, MmaLayoutAttr) or plain.data.orders:
        return None
    if not isinstance(layout, LayoutAttr):
        return None
    try:
        order = free_order(plain.layout(*tile.shape), layout.layout(*tile.shape), 1)
    except FragirError:
        return None
    if order is None or order.axes[0].size == 1:
        return None
    return Layout((Axis("n", order.axes[0].modes),), ("n",))


def in_order_of(demand: LayoutDemand, name: str, order: Layout) -> LayoutDemand:
    """A demand for an operand with a dimension in an order. FragirError where there is none."""
    assert isinstance(demand.layout, MmaLayoutAttr)
    layout = MmaLayoutAttr(demand.layout.data._replace(orders=((name, order),)))
    layout.layout(*tile_of(value_of(demand.value)).shape)  # is there one for its shape?
    return demand._replace(layout=layout)


def check_in_order(values: Iterable[SSAValue], why: str) -> None:
    """FragirError where a placed operand has a dimension in another order, and `why`."""
    for name, order in orders_of(values).items():
        raise FragirError(
            f"{name} is in the order {order.axes[0]}, but {why}",
            hint=f"leave `{name} = ...` out of the layouts, and frag.convert what has it",
        )


def selected(instruction: Instruction, operand: str, value: Tile, warps: Warps) -> LayoutDemand:
    """The demand for a tile of metadata (e) or scales (sfa, sfb)."""
    tile = tile_of(value_of(value))
    layout = selected_tile(instruction, operand, (tile.rows, tile.cols), warps)
    word = "metadata" if operand == "e" else operand
    return LayoutDemand(value, ExplicitLayoutAttr(layout), f"operand {word}")


def scales(
    instruction: Instruction, op: Operation, values: Sequence[SSAValue], warps: Warps
) -> Iterator[LayoutDemand]:
    """The demands for the scales of A and B, an operation's last operands; none without scales."""
    first = len(op.operands) - len(values)
    for index, name in enumerate(("sfa", "sfb")[: len(values)], first):
        yield selected(instruction, name, OperandAt(op, index), warps)
