"""How compile time grows with a program, and what each kernel of examples/ takes.

    python benchmarks/growth.py [--rounds N] [--json FILE] [--update PAGE.md]

A step, written one, two, four and eight times into one kernel, warm and to PTX: time for each step
should stay what it is for one.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from measure import Run, here, take_turns
from programs import ROOT
from report import Column, Report, Table, arguments, command, machine, present, status
from rich.console import Console
from xdsl.dialects import func

import fragir
from fragir import Tile, f16, f32
from fragir.builder.kernel import KernelBuilder
from fragir.compiler import parse

TIMES = (1, 2, 4, 8)
EXAMPLES = ROOT / "examples"


def softmaxes(count: int) -> KernelBuilder:
    """Rows through so many softmaxes."""
    with fragir.kernel("softmaxes", warps=(4, 1)) as k:
        x = k.memory("x", f32, ("m", 256))
        k.grid("m / 16")
        row = k.block_id() * 16
        t = k.load(x, (row, 0), shape=(16, 256), masked=True)
        for _ in range(count):
            e = k.exp(t - t.max(1, keepdims=True))
            t = e / e.sum(1, keepdims=True)
        k.store(t, x, (row, 0), masked=True)
    return k


def products(count: int) -> KernelBuilder:
    """A tile through so many products, each the next one's A."""
    with fragir.kernel("products", warps=(4, 1)) as k:
        x = k.memory("x", f16, (64, 64))
        w = k.memory("w", f16, (count, 64, 64))
        slot = k.shared((64, 64), f16, swizzle=128)
        t = k.load(x, (0, 0), shape=(64, 64))
        for number in range(count):
            k.barrier()
            k.copy(w, (number, 0, 0), slot, asynchronous=True)
            k.commit()
            k.wait()
            k.barrier()
            right = k.load(slot, (0, 0), shape=(64, 64))
            t = k.mma(t, right, k.fill(0, (64, 64), f32)).cast(f16)
        k.store(t, x, (0, 0))
    return k


def loops(count: int) -> KernelBuilder:
    """So many loops behind each other, each with two tiles that it carries."""
    with fragir.kernel("loops", warps=(4, 1)) as k:
        x = k.memory("x", f32, ("m", "n"))
        y = k.memory("y", f32, ("m",))
        k.grid("m / 16")
        row = k.block_id() * 16
        total: Tile = k.fill(0, (16,), f32)
        for _ in range(count):
            with k.loop(0, k.size("n"), 128, s=total, q=total) as loop:
                t = k.load(x, (row, loop.index), shape=(16, 128), masked=True)
                loop.s = loop.s + t.sum(1)
                loop.q = loop.q + (t * t).sum(1)
            total = loop.s * loop.q
        k.store(total, y, (row,), masked=True)
    return k


STEPS: dict[str, Callable[[int], KernelBuilder]] = {
    "softmax of 16x256": softmaxes,
    "product 64x64x64": products,
    "loop with two reductions": loops,
}


def compilation(text: str, target: str, entry: str | None = None) -> Run:
    """To PTX, from the program's text."""
    return here(lambda: fragir.compile(text, target=target, entry=entry))


def growth(rounds: int, quick: bool) -> Table:
    """The least CPU time of each step's programs, and of one step of them."""
    counts = TIMES[:2] if quick else TIMES
    table = Table(
        f"Steps in a kernel: least CPU ms of {rounds} runs, and for each step of what one takes",
        (
            Column("step", "step"),
            *(Column(f"ms{n}", f"{n}x", ".1f") for n in counts),
            *(Column(f"share{n}", f"a step of {n}x", ".2f") for n in counts[1:]),
        ),
    )
    say = status(Console(stderr=True))
    for name, write in STEPS.items():
        runs = {str(n): compilation(write(n).mlir, "sm_80") for n in counts}
        found = take_turns(runs, rounds, progress=lambda t, name=name: say(name + t))
        least = {n: min(found[str(n)].cpu) for n in counts}
        row: dict[str, object] = {"step": name, **{f"ms{n}": least[n] for n in counts}}
        table.rows.append(row | {f"share{n}": least[n] / n / least[1] for n in counts[1:]})
    return table


def kernels(rounds: int, quick: bool) -> Table:
    """Every kernel of a family: compile time, statements."""
    table = Table(
        f"Kernels of examples/: least CPU ms of {rounds} runs",
        (
            Column("kernel", "kernel"),
            Column("target", "target"),
            Column("ms", "ms", ".1f"),
            Column("statements", "statements", "d"),
        ),
    )
    say = status(Console(stderr=True))
    for path in sorted(EXAMPLES.glob("*/*.mlir"))[: 2 if quick else None]:
        text = path.read_text("utf-8")
        for function in parse(text, path.name).ops:
            if not isinstance(function, func.FuncOp):
                continue
            entry, target = function.sym_name.data, target_of(function)
            name = f"{path.parent.name}/{path.stem}"
            name += "" if entry == path.stem else f", {entry}"
            runs = {name: compilation(text, target, entry)}
            found = take_turns(runs, rounds, progress=lambda t, name=name: say(name + t))
            ptx = fragir.compile(text, target=target, entry=entry).ptx
            row = {"kernel": name, "target": target, "ms": min(found[name].cpu)}
            table.rows.append({**row, "statements": ptx.count(";")})
    return table


def target_of(function: func.FuncOp) -> str:
    """The oldest of a few targets that has what a function uses."""
    names = {op.name for op in function.walk()}
    if "frag.wgmma" in names:
        return "sm_90a"
    if any(op.name == "frag.mma" and op.operands[3:] for op in function.walk()):
        return "sm_120a"  # with scales
    text = str(function)
    return "sm_89" if "f8E4M3FN" in text or "f8E5M2" in text else "sm_80"


def main() -> None:
    parser = arguments(__doc__)
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 9)
    facts = machine(["fragir", "xdsl"])
    tables = [growth(options.rounds, options.quick), kernels(options.rounds, options.quick)]
    present(Report("growth", command(options), facts, tables), options)


if __name__ == "__main__":
    sys.exit(main())
