"""`fragir run --check`: findings beside the values, and what is said where it was not asked for."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_json import validate

Fragir = Callable[..., Any]

ROWS = '#frag.layout<"warp [2:(8,0)] lane [32:(0,2)] element [2:(0,1) 8:(1,0)]">'
COLS = '#frag.layout<"warp [2:(0,32)] lane [32:(0,1)] element [16:(1,0)]">'
RIGHT = f"""func.func @through(%a: memref<16x64xf32>, %c: memref<16x64xf32>)
    attributes {{frag.warps = array<i64: 2, 1>}} {{
  %0 = arith.constant 0 : index
  %s = memref.alloc() : memref<16x64xf32, #frag.shared>
  %x = frag.load %a[%0, %0] : memref<16x64xf32> -> !frag.tile<16x64xf32, {ROWS}>
  frag.store %x, %s[%0, %0] : !frag.tile<16x64xf32, {ROWS}>, memref<16x64xf32, #frag.shared>
  frag.barrier
  %y = frag.load %s[%0, %0] : memref<16x64xf32, #frag.shared> -> !frag.tile<16x64xf32, {COLS}>
  frag.store %y, %c[%0, %0] : !frag.tile<16x64xf32, {COLS}>, memref<16x64xf32>
  func.return
}}
"""
NOTE = "the values are right; races and missing waits were not looked for: --check\n"


@pytest.fixture
def program(in_folder: Path) -> str:
    Path("race.mlir").write_text(RIGHT.replace("  frag.barrier\n", ""))
    Path("right.mlir").write_text(RIGHT)
    return "right.mlir"


def test_a_race_fails(fragir: Fragir, program: str) -> None:
    """Though the values of the regular schedule may be right; at the lines of the program."""
    result = fragir("run", "race.mlir", "--on", "emulator", "--check", "--json")
    document = json.loads(result.out)
    validate(document, "run")
    assert (result.code, document["result"]) == (1, "FAIL")
    races = [one for one in document["findings"] if one["kind"] == "race"]
    assert [one["line"] for one in races] == [7]  # one pair of statements
    assert races[0]["count"] > 1
    assert {one["file"] for one in races} == {"race.mlir"}
    assert all(one["severity"] == "error" and ".shared" in one["message"] for one in races)


def test_nothing_found(fragir: Fragir, program: str) -> None:
    result = fragir("run", program, "--on", "emulator", "--check")
    assert result.code == 0
    assert "no findings in 4 runs with every check on" in result.out
    assert result.out.endswith("\nPASS\n")
    assert NOTE not in result.err


def test_it_says_what_was_not_looked_for(fragir: Fragir, program: str) -> None:
    result = fragir("run", program, "--on", "emulator")
    assert result.out.endswith("\nPASS\n")
    assert result.err.endswith(NOTE)
    quiet = fragir("run", program, "--on", "emulator", "--json")
    assert NOTE not in quiet.err
    assert "findings" not in json.loads(quiet.out)
