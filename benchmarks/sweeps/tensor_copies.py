"""Random programs with copies by TMA, judged by the reference under all schedules.

Matrices of any type, swizzle and size are copied into shared memory from anywhere in an array of
two to four dimensions, its columns or its rows contiguous, by blocks alone or by clusters together;
they are changed by threads, copied or added to global memory, and read back from there, in nested
loops. Compiled, and run with every check, with copies that end early, late and at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import memref_type
from fragir.errors import FragirError
from fragir.reference import compare, evaluate, outputs
from fragir.reference.formats import encode
from fragir.sweeps import Plan, Result, Sweep, Task

SCHEDULES = ((0, "late"), (1, "early"), (2, "random"))
BYTES = {"f16": 2, "bf16": 2, "f32": 4, "i32": 4, "si8": 1, "f8E4M3FN": 1}
COMPUTED = {"f16": "f", "bf16": "f", "f32": "f", "i32": "i"}
"""Types that are computed with and added, and the letter of their arithmetic."""
BLOCKS = 4
"""Of the grid, whatever the cluster."""


class CopyProgram(NamedTuple):
    """A program as text, and the shape of each of its arrays."""

    text: str
    shapes: tuple[tuple[int, ...], ...]
    turned: bool


class _Writer:
    """A program while it grows."""

    def __init__(self, random: Random):
        self.random = random
        self.element = random.choice(list(BYTES))
        size = BYTES[self.element]
        self.swizzle = random.choice([0, 32, 64, 128])
        width = (self.swizzle or random.choice([16, 32, 48, 160])) // size
        self.rows, self.cols = random.choice([8, 16, 24, 40]), width * random.randint(1, 2)
        if not self.swizzle and self.cols > 256:
            self.cols = width
        self.cluster = random.choice([1, 1, 2, 4])
        self.turned = random.random() < 0.2 and not self.swizzle
        self.unit = unit = 16 // size
        self.inner = unit * random.randint(1, 40)
        outer = random.randint(1, 90)
        leading = [random.randint(1, 3) for _ in range(random.choice([0, 0, 0, 1, 2]))]
        last = [self.inner, outer] if self.turned else [outer, self.inner]
        self.source = (*leading, *last)
        space = f"#frag.shared<swizzle = {self.swizzle}>" if self.swizzle else "#frag.shared"
        layout = ""
        if self.turned:  # columns side by side, as in the array
            self.rows = unit * random.randint(1, 3)
            layout = f'#frag.layout<"row [{self.rows}:1] col [{self.cols}:{self.rows}]">, '
        self.buffer = f"memref<{self.rows}x{self.cols}x{self.element}, {layout}{space}>"
        self.tile = f"!frag.tile<{self.rows}x{self.cols}x{self.element}>"
        self.target = f"memref<?x?x{self.element}{', strided<[1, ?]>' if self.turned else ''}>"
        self.loops = [random.randint(1, 3) for _ in range(random.randint(0, 2))]
        self.lines: list[str] = []
        self.arguments: list[str] = []
        self.shapes: list[tuple[int, ...]] = []
        self.depth = self.count = 0
        self.buffers = [f"%s{i}" for i in range(random.randint(1, 3))]
        self.written: list[str] = []  # by copies, at %at

    def line(self, text: str) -> None:
        self.lines.append(f"{'  ' * (self.depth + 1)}{text}")

    def value(self, text: str) -> str:
        self.count += 1
        self.line(f"%v{self.count} = {text}")
        return f"%v{self.count}"

    def argument(self, name: str, type_: str, shape: tuple[int, ...]) -> str:
        self.arguments.append(f"{name}: {type_}")
        self.shapes.append(shape)
        return name

    # --- steps --------------------------------------------------------------------------------

    def copy_in(self, buffer: str) -> None:
        """From anywhere, also from outside; in a cluster all blocks may copy the same."""
        sizes = (*[1] * (len(self.source) - 2), self.rows, self.cols)
        at = [
            self.random.randint(-n // 2, extent)
            for n, extent in zip(sizes, self.source, strict=True)
        ]
        along = -2 if self.turned else -1  # where boxes begin at 16 bytes
        at[along] -= at[along] % self.unit
        many = self.cluster > 1 and self.random.random() < 0.6
        words = [str(n) for n in at]
        if not many and self.random.random() < 0.5:
            words[-2] = "%at"
        how = " multicast" if many else ""
        self.line(
            f"frag.copy tma %a[{', '.join(words)}] to {buffer}[]{how} : {self.of_source} to "
            f"{self.buffer}"
        )

    def work(self) -> None:
        """Threads change what is in a buffer."""
        first, second = (self.random.choice(self.buffers) for _ in range(2))
        tile = self.value(f"frag.load {first}[0, 0] : {self.buffer} -> {self.tile}")
        kind = COMPUTED.get(self.element)
        if kind is not None:
            body = (
                f"^bb0(%x: {self.element}): %y = arith.sub{kind} %one, %x : {self.element} "
                f"frag.yield %y : {self.element}"
            )
            tile = self.value(f"frag.map {tile} : {self.tile} -> {self.tile} {{{body}}}")
        self.line("frag.barrier")
        self.line(f"frag.store {tile}, {second}[0, 0] : {self.tile}, {self.buffer}")

    def copy_out(self) -> None:
        """To places of its own, of which some lie outside; or added where others add."""
        adds = self.element in COMPUTED and self.random.random() < 0.4
        name = f"%c{len(self.shapes)}"
        turns = BLOCKS * int(np.prod(self.loops, dtype=int))
        unit = 16 // BYTES[self.element]
        rows = (1 if adds else turns) * self.rows - self.random.choice([0, 0, 3])
        cols = -(-self.cols // unit) * unit - unit * self.random.choice([0, 0, 1])
        shape = (max(1, rows), max(unit, cols))
        if self.turned:
            shape = (-(-shape[0] // unit) * unit, shape[1])
        self.argument(name, self.target, shape)
        outside = -self.unit if self.turned else -2
        place = "%at" if not adds else str(self.random.choice([0, outside]))
        self.line(
            f"frag.copy tma {'add ' if adds else ''}{self.random.choice(self.buffers)}[] to "
            f"{name}[{place}, 0] : {self.buffer} to {self.target}"
        )
        if not adds:
            self.written.append(name)

    def read_back(self) -> None:
        """Threads read what was copied out a moment ago."""
        if not self.written or self.turned:
            return
        source, name = self.random.choice(self.written), f"%d{len(self.shapes)}"
        number = next(i for i, a in enumerate(self.arguments) if a.startswith(f"{source}:"))
        self.argument(name, self.target, self.shapes[number])
        tile = self.value(f"frag.load {source}[%at, 0] masked : {self.target} -> {self.tile}")
        self.line(f"frag.store {tile}, {name}[%at, 0] masked : {self.tile}, {self.target}")

    def step(self) -> None:
        if self.random.random() < 0.75:
            self.line("frag.barrier")
        kind = self.random.random()
        if kind < 0.3:
            if "frag.barrier" not in self.lines[-1]:
                self.line("frag.barrier")
            many = self.random.randint(1, len(self.buffers))
            for buffer in self.random.sample(self.buffers, many):
                self.copy_in(buffer)
        elif kind < 0.55:
            if "frag.barrier" not in self.lines[-1]:
                self.line("frag.barrier")
            self.work()
        elif kind < 0.9:
            self.copy_out()
        else:
            self.read_back()

    def program(self) -> CopyProgram:
        """The whole of it."""
        stride = ", strided<[?, 1]>" if len(self.source) == 2 and not self.turned else ""
        if self.turned:
            stride = f", strided<[{', '.join(['?'] * (len(self.source) - 2) + ['1', '?'])}]>"
        self.of_source = f"memref<{'x'.join('?' * len(self.source))}x{self.element}{stride}>"
        self.argument("%a", self.of_source, self.source)
        for buffer in self.buffers:
            self.line(f"{buffer} = memref.alloc() : {self.buffer}")
        if self.element in COMPUTED:
            one = "1" if self.element == "i32" else "1.0"
            self.line(f"%one = arith.constant {one} : {self.element}")
        for number in (0, 1, self.rows, *self.loops):
            self.line(f"%n{number}_{self.count} = arith.constant {number} : index")
            self.count += 1
        constants = [line.split()[0] for line in self.lines if "index" in line]
        zero, one, rows, *turns = constants
        lin = self.value("frag.block_id x")
        for turn in turns:
            index = f"%i{self.depth}"
            self.line(f"scf.for {index} = {zero} to {turn} step {one} {{")
            self.depth += 1
            scaled = self.value(f"arith.muli {lin}, {turn} : index")
            lin = self.value(f"arith.addi {scaled}, {index} : index")
        self.line(f"%at = arith.muli {lin}, {rows} : index")
        self.line("frag.barrier")
        for buffer in self.buffers:
            self.copy_in(buffer)
        for _ in range(self.random.randint(3, 8)):
            self.step()
        self.copy_out()
        while self.depth:
            self.depth -= 1
            self.line("}")
        head = f"func.func @copies({', '.join(self.arguments)})"
        attributes = (
            f"frag.cluster = array<i64: {self.cluster}, 1, 1>, frag.grid = #frag.grid<{BLOCKS}>, "
            f"frag.warps = array<i64: {self.random.choice([1, 2])}, 1>"
        )
        body = "\n".join([*self.lines, "  func.return"])
        text = f"{head} attributes {{{attributes}}} {{\n{body}\n}}\n"
        return CopyProgram(text, tuple(self.shapes), self.turned)


def copy_program(seed: int) -> CopyProgram:
    """The program of a seed."""
    return _Writer(Random(seed)).program()


def check(program: CopyProgram, seed: int) -> list[str]:
    """What is wrong with it."""
    module = parse(program.text)
    kernel = fragir.compile(module, target="sm_90a")
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    random = np.random.default_rng(seed)
    names = [element_name(memref_type(a.type).element_type) for a in kernel.signature]
    arrays: list[Any] = []
    for shape, name in zip(program.shapes, names, strict=True):
        values = random.integers(-2, 3, shape)
        array = encode(values if name.startswith(("s", "u")) else values.astype(np.float64), name)
        if program.turned:
            array = np.swapaxes(np.swapaxes(array, -1, -2).copy(), -1, -2)
        arrays.append(array)
    expected = evaluate(function, arrays, target="sm_90a", grid=(BLOCKS, 1, 1))
    for schedule, asynchrony in SCHEDULES:
        given = [a.copy(order="K") for a in arrays]
        report = kernel(
            *given, on="emulator", schedule=schedule or None, asynchrony=asynchrony, check=True
        )
        if report.findings:
            return [f"{asynchrony}: {finding}" for finding in report.findings]
        for number in outputs(function):
            reference = expected[number]
            assert reference is not None
            result = np.ascontiguousarray(given[number])
            found = compare(reference, result, names[number], allow_unjudged=0.0)
            if not found.passed:
                return [f"{asynchrony}: {kernel.signature[number].name}: {found}"]
    return []


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, findings = task.random(), list[str]()
    for _ in range(task.parameters["batch"]):
        seed = random.getrandbits(48)
        program = copy_program(seed)
        try:
            wrong = check(program, seed)
        except FragirError as error:  # of what has too few elements for its threads
            wrong = [] if "threads do not divide" in str(error) else [str(error)]
        findings += [f"seed {seed}: {each}: {program.text}" for each in wrong]
    return {"findings": findings, "programs": task.parameters["batch"]}


SWEEP = Sweep(tasks, run, {"batch": 10}, seconds=600.0)
