"""Answers of `fragir layout TEXT`: any layout as a whole, or who holds a point, what a lane."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fragir.cli.command import Document, print_json
from fragir.cli.layout_texts import FRAMED, Picture, show, text_drawing
from fragir.cli.query import TABLE_FORMATS, print_rows
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.layout import Layout, LayoutChain

Point = tuple[int, ...]

HARDWARE = {"lane", "element", "warp", "thread"}
"""Axes of registers. A layout without any is one of memory."""


@dataclass(frozen=True)
class LayoutQuestion:
    """A layout, the type of its elements where it is known, what is asked, in which form."""

    layout: Layout | LayoutChain
    type: str | None
    at: Point | None
    lane: int | None
    element: int | None
    style: str
    picture: Picture
    about: tuple[str, ...] = ()
    """What else is to be said of it, a line each; the first one is a heading."""

    @cached_property
    def bits(self) -> int | None:
        """Bits of an element in registers. Raises FragirError for a type that is unknown."""
        return None if self.type is None else bits_of(self.type)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of a slot's cells."""
        held = self.bits is not None and "element" in self.layout.names
        return (*self.layout.names, *(("register", "bits") if held else ()))

    def cells(self, slot: Point) -> tuple[object, ...]:
        """A slot's coordinates, and its register where that is known."""
        place = self.place(slot)
        if place is None:
            return slot
        return (*slot, place["register"], "{}:{}".format(*reversed(place["bits"])))

    def place(self, slot: Point) -> Document | None:
        """The register of a slot's element and its lowest and highest bit there."""
        names = self.layout.names
        if self.bits is None or "element" not in names:
            return None
        width = max(32, self.bits)
        at = slot[names.index("element")] * self.bits
        low = at % width
        return {"register": at // width, "bits": [low, low + self.bits - 1]}

    def document(self, slot: Point) -> Document:
        """A slot in JSON."""
        return {**dict(zip(self.layout.names, slot, strict=True)), **(self.place(slot) or {})}


def bits_of(type_: str) -> int:
    """Bits of an element type. Raises FragirError for one that is unknown."""
    from fragir.isa.model import BITS

    found = BITS.get(type_)
    if found is None and type_[:1] == "i" and type_[1:] in ("1", "4", "8", "16", "32", "64"):
        found = int(type_[1:])
    if found is None:
        import difflib

        near = difflib.get_close_matches(type_, BITS, n=3) or ["f16", "f32", "s8"]
        raise FragirError(f"there is no type {type_}", hint=f"such as {', '.join(near)}")
    return found


def tidy(layout: Layout) -> Layout:
    """The layout in its shortest form, without axes of size one."""
    from dataclasses import replace

    short = layout.simplified()
    return replace(short, axes=tuple(axis for axis in short.axes if axis.modes))


def answer(question: LayoutQuestion) -> None:
    """What is asked, on stdout."""
    _ = question.bits  # a wrong type is wrong with every question
    if question.at is not None:
        _show_at(question, question.at)
    elif question.lane is not None:
        _show_lane(question, question.lane)
    else:
        _show_whole(question)


def _head(question: LayoutQuestion) -> dict[str, object]:
    layout = question.layout
    return {
        "layout": str(layout),
        "type": question.type,
        "axes": layout.sizes,
        "dims": list(layout.dims),
        "shape": list(layout.shape),
    }


def _show_at(question: LayoutQuestion, at: Point) -> None:
    from fragir.draw.layouts import holders_of

    layout = question.layout
    if layout.rank != len(at) == len(layout.names) and not HARDWARE & set(layout.names):
        _show_place(question, at)
        return
    if len(at) != layout.rank or any(x >= n for x, n in zip(at, layout.shape, strict=True)):
        raise FragirError(
            f"{','.join(map(str, at))} is no {','.join(layout.dims)} of the layout",
            hint=f"its shape is {'x'.join(map(str, layout.shape))}",
        )
    slots = holders_of(layout).get(at, [])
    if question.style == "json":
        holders = [question.document(slot) for slot in slots]
        print_json({**_head(question), "at": list(at), "holders": holders})
    elif question.style in FRAMED:
        _draw(question, [at])
    else:
        print_rows(question.style, question.columns, map(question.cells, slots))


def _show_place(question: LayoutQuestion, at: Point) -> None:
    """Where an element stands, in a layout of memory: at coordinates of its axes."""
    layout = question.layout
    names = layout.names
    sizes = [layout.sizes[name] for name in names]
    if len(at) != len(names) or any(x >= n for x, n in zip(at, sizes, strict=True)):
        raise FragirError(
            f"{','.join(map(str, at))} is no {','.join(names)} of the layout",
            hint=f"its axes have {'x'.join(map(str, sizes))} coordinates",
        )
    point = layout(**dict(zip(names, at, strict=True)))
    found = [] if point is None else [dict(zip(layout.dims, point, strict=True))]
    if question.style == "json":
        print_json({**_head(question), "at": list(at), "holders": found})
    elif question.style in FRAMED:
        _draw(question, [at])
    else:
        print_rows(question.style, layout.dims, (tuple(place.values()) for place in found))


def _show_lane(question: LayoutQuestion, lane: int) -> None:
    layout = question.layout
    if "lane" not in layout.names:
        raise FragirError(f"the layout has no axis lane; it has {', '.join(layout.names)}")
    for name, x in (("lane", lane), ("element", question.element)):
        size = layout.sizes.get(name, 1)
        if x is not None and not 0 <= x < size:
            raise FragirError(f"there is no {name} {x}", hint=f"{name}s are 0 to {size - 1}")
    slots = list(_of_lane(question, lane))
    if question.style == "json":
        elements = [
            {**question.document(slot), "point": None if point is None else list(point)}
            for slot, point in slots
        ]
        print_json({**_head(question), "lane": lane, "elements": elements})
        return
    if question.style in FRAMED:
        _draw(question, [point for _, point in slots if point is not None])
        return
    empty = ("",) * layout.rank
    rows = ((*question.cells(slot), *(point or empty)) for slot, point in slots)
    print_rows(question.style, (*question.columns, *layout.dims), rows)


def _of_lane(question: LayoutQuestion, lane: int) -> Iterator[tuple[Point, Point | None]]:
    names = question.layout.names
    at, element = names.index("lane"), question.element
    for slot, point in question.layout.slots():
        if slot[at] == lane and (element is None or slot[names.index("element")] == element):
            yield slot, point


def _show_whole(question: LayoutQuestion) -> None:
    from fragir.layout import Layout, write_layout

    layout, style = question.layout, question.style
    if style == "json":
        _print_compact(_head(question), layout)
    elif style == "csv":
        empty = ("",) * layout.rank
        rows = ((*question.cells(s), *(p or empty)) for s, p in layout.slots())
        print_rows("csv", (*question.columns, *layout.dims), rows)
    elif style in ("text", "markdown", "svg", "html"):
        _draw(question)
    elif not isinstance(layout, Layout):
        raise FragirError(
            f"{layout} is written in no other notation: {layout.reason}",
            hint=f"--format {', '.join(TABLE_FORMATS)}, json, svg or html",
        )
    elif style == "layout":
        sys.stdout.write(f"{tidy(layout)}\n")
    else:
        sys.stdout.write(f"{write_layout(layout, style)}\n")


def _print_compact(head: dict[str, object], layout: Layout | LayoutChain) -> None:
    """JSON with a line for every value of the first axis, not for every number."""
    text = json.dumps(head, indent=2)
    lines = ",\n".join(f"    {json.dumps(row)}" for row in _nested_points(layout))
    sys.stdout.write(f'{text[:-2]},\n  "map": [\n{lines}\n  ]\n}}\n')


def _nested_points(layout: Layout | LayoutChain) -> Iterable[Any]:
    """Lists in the order of the axes; innermost the point, or None."""
    points = (None if point is None else list(point) for _, point in layout.slots())

    def nest(sizes: tuple[int, ...]) -> Any:
        return [nest(sizes[1:]) for _ in range(sizes[0])] if sizes else next(points)

    sizes = tuple(layout.sizes.values())
    return nest(sizes) if sizes else [next(points)]


def _draw(question: LayoutQuestion, points: Sequence[Point] = ()) -> None:
    """The whole, with these points framed, if any."""
    layout = question.layout
    facts = tuple(_facts(question))
    drawn = text_drawing(layout, (("layout", str(layout)), *facts), question.picture, question.bits)
    if points:
        from fragir.draw.grid import frame_points

        if len(points[0]) > 2:
            raise FragirError(
                f"a picture frames elements of a matrix, not of {layout.rank} dimensions",
                hint=f"--format {', '.join(TABLE_FORMATS)} or json answers in words",
            )
        drawn = frame_points(drawn, points)
    facts_shown = [f"  {name}: {value}" for name, value in facts]
    lines = [str(layout), *facts_shown]
    if question.about:
        heading, *words = question.about
        shown = [f"  layout: {layout}", *facts_shown, *(f"  {line}" for line in words)]
        lines = [heading, *shown]
    show(drawn, question.style, question.picture.full, "\n".join(lines) + "\n")


def _facts(question: LayoutQuestion) -> Iterator[tuple[str, str]]:
    """What is known in words."""
    from fragir.draw.layouts import holders_of
    from fragir.layout import Layout

    layout = question.layout
    yield "shape", f"{' x '.join(map(str, layout.shape))} ({', '.join(layout.dims)})"
    yield "axes", ", ".join(f"{name} {size}" for name, size in layout.sizes.items())
    if question.bits is not None and "element" in layout.names:
        width = layout.size("element") if isinstance(layout, Layout) else layout.sizes["element"]
        registers = -(-width * question.bits // 32)
        yield "registers a lane", f"{registers} of 32 bits for {width} x {question.type}"
    if isinstance(layout, Layout):
        if not layout.is_bijection():
            counts = {len(slots) for slots in holders_of(layout).values()}
            held = "once" if counts == {1} else f"{min(counts)} to {max(counts)} times"
            if len(counts) == 1 and counts != {1}:
                held = f"{counts.pop()} times"
            yield "held", f"every element that is held is held {held}"
        if layout.simplified() != layout:
            yield "simplified", str(layout.simplified())
    else:
        yield "no layout of digits", layout.reason
