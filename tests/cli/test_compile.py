"""`fragir compile`: levels, targets, files, and one clear line for everything that is wrong."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fragir = Callable[..., Any]

TILE = """\
func.func @one(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.fill %zero : !frag.tile<16x8xf32>
  %td = frag.mma %ta, %tb, %tc : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>,
    !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %td, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
"""
MATMUL = """\
func.func @gemm(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
"""


@pytest.fixture(autouse=True)
def programs(in_folder: Path) -> None:
    Path("tile.mlir").write_text(TILE)
    Path("gemm.mlir").write_text(MATMUL)
    Path("both.mlir").write_text(TILE + MATMUL)


# What it makes -----------------------------------------------------------------------------------


def test_layouts_are_explained_on_stderr(fragir: Fragir) -> None:
    result = fragir("compile", "tile.mlir", "--explain-layouts")
    assert result.code == 0
    assert result.out == fragir("compile", "tile.mlir").out
    (line,) = [line for line in result.err.splitlines() if line.split()[:1] == ["%ta"]]
    assert "operand a of frag.mma (6:3)" in line
    assert "#frag.mma<m16n8k16.f16, a>" in line


@pytest.mark.parametrize("program", ["tile.mlir", "gemm.mlir"])
def test_ptx_on_stdout(fragir: Fragir, program: str) -> None:
    result = fragir("compile", program)
    assert result.code == 0
    assert result.out.startswith(".version")
    assert ".target sm_80" in result.out
    assert "mma.sync" in result.out
    assert result.err == ""


def test_placed_tiles(fragir: Fragir) -> None:
    result = fragir("compile", "tile.mlir", "--to", "placed")
    assert "!frag.tile<16x16xf16, #frag.mma<m16n8k16.f16, a>>" in result.out
    assert "frag.mma" in result.out


def test_lanes(fragir: Fragir) -> None:
    result = fragir("compile", "tile.mlir", "--to", "lane")
    assert "ptx.mma" in result.out
    assert "frag." not in result.out.replace("frag.grid", "")


@pytest.mark.parametrize("level", ["placed", "lane"])
def test_levels_are_programs_again(fragir: Fragir, level: str) -> None:
    """What stands on a level compiles to the same PTX as what it came from."""
    whole = fragir("compile", "gemm.mlir").out
    Path("next.mlir").write_text(fragir("compile", "gemm.mlir", "--to", level).out)
    assert fragir("compile", "next.mlir").out == whole


def test_the_ending_tells_the_level(fragir: Fragir) -> None:
    for ending in ("mlir", "ptx", "cubin"):
        result = fragir("compile", "tile.mlir", "-o", f"out.{ending}")
        assert (result.code, result.out) == (0, "")
    assert "ptx.mma" in Path("out.mlir").read_text()
    assert Path("out.ptx").read_text().startswith(".version")
    assert Path("out.cubin").read_bytes().startswith(b"\x7fELF")


def test_to_comes_before_the_ending(fragir: Fragir) -> None:
    fragir("compile", "tile.mlir", "--to", "placed", "-o", "out.ptx")
    assert "frag.mma" in Path("out.ptx").read_text()


def test_targets(fragir: Fragir) -> None:
    assert ".target sm_90a" in fragir("compile", "gemm.mlir", "--target", "sm_90a").out
    assert "wgmma" in fragir("compile", "gemm.mlir", "--target", "sm_90a").out


def test_one_of_several_functions(fragir: Fragir) -> None:
    every = fragir("compile", "both.mlir").out
    assert every.count(".entry") == 2
    one = fragir("compile", "both.mlir", "--entry", "gemm").out
    assert one.count(".entry") == 1
    assert ".entry gemm(" in one


def test_ir_after_every_pass(fragir: Fragir) -> None:
    result = fragir("compile", "gemm.mlir", "--print-ir-after-all")
    assert result.out.startswith(".version")
    titles = [line for line in result.err.splitlines() if line.startswith("// IR after")]
    assert titles == [
        "// IR after frag-tile",
        "// IR after frag-pipeline",
        "// IR after frag-raster",
        "// IR after frag-prefetch",
        "// IR after frag-place",
        "// IR after convert-frag-to-ptx",
    ]


def test_comments(fragir: Fragir) -> None:
    plain, told = (fragir("compile", "tile.mlir", *more).out for more in ([], ["--comments"]))
    assert "//" not in plain
    assert "frag.mma" in told or "tile.mlir" in told
    statements = [line for line in told.splitlines() if not line.strip().startswith("//")]
    assert len(statements) == len(plain.splitlines())


def test_stdin(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    from io import BytesIO, TextIOWrapper

    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(TILE.encode())))
    assert fragir("compile", "-").out.startswith(".version")


@pytest.mark.parametrize("level", ["placed", "lane", "ptx"])
def test_neither_numpy_nor_lark_is_imported(level: str) -> None:
    command = [sys.executable, "-X", "importtime", "-m", "fragir.cli.main", "compile"]
    done = subprocess.run(
        [*command, "gemm.mlir", "--to", level], capture_output=True, text=True, check=True
    )
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "xdsl" in imported
    assert imported & {"numpy", "lark", "rich", "ml_dtypes"} == set()


# What is wrong -----------------------------------------------------------------------------------

HEAD = "func.func @f(%a: memref<16x16xf16>, %s: f32) {\n"
TAIL = "\n  func.return\n}\n"

# name: program, place of the error, a word of it
BAD: dict[str, tuple[str, str, str]] = {
    "a shape no instruction has": (
        HEAD + "  %t = frag.load %a[0, 0] : memref<16x16xf16>"
        " -> !frag.tile<16x16xf16, #frag.mma<m16n8k15.f16, a>>" + TAIL,
        ":2:",
        "m16n8k15",
    ),
    "a tile no instruction divides": (
        "func.func @f(%a: !frag.tile<15x32xi4>, %b: !frag.tile<32x8xi4>,\n"
        "             %c: !frag.tile<15x8xi32>) {\n"
        "  %d = frag.mma %a, %b, %c : !frag.tile<15x32xi4>, !frag.tile<32x8xi4>,"
        " !frag.tile<15x8xi32> -> !frag.tile<15x8xi32>" + TAIL,
        ":3:3",
        "15x8x32",
    ),
    "f16 into an f64 mma": (
        "func.func @f(%a: !frag.tile<8x4xf16>, %b: !frag.tile<4x8xf64>,\n"
        "             %c: !frag.tile<8x8xf64>) {\n"
        "  %d = frag.mma %a, %b, %c : !frag.tile<8x4xf16>, !frag.tile<4x8xf64>,"
        " !frag.tile<8x8xf64> -> !frag.tile<8x8xf64>" + TAIL,
        ":3:3",
        "no instruction multiplies f16 by f64",
    ),
    "a tile as an argument": (
        "func.func @f(%t: !frag.tile<5x7xf16>, %c: memref<5x7xf16>) {\n"
        "  frag.store %t, %c[0, 0] : !frag.tile<5x7xf16>, memref<5x7xf16>" + TAIL,
        ":1:1",
        "takes memrefs",
    ),
    "a wrong operand": (
        HEAD + "  %t = frag.load %s[0, 0] : f32 -> !frag.tile<16x16xf16>" + TAIL,
        ":2:3",
        "memref",
    ),
    "an operand that is not there": (
        HEAD + "  %t = frag.load %b[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>" + TAIL,
        ":",
        "%b",
    ),
    "too few indices": (
        HEAD + "  %t = frag.load %a[0] : memref<16x16xf16> -> !frag.tile<16x16xf16>" + TAIL,
        ":2:3",
        "2 indices",
    ),
    "an operation nobody knows": (HEAD + "  frag.nothing" + TAIL, ":", "frag.nothing"),
    "a truncated file": (TILE[:250], ":", "the { of line 1 is not closed"),
    "xDSL's ValueError: a constant out of range": (
        HEAD + "  %x = arith.constant 300 : i8" + TAIL,
        ":2:",
        "300",
    ),
    "xDSL's assertion: a generic of the wrong kind": (
        HEAD + '  linalg.generic {indexing_maps = 3 : i32, iterator_types = ["parallel"]}'
        " ins(%a : memref<16x16xf16>) outs(%a : memref<16x16xf16>) {\n"
        "  ^bb0(%x: f16, %y: f16):\n    linalg.yield %x : f16\n  }" + TAIL,
        ":2:3",
        "",
    ),
    "xDSL's ValueError: an iterator of no kind": (
        HEAD + "  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>],"
        ' iterator_types = ["sideways"]} outs(%a : memref<16x16xf16>) {\n'
        "  ^bb0(%x: f16):\n    linalg.yield %x : f16\n  }" + TAIL,
        ":2:3",
        "sideways",
    ),
    "no function": ("", "", ""),
}


def one_clear_line(result: Any, file: str, place: str, word: str) -> None:
    """One line that says where and what; below it at most the source line and a caret."""
    assert result.code == 1
    assert result.out == ""
    lines = result.err.splitlines()
    assert lines[0].startswith(f"error: {file}{place}"), lines
    assert word in lines[0]
    assert len(lines) in (1, 3), lines
    assert all(line.startswith("  ") for line in lines[1:])
    assert "Traceback" not in result.err
    assert "unexpected" not in lines[0]


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("level", ["lane", "cubin"])
def test_bad_programs(fragir: Fragir, name: str, level: str) -> None:
    program, place, word = BAD[name]
    Path("bad.mlir").write_text(program)
    Path("kept").write_text("as it was")
    result = fragir("compile", "bad.mlir", "--to", level, "-o", "kept")
    one_clear_line(result, "bad.mlir", place, word)
    assert Path("kept").read_text() == "as it was"
    assert not fragir("compile", "bad.mlir", "--to", level, "-o", "new").code == 0
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("content", "place", "word"),
    [
        (b"\x7fELF\x00\x01", "", "binary"),
        (b"func.func @f() {\n  \xff\xfe\n}", ":2:3", "UTF-8"),
        (None, "", "No such file"),
    ],
)
def test_bad_files(fragir: Fragir, content: bytes | None, place: str, word: str) -> None:
    if content is not None:
        Path("bad.mlir").write_bytes(content)
    one_clear_line(fragir("compile", "bad.mlir", "-o", "x.ptx"), "bad.mlir", place, word)
    assert not Path("x.ptx").exists()


def test_a_folder_is_no_program(fragir: Fragir) -> None:
    Path("folder").mkdir()
    one_clear_line(fragir("compile", "folder"), "folder", "", "directory")


@pytest.mark.parametrize("target", ["sm_99", "sm_80a", "ampere", ""])
def test_unknown_targets(fragir: Fragir, target: str) -> None:
    result = fragir("compile", "tile.mlir", "--target", target, "-o", "x.ptx")
    one_clear_line(result, "", "", "sm_80")
    assert not Path("x.ptx").exists()


def test_an_instruction_the_target_has_not(fragir: Fragir) -> None:
    result = fragir("compile", "tile.mlir", "--target", "sm_70")
    one_clear_line(result, "tile.mlir", ":6:3", "sm_70 has no mma.sync")


def test_an_unknown_entry(fragir: Fragir) -> None:
    result = fragir("compile", "both.mlir", "--entry", "two")
    one_clear_line(result, "both.mlir", "", "one, gemm")


@pytest.mark.parametrize(
    "arguments",
    [
        ["tile.mlir", "-o", "out.txt"],
        ["tile.mlir", "--to", "sass"],
        ["tile.mlir", "--nothing"],
        [],
    ],
)
def test_wrong_usage(fragir: Fragir, arguments: list[str]) -> None:
    result = fragir("compile", *arguments)
    assert result.code == 2
    assert len(result.err.splitlines()) == 1
    assert not Path("out.txt").exists()


def test_an_output_that_cannot_be_written(fragir: Fragir) -> None:
    result = fragir("compile", "tile.mlir", "-o", "nowhere/out.ptx")
    one_clear_line(result, "nowhere/out.ptx", "", "cannot write")
