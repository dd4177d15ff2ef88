"""mbarriers in all forms, barriers that reduce, special registers, launch control, lane groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import EmulationError, Report, run
from tests.emulator.kernels import HEAD, launch

MBAR = "mbarrier::complete_tx::bytes"


def single(text: str, **options: Any) -> tuple[list[int], Report]:
    """What one thread stores as %r0 to %r7, with an mbarrier `bar` that expects 3 arrivals."""
    shown = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
    zero = "".join(f"mov.u32 %r{i}, 0;" for i in range(8))
    out, report = launch(
        f".shared .align 8 .b64 bar; mbarrier.init.shared.b64 [bar], 3; {zero} {text} "
        f"st.global.v8.b32 [%out], {shown};",
        block=(1,),
        check=True,
        **options,
    )
    return out[0, :32].view(np.uint32).tolist(), report


def flag(register: int, wait: str) -> str:
    return f"mbarrier.{wait} selp.u32 %r{register}, 1, 0, %p0;"


def test_states_and_parities() -> None:
    got, report = single(
        """
        mbarrier.arrive.shared.b64 %rd1, [bar]; mbarrier.pending_count.b64 %r0, %rd1;
        mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd2, [bar], 1;
        mbarrier.pending_count.b64 %r1, %rd2;
        """
        + flag(2, "test_wait.shared.b64 %p0, [bar], %rd1;")
        + "cvta.shared.u64 %rd3, 0; mov.u64 %rd3, bar; cvta.shared.u64 %rd3, %rd3;"
        + "mbarrier.arrive.relaxed.cluster.b64 %rd4, [%rd3];"
        + flag(3, "test_wait.acquire.cta.b64 %p0, [%rd3], %rd1;")
        + flag(4, "try_wait.parity.relaxed.cluster.shared::cta.b64 %p0, [bar], 0, 1000;")
        + flag(5, "test_wait.parity.shared.b64 %p0, [bar], 1;")
        + "mbarrier.arrive.shared.b64 _, [bar], 2; mbarrier.arrive.shared.b64 %rd5, [bar];"
        + flag(6, "try_wait.shared.b64 %p0, [bar], %rd5;")
        + flag(7, "test_wait.parity.shared.b64 %p0, [bar], 0;"),
    )
    assert got == [3, 2, 0, 1, 1, 0, 1, 0]
    assert report.findings == []


def test_transactions() -> None:
    got, _ = single(
        """
        mbarrier.arrive.expect_tx.release.cta.shared.b64 %rd1, [bar], 8;
        mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 8;
        mbarrier.arrive.shared.b64 _, [bar], 2;
        """
        + flag(0, "test_wait.parity.shared.b64 %p0, [bar], 0;")
        + "mbarrier.complete_tx.shared.b64 [bar], 12;"
        + flag(1, "test_wait.parity.shared.b64 %p0, [bar], 0;")
        + "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [bar], 4;"
        + flag(2, "test_wait.parity.shared.b64 %p0, [bar], 0;"),
    )
    assert got[:3] == [0, 0, 1]


def test_those_who_drop_out_are_not_waited_for() -> None:
    """Two of three drop out: later phases take one arrival."""
    got, _ = single(
        """
        mbarrier.arrive_drop.shared.b64 %rd1, [bar], 2; mbarrier.arrive.shared.b64 _, [bar];
        """
        + flag(0, "test_wait.parity.shared.b64 %p0, [bar], 0;")
        + "mbarrier.arrive_drop.expect_tx.relaxed.cta.shared.b64 %rd2, [bar], 4;"
        + "mbarrier.pending_count.b64 %r1, %rd2; mbarrier.complete_tx.shared.b64 [bar], 4;"
        + flag(2, "test_wait.parity.shared.b64 %p0, [bar], 1;"),
    )
    assert got[:3] == [1, 1, 1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mbarrier.arrive.noComplete.shared.b64 %rd1, [bar], 3;", "would complete its phase"),
        ("mbarrier.arrive.shared.b64 _, [bar], 4;", "expects fewer arrivals: 4 come"),
        ("mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 [bar], 0;", "expect 0 arriv"),
        ("mbarrier.arrive.shared::cluster.b64 %rd1, [bar];", "operands .* are not right"),
        ("mbarrier.arrive.expect_tx.shared.b64 _, [bar];", "takes 3 operands, not 2"),
        ("mbarrier.inval.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];", "not init"),
    ],
)
def test_misuse(text: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        single(text)


CLUSTER = """
.visible .entry k(.param .u64 out) .reqnctapercluster 2
{
    .shared .b64 bar; .reg .pred %p<3>; .reg .b32 %r<8>; .reg .b64 %d<4>;
    mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1; mov.u32 %r3, bar;
    mapa.shared::cluster.u32 %r4, %r3, %r2; mov.u64 %d1, bar; cvta.shared.u64 %d1, %d1;
    mapa.u64 %d2, %d1, %r2;
    mbarrier.init.shared::cta.b64 [bar], 2; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
    TEXT
W:  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [bar], 0; @!%p1 bra W;
    barrier.cluster.arrive.relaxed; barrier.cluster.wait;
    getctarank.shared::cluster.u32 %r5, %r4; ld.param.u64 %d3, [out]; mul.wide.u32 %d1, %r1, 4;
    add.u64 %d3, %d3, %d1; st.global.u32 [%d3], %r5; ret;
}
"""


def cluster(text: str) -> list[int]:
    out = np.zeros(2, np.uint32)
    report = run(
        HEAD + CLUSTER.replace("TEXT", text), grid=(2,), block=(1,), arguments=[out], check=True
    )
    assert report.findings == []
    return out.tolist()


def test_arrivals_at_the_other_block() -> None:
    assert cluster(
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];mbarrier.arrive.b64 _, [%d2];"
    ) == [1, 0]


@pytest.mark.parametrize(
    "text",
    [
        "mbarrier.test_wait.parity.b64 %p1, [%d2], 0;",
        "mbarrier.inval.b64 [%d2];",
        "mbarrier.init.b64 [%d2], 1;",
    ],
)
def test_other_blocks_cannot_wait(text: str) -> None:
    with pytest.raises(EmulationError, match="lies in another block"):
        cluster(text)


# -- bar -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["bar", "bar.cta", "barrier", "barrier.cta"])
@pytest.mark.parametrize("aligned", ["", ".aligned"])
def test_reductions_of_predicates(word: str, aligned: str) -> None:
    if word.startswith("bar") and not word.startswith("barrier"):
        aligned = ""
    out, report = launch(
        f"""
        setp.lt.u32 %p0, %tid, 40; mov.u32 %r7, 2;
        {word}.red.popc{aligned}.u32 %r0, 0, %p0; {word}.red.popc{aligned}.u32 %r1, 1, 64, !%p0;
        {word}.red.and{aligned}.pred %p1, %r7, %p0; {word}.red.or{aligned}.pred %p2, 3, %p0;
        selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 1, 0, %p2;
        {word}.sync{aligned} 4; st.global.v4.u32 [%out], {{%r0, %r1, %r2, %r3}};
        """,
        block=(64,),
        check=True,
    )
    assert (out[:, :16].copy().view(np.uint32) == [40, 24, 0, 1]).all()
    assert report.findings == []


def test_lanes_that_name_different_lanes_are_groups_of_their_own() -> None:
    """Tiles of eight, each with its own mask, at one instruction."""
    out, _ = launch(
        """
        and.b32 %r1, %tid, 24; mov.u32 %r2, 255; shl.b32 %r2, %r2, %r1;
        setp.ge.u32 %p0, %tid, 12; vote.sync.ballot.b32 %r3, %p0, %r2;
        vote.sync.all.pred %p1, %p0, %r2; selp.u32 %r4, 1, 0, %p1;
        redux.sync.add.u32 %r5, %tid, %r2; elect.sync _|%p2, %r2; selp.u32 %r6, 1, 0, %p2;
        match.all.sync.b32 %r7|%p3, %r1, %r2; and.b32 %r8, %tid, 1;
        match.any.sync.b32 %r9, %r8, %r2;
        st.global.v4.b32 [%out], {%r3, %r4, %r5, %r6}; st.global.v2.b32 [%out+16], {%r7, %r9};
        """
    )
    got = out[:, :24].copy().view(np.uint32)
    t = np.arange(32)
    tile = t // 8
    mask = 0xFF << (8 * tile)
    assert (got[:, 0] == (0xFFFFF000 & mask)).all()
    assert (got[:, 1] == (tile >= 2)).all()
    assert (got[:, 2] == 64 * tile + 28).all()
    assert (got[:, 3] == (t % 8 == 0)).all()
    assert (got[:, 4] == mask).all()
    assert (got[:, 5] == (np.where(t % 2, 0xAAAAAAAA, 0x55555555) & mask)).all()


# -- special registers -----------------------------------------------------------------------------


def test_special_registers() -> None:
    names = ["tid.w", "ntid.w", "laneid", "nwarpid", "lanemask_le", "envreg3", "pm0", "warpid"]
    reads = "".join(f"mov.u32 %r{i}, %{n};" for i, n in enumerate(names))
    out, _ = launch(
        reads
        + """
        st.global.v8.b32 [%out], {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7};
        mov.v4.u32 {%r8, %r9, %r10, %r11}, %ntid;
        st.global.v4.b32 [%out+32], {%r8, %r9, %r10, %r11};
        mov.u64 %rd1, %current_graph_exec; st.global.u64 [%out+48], %rd1;
        mov.u32 %r12, %dynamic_smem_size; mov.u32 %r13, %total_smem_size;
        st.global.v2.b32 [%out+56], {%r12, %r13};
        """,
        block=(64,),
        shared=2048,
    )
    got = out.view(np.uint32).reshape(64, 16)
    lane = np.arange(64) % 32
    assert (got[:, [0, 1, 5, 6]] == 0).all()
    assert (got[:, 2] == lane).all()
    assert (got[:, 3] == 2).all()
    assert (got[:, 4] == (2 << lane) - 1).all()
    assert (got[:, 7] == np.arange(64) // 32).all()
    assert (got[:, 8:] == [64, 1, 1, 0, 0, 0, 2048, 2048]).all()


# -- clusterlaunchcontrol --------------------------------------------------------------------------

PERSISTENT = """
.visible .entry k(.param .u64 out) .reqnctapercluster CLUSTER
{
    .shared .align 16 .b8 answer[16]; .shared .b64 bar;
    .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %d<4>; .reg .b128 %q;
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r9, %cluster_ctarank; mov.u32 %r3, 0;
    ld.param.u64 %d1, [out];
    mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
NEXT:
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;
    barrier.cluster.arrive; barrier.cluster.wait;
    setp.ne.u32 %p0, %r9, 0; @%p0 bra WORK;
    clusterlaunchcontrol.try_cancel.async.mbarrier::complete_tx::bytesALL.b128 [answer], [bar];
WORK:
    mov.u32 %r4, %nctaid.x; mad.lo.u32 %r5, %r2, %r4, %r1; mad.wide.u32 %d2, %r5, 4, %d1;
    atom.global.add.u32 %r6, [%d2], 1;
W:  mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], %r3; @!%p1 bra W;
    xor.b32 %r3, %r3, 1; ld.shared.b128 %q, [answer];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q; @!%p2 bra DONE;
    clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r1, %r2, _, _}, %q;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r7, %q;
    add.u32 %r1, %r7, %r9; fence.proxy.async.shared::cta;
    barrier.cluster.arrive; barrier.cluster.wait; bra NEXT;
DONE:
    ret;
}
"""


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("asynchrony", ["late", "early"])
def test_running_clusters_take_over_others(size: int, asynchrony: Any) -> None:
    """Every block's work is done once, whoever does it."""
    out = np.zeros(36, np.uint32)
    text = PERSISTENT.replace("CLUSTER", str(size))
    text = text.replace("ALL", ".multicast::cluster::all" if size > 1 else "")
    report = run(
        HEAD + text,
        grid=(12, 3),
        block=(1,),
        arguments=[out],
        check=True,
        asynchrony=asynchrony,
        resident=8,
    )
    assert (out == 1).all()
    assert report.findings == []
    assert report.statistics.instructions["clusterlaunchcontrol"] > 36


def test_answers_must_be_waited_for() -> None:
    text = PERSISTENT.replace("CLUSTER", "1").replace("ALL", "")
    text = text.replace("@!%p1 bra W;", "")
    with pytest.raises(EmulationError, match="still pending"):
        run(HEAD + text, grid=(4,), block=(1,), arguments=[np.zeros(4, np.uint32)])


def test_answers_are_written_by_the_other_proxy() -> None:
    text = PERSISTENT.replace("CLUSTER", "1").replace("ALL", "")
    text = text.replace("fence.proxy.async.shared::cta;", "").replace(
        "barrier.cluster.arrive; barrier.cluster.wait; bra NEXT;", "bra NEXT;"
    )
    text = text.replace(
        "ld.shared.b128 %q, [answer];",
        "ld.shared.b128 %q, [answer]; mov.b64 %d3, 0; st.shared.b64 [answer+8], %d3;",
    )
    report = run(HEAD + text, grid=(4,), block=(1,), arguments=[np.zeros(4, np.uint32)], check=True)
    assert "proxy-fence" in {f.kind for f in report.findings}


class TestTwoStatementsOfOneBarrier:
    """They may meet; where that is followed by a fault it is said which they were."""

    HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k() {
 .reg .b32 %r<9>; .reg .pred %p<5>; .shared .b32 s[64];
 mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 32; mov.u32 %r2, 64; @%p1 bra A;
"""

    def said(self, body: str, check: bool = True) -> str:
        """Lines are counted from the body's first, which is 7."""
        try:
            report = run(f"{self.HEAD}{body}\nret; }}", block=(64,), check=check)
        except EmulationError as error:
            return error.message
        return "\n".join(f.message for f in report.findings)

    def test_a_deadlock_behind_them(self) -> None:
        body = (
            "bar.sync 0;\nbar.sync 0;\nbra E;\nA: bar.sync 0;\nbar.sync 1;\nE: add.u32 %r3, %r1, 1;"
        )
        for check in (True, False):
            message = self.said(body, check)
            assert "deadlock" in message
            assert (
                "block (0, 0, 0) has passed barrier 0 at two statements, bar.sync of line 7 and "
                "bar.sync of line 10, before"
            ) in message
        assert "two statements" not in self.said("bar.sync 0;\nbra E;\nA: bar.sync 1;\nE:")

    @pytest.mark.parametrize("first", ["bar.sync 0, 96;", "bar.arrive 0, 96;"])
    @pytest.mark.parametrize("count", ["64", "%r2"])
    def test_counts_that_differ(self, first: str, count: str) -> None:
        message = self.said(f"{first}\nbra E;\nA:\nbar.sync 0, {count};\nE:")
        came = f"they have come from {first.split()[0]} of line 7"
        assert f"barrier 0 is used for 64 threads while others use it for 96 ({came})" in message

    def test_a_race_behind_them(self) -> None:
        body = "bar.sync 0;\nld.shared.u32 %r4, [s];\nbra E;\nA: bar.sync 0;\n"
        body += "st.shared.u32 [s], 2;\nE:"
        message = self.said(body)
        assert "nothing orders this after the read of the same bytes" in message
        assert "barrier 0 at two statements, bar.sync of line 7 and bar.sync of line 10" in message
        once = "A: bar.sync 0; @%p1 st.shared.u32 [s], 2; @!%p1 ld.shared.u32 %r4, [s];"
        assert "two statements" not in self.said(once)

    def test_legal_ones(self) -> None:
        for body in (
            "bar.sync 0;\nbra E;\nA: bar.sync 0;\nE:",
            "bar.arrive 1, 64;\nbra E;\nA: bar.sync 1, 64;\nE: bar.sync 0;",
        ):
            assert self.said(body) == ""
