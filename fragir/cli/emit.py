"""`fragir emit`: the smallest PTX module that uses an instruction, or a CUDA C++ wrapper of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fragir.cli.command import command, json_option, note, output_option, print_json
from fragir.cli.files import write_output
from fragir.cli.query import find
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.isa.canonical import Major


_MAJOR = click.Choice(["k", "mn"])

EXAMPLES = (
    (
        "A kernel with one wgmma, A in shared memory:",
        "fragir emit wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 --a descriptor",
    ),
    (
        "The same with an MN-major B, swizzled by 128 bytes:",
        "fragir emit wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 --a descriptor"
        " --b-major mn --swizzle 128",
    ),
    (
        "A C++ wrapper of an integer product:",
        "fragir emit mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 --as cuda -o mma.h",
    ),
)


@command(examples=EXAMPLES)
@click.argument("mnemonic")
@click.option("--target", metavar="SM", help="The first that runs it natively if absent.")
@click.option(
    "--a",
    "variant",
    type=click.Choice(["registers", "descriptor", "tensor-memory"]),
    help="Where A comes from, of wgmma and tcgen05.mma; the first that there is if absent.",
)
@click.option(
    "--a-major", type=_MAJOR, default="k", show_default=True, help="Of A in shared memory."
)
@click.option(
    "--b-major", type=_MAJOR, default="k", show_default=True, help="Of B in shared memory."
)
@click.option(
    "--swizzle",
    type=click.Choice(["0", "32", "64", "128"]),
    default="0",
    show_default=True,
    help="Bytes of the swizzle of what lies in shared memory.",
)
@click.option(
    "--as",
    "language",
    type=click.Choice(["ptx", "cuda"]),
    default="ptx",
    show_default=True,
    help="A probe kernel in PTX, or a C++ header.",
)
@output_option
@json_option
def main(
    mnemonic: str,
    target: str | None,
    variant: str | None,
    a_major: Major,
    b_major: Major,
    swizzle: str,
    language: str,
    output: str | None,
    as_json: bool,
) -> None:
    """Write a PTX module that uses an instruction, or a C++ wrapper of it."""
    from fragir.compilation.notes import unordered_note
    from fragir.isa.emit import default_target, default_variant

    instruction = find(mnemonic)
    variant = variant or default_variant(instruction)
    if instruction.refused:
        raise FragirError(f"{instruction.mnemonic} is refused: {instruction.refused}")
    target = target if target is not None else default_target(instruction)
    chosen = find(mnemonic, target)
    if language == "cuda":
        if (a_major, b_major, swizzle) != ("k", "k", "0"):
            raise click.UsageError("a C++ wrapper takes descriptors: majors and swizzle are theirs")
        from fragir.isa.cuda import header

        text = header(chosen, target, variant)
    else:
        from fragir.isa.emit import InShared, emit_ptx

        text = emit_ptx(chosen, target, variant, InShared(a_major, b_major, int(swizzle)))
    advice = unordered_note(instruction)
    if advice is not None:
        note(f"note: {advice}")
    if output is not None or not as_json:
        write_output(output, text)
    if as_json:
        head = {"mnemonic": instruction.mnemonic, "target": target, "a": variant}
        placed = {"a_major": a_major, "b_major": b_major, "swizzle": int(swizzle)}
        print_json({**head, **placed, "as": language, "text": text})
