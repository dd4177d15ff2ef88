"""Bulk copies and wgmma in flight when a wave is cut, in clusters too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import Report, TensorMap, run

from .conftest import Divided
from .outcomes import Array, alike

ROWS, COLUMNS, THREADS = 8, 32, 64  # of a tile of words; of a block

#: Each cluster gets a tile by one copy, for all its blocks; each block adds 1 and stores its own.
TILES = """
.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out, .param .u16 mask)
{
    .reg .pred %p<4>; .reg .b16 %h; .reg .b32 %r<16>; .reg .b64 %rd<8>;
    .reg .b32 %tid, %m, %b, %y;
    .shared .align 128 .b8 memory[1024];
    .shared .align 8 .b64 barrier;
    mov.u32 %tid, %tid.x; mov.u32 %r0, %clusterid.x; mov.u32 %r1, %cluster_ctarank;
    mov.u32 %m, memory; mov.u32 %b, barrier;
    mov.u64 %rd0, map; cvta.param.u64 %rd0, %rd0; ld.param.u16 %h, [mask];
    setp.eq.u32 %p0, %tid, 0; setp.eq.and.u32 %p1, %r1, 0, %p0; shl.b32 %y, %r0, 3;
    @%p0 mbarrier.init.shared.b64 [%b], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    @%p0 mbarrier.arrive.expect_tx.shared.b64 %rd1, [%b], 1024;
    bar.sync 0;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    mov.u32 %r2, 0;
    @%p1 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes\
.multicast::cluster [%m], [%rd0, {%r2, %y}], [%b], %h;
W:  add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 20; @%p2 bra W;
L:  mbarrier.try_wait.parity.shared.b64 %p3, [%b], 0; @!%p3 bra L;
    shl.b32 %r3, %tid, 4; add.u32 %r3, %m, %r3;
    ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%r3];
    add.u32 %r4, %r4, 1; add.u32 %r5, %r5, 1; add.u32 %r6, %r6, 1; add.u32 %r7, %r7, 1;
    st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};
    fence.proxy.async.shared::cta;
    bar.sync 0;
    ld.param.u64 %rd2, [out]; mov.u32 %r8, %ctaid.x; mad.wide.u32 %rd2, %r8, 1024, %rd2;
    @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%m], 1024;
    @%p0 cp.async.bulk.commit_group;
    mov.u32 %r2, 0;
V:  add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 20; @%p2 bra V;
    @%p0 cp.async.bulk.wait_group 0;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;
}
"""


@pytest.mark.parametrize("when", [4, 20, 100])
@pytest.mark.parametrize("asynchrony", ["late", "early"])
@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("check", [False, True])
def test_tiles(
    divided: Divided,
    monkeypatch: pytest.MonkeyPatch,
    when: int,
    asynchrony: Any,
    cluster: int,
    check: bool,
) -> None:
    """`when`: warp instructions of each warp, about, before the launch is divided."""
    clusters = 6
    blocks = clusters * cluster
    monkeypatch.setattr("fragir.emulator.machine.watch.QUANTUM", when * 2 * blocks)
    given = np.arange(clusters * ROWS * COLUMNS, dtype=np.uint32).reshape(-1, COLUMNS)

    def call(given: Array, out: Array, *, jobs: int) -> Report:
        return run(
            TILES,
            grid=(blocks,),
            block=(THREADS,),
            cluster=(cluster,),
            arguments=[TensorMap(given, (ROWS, COLUMNS)), out, (1 << cluster) - 1],
            resident=8 if cluster == 2 else 256,
            asynchrony=asynchrony,
            check=check,
            jobs=jobs,
        )

    one = alike(call, [given, np.zeros((blocks, ROWS * COLUMNS), np.uint32)], [2])
    assert "error" not in one, one["error"]
    assert one["findings"] == []
    expected = (given + np.uint32(1)).reshape(clusters, 1, -1).repeat(cluster, axis=1)
    assert one["arrays"][1] == expected.tobytes()
    assert divided.pids
    assert not divided.again
