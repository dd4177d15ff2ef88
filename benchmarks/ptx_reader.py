"""MB/s of the PTX reader, cold and warm, beside plain Lark over the same grammar and pyptx.

    python benchmarks/ptx_reader.py [FILE.ptx ...] [--rounds N] [--json FILE] [--update PAGE.md]

Without files: what nvcc makes of tests/ptx/kernels where there is an nvcc, else tests/ptx/data;
and what fragir and Triton make of the products of `benchmarks/compile.py`. Cold: only the
shapes that come with the package are known, for each file anew. Bare: not even these, but the
grammar is loaded. Warm: the file was read before. Least CPU
times, positions and a tree of our own nodes included. pyptx's is over the files that it reads.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from neighbours import PYPTX, TRITON, Worker, worker
from programs import DYNAMIC_32, MMA_64, ROOT, WGMMA_F16
from report import Column, Report, Row, Table, arguments, command, machine, present

import fragir
from fragir.emulator import run
from fragir.ptx import PtxSyntaxError, parse, write
from fragir.ptx.operands import forget

PRODUCTS = (WGMMA_F16, MMA_64, DYNAMIC_32)


def least(function: Callable[[], object], runs: int) -> float:
    """The least CPU time of several runs, in ms."""
    best = float("inf")
    for _ in range(runs):
        start = time.process_time()
        function()
        best = min(best, time.process_time() - start)
    return best * 1e3


def cold(text: str, shipped: bool = False) -> None:
    """Reads a text with no shapes learnt; `shipped`: those of the package are forgotten too."""
    forget(shipped=shipped)
    parse(text)


def by_nvcc(folder: Path) -> list[Path]:
    if shutil.which("nvcc") is None:
        return sorted((ROOT / "tests/ptx/data").glob("*.ptx"))
    spec = importlib.util.spec_from_file_location("make_data", ROOT / "tests/ptx/make_data.py")
    assert spec is not None
    assert spec.loader is not None
    make_data = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_data)
    paths: list[Path] = []
    for name, target, options in make_data.MADE:
        paths.append(folder / f"{name}_{target}{''.join(options)}.ptx")
        paths[-1].write_text(make_data.compile_kernel(name, target, options), "utf-8")
    return paths


def compiled(folder: Path, triton: Worker | None) -> list[Path]:
    """The products, by fragir and by Triton."""
    paths: list[Path] = []
    for product in PRODUCTS:
        texts = {"fragir": fragir.compile(product.program, target=product.target).ptx}
        if triton is not None:
            texts["triton"] = triton.ask({**product.triton(), "ptx": True})["ptx"]
        for name, text in texts.items():
            paths.append(folder / f"{name} {product.name}.ptx")
            paths[-1].write_text(text, "utf-8")
    return paths


def group(path: Path, text: str) -> str:
    if path.stem.partition(" ")[0] in ("fragir", "triton"):
        return f"{path.stem.partition(' ')[0]}'s GEMMs"
    return "with debug sections" if "\t.section" in text else "without debug sections"


def measured(paths: list[Path], options: argparse.Namespace, pyptx: Worker | None) -> Table:
    """MB/s of groups of files, of each file with `--each`."""
    table = Table(
        "Reading PTX, MB/s",
        (
            Column("file", "files"),
            Column("bytes", "bytes", ",d"),
            Column("cold", "cold", ".2f"),
            Column("bare", "bare", ".2f"),
            Column("warm", "warm", ".2f"),
            Column("lark", "plain Lark", ".2f"),
            Column("pyptx", PYPTX.label, ".2f"),
            Column("write", "writing", ".1f"),
        ),
    )
    runs, groups = options.rounds, dict[str, dict[str, tuple[int, float]]]()
    parse("", cache=False)
    parse(".version 1.0\n.func f() { ret; }")  # the regular expressions of the quick way
    for path in paths:
        text = path.read_text("utf-8")
        try:
            module = parse(text, str(path))
        except PtxSyntaxError as error:
            sys.exit(str(error))
        times: dict[str, float | None] = {
            "cold": least(lambda text=text: cold(text), runs),
            "bare": least(lambda text=text: cold(text, shipped=True), runs),
            "warm": least(lambda text=text: parse(text), runs),
            "lark": least(lambda text=text: parse(text, cache=False), min(runs, 2)),
            "write": least(lambda module=module: write(module), runs),
        }
        if pyptx is not None:
            times["pyptx"] = pyptx.ask({"path": str(path.resolve()), "runs": min(runs, 3)})["ms"]
        known = {way: ms for way, ms in times.items() if ms is not None}
        size = len(text.encode())
        if options.each:
            rates = {way: size / ms / 1e3 for way, ms in known.items()}
            table.rows.append({"file": path.stem, "bytes": size, **rates})
        totals = groups.setdefault(group(path, text), {})
        for way, ms in known.items():
            total, spent = totals.get(way, (0, 0.0))
            totals[way] = total + size, spent + ms
    for name, ways in groups.items():
        rates = {way: total / spent / 1e3 for way, (total, spent) in ways.items()}
        table.rows.append({"file": name, "bytes": ways["cold"][0], **rates})
    return table


KERNELS, STEPS = 400, 290
"""Those of a text of 4 MB, and the statements of one beside what it begins and ends with."""


def kernel(number: int, steps: int) -> str:
    """A kernel that computes something of the thread's number, straight on."""
    lines = [f"mov.u32 %r{i}, %tid.x;" for i in range(1, 92)]
    for i in range(steps):
        to, left, right = f"%r{i % 90 + 1}", f"%r{i * 7 % 90 + 1}", f"%r{i * 3 % 90 + 1}"
        if i % 4 == 0:
            lines.append(f"mad.lo.u32 \t{to}, {left}, {number + i}, {right}; // step {i}")
        else:
            lines.append(f"add.u32 \t{to}, {left}, {right};")
        if i % 16 == 5:
            lines.append(f"mov.b32 \t{{%rs1, %rs2}}, {to};")
        if i % 50 == 7:
            lines.append(f"$L{number}_{i}:")
    body = "\n\t".join(lines)
    return f"""
.visible .entry k{number}(
\t.param .u64 .ptr .global .align 4 k{number}_param_0
)
.maxntid 128, 1, 1
{{
\t.reg .b16 %rs<3>;
\t.reg .b32 %r<100>;
\t.reg .b64 %rd<3>;

\t{body}
\tld.param.u64 %rd1, [k{number}_param_0];
\tcvta.to.global.u64 %rd2, %rd1;
\tst.global.u32 [%rd2], %r5;
\tret;
}}
"""


def launches(kernels: int) -> Table:
    """The first and the second launch out of a large text, beside one of the kernel alone."""
    head = ".version 8.4\n.target sm_80\n.address_size 64\n"
    table = Table(
        "A launch of one kernel of a text, with every check: wall ms",
        (
            Column("kernels", "kernels", "d"),
            Column("bytes", "bytes", ",d"),
            Column("first", "first", ".1f"),
            Column("second", "second", ".1f"),
            Column("more", "second, more than it executes", ".1f"),
        ),
        note="Where the text has one kernel, all of it is read.",
    )
    for count in (1, kernels):
        text = head + "".join(kernel(number, STEPS) for number in range(count))
        row: Row = {"kernels": count, "bytes": len(text)}
        for name in ("first", "second"):
            out, start = np.zeros(1, np.uint32), time.perf_counter()
            found = run(text + " ", "k0", arguments=[out], check=True).statistics
            row[name] = (time.perf_counter() - start) * 1e3
            row["more"] = found.decode_seconds * 1e3
        table.rows.append(row)
    return table


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--each", action="store_true", help="a row for each file")
    options = parser.parse_args()
    options.alone |= options.quick
    options.rounds = options.rounds or (1 if options.quick else 5)
    facts = machine(["fragir", "lark"])
    wanted = not options.alone
    pyptx = worker(replace(PYPTX, worker="pyptx_reader.py"), wanted)
    triton = worker(TRITON, wanted and not options.files)
    try:
        with tempfile.TemporaryDirectory(prefix="fragir-bench-") as name:
            folder = Path(name)
            if options.quick and not options.files:
                options.files = [*(ROOT / "tests/ptx/data").glob("nvcc_calls*.ptx")]
            paths: list[Path] = options.files or [*by_nvcc(folder), *compiled(folder, triton)]
            table = measured(paths, options, pyptx)
    finally:
        for process in (pyptx, triton):
            if process is not None:
                process.close()
    large = launches(8 if options.quick else KERNELS)
    present(Report("ptx-reader", command(options), facts, [table, large]), options)


if __name__ == "__main__":
    sys.exit(main())
