"""What a call runs where rows are multiples of 16 bytes: an entry that relies on it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import fragir
from fragir.compilation.kernel import Compiled
from fragir.errors import FragirError

EXAMPLES = Path(__file__).parents[2] / "examples"
GEMM = (EXAMPLES / "gemm.mlir").read_text()
ADD = """
func.func @add(%x: memref<?x?xf16>, %y: memref<?x?xf16>, %z: memref<?x?xf16>) {
  linalg.add ins(%x, %y : memref<?x?xf16>, memref<?x?xf16>) outs(%z : memref<?x?xf16>)
  func.return
}
"""


def promised(kernel: Compiled) -> list[dict[str, int]]:
    return [entry.promises for entry in kernel.second_entries]


@pytest.fixture(scope="module", params=["sm_80", "sm_90a"])
def gemm(request: pytest.FixtureRequest) -> fragir.Kernel:
    return fragir.compile(GEMM, target=request.param)


@pytest.mark.parametrize(
    ("m", "n", "k", "kept"),
    [
        (33, 24, 40, {"n": 8, "k": 8}),
        (33, 25, 40, {"k": 8}),
        (9, 4, 12, {}),
        (5, 8, 0, {"n": 8, "k": 8}),
        (0, 8, 8, {"n": 8, "k": 8}),
    ],
)
def test_a_product_of_sizes(
    gemm: fragir.Kernel, m: int, n: int, k: int, kept: dict[str, int]
) -> None:
    entry = gemm.entry_for({"m": m, "n": n, "k": k})
    assert entry.promises == kept
    assert (entry is gemm) == (not kept)
    random = np.random.default_rng(0)
    a, b = (random.integers(-4, 5, shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c = random.integers(-4, 5, (m, n)).astype(np.float32)
    expected = 2 * (a.astype(np.float32) @ b.astype(np.float32)) + 3 * c
    report = gemm(a, b, c, 2.0, 3.0, on="emulator", check=k == 0)
    assert not report.findings
    np.testing.assert_array_equal(c, expected)


def test_it_is_compiled_once(gemm: fragir.Kernel) -> None:
    sizes = {"m": 40, "n": 64, "k": 64}
    assert gemm.entry_for(sizes) is gemm.entry_for({name: 2 * n for name, n in sizes.items()})
    said = "the entry relies on it: k is a multiple of 8, n is a multiple of 8"
    assert said in gemm.entry_for(sizes).remarks
    assert said not in gemm.remarks
    with pytest.raises(FragirError, match="k = 63, but gemm is promised multiples of 8"):
        gemm.entry_for(sizes).grid(sizes | {"k": 63})


def test_what_it_gains() -> None:
    """Without the promise elements of f16 go one by one; the text itself stays as it is."""
    kernel = fragir.compile(ADD, target="sm_80")
    text, names = kernel.ptx, [name for name in kernel.signature[0].dims if isinstance(name, str)]
    assert not re.search(r"ld\.global\S*\.v4", text)
    entry = kernel.entry_for(dict.fromkeys(names, 64))
    assert re.search(r"ld\.global\S*\.v4\.b32", entry.ptx)
    assert kernel.ptx == text == fragir.compile(ADD, target="sm_80", alone=True).ptx


@pytest.mark.parametrize("shape", [(7, 24), (7, 25)])
def test_rows(shape: tuple[int, int]) -> None:
    kernel = fragir.compile(ADD, target="sm_80")
    x, y = (np.random.default_rng(1).standard_normal(shape).astype(np.float16) for _ in "xy")
    z = np.zeros_like(x)
    assert not kernel(x, y, z, on="emulator", check=True).findings
    np.testing.assert_array_equal(z, x + y)
    assert len(kernel.second_entries) == (shape[1] % 8 == 0)


def test_strides_count() -> None:
    """A stride that the array brings is a size as others are."""
    with fragir.kernel("copy", target="sm_80", warps=(1, 1)) as k:
        x = k.memory("x", fragir.f16, ("m", 64), strides=(None, 1))
        y = k.memory("y", fragir.f16, ("m", 64))
        k.store(k.load(x, (0, 0), shape=(8, 64), masked=True), y, (0, 0), masked=True)
    kernel = k.compile()
    source = np.arange(8 * 80, dtype=np.float16).reshape(8, 80)
    for width, kept in ((80, True), (77, False)):
        rows = np.ascontiguousarray(source[:, :width])[:, :64]
        found = np.zeros((8, 64), np.float16)
        before = len(kernel.second_entries)
        kernel(rows, found, on="emulator")
        np.testing.assert_array_equal(found, rows)
        assert (len(kernel.second_entries) > before) == kept


HOST = """
func.func @scale(%x: memref<?x?xf16> {frag.sizes = ["m", "n"]},
                 %y: memref<?x?xf16> {frag.sizes = ["m", "n"]})
    attributes {frag.grid = #frag.grid<m by 8>, frag.warps = array<i64: 1, 1>} {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %b = frag.block_id x
  %i = arith.muli %b, %c8 : index
  %t = frag.load %x[%i, %c0] masked : memref<?x?xf16> -> !frag.tile<8x64xf16>
  frag.store %t, %y[%i, %c0] masked : !frag.tile<8x64xf16>, memref<?x?xf16>
  func.return
}
func.func @twice(%x: memref<?x?xf16>, %y: memref<?x?xf16>) attributes {frag.host} {
  frag.launch @scale(%x, %y) : memref<?x?xf16>, memref<?x?xf16>
  frag.launch @scale(%y, %x) : memref<?x?xf16>, memref<?x?xf16>
  func.return
}
"""


@pytest.mark.parametrize("n", [40, 41])
def test_kernels_of_a_program_of_the_host(n: int) -> None:
    program = fragir.compile(HOST, entry="twice")
    x = np.random.default_rng(0).standard_normal((9, n)).astype(np.float16)
    y, kept = np.zeros_like(x), x.copy()
    program(x, y, on="emulator")
    np.testing.assert_array_equal(y, kept)
    (kernel,) = program.parts
    assert promised(kernel) == ([{"n": 8}] if n % 8 == 0 else [])


@pytest.mark.parametrize("n", [24, 25])
def test_a_function_of_several_kernels(n: int) -> None:
    """As one: what is promised of its sizes is handed on to its kernels."""
    program = fragir.compile(
        """
func.func @f(%x: memref<?x?xf16>, %y: memref<?x?xf16>, %z: memref<?x?xf16>, %t: memref<?x?xf16>) {
  linalg.transpose ins(%x : memref<?x?xf16>) outs(%y : memref<?x?xf16>) permutation = [1, 0]
  linalg.transpose ins(%z : memref<?x?xf16>) outs(%t : memref<?x?xf16>) permutation = [1, 0]
  func.return
}
"""
    )
    assert program.is_program
    x, z = (np.random.default_rng(0).standard_normal((8, n)).astype(np.float16) for _ in "xz")
    y, t = np.zeros((n, 8), np.float16), np.zeros((n, 8), np.float16)
    program(x, y, z, t, on="emulator")
    np.testing.assert_array_equal(y, x.T)
    np.testing.assert_array_equal(t, z.T)
    (entry,) = program.second_entries
    assert [set(part.promises.values()) for part in entry.parts] == [{8}, {8}]
    assert [len(part.promises) for part in entry.parts] == [1 + (n % 8 == 0)] * 2


def test_there_is_none() -> None:
    """Where all is known or promised, passes are listed, or it is not wanted."""
    every = dict.fromkeys("mnk", 64)
    known = GEMM.replace("?x?xf16", "64x64xf16").replace("?x?xf32", "64x64xf32")
    attributes = "attributes {frag.divisible = {n = 8, k = 8}} {\n  frag.matmul"
    by_word = GEMM.replace("{\n  frag.matmul", attributes, 1)
    for text, alone in ((known, False), (by_word, False), (GEMM, True)):
        kernel = fragir.compile(text, alone=alone)
        assert kernel.entry_for(every) is kernel
    passes = "linalg-tile,frag-raster,frag-place,convert-frag-to-ptx"
    listed = fragir.compile(ADD, passes=passes)
    assert listed.entry_for({"x_d0": 64, "x_d1": 64}) is listed
    assert fragir.compile(ADD).entry_for({"x_d0": 64, "x_d1": 64}) is not listed


def test_memory_that_depends_on_the_schedule() -> None:
    """Parts of sums are as large as one entry says; another one might want more."""
    text = """
func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>,
             %p: memref<?x?x?xf32>, %n: memref<?x?xi32>) {
  frag.matmul %a, %b into %c through %p, %n {split_k = 2 : i64}
    : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
      through memref<?x?x?xf32>, memref<?x?xi32>
  func.return
}
"""
    kernel = fragir.compile(text)
    assert any(argument.least for argument in kernel.signature)
    assert kernel.entry_for(dict.fromkeys("mnk", 64)) is kernel
