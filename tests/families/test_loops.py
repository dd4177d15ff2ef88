"""Kernels that loop along K with scales, packed elements and metadata by way of shared memory."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

import fragir

Array = NDArray[Any]

PACKED = "!frag.packed<f4E2M1FN>"
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
HEAD = """
  %first = arith.constant 0 : index
  %one = arith.constant 1 : index
  %last = arith.constant {steps} : index
"""


def halves(codes: Array) -> Array:
    """4-bit codes two to a byte, the first one lowest."""
    return (codes[:, ::2] & 15 | (codes[:, 1::2] & 15) << 4).astype(np.uint8)


def scaled(m: int, n: int, k: int, step: int) -> str:
    """Four warps; A, B and SFA are staged, SFB is read from global memory."""
    blocks = step // 16
    a, b = f"memref<{m}x{k}x{PACKED}>", f"memref<{n}x{k}x{PACKED}>"
    x, y = (f"memref<{size}x{k // 16}xf8E4M3FN>" for size in (m, n))
    space = "#frag.shared<swizzle = 64>"
    sa, sb = (f"memref<{size}x{step}x{PACKED}, {space}>" for size in (m, n))
    sx = f"memref<{m}x{blocks}xf8E4M3FN, #frag.shared>"
    ta, tb = f"!frag.tile<{m}x{step}x{PACKED}>", f"!frag.tile<{step}x{n}x{PACKED}>"
    tx, ty = f"!frag.tile<{m}x{blocks}xf8E4M3FN>", f"!frag.tile<{blocks}x{n}xf8E4M3FN>"
    acc, d = f"!frag.tile<{m}x{n}xf32>", f"memref<{m}x{n}xf32>"
    return f"""
func.func @f(%a: {a}, %b: {b}, %x: {x}, %y: {y}, %d: {d})
    attributes {{frag.warps = array<i64: 2, 2>}} {{
  {HEAD.format(steps=k // step)}
  %step = arith.constant {step} : index
  %blocks = arith.constant {blocks} : index
  %zero = arith.constant 0.0 : f32
  %c = frag.fill %zero : {acc}
  %sa = memref.alloc() : {sa}
  %sb = memref.alloc() : {sb}
  %sx = memref.alloc() : {sx}
  %r = scf.for %i = %first to %last step %one iter_args(%sum = %c) -> ({acc}) {{
    %k = arith.muli %i, %step : index
    %s = arith.muli %i, %blocks : index
    frag.barrier
    frag.copy async %a[0, %k] to %sa[] : {a} to {sa}
    frag.copy async %b[0, %k] to %sb[] : {b} to {sb}
    frag.copy async %x[0, %s] to %sx[] : {x} to {sx}
    frag.commit
    frag.wait 0
    frag.barrier
    %ta = frag.load %sa[0, 0] : {sa} -> {ta}
    %tb = frag.load %sb[0, 0] transposed : {sb} -> {tb}
    %tx = frag.load %sx[0, 0] : {sx} -> {tx}
    %ty = frag.load %y[0, %s] transposed : {y} -> {ty}
    %n = frag.mma %ta, %tb, %sum scaled %tx, %ty : {ta}, {tb}, {acc}, {tx}, {ty} -> {acc}
    scf.yield %n : {acc}
  }}
  frag.store %r, %d[0, 0] : {acc}, {d}
  func.return
}}"""


def test_packed_floats_with_scales() -> None:
    m, n, k = 64, 32, 512
    kernel = fragir.compile(scaled(m, n, k, 128), target="sm_120a")
    assert kernel.assembled.warnings == []
    assert "ldmatrix" in kernel.ptx
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 16, (m, k)), rng.integers(0, 16, (n, k))
    x, y = (2.0 ** rng.integers(-1, 2, (size, k // 16)) for size in (m, n))
    d = np.zeros((m, n), np.float32)
    scales = (s.astype(ml_dtypes.float8_e4m3fn) for s in (x, y))
    report = kernel(halves(a), halves(b), *scales, d, on="emulator")
    assert report.findings == []
    wanted = (E2M1[a] * np.repeat(x, 16, 1)) @ (E2M1[b] * np.repeat(y, 16, 1)).T
    np.testing.assert_array_equal(d, wanted)


def sparse(m: int, n: int, k: int, step: int) -> str:
    """Two warpgroups below each other: packed A and B staged, metadata from global memory."""
    a, b, e = f"memref<{m}x{k // 2}xbf16>", f"memref<{n}x{k}xbf16>", f"memref<{m}x{k // 4}xui4>"
    sa = f"memref<{m}x{step // 2}xbf16, #frag.shared<swizzle = 64>>"
    sb = f"memref<{n}x{step}xbf16, #frag.shared<swizzle = 128>>"
    te = f"!frag.tile<{m}x{step // 4}xui4>"
    acc, d = f"!frag.tile<{m}x{n}xf32>", f"memref<{m}x{n}xf32>"
    return f"""
func.func @f(%a: {a}, %b: {b}, %e: {e}, %d: {d})
    attributes {{frag.warpgroups = array<i64: 2, 1>}} {{
  {HEAD.format(steps=k // step)}
  %step = arith.constant {step} : index
  %half = arith.constant {step // 2} : index
  %chunks = arith.constant {step // 4} : index
  %zero = arith.constant 0.0 : f32
  %c = frag.fill %zero : {acc}
  %sa = memref.alloc() : {sa}
  %sb = memref.alloc() : {sb}
  %r = scf.for %i = %first to %last step %one iter_args(%sum = %c) -> ({acc}) {{
    %k = arith.muli %i, %step : index
    %p = arith.muli %i, %half : index
    %q = arith.muli %i, %chunks : index
    frag.barrier
    frag.copy async %a[0, %p] to %sa[] : {a} to {sa}
    frag.copy async %b[0, %k] to %sb[] : {b} to {sb}
    frag.commit
    %te = frag.load %e[0, %q] : {e} -> {te}
    frag.wait 0
    frag.barrier
    %n = frag.wgmma %sa, %sb transposed negated, %sum sparse %te : {sa}, {sb}, {acc}, {te}
    scf.yield %n : {acc}
  }}
  frag.store %r, %d[0, 0] : {acc}, {d}
  func.return
}}"""


def test_sparse_wgmma() -> None:
    m, n, k = 128, 48, 256
    kernel = fragir.compile(sparse(m, n, k, 64), target="sm_90a")
    assert kernel.assembled.warnings == []
    assert "wgmma.mma_async.sp.sync.aligned.m64n48k32.f32.bf16.bf16" in kernel.ptx
    rng = np.random.default_rng(1)
    kept = np.sort(rng.permuted(np.tile(np.arange(4), (m, k // 4, 1)), axis=2)[..., :2], axis=2)
    packed = rng.integers(1, 4, (m, k // 4, 2)) * rng.choice([-1, 1], (m, k // 4, 2))
    full = np.zeros((m, k // 4, 4))
    np.put_along_axis(full, kept, packed, 2)
    nibbles = kept[..., 0] | kept[..., 1] << 2
    b = rng.integers(-2, 3, (n, k))
    d = np.zeros((m, n), np.float32)
    bf16 = ml_dtypes.bfloat16
    report = kernel(
        packed.reshape(m, -1).astype(bf16), b.astype(bf16), halves(nibbles), d, on="emulator"
    )
    assert report.findings == []
    np.testing.assert_array_equal(d, -(full.reshape(m, k) @ b.T))
