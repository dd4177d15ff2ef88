"""A conversion as a drawing: who holds each element before and after, and what moves how far.

Both pictures have the colours of the lanes that hold an element *before*: where a colour stands in
the second picture, there its elements have gone.
"""

from __future__ import annotations

from collections import Counter

from fragir.draw.grid import Cell, Drawing, Grid, Point
from fragir.draw.layouts import holders_of, layout_drawing, shade_by, slot_label
from fragir.errors import FragirError
from fragir.layout.conversion import sources
from fragir.layout.layout import Layout
from fragir.layout.modes import WARP
from fragir.layout.planning.planner import ConversionPlan
from fragir.layout.planning.report import WORDS, ConversionReport, meaning

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
