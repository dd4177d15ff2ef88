"""The GitHub Action with an installation of its own: every step as a runner takes it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tests.cli.test_action import ACTION, CASE, NORM, outputs, run_step

pytestmark = pytest.mark.packaging


def test_all_steps(
    built: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/k.ptx").write_text(NORM)
    (tmp_path / "work/case.py").write_text(CASE)
    for name in [n for n in os.environ if n.startswith(("PYTHON", "VIRTUAL", "FRAGIR"))]:
        monkeypatch.delenv(name)
    inputs = {"kernels": "*.ptx", "cases": "case.py:cases"}
    for step in ACTION["runs"]["steps"]:
        given = {**inputs, "python": sys.executable, "version": str(built[1])}
        done = run_step(step, tmp_path, given)
        assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(outputs(tmp_path)["verdicts"])["pass"] == 1
