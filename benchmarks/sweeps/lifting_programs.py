"""Random kernels of jumps, guards and moves, lifted, changed and written back: the same results.

A task is one kernel. Its blocks jump anywhere, at most twelve times; most registers are written in
several blocks, under guards, or before nobody has written them. `ROADS` are what happens in
between: nothing, passes, or copies replaced by what they copy, after which registers of the text no
longer tell which values may share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir import emulator
from fragir.compilation import pipeline, program
from fragir.dialects import ptx
from fragir.errors import FragirError
from fragir.sweeps import Plan, Result, Sweep, Task

#: Passes, by name; `copies` is this file's.
ROADS = (
    "",
    "canonicalize,cse,dce",
    "lift-structure",
    "copies",
    "copies,lift-structure,cse",
    "lift-structure,copies,dce",
)
_HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b64 %rd<3>; .reg .b32 %r<12>; .reg .pred %p<4>; .reg .b32 %n;
ld.param.u64 %rd1, [out]; mov.u32 %r0, %tid.x; mov.u32 %n, 0;
"""


def kernel(random: Random) -> str:
    """A kernel of up to seven blocks over up to six registers."""
    blocks = random.randint(2, 7)
    registers = [f"%r{i}" for i in range(1, random.randint(4, 8))]
    lines: list[str] = []
    for register in registers:
        number = random.randint(0, 9)
        start = f"mov.u32 {register}, {number};", f"add.u32 {register}, %r0, {number};"
        lines.append(random.choice(start))
    lines += [f"setp.lt.u32 %p{i}, %r0, {random.randint(0, 32)};" for i in range(4)]
    for block in range(blocks):
        lines.append(f"B{block}: add.u32 %n, %n, 1; setp.gt.u32 %p3, %n, 12; @%p3 bra END;")
        lines += [_statement(random, registers) for _ in range(random.randint(0, 5))]
        way = random.random()
        if way < 0.5:
            lines.append(f"@{random.choice(('', '!'))}%p{random.randint(0, 2)}")
        if way < 0.75:
            lines.append(f"bra B{random.randrange(blocks)};")
    lines.append("END: mul.wide.u32 %rd2, %r0, 32; add.s64 %rd1, %rd1, %rd2;")
    lines += [f"st.global.u32 [%rd1+{4 * i}], {r};" for i, r in enumerate(registers)]
    return _HEAD + "\n".join([*lines, "ret; }\n"])


def _statement(random: Random, registers: Sequence[str]) -> str:
    a, b, c = (random.choice([*registers, "%r0"]) for _ in range(3))
    to, predicate = random.choice(registers), random.randint(0, 2)
    guard = random.choice(("", "", f"@%p{predicate} ", f"@!%p{predicate} "))
    statements = (
        f"mov.u32 {to}, {a};",
        f"mov.u32 {to}, {b};",
        f"add.u32 {to}, {a}, {b};",
        f"mad.lo.u32 {to}, {a}, {b}, {c};",
        f"setp.lt.u32 %p{random.randint(0, 2)}, {a}, {b};",
        f"mov.b64 %rd2, {{{a}, {b}}}; mov.b64 {{{to}, %r11}}, %rd2;",
    )
    return guard + random.choice(statements)


def changed(text: str, road: str) -> str:
    """A kernel that went a road."""
    module = program.lift(text)
    for name in filter(None, road.split(",")):
        if name != "copies":
            pipeline.run(pipeline.parse(name), module)
            continue
        for op in list(module.walk()):
            if isinstance(op, ptx.InstructionOp) and _copies(op):
                op.outputs[0].replace_all_uses_with(op.inputs[0])
                op.detach()
                op.erase()
    return program.emit(program.parse(str(module)))


def _copies(op: ptx.InstructionOp) -> bool:
    return op.statement.data == "mov.u32 $0, $1" and not op.before


def results(text: str) -> npt.NDArray[np.uint32]:
    """What every lane has in its registers at the end."""
    out = np.zeros(32 * 8, np.uint32)
    emulator.run(text, arguments=[out], limit=200_000)
    return out


def run(task: Task) -> Result:
    text = kernel(task.random())
    wanted, findings = results(text), list[str]()
    for road in ROADS:
        try:
            if (results(changed(text, road)) != wanted).any():
                findings.append(f"after {road or 'no pass'} it gives something else")
        except FragirError as error:
            findings.append(f"after {road or 'no pass'}: {error}")
    return {"kernels": len(ROADS), "findings": findings}


def tasks(plan: Plan) -> Sequence[Any]:
    return range(plan.count if plan.count is not None else 1000)


SWEEP = Sweep(tasks, run)
