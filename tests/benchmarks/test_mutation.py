"""The tool that puts faults into our own source sees what tests see, and what they do not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parents[2] / "benchmarks" / "mutation.py"
MODULE = """
from functools import cache

@cache
def small(x: int) -> bool:
    return x < 3

def never(x: int) -> int:
    return x + 1

class Box:
    @property
    def half(self) -> int:
        return 7 // 2
"""
TESTS = """
import pytest
from subject import Box, small

small(3)  # a cache that is filled before anything is changed

@pytest.mark.parametrize(("x", "wanted"), [(2, True), (5, False)])
def test_small(x, wanted):
    assert small(x) is wanted

def test_half():
    assert Box().half == 3
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="mutants are tried in forks")
def test_survivors_are_gaps(tmp_path: Path) -> None:
    (tmp_path / "subject.py").write_text(MODULE)
    (tmp_path / "test_subject.py").write_text(TESTS)
    done = subprocess.run(
        [
            sys.executable,
            str(TOOL),
            "subject.py",
            "--json",
            "out.json",
            "--tests",
            "test_subject.py",
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    (result,) = json.loads((tmp_path / "out.json").read_text())
    survivors = [m.partition(": ")[2] for m in result["survivors"]]
    # nobody asks for 3, so neither `<` nor 3 is held fast; 7 // 2 and 7 // 3 differ, 8 // 2 too
    assert survivors == ["`x < 3`: Lt to LtE", "3: 4"]
    assert {m.partition(",")[0] for m in result["unreached"]} == {"line 9"}
    assert result["judged"] == 7
