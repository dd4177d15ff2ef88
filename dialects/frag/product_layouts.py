"""Which instruction multiplies which tiles, and the layouts that it dictates for them.

Each operand's fragments are spread over warps or warpgroups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from math import gcd, prod

from xdsl.ir import Attribute, Operation, SSAValue

from fragir import isa
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.attributes import (
    DIMENSIONS,
    ExplicitLayoutAttr,
    LayoutAttr,
    MmaFragment,
    MmaLayoutAttr,
)
from fragir.dialects.frag.instructions import (
    PLAIN,
    QUAD,
    How,
    accumulator_of,
    check_how,
    check_target,
    check_words,
    is_mma,
    largest_n,
    lookup,
    parse_name,
    wgmma_types,
)
from fragir.dialects.frag.types import TileType, tile_of
from fragir.dialects.interfaces import LayoutDemand, OperandAt, Tile, value_of
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.products import DENSE, shapes, wgmma_k
from fragir.isa.registry import per_table
from fragir.isa.spelling import mnk
from fragir.isa.tiling import fitted_warps, sharing, tile_layout
from fragir.layout import Axis, Condition, Layout, Mode
from fragir.layout.distribution import Distribution

# --- what a quad's lanes share --------------------------------------------------------------------

# Operand -> (dimension in which instructions take turns, whether it is M, N or K).
_TURNS = {"e": (1, "k"), "sfa": (0, "m"), "sfb": (1, "n")}


def turns(instruction: isa.Instruction, operand: str, steps: int) -> int:
    """How many of a warp's `steps` instructions along its dimension one register serves."""
    condition = _condition(instruction, operand)
    return 1 if condition is None else gcd(condition.modulus, steps)


def selected_tile(
    instruction: isa.Instruction, operand: str, shape: tuple[int, int], warps: tuple[int, int]
) -> Layout:
    """The layout of a tile of metadata (e) or scales (sfa, sfb); axes as in `tile_layout`.

    A lane's elements: of metadata those of one register, then repeats down the rows, then along K;
    of scales all blocks along K, then repeats.
    """
    dim, letter = _TURNS[operand]
    covered = instruction.operands[operand].shape[dim]
    if shape[dim] % covered:
        raise FragirError(
            f"{shape[dim]} {'columns' if dim else 'rows'} of {operand} are no multiple of "
            f"{covered}, what {instruction.mnemonic} covers"
        )
    over = sharing({"m": warps[0], "n": warps[1], "k": 1}[letter], shape[dim] // covered)
    ways = turns(instruction, operand, shape[dim] // (covered * over))
    held = instruction.operands[operand]
    assert held.layout is not None
    lane = _shared_lanes(instruction, operand, held.layout.axis("lane"), ways, dim)
    if operand == "e":
        fragment = Layout((lane, held.layout.axis("element")))
        several = replace(held, shape=(held.shape[0], covered * ways), layout=fragment)
        return tile_layout(instruction.with_operands(several), operand, shape, warps)
    extent = (covered * ways, 1) if dim == 0 else (1, covered * ways)
    tile = Distribution(extent, {"warp": (), "lane": lane.modes, "element": ()})
    tile.spread("element", shape[1 - dim], 1 - dim)
    tile.spread("element", shape[dim] // (extent[dim] * over), dim)
    for number, count in enumerate(warps):
        share = over if number == dim else 1
        tile.spread("warp", share, dim)
        tile.copies("warp", count // share)
    return tile.layout(held.layout.dims)


def _shared_lanes(
    instruction: isa.Instruction, operand: str, lane: Axis, ways: int, dim: int
) -> Axis:
    """The lanes, those that an instruction does not read with the part of its neighbours."""
    condition = _condition(instruction, operand)
    if condition is None or ways == 1:
        return lane
    from fragir.layout.combine import cut  # few programs need it
    from fragir.layout.digits import unit

    below, above = cut(lane.modes, condition.divisor, "lane")
    copies, above = cut(above, ways, "lane")
    assert not any(any(mode.stride) for mode in copies)
    step = unit(dim, 2, instruction.operands[operand].shape[dim])
    return Axis("lane", (*below, Mode(ways, step), *above))


def _condition(instruction: isa.Instruction, operand: str) -> Condition | None:
    """Which lanes the instruction reads with selectors of 0; None: all."""
    layout = instruction.operands[operand].layout
    assert layout is not None
    return next((c for c in layout.where if c.axis == "lane"), None)


# --- demands --------------------------------------------------------------------------------------

Warps = tuple[int, int]


def warps_for(name: str, d: TileType, warps: Warps) -> Warps:
    """How warps, or warpgroups, lie over a product: as they are said to, or where there are too few
    instructions for that, so that most of them have some.
    """
    m, n, _ = mnk(parse_name(name).shape)
    return warps if d.products > 1 else fitted_warps(warps, (d.rows // m, d.cols // n))


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


def reordered_demands(
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


def reordered_column_demands(
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


def selected_demand(
    instruction: Instruction, operand: str, value: Tile, warps: Warps
) -> LayoutDemand:
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
        yield selected_demand(instruction, name, OperandAt(op, index), warps)


# --- the choice -----------------------------------------------------------------------------------


def choose(
    a: TileType,
    b: TileType,
    c: TileType,
    d: TileType,
    using: str | None,
    target: str | None = None,
    how: How = PLAIN,
) -> str:
    """The short name of the mma.sync for these tiles: from their layouts, `using`, or the best.

    With a target only what it has is chosen. FragirError, with what to write instead, where no
    instruction fits.
    """
    return _choose(a, b, c, d, using, target, how)


@per_table
def _choose(
    a: TileType,
    b: TileType,
    c: TileType,
    d: TileType,
    using: str | None,
    target: str | None,
    how: How,
) -> str:
    types = a.element, b.element, c.element, d.element
    check_words(types, how)
    name = using or _placed_name(a, b)
    if name is not None:
        shape, type_, orders = parse_name(name)
        quad = shape == QUAD and type_ == "f16"
        if len(orders) != 2 * quad:
            raise FragirError(
                f"{name} must say how A and B are stored"
                if quad
                else f"{name}: only m8n8k4.f16 has a choice of row and col",
                hint=f"write {shape}.{type_}{'.row.col' * quad}",
            )
        if type_ != types[0]:
            raise FragirError(f"{name} multiplies {type_}, but A holds {types[0]}")
        _check_fit(shape, a, c, name)
        check_target(lookup(shape, types, orders, how), target)
        return name
    if a.products > 1:
        if a.products != 4 or types[0] != "f16":
            raise FragirError(
                f"no instruction forms {a.products} products of {types[0]} at once",
                hint="m8n8k4 of f16 forms four",
            )
        _check_fit(QUAD, a, c, QUAD)
        check_target(lookup(QUAD, types, ("row", "col"), how), target)
        return f"{QUAD}.f16.row.col"
    every = shapes(DENSE, types[0], bool(how.scale))
    fitting = [shape for shape in every if _is_whole(shape, a, c)]
    if not fitting and _can_be_padded(a, how):
        fitting = sorted(every, key=lambda shape: padded_multiplications(shape, a, c))
    elif not fitting:
        m, n, k = c.rows, c.cols, a.cols
        raise FragirError(
            f"no mma of {types[0]} divides {m}x{n}x{k} (M x N x K)",
            hint=f"make the tile a multiple of {' or '.join(every)}",
        )
    # where A's and B's types differ, not every shape of A's type exists
    found = [shape for shape in fitting if is_mma(shape, types, how)] or fitting[-1:]
    instructions = {shape: lookup(shape, types, (), how) for shape in found}
    for shape, instruction in instructions.items():
        if target is None or target in instruction.targets:
            return f"{shape}.{types[0]}"
    check_target(instructions[found[-1]], target)
    raise AssertionError("an instruction that the target lacks is refused")


def padded_multiplications(shape: str, a: TileType, c: TileType) -> int:
    """The multiplications of a product of which every dimension is filled up to whole
    instructions; frag-place does that where none divides it."""
    sizes = zip((c.rows, c.cols, a.cols), mnk(shape), strict=True)
    return prod(-(-size // step) * step for size, step in sizes)


def _can_be_padded(a: TileType, how: How) -> bool:
    """Whether zeros behind the tiles change nothing, and have a place of their own."""
    return not how.scale and not how.bitop and element_bits(a.element_type) >= 8


def _placed_name(a: TileType, b: TileType) -> str | None:
    first, second = a.placement, b.placement
    if not isinstance(first, MmaLayoutAttr) or first.data.operand != "a":
        # it is converted to what the instruction takes, or has it by another name
        if first is None or not isinstance(second, MmaLayoutAttr) or second.data.operand != "b":
            return None
        shape, _, orders = parse_name(second.data.instruction)
        return None if orders else f"{shape}.{a.element}"
    name = first.data.instruction
    if parse_name(name)[2] and isinstance(second, MmaLayoutAttr):
        name += "." + ".".join(parse_name(second.data.instruction)[2])
    return name


def _is_whole(shape: str, a: TileType, c: TileType) -> bool:
    m, n, k = mnk(shape)
    return c.rows % m == 0 and c.cols % n == 0 and a.cols % k == 0


def _check_fit(shape: str, a: TileType, c: TileType, name: str) -> None:
    if not _is_whole(shape, a, c):
        raise FragirError(
            f"{name} does not divide the tiles: M x N x K is {c.rows}x{c.cols}x{a.cols}",
            hint=f"make the tile a multiple of {shape}",
        )


def check_wgmma(
    a: Attribute, b: Attribute, c: TileType, k: int, how: How = PLAIN, negated: bool = False
) -> None:
    """FragirError unless wgmma multiplies these types into tile c, as `how` says."""
    first, second = element_name(a), element_name(b)
    check_how(first, second, c.element, how)
    accumulator_of(first, second, c.element)
    if not wgmma_k(first):
        raise FragirError(f"wgmma does not multiply {first}", hint=f"only {wgmma_types()}")
    if how.sparse and first == "b1":
        raise FragirError("there is no sparse wgmma of b1")
    if negated and c.element == "s32":
        raise FragirError(f"`negated` flips the sign of floats, not of {first}")
    step = wgmma_k(first) * (2 if how.sparse else 1)
    if k % step:
        what = "sparse wgmma" if how.sparse else "wgmma"
        raise FragirError(f"K = {k} is no multiple of {step}, {what}'s K for {first}")
    if c.rows % 64:
        raise FragirError(f"C has {c.rows} rows; a warpgroup computes 64 at a time")
    wgmma_n(c, first)


def wgmma_n(c: TileType, a: str) -> int:
    """N of one wgmma for a tile of C: all columns of a warpgroup where that is legal."""
    if isinstance(c.placement, MmaLayoutAttr):
        return c.placement.data.mnk[1]
    return largest_n(c.cols, a)
