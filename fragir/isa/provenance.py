"""Where one element of D comes from: the elements of the other operands, and who holds them."""

from __future__ import annotations

from dataclasses import dataclass

from fragir.errors import FragirError
from fragir.isa.model import Instruction
from fragir.isa.query import Holder, Point, View

# What each operand contributes, by its own coordinates: the row of D, the column, K, the product.
_ALONG: dict[str, str] = {"a": "row", "e": "row", "sfa": "row", "b": "col", "sfb": "col"}


@dataclass(frozen=True, slots=True)
class Contribution:
    """An element of an operand and every place that holds it; none in shared memory."""

    operand: str
    point: Point
    places: tuple[Holder, ...]


@dataclass(frozen=True, slots=True)
class Provenance:
    """D's element at `point`, who holds it, and what it is computed from."""

    point: Point
    places: tuple[Holder, ...]
    sources: tuple[Contribution, ...]

    def lanes(self) -> tuple[int, ...]:
        """Every lane that contributes an element, in order."""
        return tuple(sorted({place.lane for s in self.sources for place in s.places}))


def provenance(
    instruction: Instruction,
    point: Point,
    *,
    a: str = "registers",
    selector: int = 0,
    byte: int = 0,
    thread: int = 0,
) -> Provenance:
    """Which elements make D's element at `point`: a row of A, a column of B, one of C.

    A sparse A is given as packed; which elements of B's column count, its metadata say. With
    `a` = "descriptor" A lies in shared memory, where no lane holds it. Of a matrix copy the point
    is one of the stored matrix, and the source the lane whose address names its row.
    """
    if instruction.family in ("ldmatrix", "stmatrix"):
        return _copy_provenance(instruction, point)
    if "d" not in instruction.operands:
        raise FragirError(f"{instruction.mnemonic} computes no D")
    d = View.of(instruction, "d")
    places = d.holders(point)
    if instruction.family == "movmatrix":
        moved = View.of(instruction, "a").holders(point)
        return Provenance(point, places, (Contribution("a", point, moved),))
    sources: list[Contribution] = []
    for name, operand in instruction.operands.items():
        if name in ("d", "a-shared"):
            continue
        if name == "c":
            sources.append(Contribution("c", point, View.of(instruction, "c").holders(point)))
            continue
        if operand.layout is None or (name == "a" and a == "descriptor"):
            view = None
        else:
            view = View.of(instruction, name, selector=selector, byte=byte, thread=thread)
        by_row = _ALONG[name] == "row"
        for k in range(operand.shape[1 if by_row else 0]):
            at = (point[0], k, *point[2:]) if by_row else (k, *point[1:])
            sources.append(Contribution(name, at, view.holders(at) if view is not None else ()))
    return Provenance(point, places, tuple(sources))


def _copy_provenance(instruction: Instruction, point: Point) -> Provenance:
    places = View.of(instruction, "registers").holders(point)
    row = (point[0], 0, *point[2:])
    addresses = View.of(instruction, "addresses").holders(row)
    return Provenance(point, places, (Contribution("addresses", row, addresses),))
