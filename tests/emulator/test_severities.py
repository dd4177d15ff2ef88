"""A letter never takes the place of an error: not of the same pair of accesses, nor of another."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import run

HEAD = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<20>; .reg .b64 %rd<12>; .reg .pred %p<10>; .reg .f32 %f<5>;
    .shared .align 128 .b8 tile[8192];
    .shared .align 8 .b64 bar[2];
    ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r3, bar;
    mov.u32 %r10, %ctaid.x;
    setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32; setp.eq.u32 %p3, %r1, 5;
    and.b32 %r4, %r1, 31; setp.eq.u32 %p4, %r4, 0; setp.ge.u32 %p5, %r1, 32;
    shl.b32 %r5, %r1, 4; add.u32 %r6, %r2, %r5; cvt.u64.u32 %rd2, %r5; add.u64 %rd2, %rd1, %rd2;
"""
PRODUCT = """
    mov.u64 %rd3, 0x1000080000; shr.u32 %r7, %r2, 4; cvt.u64.u32 %rd4, %r7;
    add.u64 %rd5, %rd3, %rd4; add.u64 %rd6, %rd5, 128;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1,%f2,%f3,%f4}, %rd5, %rd6, 1, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
"""
COPIED = """
    cp.async.cg.shared.global [%r6], [%rd2], 16; cp.async.cg.shared.global [%r6+2048], [%rd2], 16;
    cp.async.wait_all;
"""
STORED = """
    st.shared.v4.u32 [%r6], {%r1,%r1,%r1,%r1}; st.shared.v4.u32 [%r6+2048], {%r1,%r1,%r1,%r1};
"""
#: An mbarrier in the first bytes, which nobody uses, and bytes behind it that warp 1 writes.
RESERVED = """
    @%p1 mbarrier.init.shared.b64 [%r2], 1; bar.sync 0;
    @%p2 st.shared.u32 [%r2+8], 5;
"""
TELL = "shfl.sync.idx.b32 %r9, %r8, 0, 31, "
#: Block 1 polls with lane 0; TOLD is how the other lanes learn, THEN what they do.
POLLED = """
    setp.eq.u32 %p6, %r10, 1; mov.u32 %r8, 1; @%p6 bra READER;
    @%p1 st.global.v4.u32 [%rd1], {%r1,%r1,%r1,%r3}; WRITTEN
    @%p1 st.release.gpu.global.u32 [%rd1+16], 1;
    bra.uni DONE;
READER:
    @%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster; bar.sync 0;
    @!%p1 bra TOLD;
POLL:
    ld.acquire.gpu.global.u32 %r8, [%rd1+16]; setp.ne.u32 %p7, %r8, 1; @%p7 bra POLL;
TOLD:
    THEN
DONE:
"""
LOAD = """
    @%p3 mbarrier.arrive.expect_tx.shared.b64 %rd7, [%r3], 16;
    @%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%rd1], 16, [%r3];
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p7, [%r3], 0; @!%p7 bra WAIT;
"""


def polled(then: str, written: str = "") -> str:
    return POLLED.replace("THEN", then).replace("WRITTEN", written)


#: name -> (body, threads, blocks, severity and kind of all findings)
CASES = {
    "copied, neither barrier nor fence": (COPIED + PRODUCT, 128, 1, {"error race"}),
    "copied, no fence": (COPIED + "bar.sync 0;" + PRODUCT, 128, 1, {"letter proxy-fence"}),
    "copied, no barrier": (COPIED + "fence.proxy.async;" + PRODUCT, 128, 1, {"error race"}),
    "copied, nothing missing": (
        COPIED + "fence.proxy.async; bar.sync 0;" + PRODUCT,
        *(128, 1, set[str]()),
    ),
    "stored, neither barrier nor fence": (
        STORED + PRODUCT,
        *(128, 1, {"error race", "error proxy-fence"}),
    ),
    "half copied, half stored": (
        COPIED + "st.shared.u32 [%r6+4], %r1; bar.sync 0;" + PRODUCT,
        *(128, 1, {"letter proxy-fence", "error proxy-fence"}),
    ),
    "half copied, half stored by others": (
        COPIED + "@%p4 st.shared.u32 [%r6+4], %r1;" + PRODUCT,
        *(128, 1, {"error race", "error proxy-fence"}),
    ),
    "an mbarrier is overwritten, and a word": (
        RESERVED + "@%p1 st.shared.v4.u32 [%r2], {%r3,%r3,%r3,%r3};",
        *(64, 1, {"letter mbarrier", "error race"}),
    ),
    "an mbarrier is overwritten in order": (
        RESERVED + "bar.sync 0; @%p1 st.shared.v4.u32 [%r2], {%r3,%r3,%r3,%r3};",
        *(64, 1, {"letter mbarrier"}),
    ),
    "a bulk copy overwrites both": (
        "@%p1 mbarrier.init.shared.b64 [%r3], 1; fence.mbarrier_init.release.cluster;"
        + RESERVED
        + "bar.sync 0;"
        + LOAD,
        *(64, 1, {"letter mbarrier", "error proxy-fence"}),
    ),
    "told by a shuffle": (
        polled(TELL + "-1; ld.global.u32 %r11, [%rd1]; st.global.u32 [%rd2+512], %r11;"),
        *(32, 2, {"letter race"}),
    ),
    "told by a shuffle among those who do not know": (
        polled(
            f"@!%p1 {TELL} 0xfffffffe; ld.global.u32 %r11, [%rd1]; st.global.u32 [%rd2+512], 1;"
        ),
        *(32, 2, {"error race"}),
    ),
    "some are told, and others not": (
        polled(
            f"@!%p3 {TELL} 0xffffffdf; setp.lt.u32 %p8, %r1, 4;"
            "@%p8 ld.global.u32 %r11, [%rd1]; @%p3 ld.global.u32 %r11, [%rd1];"
        ),
        *(32, 2, {"letter race", "error race"}),
    ),
    "told by a shuffle, copied without a proxy fence": (
        polled(f"{TELL} -1; {LOAD}"),
        *(32, 2, {"error proxy-fence"}),
    ),
    "told by a shuffle, the writer has fenced": (
        polled(f"{TELL} -1; {LOAD}", "fence.proxy.async;"),
        *(32, 2, {"letter race"}),
    ),
    "told by a shuffle, the issuer has fenced": (
        polled(f"{TELL} -1; fence.proxy.async; {LOAD}"),
        *(32, 2, {"letter race"}),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("schedule", [None, 1])
def test_letters_hide_no_errors(name: str, schedule: int | None) -> None:
    body, threads, blocks, expected = CASES[name]
    data = [np.zeros(4096, np.uint32)]
    report = run(
        f"{HEAD}{body}    ret;\n}}",
        grid=(blocks,),
        block=(threads,),
        arguments=data,
        check=True,
        schedule=schedule,
    )
    found = [(f.severity, f.kind, f.line, f.col, f.subject) for f in report.findings]
    assert {f"{severity} {kind}" for severity, kind, *_ in found} == expected
    # Of one pair of accesses nothing mild is said where there is worse.
    errors = {pair for severity, _, *pair in found if severity == "error" for pair in [tuple(pair)]}
    assert not errors & {tuple(pair) for severity, _, *pair in found if severity == "letter"}
