"""C of 32 bits through shared memory: two rows store other columns, and no bank meets twice."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fragir


def product(n: int, tile: tuple[int, int, int], element: str, out: str, k: int = 128) -> str:
    a, b, c = f"memref<128x{k}x{element}>", f"memref<{n}x{k}x{element}>", f"memref<128x{n}x{out}>"
    words = "{roles, tile = array<i64: " + ", ".join(map(str, tile)) + ">}"
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
  frag.matmul %a, %b transposed into %c {words} : {a}, {b} into {c}
  func.return
}}
"""


@pytest.mark.parametrize(
    ("n", "tile", "element", "out"),
    [
        (128, (128, 128, 64), "f16", "f32"),
        (100, (128, 96, 64), "f16", "f32"),  # pieces of no power of two, and columns outside
        (64, (64, 64, 128), "i8", "i32"),
    ],
)
def test_no_bank_is_asked_twice(n: int, tile: tuple[int, int, int], element: str, out: str) -> None:
    """As the emulator counts it: 16 lanes of 8 bytes at a time have 128 bytes of four rows."""
    random = np.random.default_rng(0)
    type_ = np.float16 if element == "f16" else np.int8
    a, b = (random.integers(-4, 5, (rows, 128)).astype(type_) for rows in (128, n))
    c = np.zeros((128, n), np.float32 if out == "f32" else np.int32)
    kernel = fragir.compile(product(n, tile, element, out), target="sm_90a")
    report = kernel(a, b, c, on="emulator", check=True)
    assert not report.findings
    assert not [one for one in report.remarks if one.kind == "bank-conflict"]
    np.testing.assert_array_equal(c, a.astype(np.int32) @ b.astype(np.int32).T)


def test_old_c_is_read_so_too() -> None:
    old = """ epilogue {
  ^bb0(%sum: f32, %old: f32):
    %r = arith.addf %sum, %old : f32
    frag.yield %r : f32
  }"""
    text = product(96, (128, 96, 64), "f16", "f32", 64).replace("x96xf32>\n", f"x96xf32>{old}\n")
    kernel = fragir.compile(text, target="sm_90a")
    assert "ld.shared.v2" in kernel.ptx
    a, b = (np.ones((rows, 64), np.float16) for rows in (128, 96))
    c = np.arange(128 * 96, dtype=np.float32).reshape(128, 96)
    expected = c + 64
    report = kernel(a, b, c, on="emulator", check=True)
    assert not report.findings
    assert not [one for one in report.remarks if one.kind == "bank-conflict"]
    np.testing.assert_array_equal(c, expected)


def test_what_it_takes() -> None:
    """A selp a register, none of what has 16 bits or half a swizzle of columns."""

    def selects(n: int, out: str) -> int:
        text = product(n, (128, n, 64), "f16", out)
        kernel = fragir.compile(text, target="sm_90a")
        assert kernel.assembled.warnings == []
        assert kernel.schedule_notes() == []
        return kernel.ptx.count("selp.b32")

    assert selects(256, "f32") - selects(256, "f16") == 128
    assert selects(16, "f32") == selects(16, "f16")


@pytest.mark.parametrize("asynchrony", ["late", "random"])
def test_a_block_meets_once_a_piece(asynchrony: str) -> None:
    """Two memories by turns: the copy before the last one is waited for where all threads meet to
    start another, in the next tile, too."""
    kernel = fragir.compile(product(512, (128, 256, 64), "f16", "f32", 64), target="sm_90a")
    assert len(re.findall(r"bar\.sync\s+\d+, 256;", kernel.ptx)) == 4  # pieces of 64 columns
    assert kernel.ptx.count("cp.async.bulk.wait_group.read") == 4
    random = np.random.default_rng(1)
    a, b = (random.integers(-4, 5, (rows, 64)).astype(np.float16) for rows in (128, 512))
    c = np.zeros((128, 512), np.float32)
    options = {"check": True, "asynchrony": asynchrony, "schedule": 2}
    report = kernel(a, b, c, on="emulator", resident=1, **options)
    assert not report.findings
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)
