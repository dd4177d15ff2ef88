"""Which drawing of a layout a view is: for the command line and for notebooks."""

from __future__ import annotations

from fragir.draw.grid import Drawing
from fragir.draw.layouts import AnyLayout, hardware_drawing, layout_drawing


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
