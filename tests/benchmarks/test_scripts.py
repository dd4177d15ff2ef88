"""Each benchmark runs, with the least work, and writes JSON, Markdown and its part of the page."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = {
    "compile": {"product", "compiler", "cpu_min", "wall_median", "ratio"},
    "statements": {"statements", "instructions", "in_loops", "registers", "spills"},
    "emulator": {"size", "cpu", "mma_rate", "lane_rate", "error"},
    "ptx_reader": {"file", "bytes", "cold", "warm", "lark", "write"},
}


def run(script: str, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "benchmarks" / f"{script}.py"), "--quick", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


@pytest.mark.parametrize("script", SCRIPTS)
def test_script(script: str, tmp_path: Path) -> None:
    page, markdown = tmp_path / "page.md", tmp_path / "tables.md"
    name = script.replace("_", "-")
    page.write_text(f"before\n<!-- {name} -->\nold\n<!-- /{name} -->\nafter\n")
    found = run(script, "--json", "-", "--markdown", str(markdown), "--update", str(page))
    assert found.returncode == 0, found.stderr
    report = json.loads(found.stdout)
    assert report["name"] == name
    assert report["machine"]["Python"]
    rows = report["tables"][0]["rows"]
    assert rows
    assert SCRIPTS[script] <= rows[0].keys()
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


def test_compile_counts_its_stages() -> None:
    report = json.loads(run("compile", "--json", "-").stdout)
    stages = report["tables"][1]["rows"][0]
    assert {"parse", "convert-frag-to-ptx", "emit"} <= stages.keys()
    total = sum(value for name, value in stages.items() if name != "product")
    assert 0 < total <= report["tables"][0]["rows"][0]["wall_min"]


def test_statements_are_counted() -> None:
    """Against a count by hand: 3 directives, 6 instructions, of which 3 in the loop."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        counts = import_module("statements").counts
    finally:
        sys.path.pop(0)
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
