"""Random programs of all operations on tiles, written with the builder, judged by the reference.

Elementwise work, casts, reductions, scans, broadcasts, other shapes, parts, products, masked loads,
gathers, random bits, atomics, in loops and branches, staged through shared memory, rings and roles,
in layouts that are written, over random shapes, element types, warps and targets: compiled within a
limit, printed and read again after every pass, assembled and run with every check. What is refused
is counted by kind: the message without names and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from xdsl.dialects import func

import fragir
from benchmarks.sweeps.round_trips import RoundTrips
from benchmarks.sweeps.tile_staging import STAGING, write_roles
from benchmarks.sweeps.tile_steps import (
    BF16,
    COMPUTING,
    CONDITION,
    F32,
    MORE_TARGETS,
    MORE_WARPS,
    TARGETS,
    WARPS,
    Steps,
    Writer,
    number_of,
)
from fragir.compiler import parse
from fragir.errors import FragirError
from fragir.reference import compare, evaluate, outputs
from fragir.reference.inputs import generate, resolve, slots
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import attempt

STEPS: Steps = {**COMPUTING, **STAGING}
#: Seconds of CPU time that a compilation may take, and all of a program.
COMPILATION, WHOLE = 20.0, 120.0
ASYNCHRONY = ("late", "early", "random")


@dataclass
class TileProgram:
    """A kernel's text, the target it is for, and the sizes that its arrays bring with them.

    Where the builder refuses the program there is no text, but the error.
    """

    text: str
    target: str
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    refusal: FragirError | None = None


def tile_program(seed: int, steps: int = 8) -> TileProgram:
    """The program of a seed: so many steps, and its last tiles stored."""
    random = Random(seed)
    warps = random.choice(WARPS if random.random() < 0.75 else MORE_WARPS)
    target = random.choice(TARGETS if random.random() < 0.7 else MORE_TARGETS)
    roles = random.random() < 0.08 and number_of(target) >= 90  # which meet in rings
    k = fragir.kernel("program", warps=None if roles else warps, target=target)
    writer = Writer(random, k, warps, target)
    try:
        with k:
            _write(writer, steps, roles)
    except FragirError as error:
        return TileProgram("", target, writer.sizes, error)
    text = k.mlir
    if writer.staged_loops:  # by passes
        text = text.replace("attributes {", "attributes {frag.prefetch, ", 1)
    return TileProgram(text, target, writer.sizes)


def _write(w: Writer, steps: int, roles: bool) -> None:
    if roles:
        write_roles(w, steps)
        return
    w.keep(w.loaded(w.shape))
    for _ in range(steps):
        w.step(STEPS)
    for number, tile in enumerate(w.tiles[-3:]):
        if tile.element == CONDITION:
            tile = tile.cast(F32)
        shape, turned = list(tile.shape), False
        if len(shape) > 1 and tile.element != BF16 and w.random.random() < 0.15:
            shape[-2:], turned = shape[:-3:-1], True
        result = w.k.memory(f"result{number}", tile.element, shape)
        w.k.store(tile, result, [0] * len(shape), transposed=turned)


# --- judging --------------------------------------------------------------------------------------


@dataclass
class Verdict:
    """What came of a program: what is wrong with it, or why it is refused."""

    findings: list[str]
    refusal: FragirError | None = None
    unjudged: int = 0
    """Elements that no bound judges."""


def check(program: TileProgram, seed: int, assemble: bool) -> Verdict:
    """What is wrong with a program."""
    if program.refusal is not None:
        return Verdict([], program.refusal)
    trips = RoundTrips()
    compiled = attempt(
        lambda: fragir.compile(program.text, target=program.target, observe=trips),
        seconds=COMPILATION,
    )
    found = list(trips.findings)
    if compiled.value is None:
        found += [] if compiled.finding is None else [compiled.finding]
        return Verdict(found, compiled.error if compiled.finding is None else None)
    kernel = compiled.value
    found += trips.ends_alike(kernel.ptx, program.target, seed)
    verdict = Verdict(found)
    run = attempt(
        lambda: verdict.findings.extend(_run(program, kernel, seed, assemble, verdict)),
        seconds=WHOLE,
    )
    if run.finding is not None or run.error is not None:  # what compiles assembles and runs
        verdict.findings.append(run.finding or f"does not run: {run.error}")
    return verdict


def _run(
    program: TileProgram, kernel: fragir.Kernel, seed: int, assemble: bool, verdict: Verdict
) -> Iterator[str]:
    if assemble:
        yield from (f"ptxas: {warning}" for warning in kernel.assembled.warnings)
    function = next(op for op in parse(program.text).ops if isinstance(op, func.FuncOp))
    arguments = slots(function)
    sizes = resolve(arguments, program.sizes, {})
    values = generate(function, arguments, sizes, {}, "normal", seed)
    expected = evaluate(function, values, target=program.target, grid=(1, 1, 1))
    how: dict[str, Any] = {"schedule": seed % 3 or None, "asynchrony": ASYNCHRONY[seed % 3]}
    report = kernel.launch((1, 1, 1), None, *values, on="emulator", check=True, **how)
    yield from map(str, report.findings)
    for number in outputs(function):
        reference, slot = expected[number], arguments[number]
        assert reference is not None
        judged = compare(reference, values[number], slot.element, allow_unjudged=1.0)
        verdict.unjudged += judged.unjudged
        if not judged.passed:
            yield f"{slot.name}: {judged}"


_BRACKETS = re.compile(r"<[^<>]*>")


def kind_of(error: FragirError) -> str:
    """A message without what differs from program to program: types, names, numbers, places."""
    text = re.sub(r'"[^"]*"', '""', error.message)
    while (shorter := _BRACKETS.sub("", text)) != text:
        text = shorter
    text = re.sub(r"^[a-z]+\.\w+: |%[\w#]+", "", text)
    text = re.sub(r"\b[a-z]+(\.\w+){3,}", "an instruction", text)
    text = re.sub(r"\d+(\.\d+)?(x\d+)*", "N", text)
    return " ".join(text.split())[:160]


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 200)


def run(task: Task) -> Result:
    random, findings, kinds, unjudged = task.random(), list[str](), dict[str, int](), 0
    examples: dict[str, str] = {}
    for _ in range(task.parameters["batch"]):
        seed = random.getrandbits(48)
        program = tile_program(seed, task.parameters["steps"])
        verdict = check(program, seed, task.parameters["ptxas"])
        unjudged += verdict.unjudged
        if verdict.refusal is not None:
            kind = f"refused: {kind_of(verdict.refusal)}"
            kinds[kind] = kinds.get(kind, 0) + 1
            examples.setdefault(kind, f"seed {seed}, {program.target}: {verdict.refusal.sentence}")
        where = f"seed {seed}, {program.target}"
        findings += [f"{where}: {each}: {program.text}" for each in verdict.findings]
    counts = {"programs": task.parameters["batch"], "refused": sum(kinds.values())}
    return {"findings": findings, **counts, "unjudged": unjudged, **kinds, "examples": examples}


SWEEP = Sweep(tasks, run, {"batch": 10, "steps": 8, "ptxas": True}, seconds=1200.0)
