"""Correct kernels with barriers of all kinds; `test_patterns` runs them, and breaks them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"

STEPS = 6

#: Warpgroup 0 produces by one thread, warpgroup 1 consumes; two stages of A (64x16) and B (16x8).
RING = (
    HEAD
    + f"""
.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out)
{{
    .reg .b32 %r<30>; .reg .b64 %rd<20>; .reg .pred %p<10>; .reg .f32 %f<9>;
    .shared .align 1024 .b8 tiles[8192];
    .shared .align 8 .b64 full[2];
    .shared .align 8 .b64 empty[2];
    mov.u32 %r1, %tid.x; mov.u32 %r2, tiles; mov.u32 %r3, full; mov.u32 %r4, empty;
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u64 %rd3, [out];
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra INITIALISED;
    mbarrier.init.shared.b64 [%r3], 1; mbarrier.init.shared.b64 [%r3+8], 1;
    mbarrier.init.shared.b64 [%r4], 1; mbarrier.init.shared.b64 [%r4+8], 1;
    fence.mbarrier_init.release.cluster;
INITIALISED:
    bar.sync 0;
    setp.ge.u32 %p2, %r1, 128;
    mov.u32 %r5, 0;
    @%p2 bra CONSUMER;
    @%p1 bra DONE;
PRODUCE:
    and.b32 %r6, %r5, 1; shr.u32 %r7, %r5, 1; and.b32 %r7, %r7, 1; xor.b32 %r7, %r7, 1;
    shl.b32 %r8, %r6, 3; add.u32 %r9, %r3, %r8; add.u32 %r10, %r4, %r8;
WAIT_EMPTY:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r10], %r7;
    @!%p3 bra WAIT_EMPTY;
    mad.lo.u32 %r11, %r6, 4096, %r2;
    mbarrier.arrive.expect_tx.shared.b64 %rd4, [%r9], 2304;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r11], [%rd1], 2048, [%r9];
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r11+2048], [%rd2], 256, [%r9];
    add.u64 %rd1, %rd1, 2048; add.u64 %rd2, %rd2, 256;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, {STEPS};
    @%p4 bra PRODUCE;
    bra DONE;
CONSUMER:
    mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    setp.eq.u32 %p5, %r1, 128;
CONSUME:
    and.b32 %r6, %r5, 1; shr.u32 %r7, %r5, 1; and.b32 %r7, %r7, 1;
    shl.b32 %r8, %r6, 3; add.u32 %r9, %r3, %r8; xor.b32 %r12, %r8, 8; add.u32 %r10, %r4, %r12;
WAIT_FULL:
    mbarrier.try_wait.parity.shared.b64 %p3, [%r9], %r7;
    @!%p3 bra WAIT_FULL;
    mad.lo.u32 %r11, %r6, 4096, %r2;
    cvt.u64.u32 %rd5, %r11; shr.u64 %rd5, %rd5, 4;
    add.u64 %rd6, %rd5, 0x1000080000; add.u64 %rd7, %rd6, 128;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
        {{%f1, %f2, %f3, %f4}}, %rd6, %rd7, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    wgmma.wait_group.sync.aligned 1;
    setp.gt.and.u32 %p6, %r5, 0, %p5;
    @%p6 mbarrier.arrive.shared.b64 %rd4, [%r10];
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, {STEPS};
    @%p4 bra CONSUME;
    wgmma.wait_group.sync.aligned 0;
    sub.u32 %r13, %r1, 128; mad.wide.u32 %rd8, %r13, 16, %rd3;
    st.global.v4.f32 [%rd8], {{%f1, %f2, %f3, %f4}};
DONE:
    ret;
}}
"""
)


def ring_arguments() -> tuple[list[npt.NDArray[np.generic]], npt.NDArray[np.float64]]:
    """A, B as core matrices of 8 rows of 16 bytes, the result, and D as the threads hold it."""
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (STEPS, 64, 16)).astype(np.float16)
    b = rng.integers(-3, 4, (STEPS, 8, 16)).astype(np.float16)
    cores_a = a.reshape(STEPS, 8, 8, 2, 8).swapaxes(2, 3).copy()
    cores_b = b.reshape(STEPS, 1, 8, 2, 8).swapaxes(2, 3).copy()
    d = np.einsum("smk,snk->mn", a.astype(np.float64), b.astype(np.float64))
    thread = np.arange(128)
    row = thread // 32 * 16 + thread % 32 // 4
    column = thread % 4 * 2
    held = [d[row, column], d[row, column + 1], d[row + 8, column], d[row + 8, column + 1]]
    return [cores_a, cores_b, np.zeros((128, 4), np.float32)], np.stack(held, axis=1)


#: Warp 0 fills one of two buffers while warp 1 reads the other (barriers 1, 2 full; 3, 4 empty).
NAMED = (
    HEAD
    + """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<20>; .reg .b64 %rd<4>; .reg .pred %p<6>;
    .shared .align 16 .b8 buffer[256];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; shl.b32 %r3, %r2, 2;
    mov.u32 %r4, buffer; mov.u32 %r5, 0; mov.u32 %r6, 0;
    setp.ge.u32 %p1, %r1, 32;
    @%p1 bra CONSUMER;
PRODUCE:
    and.b32 %r7, %r5, 1; add.u32 %r8, %r7, 1; add.u32 %r9, %r7, 3;
    bar.sync %r9, 64;
    shl.b32 %r10, %r7, 7; add.u32 %r10, %r10, %r4; add.u32 %r10, %r10, %r3;
    add.u32 %r11, %r5, %r2;
    st.shared.u32 [%r10], %r11;
    bar.arrive %r8, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 8;
    @%p2 bra PRODUCE;
    bra DONE;
CONSUMER:
    bar.arrive 3, 64;
    bar.arrive 4, 64;
    xor.b32 %r12, %r3, 124;
CONSUME:
    and.b32 %r7, %r5, 1; add.u32 %r8, %r7, 1; add.u32 %r9, %r7, 3;
    bar.sync %r8, 64;
    shl.b32 %r10, %r7, 7; add.u32 %r10, %r10, %r4; add.u32 %r10, %r10, %r12;
    ld.shared.u32 %r11, [%r10];
    add.u32 %r6, %r6, %r11;
    setp.lt.u32 %p3, %r5, 6;
    @%p3 bar.arrive %r9, 64;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 8;
    @%p2 bra CONSUME;
    ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r2, 4, %rd1;
    st.global.u32 [%rd1], %r6;
DONE:
    ret;
}
"""
)

SPLIT = (
    HEAD
    + """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<20>; .reg .b64 %rd<5>; .reg .pred %p<6>;
    .shared .align 8 .b8 buffer[256]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2;
    mov.u32 %r5, bar; setp.eq.u32 %p1, %r1, 0;
    @%p1 mbarrier.init.shared.b64 [%r5], 64;
    bar.sync 0;
    xor.b32 %r6, %r2, 128; add.u32 %r6, %r6, %r3;
    mov.u32 %r9, 0; mov.u32 %r8, 0;
AGAIN:
    add.u32 %r7, %r1, %r9;
    st.shared.u32 [%r4], %r7;
    mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r5];
    add.u32 %r9, %r9, 1;
FILLED:
    mbarrier.test_wait.acquire.cta.shared::cta.b64 %p2, [%r5], %rd1;
    @!%p2 bra FILLED;
    ld.shared.u32 %r7, [%r6];
    add.u32 %r8, %r8, %r7;
    mbarrier.arrive.release.cta.shared::cta.b64 %rd1, [%r5];
READ:
    mbarrier.test_wait.acquire.cta.shared::cta.b64 %p2, [%r5], %rd1;
    @!%p2 bra READ;
    setp.lt.u32 %p3, %r9, 4;
    @%p3 bra AGAIN;
    ld.param.u64 %rd2, [out]; mad.wide.u32 %rd2, %r1, 4, %rd2;
    st.global.u32 [%rd2], %r8;
    ret;
}
"""
)

#: Every block writes to its neighbour; the arrival comes before other work, the wait behind it.
SPLIT_CLUSTER = (
    HEAD
    + """
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<20>; .reg .b64 %rd<5>;
    .shared .align 8 .b8 buffer[128];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, buffer; add.u32 %r4, %r3, %r2;
    mov.u32 %r5, %cluster_ctarank; xor.b32 %r6, %r5, 1;
    barrier.cluster.arrive.release.aligned;
    shl.b32 %r7, %r5, 5; add.u32 %r7, %r7, %r1;
    mapa.shared::cluster.u32 %r8, %r4, %r6;
    barrier.cluster.wait.acquire.aligned;
    st.shared::cluster.u32 [%r8], %r7;
    barrier.cluster.arrive.release.aligned;
    ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r7, 4, %rd1;
    barrier.cluster.wait.acquire.aligned;
    ld.shared.u32 %r9, [%r4];
    st.global.u32 [%rd1], %r9;
    ret;
}
"""
)
