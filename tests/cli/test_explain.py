"""`fragir explain`: pages and documents of programs, of PTX, and of what fails."""

from __future__ import annotations

import json
import re
import webbrowser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.conftest import Fragir
from tests.cli.test_json import validate
from tests.cli.test_run_check import RIGHT
from tests.emulator.faults import faults

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = """func.func @copy(%a: memref<16x16xf16>, %c: memref<16x16xf16>) {
  %0 = arith.constant 0 : index
  %x = frag.load %a[%0, %0] : memref<16x16xf16> -> !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>
  frag.store %x, %c[%0, %0] : !frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>, memref<16x16xf16>
  func.return
}
"""


@pytest.fixture
def small(in_folder: Path) -> str:
    (in_folder / "small.mlir").write_text(SMALL)
    return "small.mlir"


@pytest.fixture
def launch(in_folder: Path) -> list[str]:
    """How the hand-written kernel is launched: A, B and what becomes of C."""
    rng = np.random.default_rng(0)
    for name, shape, kind in (("a", (32, 16), "f2"), ("b", (8, 16), "f2"), ("c", (32, 8), "f4")):
        np.save(in_folder / f"{name}.npy", rng.standard_normal(shape).astype(kind))
    return ["--block", "64", "--arg", "in:a.npy", "--arg", "in:b.npy", "--arg", "inout:c.npy"]


def document(fragir: Fragir, *arguments: str, code: int = 0) -> Any:
    """The JSON of a report, as docs/json.md has it."""
    result = fragir("explain", *arguments, "--json")
    assert result.code == code, result.err
    found = json.loads(result.out)
    validate(found, "explain")
    return found


def test_the_page_of_a_program(fragir: Fragir, small: str, in_folder: Path) -> None:
    result = fragir("explain", small, "-o", "page.html", "--no-sass")
    assert (result.code, result.out, result.err) == (0, "", "")
    page = (in_folder / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "://" not in page.split('<script id="data"')[0]
    assert fragir("explain", small, "-o", "-", "--no-sass").out.startswith("<!DOCTYPE html>")


def test_the_document(fragir: Fragir, small: str) -> None:
    found = document(fragir, small)
    assert [stage["name"] for stage in found["stages"]] == [
        "parse",
        "frag-place",
        "convert-frag-to-ptx",
    ]
    (kernel,) = found["machine"]
    assert kernel["name"] == "copy"
    assert kernel["lines"][-1]["text"] == "EXIT"
    assert any(line["live"] for line in kernel["lines"])
    assert found["error"] is None


@pytest.mark.parametrize("opens", [True, False])
def test_without_a_file(
    fragir: Fragir, small: str, monkeypatch: pytest.MonkeyPatch, opens: bool
) -> None:
    """The page lies in a temporary folder; a browser is asked to show it, if there is one."""
    asked: list[str] = []

    class Browser:
        def open(self, address: str) -> bool:
            asked.append(address)
            return True

    def get() -> Browser:
        if opens:
            return Browser()
        raise webbrowser.Error("none")

    monkeypatch.setattr(webbrowser, "get", get)
    result = fragir("explain", small, "--no-sass")
    assert result.code == 0
    path = Path(result.err.split(",")[0].split(": ")[0])
    assert path.name == "small.html"
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert asked == ([path.as_uri()] if opens else [])
    assert ("no browser" in result.err) != opens


def test_a_program_that_fails(fragir: Fragir, small: str, in_folder: Path) -> None:
    """There is a page all the same; the error is that of compiling."""
    text = SMALL.replace("m16n8k16.f16, a>>", "m16n8k16.f16, a, warps = [2, 1]>>")
    (in_folder / small).write_text(text.replace("16x16", "32x16"))
    compiled = fragir("compile", small)
    result = fragir("explain", small, "-o", "page.html")
    assert (result.code, result.err) == (1, compiled.err)
    assert "2 warps" in result.err
    assert (in_folder / "page.html").exists()
    found = document(fragir, small, code=1)
    assert found["error"]["line"] == 3
    assert found["error"]["doing"] == "convert-frag-to-ptx"
    assert found["ptx"] is None


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["none.mlir"], 1, "cannot read this file"),
        (["small.mlir", "--target", "sm_9"], 1, "sm_9"),
        (["small.mlir", "--entry", "other"], 1, "there is no function other"),
        (["small.mlir", "--grid", "2"], 2, "are of PTX"),
        (["k.ptx", "--size", "m=2"], 2, "--size is of MLIR"),
        (["k.ptx", "-p", "cse"], 2, "--passes is of MLIR"),
        (["small.mlir", "-o", "small.mlir"], 1, "would replace"),
        (["small.mlir", "-p", "nothing"], 1, "there is no pass nothing"),
    ],
)
def test_what_is_refused(
    fragir: Fragir, small: str, in_folder: Path, arguments: list[str], code: int, words: str
) -> None:
    (in_folder / "k.ptx").write_text((EXAMPLES / "hand_written.ptx").read_text())
    result = fragir("explain", *arguments, "--json")
    assert result.code == code
    found = json.loads(result.out)
    assert words in found["error"]["message"]
    validate(found, "error")
    assert not [*in_folder.glob("*.html")]


def test_findings_of_ptx_stand_at_their_lines(
    fragir: Fragir, launch: list[str], in_folder: Path
) -> None:
    """Two registers of A are swapped: the finding names the line of the product."""
    text = (EXAMPLES / "hand_written.ptx").read_text()
    (in_folder / "right.ptx").write_text(text)
    found = document(fragir, "right.ptx", *launch, "--no-sass")
    assert found["ran"].endswith("every check on")
    assert not [mark for mark in found["marks"] if mark["severity"] == "error"]
    operands = [mark for mark in found["marks"] if mark["kind"] == "operand"]
    assert {mark["message"][:14] for mark in operands} >= {"A is 16 x 16 o"}
    swapped = text.replace("{%a0, %a1, %a2, %a3}, [", "{%a0, %a2, %a1, %a3}, [")
    assert swapped != text
    (in_folder / "swapped.ptx").write_text(swapped)
    found = document(fragir, "swapped.ptx", *launch, "--no-sass", code=1)
    wrong = [mark for mark in found["marks"] if mark["severity"] == "error"]
    assert {mark["kind"] for mark in wrong} == {"fragment"}
    lines = swapped.split("\n")
    for mark in wrong:
        assert "mma.sync" in lines[mark["ptx"] - 1]
        assert mark["source"] == mark["ptx"]


def test_findings_of_a_program_stand_at_its_operations(fragir: Fragir, in_folder: Path) -> None:
    """Without the barrier between store and load, threads read what others have yet to write."""
    text = """func.func @through(%a: memref<16x64xf32>, %c: memref<16x64xf32>)
    attributes {frag.warps = array<i64: 2, 1>} {
  %0 = arith.constant 0 : index
  %s = memref.alloc() : memref<16x64xf32, #frag.shared>
  %x = frag.load %a[%0, %0] : memref<16x64xf32> -> !frag.tile<16x64xf32, ROWS>
  frag.store %x, %s[%0, %0] : !frag.tile<16x64xf32, ROWS>, memref<16x64xf32, #frag.shared>
  frag.barrier
  %y = frag.load %s[%0, %0] : memref<16x64xf32, #frag.shared> -> !frag.tile<16x64xf32, COLS>
  frag.store %y, %c[%0, %0] : !frag.tile<16x64xf32, COLS>, memref<16x64xf32>
  func.return
}
"""
    text = text.replace(
        "ROWS", '#frag.layout<"warp [2:(8,0)] lane [32:(0,2)] element [2:(0,1) 8:(1,0)]">'
    )
    text = text.replace(
        "COLS", '#frag.layout<"warp [2:(0,32)] lane [32:(0,1)] element [16:(1,0)]">'
    )
    (in_folder / "right.mlir").write_text(text)
    found = document(fragir, "right.mlir", "--check", "--no-sass")
    assert (found["marks"], found["schedules"]) == ([], {"open": [], "assumptions": []})
    (in_folder / "race.mlir").write_text(text.replace("  frag.barrier\n", ""))
    found = document(fragir, "race.mlir", "--check", "--no-sass", code=1)
    wrong = [mark for mark in found["marks"] if mark["severity"] == "error"]
    assert "race" in {mark["kind"] for mark in wrong}
    assert {mark["source"] for mark in wrong} <= {6, 7}
    for mark in wrong:
        assert "shared" in found["ptx"]["lines"][mark["ptx"] - 1]


def test_who_waits_for_whom_is_drawn(fragir: Fragir, in_folder: Path) -> None:
    fault = next(one for one in faults() if one.name == "deadlock-barrier")
    (in_folder / "stands.ptx").write_text(fault.ptx(mended=False))
    np.save(in_folder / "x.npy", np.zeros(1024, np.uint32))
    launch = ["--block", "64", "--arg", "in:x.npy", "--no-sass", "--check"]
    found = document(fragir, "stands.ptx", *launch, code=1)
    (mark,) = found["marks"]
    assert (mark["kind"], mark["ptx"], found["schedules"]) == ("deadlock", 25, None)
    assert "  waits: warp 0 (32 lanes) at line 25" in mark["why"]
    picture = found["pictures"][mark["picture"]]
    assert picture["title"] == "who waits for whom"
    assert "waits: warp 1, line 26" in picture["svg"]
    assert "phase 0 of barrier 2" in picture["svg"]


def test_values(fragir: Fragir, small: str, in_folder: Path) -> None:
    """A tile that was loaded is the array, each number with the lane of the ISA's figure."""
    a = np.random.default_rng(1).standard_normal((16, 16)).astype(np.float16)
    np.save(in_folder / "a.npy", a)
    options = ["--arg", "a=a.npy", "--values", "%x", "--no-sass"]
    found = document(fragir, small, *options)
    (value,) = found["values"]
    assert value["what"] == "%x: 16 x 16 of f16"
    assert [[float(x) for x in row] for row in value["rows"]] == [
        [float(f"{x:.6g}") for x in row] for row in a.tolist()
    ]
    assert value["holders"][9][3] == "W0 T5:3"
    assert "%x = frag.load" in found["stages"][value["stage"]]["lines"][value["line"] - 1]
    assert found["ran"] == "on the emulator"
    missing = document(fragir, small, "--values", "%none", "--no-sass", code=1)
    assert "%none" in missing["error"]["message"]


def test_values_of_ptx(fragir: Fragir, launch: list[str], in_folder: Path) -> None:
    text = (EXAMPLES / "hand_written.ptx").read_text()
    (in_folder / "k.ptx").write_text(text)
    line = 1 + next(n for n, one in enumerate(text.split("\n")) if "mma.sync" in one)
    found = document(fragir, "k.ptx", *launch, "--values", str(line), "--no-sass")
    a = next(value for value in found["values"] if " 16 x 16 of f16" in value["what"])
    wanted = np.load("a.npy")[:16].tolist()  # what the first warp has
    assert [[float(x) for x in row] for row in a["rows"]] == [
        [float(f"{x:.6g}") for x in row] for row in wanted
    ]
    assert a["ptx"] == line


def test_the_checks_are_told(fragir: Fragir, in_folder: Path) -> None:
    """What they found, or that they found nothing and for which schedules that holds; on stderr
    where stdout has the page."""
    for name, text in (("right", RIGHT), ("race", RIGHT.replace("  frag.barrier\n", ""))):
        (in_folder / f"{name}.mlir").write_text(text)
    right = fragir("explain", "right.mlir", "--check", "--no-sass", "-o", "x.html")
    words = "no findings in 1 run on the emulator with every check on\nschedules: every\n"
    assert (right.code, right.out) == (0, words)
    wrong = fragir("explain", "race.mlir", "--check", "--no-sass", "-o", "x.html")
    assert wrong.code == 1
    assert re.search(r"\n error +race +race\.mlir:7:3 \(PTX \d+\) ", wrong.out)
    assert "there is no barrier in this kernel" in wrong.out
    page = fragir("explain", "race.mlir", "--check", "--no-sass", "-o", "-")
    assert page.out.startswith("<!DOCTYPE html>")
    assert "race.mlir:7:3" in page.err
    document(fragir, "race.mlir", "--check", "--no-sass", code=1)
