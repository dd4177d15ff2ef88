"""Reads pictures back: what a machine finds in the SVG of a drawing, its repeats written out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
Point = tuple[int, ...]


@dataclass(frozen=True)
class Picture:
    """A matrix of a picture: its title, and for every (row, col) label, note and class."""

    title: str
    cells: dict[Point, tuple[str, str, str]]


def pictures(text: str) -> list[Picture]:
    """The matrices of an SVG document."""
    root = ElementTree.fromstring(text)
    return [_picture(g) for g in root.iter(f"{SVG}g") if "data-grid" in g.attrib]


def _picture(group: ElementTree.Element) -> Picture:
    cells: dict[Point, tuple[str, str, str]] = {}
    for cell in group.iter(f"{SVG}g"):
        if "data-at" in cell.attrib:
            at = tuple(map(int, cell.attrib["data-at"].split(",")))
            label, note = cell.findtext(f"{SVG}text"), cell.findtext(f"{SVG}title")
            rect = cell.find(f"{SVG}rect")
            assert label is not None
            assert note is not None
            assert rect is not None
            _stands_where_it_says(cell, rect)
            cells[at] = (label, note, rect.attrib["class"])
    for fold in reversed(json.loads(group.attrib.get("data-folds", "[]"))):
        cells = dict(_unfolded(cells, fold))
    return Picture(group.attrib["data-grid"], cells)


def _stands_where_it_says(cell: ElementTree.Element, rect: ElementTree.Element) -> None:
    """The label is written in the middle of its cell."""
    text = cell.find(f"{SVG}text")
    assert text is not None
    x, y, width, height = (int(rect.attrib[n]) for n in ("x", "y", "width", "height"))
    assert x + width // 2 == int(text.attrib["x"])
    assert y < int(text.attrib["y"]) < y + height


def _unfolded(
    cells: dict[Point, tuple[str, str, str]], fold: dict[str, object]
) -> Iterator[tuple[Point, tuple[str, str, str]]]:
    axis = ["rows", "columns"].index(str(fold["axis"]))
    period, times = int(str(fold["period"])), int(str(fold["times"]))
    steps = fold["steps"]
    assert isinstance(steps, dict)
    grown = [int(step) for step in steps.values() if step]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    names = [str(n) for n, step in steps.items() if step]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    for at, (label, _, colour) in cells.items():
        if at[axis] < period:
            for k in range(times):
                place = tuple(x + period * k * (i == axis) for i, x in enumerate(at))
                written = _stepped(label, dict(zip(names, grown, strict=True)), k)
                yield place, (written, "", colour)
    last = period * (times - 1)
    for at, (label, _, _) in cells.items():  # the last period is drawn: the rule must give it
        if at[axis] >= last:
            first = tuple(x - last * (i == axis) for i, x in enumerate(at))
            made = _stepped(cells[first][0], dict(zip(names, grown, strict=True)), times - 1)
            assert made == label, (made, label, fold)


_PARTS = {"warp": r"W(\d+)", "lane": r"T(\d+)", "element": r":(\d+)", "block": r"B(\d+)"}


def _stepped(label: str, steps: dict[str, int], k: int) -> str:
    """A label some periods on. Its numbers are named by letters, or follow each other."""
    if label == "-":
        return label
    if "T" in label or ":" in label:
        for name, step in steps.items():
            pattern = _PARTS[name]
            if name == "element" and ":" not in label:
                pattern = r"^(\d+)"
            label = re.sub(pattern, lambda m, s=step: _moved(m, s * k), label)
        return label
    numbers = label.split(",")
    order = {"row": 0, "col": 1, "byte": 0, "index": 0, "product": 2}
    for name, step in steps.items():
        at = order[name]
        numbers[at] = str(int(numbers[at]) + step * k)
    return ",".join(numbers)


def _moved(match: re.Match[str], step: int) -> str:
    number = str(int(match[1]) + step)
    return match[0].replace(match[1], number)
