"""SASS of the inner loop of attention: fragir beside Triton's kernel of the same program and tile.

    python benchmarks/attention.py [--rounds N] [--alone] [--json FILE] [--update PAGE.md]

The same ptxas assembles everything. A loop stands between a label and the branch back to it; the
inner one is the shortest with tensor-core instructions. "Never" are instructions whose predicate
is false, which ptxas puts where the machine must wait.
"""

from __future__ import annotations

import argparse
import re
import runpy
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from neighbours import TRITON, Neighbour, Worker, worker
from report import Column, Report, Row, Table, arguments, command, machine, present

from fragir.toolchain import ptxas, sass

TRITON_ATTENTION = Neighbour(TRITON.name, TRITON.requirements, "triton_attention.py")
FOLDER = Path(__file__).parents[1] / "examples/attention"
PRODUCTS = ("HMMA", "HGMMA")
MOVES = ("LDSM", "LDS", "STS", "LDG", "LDGSTS", "STSM")
LABEL = re.compile(r"^(\.L_x_\d+):")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z]\w*)(.*?);")


class Tile(NamedTuple):
    """Queries and keys at a time, columns of a head, warps."""

    target: str
    queries: int
    keys: int
    columns: int
    warps: int

    def __str__(self) -> str:
        return f"{self.queries}x{self.keys}, d = {self.columns}, {self.warps} warps, {self.target}"


TILES = (
    Tile("sm_80", 64, 32, 64, 4),
    Tile("sm_80", 128, 64, 128, 8),
    Tile("sm_90a", 128, 64, 64, 8),
    Tile("sm_90a", 128, 64, 128, 8),
)


class Line(NamedTuple):
    """An instruction: its guard (`!P0`, or nothing), opcode and the rest."""

    guard: str
    opcode: str
    rest: str


def inner_loop(text: str) -> list[Line]:
    """The shortest loop with products, of the SASS of one kernel."""
    labels: dict[str, int] = {}
    lines: list[Line] = []
    loops: list[list[Line]] = []
    for row in text.splitlines():
        if label := LABEL.match(row):
            labels[label[1]] = len(lines)
        elif found := INSTRUCTION.match(row):
            lines.append(Line(found[1] or "", found[2], found[3]))
            goal = re.search(r"\((\.L_x_\d+)\)", found[3])
            if found[2] == "BRA" and goal and goal[1] in labels:
                loops.append(lines[labels[goal[1]] :])
    return min((x for x in loops if any(y.opcode in PRODUCTS for y in x)), key=len)


def counts(ptx: str, target: str) -> Row:
    """What stands in the inner loop, by kind."""
    assembled = ptxas.assemble(ptx, target)
    info = next(iter(assembled.entries.values()))
    loop = inner_loop(sass.disassemble(assembled.cubin))
    found = Counter(line.opcode for line in loop if line.guard not in ("!PT", "!UPT"))
    products = sum(found[name] for name in PRODUCTS)
    return {
        "loop": len(loop),
        "products": products,
        "outside": len(loop) - products,
        "never": len(loop) - found.total(),
        "moves": sum(found[name] for name in MOVES),
        "exchanges": found["SHFL"],
        "registers": info.registers,
        "spills": info.spill_stores + info.spill_loads,
        "opcodes": dict(found.most_common()),
    }


def least(compiled: Callable[[], Any], rounds: int) -> float:
    """The least process time of compilations, in ms; the first does not count."""
    times: list[float] = []
    for _ in range(rounds + 1):
        start = time.process_time()
        compiled()
        times.append((time.process_time() - start) * 1e3)
    return min(times[1:])


def beside(
    kernel: Any, name: str, tile: Tile, triton: Worker | None, options: argparse.Namespace
) -> list[Row]:
    """A kernel's row, and those of Triton's."""
    ours = counts(kernel.compile(tile.target).ptx, tile.target)
    ours["compile"] = least(lambda: kernel.compile(tile.target), options.rounds)
    rows: list[Row] = [{"compiler": "fragir", **ours}]
    for stages in (1, 2) if triton else ():
        assert triton is not None
        request = {"kernel": name, "tile": tile[1:4], "warps": tile.warps, "stages": stages}
        ptx = triton.ask(request | {"target": int(tile.target[3:5])})["ptx"]
        label = f"{TRITON.label}, {stages} stage{'s' * (stages > 1)}"
        rows.append({"compiler": label, **counts(ptx, tile.target)})
    return [{"tile": f"{name}, {tile}", **row} for row in rows]


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.alone |= options.quick
    options.rounds = options.rounds or (1 if options.quick else 25)
    columns = (
        Column("compiler", "compiler"),
        Column("loop", "loop", "d"),
        Column("products", "products", "d"),
        Column("outside", "outside", "d"),
        Column("never", "of them never", "d"),
        Column("moves", "loads and stores", "d"),
        Column("exchanges", "shuffles", "d"),
        Column("registers", "registers", "d"),
        Column("spills", "spill bytes", "d"),
        Column("compile", "to PTX, CPU ms, least", ".0f"),
    )
    table = Table("SASS of the inner loop", (Column("tile", "kernel, tile"), *columns))
    triton = worker(TRITON_ATTENTION, not options.alone)
    forward, backward = (
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="example")
        for name in ("forward", "backward")
    )
    for tile in TILES[:1] if options.quick else TILES:
        kernel = forward["forward"](tile.columns, tile.target, (*tile[1:3], tile.warps))
        table.rows += beside(kernel, "attention", tile, triton, options)
    for name, queries, keys in (("dkdv", 32, 64), ("dq", 64, 32)):
        tile = Tile("sm_80", queries, keys, 64, 4)
        table.rows += beside(backward[name], name, tile, triton, options)
    if triton:
        triton.close()
    facts = machine(["fragir", "nvidia-cuda-nvcc"])
    present(Report("attention", command(options), facts, [table]), options)


if __name__ == "__main__":
    sys.exit(main())
