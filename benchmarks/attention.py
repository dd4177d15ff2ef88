"""SASS of the inner loop of attention: fragir beside Triton's kernel of the same program and tile.

    python benchmarks/attention.py [--rounds N] [--alone] [--json FILE] [--update PAGE.md]

The same ptxas assembles everything. The inner loop is the shortest with tensor-core instructions:
of the overlapped kernel that over keys which all queries see. "Never" are instructions whose
predicate is false, which ptxas puts where the machine must wait.
"""

from __future__ import annotations

import argparse
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
from fragir.toolchain.sass_loops import loops

TRITON_ATTENTION = Neighbour(TRITON.name, TRITON.requirements, "triton_attention.py")
FOLDER = Path(__file__).parents[1] / "examples/attention"
PRODUCTS = ("HMMA", "HGMMA")
MOVES = ("LDSM", "LDS", "STS", "LDG", "LDGSTS", "STSM")


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


def counts(ptx: str, target: str) -> Row:
    """What stands in the inner loop, by kind."""
    assembled = ptxas.assemble(ptx, target)
    info = next(iter(assembled.entries.values()))
    with_products = (x for x in loops(sass.disassemble(assembled.cubin)) if x.tensor)
    loop = min((x.instructions for x in with_products), key=len)
    never = [one for one in loop if one.text.startswith(("@!PT ", "@!UPT "))]
    found = Counter(one.opcode.partition(".")[0] for one in loop if one not in never)
    products = sum(found[name] for name in PRODUCTS)
    return {
        "loop": len(loop),
        "products": products,
        "outside": len(loop) - products,
        "never": len(never),
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
    kernel: Any,
    name: str,
    tile: Tile,
    triton: Worker | None,
    options: argparse.Namespace,
    how: str = "",
) -> list[Row]:
    """A kernel's row, and those of Triton's."""
    ours = counts(kernel.compile(tile.target).ptx, tile.target)
    ours["compile"] = least(lambda: kernel.compile(tile.target), options.rounds)
    rows: list[Row] = [{"compiler": f"fragir{how}", **ours}]
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
    forward, overlapped, backward = (
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="example")
        for name in ("forward", "forward_overlapped", "backward")
    )
    for tile in TILES[:1] if options.quick else TILES:
        kernel = forward["forward"](tile.columns, tile.target, (*tile[1:3], tile.warps))
        table.rows += beside(kernel, "attention", tile, triton, options)
    for columns in () if options.quick else (64, 128):
        tile = Tile("sm_90a", 128, 128, columns, 8)
        kernel = overlapped["forward"](columns)
        table.rows += beside(kernel, "attention", tile, triton, options, ", overlapped")
    for name, queries, keys in (("dkdv", 32, 64), ("dq", 64, 32)):
        tile = Tile("sm_80", queries, keys, 64, 4)
        table.rows += beside(backward[name], name, tile, triton, options)
    if triton:
        triton.close()
    facts = machine(["fragir", "nvidia-cuda-nvcc"])
    present(Report("attention", command(options), facts, [table]), options)


if __name__ == "__main__":
    sys.exit(main())
