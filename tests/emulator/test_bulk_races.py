"""Bulk copies that read global memory which threads of other blocks have written, and back."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import TensorMap, run
from fragir.emulator.machine.transfers import Region

#: Block 0 writes and raises a flag; block 1 waits for it and has TMA read what was written.
KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data, .param .align 64 .b8 map[128])
{{
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<4>;
    .shared .align 128 .b8 buffer[512]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r1, 0; mov.u32 %r6, 0;
    ld.param.u64 %rd1, [data]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
    mov.b64 %rd3, map; cvta.param.u64 %rd3, %rd3;
    setp.eq.u32 %p2, %r2, 1; @%p2 bra READER;
    add.u32 %r3, %r1, 100; st.global.u32 [%rd2], %r3;
    {written}
    bar.sync 0;
    @%p1 st.release.gpu.global.u32 [%rd1+1024], 1;
    ret;
READER:
    @!%p1 bra DONE;
    mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 128;
POLL:
    {poll}
    setp.ne.u32 %p3, %r4, 1; @%p3 bra POLL;
    {heard}
    {copy}
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra WAIT;
    ld.shared.u32 %r5, [buffer+124]; st.global.u32 [%rd1+2048], %r5;
DONE:
    ret;
}}
"""
ACQUIRE = "ld.acquire.gpu.global.u32 %r4, [%rd1+1024];"
RELAXED = "ld.relaxed.gpu.global.u32 %r4, [%rd1+1024];"
FENCE = "fence.proxy.async.global;"
PLAIN = (
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [buffer], [%rd1], 128, [bar];"
)
TENSOR = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
    " [buffer], [%rd3, {%r6, %r6}], [bar];"
)


@pytest.mark.parametrize(
    ("starts", "size", "unit"),
    [
        ([256], 96, 16),
        ([259], 40, 1),
        ([8], 48, 8),
        (list(range(128, 160, 2)), 2, 16),  # rows of elements that lie side by side
        ([*range(128, 136, 2), *range(256, 264, 2)], 2, 8),
        ([0, 64, 2], 2, 2),
        ([12, 24], 12, 4),
    ],
)
def test_what_a_region_is_made_of(starts: list[int], size: int, unit: int) -> None:
    at, each = Region(np.array(starts, np.int64), size).pieces()
    assert each == unit
    covered = [x + i for x in at.tolist() for i in range(each)]
    assert sorted(covered) == sorted({x + i for x in starts for i in range(size)})


@pytest.mark.parametrize("copy", [PLAIN, TENSOR], ids=["plain", "tensor"])
@pytest.mark.parametrize(
    ("written", "poll", "heard", "kinds"),
    [
        (FENCE, ACQUIRE, "", set[str]()),
        ("", ACQUIRE, FENCE, set[str]()),
        ("fence.proxy.async;", ACQUIRE, "", set[str]()),
        ("membar.proxy.async;", ACQUIRE, "", set[str]()),
        ("", ACQUIRE, "", {"proxy-fence"}),
        ("fence.proxy.async.shared::cta;", ACQUIRE, "", {"proxy-fence"}),
        (FENCE, RELAXED, "", {"race"}),
        (FENCE, RELAXED, "fence.acq_rel.gpu;", set[str]()),
        ("", RELAXED, FENCE + "fence.acq_rel.gpu;", {"proxy-fence"}),
        ("", RELAXED, "fence.acq_rel.gpu;" + FENCE, set[str]()),
    ],
)
def test_between_blocks(copy: str, written: str, poll: str, heard: str, kinds: set[str]) -> None:
    """The proxy fence may be the writer's, or the reader's once it knows of the write."""
    ptx = KERNEL.format(written=written, poll=poll, heard=heard, copy=copy)
    for schedule in (None, 1, 2):
        data = np.zeros((32, 32), np.uint32)
        arguments = [data, TensorMap(data, (4, 8))]
        report = run(
            ptx, grid=(2,), block=(32,), arguments=arguments, check=True, schedule=schedule
        )
        assert {f.kind for f in report.findings} == kinds
        assert len(report.findings) == len(kinds)
