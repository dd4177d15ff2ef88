"""`fragir instructions`: the table of tensor-core instructions."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from fragir.cli.command import command, json_option, note
from fragir.cli.query import print_rows

if TYPE_CHECKING:
    from fragir.isa import Instruction


EXAMPLES = (
    ("All of Hopper's with N = 96:", "fragir instructions --target sm_90a --only '*n96*'"),
    ("What ptxas accepts but must not be emitted:", "fragir instructions --refused"),
    ("Block-scaled products, as JSON:", "fragir instructions --only 'mma*block_scale*' --json"),
)


@command(examples=EXAMPLES)
@click.option("--target", metavar="SM", help="Only what this target has.")
@click.option("--only", metavar="PATTERN", help="Only mnemonics like this, as in 'wgmma*n256*'.")
@click.option("--refused", is_flag=True, help="Those that must not be emitted, and why.")
@json_option
def main(target: str | None, only: str | None, refused: bool, as_json: bool) -> None:
    """List tensor-core instructions: registers, targets, and what is native there."""
    from fnmatch import fnmatchcase

    from fragir import isa
    from fragir.isa.targets import require_target

    if target is not None:
        require_target(target)
    found = [
        instruction
        for instruction in isa.instructions(target=target)
        if (instruction.refused is not None) == refused
        and (only is None or fnmatchcase(instruction.mnemonic, only))
    ]
    if as_json:
        _print_lines([instruction_json(instruction) for instruction in found])
        return
    if refused:
        print_rows("text", ("mnemonic", "reason"), ((i.mnemonic, i.refused) for i in found))
    else:
        print_rows("text", _columns(target), (_row(i, target) for i in found))
    note(f"{len(found)} instructions")


def _print_lines(documents: list[dict[str, object]]) -> None:
    """A JSON list with a line for every instruction: short, and fast to write."""
    import json

    lines = ",\n".join(map(json.dumps, documents))
    sys.stdout.write(f"[\n{lines}\n]\n")


def instruction_json(instruction: Instruction) -> dict[str, object]:
    """An instruction as in the document of `instructions`."""
    document: dict[str, object] = {
        "mnemonic": instruction.mnemonic,
        "family": instruction.family,
        "variants": list(instruction.variants) or ["registers"],
        "registers": {
            name: {
                "count": operand.registers.count,
                "type": operand.registers.type,
                "class": operand.registers.cls,
            }
            for name, operand in instruction.operands.items()
        },
        "targets": dict(instruction.targets),
        "lowering": dict(instruction.lowering),
        "aliases": list(instruction.aliases),
    }
    if instruction.family.startswith("tcgen05.mma"):
        from fragir.isa.tensor_mma import legal_products

        document["products"] = legal_products(instruction)
    if instruction.refused is not None:
        document["refused"] = instruction.refused
    return document


def _columns(target: str | None) -> tuple[str, ...]:
    if target is None:
        return "mnemonic", "registers", "from", "PTX", "not native on"
    return "mnemonic", "registers", "PTX", "lowering"


def _row(instruction: Instruction, target: str | None) -> tuple[object, ...]:
    held = " ".join(f"{n}:{o.registers.count}" for n, o in instruction.operands.items())
    if target is not None:
        lowering = instruction.lowering[target]
        return instruction.mnemonic, held, instruction.targets[target], lowering
    first = next(iter(instruction.targets))
    other = [t for t, lowering in instruction.lowering.items() if lowering != "native"]
    return instruction.mnemonic, held, first, instruction.targets[first], " ".join(other)
