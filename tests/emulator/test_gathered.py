"""One cause is one finding: of a kind, at a statement or at two, in one run and over several."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir
from fragir import f32
from fragir.emulator import EmulationError, Finding, Report, run
from fragir.emulator.report import BarrierSeen, Party, Why, gather, place_findings
from fragir.host.running import join_reports

RACE = Finding("race", "st after ld", "k.ptx", 9, 5, 0, 3, 64, "4", other=(7, 5))
OF_LINE = replace(RACE, message="st after ld of line 7")
LETTER = replace(RACE, kind="proxy-fence", severity="letter")


def test_one_kind_at_one_pair_of_statements() -> None:
    """The first is told; another statement, partner, kind or register is another finding."""
    others = [
        replace(RACE, line=10),
        replace(RACE, other=(8, 5), subject="5"),
        replace(RACE, kind="pending-source"),
        Finding("uninitialised", "%f1 has no value", "k.ptx", 9, 5, subject="%f1"),
        Finding("uninitialised", "%f2 has no value", "k.ptx", 9, 5, subject="%f2"),
    ]
    found = gather([RACE, replace(RACE, lane=4), *others, replace(RACE, address=80)])
    assert found == [replace(RACE, count=3), *others]


def test_several_runs_find_the_same() -> None:
    """The largest count of one, not their sum."""
    found = gather([RACE], [RACE, replace(RACE, lane=4)], [RACE])
    assert found == [replace(RACE, count=2)]


def test_either_access_may_come_first() -> None:
    """One pair; what is missing may be one barrier or, in a loop, two."""
    turned = replace(RACE, message="ld after st", line=7, other=(9, 5), subject="3")
    (found,) = gather(gather([RACE, turned], [turned]), [turned])
    assert found == replace(RACE, count=2, message="st after ld; so it is the other way round")
    assert gather([RACE, turned, RACE], ordered=True) == [replace(RACE, count=2), turned]


def test_where_a_run_stood_at_its_limit_is_chance() -> None:
    limit = Finding("limit", "stands here", "k.ptx", 3)
    assert gather([limit], [replace(limit, line=4)]) == [limit]


@pytest.mark.parametrize("runs", [([LETTER, RACE],), ([LETTER], [RACE]), ([RACE], [LETTER])])
def test_of_a_pair_with_an_error_no_letter_is_told(runs: tuple[list[Finding], ...]) -> None:
    """Also where only another run shows that it is worse."""
    assert gather(*runs) == [RACE]


def test_a_letter_of_something_else_stays() -> None:
    """Of another pair, or of one statement at which there is an error of its own."""
    alone = replace(LETTER, other=None, subject="%f1")
    error = Finding("uninitialised", "%f1 has no value", "k.ptx", 9, 5, subject="%f1")
    kept = [RACE, replace(LETTER, other=(8, 5), subject="5"), alone, error]
    assert gather(kept) == kept
    assert gather([replace(RACE, severity="letter")], [RACE]) == [RACE]


def test_the_statements_of_a_program() -> None:
    """Instructions that one statement became are one place; without places they stay apart."""
    lines = [replace(OF_LINE, line=9 + i, other=(7 - i, 5), subject=f"{i}") for i in range(4)]
    (found,) = place_findings(lines, lambda line: "k.py:2:1" if line >= 9 else "k.py:1:1")
    assert (found.count, found.places) == (4, ("k.py:2:1", "k.py:1:1"))
    assert found.message == "st after ld of k.py:1:1 (PTX 7)"
    assert repr(found) == f"<error race at k.py:2:1 (PTX 9), 4 accesses: {found.message}>"
    assert place_findings(lines, lambda _: "") == lines


def test_a_compiled_kernel_tells_a_statement_once() -> None:
    """A tile of shared memory that other lanes read, without a barrier: 32 loads of a lane."""
    with fragir.kernel("through", warps=(2, 2), target="sm_80") as k:
        a, c = k.memory("a", f32, (64, 64)), k.memory("c", f32, (64, 64))
        tile = k.shared((64, 64), f32)
        k.store(k.load(a, (0, 0), shape=(64, 64)), tile, (0, 0))
        k.store(k.load(tile, (0, 0), shape=(64, 64), transposed=True), c, (0, 0))
    kernel = k.compile("sm_80")
    x = np.ones((64, 64), np.float32)
    for schedule in (None, 1):
        report = kernel(x, np.zeros_like(x), on="emulator", check=True, schedule=schedule)
        (race,) = (one for one in report.findings if one.kind == "race")
        assert race.count > 30
        assert [place.split(":")[0] for place in race.places] == [__file__] * 2
        assert len(set(race.places)) == 2


def test_launches_of_a_program_are_joined() -> None:
    """A statement that several launches come to; lines of several texts are not compared."""
    known = replace(RACE, places=("k.py:2:1", "k.py:1:1"))
    whole = join_reports([Report(findings=[known, RACE]), Report(findings=[known, RACE])])
    assert whole.findings == [replace(known, count=2), RACE, RACE]


def test_a_stopped_kernel_names_the_statement(tmp_path: Path, monkeypatch: Any) -> None:
    """With its text, and the line of the PTX beside it."""
    monkeypatch.chdir(tmp_path)
    text = """func.func @far(%a: memref<?x64xf32>, %i: index, %c: memref<16x64xf32>) {
  %0 = arith.constant 0 : index
  %x = frag.load %a[%i, %0] : memref<?x64xf32> -> !frag.tile<16x64xf32>
  frag.store %x, %c[%0, %0] : !frag.tile<16x64xf32>, memref<16x64xf32>
  func.return
}
"""
    Path("far.mlir").write_text(text)
    kernel = fragir.compile(text, filename="far.mlir")
    x = np.ones((16, 64), np.float32)
    with pytest.raises(EmulationError) as caught:
        kernel(x, 1 << 30, np.zeros_like(x), on="emulator", check=True)
    error = caught.value
    number = error.ptx_line
    assert number is not None
    assert "ld.global" in kernel.ptx.split("\n")[number - 1]
    assert (error.file, error.line, error.col) == ("far.mlir", 3, 3)
    assert str(error).startswith(f"far.mlir:3:3 (PTX {number}): ld.global")
    assert str(error).endswith(f"\n{excerpt(text, 3)}\n    ^")


def excerpt(text: str, line: int) -> str:
    return "  " + text.split("\n")[line - 1]


WHY = Why(
    barriers=(
        BarrierSeen(
            "full[0]", (0, 0, 0), 0, 0, 1, 2, waiting=(Party((0, 0, 0), (1,), 32, 12),), offset=8
        ),
    ),
    notes=("warp 0 has passed line 30",),
)


def test_the_barriers_of_a_compiled_kernel() -> None:
    """Lines of the PTX are those of the program in words, and stay what they are in numbers."""
    (found,) = place_findings([replace(OF_LINE, why=WHY)], lambda line: f"k.py:{line - 6}:1")
    assert found.why is not None
    text = "\n".join(found.why.lines())
    assert "warp 1 (32 lanes) at k.py:6:1 (PTX 12)" in text
    assert found.why.barriers == WHY.barriers
    assert found.why.lines()[-1] == "warp 0 has passed k.py:24:1 (PTX 30)"
    assert "line 12" in "\n".join(WHY.lines())


COMPILED = """
.version 7.8
.target sm_80
.address_size 64
.entry k(.param .u64 p) {
  .reg .b64 %p;
  .reg .b32 %r;
  .reg .b32 %t;
  .shared .b32 s[32];
  ld.param.u64 %p, [p];
  mov.u32 %t, %tid.x;
  .loc 1 4 3
  st.shared.u32 [s], %t;
  .loc 1 6 5, function_name $L, inlined_at 2 9 0
  ld.shared.u32 %r, [s];
  st.global.u32 [%p+400], %r;
}
.file 1 "f.cuh"
.file 2 "k.cu"
"""


def test_foreign_ptx_says_what_it_was_compiled_from() -> None:
    """By `.loc`, beside the line of the PTX: of findings, of the other access, of what stops it."""
    with pytest.raises(EmulationError) as caught:
        run(COMPILED, arguments=[np.zeros(1, np.uint32)], block=(64,), check=True)
    error = caught.value
    assert (error.line, error.compiled_from) == (16, "f.cuh:6:5, inlined at k.cu:9")
    assert str(error).startswith("<ptx>:16:3 (f.cuh:6:5, inlined at k.cu:9): st.global.u32 in k")
    assert error.report is not None
    races = [one for one in error.report.findings if one.kind == "race"]
    (read,) = (one for one in races if one.line == 15)
    assert read.place == "<ptx>:15:3 (f.cuh:6:5, inlined at k.cu:9)"
    assert "of line 13 by" in read.message
    assert read.compiled_from == ("f.cuh:6:5, inlined at k.cu:9", "f.cuh:4:3")
