"""Pictures of operands: each distinct map of lanes is drawn once, for all that have it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace

from fragir.draw.grid import drawing, fold_drawing
from fragir.draw.svg import svg
from fragir.isa.model import Instruction, Operand
from fragir.isa.query import View

FOLDER = "reference/instructions/pictures"
_WHOLE = 1 << 9
"""Cells of a picture that is shown whole: 16 x 32 fit on a screen."""


@dataclass(frozen=True)
class Picture:
    """A map of lanes, and by which name it is drawn."""

    view: View

    @property
    def name(self) -> str:
        """The same for equal maps, whatever instruction has them."""
        return hashlib.sha256(repr(_meaning(self.view)).encode()).hexdigest()[:12]

    def draw(self) -> str:
        """SVG; repeats of a large one are left out, and said by a rule."""
        drawn = replace(drawing(self.view), title=str(self.view.layout))
        return svg(fold_drawing(drawn, _WHOLE), full=True)


def _meaning(view: View) -> tuple[object, ...]:
    """What a picture shows: who holds what, in which bits of which register."""
    places = [view.place(0, element) for element in range(view.elements)]
    return str(view.layout), view.dims, view.shape, places


@dataclass
class Pictures:
    """Those of many instructions."""

    found: dict[str, Picture] = field(default_factory=dict[str, Picture])
    _known: dict[tuple[object, ...], str] = field(default_factory=dict[tuple[object, ...], str])

    def of(self, instruction: Instruction, operand: Operand) -> str | None:
        """The name of an operand's picture; None of one in shared or tensor memory."""
        if operand.layout is None:
            return None
        key = (operand.layout, operand.shape, operand.registers, operand.element, operand.name)
        if key not in self._known:
            picture = Picture(View.of(instruction, operand.name))
            self._known[key] = picture.name
            self.found[picture.name] = picture
        return self._known[key]

    def files(self) -> dict[str, str]:
        """Path on the site -> SVG."""
        return {f"{FOLDER}/{name}.svg": picture.draw() for name, picture in self.found.items()}
