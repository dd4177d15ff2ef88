"""Any layout as a drawing.

Its matrix, its hardware or its memory; a conversion as before and after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from math import prod
from typing import TypeAlias

from fragir.draw.grid import Cell, Drawing, Grid, Point
from fragir.errors import FragirError
from fragir.layout.chain import LayoutChain
from fragir.layout.conversion import sources
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP
from fragir.layout.planning.planner import ConversionPlan
from fragir.layout.planning.report import WORDS, ConversionReport, meaning

AnyLayout: TypeAlias = "Layout | LayoutChain"
CellAt: TypeAlias = Callable[[Point, int, int], Cell]
Shade: TypeAlias = Callable[[Mapping[str, int]], int]

LARGEST = 1 << 16
"""Cells of a drawing."""
COLOURS = ("lane", "warp", "register", "element")
_SLOTS = ("lane", "element")
_LETTERS = {"lane": "T", "warp": "W", "element": "", "block": "B"}


def is_of_tensor_memory(layout: AnyLayout) -> bool:
    """Whether lanes and columns of tensor memory hold it."""
    return {"lane", "column"} <= set(layout.names)


def _within(names: tuple[str, ...]) -> list[str]:
    """The axes of a layout of tensor memory within a column."""
    return [name for name in names if name not in ("cta", "lane", "column")]


def is_of_registers(layout: AnyLayout) -> bool:
    """Whether lanes and registers hold it; else it is one of memory, or of other numbers."""
    return "lane" in layout.names or "element" in layout.names


def layout_drawing(
    layout: AnyLayout,
    facts: tuple[tuple[str, str], ...] = (),
    colour: str = "lane",
    bits: int | None = None,
) -> Drawing:
    """The matrix view. Raises FragirError where it would be larger than can be read.

    A layout of registers shows for every element who holds it, any other for every coordinate what
    stands there. `bits` of an element say which register it is in.
    """
    if is_of_registers(layout):
        _check_size(prod(layout.shape))
        shade = shade_by(colour, bits)
        return Drawing(str(layout), facts, _key(layout), tuple(_hardware_grids(layout, shade)))
    return standing_drawing(layout, facts, lambda slot: slot[-2] if len(slot) > 1 else 0)


def standing_drawing(
    layout: AnyLayout,
    facts: tuple[tuple[str, str], ...],
    shade: Callable[[Point], int],
    key: str = "",
) -> Drawing:
    """The matrix view of what is not held in registers: a cell says where its element stands."""
    _check_size(prod(layout.sizes.values()))
    words = f"a cell is its {', '.join(layout.dims)}{key}"
    return Drawing(str(layout), facts, words, tuple(_standing(layout, shade)))


def hardware_drawing(
    layout: AnyLayout,
    facts: tuple[tuple[str, str], ...] = (),
    colour: str = "lane",
    bits: int | None = None,
) -> Drawing:
    """The hardware view: lanes below each other, their elements beside each other."""
    if not is_of_registers(layout):
        raise FragirError(
            f"{layout} has neither lanes nor elements",
            hint="the hardware view is of registers; --view memory shows banks",
        )
    _check_size(prod(layout.sizes.values()))
    key = f"a cell is the {', '.join(layout.dims)} that an element of a lane is"
    return Drawing(str(layout), facts, key, tuple(_by_lanes(layout, shade_by(colour, bits))))


def _check_size(cells: int) -> None:
    if cells > LARGEST:
        raise FragirError(
            f"a drawing of {cells} cells cannot be read",
            hint="--format csv and json list every slot, --at and --lane answer for some",
        )


def shade_by(colour: str, bits: int | None) -> Shade:
    """The number that colours a slot."""
    per = 1 if bits is None else max(1, 32 // bits)

    def shade(slot: Mapping[str, int]) -> int:
        match colour:
            case "warp":
                return 4 * slot.get("warp", slot.get("lane", 0) // 32) + 2
            case "register":
                return slot.get("element", 0) // per
            case "element":
                return slot.get("element", 0)
            case _:
                return slot.get("lane", 0) + 32 * slot.get("warp", 0)

    return shade


def holders_of(layout: AnyLayout) -> Mapping[Point, list[Point]]:
    """For every point that is held its slots, coordinates in the order of the axes."""
    if isinstance(layout, Layout):
        return layout.holders
    found: dict[Point, list[Point]] = {}
    for slot, point in layout.slots():
        if point is not None:
            found.setdefault(point, []).append(slot)
    return found


def slot_label(layout: AnyLayout, slot: Point) -> str:
    """`W1 T5:3`, element 3 of lane 5 of warp 1."""
    found = dict(zip(layout.names, slot, strict=True))
    if is_of_tensor_memory(layout):
        cta = f"CTA{found['cta']} " if "cta" in found else ""
        within = "".join(f".{found[name]}" for name in _within(layout.names))
        return f"{cta}L{found['lane']}:{found['column']}{within}"
    return _label({n: found[n] for n in found if layout.sizes[n] > 1 or n != "warp"})


def _key(layout: AnyLayout) -> str:
    if is_of_tensor_memory(layout):
        within = "".join(f", .1 is its {name} 1" for name in _within(layout.names))
        return f"L5:3 is column 3 of lane 5 of tensor memory{within}"
    if layout.sizes.get("warp", 1) > 1:
        return "W1 T5:3 is element 3 of lane 5 of warp 1"
    return "T5:3 is element 3 of lane 5"


def _hardware_grids(layout: AnyLayout, shade: Shade) -> Iterator[Grid]:
    holders = holders_of(layout)
    names = layout.names

    def cell(point: Point, row: int, col: int) -> Cell:
        slots = holders.get(point, [])
        lines = [", ".join(f"{n} {x}" for n, x in zip(names, s, strict=True)) for s in slots]
        note = f"({', '.join(map(str, point))})\n" + "\n".join(lines)
        if not slots:
            return Cell(row, col, "-", note, None)
        label = slot_label(layout, slots[0]) + ("+" if len(slots) > 1 else "")
        shaded = shade(dict(zip(names, slots[0], strict=True)))
        return Cell(row, col, label, note, shaded, slots[0])

    yield from _grids(layout.dims, layout.shape, cell, names)


def _label(slot: Mapping[str, int]) -> str:
    before = " ".join(f"{_LETTERS[n]}{slot[n]}" for n in ("block", "warp", "lane") if n in slot)
    others = " ".join(f"{n}{x}" for n, x in slot.items() if n not in _LETTERS)
    element = f":{slot['element']}" if "element" in slot else ""
    return " ".join(part for part in (others, before + element) if part)


def _by_lanes(layout: AnyLayout, shade: Shade) -> Iterator[Grid]:
    """A grid for every warp, and for every coordinate that is neither lane nor element."""
    names = layout.names
    last = ("lane", *(_within(names)[:1] or ["column"])) if is_of_tensor_memory(layout) else _SLOTS
    order = [n for n in names if n not in last]
    order += [n for n in last if n in names]
    sizes = tuple(layout.sizes[n] for n in order)

    def cell(slot: Point, row: int, col: int) -> Cell:
        at = dict(zip(order, slot, strict=True))
        point = layout(**at)
        where = ", ".join(f"{n} {x}" for n, x in at.items())
        if point is None:
            return Cell(row, col, "-", f"{where}\nnothing", None)
        label = ",".join(map(str, point))
        return Cell(row, col, label, f"{where}\n({label})", shade(at), point)

    yield from _grids(tuple(order), sizes, cell, layout.dims)


def _standing(layout: AnyLayout, shade: Callable[[Point], int]) -> Iterator[Grid]:
    names = layout.names

    def cell(slot: Point, row: int, col: int) -> Cell:
        point = layout(**dict(zip(names, slot, strict=True)))
        where = ", ".join(f"{n} {x}" for n, x in zip(names, slot, strict=True))
        if point is None:
            return Cell(row, col, "-", where, None)
        label = ",".join(map(str, point))
        return Cell(row, col, label, f"{where}\n{label}", shade(slot), point)

    yield from _grids(names, tuple(layout.sizes.values()), cell, layout.dims)


def _grids(
    names: tuple[str, ...], shape: Point, cell: CellAt, numbers: tuple[str, ...]
) -> Iterator[Grid]:
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
        yield Grid(title, row_name, col_name, cells, numbers)


# -- conversions -----------------------------------------------------------------------------------
# A conversion as a drawing: who holds each element before and after, and what moves how far.
#
# Both pictures have the colours of the lanes that hold an element *before*: where a colour stands
# in the second picture, there its elements have gone.

_WAYS = ("stay where they are", "change their register", "change their lane", "change their warp")


def conversion_drawing(
    source: Layout, target: Layout, facts: tuple[tuple[str, str], ...] = ()
) -> Drawing:
    """Before and after beside each other. Both hold the same matrix of two dimensions."""
    if source.shape != target.shape or source.rank != 2:
        raise FragirError(
            f"a picture of a conversion shows one matrix, not {source.shape} and {target.shape}"
        )
    before = layout_drawing(source)
    moved = sources(source, target)
    names = target.names
    wanted = holders_of(target)
    colour = shade_by("lane", None)
    ways: Counter[str] = Counter()

    def cell(row: int, col: int) -> Cell:
        slots = wanted.get((row, col), [])
        if not slots:
            return Cell(row, col, "-", f"({row}, {col})\nnot wanted", None)
        at = dict(zip(names, slots[0], strict=True))
        place = _threads(target, slots[0])
        read = moved.source(**place)
        if read is None:
            raise FragirError(f"({row}, {col}) is held by nobody before")
        old = {"warp": read.warp, "lane": read.lane, "element": read.element}
        far = _distance(place, old)
        ways[_WAYS[far]] += 1
        label = slot_label(target, slots[0]) + ("+" if len(slots) > 1 else "")
        lane = f"lane {old['lane']} of warp {old['warp']}" if old["warp"] else f"lane {old['lane']}"
        where = ", ".join(f"{n} {x}" for n, x in at.items())
        note = f"({row}, {col})\n{where}\nfrom {lane}, element {old['element']}"
        return Cell(row, col, label, note, colour(old), (*slots[0], *old.values()), far > 1)

    rows, cols = target.shape
    grid = Grid(
        "after: framed are those that change their lane",
        "row",
        "col",
        tuple(tuple(cell(row, col) for col in range(cols)) for row in range(rows)),
        (*names, "from warp", "from lane", "from element"),
    )
    first = before.grids[0]
    told = ", ".join(f"{ways[way]} {way}" for way in _WAYS if ways[way])
    old = Grid("before", first.row_name, first.col_name, first.rows, first.names, first.folds)
    key = f"{before.key}; the colour is that of the lane before; of {rows * cols}: {told}"
    title = f"from {source} to {target}"
    return Drawing(title, (*facts, ("elements", told)), key, (old, grid), beside=True)


def plan_facts(plan: ConversionPlan, report: ConversionReport) -> tuple[tuple[str, str], ...]:
    """What a plan does, for a picture of it: its way, its steps, its price and its reasons."""
    steps = "\n".join(f"{count} x {name}: {meaning(name)}" for name, count in report.steps)
    price = f"{report.cost:g} half cycles a warp, at least {report.least:g}"
    return (
        ("way", WORDS[plan.way]),
        *((("steps of each thread", steps),) if steps else ()),
        ("cost", price),
        ("why", "\n".join(report.reasons)),
    )


def _threads(layout: Layout, slot: Point) -> dict[str, int]:
    """Warp, lane and element; a lane axis of several warps is cut."""
    at = dict(zip(layout.names, slot, strict=True))
    thread = at.get("warp", 0) * layout.sizes.get("lane", 1) + at.get("lane", 0)
    wide = layout.sizes.get("lane", 1) > WARP
    warp, lane = divmod(thread, WARP) if wide else (at.get("warp", 0), at.get("lane", 0))
    return {"warp": warp, "lane": lane, "element": at.get("element", 0)}


def _distance(place: dict[str, int], old: dict[str, int]) -> int:
    if place["warp"] != old["warp"]:
        return 3
    if place["lane"] != old["lane"]:
        return 2
    return int(place["element"] != old["element"])
