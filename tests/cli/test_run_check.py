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
PARTS = """func.func @gemm(%a: memref<?x?xf16> {frag.sizes = ["m", "k"]},
    %b: memref<?x?xf16> {frag.sizes = ["k", "n"]}, %c: memref<?x?xf16> {frag.sizes = ["m", "n"]},
    %p: memref<3x?x?xf32>, %n: memref<?x?xi32>)
    attributes {frag.divisible = {m = 16, k = 16, n = 16}} {
  frag.matmul %a, %b into %c through %p, %n
      {tile = array<i64: 64, 64, 32>, stages = 3 : i64, stream_k = 3 : i64}
      : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf16> through memref<3x?x?xf32>,
        memref<?x?xi32>
  func.return
}
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
    assert races[0]["why"]["text"] == ["there is no barrier in this kernel"]
    result = fragir("run", "race.mlir", "--on", "emulator", "--check")
    place = f"race.mlir:7:3 (PTX {races[0]['ptx_line']})"
    assert f"race at {place}:\n    there is no barrier" in result.out
    assert "st.shared" in races[0]["message"]
    assert "of race.mlir:6:3 (PTX " in races[0]["message"]
    assert f"\nFAIL: race at {place}, and " in result.out
    assert "schedules:" not in result.out


def test_nothing_found(fragir: Fragir, program: str) -> None:
    result = fragir("run", program, "--on", "emulator", "--check")
    assert result.code == 0
    assert "no findings in 4 runs with every check on\nschedules: every\n" in result.out
    assert result.out.endswith("\nPASS\n")
    assert NOTE not in result.err


def test_it_says_what_was_not_looked_for(fragir: Fragir, program: str) -> None:
    result = fragir("run", program, "--on", "emulator")
    assert result.out.endswith("\nPASS\n")
    assert result.err.endswith(NOTE)
    quiet = fragir("run", program, "--on", "emulator", "--json")
    assert NOTE not in quiet.err
    assert "findings" not in json.loads(quiet.out)


def test_what_is_up_to_the_schedule(fragir: Fragir, in_folder: Path) -> None:
    """Blocks that share a tile count who has come: the last one adds up the parts."""
    Path("parts.mlir").write_text(PARTS)
    options = ["--target", "sm_80", "--inputs", "n=zeros"]
    sizes = "m=64,n=64,k=64,n_d0=1,n_d1=1"
    command = ["run", "parts.mlir", "--on", "emulator", "--check", *options, "--size", sizes]
    document = json.loads(fragir(*command, "--json").out)
    validate(document, "run")
    found = document["schedules"]
    assert (found["judged"], found["assumptions"]) == ("4 that ran", [])
    (one,) = found["open"]
    assert one["line"] == 5  # of the program
    assert one["why"].startswith("the result of an atomic says who came first (PTX: @%")
