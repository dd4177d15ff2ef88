"""Random programs with rings: slots filled ahead by every way of copying, read, carried, released.

Each is compiled and run with every check, with copies that end early, late and at random, and must
copy what it says. The suite runs a few of them (tests/passes/test_rings.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, NamedTuple

import numpy as np

import fragir
from fragir.sweeps import Plan, Result, Sweep, Task

TARGETS = {"tma": ("sm_90a", "sm_120a")}
OTHERS = ("sm_75", "sm_80", "sm_90a")
ROWS, COLS = 16, 64
MEMORY = f"memref<{ROWS}x{COLS}xf16, #frag.shared<swizzle = 128>>"
TILE = f"!frag.tile<{ROWS}x{COLS}xf16>"
BLOCKS = 16
X, Y = f"memref<{BLOCKS * ROWS}x{COLS}xf16>", f"memref<{2 * BLOCKS * ROWS}x{COLS}xf16>"
COPIES = {
    "async": f"frag.copy async %x{{r}}[%{{row}}, 0] to %{{to}}[] : {X} to {MEMORY}",
    "plain": f"frag.copy %x{{r}}[%{{row}}, 0] to %{{to}}[] : {X} to {MEMORY}",
    "tile": f"%{{to}}_t = frag.load %x{{r}}[%{{row}}, 0] : {X} -> {TILE}\n"
    f"frag.store %{{to}}_t, %{{to}}[0, 0] : {TILE}, {MEMORY}",
    "tma": f"frag.copy tma %x{{r}}[%{{row}}, 0] to %{{to}}[] : {X} to {MEMORY}",
}


class Pipeline(NamedTuple):
    """A loop that reads slots which are filled some turns ahead."""

    slots: int
    ahead: int
    order: str
    """When the next slot is filled: "first", ahead of reading one; "last", once that is released;
    "carried": as "first", and a slot is released a turn after it is read."""
    copies: str
    rings: int
    warps: int
    nested: bool

    def text(self) -> str:
        lines: list[str] = []
        emit = lines.append
        for ring in range(self.rings):
            emit(f"%r{ring} = frag.ring {self.slots} : !ring")
        outer = "%c2" if self.nested else "%c1"
        emit(f"scf.for %o = %c0 to {outer} step %c1 {{")
        emit("%base = arith.muli %o, %half : index")
        for turn in range(self.ahead):
            emit(f"%row{turn} = arith.constant {turn * ROWS} : index")
            lines += self.fill(f"p{turn}", f"row{turn}")
        carried = self.order == "carried"
        if carried:
            lines += [f"%none{r} = frag.no_slot : !slot" for r in range(self.rings)]
            results = ", ".join(f"%last{r}" for r in range(self.rings))
            starts = ", ".join(f"%old{r} = %none{r}" for r in range(self.rings))
            types = ", ".join(["!slot"] * self.rings)
            emit(f"{results} = scf.for %i = %c0 to %n step %c1 iter_args({starts}) -> ({types}) {{")
        else:
            emit("scf.for %i = %c0 to %n step %c1 {")
        emit("%at = arith.muli %i, %rows : index")
        emit("%next = arith.addi %at, %ahead : index")
        emit("%out = arith.addi %at, %base : index")
        if self.ahead == 0:
            lines += self.fill("f", "next")
        for ring in range(self.rings):
            emit(f"%s{ring} = frag.await %r{ring} : !ring")
        if carried:
            lines += [f"frag.release %old{r} : !slot" for r in range(self.rings)]
        if self.ahead and self.order != "last":
            lines += self.fill("f", "next")
        for ring in range(self.rings):
            emit(f"%m{ring} = frag.part %s{ring}[0] : !slot")
            emit(f"%t{ring} = frag.load %m{ring}[0, 0] : {MEMORY} -> {TILE}")
        if not carried:
            lines += [f"frag.release %s{r} : !slot" for r in range(self.rings)]
        if self.ahead and self.order == "last":
            lines += self.fill("f", "next")
        result = "%t0"
        if self.rings == 2:
            result = "%sum"
            lines += [
                f"%sum = frag.map %t0, %t1 : {TILE}, {TILE} -> {TILE} {{",
                "^bb0(%u: f16, %v: f16):",
                "%w = arith.addf %u, %v : f16",
                "frag.yield %w : f16",
                "}",
            ]
        emit(f"frag.store {result}, %y[%out, 0] : {TILE}, {Y}")
        if carried:
            names = ", ".join(f"%s{r}" for r in range(self.rings))
            emit(f"scf.yield {names} : {', '.join(['!slot'] * self.rings)}")
        emit("}")
        if carried:
            lines += [f"frag.release %last{r} : !slot" for r in range(self.rings)]
        if self.nested:  # the next round finds rings that are empty
            for turn in range(self.ahead):
                for ring in range(self.rings):
                    emit(f"%d{turn}_{ring} = frag.await %r{ring} : !ring")
                    emit(f"frag.release %d{turn}_{ring} : !slot")
        emit("}")
        body = "\n".join(lines)
        return f"""
!ring = !frag.ring<{MEMORY}>
!slot = !frag.slot<{MEMORY}>
func.func @f(%x0: {X}, %x1: {X}, %y: {Y}, %n: index)
    attributes {{frag.warps = array<i64: {self.warps}, 1>}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %rows = arith.constant {ROWS} : index
  %half = arith.constant {BLOCKS * ROWS} : index
  %ahead = arith.constant {self.ahead * ROWS} : index
  {body}
  func.return
}}"""

    def fill(self, name: str, row: str) -> list[str]:
        """Acquires a slot of every ring, copies to it, and publishes it."""
        lines: list[str] = []
        for r in range(self.rings):
            copy = COPIES[self.copies].format(r=r, row=row, to=f"{name}m{r}")
            lines += [
                f"%{name}{r} = frag.acquire %r{r} : !ring",
                f"%{name}m{r} = frag.part %{name}{r}[0] : !slot",
                copy,
                f"frag.publish %{name}{r} : !slot",
            ]
        return lines


def room(slots: int, order: str) -> int:
    """How many slots may be filled ahead; below 0 where the order takes more slots than these."""
    return slots - {"last": 0, "first": 1, "carried": 2}[order]


def pipeline(random: Random) -> Pipeline:
    """A random one."""
    slots = random.randint(1, 5)
    order = random.choice([o for o in ORDERS if room(slots, o) >= (o == "carried")])
    ahead = random.randint(order == "carried", room(slots, order))
    copies, warps = random.choice(sorted(COPIES)), random.choice([1, 2, 4])
    return Pipeline(slots, ahead, order, copies, random.randint(1, 2), warps, random.random() < 0.5)


ORDERS = ("first", "last", "carried")


def check(program: Pipeline, target: str, trips: int, seed: int) -> list[str]:
    """What is wrong with it, whatever order warps run in and copies end in."""
    kernel = fragir.compile(program.text(), target=target)
    rng = np.random.default_rng(seed)
    x = [rng.standard_normal((BLOCKS * ROWS, COLS)).astype(np.float16) for _ in range(2)]
    rows, wanted = trips * ROWS, x[0] + x[1] if program.rings == 2 else x[0]
    for asynchrony in ("late", "early", "random"):
        y = np.zeros((2 * BLOCKS * ROWS, COLS), np.float16)
        report = kernel.launch(
            (1, 1, 1), None, *x, y, trips, on="emulator", check=True, schedule=seed + 1,
            asynchrony=asynchrony, target=target,
        )  # fmt: skip
        if report.findings:
            return [f"{asynchrony}: {finding}" for finding in report.findings]
        for first in (0, BLOCKS * ROWS)[: 1 + program.nested]:
            if not np.array_equal(y[first : first + rows], wanted[:rows]):
                return [f"{asynchrony}: other values"]
    return []


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 100)


def run(task: Task) -> Result:
    random, findings = task.random(), list[str]()
    for _ in range(task.parameters["batch"]):
        program, trips, seed = pipeline(random), random.randint(0, 9), random.getrandbits(20)
        target = random.choice(TARGETS.get(program.copies, OTHERS))
        wrong = check(program, target, trips, seed)
        findings += [f"{each}: {target}, {trips} turns: {program.text()}" for each in wrong]
    return {"findings": findings, "programs": task.parameters["batch"]}


SWEEP = Sweep(tasks, run, {"batch": 10}, seconds=600.0)
