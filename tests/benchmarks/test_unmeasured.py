"""A benchmark that has measured nothing of what it shows fails, and leaves its page as it is."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    return import_module("report")


def shown(report: Any, page: Path, rows: list[dict[str, Any]], alone: bool) -> str:
    """What stands on the page afterwards."""
    page.write_text("<!-- b -->\nold\n<!-- /b -->\n")
    columns = [report.Column("case", "case"), report.Column("ours", "ours", "d")]
    table = report.Table("Table", [*columns, report.Column("theirs", "theirs", ".1f")], rows)
    options = argparse.Namespace(json=None, markdown=None, update=page, alone=alone)
    try:
        report.present(report.Report("b", "b.py", {}, [table]), options)
    except SystemExit as error:
        assert "old" in page.read_text()
        return str(error)
    return page.read_text()


BOTH, OURS = {"case": "a", "ours": 0, "theirs": 1.5}, {"case": "b", "ours": 3}
NONE: dict[str, Any] = {"case": "c", "ours": None}


def test_what_is_not_measured(report: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    for rows, alone in (([BOTH, OURS], False), ([OURS, NONE], True)):
        assert "| case |" in shown(report, page, rows, alone)
    for rows, alone, said in (
        ([OURS, NONE], False, "not measured: Table: theirs"),
        ([NONE], False, "not measured: Table: ours, theirs"),
        ([NONE], True, "not measured: Table: ours, theirs"),
        ([], True, "not measured: Table: ours, theirs"),
    ):
        assert shown(report, page, rows, alone) == said


def test_conversions_that_none_could_make(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where ptxas refuses what one compiler writes, nothing is fewer, as many, or more."""
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks"), *sys.path])
    conversions = import_module("conversions")
    refused = {"case": "a", "fragir_all": 3, "fragir_data": 1, "triton_refused": "too old"}
    both = {"case": "b", "more": -1, "more_data": 0}
    for rows, wanted in (([refused], (None, None, None, 1)), ([refused, both], (1, 0, 0, 1))):
        first = conversions.verdicts(rows)[0]
        assert tuple(first[key] for key in ("fewer", "equal", "more", "refused")) == wanted
    (summary, _) = conversions.tables([refused], "sm_90a", with_triton=True)
    assert summary.unmeasured(part=False) == ["fewer", "as many", "more"]


def test_the_hook_takes_what_triton_gives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(ROOT / "benchmarks/workers"), *sys.path])
    without_ptxas = import_module("triton_hook").without_ptxas
    stages: dict[str, Any] = {}
    more: tuple[tuple[Any, ...], ...] = ((), ({}, "ttir", None, 1))
    for rest in more:
        stages.clear()
        key, digest = without_ptxas("backend", stages, *rest)
        assert stages["cubin"]("ptx", {}) == b""
        assert isinstance(key, str)
        assert isinstance(digest, str)
    stages.clear()
    without_ptxas(backend=None, stages=stages, new="word")
    assert list(stages) == ["cubin"]
    assert without_ptxas() == without_ptxas("backend", {})
