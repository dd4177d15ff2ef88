"""Pictures of layouts in notebooks: Jupyter and marimo ask a value for `_repr_svg_`."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class Drawn:
    """What draws itself in a notebook.

    The drawing is found by its name, for the room that draws knows this one, not this one it.
    """

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        drawer: Any = import_module("fragir.draw.display")
        return drawer.picture(self)
