"""What can be judged here: machines, instructions, limits, and what is refused by name."""

from __future__ import annotations

from collections import Counter

from fragir import isa
from fragir.judge.child import MOST_CASES
from fragir.judge.judging import LIMIT, MOST_CHARACTERS
from fragir.judge.meanings import Document
from fragir.ptx.opcodes import (
    arithmetic,
    copies,
    matrices,
    memory,
    synchronisation,
    tensor_memory,
)
from fragir.ptx.opcodes.table import OPCODES
from fragir.ptx.targets import MACHINES

#: What the rows of the table of opcodes are about.
FAMILIES = {
    "Arithmetic, logic, comparisons, conversions, moves": arithmetic.OPCODES,
    "Memory": memory.OPCODES,
    "Copies": copies.OPCODES,
    "Synchronisation and control": synchronisation.OPCODES,
    "Matrices": matrices.OPCODES,
    "Tensor memory": tensor_memory.OPCODES,
}


def supported() -> Document:
    """`machines`: their targets, each with the lowest PTX version, and the bytes of shared memory
    of a block. `opcodes`: those that the emulator runs, by family; `tensor_instructions`: how many
    there are of a family in the table of layouts. `refused`: opcodes, and forms of others, with
    why. `limits`: of one judgement, unless the call says less.
    """
    known = {row.name for row in OPCODES.rows if not row.missing and " " not in row.name}
    listed = {title: sorted({row.name for row in rows} & known) for title, rows in FAMILIES.items()}
    added = sorted(known - {name for names in listed.values() for name in names})
    return {
        "machines": [
            {
                "targets": {f"sm_{one.number}{s}": v for s, v in one.versions.items()},
                "generation": one.cores,
                "shared_bytes": one.shared,
            }
            for one in MACHINES
            if one.versions
        ],
        "opcodes": {**listed, **({"added by packages": added} if added else {})},
        "tensor_instructions": dict(sorted(Counter(i.family for i in isa.instructions()).items())),
        "refused": _refused(),
        "limits": {
            "warp_instructions_of_a_run": LIMIT[0],
            "seconds_of_a_run": LIMIT[1],
            "characters_of_ptx": MOST_CHARACTERS,
            "cases": MOST_CASES,
        },
        "cases": "references in numpy, or in torch by its functions that are known; others are"
        " judged by numbers within `rtol`",
        "files": "PTX; of cubins and fatbins the PTX in them, uncompressed. Machine code alone is"
        " unsupported",
    }


def _refused() -> dict[str, str]:
    found: dict[str, str] = {}
    for row in OPCODES.rows:
        if row.missing:
            found[row.name] = row.missing
        for line in row.box:
            if line.missing:
                form = " ".join(line.text.partition("!")[0].split())
                found[f"{row.name}{'' if form.startswith(('.', '{.')) else ' '}{form}"] = (
                    line.missing
                )
    return dict(sorted(found.items()))
