"""How long compiling takes: matrix program to PTX, warm and from a cold process.

    python benchmarks/compile.py [--rounds N] [--alone] [--json FILE] [--update PAGE.md]

fragir, Triton and pyptx run in turns, to PTX only: ptxas, which is the same for all, is left out.
Warm: in a process that has compiled before. Cold: a new process from its start to its end.
Triton's and pyptx's programs are `benchmarks/workers/`; pyptx's does more (TMA, specialised warps).
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from measure import Run, Times, here, process, python, take_turns
from neighbours import PYPTX, TRITON, Worker, worker
from programs import (
    DYNAMIC_32,
    DYNAMIC_64,
    MMA_32,
    MMA_64,
    ROOT,
    WGMMA_BF16,
    WGMMA_DYNAMIC,
    WGMMA_F16,
    Product,
)
from report import (
    TIME_COLUMNS,
    Column,
    Report,
    Table,
    arguments,
    command,
    machine,
    present,
    spread,
    status,
)
from rich.console import Console

import fragir

PRODUCTS = (WGMMA_F16, WGMMA_BF16, MMA_64, MMA_32, DYNAMIC_64, DYNAMIC_32, WGMMA_DYNAMIC)
XDSL = "import xdsl.dialects.linalg, xdsl.dialects.scf, xdsl.parser"


def fragir_run(product: Product, program: str, stages: list[dict[str, float]]) -> Run:
    """Compiles a program's text; keeps the time of each stage."""

    def compile() -> None:
        stages.append(fragir.compile(program, target=product.target).stages)

    return here(compile)


def warm(products: tuple[Product, ...], options: argparse.Namespace) -> list[Table]:
    """Compilations in processes that live on, and the stages of ours."""
    wanted = not options.alone
    say = status(Console(stderr=True))
    triton, pyptx = worker(TRITON, wanted), worker(PYPTX, wanted)
    title = Column("product", "product")
    times = Table(
        f"Warm, program to PTX: ms of {options.rounds} runs",
        (title, Column("compiler", "compiler"), *TIME_COLUMNS, Column("ratio", "÷ fragir", ".2f")),
        note="The last column divides the least CPU times.",
    )
    parts = Table("Stages of fragir, warm, least wall ms", (title,))
    try:
        for product in products:
            stages: list[dict[str, float]] = []
            runs = {"fragir": fragir_run(product, product.program, stages)}
            if product.dynamic:
                runs["fragir, sizes of 16"] = fragir_run(product, product.promised, [])
            runs |= neighbours_of(product, triton, pyptx)
            found = take_turns(runs, options.rounds, progress=lambda t, p=product: say(p.name + t))
            times.rows += time_rows({"product": product.name}, found)
            least = {name: min(s[name] for s in stages[1:]) for name in stages[-1]}
            parts.rows.append({"product": product.name, **least})
            names = dict.fromkeys(n for row in parts.rows for n in row if n != "product")
            parts.columns = (title, *(Column(n, n, ".1f") for n in names))
    finally:
        for process_ in (triton, pyptx):
            if process_ is not None:
                process_.close()
    return [times, parts]


def neighbours_of(product: Product, triton: Worker | None, pyptx: Worker | None) -> dict[str, Run]:
    """What stands beside fragir for this product."""
    runs: dict[str, Run] = {}
    if triton is not None:
        runs[TRITON.label] = triton.run(product.triton())
        if product.target == "sm_90a" and not product.dynamic:
            runs[f"{TRITON.label}, TMA"] = triton.run(product.triton("descriptors"))
        if product.dynamic:
            aligned = product.triton(aligned=True)
            runs[f"{TRITON.label}, sizes of 16"] = triton.run(aligned)
    if pyptx is not None and product is WGMMA_BF16:
        runs[f"{PYPTX.label}, its own GEMM"] = pyptx.run({"sizes": [8192] * 3})
    return runs


def cold(options: argparse.Namespace) -> Table:
    """Whole processes, beside the import of xDSL's parser and two dialects."""
    table = Table(
        f"Cold, a whole process to PTX: ms of {options.rounds} runs",
        (Column("compiler", "process"), *TIME_COLUMNS, Column("ratio", "÷ xDSL", ".2f")),
        note="The last column divides medians of CPU time.",
    )
    with tempfile.TemporaryDirectory(prefix="fragir-bench-") as folder:
        # Bytecode as an installed package has it, whatever this environment says of writing it;
        # the round that does not count makes it.
        bytecode = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        program, out = Path(folder, "wgmma.mlir"), str(Path(folder, "out.ptx"))
        program.write_text(WGMMA_F16.program, "utf-8")
        compile_ = python("-m", "fragir.cli.main", "compile")
        gemm = str(ROOT / "examples/gemm.mlir")
        xdsl = "python -c 'import xdsl: linalg, scf, parser'"
        runs = {
            "python -c pass": process(python("-c", "pass"), bytecode),
            xdsl: process(python("-c", XDSL), bytecode),
            "fragir compile examples/gemm.mlir": process([*compile_, gemm, "-o", out], bytecode),
            f"fragir compile, {WGMMA_F16.name}": process(
                [*compile_, str(program), "--target", "sm_90a", "-o", out], bytecode
            ),
        }
        wanted = not options.alone
        if wanted and (words := TRITON.command()):
            for product in (DYNAMIC_32, WGMMA_F16):
                runs[f"{TRITON.label}, {product.name}"] = process(
                    [*words, json.dumps(product.triton())],
                    {**bytecode, "TRITON_CACHE_DIR": folder},
                )
        if wanted and (words := PYPTX.command()):
            runs[f"{PYPTX.label}, its Hopper GEMM"] = process(
                [*words, '{"sizes": [8192, 8192, 8192]}']
            )
        found = take_turns(runs, options.rounds, progress=status(Console(stderr=True)))
        table.rows = [
            {
                "compiler": name,
                **spread(times.summary()),
                "ratio": statistics.median(times.cpu) / statistics.median(found[xdsl].cpu),
            }
            for name, times in found.items()
        ]
    return table


def time_rows(shared: dict[str, str], found: dict[str, Times]) -> list[dict[str, object]]:
    base = min(found["fragir"].cpu)
    return [
        {
            **shared,
            "compiler": name,
            **spread(times.summary()),
            "ratio": min(times.cpu) / base,
        }
        for name, times in found.items()
    ]


def main() -> None:
    parser = arguments(__doc__)
    options = parser.parse_args()
    options.alone |= options.quick
    options.rounds = options.rounds or (1 if options.quick else 15)
    facts = machine(["fragir", "xdsl"])
    tables = warm((WGMMA_F16,) if options.quick else PRODUCTS, options)
    tables.append(cold(options))
    present(Report("compile", command(options), facts, tables), options)


if __name__ == "__main__":
    sys.exit(main())
