"""What is said of slow launches: the cause, its line, and about what it costs."""

import json
from pathlib import Path

import pytest

import fragir
from fragir.compilation.lint import launch_model
from fragir.compilation.signature import Interface
from fragir.roofline.lint import CAUSES, LaunchRemark
from fragir.scheduling.devices import device_named
from tests.roofline.programs import named, reduction

EXAMPLES = Path(__file__).parents[2] / "examples"


COLUMNS = """
func.func @f(%x: memref<8192x4096xf32>, %y: memref<4096x8192xf32>)
    attributes {frag.grid = #frag.grid<4096 by 4, 8192 by 128>, frag.warps = array<i64: 4, 1>} {
  %c4 = arith.constant 4 : index
  %c128 = arith.constant 128 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %j = arith.muli %bx, %c4 : index
  %i = arith.muli %by, %c128 : index
  %t = frag.load %x[%i, %j] transposed : memref<8192x4096xf32> -> !frag.tile<4x128xf32>
  %u = frag.map %t : !frag.tile<4x128xf32> -> !frag.tile<4x128xf32> {
  ^bb0(%a: f32):
    %b = arith.addf %a, %a : f32
    frag.yield %b : f32
  }
  frag.store %u, %y[%j, %i] : !frag.tile<4x128xf32>, memref<4096x8192xf32>
  func.return
}
"""
"""Elements that lie below each other are those of neighbouring lanes."""
PLACED = """
func.func @f(%a: memref<4096x4096xf32>, %b: memref<4096x4096xf32>, %y: memref<4096x4096xf32>) {
  %zero = arith.constant 0.0 : f32
  linalg.fill ins(%zero : f32) outs(%y : memref<4096x4096xf32>)
  linalg.generic {
      indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (k, j)>,
        affine_map<(i, j, k) -> (i, j)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : memref<4096x4096xf32>, memref<4096x4096xf32>)
      outs(%y : memref<4096x4096xf32>) {
  ^bb0(%x: f32, %z: f32, %c: f32):
    %k = linalg.index 2 : index
    %end = arith.constant 4000 : index
    %in = arith.cmpi ult, %k, %end : index
    %p = arith.mulf %x, %z : f32
    %s = arith.addf %c, %p : f32
    %r = arith.select %in, %s, %c : f32
    linalg.yield %r : f32
  }
  func.return
}
"""
"""A product of which places matter: lanes read the factors from global memory."""


def told(text: str, target: str = "sm_90a", entry: str | None = None) -> dict[str, LaunchRemark]:
    """The remarks by their causes."""
    return {one.cause: one for one in fragir.compile(text, target=target, entry=entry).lint()}


@pytest.mark.parametrize(
    ("text", "cause", "words", "least", "most"),
    [
        # 32 lanes of 4 bytes touch a sector each, where 4 sectors have 128 bytes
        (COLUMNS, "sectors", "a warp reads x by 32 sectors of 32 bytes for 128 bytes", 1.8, 8),
        # every warp reads its own rows of a from global memory, again for each column of warps
        (
            PLACED,
            "again",
            "times by a block",
            1.3,
            4,
        ),
    ],
)
def test_a_cause_is_told_with_its_factor(
    text: str, cause: str, words: str, least: float, most: float
) -> None:
    found = told(text)[cause]
    assert words in found.words
    assert least <= found.factor <= most
    assert found.place.startswith("<input>:")


def test_few_blocks() -> None:
    text = """
func.func @copy(%x: memref<4096x4096xf32>, %y: memref<4096x4096xf32>)
    attributes {frag.grid = #frag.grid<BLOCKS>, frag.warps = array<i64: 4, 1>} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %rows = arith.constant 4096 : index
  %bx = frag.block_id x
  %column = arith.muli %bx, %c16 : index
  scf.for %i = %c0 to %rows step %c16 {
    %t = frag.load %x[%i, %column] : memref<4096x4096xf32> -> !frag.tile<16x16xf32>
    frag.store %t, %y[%i, %column] : !frag.tile<16x16xf32>, memref<4096x4096xf32>
  }
  func.return
}
"""
    few = told(text.replace("BLOCKS", "8"))
    assert "8 blocks: 8 of the 132 SMs of the H100 work" in few["sms"].words
    # what 8 blocks read they read alone: 132 / 8 of the time where it is well spread, or less
    assert 2 <= few["sms"].factor <= 132 / 8
    assert few["sms"].place == ""
    assert str(few["sms"]).startswith("copy: ")
    assert "sms" not in told(text.replace("BLOCKS", "256"))


def test_passes_over_memory() -> None:
    text = (EXAMPLES / "rows" / "softmax.mlir").read_text()
    kernel = fragir.compile(text, target="sm_90a", entry="softmax_backward")
    assert not kernel.lint(
        {"m": 8192, "n": 4096}
    )  # rows that L2 still has when they are read again
    (found,) = kernel.lint({"m": 8192, "n": 65536})
    assert found.cause == "passes"
    # reads y and dy twice, writes dx: 5 for 3
    assert "read in 2 passes" in found.words
    assert found.factor == pytest.approx(5 / 3, rel=0.1)


def test_scalar_accesses_for_want_of_a_promise() -> None:
    text = """
#rows = #frag.layout<"warp [4:(4,0)] lane [8:(0,8) 4:(1,0)] element [8:(0,1)]">
!tile = !frag.tile<16x64xi8, #rows>

func.func @f(%x: memref<?x?xi8> {frag.sizes = ["m", "n"]},
             %y: memref<?x?xi8> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m by 16, n by 64>, frag.warps = array<i64: 4, 1>PROMISE} {
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %bx = frag.block_id x
  %by = frag.block_id y
  %i = arith.muli %bx, %c16 : index
  %j = arith.muli %by, %c64 : index
  %t = frag.load %x[%i, %j] masked : memref<?x?xi8> -> !tile
  frag.store %t, %y[%i, %j] masked : !tile, memref<?x?xi8>
  func.return
}
"""
    kernel = fragir.compile(text.replace("PROMISE", ""), target="sm_90a")
    (found,) = (one for one in kernel.own_lint() if one.cause == "narrow")
    assert "by 1 bytes" in found.words
    assert "frag.divisible = {n = 16}" in found.words
    assert not told(text.replace("PROMISE", ", frag.divisible = {n = 16}"))
    # of a call it is told of the entry that it runs: sizes of 4096 keep to what this one lacks
    assert not kernel.lint()
    assert "narrow" in {one.cause for one in kernel.lint({"n": 4095})}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_a_good_product_is_silent(target: str) -> None:
    bf16 = named("matmul", ("4096x4096xbf16",) * 2, "4096x4096xbf16")
    assert not told(bf16, target)


def test_a_short_launch_is_silent() -> None:
    assert not told(reduction("f", (512, 64), (1,)))


def test_sizes_and_devices() -> None:
    kernel = fragir.compile((EXAMPLES / "rows" / "softmax.mlir").read_text(), entry="softmax")
    large = kernel.lint({"m": 8192, "n": 65536}, device_named("H100"))
    assert [one.cause for one in large] == ["passes"]
    assert not kernel.lint({"m": 16, "n": 64})
    assert any(one.cause == "sms" for one in kernel.lint({"m": 8, "n": 1 << 20}))


def test_where_it_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from fragir.cli.main import main
    from fragir.explain import explain

    text = COLUMNS
    kernel = fragir.compile(text, target="sm_90a")
    assert any("32 sectors" in note for note in kernel.notes)
    found = kernel.lint()[0]
    assert found.cause in CAUSES
    assert json.loads(json.dumps(found.document))["place"] == found.place
    report = explain(text, target="sm_90a", sass=False)
    marks = [mark for mark in report.marks if mark.kind == "slow"]
    assert [mark.source for mark in marks] == [10]
    program = tmp_path / "f.mlir"
    program.write_text(text)
    main(["compile", str(program), "--explain-schedule", "-o", str(tmp_path / "f.ptx")])
    assert "f.mlir:10:3: a warp reads x by 32 sectors" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("element", "target", "speed"),
    [
        ("f16", "sm_89", 512),
        ("i8", "sm_89", 4 * 512),  # f16 is summed in f32 at half of its rate there
        ("i8", "sm_80", 2 * 2048),
        ("f8E4M3FN", "sm_90", 0.4 * 0.65 * 4096),  # unpacked to f16, by mma.sync
    ],
)
def test_tensor_cores_are_as_fast_as_the_cost_model_says(
    element: str, target: str, speed: float
) -> None:
    sums = "i32" if element == "i8" else "f32"
    a = f"memref<256x256x{element}>"
    text = f"""
func.func @f(%a: {a}, %b: {a}, %c: memref<256x256x{sums}>) {{
  frag.matmul %a, %b transposed into %c : {a}, {a} into memref<256x256x{sums}>
  func.return
}}
"""
    kernel = fragir.compile(text, target=target)
    assert kernel.lanes is not None
    interface = Interface(kernel.signature, kernel.grid_attribute, {})
    model = launch_model(interface, kernel.lanes, target)
    assert model.tensor(best=False) * model.blocks == pytest.approx(2 * 256**3 / speed)
