"""Answers of `fragir layout` about operands in no table: of tcgen05.mma, tcgen05.cp and wmma."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from fragir.cli.command import print_json
from fragir.cli.layout_answers import LayoutQuestion, answer
from fragir.cli.layout_texts import Picture
from fragir.cli.query import TABLE_FORMATS, print_rows
from fragir.errors import FragirError
from fragir.isa.canonical import Major
from fragir.isa.model import BITS
from fragir.isa.operand_tiles import CanonicalTile
from fragir.isa.tensor_layouts import HARDWARE, read_by
from fragir.isa.tensor_names import TensorMemoryCopy, TensorMma, TensorOperand, tensor_operation
from fragir.isa.wmma import is_wmma, wmma_fragment
from fragir.layout import Layout

Point = tuple[int, ...]


@dataclass(frozen=True)
class TensorQuestion:
    """What is asked of an operand: `by`, the tcgen05.ld or .st that reads it at an `address`."""

    operand: str
    at: Point | None
    lane: int | None
    element: int | None
    immediates: dict[str, int]
    by: str | None
    address: Point
    style: str
    picture: Picture


def answer_tensor(text: str, asked: TensorQuestion) -> None:
    """What is asked about an operand of the operation that a text names, on stdout."""
    if is_wmma(text):
        _answer_wmma(text, asked)
        return
    operation = _selected(tensor_operation(text), asked)
    operand = operation.operand(asked.operand)
    if operand.tiles:
        _show_tiles(operation, operand, asked)
        return
    layout, type_, notes = operand.layout, None, [*operation.facts]
    if operand.shape != layout.shape and asked.by is None:
        size = " x ".join(map(str, operand.shape))
        notes.insert(0, f"places beyond {size} are padding")
    title = f"{operation.name}, operand {operand.name}, {operand.element}"
    if asked.by is not None:
        from fragir.isa import lookup

        load = lookup(asked.by)
        lane, column = asked.address
        inside = [name for name in layout.names if name not in HARDWARE]
        packed = load.operands["registers"].element == "b16"
        bits = 32 // layout.size(inside[0]) if inside else 16 if packed else 32
        offset = asked.immediates["offset"]
        layout = read_by(layout, load, lane=lane, column=column, offset=offset)
        type_ = operand.element if BITS.get(operand.element) == bits else f"i{bits}"
        title = f"{title}, by {load.mnemonic} at lane {lane}, column {column}"
    answer(_question(layout, type_, asked, (title, *notes)))


def _answer_wmma(text: str, asked: TensorQuestion) -> None:
    found = wmma_fragment(text, asked.operand)
    for name, value in asked.immediates.items():
        if value:
            raise FragirError(f"--{name} says nothing about operand {asked.operand} of {text}")
    notes = ["PTX leaves it opaque; so ptxas places it, as in the mma that it makes of it"]
    if found.copies > 1:
        notes.append(
            f"the registers follow each other {found.copies} times, with the same elements"
        )
    title = f"{text}, operand {found.operand}, {found.element}"
    answer(_question(found.layout, found.element, asked, (title, *notes)))


def _question(
    layout: Layout, type_: str | None, asked: TensorQuestion, about: tuple[str, ...]
) -> LayoutQuestion:
    at, lane, element = asked.at, asked.lane, asked.element
    return LayoutQuestion(layout, type_, at, lane, element, asked.style, asked.picture, about)


def _selected(
    found: TensorMma | TensorMemoryCopy, asked: TensorQuestion
) -> TensorMma | TensorMemoryCopy:
    """The operation with the immediates of its descriptor."""
    owners = {"selector": ("e",), "byte": ("sfa", "sfb")}
    for name, value in asked.immediates.items():
        split = name == "offset" and asked.by is not None and ".16x32bx2." in asked.by
        if value and not split and asked.operand not in owners.get(name, ()):
            raise FragirError(
                f"--{name} says nothing about operand {asked.operand} of {found.name}"
            )
    if isinstance(found, TensorMemoryCopy):
        return found
    byte = asked.immediates["byte"]
    if byte:
        from fragir.isa.descriptors import scale_ids

        legal = scale_ids(found.kind, found.scale, k96=found.blocks > 4 or found.blocks == 3)
        legal = tuple(b for b in legal if found.blocks in (3, 6) or b % found.blocks == 0)
        if byte not in legal:
            raise FragirError(
                f"scales of {found.name} do not begin at byte {byte}",
                hint=f"one of {', '.join(map(str, legal))}",
            )
    return replace(found, sfa_id=byte, sfb_id=byte, selector=asked.immediates["selector"])


def _show_tiles(
    operation: TensorMma | TensorMemoryCopy, operand: TensorOperand, asked: TensorQuestion
) -> None:
    """The canonical layouts of an operand in shared memory."""
    if asked.at is not None or asked.lane is not None or asked.by is not None:
        raise FragirError(f"operand {operand.name} lies in shared memory, no lane holds it")
    forms: dict[Major, dict[str, CanonicalTile]] = {}
    for tile in operand.tiles:
        forms.setdefault(tile.shared.major, {})[tile.mode] = tile
    if asked.style == "json":
        print_json(
            {
                "mnemonic": operation.name,
                "operand": operand.name,
                "type": operand.element,
                "shape": list(operand.shape),
                "descriptor": True,
                "majors": list(forms),
                "swizzles": sorted({tile.shared.swizzle for tile in operand.tiles}),
                "canonical": {
                    major: {mode: tile.document() for mode, tile in per_major.items()}
                    for major, per_major in forms.items()
                },
            }
        )
        return
    if asked.style not in TABLE_FORMATS:
        raise FragirError(
            f"operand {operand.name} lies in shared memory, no lane holds it",
            hint=f"--format {', '.join(TABLE_FORMATS)} or json shows its canonical layouts",
        )
    print_rows(asked.style, ("major", "swizzle", "tile", "LBO", "SBO", "layout"), _rows(forms))


def _rows(forms: dict[Major, dict[str, CanonicalTile]]) -> Iterator[tuple[object, ...]]:
    for major, per_major in forms.items():
        for mode, form in per_major.items():
            shared = form.shared
            tile = f"{form.mn}x{form.k}"
            yield major, mode, tile, shared.leading, shared.stride, form.text
