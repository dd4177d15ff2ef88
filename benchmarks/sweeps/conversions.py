"""Every ordered pair of register layouts of the instruction table, converted on the emulator.

The layouts are those of the matrix operands in registers. A pair has one width of elements and a
least common tile of at most 128 x 256. Beside them, for wgmma's D of every N: against the mma
accumulator, rows of 16 bytes and wgmma's A; and registers of odd number in other orders. A tile
with random elements is loaded in the first layout, converted and stored in the second. It must
arrive, the instructions must be those of the plan, and shared memory must take as many passes as
the plan says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations
from math import lcm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import fragir
from fragir import isa
from fragir.emulator import run as emulate
from fragir.errors import FragirError
from fragir.isa.tiling import tile_layout
from fragir.layout import Layout
from fragir.layout.f2 import rank
from fragir.layout.planning.costs import Features
from fragir.layout.planning.planner import ConversionPlan, Through, plan_conversion
from fragir.passes.lowering.ldmatrix import has_stmatrix
from fragir.sweeps import Plan as Wanted
from fragir.sweeps import Result, Sweep, Task
from fragir.sweeps.definition import sample
from fragir.toolchain.ptxas import assemble

LARGEST = 128, 256  # rows and columns of a pair's tile
WARPGROUP = 128  # lanes of an operand of wgmma
CONVERSION = 5  # its line in a program
ELEMENTS = {1: "ui1", 4: "ui4", 8: "i8", 16: "f16", 32: "i32", 64: "f64"}
NARROW = ("and", "or", "shl", "shr", "mul")  # lanes compute with these too
SHARED = re.compile(r"(st|ld)\.shared(?:\.v(\d))?\.b(\d+)")
Array = npt.NDArray[Any]


class Fragment(NamedTuple):
    """An operand in registers: the first instruction that has it, for one layout."""

    instruction: isa.Instruction
    operand: str
    bits: int
    shape: tuple[int, int]

    @property
    def warpgroups(self) -> bool:
        layout = self.instruction.operand(self.operand).layout
        return layout is not None and layout.size("lane") == WARPGROUP

    def tile(self, shape: tuple[int, int], warps: int) -> Layout:
        """The layout of a tile over all warps: of its rows, of its columns, or replicated."""
        groups = warps // 4 if self.warpgroups else warps
        ways = [(groups, 1), (1, groups), (1, 1)]
        for way in ways if self.operand != "b" else (ways[1], ways[0], ways[2]):
            try:
                return tile_layout(self.instruction, self.operand, shape, way)
            except FragirError:
                continue
        raise FragirError(f"{self} has no tile of {shape} over {warps} warps")

    def __str__(self) -> str:
        return f"{self.instruction.mnemonic} {self.operand}"


class Case(NamedTuple):
    """One conversion."""

    name: str
    bits: int
    source: Layout
    target: Layout
    shape: tuple[int, int]
    warps: int


@cache
def fragments() -> tuple[Fragment, ...]:
    """Every layout of a matrix operand in registers, with the bits of its elements."""
    found: dict[tuple[int, Layout], Fragment] = {}
    for instruction in isa.instructions():
        for name, operand in instruction.operands.items():
            layout = operand.layout
            if name not in "abcd" or layout is None or len(operand.shape) != 2:
                continue
            width = 64 if operand.registers.type == "f64" else 32
            bits = width * operand.registers.count // layout.size("element")
            rows, cols = operand.shape
            found.setdefault((bits, layout), Fragment(instruction, name, bits, (rows, cols)))
    return tuple(found.values())


@cache
def cases() -> tuple[Case, ...]:
    """All conversions, in the order of the table."""
    return (*_pairs(), *_accumulators(), *_orders())


def _pairs() -> Iterator[Case]:
    for source in fragments():
        for target in fragments():
            shape = (
                lcm(source.shape[0], target.shape[0]),
                lcm(source.shape[1], target.shape[1]),
            )
            if source.bits != target.bits or any(
                a > b for a, b in zip(shape, LARGEST, strict=True)
            ):
                continue
            groups = source.warpgroups or target.warpgroups
            warps = shape[0] // 16 if groups else 1
            yield Case(
                f"{source} -> {target}",
                source.bits,
                source.tile(shape, warps),
                target.tile(shape, warps),
                shape,
                warps,
            )


def _accumulators() -> Iterator[Case]:
    """wgmma's D of every N against rows of 16 bytes, both ways; the rest is among the pairs."""
    for fragment in fragments():
        if not fragment.warpgroups or fragment.operand == "a" or fragment.bits not in (16, 32):
            continue
        rows, cols = fragment.shape
        layout = fragment.tile(fragment.shape, 4)
        chunks = _by_rows(rows, cols, fragment.bits)
        for name, pair in (("rows", (layout, chunks)), ("from rows", (chunks, layout))):
            yield Case(f"{fragment} {name}", fragment.bits, *pair, fragment.shape, 4)


def _orders() -> Iterator[Case]:
    """Registers of odd number in other orders: elements stay in their lanes, and words may part.

    What shares a byte stays together.
    """
    orders = [" ".join(order) for order in permutations(("2:(0,1)", "3:(0,2)", "4:(0,6)"))]
    sides = [(order, Layout.parse(f"lane [32:(1,0)] element [{order}]")) for order in orders]
    for bits in (4, 8, 16, 32):
        for (first, source), (second, target) in permutations(sides, 2):
            whole = first.startswith(orders[0][:2]) and second.startswith(orders[0][:2])
            if orders[0] in (first, second) and (bits >= 8 or whole):
                name = f"{bits} bit {first} -> {second}"
                yield Case(name, bits, source, target, (32, 24), 1)


def _by_rows(rows: int, cols: int, bits: int) -> Layout:
    """16 bytes of a row in a lane, the lanes of a warp along the rows first."""
    per = 128 // bits
    beside = cols // per & -(cols // per)
    beside = min(beside, 32)
    return Layout.parse(
        f"warp [4:({rows // 4},0)] "
        f"lane [{beside}:(0,{per}) {32 // beside}:(1,0)] "
        f"element [{per}:(0,1) {rows // 4 * beside // 32}:({32 // beside},0) "
        f"{cols // per // beside}:(0,{per * beside})]"
        if rows // 4 * beside >= 32
        else f"warp [4:({rows // 4},0)] lane [{beside}:(0,{per}) {rows // 4}:(1,0) "
        f"{32 // beside // (rows // 4)}:(0,0)] "
        f"element [{per}:(0,1) {cols // per // beside}:(0,{per * beside})]"
    )


def program(case: Case) -> str:
    """Load, convert, store. The conversion stands alone on line 5.

    Elements of less than a byte lie in memory as the layouts have them in bytes.
    """
    element = ELEMENTS[case.bits]
    rows, cols = case.shape
    lines: list[str] = []
    for layout in (case.source, case.target):
        lines.append(f'!frag.tile<{rows}x{cols}x{element}, #frag.layout<"{layout}">>')
    turned = [transposed(case, layout) for layout in (case.source, case.target)]
    memories = [
        f"memref<{cols}x{rows}x{element}>" if turn else f"memref<{rows}x{cols}x{element}>"
        for turn in turned
    ]
    words = [" transposed" if turn else "" for turn in turned]
    first, second = lines
    return f"""
func.func @k(%a: {memories[0]}, %d: {memories[1]})
    attributes {{frag.warps = array<i64: {case.warps}, 1>}} {{
  %0 = frag.load %a[0, 0]{words[0]} : {memories[0]} -> {first}
  %1 = frag.convert %0 : {first} -> {second}
  frag.store %1, %d[0, 0]{words[1]} : {second}, {memories[1]}
  func.return
}}
"""


def transposed(case: Case, layout: Layout) -> bool:
    """Whether elements that share a byte follow each other down the rows."""
    return case.bits < 8 and layout.axis("element").modes[0].stride[0] == 1


def _memory(case: Case, elements: Array, layout: Layout) -> Array:
    """The tile in memory, two or eight elements to a byte where they are small."""
    given = np.ascontiguousarray(elements.T if transposed(case, layout) else elements)
    if case.bits == 4:
        return np.ascontiguousarray(given[:, ::2] | given[:, 1::2] << 4)
    if case.bits == 1:
        return np.packbits(given, axis=1, bitorder="little")
    return given


def emitted(text: str, line: int = CONVERSION) -> Counter[str]:
    """Instructions that the PTX has for a line of the program, by the names of a plan's counts."""
    found: Counter[str] = Counter()
    here = False
    for statement in text.splitlines():
        stripped = statement.strip()
        if stripped.startswith("// "):
            here = stripped.endswith(f":{line}")
        elif here and stripped:
            name = _name(stripped.split()[0] if stripped[0] != "@" else stripped.split()[1])
            if name is not None:
                found[name] += 1
    return found


def _name(opcode: str) -> str | None:
    shared = SHARED.fullmatch(opcode)
    if shared is not None:
        return f"{shared[1]}.{int(shared[2] or 1) * int(shared[3])}"
    parts = opcode.rstrip(";").split(".")
    if parts[0] in ("ldmatrix", "stmatrix"):
        count = next(part for part in parts if part[0] == "x")
        return f"{parts[0]}.{count}" + ".trans" * ("trans" in parts)
    if parts[:2] == ["bar", "warp"]:
        return "bar.warp.sync"
    if parts[0] == "bar":
        return "bar.sync"
    return parts[0] if parts[0] in ("prmt", "selp", "shfl", "movmatrix") else None


def findings(
    case: Case, seed: int, target: str = "sm_90a", *, ptxas: bool = False
) -> tuple[list[str], ConversionPlan]:
    """What is wrong with a conversion; its plan. With `ptxas` the PTX is assembled too."""
    found: list[str] = []
    features = Features(stmatrix=has_stmatrix(target))
    plan = plan_conversion(case.source, case.target, case.bits, features)
    kernel = fragir.compile(program(case), target=target, comments=True)
    if ptxas:
        assemble(kernel.ptx, target)
    counts = emitted(kernel.ptx)
    planned = {name: n for name, n in plan.counts.items() if name not in NARROW}
    if plan.way != "elements" and counts != Counter(planned):
        found.append(f"emitted {dict(counts)}, planned {plan.counts}")
    rng = np.random.default_rng(seed)
    if case.bits < 8:
        elements = rng.integers(0, 1 << case.bits, case.shape, dtype=np.uint8)
    else:
        raw = rng.integers(0, 256, (*case.shape, case.bits // 8), dtype=np.uint8)
        elements = raw.view(f"u{case.bits // 8}")[..., 0]
    given = _memory(case, elements, case.source)
    wanted = _memory(case, elements, case.target)
    result = np.zeros_like(wanted)
    report = emulate(
        kernel.ptx,
        grid=(1,),
        block=kernel.block,
        arguments=[given, result],
        shared=kernel.shared,
        check=True,
    )
    if not np.array_equal(result, wanted):
        found.append(f"{np.count_nonzero(result != wanted)} of {wanted.size} did not arrive")
    found += [str(finding) for finding in report.findings]
    passes = report.statistics.conflicts["passes"]
    through = (plan.apart or plan).through
    if through is not None and passes != _passes(through, case.warps):
        found.append(
            f"{passes} passes of shared memory, planned {through.passes} "
            f"by each of {case.warps} warps"
        )
    return found, plan


def _passes(through: Through, warps: int) -> int:
    """The passes of all warps; those with copies of what others store may store nothing."""
    stored, loaded = through.passes
    unless = through.turns[0][0][0].unless
    storing = warps if unless is None else warps >> rank(unless.warp)
    return stored * storing + loaded * warps


def tasks(wanted: Wanted) -> Sequence[Any]:
    """The numbers of all conversions, or of `count` drawn ones."""
    return sample(range(len(cases())), wanted)


def run(task: Task) -> Result:
    """One conversion."""
    case: Case = cases()[int(task.what)]
    target, ptxas = task.parameters["target"], task.parameters["ptxas"]
    found, plan = findings(case, task.seed, target, ptxas=ptxas)
    return {
        "way": plan.way,
        "counts": dict(plan.counts),
        "findings": [f"{case.name}: {finding}" for finding in found],
    }


SWEEP = Sweep(tasks, run, {"target": "sm_90a", "ptxas": True}, seconds=120.0)
