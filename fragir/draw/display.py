"""What a notebook shows of a value: a picture where there is one that can be read."""

from __future__ import annotations

from fragir.draw.layouts import LARGEST, layout_drawing
from fragir.draw.svg import svg, view_svg
from fragir.errors import FragirError
from fragir.isa.query import View
from fragir.layout.chain import LayoutChain
from fragir.layout.conversion import Conversion
from fragir.layout.layout import Layout
from fragir.layout.linear import LinearLayout, to_layout
from fragir.layout.planning.planner import ConversionPlan


def picture(value: object) -> str | None:
    """SVG of a layout, an operand's view or a conversion; None for what cannot be drawn."""
    try:
        match value:
            case LinearLayout():
                return svg(layout_drawing(to_layout(value)))
            case Layout() | LayoutChain():
                return svg(layout_drawing(value))
            case View():
                return view_svg(value)
            case Conversion():
                from fragir.draw.conversions import conversion_drawing

                return svg(conversion_drawing(value.src, value.dst))
            case ConversionPlan():
                from fragir.draw.conversions import conversion_drawing

                return svg(conversion_drawing(value.source, value.target))
            case _:
                return None
    except FragirError:  # too large, or of other dimensions: the notebook shows the text
        return None


__all__ = ["LARGEST", "picture"]
