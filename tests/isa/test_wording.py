"""What is told of instructions: whose threads, wrong types, sparse products, descriptors."""

from __future__ import annotations

import pytest

from fragir import compiler, isa
from fragir.compilation.notes import instruction_notes
from fragir.isa import cuda
from fragir.isa.descriptors import decode

SPARSE = "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32"
ORDERED = SPARSE.replace("mma.sp", "mma.sp::ordered_metadata")
WGMMA = "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16"


def test_the_wrong_type_and_the_right_one() -> None:
    wrong = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.bf16"
    with pytest.raises(isa.UnknownInstruction, match="in m16n8k16 C must be f32, not bf16"):
        isa.lookup(wrong)


def test_the_header_of_a_warpgroup_takes_a_thread() -> None:
    text = cuda.header(isa.lookup(WGMMA), "sm_90a", "registers")
    assert "int row(int thread, int i)" in text
    assert "int lane" not in text
    assert "%laneid" not in text
    assert "%tid" not in text


def test_the_header_of_a_warp_takes_a_lane() -> None:
    text = cuda.header(isa.lookup(ORDERED), "sm_90", "registers")
    assert "int row(int lane, int i)" in text
    assert "thread" not in text


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_120a"])
def test_sparse_products_without_order(target: str) -> None:
    """ptxas: ".sp::ordered_metadata should be used ... substantially reduced performance"."""
    notes = instruction_notes([SPARSE], target)
    assert any("substantially reduced performance" in note for note in notes)
    assert any("mma.sp::ordered_metadata" in note for note in notes)
    assert not any("substantially" in note for note in instruction_notes([ORDERED], target))


def test_sparse_kernels_say_so() -> None:
    text = """!e = !frag.tile<16x8xui4>
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>,
             %e: memref<16x8xui4>) {
  %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %1 = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %2 = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %3 = frag.load %e[0, 0] : memref<16x8xui4> -> !e
  %4 = frag.mma_sparse %0, %1, %2, %3 UNORDERED: !frag.tile<16x16xf16>, !frag.tile<32x8xf16>, \
!frag.tile<16x8xf32>, !e -> !frag.tile<16x8xf32>
  frag.store %4, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}
"""
    assert any(
        "substantially" in note
        for note in compiler.compile(text.replace("UNORDERED", "unordered ")).notes
    )
    ordered = compiler.compile(text.replace("UNORDERED", ""), target="sm_90")
    assert not any("substantially" in note for note in ordered.notes)


def test_a_descriptor_without_leading_stride() -> None:
    line = next(x for x in decode(0x4000004000000000, "sm_90a").explain().split("\n") if "29" in x)
    assert "leading = 0 bytes, which is no stride: unused" in line
    used = decode(0x4000004000010000, "sm_90a").explain()
    assert "leading = 16 bytes  (" in used
