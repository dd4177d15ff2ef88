"""Bulk stores of shared memory that is written in part: only what is really stored counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import TensorMap, run

KERNEL = """
.version 8.6
.target sm_100a
.address_size 64
.visible .entry k(.param .align 64 .b8 to[128], .param .u64 out)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<4>; .reg .b16 %h<2>;
    .shared .align 1024 .b8 buffer[1024];
    mov.u32 %r1, %tid.x; mov.u32 %r3, buffer; mov.u32 %r7, 0; mov.u32 %r8, {column};
    mov.b64 %rd1, to; cvta.param.u64 %rd1, %rd1; ld.param.u64 %rd2, [out]; mov.b16 %h0, {mask};
    setp.eq.u32 %p1, %r1, 0;
    {write}
    fence.proxy.async.shared::cta;
    bar.sync 0;
    @%p1 {copy}
    @%p1 cp.async.bulk.commit_group;
    @%p1 cp.async.bulk.wait_group 0;
    ret;
}}
"""
TENSOR = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd1, {%r8, %r7}], [%r3];"
MASKED = "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%rd2], [%r3], 32, %h0;"


def kinds(
    write: str,
    copy: str = TENSOR,
    *,
    column: int = 0,
    mask: str = "0",
    width: int | None = None,
    **options: Any,
) -> list[str]:
    """What is found where lanes have written a part of a buffer of four rows of 64 bytes."""
    ptx = KERNEL.format(write=write, copy=copy, column=column, mask=mask)
    target = np.zeros((4, 12), np.float32)
    if width is not None:
        options = {**options, "shape": (4, width), "strides": (48, 4), "kind": "f32"}
    out = np.zeros(64, np.uint8)
    maps = TensorMap(target, (4, 16), **options)
    report = run(ptx, "k", block=(32,), arguments=[maps, out], check=True)
    return [f.kind for f in report.findings]


# Lane l writes 8 bytes: row l / 8, columns 2 (l % 8) and the next; the last two columns of each
# row lie outside the array, which is 12 wide.
INSIDE = """
    and.b32 %r4, %r1, 7; setp.lt.u32 %p2, %r4, {count};
    shl.b32 %r5, %r1, 3; add.u32 %r5, %r5, %r3; mov.b64 %rd5, 0;
    {swizzle}
    @%p2 st.shared.b64 [%r5], %rd5;
"""


@pytest.mark.parametrize("swizzle", [0, 64])
def test_columns_outside_the_array_need_no_value(swizzle: int) -> None:
    # Swizzle 64: bits 4 and 5 of the address are flipped by bits 7 and 8.
    flip = "shr.u32 %r6, %r5, 3; and.b32 %r6, %r6, 48; xor.b32 %r5, %r5, %r6;" if swizzle else ""
    assert kinds(INSIDE.format(count=6, swizzle=flip), swizzle=swizzle) == []
    assert kinds(INSIDE.format(count=5, swizzle=flip), swizzle=swizzle) == ["uninitialised"]


def test_within_one_chunk_of_16_bytes() -> None:
    """Ten columns are inside, half of a chunk: what the machine writes behind them is told, and
    need not have a value."""
    five, four = (INSIDE.format(count=n, swizzle="") for n in (5, 4))
    assert kinds(five, width=10) == ["out-of-bounds"]
    assert sorted(kinds(four, width=10)) == ["out-of-bounds", "uninitialised"]


def test_a_box_that_lies_outside() -> None:
    assert kinds("", column=12) == []
    assert kinds("", column=8) == ["uninitialised"]


def test_bytes_that_a_mask_leaves_out() -> None:
    half = "and.b32 %r4, %r1, 15; setp.lt.u32 %p2, %r4, 8; add.u32 %r5, %r1, %r3;"
    half += "cvt.u16.u32 %h1, %r1; @%p2 st.shared.b8 [%r5], %h1;"
    assert kinds(half, MASKED, mask="0x00ff") == []
    assert kinds(half, MASKED, mask="0x01ff") == ["uninitialised"]
