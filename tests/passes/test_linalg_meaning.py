"""Random programs on tensors mean the same after frag-bufferize and convert-linalg-to-frag.

The reference executes linalg on tensors, on memrefs, and frag.matmul; elements are i32, so results
are exact. A pass may refuse a program, but must not change what it computes, or write an argument
that is not returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fragir.compiler import context, parse
from fragir.mlir.diagnostics import LocatedFailure, verify
from fragir.passes.convert_linalg_to_frag import ConvertLinalgToFragPass
from fragir.passes.frag_bufferize import FragBufferizePass
from fragir.reference import evaluate

Array = npt.NDArray[Any]
M, N, K = 3, 5, 4
MATRIX = f"tensor<{M}x{N}xi32>"
WHOLE = "affine_map<(m, n) -> (m, n)>"
ARGUMENTS = {
    "%a": f"tensor<{M}x{K}xi8>",
    "%b": f"tensor<{K}x{N}xi8>",
    "%c": MATRIX,
    "%d": MATRIX,
    "%u": f"tensor<{N}xi32>",
    "%v": f"tensor<{M}x1xi32>",
}
BROADCAST = {"%u": "affine_map<(m, n) -> (n)>", "%v": "affine_map<(m, n) -> (m, 0)>"}
PRODUCT = f"""linalg.generic {{indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
    affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>],
    iterator_types = ["parallel", "parallel", "reduction"]}}
    ins(%a, %b : {ARGUMENTS["%a"]}, {ARGUMENTS["%b"]}) outs(OUT : {MATRIX}) {{
  ^bb0(%x: i8, %y: i8, %s: i32):
    %x1 = arith.extsi %x : i8 to i32
    %y1 = arith.extsi %y : i8 to i32
    %p = arith.muli %x1, %y1 : i32
    %t = arith.addi %s, %p : i32
    linalg.yield %t : i32
  }} -> {MATRIX}
"""


@dataclass
class Program:
    """Lines of a body, its result, and the argument that the result is computed in, if any."""

    lines: list[str]
    result: str
    root: str | None

    def text(self) -> str:
        return self._function("", self.lines, self.result)

    def with_output(self) -> str:
        """The same with the result copied to an argument %out, which is returned."""
        copy = elementwise("%last", [self.result], "%out", False, [])
        return self._function(f", %out: {MATRIX}", [*self.lines, copy], "%last")

    @staticmethod
    def _function(more: str, lines: list[str], result: str) -> str:
        arguments = ", ".join(f"{name}: {type_}" for name, type_ in ARGUMENTS.items())
        body = "\n  ".join(lines)
        return (
            f"func.func @f({arguments}{more}) -> {MATRIX} {{\n  %zero = arith.constant 0 : i32\n"
            f"  %e = tensor.empty() : {MATRIX}\n  {body}\n  func.return {result} : {MATRIX}\n}}\n"
        )


def elementwise(
    result: str, inputs: list[str], output: str, reads: bool, operations: list[str]
) -> str:
    """The first input, combined with the others and the old output by operations in turn."""
    names = [f"%i{i}" for i in range(len(inputs))] + (["%old"] if reads else [])
    lines: list[str] = []
    value = names[0]
    for i, (name, operation) in enumerate(zip(names[1:], operations, strict=False)):
        lines.append(f"%r{i} = arith.{operation} {value}, {name} : i32")
        value = f"%r{i}"
    maps = ", ".join([*(BROADCAST.get(name, WHOLE) for name in inputs), WHOLE])
    types = ", ".join(ARGUMENTS.get(name, MATRIX) for name in inputs)
    arguments = ", ".join(f"%i{i}: i32" for i in range(len(inputs)))
    body = "\n    ".join([*lines, f"linalg.yield {value} : i32"])
    return (
        f'{result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", '
        f'"parallel"]}}\n    ins({", ".join(inputs)} : {types}) outs({output} : {MATRIX}) {{\n'
        f"  ^bb0({arguments}, %old: i32):\n    {body}\n  }} -> {MATRIX}"
    )


def random_program(random: Random) -> Program:
    matrices, roots = ["%c", "%d"], {"%c": "%c", "%d": "%d", "%e": None}
    lines: list[str] = []

    def defines(name: str, start: str) -> None:
        matrices.append(name)
        roots[name] = roots[start]

    start = random.choice(["%c", "%d", "%e", "%e"])
    if start == "%e" or random.random() < 0.5:
        lines.append(f"%z = linalg.fill ins(%zero : i32) outs({start} : {MATRIX}) -> {MATRIX}")
        defines("%z", start)
        start = "%z"
    lines.append(f"%sum = {PRODUCT.replace('OUT', start)}".rstrip())
    defines("%sum", start)
    for i in range(random.randrange(4)):
        choice = [random.choice(matrices) for _ in range(random.randrange(1, 3))]
        inputs = [matrices[-1], *choice] if random.random() < 0.7 else choice
        inputs += [name for name in BROADCAST if random.random() < 0.3]
        output = random.choice([*matrices, "%e", "%e"])
        reads = output != "%e" and random.random() < 0.5
        operations = [random.choice(["addi", "subi", "maxsi", "muli"]) for _ in range(6)]
        lines.append(elementwise(f"%x{i}", inputs, output, reads, operations))
        defines(f"%x{i}", output)
    result = matrices[-1] if random.random() < 0.8 else random.choice(matrices[3:] or ["%sum"])
    return Program(lines, result, roots[result])


def function_of(module: ModuleOp) -> func.FuncOp:
    (function,) = (op for op in module.ops if isinstance(op, func.FuncOp))
    return function


def arrays() -> dict[str, Array]:
    random = np.random.default_rng(0)
    shapes = {"%a": (M, K), "%b": (K, N), "%c": (M, N), "%d": (M, N), "%u": (N,), "%v": (M, 1)}
    return {
        name: random.integers(-9, 10, shape).astype("i1" if name in ("%a", "%b") else "i4")
        for name, shape in shapes.items()
    }


def accepted(module: ModuleOp, one: ModulePass) -> bool:
    try:
        one.apply(context(), module)
    except LocatedFailure:
        return False
    verify(module)
    return True


def check(module: ModuleOp, program: Program, wanted: Array) -> None:
    """The function writes what is wanted where it should, and nothing else."""
    given = arrays()
    expected = dict(given) | {program.root or "%out": wanted}
    values = list(given.values()) + ([] if program.root else [np.zeros((M, N), np.int32)])
    found = evaluate(function_of(module), values)
    for (name, array), content in zip(expected.items(), found, strict=True):
        assert content is not None
        np.testing.assert_array_equal(content.value, array, f"{name}\n{program.text()}")


@pytest.mark.parametrize("seed", range(3))
def test_random_programs(seed: int) -> None:
    random, counts = Random(seed), [0, 0]
    for _ in range(50):
        program = random_program(random)
        whole = evaluate(
            function_of(parse(program.with_output())), [*arrays().values(), np.zeros((M, N), "i4")]
        )
        assert whole[-1] is not None
        module = parse(program.text())
        if not accepted(module, FragBufferizePass()):
            continue
        counts[0] += 1
        check(module, program, whole[-1].value)
        if accepted(module, ConvertLinalgToFragPass()):
            counts[1] += 1
            check(module, program, whole[-1].value)
    assert counts[0] > 20, "most programs are refused by frag-bufferize"
    assert counts[1] > 12, "most programs are refused by convert-linalg-to-frag"
