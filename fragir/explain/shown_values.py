"""What was held in a run, as rows of texts for the page."""

from __future__ import annotations

from fragir.explain.held import HeldValue
from fragir.explain.report import ValueShown


def shown_value(at: str, held: HeldValue) -> ValueShown:
    """A matrix of numbers with who held each: rows and columns are the last two dimensions, in
    front of which further ones go on downwards."""
    shape = held.shape if len(held.shape) > 1 else (1, *held.shape) if held.shape else (1, 1)
    width = shape[-1]
    numbers = held.matrix.reshape(-1, width).tolist()
    known = held.known.reshape(-1, width).tolist()
    slots = held.slots.reshape(-1, width, 3).tolist()
    rows = tuple(
        tuple(_text(number) if there else "" for number, there in zip(*line, strict=True))
        for line in zip(numbers, known, strict=True)
    )
    holders = tuple(
        tuple("" if warp < 0 else f"W{warp} T{lane}:{element}" for warp, lane, element in line)
        for line in slots
    )
    which = "the last time" if held.occurrence is None else f"time {held.occurrence}"
    block = ",".join(map(str, held.block))
    size = " x ".join(map(str, held.shape)) or "a value"
    return ValueShown(
        at,
        f"{held.name}: {size} of {held.element}",
        f"{which} of {held.times}, in block ({block}), at line {held.ptx_line} of the PTX",
        held.ptx_line,
        rows,
        holders,
        (*map(str, held.disagreements[:8]), *held.notes),
    )


def _text(number: float | int | bool) -> str:
    """As short as tells it from its neighbours: 6 digits."""
    return f"{number:.6g}" if isinstance(number, float) else str(int(number))
