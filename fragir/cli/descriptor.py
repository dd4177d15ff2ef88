"""`fragir descriptor`: descriptors of matrices in shared memory, and of tcgen05 instructions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from fragir.cli.command import command, json_option, print_json, target_option
from fragir.cli.query import print_rows
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.isa.descriptors import MatrixDescriptor


EXAMPLES = (
    ("What a descriptor of wgmma says:", "fragir descriptor 0x4000004000010140 --target sm_90a"),
    (
        "That of a tile of 64x64 bf16, K-major, with 128-byte swizzle, at 0x1400:",
        "fragir descriptor --layout bf16:k:128:64x64 --start 0x1400 --target sm_90a",
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
@click.option("--type", "element", metavar="TYPE", help="The element type of a layout's text.")
@click.option("--start", default="0", metavar="ADDRESS", help="Where the matrix starts, in bytes.")
@click.option("--kind", metavar="KIND", help="The 32-bit tcgen05 instruction descriptor instead.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="NAME=VALUE",
    help="With --kind, build one: m, n, a, b, d, scale, sparse, negate_a, ...",
)
@json_option
def main(
    word: str | None,
    target: str,
    layout: str | None,
    element: str | None,
    start: str,
    kind: str | None,
    fields: tuple[str, ...],
    as_json: bool,
) -> None:
    """Take a shared-memory or instruction descriptor apart, or build one."""
    from fragir.isa.targets import require_target

    require_target(target)
    if sum((word is not None, layout is not None, bool(fields))) != 1:
        raise click.UsageError("give a descriptor, --layout, or --kind with --field")
    if fields and kind is None:
        raise click.UsageError("--field goes with --kind")
    if kind is not None:
        if layout is not None:
            raise click.UsageError("an instruction descriptor has no --layout")
        _instruction(word, kind, fields, target, as_json)
    elif word is not None:
        from fragir.isa.descriptors import decode

        _show(decode(_number(word), target), None, as_json)
    elif layout is not None:
        from fragir.isa.descriptors import describe
        from fragir.isa.operand_tiles import parse_tile, recognise

        if " " in layout.strip():
            if element is None:
                raise click.UsageError("a layout's text needs --type, the element type")
            form = recognise(layout, element)
        else:
            form = parse_tile(layout)
        address = _number(start)
        if form.shared.swizzle and address % (8 * form.shared.swizzle):
            raise FragirError(
                f"a matrix with a {form.shared.swizzle}-byte swizzle starts at a multiple of "
                f"{8 * form.shared.swizzle} bytes, not at {address}"
            )
        _show(describe(form.shared, address, target), form.text, as_json)


def _number(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return int(text, 16)
    except ValueError:
        raise click.UsageError(f"`{text}` is no number") from None


def _show(found: MatrixDescriptor, layout: str | None, as_json: bool) -> None:
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
    print_json({**document, "reserved": found.reserved, "layout": layout})


def _instruction(
    word: str | None, kind: str, fields: tuple[str, ...], target: str, as_json: bool
) -> None:
    from fragir.isa.descriptors import decode_instruction, instruction_descriptor
    from fragir.isa.versions import requirement

    having = requirement("tcgen05.mma").targets
    if target not in having:
        raise FragirError(f"{target} has no tcgen05.mma", hint=f"{', '.join(having)} have")
    number = _number(word) if word is not None else 0
    if fields:
        values = dict(_field(text) for text in fields)
        if missing := [name for name in ("m", "n", "a") if name not in values]:
            raise FragirError(f"the descriptor needs {', '.join(missing)}", hint="--field m=128")
        number = instruction_descriptor(kind, **values)
    if number >> 32:
        raise FragirError(f"{number:#x} is no 32-bit instruction descriptor")
    found = decode_instruction(number, kind)
    if as_json:
        head = {"instruction_descriptor": f"{number:#010x}", "target": target}
        print_json({**head, "kind": kind, "fields": found})
        return
    sys.stdout.write(f"{number:#010x}, kind::{kind} on {target}\n")
    print_rows("text", ("field", "value"), sorted(found.items()))


def _field(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not equals:
        raise click.UsageError(f"`{text}` is not of the form NAME=VALUE")
    words = name in ("a", "b", "d", "scale")
    return name, value if words else _number(value)
