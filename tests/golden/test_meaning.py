"""What the expected outputs compute, judged by the reference and not by how they came about.

`NAME.out` is text that our own passes have written. So each function of it that writes to memory is
compiled from that text and run on the emulator, and must give what the function of `NAME.mlir`
means in numpy. What has no such function (layouts of single operations, what
is only printed, refusals) the files pin as text: its meaning is judged in tests/properties and
tests/families.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

import fragir
from fragir.compilation.program import keep_only
from fragir.compiler import parse
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import memref_type
from fragir.reference import compare, evaluate, outputs
from tests.properties.judge import inputs

FOLDER = Path(__file__).parent
SIZES = {"m": 40, "n": 24, "k": 48}  # where a function has other names, all are 64
NOT_RUN = {
    "as_it_came": "a result has an argument of its own",
    "cut": "counts of parts begin with zeros, which inputs here are not",
    "fma": "the reference has no contraction by math.fma",
    "integers_in_f32": "the reference has no contraction of integers in floats",
    "strided": "strides that are known at the launch alone",
    "twice": "a result has an argument of its own",
    "truth": "inputs here are bytes besides 0 and 1",
    "two": "one operation of three outputs, which passes do not lower",
}


@cache
def meant(path: Path) -> dict[str, func.FuncOp]:
    return functions(parse(path.read_text()))


def functions(module: ModuleOp) -> dict[str, func.FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}


def judged() -> list[tuple[Path, str]]:
    """(file, function) of what passes have changed and what writes to memory."""
    found: list[tuple[Path, str]] = []
    for path in sorted(FOLDER.glob("*.mlir")):
        text = path.read_text()
        if path.stem.endswith("_errors") or " -p " not in text.partition("\n")[0]:
            continue
        found += [(path, name) for name, op in meant(path).items() if outputs(op)]
    assert NOT_RUN.keys() <= {name for _, name in found}
    return [(path, name) for path, name in found if name not in NOT_RUN]


@pytest.mark.parametrize(("path", "name"), judged(), ids=lambda x: getattr(x, "stem", x))
def test_the_expected_output_means_the_same(path: Path, name: str) -> None:
    text = path.read_text()
    target = re.search(r"target=\"?(\w+)", text.partition("\n")[0])
    machine = target[1] if target else "sm_89"
    before = meant(path)[name]
    module = parse(path.with_suffix(".out").read_text())
    keep_only(module, name)
    kernel = fragir.compile(module, target=machine)
    names = {
        n for a in kernel.signature for n in (*a.dims, *(a.strides or ())) if isinstance(n, str)
    }
    distinct = names == SIZES.keys() and name not in ("row_vector", "square")
    sizes = SIZES if distinct else dict.fromkeys(names, 64)
    arguments = inputs(kernel.signature, np.random.default_rng(0), sizes)
    grid = kernel.grid(kernel.sizes(arguments))
    tiled = "frag.grid" in before.attributes
    given = [
        # linalg's i8 has no sign; which it has is said where it is extended
        np.asarray(x).view(np.int8) if str(t).endswith("xi8>") else x
        for x, t in zip(arguments, before.function_type.inputs, strict=True)
    ]
    expected = evaluate(before, given, target=machine, grid=grid if tiled else (1, 1, 1))
    if kernel.is_program:
        kernel(*arguments, on="emulator", target=machine)
    else:
        kernel.launch(grid, None, *arguments, on="emulator", target=machine)
    for number in outputs(before):
        reference = expected[number]
        assert reference is not None
        element = element_name(memref_type(kernel.signature[number].type).element_type)
        assert compare(reference, np.ascontiguousarray(arguments[number]), element).passed
