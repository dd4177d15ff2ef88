"""A picture of who waits for whom at barriers: threads, phases, and who has not arrived.

First the circle of waiting, if there is one, from top to bottom; below it each phase of a barrier
with those who wait or have come on its left, and those who have not on its right.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from fragir.draw.svg import style
from fragir.emulator.report import BarrierSeen, Link, Party, Why, counted

_LETTER, _LINE, _PAD, _GAP = 6.7, 16, 8, 46
_FONT = "font:11px ui-monospace,Menlo,Consolas,monospace"
#: Shades of boxes: threads that wait, that have come, that have not, a phase.
_WAITS, _CAME, _ABSENT, _PHASE = 1, 5, 9, 24
_LEGEND = "at the left who waits and who has come, at the right who has not"


@dataclass(frozen=True, slots=True)
class _Box:
    """Lines of text in a frame; `round_` for phases."""

    lines: tuple[str, ...]
    shade: int
    x: float = 0
    y: float = 0
    round_: bool = False

    @property
    def width(self) -> float:
        return _LETTER * max(map(len, self.lines)) + 2 * _PAD

    @property
    def height(self) -> float:
        return _LINE * len(self.lines) + _PAD

    @property
    def middle(self) -> float:
        return self.y + self.height / 2

    def at(self, x: float, y: float) -> _Box:
        return _Box(self.lines, self.shade, x, y, self.round_)

    def svg(self) -> str:
        frame = 'stroke="currentColor"' + (' rx="10"' if self.round_ else "")
        text = "".join(
            f'<text x="{self.x + _PAD:g}" y="{self.y + _LINE * (number + 1) - 1:g}">'
            f"{escape(line)}</text>"
            for number, line in enumerate(self.lines)
        )
        return (
            f'<g data-box="{escape(self.lines[0])}"><rect class="fr-{self.shade}" x="{self.x:g}" '
            f'y="{self.y:g}" width="{self.width:g}" height="{self.height:g}" {frame}/>{text}</g>\n'
        )


def protocol_svg(why: Why) -> str:
    """One SVG document; empty where there is no barrier to draw."""
    if not why.barriers and not why.cycle:
        return ""
    parts: list[str] = []
    width, top = 0.0, 4.0
    if why.cycle:
        boxes, top = _circle(why.cycle, top)
        width = max(box.x + box.width for box in boxes)
        parts += [*_around(boxes), *(box.svg() for box in boxes)]
    left = max((box.width for b in why.barriers for box in _left(b)), default=0.0)
    for barrier in why.barriers:
        drawn, boxes, top = _phase(barrier, left, top)
        parts += drawn
        width = max(width, *(box.x + box.width for box in boxes))
    width, top = max(width, _LETTER * len(_LEGEND)) + _PAD, top + _LINE
    key = f'<text x="4" y="{top - 4:g}">{_LEGEND}</text>\n' if why.barriers else ""
    used = style((_WAITS, _CAME, _ABSENT, _PHASE))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fr" viewBox="0 0 {width:g} {top:g}" '
        f'width="{width:g}" height="{top:g}" style="{_FONT}" role="img">\n'
        f"<title>who waits for whom</title>\n<style>{used}</style>\n"
        f'<rect class="fr-ground" width="{width:g}" height="{top:g}"/>\n'
        f"{''.join(parts)}{key}</svg>\n"
    )


def _who(party: Party, head: str) -> tuple[str, ...]:
    place = "" if party.line is None else f", line {party.line}"
    return (
        f"{head}{party.warps_text}{place}",
        f"block {party.block}, {counted(party.lanes, 'lane')}",
    )


# -- the circle ------------------------------------------------------------------------------------


def _circle(cycle: Sequence[Link], top: float) -> tuple[list[_Box], float]:
    """Threads and the phases that they wait for, in turn."""
    boxes: list[_Box] = []
    for link in cycle:
        who = f"from {link.awaited.party.warps_text}: {link.awaited.ground_text}"
        phase = (link.barrier.phase_text, f"lacks {link.barrier.lacks}", who)
        for box in (
            _Box(_who(link.party, ""), _WAITS),
            _Box(phase, _PHASE, round_=True),
        ):
            boxes.append(box.at(_GAP, top))
            top += box.height + _LINE
    return boxes, top


def _around(boxes: Sequence[_Box]) -> Iterator[str]:
    """Arrows from each to the next, and from the last back to the first."""
    for one, other in pairwise(boxes):
        x = one.x + 3 * _PAD
        yield _arrow(((x, one.y + one.height), (x, other.y)))
    first, last = boxes[0], boxes[-1]
    side = _GAP / 3
    yield _arrow(
        ((last.x, last.middle), (side, last.middle), (side, first.middle), (first.x, first.middle))
    )


def _arrow(points: Sequence[tuple[float, float]]) -> str:
    (x, _), (to_x, to_y) = points[-2:]
    path = " ".join(f"{a:g},{b:g}" for a, b in points)
    head = (
        f"{to_x - 4:g},{to_y - 7:g} {to_x + 4:g},{to_y - 7:g} {to_x:g},{to_y:g}"
        if x == to_x
        else f"{to_x - 7:g},{to_y - 4:g} {to_x - 7:g},{to_y + 4:g} {to_x:g},{to_y:g}"
    )
    return (
        f'<polyline points="{path}" fill="none" stroke="currentColor"/>'
        f'<polygon points="{head}" fill="currentColor"/>\n'
    )


# -- a phase ---------------------------------------------------------------------------------------


def _left(barrier: BarrierSeen) -> list[_Box]:
    waiting = [_Box(_who(party, "waits: "), _WAITS) for party in barrier.waiting]
    return waiting + [_Box(_who(party, "came: "), _CAME) for party in barrier.arrived or ()]


def _phase(barrier: BarrierSeen, wide: float, top: float) -> tuple[list[str], list[_Box], float]:
    """A phase between those who came and those who did not: its SVG, boxes, and where it ends."""
    left = _left(barrier)
    right = [
        _Box((*_who(one.party, "absent: "), one.does, one.ground_text), _ABSENT)
        for one in barrier.awaited or ()
    ]
    state = "has ended" if barrier.ended else f"lacks {barrier.lacks}"
    middle = _Box(
        (barrier.phase_text, f"block {barrier.block}: {barrier.came} of {barrier.wants}, {state}"),
        _PHASE,
        round_=True,
    )
    x = wide + _GAP if wide else 4.0
    heights = [sum(box.height + _PAD for box in side) for side in (left, [middle], right)]
    high = max(heights)
    middle = middle.at(x, top + (high - middle.height) / 2)
    boxes, drawn = [middle], [middle.svg()]
    for side, at, total in ((left, 4.0, heights[0]), (right, x + middle.width + _GAP, heights[2])):
        y = top + (high - total) / 2
        for box in side:
            placed = box.at(at, y)
            y += box.height + _PAD
            boxes.append(placed)
            here = placed.x + placed.width, placed.middle
            there = middle.x, middle.middle
            if side is right:
                here, there = (placed.x, placed.middle), (middle.x + middle.width, middle.middle)
            dashed = ' stroke-dasharray="4 3"' if side is right else ""
            drawn += [
                f'<line x1="{here[0]:g}" y1="{here[1]:g}" x2="{there[0]:g}" y2="{there[1]:g}" '
                f'stroke="currentColor"{dashed}/>\n',
                placed.svg(),
            ]
    return drawn, boxes, top + high + _LINE
