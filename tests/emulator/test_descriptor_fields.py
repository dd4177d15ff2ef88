"""What a wgmma reads by a wrong descriptor is told with the operand and the descriptor's fields."""

from __future__ import annotations

import re

import numpy as np
import pytest

from fragir.emulator import EmulationError, Finding, run

# A of 64 x 16 at 0 and B of 8 x 16 at 2048, in core matrices of 8 x 8 (PTX ISA 9.7.15.5.1.2).
KERNEL = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry product(.param .u64 out)
{
    .reg .b32 %me, %to, %d<2>;
    .reg .b64 %left, %right, %p;
    .shared .align 128 .b8 tiles[2304];
    .shared .align 128 .b8 others[4096];
    mov.u32 %me, %tid.x;
    mov.u32 %to, others;
    mov.u32 %to, tiles;
    mad.lo.u32 %to, %me, 16, %to;
    st.shared.v4.b32 [%to], {0, 0, 0, 0};
    @FILL st.shared.b32 [%to + 2048], 0;
    fence.proxy.async;
    bar.sync 0;
    mov.u32 %to, tiles;
    shr.u32 %to, %to, 4;
    cvt.u64.u32 %left, %to;
    add.u64 %right, %left, RIGHT;
    add.u64 %left, %left, LEFT;
    mov.b32 %d0, 0;
    mov.b32 %d1, 0;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%d0, %d1}, %left, %right, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 0;
    ld.param.u64 %p, [out];
    st.global.b32 [%p], %d0;
    ret;
}
"""
LEFT, RIGHT = 1024 >> 4 << 16 | 128 >> 4 << 32, 2048 >> 4 | 128 >> 4 << 16


def found(left: int, right: int) -> list[Finding]:
    """What is said, of the run's end too."""
    text = KERNEL.replace("LEFT", str(left)).replace("RIGHT", str(right))
    text = text.replace("@FILL st.shared.b32 [%to + 2048], 0;", FILL)
    try:
        report = run(
            text, arguments=[np.zeros(64, np.float32)], grid=(1,), block=(128,), check=True
        )
    except EmulationError as error:
        return [Finding(error.kind, error.message, line=error.line)]
    return list(report.findings)


# Every thread writes 2 bytes of B; without it B is undefined.
FILL = "mad.lo.u32 %to, %me, 2, 2048; st.shared.b16 [%to], 0;"


@pytest.mark.parametrize(
    ("left", "right", "operand", "field"),
    [
        (LEFT | 0x3FFF << 32, RIGHT, "A", "stride dimension"),
        (LEFT | 0x3FFF << 16, RIGHT, "A", "leading dimension"),
        (LEFT, RIGHT | 0x3FF0, "B", "start address"),
        (LEFT, RIGHT | 0xFFF << 16, "B", "leading dimension"),
    ],
)
def test_the_field_that_leads_beyond_memory(
    left: int, right: int, operand: str, field: str
) -> None:
    (finding,) = found(left, right)
    assert finding.kind == "out-of-bounds"
    assert re.search(
        rf"\({operand}'s descriptor 0x[0-9a-f]{{16}}: .*its {field} leads there", finding.message
    )


def test_beyond_a_variable() -> None:
    """B's rows 256 bytes further: `others` lies there, or nothing does."""
    said = [f.message for f in found(LEFT, RIGHT + (1024 >> 4 << 16)) if f.kind == "out-of-bounds"]
    assert len(said) == 1
    assert "(B's descriptor" in said[0]
    assert "leading 1152" in said[0]


def test_undefined_memory() -> None:
    said = [f.message for f in found(LEFT + (512 >> 4 << 32), RIGHT) if f.kind == "uninitialised"]
    assert len(said) == 1
    assert "A's descriptor" in said[0]


def test_nothing_is_said_of_the_right_ones() -> None:
    assert found(LEFT, RIGHT) == []
