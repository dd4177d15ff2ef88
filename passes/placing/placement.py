"""A tile's layout, written into its type."""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.layout import Axis, Layout, Mode
from fragir.layout.distribution import handed_out
from fragir.layout.modes import WARP
from fragir.mlir.diagnostics import fail


def owner_of(value: SSAValue) -> Operation:
    """The operation that makes a value, or whose region takes it."""
    owner = value.owner if isinstance(value, OpResult) else value.owner.parent_op()
    assert isinstance(owner, Operation)
    return owner


def set_layout(value: SSAValue, layout: frag.LayoutAttr) -> None:
    """Gives a tile its layout. Fails where it cannot have it."""
    tile = frag.tile_of(value)
    if tile.layout == layout:
        return
    placed = placed_type(value, tile, layout)
    in_flight = not isinstance(value.type, frag.TileType)
    Rewriter.replace_value_with_new_type(value, frag.InFlightType(placed) if in_flight else placed)


def placed_type(value: SSAValue, tile: frag.TileType, layout: frag.LayoutAttr) -> frag.TileType:
    try:
        return tile.with_layout(layout)
    except VerifyException as error:
        fail(owner_of(value), f"{tile} cannot have the layout {layout}: {error}")


def tile_text(value: SSAValue) -> str:
    """What a tile, or memory, is called in messages."""
    what = "a tile " if frag.held_tile(value.type) is not None else ""
    return f"%{value.name_hint}" if value.name_hint else f"{what}{value.type}"


# -- default ---------------------------------------------------------------------------------------
# The layout of a tile that nothing says anything about.


def default_layout(tile: frag.TileType, threads: int, together: int | None = None) -> Layout:
    """A layout for a tile that no instruction touches: rows in order, 16 bytes a lane. Where memory
    lets but `together` elements be accessed at once, lanes lie beside each other by so many.

    Lanes lie along the last dimension as far as they divide it, then along the one before it, and
    warps behind them. Of a tile with fewer elements than threads several threads hold the same
    ones, and of one that the threads do not divide, unless that takes too many registers: then
    parts overlap (`fragir.layout.distribution`). Of elements smaller than a byte a lane has whole
    bytes.
    """
    vector = _vector(tile, threads)
    lanes, warps = min(threads, WARP), max(1, threads // WARP)
    units = (*(1,) * (len(tile.shape) - 1), vector)
    layout = handed_out(tile.shape, {"element": units, "lane": lanes, "warp": warps})
    if together is not None and together < vector:
        layout = _interleaved(layout, vector, max(together, _least(tile)))
    copies = prod(layout.sizes.values()) > prod(tile.shape)
    if not copies or prod(tile.shape) < threads * vector:
        return layout
    from fragir.layout.distribution import covering  # few programs need it

    found = covering(tile.shape, _widest(tile, threads), lanes, warps)
    return min(layout, found, key=lambda one: one.size("element"))


def _interleaved(layout: Layout, vector: int, together: int) -> Layout:
    """The same elements in each row of lanes, but a lane's by so many, and the next lane's behind
    them; the layout itself where lanes do not lie along the last dimension."""
    last = layout.rank - 1
    element, lane = (layout.axis(name).modes for name in ("element", "lane"))
    along = [tuple(by * (dim == last) for dim in range(last + 1)) for by in (1, vector)]
    if not element or not lane or (element[0], lane[0].step) != (Mode(vector, along[0]), along[1]):
        return layout

    def mode(size: int, by: int) -> Mode:
        return Mode(size, tuple(by * (dim == last) for dim in range(last + 1)))

    count = lane[0].size
    axes = {
        "lane": (mode(count, together), *lane[1:]),
        "element": (mode(together, 1), mode(vector // together, together * count), *element[1:]),
    }
    changed = tuple(Axis(axis.name, axes.get(axis.name, axis.modes)) for axis in layout.axes)
    return replace(layout, axes=changed).simplified()


def _vector(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane: 16 bytes, or what the threads divide; predicates apart."""
    vector = 1 if is_predicate(tile.element_type) else max(1, 128 // ptx.bits(tile.element_type))
    least = _least(tile)
    while vector > least and (tile.shape[-1] % vector or prod(tile.shape) % (vector * threads)):
        vector //= 2
    return vector


def _widest(tile: frag.TileType, threads: int) -> int:
    """Elements side by side in a lane, as many as leave every lane some."""
    vector = 1 if is_predicate(tile.element_type) else max(1, 128 // ptx.bits(tile.element_type))
    least = _least(tile)
    while vector > least and (tile.shape[-1] % vector or prod(tile.shape) < vector * threads):
        vector //= 2
    return vector


def _least(tile: frag.TileType) -> int:
    """Elements of a whole byte, if rows have whole bytes."""
    if is_predicate(tile.element_type):
        return 1
    per = max(1, 8 // ptx.bits(tile.element_type))
    return 1 if tile.shape[-1] % per else per
