"""Tiles that roles store by TMA: through shared memory of their own, cut where there is little."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fragir
from benchmarks.sweeps.pipelines import Config, check, text_of
from fragir.errors import FragirError

CLUSTER = "roles, cluster = 2 : i64"
WIDE = "roles, tile = array<i64: 128, 256, 64>"
CASES = [
    Config("sm_90a", "roles", "f16", (False, False), "old", (136, 136, 80), False, "f16"),
    Config("sm_90a", CLUSTER, "f8E4M3FN", (True, False), "old", (208, 144, 80), False, "bf16"),
    Config("sm_90a", WIDE, "f16", (False, False), "old", (136, 264, 48), True),
]
LARGE = (4096, 4096, 4096)


def compiled(config: Config) -> fragir.Kernel:
    return fragir.compile(text_of(config), target=config.target)


@pytest.mark.parametrize("config", CASES, ids=lambda c: f"{c.element} {c.out} {c.epilogue}")
def test_products(config: Config) -> None:
    """Exact, silent in every check under three schedules, nothing spilled."""
    assert check(config) == []


def test_halves_leave_by_matrices_in_one_piece() -> None:
    ptx = compiled(Config("sm_90a", "roles", "f16", (False, False), "none", LARGE, True, "f16")).ptx
    assert ptx.count("stmatrix") == 16
    assert ptx.count("cp.async.bulk.commit_group") == 1
    assert "st.global" not in ptx


@pytest.mark.parametrize(("element", "order"), [("f16", (False, False)), ("tf32", (False, False))])
def test_wide_elements_leave_in_pieces(element: str, order: tuple[bool, bool]) -> None:
    """Two memories in turn: while one is copied, threads write to the other. Ahead of a copy the
    one before it has read its memory, and all threads meet, once a piece."""
    ptx = compiled(Config("sm_90a", "roles", element, order, "none", LARGE, True)).ptx
    pieces = ptx.count("cp.async.bulk.commit_group")
    met = r"wait_group\.read 0;\n\s*fence\.proxy\.async\.shared::cta;\n\s*bar\.sync \d+, 256;"
    assert len(re.findall(met, ptx)) == len(re.findall(r"bar\.sync \d+, 256;", ptx)) == pieces > 1
    assert "st.global" not in ptx


def test_old_c_comes_by_tma_and_waits_for_no_store() -> None:
    """The fetching warp has it under way while others multiply; tiles are apart."""
    kernel = compiled(Config("sm_90a", "roles", "f16", (False, False), "old", LARGE, True, "f16"))
    assert "ld.global" not in kernel.ptx
    assert kernel.ptx.count("cp.async.bulk.wait_group 0;") == 1  # at the end
    assert kernel.ptx.count("ldmatrix") == 16


def test_no_bank_conflicts() -> None:
    config = Config("sm_90a", "roles", "f16", (False, False), "old", (128, 256, 64), True, "f16")
    a, b, c = (np.ones(shape, np.float16) for shape in ((128, 64), (64, 256), (128, 256)))
    report = compiled(config)(a, b, c, on="emulator", check=True)
    counts = report.statistics.conflicts
    assert counts["passes"] == counts["passes_needed"] > 0
    assert np.all(c == 65)


def test_rows_that_no_tensor_map_takes_are_stored_by_threads() -> None:
    """Of B transposed nothing says that rows of C are multiples of 16 bytes."""
    transposed = Config("sm_90a", "roles", "f16", (False, True), "none", (64, 65, 64), False)
    assert "n = 1" in text_of(transposed)
    assert "st.global" in compiled(transposed).ptx
    # but a map of B wants that of its rows, which are as long as those of C
    assert "st.global" not in compiled(transposed._replace(turned=(False, False))).ptx


APART = """
!shared = memref<64x64xf32, #frag.shared<swizzle = 128>>
func.func @f(%c: memref<?x64xf32>) attributes {frag.warps = array<i64: 1, 1>} {
  %s = memref.alloc() : !shared
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %m = memref.dim %c, %c0 : memref<?x64xf32>
  scf.for %i = %c0 to %m step %c64 {
    %t = frag.load %c[%i, 0] masked WORD : memref<?x64xf32> -> !frag.tile<64x64xf32>
    frag.store %t, %s[0, 0] : !frag.tile<64x64xf32>, !shared
    frag.copy tma %s[] to %c[%i, 0] WORD : !shared to memref<?x64xf32>
  }
  func.return
}
"""


def test_what_is_said_to_be_apart_does_not_wait() -> None:
    """A load behind a copy to the same memory waits until that has written, unless it is said."""
    waits = "cp.async.bulk.wait_group 0;"
    together = fragir.compile(APART.replace("WORD", ""), target="sm_90a").ptx
    apart = fragir.compile(APART.replace("WORD", "{frag.apart}"), target="sm_90a").ptx
    assert together.count(waits) == 2
    assert apart.count(waits) == 1
    assert apart.count("cp.async.bulk.wait_group.read 0;") == 1


def test_another_role_may_not_touch_what_is_not_apart() -> None:
    text = """
!shared = memref<64x64xf32, #frag.shared<swizzle = 128>>
func.func @f(%c: memref<64x64xf32>) {
  %s = memref.alloc() : !shared
  frag.roles "out" warps [1, 1] {
    frag.copy tma %s[] to %c[0, 0] : !shared to memref<64x64xf32>
  }, "in" warps [1, 1] {
    %t = frag.load %c[0, 0] : memref<64x64xf32> -> !frag.tile<64x64xf32>
    frag.store %t, %c[0, 0] : !frag.tile<64x64xf32>, memref<64x64xf32>
  }
  func.return
}
"""
    with pytest.raises(FragirError, match="another role copies this memory"):
        fragir.compile(text, target="sm_90a")


def test_pieces_of_a_turned_tile_keep_pairs_of_columns_together() -> None:
    """Rows are counted two by two, also in a part of the tile, whose layout says so no more."""
    ptx = compiled(Config("sm_90a", "roles", "tf32", (False, False), "old", LARGE, True)).ptx
    assert ptx.count("st.shared.v2.b32") == 64
    assert "st.shared.b32" not in ptx
    assert "ld.global" not in ptx


def test_rows_at_any_address_do_not_spill() -> None:
    """What is loaded for a wide tile is loaded for half of it at once."""
    kernel = compiled(
        Config("sm_90a", "roles", "f16", (False, True), "bias", (4096, 4095, 4096), True)
    )
    assert "st.global.b32" in kernel.ptx
    assert not kernel.assembled.verdicts


def test_bytes_are_stored_in_pairs() -> None:
    """A lane has two columns side by side: a register is stored at two places."""
    ptx = compiled(
        Config("sm_90a", "roles", "f8E4M3FN", (False, True), "none", LARGE, True, "f8E4M3FN")
    ).ptx
    assert ptx.count("st.shared.b16") == 64
    assert "st.shared.b8" not in ptx


@pytest.mark.parametrize("out", ["bf16", "f8E4M3FN"])
@pytest.mark.parametrize("epilogue", ["none", "old"])
def test_narrow_elements_of_turned_tiles_are_converted_in_order(out: str, epilogue: str) -> None:
    """Registers of sums are taken in the order of C's columns, so that nothing is taken apart
    behind the conversion: neither halves nor bytes."""
    config = Config("sm_90a", "roles", "f8E4M3FN", (False, False), epilogue, LARGE, True, out)
    text = compiled(config).ptx
    assert text.count("bfe") <= 2
    assert text.count("st.shared") == 64
    stored = text[text.index("cp.async.bulk.wait_group.read") :]
    assert out != "bf16" or epilogue != "none" or "{%h" not in stored


THREE = """
func.func @three(%a: memref<128x64xf16>, %b: memref<64x256xf16>, %c: memref<128x256xf16>,
                 %d: memref<128x256xf32>, %e: memref<256x128xf16>)
    attributes {frag.warpgroups = array<i64: 2, 1>, frag.specialize} {
  frag.for_tiles (%row, %col) of (128, 256) by (128, 128) persistent {
    %zero = arith.constant 0.0 : f32
    %start = frag.fill %zero : !frag.tile<128x128xf32>
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %sum = scf.for %k = %c0 to %c64 step %c64
        iter_args(%acc = %start) -> (!frag.tile<128x128xf32>) {
      %ta = frag.load %a[%row, %k] : memref<128x64xf16> -> !frag.tile<128x64xf16>
      %tb = frag.load %b[%k, %col] : memref<64x256xf16> -> !frag.tile<64x128xf16>
      %next = frag.mma %ta, %tb, %acc
          : !frag.tile<128x64xf16>, !frag.tile<64x128xf16>, !frag.tile<128x128xf32>
          -> !frag.tile<128x128xf32>
      scf.yield %next : !frag.tile<128x128xf32>
    } {frag.stages = 4 : i64, frag.tma}
    %half = frag.cast %sum : !frag.tile<128x128xf32> -> !frag.tile<128x128xf16>
    frag.store %half, %c[%row, %col] : !frag.tile<128x128xf16>, memref<128x256xf16>
    frag.store %sum, %d[%row, %col] : !frag.tile<128x128xf32>, memref<128x256xf32>
    frag.store %half, %e[%col, %row] transposed : !frag.tile<128x128xf16>, memref<256x128xf16>
  }
  func.return
}
"""


def test_several_results_share_what_memory_is_left() -> None:
    """In rows and in columns, of two types, one tile after the other by the same block."""
    kernel = fragir.compile(THREE, target="sm_90a")
    assert "st.global" not in kernel.ptx
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in ((128, 64), (64, 256)))
    c, d = (np.zeros((128, 256), type_) for type_ in (np.float16, np.float32))
    e = np.zeros((256, 128), np.float16)
    report = kernel(a, b, c, d, e, on="emulator", check=True, resident=1)
    assert report.findings == []
    expected = a.astype(np.float32) @ b.astype(np.float32)
    for result in (c, d, e.T):
        np.testing.assert_array_equal(result, expected)
