"""`fragir descriptor`: descriptors of matrices in shared memory, and of tcgen05 instructions."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fragir.cli.command import FINDING, command, json_option, note, print_json, target_option
from fragir.cli.layout_texts import read_tile
from fragir.cli.query import print_rows
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.isa.canonical import Major
    from fragir.isa.descriptors import MatrixDescriptor


EXAMPLES = (
    ("What a descriptor of wgmma says:", "fragir descriptor 0x4000004000010140 --target sm_90a"),
    (
        "That of a tile of 64x64 bf16, K-major, with 128-byte swizzle, at 0x1400:",
        "fragir descriptor --layout bf16:k:128:64x64 --start 0x1400 --target sm_90a",
    ),
    (
        "Where the descriptor of an MN-major operand of 8-bit types says its elements are:",
        "fragir descriptor 0x4000404001000040 --type e4m3 --major mn --target sm_100a",
    ),
    (
        "An instruction descriptor of tcgen05.mma:",
        "fragir descriptor 0x8400490 --kind f16 --target sm_100a",
    ),
)


@command(examples=EXAMPLES)
@click.argument("word", metavar="[HEX]", required=False)
@target_option
@click.option(
    "--layout",
    "layout",
    metavar="LAYOUT",
    help="Build one: TYPE:MAJOR:SWIZZLE:MNxK as in bf16:k:128:64x64, or a layout's text.",
)
@click.option(
    "--type", "element", metavar="TYPE", help="The element type: of a layout's text, of HEX's map."
)
@click.option(
    "--major",
    type=click.Choice(["k", "mn"]),
    default="k",
    show_default=True,
    help="With --type: which of MN and K lies side by side.",
)
@click.option(
    "--tile", callback=read_tile, metavar="MNxK", help="With --type: the extent of the map."
)
@click.option(
    "--padded", is_flag=True, help="With --type: 16 elements of 4 or 6 bits at every 16 bytes."
)
@click.option("--start", default="0", metavar="ADDRESS", help="Where the matrix starts, in bytes.")
@click.option("--kind", metavar="KIND", help="The 32-bit tcgen05 instruction descriptor instead.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --kind, build one: m, n, a, b, d, scale, sparse, negate_a, ...",
)
@click.option(
    "--cta-group",
    type=click.IntRange(1, 2),
    help="With --kind: of an instruction of so many CTAs; any if absent.",
)
@click.option("--ws/--no-ws", default=None, help="With --kind: of the .ws form; any if absent.")
@json_option
def main(
    word: str | None,
    target: str,
    layout: str | None,
    element: str | None,
    major: str,
    tile: tuple[int, ...] | None,
    padded: bool,
    start: str,
    kind: str | None,
    fields: tuple[str, ...],
    cta_group: int | None,
    ws: bool | None,
    as_json: bool,
) -> int | None:
    """Take a shared-memory or instruction descriptor apart, or build one."""
    from fragir.isa.targets import require_target

    require_target(target)
    if sum((word is not None, layout is not None, bool(fields))) != 1:
        raise click.UsageError("give a descriptor, --layout, or --kind with --field")
    if fields and kind is None:
        raise click.UsageError("--field goes with --kind")
    if kind is None and (cta_group is not None or ws is not None):
        raise click.UsageError("--cta-group and --ws go with --kind")
    mapped = element is not None and word is not None and kind is None
    if not mapped and (major != "k" or tile is not None or padded):
        raise click.UsageError("--major, --tile and --padded go with HEX and --type")
    if kind is not None:
        if layout is not None:
            raise click.UsageError("an instruction descriptor has no --layout")
        form = _InstructionForm(kind, target, cta_group or 0, ws)
        return _instruction(word, form, fields, as_json)
    if word is not None:
        from fragir.isa.descriptors import decode

        found = decode(_number(word), target)
        text = None if element is None else _map(found, element, major, tile, padded)
        _show(found, text, found.notes(_way(major)) if text else (), as_json)
        return FINDING if any(found.faults()) else None
    from fragir.isa.descriptors import WGMMA, describe
    from fragir.isa.operand_tiles import parse_tile, recognise
    from fragir.isa.versions import has

    assert layout is not None
    tcgen05 = not has(WGMMA, target)
    if " " in layout.strip():
        if element is None:
            raise click.UsageError("a layout's text needs --type, the element type")
        made = recognise(layout, element, tcgen05=tcgen05)
    else:
        made = parse_tile(layout, tcgen05=tcgen05)
    address = _number(start)
    if made.shared.swizzle and address % (8 * made.shared.swizzle):
        raise FragirError(
            f"a matrix with a {made.shared.swizzle}-byte swizzle starts at a multiple of "
            f"{8 * made.shared.swizzle} bytes, not at {address}"
        )
    built = describe(made.shared, address, target)
    _show(built, made.text, built.notes(made.shared.major), as_json)
    return None


def _map(
    found: MatrixDescriptor,
    element: str,
    major: str,
    tile: tuple[int, ...] | None,
    padded: bool,
) -> str:
    """Where the descriptor says the elements of a tile are; of 64 x 32 bytes of K by default."""
    if tile is not None and len(tile) != 2:
        raise click.UsageError("--tile has the form MNxK")
    way = _way(major)
    shape = tile or _one_step(found, element, way, padded)
    return str(found.layout(element, way, *shape, padded=padded))


def _way(major: str) -> Major:
    return "mn" if major == "mn" else "k"


def _one_step(found: MatrixDescriptor, element: str, major: Major, padded: bool) -> tuple[int, int]:
    """What one instruction reads along K of 64 rows, or as many as follow each other."""
    from fragir.isa.canonical import STEP_BYTES

    form = found.canonical(element, major, padded=padded)
    per_chunk = form.per_chunk or 16 // form.element_bytes
    width = per_chunk * max(form.swizzle, 16) // 16
    return max(64, width) if major == "mn" else 64, STEP_BYTES * per_chunk // 16


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return int(text, 16)
    except ValueError:
        raise click.UsageError(f"`{text}` is no number") from None


def _show(
    found: MatrixDescriptor, layout: str | None, notes: tuple[str, ...], as_json: bool
) -> None:
    for text in notes:
        note(f"note: {text}")
    if not as_json:
        sys.stdout.write(found.explain() + "\n")
        if layout is not None:
            sys.stdout.write(f"  layout: {layout}\n")
        return
    fields = [
        {
            "name": field.name,
            "high": field.high,
            "low": field.low,
            "value": getattr(found, field.name),
            "meaning": field.meaning,
        }
        for field in found.fields
    ]
    document = {"descriptor": f"{found.word:#018x}", "target": found.target, "fields": fields}
    faults = list(found.faults())
    print_json({**document, "reserved": found.reserved, "faults": faults, "layout": layout})


@dataclass(frozen=True, slots=True)
class _InstructionForm:
    """Which tcgen05.mma the descriptor is of: cta_group 0 and ws None are any."""

    kind: str
    target: str
    cta_group: int
    ws: bool | None


def _instruction(
    word: str | None, form: _InstructionForm, fields: tuple[str, ...], as_json: bool
) -> int | None:
    from fragir.isa.descriptors import (
        decode_instruction,
        instruction_descriptor,
        instruction_faults,
        instruction_notes,
    )
    from fragir.isa.versions import requirement

    kind, target = form.kind, form.target
    having = requirement("tcgen05.mma").targets
    if target not in having:
        raise FragirError(f"{target} has no tcgen05.mma", hint=f"{', '.join(having)} have")
    where: dict[str, Any] = {"cta_group": form.cta_group, "ws": form.ws, "target": target}
    number = _number(word) if word is not None else 0
    if fields:
        values = dict(_field(text) for text in fields)
        if missing := [name for name in ("m", "n", "a") if name not in values]:
            raise FragirError(f"the descriptor needs {', '.join(missing)}", hint="--field m=128")
        number = instruction_descriptor(kind, **values, **where)
    if number < 0 or number >> 32:
        raise FragirError(f"{number:#x} is no 32-bit instruction descriptor")
    found = decode_instruction(number, kind)
    faults = list(instruction_faults(number, kind, **where))
    notes = instruction_notes(number, kind)
    if as_json:
        head = {"instruction_descriptor": f"{number:#010x}", "target": target}
        print_json({**head, "kind": kind, "fields": found, "faults": faults, "notes": list(notes)})
    else:
        sys.stdout.write(f"{number:#010x}, kind::{kind} on {target}\n")
        print_rows("text", ("field", "value"), sorted(found.items()))
        sys.stdout.write("".join(f"means nothing: {fault}\n" for fault in faults))
        for text in notes:
            note(f"note: {text}")
    return FINDING if faults else None


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"`{text}` is not of the form NAME=VALUE")
    words = name in ("a", "b", "d", "scale")
    return name, value if words else _number(value)
