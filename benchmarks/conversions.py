"""What conversions between register layouts cost: fragir beside Triton, in machine instructions.

    python benchmarks/conversions.py [--target sm_90a] [--only PATTERN] [--against FILE.json]

Both compilers get the same kernels (conversion_kernels.py), with the conversion and without it, and
the same ptxas assembles them, at its default -O3. What the one has more than the other is the
conversion, for one thread: address arithmetic, barriers and rounds included. The emulator counts
the passes over the banks of shared memory that all warps take. No GPU is needed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np
from conversion_cases import CASES, Case
from conversion_kernels import fragir_ptx, triton_module
from neighbours import TRITON_CONVERSIONS, Worker, worker
from report import Column, Report, Row, Table, arguments, command, machine, present, status
from rich.console import Console

from fragir.emulator import run
from fragir.errors import FragirError
from fragir.toolchain import ptxas, sass
from fragir.toolchain.find import NVDISASM, PTXAS, find

DATA = ("SHFL", "SEL", "PRMT", "MOVM", "STS", "LDS", "STSM", "LDSM")
SYNC = ("BAR", "WARPSYNC", "MEMBAR", "FENCE", "NOP")
"""Barriers; `bar.warp.sync` of a whole warp becomes a NOP that only orders."""
SCRATCH = 64 << 10  # bytes of dynamic shared memory: more than any of the kernels takes
NET = (*DATA, "sync", "other", "bytes")

_LINE = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)\s*([^;]*);", re.MULTILINE)
_CONSTANT = re.compile(r"RZ|-?0x[0-9a-f]+|[+-]?\d[\w.+-]*|[+-](?:QNAN|INF).*")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_MATRICES = {"2": 2, "4": 4}

Counts = Counter[str]


def instructions(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """(opcode's words, operands) of every instruction up to the branch to itself at the end.

    FragirError where a branch leads back: what is counted must run once.
    """
    for name, operands in _LINE.findall(text):
        if name == "BRA":
            if "EXIT" not in text.partition("BRA")[0]:
                raise FragirError("its kernel has branches")
            return
        yield name.split("."), [word.strip() for word in operands.split(",")]


def bytes_of(words: Sequence[str]) -> int:
    """Bytes that one thread moves by an access to shared memory, by the words of its opcode."""
    if words[0] in ("LDSM", "STSM"):
        return 4 * next((_MATRICES[word] for word in words[1:] if word in _MATRICES), 1)
    return next((_WIDTHS[word] for word in words[1:] if word in _WIDTHS), 4)


def counted(text: str) -> Counts:
    """Instructions by kind: those of DATA, `sync`, `other`, and `bytes` to and from shared memory.

    Accesses to global memory, the same in all kernels, are left out, and so are their pointers,
    which ptxas loads once or again. FSEL, a select of half of a
    double, is a SEL. A select between known numbers is no data but part of a selector or an
    address: it is among the others.
    """
    found: Counts = Counter()
    for words, operands in instructions(text):
        name = words[0].replace("FSEL", "SEL")
        if name in ("LDG", "STG", "LDC", "ULDC"):
            continue
        if name == "SEL" and any(_CONSTANT.fullmatch(word) for word in operands[1:3]):
            name = "other"
        if name in DATA:
            found[name] += 1
            if name[:3] in ("STS", "LDS"):
                found["bytes"] += bytes_of(words)
        else:
            found["sync" if name in SYNC else "other"] += 1
    return found


def difference(with_it: Counts, without: Counts) -> dict[str, int]:
    """What one kernel has more than the other; `data`, and `all` of it together."""
    net = {name: with_it[name] - without[name] for name in NET}
    net["data"] = sum(net[name] for name in DATA)
    net["all"] = net["data"] + net["sync"] + net["other"]
    return net


def passes(text: str, warps: int) -> dict[str, int]:
    """Passes over the banks of shared memory that all warps take together, and those needed.

    As the emulator counts them, which runs the PTX.
    """
    parameters = text.partition(".entry")[2].partition(")")[0].count(".param")
    arguments = [np.zeros(32 * warps, np.uint64), None, None][:parameters]
    report = run(text, block=(32 * warps,), arguments=arguments, shared=SCRATCH, check=True)
    found = report.statistics.conflicts
    return {name: found[name] for name in ("passes", "passes_needed")}


def shown(net: Row) -> str:
    """The data instructions as text: `8 SHFL, 8 SEL`."""
    return ", ".join(f"{net[name]} {name}" for name in DATA if net[name]) or "none"


Compiled = Callable[[Case, bool], str]
"""The PTX of a case, with the conversion or without."""


def measured(case: Case, compiled: Compiled, target: str) -> Row:
    """One compiler's conversion: its instructions, or why it was `refused`."""
    texts: list[str] = []
    counts: list[Counts] = []
    result: Row = {}
    try:
        for convert in (True, False):
            texts.append(compiled(case, convert))
            assembled = ptxas.assemble(texts[-1], target)
            counts.append(counted(sass.disassemble(assembled.cubin)))
            if convert:
                entry = next(iter(assembled.entries.values()))
                result |= {"registers": entry.registers, "spills": entry.spill_stores}
    except FragirError as error:
        print(f"{case.name}: {error}", file=sys.stderr)
        return {"refused": str(error), "text": "refused"}
    net = difference(*counts) | passes(texts[0], case.warps)
    digest = hashlib.sha256(texts[0].encode()).hexdigest()
    return result | net | {"text": shown(net), "ptx_sha256": digest}


def compilers(target: str, triton: Worker | None) -> dict[str, Compiled]:
    """fragir, and Triton where there is its process; by the word their columns begin with."""

    def ours(case: Case, convert: bool) -> str:
        return fragir_ptx(case, target, convert)

    if triton is None:
        return {"fragir": ours}
    number = int("".join(filter(str.isdigit, target)))

    def theirs(case: Case, convert: bool) -> str:
        request = {"ttgir": triton_module(case, number, convert), "target": number}
        text: str = triton.ask(request)["ptx"]
        return text

    return {"fragir": ours, "triton": theirs}


def flat(name: str, found: Row) -> Row:
    return {f"{name}_{key}": value for key, value in found.items()}


def compared(row: Row) -> Row:
    """The row with what fragir has more than Triton, where both convert."""
    if "fragir_all" in row and "triton_all" in row:
        row["more_data"] = row["fragir_data"] - row["triton_data"]
        row["more"] = row["fragir_all"] - row["triton_all"]
    return row


def verdicts(rows: Sequence[Row]) -> list[Row]:
    """In how many cases fragir takes fewer, as many and more instructions, and where more."""
    result: list[Row] = []
    for key, what in (("more", "all instructions"), ("more_data", "data instructions")):
        found = {row["case"]: row[key] for row in rows if key in row}
        result.append(
            {
                "counted": what,
                # of nothing there is no saying
                "fewer": sum(value < 0 for value in found.values()) if found else None,
                "equal": sum(value == 0 for value in found.values()) if found else None,
                "more": sum(value > 0 for value in found.values()) if found else None,
                "refused": len(rows) - len(found),
                "where": [name for name, value in found.items() if value > 0],
            }
        )
    return result


def tables(rows: list[Row], target: str, with_triton: bool) -> list[Table]:
    columns = [Column("case", "conversion")]
    for name in ("fragir", "triton")[: 1 + with_triton]:
        columns += [
            Column(f"{name}_text", f"{name}: data"),
            Column(f"{name}_data", "data", "d"),
            Column(f"{name}_sync", "barriers", "d"),
            Column(f"{name}_other", "other", "d"),
            Column(f"{name}_all", "all", "d"),
            Column(f"{name}_passes", "passes", "d"),
        ]
    if with_triton:
        columns.append(Column("more", "fragir - triton", "+d"))
    title = f"Conversions for {target}: SASS instructions of one thread, passes of all warps"
    listing = Table(title, columns, rows)
    if not with_triton:
        return [listing]
    found = verdicts(rows)
    summary = Table(
        "Conversions in which fragir takes fewer, as many and more instructions than Triton",
        (
            Column("counted", "counted"),
            Column("fewer", "fewer", "d"),
            Column("equal", "as many", "d"),
            Column("more", "more", "d"),
            Column("refused", "refused", "d"),
        ),
        found,
        note="More: " + ("; ".join(found[0]["where"]) or "nowhere") + ".",
    )
    return [summary, listing]


def known(file: Path | None) -> dict[str, Row]:
    """What an earlier report says of Triton, by case."""
    if file is None:
        return {}
    rows: list[Row] = json.loads(file.read_text("utf-8"))["tables"][-1]["rows"]
    return {
        row["case"]: {key: value for key, value in row.items() if key.startswith("triton_")}
        for row in rows
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--target", default="sm_90a", help="an sm of both (default: sm_90a)")
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cases, as a shell pattern")
    parser.add_argument(
        "--against", type=Path, metavar="FILE", help="take Triton's counts from this JSON"
    )
    options: argparse.Namespace = parser.parse_args()
    options.alone |= options.quick
    cases = [case for case in CASES if fnmatchcase(case.name, options.only)]
    cases = cases[:1] if options.quick else cases
    tools = {tool.name: find(tool).version for tool in (PTXAS, NVDISASM)}
    facts = machine(["fragir"]) | tools
    earlier = known(options.against)
    triton = worker(TRITON_CONVERSIONS, not options.alone and not earlier)
    say = status(Console(stderr=True))
    made = compilers(options.target, triton)
    rows: list[Row] = []
    for case in cases:
        say(case.name)
        row: Row = {"case": case.name, "bits": case.bits, "goal": case.goal}
        for name, compiled in made.items():
            row |= flat(name, measured(case, compiled, options.target))
        rows.append(compared(row | earlier.get(case.name, {})))
    if triton:
        triton.close()
    if triton or earlier:
        facts["Triton"] = TRITON_CONVERSIONS.requirements[0].rpartition("=")[2]
    made_tables = tables(rows, options.target, bool(triton or earlier))
    present(Report("conversions", command(options), facts, made_tables), options)


if __name__ == "__main__":
    sys.exit(main())
