"""Random programs with products in flight, judged by the reference under all schedules.

One to three accumulators are added to by asynchronous and other products, from shared memory or
registers that loops write anew, in nested loops and branches that carry them in flight or not; they
are awaited here and there, and begin anew. Compiled, and run with every check, with products that
end early, late and at random.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

import numpy as np
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.errors import FragirError
from fragir.reference import compare, evaluate, outputs
from fragir.sweeps import Plan, Result, Sweep, Task

SCHEDULES = ((0, "late"), (1, "early"), (2, "random"))
TURNS = 2
"""Loops of programs run at most so often: A has rows for so many in each of two."""


class FlightProgram(NamedTuple):
    """A program as text, and how many outputs it has."""

    text: str
    chains: int


@dataclass(frozen=True)
class _Chain:
    """An accumulator: its value by now, and whether it is in flight."""

    value: str
    flying: bool


class _Writer:
    """A program while it grows."""

    def __init__(self, random: Random):
        self.random = random
        self.groups = random.choice([1, 1, 2])
        self.m, self.n, self.k = 64 * self.groups, random.choice([8, 16, 40]), 16
        self.tile = f"!frag.tile<{self.m}x{self.n}xf32>"
        self.flying = f"!frag.in_flight<{self.tile}>"
        self.left = f"!frag.tile<{self.m}x{self.k}xf16>"
        self.rows = f"memref<{self.m * 4}x{self.k}xf16>"
        self.a = f"memref<{self.m}x{self.k}xf16, #frag.shared<swizzle = 32>>"
        self.b = f"memref<{self.n}x{self.k}xf16, #frag.shared<swizzle = 32>>"
        self.lines: list[str] = []
        self.count = self.depth = 0
        self.index = "%c0"  # of the innermost loop
        self.chains: list[_Chain] = []

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def line(self, text: str) -> None:
        self.lines.append(f"{'  ' * (self.depth + 1)}{text}")

    def value(self, text: str) -> str:
        name = self.name()
        self.line(f"{name} = {text}")
        return name

    def type_of(self, chain: _Chain) -> str:
        return self.flying if chain.flying else self.tile

    def condition(self) -> str:
        """The same for all threads: of the turn, or of an argument."""
        word = self.random.choice(["eq", "slt", "ne"])
        return self.value(f"arith.cmpi {word}, {self.index}, %{self.random.choice('pq')} : index")

    # --- steps --------------------------------------------------------------------------------

    def begin(self) -> _Chain:
        """A new accumulator."""
        if self.random.random() < 0.3:  # which the first product sets
            undefined = self.value(f"frag.undefined : {self.flying}")
            return self.product(_Chain(undefined, True), "%no")
        zero = self.value(f"frag.fill %zero : {self.tile}")
        return _Chain(zero, False)

    def left_side(self) -> tuple[str, str]:
        """A: shared memory, or registers that are loaded, and perhaps computed with, here."""
        if self.random.random() < 0.6:
            return f"%a{self.random.randrange(2)}", self.a
        place = self.value(f"arith.muli {self.index}, %rows : index")
        tile = self.value(f"frag.load %x[{place}, 0] : {self.rows} -> {self.left}")
        if self.random.random() < 0.5:
            body = "^bb0(%e: f16): %f = arith.addf %e, %e : f16 frag.yield %f : f16"
            tile = self.value(f"frag.map {tile} : {self.left} -> {self.left} {{{body}}}")
        return tile, self.left

    def product(self, chain: _Chain, only_if: str = "") -> _Chain:
        """One product more."""
        a, type_ = self.left_side()
        asynchronous = chain.flying or self.random.random() < 0.8
        if not only_if and self.random.random() < 0.15:
            only_if = self.condition()
        word = "async " if asynchronous else ""
        scale = f" if {only_if}" if only_if else ""
        types = f"{type_}, {self.b}, {self.type_of(chain)}"
        result = f" -> {self.flying}" if asynchronous else ""
        b = f"%b{self.random.randrange(2)}"
        text = f"frag.wgmma {word}{a}, {b} transposed, {chain.value}{scale} : {types}{result}"
        return _Chain(self.value(text), asynchronous)

    def landed(self, chain: _Chain) -> _Chain:
        """It is waited for."""
        if not chain.flying:
            return chain
        return _Chain(self.value(f"frag.await {chain.value} : {self.flying}"), False)

    def taken_off(self, chain: _Chain) -> _Chain:
        """It is one that products may add to."""
        if chain.flying:
            return chain
        text = f"frag.in_flight {chain.value} : {self.tile} -> {self.flying}"
        return _Chain(self.value(text), True)

    def mapped(self, chain: _Chain) -> _Chain:
        """One more in each element."""
        chain = self.landed(chain)
        body = "^bb0(%e: f32): %f = arith.addf %e, %one : f32 frag.yield %f : f32"
        return _Chain(
            self.value(f"frag.map {chain.value} : {self.tile} -> {self.tile} {{{body}}}"), False
        )

    def step(self, within: bool) -> None:
        """Something to some accumulator; in a branch what is in flight stays so."""
        number = self.random.randrange(len(self.chains))
        chain = self.chains[number]
        kind = self.random.random()
        if self.depth < 3 and kind < 0.3:
            self.random.choice([self.loop, self.loop, self.while_, self.branch])()
        elif kind < 0.7 or (within and chain.flying):
            self.chains[number] = self.product(chain)
        elif kind < 0.8:
            self.chains[number] = self.landed(chain)
        elif kind < 0.9:
            self.chains[number] = self.taken_off(chain)
        else:
            self.chains[number] = self.mapped(chain)

    def steps(self, most: int, within: bool) -> None:
        for _ in range(self.random.randint(1, most)):
            self.step(within)

    # --- control flow -------------------------------------------------------------------------

    @contextmanager
    def _block(self, names: list[str], carried: list[int], index: str) -> Generator[None]:
        """A body that sees the accumulators that it carries, and hands them on as they came."""
        outside, self.chains = self.chains, []
        self.chains = [replace(outside[i], value=n) for i, n in zip(carried, names, strict=True)]
        around, self.index = self.index, index
        self.depth += 1
        yield
        for number, i in enumerate(carried):
            back = self.taken_off if outside[i].flying else self.landed
            self.chains[number] = back(self.chains[number])
        values = ", ".join(chain.value for chain in self.chains)
        self.passed = values
        self.depth -= 1
        self.chains, self.index = outside, around

    def _carried(self) -> tuple[list[int], list[str], str]:
        """Some of the accumulators, names for them, and their types."""
        every = range(len(self.chains))
        carried = sorted(self.random.sample(every, self.random.randint(1, len(every))))
        types = ", ".join(self.type_of(self.chains[i]) for i in carried)
        return carried, [self.name() for _ in carried], types

    def _results(self, carried: list[int], results: list[str]) -> None:
        for i, name in zip(carried, results, strict=True):
            self.chains[i] = replace(self.chains[i], value=name)

    def loop(self) -> None:
        """`scf.for` of none to two turns."""
        carried, names, types = self._carried()
        results, index = [self.name() for _ in carried], self.name()
        starts = ", ".join(
            f"{name} = {self.chains[i].value}" for i, name in zip(carried, names, strict=True)
        )
        upper = self.random.choice(["%p", "%q", "%c2"])
        self.line(
            f"{', '.join(results)} = scf.for {index} = %c0 to {upper} step %c1 "
            f"iter_args({starts}) -> ({types}) {{"
        )
        with self._block(names, carried, index):
            self.steps(3, within=False)
        self.line(f"  scf.yield {self.passed} : {types}")
        self.line("}")
        self._results(carried, results)

    def while_(self) -> None:
        """`scf.while` that counts down."""
        carried, names, types = self._carried()
        results, inner = [self.name() for _ in carried], [self.name() for _ in carried]
        left, count, again = self.name(), self.name(), self.name()
        starts = ", ".join(
            f"{name} = {self.chains[i].value}" for i, name in zip(carried, names, strict=True)
        )
        self.line(
            f"{', '.join(results)}, {left} = scf.while ({starts}, {count} = %q) : "
            f"({types}, index) -> ({types}, index) {{"
        )
        self.line(f"  {again} = arith.cmpi sgt, {count}, %c0 : index")
        self.line(f"  scf.condition({again}) {', '.join(names)}, {count} : {types}, index")
        turn = self.name()
        arguments = ", ".join(f"{n}: {t}" for n, t in zip(inner, types.split(", "), strict=True))
        self.line("} do {")
        self.line(f"^bb0({arguments}, {turn}: index):")
        with self._block(inner, carried, "%c1"):
            self.steps(2, within=False)
            rest = self.value(f"arith.subi {turn}, %c1 : index")
        self.line(f"  scf.yield {self.passed}, {rest} : {types}, index")
        self.line("}")
        self._results(carried, results)

    def branch(self) -> None:
        """`scf.if` with two branches."""
        carried, _, types = self._carried()
        results = [self.name() for _ in carried]
        condition = self.condition()
        self.line(f"{', '.join(results)} = scf.if {condition} -> ({types}) {{")
        for last in (False, True):
            names = [self.chains[i].value for i in carried]
            with self._block(names, carried, self.index):
                if not last or self.random.random() < 0.5:
                    self.steps(2, within=True)
            self.line(f"  scf.yield {self.passed} : {types}")
            self.line("}" if last else "} else {")
        self._results(carried, results)

    def program(self) -> FlightProgram:
        """The whole of it."""
        outputs_ = self.random.randint(1, 3)
        memories = [f"%y{i}: memref<{self.m}x{self.n}xf32>" for i in range(outputs_)]
        whole_b = f"memref<{self.n}x{self.k}xf16>"
        for name in ("%a0", "%a1"):
            self.line(f"{name} = memref.alloc() : {self.a}")
        for name in ("%b0", "%b1"):
            self.line(f"{name} = memref.alloc() : {self.b}")
        for number, value in (("c0", 0), ("c1", 1), ("c2", TURNS), ("rows", self.m)):
            self.line(f"%{number} = arith.constant {value} : index")
        self.line("%no = arith.constant false")
        self.line("%zero = arith.constant 0.0 : f32")
        self.line("%one = arith.constant 1.0 : f32")
        for i in range(2):
            place = f"{i * self.m}, 0"
            self.line(f"frag.copy async %x[{place}] to %a{i}[] : {self.rows} to {self.a}")
            self.line(f"frag.copy async %w{i}[0, 0] to %b{i}[] : {whole_b} to {self.b}")
        for text in ("frag.commit", "frag.wait 0", "frag.barrier"):
            self.line(text)
        self.chains = [self.begin() for _ in range(outputs_)]
        for _ in range(self.random.randint(3, 7)):
            self.step(within=False)
        for i, chain in enumerate(self.chains):
            landed = self.landed(chain)
            self.line(
                f"frag.store {landed.value}, %y{i}[0, 0] : {self.tile}, "
                f"memref<{self.m}x{self.n}xf32>"
            )
        arguments = [f"%x: {self.rows}", f"%w0: {whole_b}", f"%w1: {whole_b}", *memories]
        head = f"func.func @flight({', '.join([*arguments, '%p: index', '%q: index'])})"
        groups = f"frag.warpgroups = array<i64: {self.groups}, 1>"
        body = "\n".join([*self.lines, "  func.return"])
        return FlightProgram(f"{head} attributes {{{groups}}} {{\n{body}\n}}\n", outputs_)


def flight_program(seed: int) -> FlightProgram:
    """The program of a seed."""
    return _Writer(Random(seed)).program()


def check(program: FlightProgram, seed: int) -> list[str]:
    """What is wrong with it; FragirError where it is refused."""
    module = parse(program.text)
    kernel = fragir.compile(module, target="sm_90a")
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    random = np.random.default_rng(seed)
    arrays = [
        random.integers(-2, 3, [n for n in a.dims if isinstance(n, int)]).astype(
            np.float32 if i >= 3 else np.float16
        )
        for i, a in enumerate(kernel.signature)
        if a.is_memory
    ]
    numbers = [int(random.integers(0, TURNS + 1)) for _ in range(2)]
    expected = evaluate(function, [*arrays, *numbers], target="sm_90a", grid=(1, 1, 1))
    for schedule, asynchrony in SCHEDULES:
        given = [a.copy() for a in arrays]
        report = kernel.launch(
            (1, 1, 1), None, *given, *numbers, on="emulator", schedule=schedule or None,
            asynchrony=asynchrony, check=True, target="sm_90a",
        )  # fmt: skip
        if report.findings:
            return [f"{asynchrony}: {finding}" for finding in report.findings]
        for number in outputs(function):
            reference = expected[number]
            assert reference is not None
            found = compare(reference, given[number], "f32", allow_unjudged=0.0)
            if not found.passed:
                return [f"{asynchrony}: {kernel.signature[number].name}: {found}"]
    return []


REFUSED = ("copying", "in other registers")
"""What the messages of programs have in common that are refused with good reason."""


def refused(error: FragirError) -> bool:
    """Whether a program needs a copy of what is in flight."""
    return any(text in str(error) for text in REFUSED)


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, findings, unfit = task.random(), list[str](), 0
    for _ in range(task.parameters["batch"]):
        seed = random.getrandbits(48)
        program = flight_program(seed)
        try:
            wrong = check(program, seed)
        except FragirError as error:
            unfit += refused(error)
            wrong = [] if refused(error) else [str(error)]
        findings += [f"seed {seed}: {each}: {program.text}" for each in wrong]
    return {"findings": findings, "programs": task.parameters["batch"], "refused": unfit}


SWEEP = Sweep(tasks, run, {"batch": 10}, seconds=600.0)
