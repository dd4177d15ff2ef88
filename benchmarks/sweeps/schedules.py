"""Products of random sizes and types in the schedules that are chosen for them.

ptxas spills nothing and serialises nothing, and the emulator gives what the reference means.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import memref_type
from fragir.reference import compare, evaluate
from fragir.reference.inputs import generate, resolve, slots
from fragir.sweeps import Plan, Result, Sweep, Task

# of A, and of C
TYPES = (
    ("f16", "f32"), ("f16", "f16"), ("bf16", "f32"), ("tf32", "f32"), ("si8", "i32"),
    ("f8E4M3FN", "f32"), ("f64", "f64"),
)  # fmt: skip
TARGETS = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_120a")
SPILLS = 32
"""Bytes of spills that are no finding: outside of loops, of masks."""


def product(random: Random, small: bool) -> tuple[str, str]:
    """A product and a target."""
    a, c = random.choice(TYPES)
    targets = TARGETS if a == "f16" else TARGETS[3:] if a == "f8E4M3FN" else TARGETS[1:]
    most = 200 if small else random.choice([600, 3000, 20_000])
    m, n, k = (
        random.choice([random.randint(1, most), 8 * random.randint(1, most // 8)]) for _ in "mnk"
    )
    turned = [random.random() < 0.3, random.random() < 0.5]
    left = f"memref<{k}x{m}x{a}>" if turned[0] else f"memref<{m}x{k}x{a}>"
    right = f"memref<{n}x{k}x{a}>" if turned[1] else f"memref<{k}x{n}x{a}>"
    words = [" transposed" if each else "" for each in turned]
    result = f"memref<{m}x{n}x{c}>"
    return (
        f"func.func @f(%a: {left}, %b: {right}, %c: {result}) {{\n"
        f"  frag.matmul %a{words[0]}, %b{words[1]} into %c : {left}, {right} into {result}\n"
        "  func.return\n}\n"
    ), random.choice(targets)


def check(random: Random) -> list[str]:
    """What is wrong with a product that is drawn."""
    small = random.random() < 0.5
    text, target = product(random, small)
    kernel = fragir.compile(text, target=target)
    used = kernel.assembled.entries[kernel.name]
    found = [str(warning) for warning in kernel.assembled.warnings]
    if used.spill_stores > SPILLS:
        found.append(f"{used.spill_stores} bytes spilled")
    if small:
        function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
        arguments = slots(function)
        sizes = resolve(arguments, {}, {})
        given = generate(function, arguments, sizes, {}, "normal", random.getrandbits(30))
        expected = evaluate(function, given, target=target, grid=(1, 1, 1))[2]
        assert expected is not None
        arrays = [np.array(x) for x in given]
        report = kernel(*arrays, on="emulator", check=True)
        found += [str(finding) for finding in report.findings]
        element = element_name(memref_type(kernel.signature[2].type).element_type)
        verdict = compare(expected, arrays[2], element)
        if not verdict.passed:
            found.append(str(verdict))
    return [f"{target}: {each}: {text}" for each in found]


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, batch = task.random(), task.parameters["batch"]
    findings = [each for _ in range(batch) for each in check(random)]
    return {"findings": findings, "programs": batch}


SWEEP = Sweep(tasks, run, {"batch": 5}, seconds=600.0)
