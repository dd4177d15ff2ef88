"""`fragir sass`, and what `fragir compile` and `check` say of schedules that ptxas spoils."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fragir as fragir_package
from fragir.cli.main import main
from tests.cli.test_json import validate
from tests.cli.test_spills import FEW

Fragir = Callable[..., Any]

SQUARE = """\
func.func @f(%a: memref<64x65536xf16>, %b: memref<65536x64xf16>, %c: memref<64x64xf32>) {
  frag.matmul %a, %b into %c {tile = array<i64: 64, 64, 32>}
    : memref<64x65536xf16>, memref<65536x64xf16> into memref<64x64xf32>
  func.return
}
"""

PTX = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p)
{
    .reg .b64 %rd<3>; .reg .f32 %f<5>; .reg .b32 %r<3>;
    ld.param.u64 %rd1, [p];
    setmaxnreg.dec.sync.aligned.u32 24;
    mov.u32 %r1, 7;
    st.global.u32 [%rd1], %r1;
    ret;
}
"""


@pytest.fixture
def square() -> str:
    Path("square.mlir").write_text(SQUARE)
    return "square.mlir"


def test_loops_of_a_program(fragir: Fragir, square: str) -> None:
    result = fragir("sass", square, "--loops")
    assert (result.code, result.err) == (0, "")
    head, row = result.out.splitlines()[0], result.out.splitlines()[-1]
    assert head.split()[:6] == ["function", "address", "depth", "from", "all", "tensor"]
    assert "square.mlir:2" in row
    assert "cp.async 1" in row


def test_conditions(fragir: Fragir, square: str) -> None:
    assert fragir("sass", square, "--require", "HMMA=16", "--require", "spill=0").code == 0
    result = fragir("sass", square, "--require", "HMMA>=17")
    assert (result.code, result.out) == (1, "")
    assert result.err == "missed: HMMA >= 17 is wanted, there are 16\n"
    stretch = ("--between", "cp.async:1", "BAR", "--require")
    assert fragir("sass", square, *stretch, "tensor=0").code == 0
    assert fragir("sass", square, *stretch, "tensor>=1").code == 1
    for wrong in (["--between", "(", "BAR", "--require", "HMMA=1"], ["--between", "a", "b"]):
        assert main(["sass", square, *wrong]) == 2


def test_json_and_a_cubin(fragir: Fragir, square: str) -> None:
    document = json.loads(fragir("sass", square, "--require", "HMMA=1", "--json").out)
    validate(document, "sass")
    assert document["missed"] == ["HMMA = 1 is wanted, there are 16"]
    fragir("compile", square, "-o", "k.cubin")
    from_cubin = json.loads(fragir("sass", "k.cubin", "--json").out)
    validate(from_cubin, "sass")
    assert [{**loop, "from": "square.mlir:2"} for loop in from_cubin["loops"]] == document["loops"]


def test_code_of_ptx(fragir: Fragir) -> None:
    Path("k.ptx").write_text(PTX)
    result = fragir("sass", "k.ptx")
    assert result.code == 0
    assert ".text.k:" in result.out
    assert "line 10\n" in result.out
    assert fragir("sass", "k.ptx", "--loops").out == "no loops\n"
    result = fragir("sass", "k.ptx", "--require", "HMMA=1")
    assert (result.code, result.out) == (1, "")
    assert "no loop with tensor-core instructions" in result.err


def test_check_tells_what_ptxas_did(fragir: Fragir) -> None:
    Path("k.ptx").write_text(PTX)
    np.save("x.npy", np.zeros(1, np.uint32))
    launch = ("check", "k.ptx", "--block", "128", "--arg", "out:x.npy", "--seeds", "0")
    result = fragir(*launch, "--performance", "--json")
    document = json.loads(result.out)
    validate(document, "check")
    (finding,) = (f for f in document["findings"] if f["kind"] == "setmaxnreg")
    assert (result.code, finding["severity"], finding["file"]) == (1, "remark", "k.ptx")
    assert ".reqntid" in finding["message"]
    assert "remark" in fragir(*launch).err


def test_the_place_of_serialised_products_is_told(fragir: Fragir) -> None:
    """Printing is a call, which no product may be under way across."""
    examples = Path(__file__).resolve().parents[2] / "examples"
    text = (examples / "wgmma_registers.mlir").read_text().partition("func.func @k_major")[0]
    Path("clean.mlir").write_text(text)
    printing = text.replace("  frag.store %1", '  frag.print "x", %1 : !acc\n  frag.store %1')
    Path("prints.mlir").write_text(printing)
    (line,) = (n for n, x in enumerate(printing.splitlines(), 1) if "frag.print" in x)
    assert fragir("compile", "clean.mlir", "--target", "sm_90a", "-o", "k.cubin").err == ""
    result = fragir("compile", "prints.mlir", "--target", "sm_90a", "-o", "k.cubin")
    assert result.code == 0
    assert result.err.startswith(f"warning: prints.mlir:{line}:3 (PTX ")
    assert "): ptxas runs the wgmma of mn_major" in result.err
    assert "where a function is called" in result.err
    notes = fragir_package.compile(printing, target="sm_90a", filename="prints.mlir").notes
    assert [f"warning: {words}\n" for words in notes] == [result.err]


def test_the_place_of_spills_is_told(fragir: Fragir) -> None:
    Path("few.mlir").write_text(FEW)
    result = fragir("compile", "few.mlir", "-o", "few.cubin")
    assert result.code == 0
    assert result.err.startswith("warning: f spills: its values do not fit into 255 registers")
    assert re.search(r"fill all registers; most of it at few\.mlir:2:3 \(PTX \d+\)\n$", result.err)
