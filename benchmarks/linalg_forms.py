"""Forms of linalg beside a stock mlir-opt: what it accepts, and whether it means the same by them.

    python benchmarks/linalg_forms.py [--mlir-opt PROGRAM] [--json FILE]

mlir-opt reads each program of `tests/linalg/forms.py` and makes generics of its named operations
(`--linalg-generalize-named-ops`); `linalg-normalize` makes them too. Compared are maps, iterators
and bodies, the body's operations in order. What that version of MLIR does not know is listed.
Debian has mlir-opt in mlir-19-tools.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue

import fragir
from fragir.errors import FragirError
from fragir.passes.linalg_normalize import LinalgNormalizePass
from fragir.plugins import FragirContext
from tests.linalg.forms import Form, forms

COMMUTES = ("arith.addf", "arith.addi", "arith.mulf", "arith.muli", "arith.maximumf")


class Outcome(NamedTuple):
    """What became of a form: "alike", "differs", "unknown" to that mlir-opt, or "only read"."""

    name: str
    verdict: str
    words: str = ""


def meaning(op: LinalgStructuredOperation) -> tuple[list[str], list[str], object]:
    """Maps, iterators, and the body as an expression of its arguments."""
    maps = [str(attribute.data) for attribute in op.get_indexing_maps()]
    iterators = [kind.data.name for kind in op.get_iterator_types()]
    arguments: dict[SSAValue, str] = {}
    arguments.update({argument: f"%{at}" for at, argument in enumerate(op.body.block.args)})

    def expression(value: SSAValue) -> object:
        if value in arguments:
            return arguments[value]
        owner = value.owner
        assert isinstance(owner, Operation)
        parts = [expression(operand) for operand in owner.operands]
        if owner.name in COMMUTES:
            parts.sort(key=str)
        told = "" if owner.name != "arith.constant" else str(owner.properties["value"])
        predicate = str(owner.properties.get("predicate", ""))
        return owner.name, told, predicate, str(value.type), tuple(parts)

    end = op.body.block.last_op
    assert end is not None
    return maps, iterators, [expression(value) for value in end.operands]


def generics(text: str) -> list[LinalgStructuredOperation]:
    """Those of a program, none of them a fill."""
    module = fragir.parse(text)
    LinalgNormalizePass().apply(FragirContext(), module)
    return [op for op in module.walk() if isinstance(op, ops.GenericOp)]


def compared(form: Form, program: str) -> Outcome:
    """One form."""
    plain = subprocess.run([program], input=form.text, capture_output=True, text=True, check=False)
    if plain.returncode:
        return Outcome(form.name, "unknown", plain.stderr.strip().split("\n")[0])
    command = [program, "--linalg-generalize-named-ops", "--linalg-generalize-named-ops"]
    made = subprocess.run(command, input=form.text, capture_output=True, text=True, check=False)
    try:
        theirs = generics(made.stdout)
    except FragirError as error:
        return Outcome(form.name, "differs", f"cannot be read: {error}")
    ours = generics(form.text)
    if form.name == "softmax":
        return Outcome(form.name, "only read", "mlir-opt keeps it")
    for one, other in zip(map(meaning, ours), map(meaning, theirs), strict=True):
        for what, mine, wanted in zip(("maps", "iterators", "body"), one, other, strict=True):
            if mine != wanted:
                return Outcome(form.name, "differs", f"{what}: {mine} and {wanted}")
    return Outcome(form.name, "alike")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--mlir-opt", default=shutil.which("mlir-opt-19") or "mlir-opt")
    parser.add_argument("--json", metavar="FILE", help="write the outcomes here")
    given = parser.parse_args()
    version = subprocess.run(
        [given.mlir_opt, "--version"], capture_output=True, text=True, check=True
    )
    line = next(x.strip() for x in version.stdout.splitlines() if "version" in x)
    outcomes = [compared(form, given.mlir_opt) for form in forms()]
    for one in outcomes:
        if one.verdict != "alike":
            print(f"{one.name}: {one.verdict}: {one.words}")
    counts = Counter(one.verdict for one in outcomes)
    print(
        f"{line}: " + ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
    )
    if given.json:
        document = {"mlir_opt": line, "outcomes": [one._asdict() for one in outcomes]}
        Path(given.json).write_text(json.dumps(document, indent=1) + "\n")
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
