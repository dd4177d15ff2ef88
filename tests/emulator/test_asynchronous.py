"""cp.async, bulk copies and wgmma: results, and every kind of missing wait."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Report, run
from fragir.emulator.report import Asynchrony

HEAD = ".version 8.0\n.target sm_90a\n.address_size 64\n"


# -- cp.async --------------------------------------------------------------------------------------


def copies(wait: str, *, stages: int = 3, asynchrony: Asynchrony = "late", extra: str = "") -> Any:
    """Every thread copies 16 bytes a stage, waits, and sums what it got; returns got and wanted."""
    issue = "".join(
        f"""
        cp.async.cg.shared.global [%r2+{512 * s}], [%rd2+{512 * s}], 16{extra};
        cp.async.commit_group;"""
        for s in range(stages)
    )
    source = np.arange(stages * 128, dtype=np.uint32)
    out = np.zeros(32, np.uint32)
    run(
        f"""{HEAD}
.visible .entry k(.param .u64 source, .param .u64 out)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .shared .align 16 .b8 buffer[{512 * stages}];
    .reg .pred %p;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 4; mov.u32 %r3, buffer; add.u32 %r2, %r2, %r3;
    ld.param.u64 %rd1, [source]; mad.wide.u32 %rd2, %r1, 16, %rd1;
    setp.lt.u32 %p, %r1, 16; selp.b32 %r9, 6, 16, %p;
    {issue}
    {wait}
    ld.shared.u32 %r4, [%r2]; ld.shared.u32 %r5, [%r2+4];
    add.u32 %r4, %r4, %r5;
    ld.param.u64 %rd3, [out]; mad.wide.u32 %rd3, %r1, 4, %rd3; st.global.u32 [%rd3], %r4;
    ret;
}}
""",
        arguments=[source, out],
        asynchrony=asynchrony,
    )
    rows = source[:128].reshape(32, 4)
    return out, rows[:, 0] + rows[:, 1]


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
@pytest.mark.parametrize(
    "wait", ["cp.async.wait_group 2;", "cp.async.wait_group 0;", "cp.async.wait_all;"]
)
def test_enough_waiting(wait: str, asynchrony: Asynchrony) -> None:
    got, wanted = copies(wait, asynchrony=asynchrony)
    assert (got == wanted).all()


@pytest.mark.parametrize("wait", ["", "cp.async.wait_group 3;"])
def test_missing_wait_is_an_error(wait: str) -> None:
    with pytest.raises(EmulationError, match=r"ld\.shared.*lane 0.*asynchronous copy.*pending"):
        copies(wait)


def test_early_completion_hides_the_missing_wait() -> None:
    got, wanted = copies("", asynchrony="early")
    assert (got == wanted).all()


def test_short_sources_are_filled_with_zeros() -> None:
    got, wanted = copies("cp.async.wait_all;", extra=", %r9")
    low = np.arange(16) * 4
    assert (got[16:] == wanted[16:]).all()
    assert (got[:16] == low + ((low + 1) & 0xFFFF)).all()


def test_ignored_sources_are_not_read() -> None:
    got, wanted = copies("cp.async.wait_all;", extra=", %p")
    assert not got[:16].any()
    assert (got[16:] == wanted[16:]).all()


def test_groups_are_each_threads_own() -> None:
    """Odd lanes commit one group more, so the same wait leaves them less."""
    text = f"""{HEAD}
.visible .entry k(.param .u64 source, .param .u64 out)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p; .shared .align 16 .b8 buffer[512];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, buffer; add.u32 %r2, %r2, %r3;
    ld.param.u64 %rd1, [source]; mad.wide.u32 %rd2, %r1, 4, %rd1;
    and.b32 %r5, %r1, 1; setp.eq.u32 %p, %r5, 1;
    cp.async.ca.shared.global [%r2], [%rd2], 4;
    cp.async.commit_group;
    WAIT
    ld.shared.u32 %r4, [%r2];
    ld.param.u64 %rd3, [out]; mad.wide.u32 %rd3, %r1, 4, %rd3; st.global.u32 [%rd3], %r4;
    ret;
}}
"""
    source, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    wait = "@%p cp.async.commit_group; cp.async.wait_group 1;"
    with pytest.raises(EmulationError, match="lane 0,"):
        run(text.replace("WAIT", wait), arguments=[source, out])
    wait += " @!%p cp.async.wait_group 0;"
    run(text.replace("WAIT", wait), arguments=[source, out])
    assert (out == source).all()


@pytest.mark.parametrize("asynchrony", ["late", "early"])
def test_copies_arrive_on_an_mbarrier(asynchrony: Asynchrony) -> None:
    source, out = np.arange(32, dtype=np.uint32), np.zeros(32, np.uint32)
    run(
        f"""{HEAD}
.visible .entry k(.param .u64 source, .param .u64 out)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p;
    .shared .align 16 .b8 buffer[128]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, buffer; add.u32 %r2, %r2, %r3;
    setp.eq.u32 %p, %r1, 0; @%p mbarrier.init.shared.b64 [bar], 32;
    bar.sync 0;
    ld.param.u64 %rd1, [source]; mad.wide.u32 %rd2, %r1, 4, %rd1;
    cp.async.ca.shared.global [%r2], [%rd2], 4;
    cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
L:  mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra L;
    ld.shared.u32 %r4, [%r2];
    ld.param.u64 %rd3, [out]; mad.wide.u32 %rd3, %r1, 4, %rd3; st.global.u32 [%rd3], %r4;
    ret;
}}
""",
        arguments=[source, out],
        asynchrony=asynchrony,
    )
    assert (out == source).all()


# -- cp.async.bulk ---------------------------------------------------------------------------------


def bulk(wait: bool, asynchrony: Asynchrony = "late") -> Any:
    source, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    loop = "L: mbarrier.try_wait.parity.shared.b64 %p1, [bar], 0; @!%p1 bra L;" if wait else ""
    run(
        f"""{HEAD}
.visible .entry k(.param .u64 source, .param .u64 out)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<10>; .reg .pred %p<3>;
    .shared .align 128 .b8 buffer[1024]; .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x; setp.ne.u32 %p2, %r1, 0; mov.u32 %r3, buffer; mov.u32 %r5, bar;
    ld.param.u64 %rd1, [source]; ld.param.u64 %rd2, [out];
    @%p2 bra READY;
    mbarrier.init.shared.b64 [bar], 1;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 1024;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd1], 1024, [%r5];
READY:
    bar.sync 0;
    {loop}
    mad.lo.u32 %r4, %r1, 4, %r3; ld.shared.u32 %r6, [%r4]; add.u32 %r6, %r6, 5;
    st.shared.u32 [%r4], %r6;
    fence.proxy.async; bar.sync 0;
    @%p2 bra END;
    cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r3], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
END:
    ret;
}}
""",
        block=(64,),
        arguments=[source, out],
        asynchrony=asynchrony,
    )
    wanted = source.copy()
    wanted[:64] += 5
    return out, wanted


@pytest.mark.parametrize("asynchrony", ["late", "early"])
def test_bulk_copy_there_and_back(asynchrony: Asynchrony) -> None:
    got, wanted = bulk(True, asynchrony)
    assert (got == wanted).all()


def test_bulk_copy_without_waiting_is_an_error() -> None:
    with pytest.raises(EmulationError, match=r"asynchronous copy.*pending"):
        bulk(False)


# -- wgmma -----------------------------------------------------------------------------------------

N = 64


def wgmma(
    *,
    fence: str = "wgmma.fence.sync.aligned;",
    wait: str = "wgmma.wait_group.sync.aligned 0;",
    between: str = "",
    from_registers: bool = False,
    asynchrony: Asynchrony = "late",
    schedule: int | None = None,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float64], Report]:
    """C[64, N] = A[64, 64] B[N, 64]^T by two warpgroups, each its own block; 128-byte swizzle."""
    d = ", ".join(f"%f{i}" for i in range(N // 2))
    steps = ""
    for k in range(4):
        a = "%rd6"
        if from_registers:
            a = "{%a0, %a1, %a2, %a3}"
            steps += "".join(
                f"ld.global.b32 %a{r}, [%rd12+{2 * (16 * k + 8 * (r >> 1)) + 8 * 128 * (r & 1)}];"
                for r in range(4)
            )
            steps += fence if k else ""
        tail = "0, 1, 1, 0" if from_registers else "0, 1, 1, 0, 0"
        tail = tail if k == 0 else "1" + tail[1:]
        steps += f"""
    wgmma.mma_async.sync.aligned.m64n{N}k16.f32.f16.f16 {{{d}}}, {a}, %rd7, {tail};
    add.u64 %rd6, %rd6, 2; add.u64 %rd7, %rd7, 2;"""
        if from_registers:
            steps += "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    stores = "".join(
        f"st.global.v2.f32 [%rd9+{32 * (N * (i >> 1 & 1) + (i >> 2))}], {{%f{i}, %f{i + 1}}};"
        for i in range(0, N // 2, 2)
    )
    zero = "".join(f"mov.f32 %f{i}, 0f00000000;" for i in range(N // 2))
    load = """
L0: shl.b32 %r3, %r2, 4;
    shr.u32 %r4, %r2, 3; and.b32 %r4, %r4, 7; shl.b32 %r4, %r4, 4; xor.b32 %r4, %r3, %r4;
    cvt.u64.u32 %rd4, %r3;
    mov.u32 %r5, sa; add.u32 %r5, %r5, %r4; add.u64 %rd5, %rd1, %rd4;
    cp.async.cg.shared.global [%r5], [%rd5], 16;
    mov.u32 %r5, sb; add.u32 %r5, %r5, %r4; add.u64 %rd5, %rd2, %rd4;
    cp.async.cg.shared.global [%r5], [%rd5], 16;
    add.u32 %r2, %r2, 128; setp.lt.u32 %p1, %r2, 512; @%p1 bra L0;
    cp.async.wait_all; fence.proxy.async; bar.sync 0;"""
    text = f"""{HEAD}
.visible .entry k(.param .u64 A, .param .u64 B, .param .u64 C)
{{
    .reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<{N}>; .reg .b32 %a<4>;
    .shared .align 1024 .b8 sa[8192]; .shared .align 1024 .b8 sb[{N * 128}];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %r1; mov.u32 %r15, %ctaid.x;
    ld.param.u64 %rd1, [A]; ld.param.u64 %rd2, [B]; ld.param.u64 %rd3, [C];
    mad.wide.u32 %rd1, %r15, 8192, %rd1; mad.wide.u32 %rd3, %r15, {64 * N * 4}, %rd3;
    {load}
    mov.u32 %r6, sa; shr.u32 %r6, %r6, 4; cvt.u64.u32 %rd6, %r6;
    mov.u32 %r7, sb; shr.u32 %r7, %r7, 4; cvt.u64.u32 %rd7, %r7;
    mov.b64 %rd8, 0x4000004000010000; or.b64 %rd6, %rd6, %rd8; or.b64 %rd7, %rd7, %rd8;
    shr.u32 %r8, %r1, 5; shl.b32 %r8, %r8, 4; and.b32 %r9, %r1, 31; shr.u32 %r10, %r9, 2;
    add.u32 %r8, %r8, %r10; and.b32 %r11, %r9, 3; shl.b32 %r11, %r11, 1;
    mad.lo.u32 %r12, %r8, {N}, %r11; mad.wide.u32 %rd9, %r12, 4, %rd3;
    mad.lo.u32 %r12, %r8, 64, %r11; mad.wide.u32 %rd12, %r12, 2, %rd1;
    {zero}
    {fence}
    {steps}
    {between}
    wgmma.commit_group.sync.aligned;
    {wait}
    {stores}
    ret;
}}
"""
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (2, 64, 64)).astype(np.float16)
    b = rng.integers(-4, 5, (N, 64)).astype(np.float16)
    c = np.zeros((2, 64, N), np.float32)
    report = run(
        text,
        grid=(2,),
        block=(128,),
        arguments=[a, b, c],
        asynchrony=asynchrony,
        schedule=schedule,
    )
    return c, a.astype(np.float64) @ b.astype(np.float64).T, report


@pytest.mark.parametrize("asynchrony", ["late", "early", "random"])
@pytest.mark.parametrize("from_registers", [False, True])
def test_wgmma(from_registers: bool, asynchrony: Asynchrony) -> None:
    got, wanted, report = wgmma(from_registers=from_registers, asynchrony=asynchrony)
    assert (got == wanted).all()
    assert report.statistics.mma == 8
    if not from_registers:
        assert not report.findings


@pytest.mark.parametrize("schedule", [1, 2, 3])
def test_the_warps_of_a_warpgroup_come_one_by_one(schedule: int) -> None:
    got, wanted, report = wgmma(schedule=schedule)
    assert (got == wanted).all()
    assert report.statistics.mma == 8
    assert not report.findings


def test_registers_before_the_wait() -> None:
    for wait in ("", "wgmma.wait_group.sync.aligned 1;"):
        with pytest.raises(EmulationError, match=r"st\.global.*wgmma that is still pending"):
            wgmma(wait=wait)
    with pytest.raises(EmulationError, match=r"add\.f32.*still pending"):
        wgmma(between="add.f32 %f3, %f3, %f3;")


def test_missing_fence_is_found() -> None:
    _, _, report = wgmma(fence="")
    assert [f.kind for f in report.findings] == ["wgmma-fence"]
    assert report.findings[0].line is not None


def test_wgmma_nobody_waits_for() -> None:
    text = f"""{HEAD}
.visible .entry k()
{{
    .reg .f32 %f<4>; .reg .b64 %d; .shared .align 1024 .b8 s[8192];
    mov.b64 %d, 0x4000004000010000;
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%f0, %f1, %f2, %f3}}, %d, %d, 0, 1, 1, 0, 0;
    wgmma.commit_group.sync.aligned;
    ret;
}}
"""
    report = run(text, block=(128,))
    assert [f.kind for f in report.findings] == ["unretired"]
    with pytest.raises(EmulationError, match="whole warpgroups"):
        run(text, block=(64,))
