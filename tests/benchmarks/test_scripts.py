"""Each benchmark runs, with the least work, and writes JSON, Markdown and its part of the page."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from fragir.errors import FragirError

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "compile": {"product", "compiler", "cpu_min", "wall_median", "ratio"},
    "cliffs": {"name", "blocks", "limit", "factor", "told"},
    "growth": {"step", "ms1", "ms2", "share2"},
    "statements": {"statements", "instructions", "in_loops", "registers", "spills"},
    "tensor_memory": {"statements", "in_loops", "spills", "step", "fetching"},
    "schedules": {"product", "tile", "gain", "copies", "spills", "choosing"},
    "attention": {"tile", "loop", "products", "outside", "registers", "compile"},
    "conversions": {"case", "bits", "fragir_data", "fragir_all", "fragir_ptx_sha256"},
    "emulator": {"case", "checks", "before", "numpy", "numpy_summary", "equal"},
    "ptx_reader": {"file", "bytes", "cold", "warm", "lark", "write"},
}
AGAINST = {"emulator": ("--against", str(ROOT))}


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), "--quick", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, tmp_path: Path) -> None:
    page, markdown = tmp_path / "page.md", tmp_path / "tables.md"
    name = script.replace("_", "-")
    page.write_text(f"before\n<!-- {name} -->\nold\n<!-- /{name} -->\nafter\n")
    outputs = ("--json", "-", "--markdown", str(markdown), "--update", str(page))
    found = run(script, *AGAINST.get(script, ()), *outputs)
    assert found.returncode == 0, found.stderr
    report = json.loads(found.stdout)
    assert report["name"] == name
    assert report["machine"]["Python"]
    rows = report["tables"][0]["rows"]
    assert rows
    assert SCRIPTS[script] <= rows[0].keys()
    assert all(row.get("equal", "yes") == "yes" for row in rows)
    tables = markdown.read_text()
    header = next(line for line in tables.splitlines() if line.startswith("| "))
    assert all(
        line.count("|") == header.count("|")
        for line in tables.partition("\n\n**")[2].partition("\n\n**")[0].splitlines()
        if line.startswith("|")
    )
    begin, end = page.read_text().split(f"<!-- {name} -->\n")
    assert begin == "before\n"
    assert end == f"{tables}<!-- /{name} -->\nafter\n"
    if script == "compile":
        stages_are_counted(report)


def stages_are_counted(report: Any) -> None:
    stages = report["tables"][1]["rows"][0]
    assert {"parse", "convert-frag-to-ptx", "emit"} <= stages.keys()
    total = sum(value for name, value in stages.items() if name != "product")
    assert 0 < total <= report["tables"][0]["rows"][0]["wall_min"]


def script(name: str) -> Any:
    """A benchmark as a module."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


def test_statements_are_counted() -> None:
    """Against a count by hand: 3 directives, 6 instructions, of which 3 in the loop."""
    counts = script("statements").counts
    text = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) // no statement of a body
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    ld.param.u32 %r1, [p];
    .loc 1 1 1
L:  // a label
    add.u32 %r1, %r1, 1;
    { .reg .b32 %inner; setp.lt.u32 %p, %r1, 9; }
    @%p bra L;
    bra END;
END:
    ret;
}
"""
    found = counts(text)
    assert (found["statements"], found["instructions"], found["in_loops"]) == (9, 6, 3)


def test_a_page_without_its_markers_is_refused(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("nothing here\n")
    found = run("ptx_reader", "--update", str(page))
    assert found.returncode == 1
    assert "<!-- ptx-reader -->" in found.stderr
    assert page.read_text() == "nothing here\n"


SASS = """
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   LDG.E.STRONG.SYS R16, desc[UR6][R2.64] ;
        /*0020*/              @!P0 SEL R12, R4, R5.reuse, !P0 ;
        /*0030*/                   SEL R12, R12, 0x3276, !P0 ;
        /*0040*/                   FSEL R4, R4, R5, P0 ;
        /*0050*/                   SHFL.IDX PT, R12, R12, R14, 0x1f ;
        /*0060*/                   STSM.16.MT88.4 [R20+UR4], R16 ;
        /*0070*/                   STS.U8 [R0+UR4+0x800], R12 ;
        /*0080*/                   NOP ;
        /*0090*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*00a0*/                   LDSM.16.M88 R12, [R21+UR4] ;
        /*00b0*/                   LDS.128 R16, [R22+UR4] ;
        /*00c0*/                   STG.E.STRONG.SYS desc[UR6][R2.64], R12 ;
        /*00d0*/                   EXIT ;
        /*00e0*/                   BRA `(.L_x_0);
        /*00f0*/                   NOP;
"""


def test_machine_instructions_are_counted() -> None:
    """Against a count by hand: the select of a number is no data, padding is no barrier."""
    conversions = script("conversions")
    found = conversions.difference(conversions.counted(SASS), conversions.Counts(other=1))
    assert found == {
        **{"SHFL": 1, "SEL": 2, "PRMT": 0, "MOVM": 0, "STS": 1, "LDS": 1, "STSM": 1, "LDSM": 1},
        **{"data": 7, "sync": 2, "other": 1, "all": 10, "bytes": 16 + 1 + 4 + 16},
    }
    assert conversions.shown(found) == "1 SHFL, 2 SEL, 1 STS, 1 LDS, 1 STSM, 1 LDSM"
    with pytest.raises(FragirError, match="branches"):
        conversions.counted("\n/*0000*/ BRA `(.L_x_1);" + SASS)


def test_conversions_are_compared() -> None:
    conversions = script("conversions")
    rows = [
        conversions.compared(
            {"case": name, "fragir_all": 9, "triton_all": 9 - more, "fragir_data": 4}
            | ({"triton_data": 6} if name != "c" else {"triton_data": 4})
        )
        for name, more in (("a", -3), ("b", 2), ("c", 0))
    ]
    rows.append(conversions.compared({"case": "d", "fragir_text": "refused", "triton_all": 3}))
    every, data = conversions.verdicts(rows)
    assert [every[key] for key in ("fewer", "equal", "more", "where")] == [1, 1, 1, ["b"]]
    assert [data[key] for key in ("fewer", "equal", "more", "where")] == [2, 1, 0, []]
    summary, listing = conversions.tables(rows, "sm_90a", True)
    assert summary.note == "More: b."
    assert "| a |  | 4 |  |  | 9 |  |  | 6 |  |  | 12 |  | -3 |" in listing.markdown()
