"""Programs of several kernels: calls, plans, memory, errors, and the command line."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir.host import Program

KERNEL = """
func.func @twice(%x: memref<?x64xf32> {frag.sizes = ["n", "c"]},
                 %y: memref<?x64xf32> {frag.sizes = ["n", "c"]}) {
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
  frag.for_tiles (%row, %col) of (%n, 64) by (16, 64) {
    %a = frag.load %x[%row, %col] masked : memref<?x64xf32> -> !frag.tile<16x64xf32>
    %b = frag.map %a : !frag.tile<16x64xf32> -> !frag.tile<16x64xf32> {
    ^bb0(%v: f32):
      %w = arith.addf %v, %v : f32
      frag.yield %w : f32
    }
    frag.store %b, %y[%row, %col] masked : !frag.tile<16x64xf32>, memref<?x64xf32>
  }
  func.return
}"""
HOST = """
func.func @main(%x: memref<?x64xf32> {{frag.sizes = ["n", "c"]}},
                %y: memref<?x64xf32> {{frag.sizes = ["n", "c"]}}{more}) attributes {{frag.host}} {{
  %c0 = arith.constant 0 : index
  %n = memref.dim %x, %c0 : memref<?x64xf32>
{body}
  func.return
}}"""
CHAIN = HOST.format(
    more="",
    body="""
  %t = memref.alloc(%n) : memref<?x64xf32>
  %u = memref.alloc(%n) : memref<?x64xf32>
  %v = memref.alloc(%n) : memref<?x64xf32>
  frag.launch @twice(%x, %t) : memref<?x64xf32>, memref<?x64xf32>
  frag.launch @twice(%t, %u) : memref<?x64xf32>, memref<?x64xf32>
  frag.launch @twice(%u, %v) : memref<?x64xf32>, memref<?x64xf32>
  frag.launch @twice(%v, %y) : memref<?x64xf32>, memref<?x64xf32>""",
)
LOOP = HOST.format(
    more=", %times: index",
    body="""
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %t = memref.alloc(%n) : memref<?x64xf32>
  frag.launch @twice(%x, %y) : memref<?x64xf32>, memref<?x64xf32>
  scf.for %i = %c0 to %times step %c1 {
    %odd = arith.remui %i, %c2 : index
    %first = arith.cmpi eq, %odd, %c0 : index
    scf.if %first {
      frag.launch @twice(%y, %t) : memref<?x64xf32>, memref<?x64xf32>
    } else {
      frag.launch @twice(%t, %y) : memref<?x64xf32>, memref<?x64xf32>
    }
  }""",
)


def program(text: str, target: str = "sm_80") -> Program:
    made = fragir.compile(text + KERNEL, target=target)
    assert isinstance(made, Program)
    return made


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize("rows", [0, 1, 37])
def test_launches_in_order(rows: int, check: bool) -> None:
    x = np.random.default_rng(0).standard_normal((rows, 64)).astype(np.float32)
    y = np.zeros_like(x)
    report = program(CHAIN)(x, y, on="emulator", check=check)
    assert np.array_equal(y, 16 * x)
    assert report.findings == []
    assert report.statistics.total > 0 or rows == 0


def test_the_plan() -> None:
    made = program(CHAIN)
    assert str(made.plan).splitlines() == [
        "launches",
        "  0  twice(x, t)",
        "  1  twice(t, u)",
        "  2  twice(u, v)",
        "  3  twice(v, y)",
        "temporaries",
        "     t: n x 64 of f32, steps 0 to 1",
        "     u: n x 64 of f32, steps 1 to 2",
        "     v: n x 64 of f32, steps 2 to 3",
    ]
    arena = made.arena([(10, 64)] * 3)
    assert arena.offsets[0] == arena.offsets[2] != arena.offsets[1]
    assert arena.size == 2 * 2560
    assert repr(made) == "<main(x, y) for sm_80: 4 launches>"
    assert made.ptx.count(".entry") == 1
    assert list(made.kernels) == ["twice"]
    assert made.parts == (made.kernels["twice"],)
    assert made.is_program
    assert not made.kernels["twice"].is_program
    assert [a.name for a in made.signature] == ["x", "y"]


@pytest.mark.parametrize("times", [0, 1, 2, 5])
def test_loops_and_branches(times: int) -> None:
    x = np.arange(3 * 64, dtype=np.float32).reshape(3, 64)
    y = np.zeros_like(x)
    program(LOOP)(x, y, times, on="emulator")
    assert np.array_equal(y, x * 2.0 ** (1 + times - times % 2))


def test_views_of_another_shape() -> None:
    text = """
func.func @main(%x: memref<4x16x64xf32>, %y: memref<?x64xf32> {frag.sizes = ["n", "c"]})
    attributes {frag.host} {
  %flat = memref.collapse_shape %x [[0, 1], [2]] : memref<4x16x64xf32> into memref<64x64xf32>
  %any = "memref.cast"(%flat) : (memref<64x64xf32>) -> memref<?x64xf32>
  frag.launch @twice(%any, %y) : memref<?x64xf32>, memref<?x64xf32>
  func.return
}"""
    x = np.random.default_rng(0).standard_normal((4, 16, 64)).astype(np.float32)
    y = np.zeros((64, 64), np.float32)
    program(text)(x, y, on="emulator")
    assert np.array_equal(y.reshape(x.shape), 2 * x)


def test_arrays_with_gaps_cannot_be_reshaped() -> None:
    text = """
func.func @main(%x: memref<4x16x64xf32, strided<[?, 64, 1]>>,
                %y: memref<?x64xf32> {frag.sizes = ["n", "c"]}) attributes {frag.host} {
  %flat = "memref.cast"(%x)
      : (memref<4x16x64xf32, strided<[?, 64, 1]>>) -> memref<4x16x64xf32>
  %two = memref.collapse_shape %flat [[0, 1], [2]] : memref<4x16x64xf32> into memref<64x64xf32>
  %any = "memref.cast"(%two) : (memref<64x64xf32>) -> memref<?x64xf32>
  frag.launch @twice(%any, %y) : memref<?x64xf32>, memref<?x64xf32>
  func.return
}"""
    x, y = np.zeros((8, 16, 64), np.float32)[::2], np.zeros((64, 64), np.float32)
    with pytest.raises(fragir.FragirError, match="has gaps"):
        program(text)(x, y, on="emulator")


def test_what_it_is_called_with_is_checked() -> None:
    made = program(CHAIN)
    x = np.zeros((4, 64), np.float32)
    with pytest.raises(fragir.FragirError, match=r"y has shape \(5, 64\).* with n = 4"):
        made(x, np.zeros((5, 64), np.float32), on="emulator")
    with pytest.raises(fragir.FragirError, match="main takes 2 arguments"):
        made(x, on="emulator")
    with pytest.raises(fragir.FragirError, match="has several kernels, each with a grid"):
        made.launch((1, 1, 1), None, x, x)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "  %z = arith.constant 0.0 : f32\n  memref.store %z, %x[%c0, %c0] : memref<?x64xf32>",
            "memref.store does not run on the host",
        ),
        (
            "  scf.for %i = %c0 to %n step %n {\n    %t = memref.alloc(%n) : memref<?x64xf32>\n"
            "    frag.launch @twice(%x, %t) : memref<?x64xf32>, memref<?x64xf32>\n  }",
            "allocates at its top",
        ),
        ("", "@main runs on the host, but launches no kernel"),
    ],
)
def test_what_does_not_run_on_the_host(body: str, words: str) -> None:
    with pytest.raises(fragir.FragirError, match=words) as caught:
        program(HOST.format(more="", body=body))
    assert caught.value.line is not None


def test_a_kernel_of_it_alone() -> None:
    kernel = fragir.compile(CHAIN + KERNEL, entry="twice")
    assert not kernel.is_program
    assert kernel.name == "twice"
