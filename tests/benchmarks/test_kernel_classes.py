"""Rows of classes out of lines of sweeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kernel_classes import lines_of, mutants_of, rows_of

AS_IT_IS: dict[str, Any] = {"every_schedule": 1, "every_value": 0, "open": [], "findings": []}


def line(what: object, **result: object) -> dict[str, object]:
    return {"what": what, "failed": None, "result": result}


def test_examples_are_programs_or_scripts() -> None:
    lines = [
        line({"program": name, "entry": "f"}, **AS_IT_IS, verdict="pass", equality="numbers")
        for name in ("a.mlir", "a.py")
    ]
    rows = list(rows_of("judge-examples", lines))
    assert [row["by"] for row in rows] == ["programs", "scripts"]
    assert rows[0] == {
        "by": "programs",
        "kernel": "a.mlir: f",
        "verdict": "pass",
        "every_schedule": 1,
        "every_value": 0,
        "equality": "numbers",
        "open": [],
    }


def test_mutants_are_counted_and_have_no_class() -> None:
    lines = [
        line(["a", 0], reported=1, findings=[]),
        line(["a", 1], passes=1, findings=["other results under schedule 3"]),
        line(["b", 0], passes=0, findings=[]),
    ]
    assert list(rows_of("every-schedule", lines)) == []
    assert mutants_of(lines) == {
        "mutants": 3,
        "kernels": 2,
        "reported": 1,
        "every_schedule": 1,
        "refuted": 1,
    }


def test_a_failed_task_is_no_result(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    failed = {"what": ["a", 1], "failed": "too long", "result": None}
    file.write_text(json.dumps({"sweep": "every-schedule"}) + "\n" + json.dumps(failed) + "\n")
    with pytest.raises(SystemExit, match="failed"):
        lines_of(str(file))
