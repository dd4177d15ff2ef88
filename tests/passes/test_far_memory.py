"""Distances in memory beyond 2 GiB: what is written, and that no address is formed in 32 bits."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from benchmarks.sweeps import far_memory
from fragir.errors import FragirError
from fragir.passes.structured import rows
from fragir.sweeps import Task
from tests.passes.narrow_distances import narrow_distances


@pytest.mark.parametrize(
    "case",
    [
        ("loop", "dynamic", "f64", "sm_80"),
        ("scatter", "static-stride", "f32", "sm_90a"),
        ("product", "static-strides", "f32", "sm_80"),
        ("cp-async", "static-matrix", "i8", "sm_80"),
    ],
)
def test_some_accesses(case: tuple[str, ...]) -> None:
    """`fragir sweep far-memory` has all."""
    assert far_memory.run(Task(0, case, 0, {}))["findings"] == []


# --- no PTX that is written ----------------------------------------------------------------------

NARROW = """
.visible .entry k(
{{
    ld.param.s32 %n0, [x_d1];
    ld.param.s32 %n1, [x_d2];
    {}
    ret;
}}
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("mul.lo.s32 %r0, %n0, %n1;\n mad.wide.s32 %rd0, %r0, 4, %rd1;", 1),
        ("shl.b32 %r0, %n0, 2;\n mad.wide.s32 %rd0, %i0, %r0, %rd1;", 1),
        ("mul.lo.s32 %r0, %n0, %i0;\n add.s32 %r1, %r0, %i1;\n cvt.s64.s32 %rd0, %r1;", 1),
        ("mad.lo.s32 %r0, %n0, %i0, %i1;\n mov.b32 %r1, %r0;\n mul.wide.u32 %rd0, %r1, 4;", 1),
        ("$a:\n mad.wide.s32 %rd0, %r1, 4, %rd1;\n mul.lo.s32 %r1, %n0, %i0;\n bra $a;", 1),
        ("mad.wide.s32 %rd9, %bz0, 4202692608, %rd1;", 1),
        ("ld.global.b32 %r0, [%rd0+2147483648];", 1),
        ("mul.wide.s32 %rd0, %n0, %n1;\n mad.lo.s64 %rd1, %rd0, 4, %rd2;", 0),
        ("mad.wide.s32 %rd0, %n1, 2147483647, %rd1;\n mad.lo.s64 %rd0, %rd1, 4202692608, %rd2;", 0),
        ("shr.u32 %r0, %n0, 7;\n shl.b32 %r1, %r0, 7;\n mad.wide.s32 %rd0, %r1, 4, %rd1;", 0),
        ("mul.lo.s32 %r0, %n0, %n1;\n setp.lt.s32 %p0, %i0, %r0;", 0),
        (
            "div.u32 %r0, %i0, %n0;\n mul.lo.s32 %r1, %r0, %n0;\n sub.s32 %r2, %i0, %r1;\n"
            " mad.wide.s32 %rd0, %r2, 4, %rd1;",
            0,
        ),
    ],
)
def test_what_is_found(text: str, found: int) -> None:
    assert len(narrow_distances(NARROW.format(text))) == found


def test_no_distance_of_32_bits() -> None:
    """Of every access, and every kind of memory, that the sweep has; those of examples and of
    linalg are looked at where they are compiled (`conftest.py` there)."""
    kinds = ("dynamic", "static-columns", "strides")
    every = [(access, kind) for access in far_memory.ACCESSES for kind in kinds]
    for access, name in sorted({*every, *(("load", name) for name in far_memory.MEMORIES)}):
        text = far_memory.program(access, far_memory.MEMORIES[name], "f32")
        assert narrow_distances(fragir.compile(text).ptx) == [], (access, name)


def test_a_size_that_is_a_product_of_sizes_is_no_distance() -> None:
    """The batches of static logits: 4 GB each, as one factor of 64 bits."""
    kernel = fragir.compile(
        """
        func.func @logits(%x: memref<4x8192x512xf16>, %y: memref<512x128256xf16>,
                          %o: memref<4x8192x128256xf32>) {
          frag.matmul %x, %y into %o : memref<4x8192x512xf16>, memref<512x128256xf16>
            into memref<4x8192x128256xf32>
          func.return
        }"""
    )
    assert "4202692608, %o0;" in kernel.ptx
    assert all("mad.lo.s64" in line for line in kernel.ptx.splitlines() if "4202692608" in line)


# --- what is counted through -------------------------------------------------------------------

SAME = """
#m = affine_map<({loops}) -> ({loops})>
#row = affine_map<({loops}) -> ({last})>
func.func @f(%x: memref<{size}xf32>, %y: memref<{columns}xf32>, %o: memref<{size}xf32>) {{
  linalg.generic {{indexing_maps = [#m, #row, #m], iterator_types = [{kinds}]}}
    ins(%x, %y : memref<{size}xf32>, memref<{columns}xf32>) outs(%o : memref<{size}xf32>) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  }}
  func.return
}}
"""


def same(shape: tuple[int, ...], broadcast: bool) -> str:
    loops = [f"d{n}" for n in range(len(shape))]
    tail = shape[-1:] if broadcast else shape
    return SAME.format(
        loops=", ".join(loops),
        last=", ".join(loops[-len(tail) :]),
        size="x".join(map(str, shape)),
        columns="x".join(map(str, tail)),
        kinds=", ".join(['"parallel"'] * len(shape)),
    )


@pytest.mark.parametrize(
    ("shape", "limit"), [((30, 40), 1000), ((5, 7, 40), 300), ((5, 7, 40), 30), ((3, 2, 4, 5), 24)]
)
@pytest.mark.parametrize("broadcast", [False, True])
def test_loops_are_taken_together_as_far_as_an_index_counts(
    shape: tuple[int, ...], limit: int, broadcast: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "LARGEST_INDEX", limit)
    kernel = fragir.compile(same(shape, broadcast))
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    y = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)[(0,) * (len(shape) - 1)]
    y = y if broadcast else x
    out = np.zeros(shape, np.float32)
    kernel(x, y, out, on="emulator")
    assert np.array_equal(out, x + y)


def test_more_elements_than_an_index_counts() -> None:
    for shape in ((60000, 60000), (4, 40000, 60000)):
        assert narrow_distances(fragir.compile(same(shape, False)).ptx) == []


COUNTED = """
func.func @f(%x: memref<?x?x4xf32> {frag.sizes = ["m", "n"]}, %y: memref<32xf32>)
    attributes {frag.warps = array<i64: 1, 1>} {
  %v = memref.collapse_shape %x [[0, 1, 2]] : memref<?x?x4xf32> into memref<?xf32>
  %c = arith.constant 4 : index
  %t = frag.load %v[%c] masked : memref<?xf32> -> !frag.tile<32xf32>
  frag.store %t, %y[0] : !frag.tile<32xf32>, memref<32xf32>
  func.return
}
"""


def test_a_launch_keeps_what_is_counted_through_below_2_31() -> None:
    kernel = fragir.compile(COUNTED)
    out = np.zeros(32, np.float32)
    kernel(np.arange(48, dtype=np.float32).reshape(3, 4, 4), out, on="emulator")
    assert np.array_equal(out, np.arange(4, 36, dtype=np.float32))
    kernel.check({"m": 23170, "n": 23170})
    with pytest.raises(FragirError, match="m x n x 4 is 3600000000, a kernel's sizes"):
        kernel(np.zeros((30000, 30000, 4), np.float32), out, on="emulator")
