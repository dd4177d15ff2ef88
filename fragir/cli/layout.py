"""`fragir layout`: which lane holds which element of an operand, and where D's elements come from.

A question (`--at`, `--lane`, `--output`) is answered as a table, as JSON, or framed in a picture;
without one the whole operand is shown. With one word instead of an instruction and its operand it
is about that layout (`fragir.cli.layout_answers`).
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from fragir.cli.command import FINDING, Document, command, json_option, print_json, report
from fragir.cli.layout_answers import LayoutQuestion, answer
from fragir.cli.layout_texts import (
    DRAWN,
    FRAMED,
    Picture,
    operand_drawing,
    read_any,
    read_tile,
    read_warps,
    show,
)
from fragir.cli.query import (
    PLACE_COLUMNS,
    TABLE_FORMATS,
    find,
    place_json,
    place_row,
    print_rows,
    read_point,
)
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.isa import Instruction
    from fragir.isa.operand_tiles import CanonicalTile
    from fragir.isa.query import Holder, View


# -- layout examples -------------------------------------------------------------------------------
# What the help of `fragir layout` ends in.

EXAMPLES = (
    ("The whole operand; without its letter all of them:", "fragir layout m16n8k16.f16 a"),
    (
        "Who holds row 9, column 3 of D:",
        "fragir layout mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 d --at 9,3",
    ),
    (
        "Swizzled shared memory, by banks, as a picture:",
        "fragir layout 'row [64:^144] col [64:2] dims (byte)' --view memory --format svg"
        " > memory.svg",
    ),
    (
        "Which thread gets which element of D of a tcgen05.mma:",
        "fragir layout tcgen05.mma.m128n256k16.f16 d --by tcgen05.ld.sync.aligned.32x32b.x64.b32",
    ),
)


Point = tuple[int, ...]
FORMATS = ("text", "formula", "json", "csv", "markdown", "svg", "html")
VIEWS = ("matrix", "hardware", "memory")
COLOURS = ("lane", "warp", "register", "element", "bank")
OF_ALL = ("text", "markdown", "json")
"""Formats that show all operands of an instruction, one after the other."""
NOTATIONS = ("layout", "cute", "f2", "ttg", "linear")
"""Further formats of a layout's text."""


@dataclass(frozen=True)
class Query:
    """What is asked: of which operand, under which immediates, in which form."""

    instruction: Instruction
    operand: str
    immediates: dict[str, int]
    logical: bool
    style: str
    picture: Picture

    def view(self) -> View:
        from fragir.isa.query import View

        return View.of(self.instruction, self.operand, logical=self.logical, **self.immediates)

    @property
    def in_shared_memory(self) -> bool:
        """Whether a descriptor says where the operand lies, and no lane holds it."""
        return self.instruction.operand(self.operand).registers.cls == "descriptor"

    def head(self) -> Document:
        """What every document begins with."""
        operand = self.instruction.operand(self.operand)
        return {
            "mnemonic": self.instruction.mnemonic,
            "operand": self.operand,
            "type": operand.element,
        }


@command(examples=EXAMPLES)
@click.argument("subject", metavar="MNEMONIC|TEXT")
@click.argument("operand", required=False)
@click.option(
    "--tile", callback=read_tile, metavar="MxN", help="The tile that TEXT is spread over."
)
@click.option(
    "--warps", callback=read_warps, metavar="RxC", help="Warps that MNEMONIC:OPERAND has."
)
@click.option("--type", "element_type", metavar="T", help="The type of elements: shows registers.")
@click.option("--at", callback=read_point, metavar="ROW,COL", help="Who holds this element.")
@click.option("--lane", type=int, metavar="L", help="What this lane holds.")
@click.option("--element", type=int, metavar="I", help="With --lane: this element only.")
@click.option(
    "--output",
    "made",
    callback=read_point,
    metavar="ROW,COL",
    help="Which elements and lanes make this element of D.",
)
@click.option("--selector", type=int, default=0, metavar="F", help="Sparsity selector, for e.")
@click.option("--byte", type=int, default=0, metavar="B", help="Byte selector, for sfa and sfb.")
@click.option("--thread", type=int, default=0, metavar="T", help="Thread selector, the same.")
@click.option("--logical", is_flag=True, help="Sparse a: chunks along K, not packed columns.")
@click.option("--offset", type=int, default=0, metavar="N", help="Split offset of 16x32bx2.")
@click.option(
    "--by",
    metavar="MNEMONIC",
    help="Of tcgen05.mma and .cp: in registers, as this tcgen05.ld or .st of four warps has it.",
)
@click.option(
    "--address",
    callback=read_point,
    metavar="LANE,COLUMN",
    help="With --by: where in the operand it begins (0,0).",
)
@click.option(
    "--format",
    "style",
    type=click.Choice((*FORMATS, *NOTATIONS)),
    default="text",
    show_default=True,
)
@click.option(
    "--view",
    "seen",
    type=click.Choice(VIEWS),
    default="matrix",
    show_default=True,
    help="Who holds each element; what each lane holds; lines of memory by banks.",
)
@click.option(
    "--colour",
    type=click.Choice(COLOURS),
    default="lane",
    show_default=True,
    help="What has one colour in the picture; bank: of a layout of memory.",
)
@click.option(
    "--access", metavar="TEXT", help="With --view memory: lanes that read it, and who collides."
)
@click.option("--full", is_flag=True, help="Leave no repeats of a large picture out.")
@json_option
def main(
    subject: str,
    operand: str | None,
    tile: Point | None,
    warps: tuple[int, int] | None,
    element_type: str | None,
    at: Point | None,
    lane: int | None,
    element: int | None,
    made: Point | None,
    selector: int,
    byte: int,
    thread: int,
    logical: bool,
    offset: int,
    by: str | None,
    address: Point | None,
    style: str,
    seen: str,
    colour: str,
    access: str | None,
    full: bool,
    as_json: bool,
) -> int | None:
    """Show which lane holds which element of an instruction's operand, or any layout.

    MNEMONIC may be short, as in #frag.mma: m16n8k16.f16, m64n128k16.bf16 (wgmma). OPERAND is one of
    a b c d e sfa sfb, registers addresses (matrix copies), a-shared (wgmma); without it all of the
    instruction's are shown.
    tcgen05.mma has its shape and types behind its name: tcgen05.mma.m128n256k16.f16; its a is that
    in tensor memory. Of wmma, whose fragments PTX leaves opaque, it is where ptxas places them.
    TEXT is a layout in any notation: fragir's own, cute:SHAPE:STRIDE, ttg:#ttg....<...>, f2:BASES,
    formula:..., #frag.mma<...>, MNEMONIC:OPERAND.
    """
    style = "json" if as_json else style
    operand = None if operand is None else operand.lower()
    asked = sum(question is not None for question in (at, lane, made))
    if asked > 1:
        raise click.UsageError("--at, --lane and --output are different questions; ask one")
    if element is not None and lane is None:
        raise click.UsageError("--element goes with --lane")
    if asked and style not in (*TABLE_FORMATS, "json", *FRAMED):
        raise click.UsageError(f"--format {style} shows the whole operand; leave the question out")
    if asked and style in FRAMED and seen != "matrix":
        raise click.UsageError(f"a question is framed in --view matrix, not in --view {seen}")
    if access is not None and seen != "memory":
        raise click.UsageError("--access goes with --view memory")
    if colour == "bank" and seen == "hardware":
        raise click.UsageError("--colour bank is of memory: --view matrix or memory")
    picture = Picture(seen, colour, access, full)
    if picture != Picture() and style not in (FRAMED if asked else DRAWN):
        raise click.UsageError("--view, --colour, --access and --full are of whole pictures")
    immediates = {"selector": selector, "byte": byte, "thread": thread, "offset": offset}
    tensor = subject.startswith(("tcgen05.mma", "tcgen05.cp")) and operand is not None
    apart = tensor or (subject.startswith("wmma.") and operand is not None)
    if not tensor and (by is not None or address is not None):
        raise click.UsageError("--by and --address are of operands of tcgen05.mma and tcgen05.cp")
    if address is not None and (by is None or len(address) != 2):
        raise click.UsageError("--address LANE,COLUMN goes with --by")
    try:
        if apart and operand is not None:
            if made is not None or logical or tile or warps or element_type:
                raise click.UsageError(
                    "--output, --logical, --tile, --warps and --type are not of tcgen05 and wmma"
                )
            from fragir.cli.tensor_layouts import TensorQuestion, answer_tensor

            place = address or (0, 0)
            question = TensorQuestion(
                operand, at, lane, element, immediates, by, place, style, picture
            )
            answer_tensor(subject, question)
            return None
        if operand is None:
            if _is_mnemonic(subject):
                if asked or is_tensor_or_wmma(subject) or style not in OF_ALL:
                    raise click.UsageError("Missing argument 'OPERAND'.")
                _show_all(_instruction(subject, "a"), style, picture)
                return None
            if made is not None or logical or any(immediates.values()):
                raise click.UsageError("--output, --logical and immediates are of instructions")
            layout = read_any(subject, tile, warps)
            return answer(LayoutQuestion(layout, element_type, at, lane, element, style, picture))
        if tile is not None or warps is not None or element_type is not None:
            raise click.UsageError(
                "--tile, --warps and --type are of a layout's text: write MNEMONIC:OPERAND"
            )
        for point in (at, made):
            if point is not None and len(point) not in (2, 3):
                text = ",".join(map(str, point))
                raise click.UsageError(f"`{text}` is not of the form ROW,COL")
        if style in NOTATIONS:
            raise click.UsageError(f"--format {style} is of a layout's text: MNEMONIC:OPERAND")
        query = Query(_instruction(subject, operand), operand, immediates, logical, style, picture)
        _check_immediates(query, whole=made is not None)
        if at is not None:
            _show_at(query, at)
        elif lane is not None:
            _show_lane(query, lane, element)
        elif made is not None:
            _show_output(query, made)
        elif query.in_shared_memory:
            _show_descriptor(query)
        else:
            _show_whole(query)
    except FragirError as error:
        if style != "json":
            raise
        report(error, as_json=True)
        return FINDING
    return None


def _is_mnemonic(text: str) -> bool:
    """Whether an instruction's name stands alone, without an operand."""
    return text.replace(".", "").replace("::", "").replace("_", "").isalnum() and "." in text


def is_tensor_or_wmma(mnemonic: str) -> bool:
    """Whether an instruction's operands have no lane map of their own, but one by another."""
    return mnemonic.startswith(("tcgen05.mma", "tcgen05.cp", "wmma."))


def _instruction(text: str, operand: str) -> Instruction:
    """The instruction of a mnemonic, or of a short name as in `#frag.mma<m16n8k16.f16, a>`."""
    from fragir.isa.spelling import fragment_name

    name = fragment_name(text)
    if name is None:
        return find(text)
    from fragir.dialects.frag.instructions import fragment_instruction

    held = {"b": "b", "c": "c", "d": "c"}.get(operand, "a")  # whose name it is, where they differ
    return fragment_instruction(text, "a" if name.is_by_warpgroups else held)


def _show_all(instruction: Instruction, style: str, picture: Picture) -> None:
    """Every operand as a whole, those in shared memory as their canonical layouts."""
    queries = [Query(instruction, one, {}, False, style, picture) for one in instruction.operands]
    if style == "json":
        documents = ",\n".join(_compact(_whole_document(query)) for query in queries)
        mnemonic = f'"mnemonic": "{instruction.mnemonic}"'
        sys.stdout.write(f'{{\n{mnemonic},\n"operands": [\n{documents}\n]\n}}\n')
        return
    for number, query in enumerate(queries):
        if number:
            print()
        if query.in_shared_memory and style == "text":
            print(f"{instruction.mnemonic}, operand {query.operand}")
        if query.in_shared_memory:
            _show_descriptor(query)
        else:
            _show_whole(query)


# What has the immediate that an option sets, in words.
_OWNERS = {
    "selector": "operand e",
    "byte": "operand sfa or sfb",
    "thread": "operand sfa or sfb",
    "offset": "registers of tcgen05.ld and .st with 16x32bx2",
}


def _check_immediates(query: Query, *, whole: bool) -> None:
    """FragirError for an immediate that the operand, or the `whole` instruction, does not have."""
    from fragir.isa.selection import immediates

    instruction = query.instruction
    instruction.operand(query.operand)
    asked = tuple(instruction.operands) if whole else (query.operand,)
    known = {name for operand in asked for name in immediates(instruction, operand)}
    for name, value in query.immediates.items():
        if value and name not in known:
            what = instruction.mnemonic if whole else f"operand {query.operand}"
            raise FragirError(
                f"--{name} says nothing about {what}", hint=f"it goes with {_OWNERS[name]}"
            )


def _show_at(query: Query, at: Point) -> None:
    places = query.view().holders(at)
    if query.style == "json":
        holders = [place_json(place) for place in places]
        print_json({**query.head(), "at": list(at), "holders": holders})
    elif query.style in FRAMED:
        _show_framed(query, [at])
    else:
        print_rows(query.style, PLACE_COLUMNS, map(place_row, places))


def _show_lane(query: Query, lane: int, element: int | None) -> None:
    view = query.view()
    held = view.held(lane)
    if element is not None:
        if not 0 <= element < len(held):
            raise FragirError(
                f"there is no element {element}", hint=f"a lane has elements 0 to {len(held) - 1}"
            )
        held = [held[element]]
    if query.style == "json":
        elements: list[Document] = []
        for place, point in held:
            document = place_json(place)
            del document["lane"]
            elements.append({**document, "point": None if point is None else list(point)})
        print_json({**query.head(), "lane": lane, "elements": elements})
        return
    if query.style in FRAMED:
        _show_framed(query, [point for _, point in held if point is not None])
        return
    empty = ("",) * len(view.dims)
    rows = ((*place_row(place)[1:], *(point or empty)) for place, point in held)
    print_rows(query.style, (*PLACE_COLUMNS[1:], *view.dims), rows)


def _show_output(query: Query, point: Point) -> None:
    from fragir.isa.provenance import provenance

    form = "descriptor" if query.operand == "a-shared" else "registers"
    query.instruction.operand(query.operand)
    immediates = {name: query.immediates[name] for name in ("selector", "byte", "thread")}
    found = provenance(query.instruction, point, a=form, **immediates)
    if query.style == "json":
        sources = [
            {
                "operand": source.operand,
                "point": list(source.point),
                "holders": [place_json(place) for place in source.places],
            }
            for source in found.sources
        ]
        document = {
            "mnemonic": query.instruction.mnemonic,
            "output": list(point),
            "holders": [place_json(place) for place in found.places],
            "sources": sources,
            "lanes": list(found.lanes()),
        }
        print_json(document)
        return
    if query.style in FRAMED:
        wanted = [s.point for s in found.sources if s.operand == query.operand]
        _show_framed(query, [point, *wanted] if query.operand == "d" else wanted)
        return
    result = "registers" if "registers" in query.instruction.operands else "d"
    rows = [*_source_rows(result, point, found.places)]
    for source in found.sources:
        rows += _source_rows(source.operand, source.point, source.places)
    print_rows(query.style, ("operand", "point", *PLACE_COLUMNS), rows)


def _source_rows(
    operand: str, point: Point, places: tuple[Holder, ...]
) -> list[tuple[object, ...]]:
    at = f"({','.join(map(str, point))})"
    if not places:
        return [(operand, at, "shared", "", "", "")]
    return [(operand, at, *place_row(place)) for place in places]


def _show_whole(query: Query) -> None:
    view = query.view()
    if query.style == "json":
        sys.stdout.write(_compact(_whole_document(query)) + "\n")
    elif query.style == "formula":
        _show_formula(view)
    elif query.style == "csv":
        from fragir.draw.text import view_csv

        sys.stdout.write(view_csv(view))
    else:
        heading = _heading(view) if query.style == "text" else ""
        show(operand_drawing(view, query.picture), query.style, query.picture.full, heading)


def _show_framed(query: Query, points: list[Point]) -> None:
    """The whole operand with the answer's elements framed."""
    from fragir.draw.grid import frame_points

    drawn = frame_points(operand_drawing(query.view(), query.picture), points)
    show(drawn, query.style, query.picture.full)


def _whole_document(query: Query) -> Document:
    """An operand's map, or its canonical layouts in shared memory."""
    if query.in_shared_memory:
        return _descriptor_document(query)
    view = query.view()
    document = {
        "shape": list(view.shape),
        "lanes": view.lanes,
        "elements": view.elements,
        "map": view.table(),
    }
    return {**query.head(), **document}


def _compact(document: Document) -> str:
    """JSON with a line for every lane, not for every number."""
    import json

    if "map" not in document:
        return json.dumps(document, indent=2)
    lanes = document.pop("map")
    head = json.dumps(document, indent=2)
    lines = ",\n".join(f"    {json.dumps(lane)}" for lane in lanes)
    return f'{head[:-2]},\n  "map": [\n{lines}\n  ]\n}}'


def _show_formula(view: View) -> None:
    inverse = view.inverse()
    sys.stdout.write(view.layout.formula() + "\n\n")
    sys.stdout.write(f"{inverse.formula()}\n" if inverse else "no closed formula the other way\n")


def _heading(view: View) -> str:
    from fragir.isa.throughput import notes

    instruction, operand = view.instruction, view.operand
    registers = f"{operand.registers.count} .{operand.registers.type}"
    accepts = [t for t in operand.registers.accepts if t != operand.registers.type]
    lines = [
        f"{instruction.mnemonic}, operand {operand.name}",
        f"  {operand.element or 'no'} elements, {' x '.join(map(str, view.shape))}"
        f" ({', '.join(view.dims)})",
        f"  registers a lane: {registers}" + (f" (or .{', .'.join(accepts)})" if accepts else ""),
        f"  layout: {view.layout}",
        *(f"  {line}" for line in notes(instruction)),
        *([f"  refused: {instruction.refused}"] if instruction.refused else []),
    ]
    return "\n".join(lines) + "\n"


def _canonical_forms(query: Query) -> dict[str, dict[int, CanonicalTile]]:
    from fragir.isa.operand_tiles import operand_tiles

    tcgen05 = query.instruction.family.startswith("tcgen05")
    return operand_tiles(query.instruction.operand(query.operand), tcgen05=tcgen05)


def _descriptor_document(query: Query) -> Document:
    forms = _canonical_forms(query)
    return {
        **query.head(),
        "shape": list(query.instruction.operand(query.operand).shape),
        "descriptor": True,
        "majors": list(forms),
        "swizzles": sorted({swizzle for per_major in forms.values() for swizzle in per_major}),
        "canonical": {
            major: {str(swizzle): form.document() for swizzle, form in per_major.items()}
            for major, per_major in forms.items()
        },
    }


def _show_descriptor(query: Query) -> None:
    if query.style == "json":
        print_json(_descriptor_document(query))
        return
    if query.style not in TABLE_FORMATS:
        raise FragirError(
            f"operand {query.operand} lies in shared memory, no lane holds it",
            hint=f"--format {', '.join(TABLE_FORMATS)} or json shows its canonical layouts",
        )
    rows = [
        (major, swizzle, f"{form.mn}x{form.k}", form.shared.leading, form.shared.stride, form.text)
        for major, per_major in _canonical_forms(query).items()
        for swizzle, form in per_major.items()
    ]
    print_rows(query.style, ("major", "swizzle", "tile", "LBO", "SBO", "layout"), rows)
