"""How much PTX comes out, and what ptxas makes of it: fragir beside Triton and pyptx.

    python benchmarks/statements.py [--rounds N] [--alone] [--json FILE] [--update PAGE.md]

Statements are PTX's: instructions and directives in bodies; comments, labels, `.loc` and debug
sections do not count. "In loops" are those between a label and the last branch back to it. The
same ptxas, at its default -O3, assembles everything; its time is a whole process's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from measure import Run, process, take_turns
from neighbours import PYPTX, TRITON, worker
from programs import (
    DYNAMIC_32,
    DYNAMIC_64,
    MMA_32,
    MMA_64,
    WGMMA_BF16,
    WGMMA_DYNAMIC,
    WGMMA_F16,
    Product,
)
from report import Column, Report, Table, arguments, command, machine, present, status
from rich.console import Console

import fragir
from fragir import ptx
from fragir.errors import FragirError
from fragir.ptx import tree
from fragir.toolchain import ptxas, sass
from fragir.toolchain.find import PTXAS, find

PRODUCTS = (MMA_32, MMA_64, WGMMA_F16, WGMMA_BF16, DYNAMIC_32, DYNAMIC_64, WGMMA_DYNAMIC)


def texts(product: Product, wanted: bool) -> dict[str, str]:
    """PTX of one product by compiler."""
    result = {"fragir": fragir.compile(product.program, target=product.target).ptx}
    if product.dynamic:
        promised = fragir.compile(product.promised, target=product.target)
        result["fragir, sizes of 16"] = promised.ptx
    if triton := worker(TRITON, wanted):
        requests = {TRITON.label: product.triton()}
        if product.target == "sm_90a" and not product.dynamic:
            requests[f"{TRITON.label}, TMA"] = product.triton("descriptors")
        if product.dynamic:
            requests[f"{TRITON.label}, sizes of 16"] = product.triton(aligned=True)
        for name, request in requests.items():
            result[name] = triton.ask({**request, "ptx": True})["ptx"]
        triton.close()
    if product is WGMMA_BF16 and (pyptx := worker(PYPTX, wanted)):
        answer = pyptx.ask({"sizes": [8192] * 3, "ptx": True})
        result[f"{PYPTX.label}, its own GEMM"] = answer["ptx"]
        pyptx.close()
    return result


def body(node: tree.Block) -> Iterator[tree.Node]:
    """What stands in a body, inner blocks opened, in order."""
    for item in node.items:
        if isinstance(item, tree.Block):
            yield from body(item)
        else:
            yield item


def counts(text: str) -> dict[str, int]:
    """Statements, instructions among them, and instructions in loops, of all bodies together."""
    statements = instructions = looping = 0
    for function in ptx.parse(text).items:
        if not isinstance(function, tree.Function) or function.body is None:
            continue
        items = list(body(function.body))
        real = [i for i in items if not isinstance(i, tree.Comment | tree.Label | tree.Loc)]
        statements += len(real)
        instructions += sum(isinstance(item, tree.Instruction) for item in real)
        looping += in_loops(items)
    return {
        "statements": statements,
        "instructions": instructions,
        "in_loops": looping,
        "bytes": len(text),
    }


def in_loops(items: Sequence[tree.Node]) -> int:
    """Instructions between a label and a later branch to it."""
    labels: dict[str, int] = {}
    inside: set[int] = set()
    for at, item in enumerate(items):
        if isinstance(item, tree.Label):
            labels[item.name.text] = at
        elif isinstance(item, tree.Instruction) and item.opcode[0] == "bra":
            goal = item.operands[-1]
            if isinstance(goal, tree.Name) and goal.text in labels:
                inside.update(range(labels[goal.text], at + 1))
    return sum(isinstance(items[at], tree.Instruction) for at in inside)


def rows(product: Product, options: argparse.Namespace) -> list[dict[str, object]]:
    found = texts(product, not options.alone)
    tool = str(find(PTXAS).path)
    with tempfile.TemporaryDirectory(prefix="fragir-bench-") as folder:
        runs: dict[str, Run] = {}
        for number, (name, text) in enumerate(found.items()):
            path = Path(folder, f"{number}.ptx")
            path.write_text(text, "utf-8")
            out = str(path.with_suffix(".cubin"))
            runs[name] = process([tool, f"-arch={product.target}", str(path), "-o", out])
        say = status(Console(stderr=True))
        times = take_turns(runs, options.rounds, warm_up=0, progress=say)
    result: list[dict[str, object]] = []
    for name, text in found.items():
        assembled = ptxas.assemble(text, product.target)
        info = next(iter(assembled.entries.values()))
        result.append(
            {
                "product": product.name,
                "compiler": name,
                **counts(text),
                "registers": info.registers,
                "spills": info.spill_stores + info.spill_loads,
                "machine_instructions": machine_instructions(assembled.cubin),
                "warnings": len(assembled.warnings),
                **{f"ptxas_{key}": value for key, value in times[name].summary().items()},
            }
        )
    return result


def machine_instructions(cubin: bytes) -> int | None:
    """Instructions of SASS, padding left out; None without nvdisasm."""
    try:
        found = sass.opcodes(sass.disassemble(cubin))
    except FragirError:
        return None
    return found.total() - found["NOP"]


def main() -> None:
    options = arguments(__doc__).parse_args()
    options.alone |= options.quick
    options.rounds = options.rounds or (1 if options.quick else 7)
    facts = machine(["fragir", "nvidia-cuda-nvcc"])
    table = Table(
        "PTX statements, and what ptxas makes of them",
        (
            Column("product", "product"),
            Column("compiler", "compiler"),
            Column("statements", "statements", "d"),
            Column("instructions", "instructions", "d"),
            Column("in_loops", "in loops", "d"),
            Column("bytes", "bytes", ",d"),
            Column("registers", "registers", "d"),
            Column("spills", "spill bytes", "d"),
            Column("machine_instructions", "SASS", "d"),
            Column("ptxas_cpu_min", "ptxas CPU ms, least", ".0f"),
            Column("ptxas_wall_median", "ptxas wall ms, median", ".0f"),
        ),
    )
    for product in (MMA_32,) if options.quick else PRODUCTS:
        table.rows += rows(product, options)
    present(Report("statements", command(options), facts, [table]), options)


if __name__ == "__main__":
    sys.exit(main())
