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

from neighbours import TRITON, Neighbour, worker
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


def forward(options: argparse.Namespace) -> list[Row]:
    made = runpy.run_path(str(FOLDER / "forward.py"), run_name="example")["forward"]
    triton = worker(TRITON_ATTENTION, not options.alone)
    rows: list[Row] = []
    for tile in TILES[:1] if options.quick else TILES:
        kernel = made(tile.columns, tile.target, (tile.queries, tile.keys, tile.warps))
        ours = {"compiler": "fragir", **counts(kernel.compile().ptx, tile.target)}
        ours["compile"] = least(kernel.compile, options.rounds)
        rows.append({"tile": str(tile), **ours})
        for stages in (1, 2) if triton else ():
            request = tile._asdict() | {"tile": tile[1:4], "stages": stages}
            assert triton is not None
            ptx = triton.ask(request | {"target": int(tile.target[3:5])})["ptx"]
            name = f"{TRITON.label}, {stages} stage{'s' * (stages > 1)}"
            rows.append({"tile": str(tile), "compiler": name, **counts(ptx, tile.target)})
    if triton:
        triton.close()
    return rows


def backward(options: argparse.Namespace) -> list[Row]:
    made = runpy.run_path(str(FOLDER / "backward.py"), run_name="example")
    rows: list[Row] = []
    for name in ("dkdv", "dq"):
        kernel: Any = made[name]
        found = counts(kernel.compile("sm_80").ptx, "sm_80")
        found["compile"] = least(kernel.compile, options.rounds)
        rows.append(
            {"tile": f"{name}, 64x32, d = 64, 4 warps, sm_80", "compiler": "fragir"} | found
        )
    return rows


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.alone |= options.quick
    options.rounds = options.rounds or (1 if options.quick else 10)
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
    tables = [
        Table("SASS of the inner loop, forward", (Column("tile", "tile"), *columns)),
        Table("SASS of the inner loop, backward", (Column("tile", "kernel"), *columns)),
    ]
    tables[0].rows += forward(options)
    tables[1].rows += backward(options)
    facts = machine(["fragir", "nvidia-cuda-nvcc"])
    present(Report("attention", command(options), facts, tables), options)


if __name__ == "__main__":
    sys.exit(main())
