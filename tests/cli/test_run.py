"""`fragir run`: sizes, inputs, verdicts, and one clear line for what is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Fragir = Callable[..., Any]
pytestmark = pytest.mark.usefixtures("kept_cubins")

GEMM = """\
func.func @gemm(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>, %alpha: f32) {
  frag.matmul %a, %b transposed into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
    epilogue {
  ^bb0(%sum: f32, %old: f32):
    %x = arith.mulf %alpha, %sum : f32
    frag.yield %x : f32
  }
  func.return
}
"""
TILE = """\
func.func @tile(%a: memref<16x32xi8>, %b: memref<32x8xi8>, %c: memref<16x8xi32>) {
  %zero = arith.constant 0 : i32
  %ta = frag.load %a[0, 0] : memref<16x32xi8> -> !frag.tile<16x32xi8>
  %tb = frag.load %b[0, 0] : memref<32x8xi8> -> !frag.tile<32x8xi8>
  %tc = frag.fill %zero : !frag.tile<16x8xi32>
  %td = frag.mma %ta, %tb, %tc : !frag.tile<16x32xi8>, !frag.tile<32x8xi8>,
    !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %td, %c[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}
"""
NAMED = """\
func.func @copy(%x: memref<?x16xf32> {frag.sizes = ["rows", "width"]},
                %y: memref<?x16xf32> {frag.sizes = ["rows", "width"]})
    attributes {frag.grid = #frag.grid<rows by 16>} {
  %zero = arith.constant 0 : index
  %sixteen = arith.constant 16 : index
  %block = frag.block_id x
  %row = arith.muli %block, %sixteen : index
  %t = frag.load %x[%row, 0] masked : memref<?x16xf32> -> !frag.tile<16x16xf32>
  frag.store %t, %y[%row, 0] masked : !frag.tile<16x16xf32>, memref<?x16xf32>
  func.return
}
"""
UNNAMED = (
    NAMED.replace(' {frag.sizes = ["rows", "width"]}', "")
    .replace("attributes {frag.grid = #frag.grid<rows by 16>} ", "")
    .replace("frag.block_id x", "arith.constant 0 : index")
)
KEYS = [
    "entry", "target", "on", "stages", "registers", "spills", "shared", "max_error", "bound",
    "mismatches", "unjudged", "judged_by", "result",
]  # fmt: skip


@pytest.fixture(autouse=True)
def programs(in_folder: Path) -> None:
    Path("gemm.mlir").write_text(GEMM)
    Path("tile.mlir").write_text(TILE)
    Path("named.mlir").write_text(NAMED)
    Path("unnamed.mlir").write_text(UNNAMED)


SIZE = ("--size", "m=40,n=24,k=33")


def run(fragir: Fragir, *arguments: str) -> Any:
    return fragir("run", *arguments, "--on", "emulator")


def document(fragir: Fragir, *arguments: str) -> Any:
    result = run(fragir, *arguments, "--json")
    assert result.err == ""
    return json.loads(result.out)


# Verdicts ----------------------------------------------------------------------------------------


def test_the_document(fragir: Fragir) -> None:
    found = document(fragir, "gemm.mlir", *SIZE)
    assert list(found) == [*KEYS, "promised"]
    assert found["promised"] == {"n": 4}  # of n = 24, not of k = 33
    assert (found["entry"], found["target"], found["on"]) == ("gemm", "sm_80", "emulator")
    assert found["result"] == "PASS"
    assert (found["mismatches"], found["unjudged"], found["judged_by"]) == (0, 0, "bound")
    assert 0 < found["max_error"] <= found["bound"] < 1e-3
    assert found["registers"] > 0
    assert found["spills"] == 0
    assert {"parse", "frag-tile", "frag-place", "emit", "ptxas", "run", "reference"} <= set(
        found["stages"]
    )
    assert all(ms >= 0 for ms in found["stages"].values())


def test_the_table(fragir: Fragir) -> None:
    result = run(fragir, "gemm.mlir", *SIZE)
    assert result.code == 0
    assert result.out.startswith("gemm for sm_80 on the emulator: m=40 n=24 k=33\n")
    for word in ("ptxas", "registers", "spills", "HMMA", "largest error in c", "bound"):
        assert word in result.out
    assert result.out.endswith("\nPASS\n")


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("inputs", ["normal", "onehot", "integers", "zeros"])
def test_inputs(fragir: Fragir, target: str, inputs: str) -> None:
    found = document(
        fragir, "gemm.mlir", *SIZE, "--target", target, "--inputs", inputs, "--seed", "5"
    )
    assert found["result"] == "PASS"
    assert found["target"] == target
    assert (found["bound"] == 0) == (inputs != "normal")


@pytest.mark.parametrize("inputs", ["normal", "onehot"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("size", ["m=0,n=24,k=33", "m=40,n=0,k=33", "m=40,n=24,k=0", "m=0,n=0,k=0"])
def test_sizes_of_zero(fragir: Fragir, size: str, target: str, inputs: str) -> None:
    """No rows, no columns: nothing runs. No products: the sums are zero, exactly."""
    found = document(fragir, "gemm.mlir", "--size", size, "--target", target, "--inputs", inputs)
    assert (found["result"], found["bound"], found["unjudged"]) == ("PASS", 0, 0)
    assert "run" in found["stages"]


def test_seeds_differ(fragir: Fragir) -> None:
    errors = {document(fragir, "gemm.mlir", *SIZE, "--seed", seed)["max_error"] for seed in "123"}
    assert len(errors) == 3
    again = document(fragir, "gemm.mlir", *SIZE, "--seed", "1")
    assert again["max_error"] in errors


@pytest.mark.parametrize("inputs", ["normal", "onehot"])
def test_integers_are_compared_exactly(fragir: Fragir, inputs: str) -> None:
    found = document(fragir, "tile.mlir", "--inputs", inputs)
    assert (found["result"], found["max_error"], found["bound"]) == ("PASS", 0, 0)


def wrong_results(monkeypatch: pytest.MonkeyPatch, place: tuple[int, int], by: float) -> None:
    """A machine that makes a mistake."""
    from fragir.compiler import Kernel

    right = Kernel.launch

    def wrong(self: Kernel, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
        report = right(self, grid, block, *arguments, **options)
        arguments[2][place] += by
        return report

    monkeypatch.setattr(Kernel, "launch", wrong)


def test_a_wrong_element_fails(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_results(monkeypatch, (7, 3), 0.01)
    result = run(fragir, "gemm.mlir", *SIZE)
    assert result.code == 1
    assert result.out.endswith("\nFAIL\n")
    assert "worst, c[7, 3]" in result.out
    found = document(fragir, "gemm.mlir", *SIZE)
    assert (found["result"], found["mismatches"]) == ("FAIL", 1)
    assert found["max_error"] == pytest.approx(0.01, rel=0.1)
    assert found["max_error"] > found["bound"]


def test_an_integer_that_is_off_by_one_fails(
    fragir: Fragir, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong_results(monkeypatch, (15, 7), 1)
    found = document(fragir, "tile.mlir")
    assert (found["result"], found["mismatches"], found["max_error"]) == ("FAIL", 1, 1)


def test_not_a_number_fails_and_is_no_json(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_results(monkeypatch, (0, 0), float("nan"))
    found = document(fragir, "gemm.mlir", *SIZE)
    assert (found["result"], found["mismatches"], found["max_error"]) == ("FAIL", 1, None)


# Sizes and arguments -----------------------------------------------------------------------------


def test_sizes_by_their_given_names(fragir: Fragir) -> None:
    assert document(fragir, "named.mlir", "--size", "rows=37")["bound"] == 0
    assert document(fragir, "named.mlir", "--size", "rows=37", "--size", "width=16")


def test_dimensions_without_a_name(fragir: Fragir) -> None:
    result = run(fragir, "unnamed.mlir")
    assert result.code == 1
    assert "x_d0" in result.err
    assert document(fragir, "unnamed.mlir", "--size", "x_d0=16,m=16")["result"] == "PASS"


def test_unbound_sizes_are_listed(fragir: Fragir) -> None:
    for arguments, missing in ((["--size", "m=8"], "k, n"), ([], "k, m, n")):
        result = run(fragir, "gemm.mlir", *arguments)
        assert result.code == 1
        assert result.err.startswith(f"error: sizes without a value: {missing} (--size k=...,")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["named.mlir", "--size", "rows=4,width=8"], "width is 8 by --size, but 16 by x's type"),
        (["named.mlir", "--size", "rows=4,q=8"], "there is no size q (the sizes are rows, width)"),
        (["tile.mlir", "--size", "m=17"], "m is 17 by --size, but 16 by a's type"),
    ],
)
def test_sizes_that_contradict(fragir: Fragir, arguments: list[str], words: str) -> None:
    result = run(fragir, *arguments)
    assert result.code == 1
    assert words in result.err
    assert len(result.err.splitlines()) == 1


def test_arrays_and_numbers_from_outside(fragir: Fragir) -> None:
    generator = np.random.default_rng(0)
    np.save("a.npy", generator.standard_normal((9, 12)).astype(np.float16))
    np.save("b.npy", generator.standard_normal((5, 12)).astype(np.float64))
    files = ["--arg", "a=a.npy", "--arg", "b=b.npy"]
    found = document(fragir, "gemm.mlir", *files, "--arg", "alpha=0")
    assert (found["result"], found["bound"]) == ("PASS", 0)
    assert document(fragir, "gemm.mlir", *files)["bound"] > 0


FROM_EMPTY = """\
#id = affine_map<(m, n) -> (m, n)>
#column = affine_map<(m, n) -> (n)>
func.func @other(%a: tensor<2xf32>) -> tensor<2xf32> {
  func.return %a : tensor<2xf32>
}
func.func @f(%a: tensor<?x?xf16>, %b: tensor<?x?xf16>, %u: tensor<?xf16>) -> tensor<?x?xf16> {
  %z = arith.constant 0.0 : f16
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %m = tensor.dim %a, %i0 : tensor<?x?xf16>
  %n = tensor.dim %b, %i1 : tensor<?x?xf16>
  %empty = tensor.empty(%m, %n) : tensor<?x?xf16>
  %start = linalg.fill ins(%z : f16) outs(%empty : tensor<?x?xf16>) -> tensor<?x?xf16>
  %sum = linalg.matmul ins(%a, %b : tensor<?x?xf16>, tensor<?x?xf16>)
    outs(%start : tensor<?x?xf16>) -> tensor<?x?xf16>
  %d = linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%u : tensor<?xf16>) outs(%sum : tensor<?x?xf16>) {
  ^bb0(%x: f16, %y: f16):
    %s = arith.addf %x, %y : f16
    linalg.yield %s : f16
  } -> tensor<?x?xf16>
  func.return %d : tensor<?x?xf16>
}
"""
ALLOCATED = """\
#id = affine_map<(m, n) -> (m, n)>
#row = affine_map<(m, n) -> (m, 0)>
func.func @f(%a: memref<?x?xf64>, %b: memref<?x?xf64>, %u: memref<?x1xf64>, %d: memref<?x?xf64>) {
  %z = arith.constant 0.0 : f64
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %m = memref.dim %a, %i0 : memref<?x?xf64>
  %n = memref.dim %b, %i1 : memref<?x?xf64>
  %c = memref.alloc(%m, %n) : memref<?x?xf64>
  linalg.fill ins(%z : f64) outs(%c : memref<?x?xf64>)
  linalg.matmul ins(%a, %b : memref<?x?xf64>, memref<?x?xf64>) outs(%c : memref<?x?xf64>)
  linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%u, %c : memref<?x1xf64>, memref<?x?xf64>) outs(%d : memref<?x?xf64>) {
  ^bb0(%x: f64, %y: f64, %old: f64):
    %s = arith.mulf %x, %y : f64
    linalg.yield %s : f64
  }
  func.return
}
"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("program", [FROM_EMPTY, ALLOCATED])
def test_linalg_needs_the_sizes_of_the_product_only(
    fragir: Fragir, program: str, target: str
) -> None:
    Path("linalg.mlir").write_text(program)
    found = document(fragir, "linalg.mlir", *SIZE, "--entry", "f", "--target", target)
    assert found["result"] == "PASS"
    assert found["bound"] > 0


def test_the_result_of_tensors_is_an_argument(
    fragir: Fragir, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fragir.compiler import Kernel

    Path("linalg.mlir").write_text(FROM_EMPTY)
    right = Kernel.launch

    def wrong(self: Kernel, grid: Any, block: Any, *arguments: Any, **options: Any) -> Any:
        report = right(self, grid, block, *arguments, **options)
        arguments[3][5, 6] += 1
        return report

    monkeypatch.setattr(Kernel, "launch", wrong)
    result = run(fragir, "linalg.mlir", *SIZE, "--entry", "f")
    assert result.code == 1
    assert "[5, 6]" in result.out


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("3", "no list of strings"),
        ('["rows", 4]', "no list of strings"),
        ('["rows", ""]', "no list of strings"),
        ('["rows", "width", "depth"]', "has 3 names for 2 dimensions"),
        ("[]", "has 0 names for 2 dimensions"),
    ],
)
def test_sizes_that_are_no_names(fragir: Fragir, given: str, words: str) -> None:
    text = NAMED.replace('["rows", "width"]},', f"{given}}},", 1)
    Path("wrong.mlir").write_text(text)
    for command in (["run", "wrong.mlir", "--on", "emulator"], ["compile", "wrong.mlir"]):
        result = fragir(*command)
        assert result.code == 1
        assert result.err.startswith(f"error: wrong.mlir:1:1: %x: frag.sizes = {given[0]}")
        first = result.err.splitlines()[0]
        assert words in first
        assert first.endswith('write a name for each dimension: frag.sizes = ["m", "n"]')


def test_static_sizes_need_no_names(fragir: Fragir) -> None:
    text = NAMED.replace('["rows", "width"]', '["rows"]')
    Path("short.mlir").write_text(text)
    assert document(fragir, "short.mlir", "--size", "rows=20")["result"] == "PASS"


def save_all(**arrays: Any) -> None:
    for name, array in arrays.items():
        np.save(f"{name}.npy", array)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--arg", "a=wide.npy", *SIZE], "the size k is 33 by --size, but 7 by the array of a"),
        (["--arg", "a=wide.npy", "--arg", "b=long.npy"], "k is 7 by the array of a, but 12 by"),
        (["--arg", "a=flat.npy", *SIZE], "a has 1 dimensions, the program takes 2"),
        (["--arg", "a=text.npy", *SIZE], "a is f16, the array holds <U1"),
        (["--arg", "a=none.npy", *SIZE], "none.npy: cannot read this file"),
        (["--arg", "a=bad.npy", *SIZE], "bad.npy: this is no .npy array"),
        (["--arg", "alpha=much", *SIZE], "'much' is no number"),
        (["--arg", "q=1", *SIZE], "gemm has no argument q (it has a, b, c, alpha)"),
    ],
)
def test_bad_arguments(fragir: Fragir, arguments: list[str], words: str) -> None:
    save_all(
        wide=np.zeros((40, 7), np.float16),
        long=np.zeros((5, 12), np.float16),
        flat=np.zeros(4, np.float16),
        text=np.array([["a"]]),
    )
    Path("bad.npy").write_bytes(b"\x93NUMPY and so on")
    result = run(fragir, "gemm.mlir", *arguments)
    assert result.code == 1
    assert words in result.err
    assert len(result.err.splitlines()) == 1


def test_an_array_for_an_integer_must_fit(fragir: Fragir) -> None:
    np.save("a.npy", np.full((16, 32), 200))
    result = run(fragir, "tile.mlir", "--arg", "a=a.npy")
    assert result.code == 1
    assert "a: the array has numbers that s8 has not" in result.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["--size", "m"],
        ["--size", "m=-1"],
        ["--size", "m=1,m=2"],
        ["--size", "m=99999999999"],
        ["--arg", "a"],
        ["--arg", "a="],
        ["--arg", "a=1", "--arg", "a=2"],
        ["--inputs", "random"],
        ["--seed", "-1"],
        ["--on", "cpu"],
    ],
)
def test_wrong_usage(fragir: Fragir, arguments: list[str]) -> None:
    result = fragir("run", "gemm.mlir", *arguments)
    assert result.code == 2
    assert len(result.err.splitlines()) == 1


# Programs that are wrong -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.mlir"], "none.mlir: cannot read this file"),
        (["gemm.mlir", *SIZE, "--target", "sm_1"], "no target of this compiler"),
        (["gemm.mlir", *SIZE, "--entry", "f"], "there is no function f; the program has gemm"),
        (["broken.mlir"], "broken.mlir:2:"),
        (["binary.mlir"], "binary.mlir: this is a binary file"),
        (["nothing.mlir"], "writes none of its arguments"),
        (["outside.mlir"], "outside.mlir:3:3: frag.load: 16 elements from 8 on in dimension 0 lie"),
        (
            ["leaves.mlir", "--size", "x_d0=16"],
            "leaves.mlir:3:3: frag.load: the tile at [8, 0]",
        ),
        (["lanes.mlir"], "lanes.mlir: tile is lane code"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_bad_programs(fragir: Fragir, arguments: list[str], words: str, as_json: bool) -> None:
    Path("broken.mlir").write_text(GEMM[:150])
    Path("binary.mlir").write_bytes(b"\0" * 9)
    Path("nothing.mlir").write_text("func.func @f(%x: f32) {\n  func.return\n}\n")
    outside = (
        "func.func @f(%x: memref<16x16xf32>, %y: memref<16x16xf32>) {\n"
        "  %zero = arith.constant 0 : index\n"
        "  %t = frag.load %x[8, 0] : memref<16x16xf32> -> !frag.tile<16x16xf32>\n"
        "  frag.store %t, %y[0, 0] : !frag.tile<16x16xf32>, memref<16x16xf32>\n"
        "  func.return\n}\n"
    )
    Path("outside.mlir").write_text(outside)
    # what is known at the launch alone
    dynamic = outside.replace("%x: memref<16x16", "%x: memref<?x16")
    Path("leaves.mlir").write_text(
        dynamic.replace(": memref<16x16xf32> ->", ": memref<?x16xf32> ->")
    )
    Path("lanes.mlir").write_text(fragir("compile", "tile.mlir", "--to", "lane").out)
    result = run(fragir, *arguments, *(["--json"] if as_json else []))
    assert result.code == 1
    if as_json:
        error = json.loads(result.out)["error"]
        place = ":".join(str(error[k]) for k in ("file", "line", "col") if error[k] is not None)
        assert words in f"{place}: {error['message']}"
        return
    assert result.out == ""
    lines = result.err.splitlines()
    assert words in lines[0]
    assert len(lines) in (1, 3)
    assert "unexpected" not in lines[0]


def test_without_a_gpu(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    """`auto` says that it emulates; `gpu` ends."""
    from fragir.errors import FragirError
    from fragir.toolchain import driver

    def nothing() -> Any:
        raise FragirError("no GPU here")

    monkeypatch.setattr(driver, "available", lambda: "no GPU here")
    monkeypatch.setattr(driver, "gpu", nothing)
    result = fragir("run", "tile.mlir", "--json")
    assert (result.code, json.loads(result.out)["on"]) == (0, "emulator")
    assert result.err == "no GPU, so this runs on the emulator: no GPU here\n"
    result = fragir("run", "tile.mlir", "--on", "gpu")
    assert (result.code, result.err) == (1, "error: no GPU here\n")


@pytest.mark.gpu
@pytest.mark.parametrize("inputs", ["normal", "onehot"])
def test_on_a_gpu(fragir: Fragir, inputs: str) -> None:
    from fragir.toolchain import driver

    reason = driver.available()
    if reason is not None:
        pytest.skip(reason)
    for program in ("gemm.mlir", "tile.mlir"):
        sizes = SIZE if program == "gemm.mlir" else ()
        result = fragir("run", program, *sizes, "--on", "gpu", "--inputs", inputs, "--json")
        assert (result.code, json.loads(result.out)["result"]) == (0, "PASS")


def test_without_ptxas(fragir: Fragir, monkeypatch: pytest.MonkeyPatch) -> None:
    """The emulator needs none."""
    from fragir.errors import FragirError
    from fragir.toolchain import find

    def nothing(*_: object) -> Any:
        raise FragirError("no ptxas here")

    monkeypatch.setattr(find, "find", nothing)
    result = run(fragir, "tile.mlir", "--json")
    found = json.loads(result.out)
    assert (found["result"], found["registers"], found["spills"]) == ("PASS", None, None)
    assert result.err == "not assembled: no ptxas here\n"


@pytest.mark.parametrize("size", [2**31 - 1, 10**6])
def test_arrays_that_no_machine_has_room_for(fragir: Fragir, size: int) -> None:
    """2^62 elements are more than numpy can name, 10^12 than fits; both are said at once."""
    result = run(fragir, "gemm.mlir", "--size", f"m={size},n={size},k=1")
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: the arrays need ")
    assert f"the largest is c: {size}x{size}" in result.err
    assert "choose smaller sizes" in result.err
