"""Any layout as a drawing: who holds each element, or where each element stands in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import TypeAlias

from fragir.draw.grid import Cell, Drawing, Grid
from fragir.errors import FragirError
from fragir.layout.chain import LayoutChain
from fragir.layout.layout import Layout

Point: TypeAlias = tuple[int, ...]
AnyLayout: TypeAlias = "Layout | LayoutChain"
CellAt: TypeAlias = Callable[[Point, int, int], Cell]

LARGEST = 1 << 16
"""Cells of a drawing."""
_LETTERS = {"lane": "T", "warp": "W", "element": "", "block": "B"}


def layout_drawing(layout: AnyLayout, facts: tuple[tuple[str, str], ...] = ()) -> Drawing:
    """The drawing of a layout. Raises FragirError where it would be larger than can be read.

    A layout of registers shows for every element who holds it, any other for every coordinate what
    stands there.
    """
    registers = "lane" in layout.names or "element" in layout.names
    cells = prod(layout.shape) if registers else prod(layout.sizes.values())
    if cells > LARGEST:
        raise FragirError(
            f"a drawing of {cells} cells cannot be read",
            hint="--format csv and json list every slot, --at and --lane answer for some",
        )
    if registers:
        warps = layout.sizes.get("warp", 1) > 1
        key = "W1 T5:3 is element 3 of lane 5 of warp 1" if warps else "T5:3 is element 3 of lane 5"
        return Drawing(str(layout), facts, key, tuple(_held(layout)))
    key = f"a cell is its {', '.join(layout.dims)}"
    return Drawing(str(layout), facts, key, tuple(_standing(layout)))


def holders_of(layout: AnyLayout) -> Mapping[Point, list[Point]]:
    """For every point that is held its slots, coordinates in the order of the axes."""
    if isinstance(layout, Layout):
        return layout.holders
    found: dict[Point, list[Point]] = {}
    for slot, point in layout.slots():
        if point is not None:
            found.setdefault(point, []).append(slot)
    return found


def _held(layout: AnyLayout) -> Iterator[Grid]:
    holders = holders_of(layout)
    names = layout.names

    def cell(point: Point, row: int, col: int) -> Cell:
        slots = holders.get(point, [])
        lines = [", ".join(f"{n} {x}" for n, x in zip(names, s, strict=True)) for s in slots]
        note = f"({', '.join(map(str, point))})\n" + "\n".join(lines)
        if not slots:
            return Cell(row, col, "-", note, None)
        first = dict(zip(names, slots[0], strict=True))
        label = _label({n: first[n] for n in first if layout.sizes[n] > 1 or n != "warp"})
        more = "+" if len(slots) > 1 else ""
        return Cell(row, col, label + more, note, first.get("lane", 0) + 32 * first.get("warp", 0))

    yield from _grids(layout.dims, layout.shape, cell)


def _label(slot: Mapping[str, int]) -> str:
    """`B1 W1 T5:3`."""
    before = " ".join(f"{_LETTERS[n]}{slot[n]}" for n in ("block", "warp", "lane") if n in slot)
    others = " ".join(f"{n}{x}" for n, x in slot.items() if n not in _LETTERS)
    element = f":{slot['element']}" if "element" in slot else ""
    return " ".join(part for part in (others, before + element) if part)


def _standing(layout: AnyLayout) -> Iterator[Grid]:
    names = layout.names

    def cell(slot: Point, row: int, col: int) -> Cell:
        point = layout(**dict(zip(names, slot, strict=True)))
        where = ", ".join(f"{n} {x}" for n, x in zip(names, slot, strict=True))
        if point is None:
            return Cell(row, col, "-", where, None)
        label = ",".join(map(str, point))
        return Cell(row, col, label, f"{where}\n{label}", slot[-2] if len(slot) > 1 else 0)

    yield from _grids(names, tuple(layout.sizes.values()), cell)


def _grids(names: tuple[str, ...], shape: Point, cell: CellAt) -> Iterator[Grid]:
    """The last two coordinates are rows and columns, each value of the others has a grid."""
    outer, (rows, cols) = shape[:-2], ((1, *shape) if len(shape) < 2 else shape)[-2:]
    row_name, col_name = ("", *names)[-2:] if len(names) < 2 else names[-2:]
    for rest in product(*map(range, outer)):
        title = ", ".join(f"{n} {x}" for n, x in zip(names, rest, strict=False))
        cells = tuple(
            tuple(
                cell((*rest, *((r, c) if len(shape) > 1 else (c,) if shape else ())), r, c)
                for c in range(cols)
            )
            for r in range(rows)
        )
        yield Grid(title, row_name, col_name, cells)
