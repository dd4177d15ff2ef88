"""What a notebook shows of a value: a picture where there is one that can be read."""

from __future__ import annotations

from dataclasses import replace

from fragir.draw.grid import Drawing, drawing
from fragir.draw.layouts import COLOURS, LARGEST, AnyLayout, hardware_drawing, layout_drawing
from fragir.draw.svg import svg
from fragir.errors import FragirError, check_kind, check_one_of
from fragir.isa.query import View
from fragir.layout.chain import LayoutChain
from fragir.layout.conversion import Conversion
from fragir.layout.layout import Layout
from fragir.layout.linear import LinearLayout, to_layout
from fragir.layout.planning.planner import ConversionPlan

# -- views -----------------------------------------------------------------------------------------
# Which drawing of a layout a view is: for the command line and for notebooks.


def view_of(
    layout: AnyLayout,
    facts: tuple[tuple[str, str], ...],
    view: str,
    colour: str,
    bits: int | None,
    access: AnyLayout | None = None,
) -> Drawing:
    """The drawing of a layout: `matrix`, `hardware` or `memory`. Raises FragirError.

    `access`, of `memory` alone, is a layout of registers that reads it; `colour` may be `bank` of a
    layout of memory.
    """
    if view == "memory":
        from fragir.draw.memory import memory_drawing

        return memory_drawing(layout, facts, bits, access)
    if colour == "bank":
        from fragir.draw.memory import banks_drawing

        return banks_drawing(layout, facts, bits)
    draw = layout_drawing if view == "matrix" else hardware_drawing
    return draw(layout, facts, colour, bits)


VIEWS = ("matrix", "hardware", "memory")
_NARROW = 16  # columns up to which before and after fit beside each other on a notebook's page


def picture(value: object) -> str | None:
    """SVG of a layout, an operand's view or a conversion; None for what cannot be drawn."""
    try:
        return svg(drawing_of(value))
    except FragirError:  # too large, or of other dimensions: the notebook shows the text
        return None


def drawing_of(
    value: object,
    view: str = "matrix",
    colour: str = "lane",
    bits: int | None = None,
    access: object = None,
) -> Drawing:
    """The drawing of a layout, an operand's view or a conversion. Raises FragirError."""
    check_one_of(view, VIEWS, "view")
    check_one_of(colour, (*COLOURS, "bank"), "colour")
    if colour == "bank" and (view == "hardware" or isinstance(value, View)):
        raise FragirError("the colour bank is of a layout of memory")
    if access is not None and view != "memory":
        raise FragirError("`access` is of a picture of memory", hint='view="memory"')
    if access is not None:
        check_kind(access, Layout | LayoutChain, "`access` is a layout of registers")
    reads = access if isinstance(access, Layout | LayoutChain) else None
    match value:
        case LinearLayout():
            return view_of(to_layout(value), (), view, colour, bits, reads)
        case Layout() | LayoutChain():
            return view_of(value, (), view, colour, bits, reads)
        case View() if view == "matrix":
            return drawing(value, colour)
        case View():
            return view_of(value.layout, (), view, colour, bits, reads)
        case Conversion(src=source, dst=target) | ConversionPlan(source=source, target=target):
            from fragir.draw.layouts import conversion_drawing

            drawn = conversion_drawing(source, target)
            return replace(drawn, beside=source.shape[1] <= _NARROW)
        case _:
            raise FragirError(f"there is no picture of a {type(value).__name__}")


__all__ = ["LARGEST", "drawing_of", "picture", "svg"]
