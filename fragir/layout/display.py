"""Pictures of layouts in notebooks: Jupyter and marimo ask a value for `_repr_svg_`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from fragir.universe import drawer


@dataclass(frozen=True, repr=False)
class NotebookPicture:
    """A picture that a notebook shows; `svg` is its text, light or dark as the page is."""

    title: str
    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        title = self.title if len(self.title) <= 70 else f"{self.title[:67]}..."
        return f"<picture of {title}, {len(self.svg)} bytes of SVG>"


class Drawn:
    """What draws itself in a notebook.

    The room that draws knows this one, not this one it: `fragir.universe` names the drawer.
    """

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return drawer().picture(self)

    def picture(
        self,
        view: Literal["matrix", "hardware", "memory"] = "matrix",
        *,
        colour: Literal["lane", "warp", "register", "element", "bank"] = "lane",
        bits: int | None = None,
        access: object = None,
        full: bool = False,
    ) -> NotebookPicture:
        """A picture: who holds each element, what each lane holds, or lines of memory by banks.

        `bits` of an element say which register it is in, and where elements stand in memory that is
        counted in elements. `access`: a layout of registers, whose reads of the memory are drawn,
        those that collide framed. `full` leaves no repeats out. Raises FragirError for what cannot
        be drawn. A conversion has one view, before and after, and none of the options.
        """
        drawn = drawer().drawing_of(self, view, colour, bits, access)
        return NotebookPicture(drawn.title, drawer().svg(drawn, full))
