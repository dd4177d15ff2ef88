"""Divergence, barriers, memory, atomics, calls, errors: whole small kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Hooks, Report, Struct, run
from fragir.errors import FragirError

HEAD = """
.version 8.0
.target sm_90
.address_size 64
"""


def kernel(
    body: str,
    *arguments: Any,
    parameters: str = ".param .u64 out",
    before: str = "",
    registers: str = "",
    **options: Any,
) -> Report:
    """Run a kernel of that body; %out is the address of this thread's 32-bit cell of `out`."""
    text = f"""{HEAD}{before}
.visible .entry k({parameters})
{{
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>; .reg .f32 %f<8>;
    .reg .b32 %tid; .reg .b64 %out; {registers}
    mov.u32 %tid, %tid.x;
    ld.param.u64 %out, [out]; mad.wide.u32 %out, %tid, 4, %out;
    {body}
    ret;
}}
"""
    return run(text, arguments=arguments, **options)


def cells(count: int = 32) -> npt.NDArray[np.uint32]:
    return np.zeros(count, np.uint32)


# -- control flow ----------------------------------------------------------------------------------


@pytest.mark.parametrize("schedule", [None, 1, 2])
def test_divergent_loop_and_reconvergence(schedule: int | None) -> None:
    """Trip counts differ per lane; afterwards the lanes are together again."""
    out = cells(128)
    kernel(
        """
        mov.u32 %r1, 0; mov.u32 %r2, 0; and.b32 %r3, %tid, 7;
    LOOP:
        add.u32 %r1, %r1, 3;
        add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r3;
        @%p1 bra LOOP;
        activemask.b32 %r4;
        setp.eq.u32 %p2, %r4, 0xFFFFFFFF;
        selp.b32 %r5, 1000, 0, %p2;
        add.u32 %r1, %r1, %r5;
        st.global.u32 [%out], %r1;
        """,
        out,
        block=(128,),
        schedule=schedule,
    )
    t = np.arange(128)
    trips = 3 * ((t & 7) + 1)
    assert (out % 1000 == trips).all()
    if schedule is None:
        assert (out == trips + 1000).all()


def test_branches_of_both_kinds() -> None:
    out = cells()
    kernel(
        """
        setp.lt.u32 %p1, %tid, 10;
        @%p1 bra LOW;
        mov.u32 %r1, 2;
        bra.uni END;
    LOW:
        mov.u32 %r1, 1;
        @!%p1 exit;
    END:
        st.global.u32 [%out], %r1;
        """,
        out,
    )
    assert (out == np.where(np.arange(32) < 10, 1, 2)).all()


@pytest.mark.parametrize("labels", ["L0, L1, L2, L3", "L<4>", "L0, L<0>, L1, L2, L3"])
def test_indexed_branch(labels: str) -> None:
    """`L<4>` is L0 to L3 (PTX ISA 9.2, section 11.2.1)."""
    out = cells()
    kernel(
        f"""
        and.b32 %r1, %tid, 3;
    table: .branchtargets {labels};
        brx.idx %r1, table;
    L0: mov.u32 %r2, 10; bra END;
    L1: mov.u32 %r2, 20; bra END;
    L2: mov.u32 %r2, 30; bra END;
    L3: mov.u32 %r2, 40;
    END:
        st.global.u32 [%out], %r2;
        """,
        out,
    )
    assert (out == 10 + 10 * (np.arange(32) & 3)).all()


def test_call_with_parameters() -> None:
    out = cells()
    kernel(
        """
        {
        .param .b32 p0; .param .b32 r0;
        st.param.b32 [p0], %tid;
        call.uni (r0), square, (p0);
        ld.param.b32 %r1, [r0];
        }
        setp.gt.u32 %p1, %tid, 15;
        @!%p1 bra END;
        {
        .param .b32 p0; .param .b32 r0;
        st.param.b32 [p0], %r1;
        call.uni (r0), square, (p0);
        ld.param.b32 %r1, [r0];
        }
    END:
        st.global.u32 [%out], %r1;
        """,
        out,
        before="""
.func (.param .b32 result) square(.param .b32 x)
{
    .reg .b32 %r<3>;
    ld.param.b32 %r1, [x]; mul.lo.u32 %r2, %r1, %r1; st.param.b32 [result], %r2;
    ret;
}
""",
    )
    t = np.arange(32, dtype=np.uint32)
    assert (out == np.where(t > 15, t**4, t * t)).all()


def test_two_lanes_hand_over_within_a_warp() -> None:
    """Lane 1 spins until lane 0 has written: each diverged lane makes progress."""
    out = cells()
    kernel(
        """
        mov.u32 %r1, flag;
        setp.eq.u32 %p1, %tid, 0;
        @%p1 bra WRITE;
    SPIN:
        ld.volatile.shared.u32 %r2, [%r1];
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra SPIN;
        bra END;
    WRITE:
        mov.u32 %r2, 7;
        st.volatile.shared.u32 [%r1], %r2;
    END:
        st.global.u32 [%out], %r2;
        """,
        out,
        registers=".shared .b32 flag;",
    )
    assert (out == 7).all()


# -- collectives -----------------------------------------------------------------------------------


def test_shuffles() -> None:
    values: dict[str, Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]]] = {
        "shfl.sync.up.b32 %r2|%p1, %tid, 3, 0, -1": lambda t: np.where(t >= 3, t - 3, t),
        "shfl.sync.down.b32 %r2|%p1, %tid, 3, 31, -1": lambda t: np.where(t < 29, t + 3, t),
        "shfl.sync.bfly.b32 %r2|%p1, %tid, 5, 31, -1": lambda t: t ^ 5,
        "shfl.sync.idx.b32 %r2|%p1, %tid, 2, 0x1c03, -1": lambda t: (t & 28) + 2,
    }
    for text, model in values.items():
        out = cells()
        kernel(f"{text}; st.global.u32 [%out], %r2;", out)
        assert (out == model(np.arange(32))).all(), text


def test_votes_and_reductions_of_half_a_warp() -> None:
    out = cells()
    kernel(
        """
        and.b32 %r1, %tid, 1;
        setp.eq.u32 %p1, %r1, 0;
        @%p1 bra EVEN;
        redux.sync.add.u32 %r2, %tid, 0xAAAAAAAA;
        bra END;
    EVEN:
        setp.lt.u32 %p2, %tid, 8;
        vote.sync.ballot.b32 %r2, %p2, 0x55555555;
    END:
        st.global.u32 [%out], %r2;
        """,
        out,
    )
    assert (out[1::2] == sum(range(1, 32, 2))).all()
    assert (out[::2] == 0x55).all()


def test_members_wait_for_each_other() -> None:
    """The halves of a warp come to one shuffle by different ways."""
    out = cells()
    kernel(
        """
        setp.lt.u32 %p1, %tid, 16;
        mov.u32 %r1, 0;
        @%p1 bra JOIN;
        mov.u32 %r1, 5;
        bra LATE;
    JOIN:
        bar.warp.sync -1;
        shfl.sync.bfly.b32 %r2, %r1, 16, 31, -1;
        bra END;
    LATE:
        add.u32 %r1, %r1, 1;
        bra JOIN;
    END:
        st.global.u32 [%out], %r2;
        """,
        out,
    )
    assert (out == np.where(np.arange(32) < 16, 6, 0)).all()


def test_match_and_elect() -> None:
    out = cells()
    kernel(
        """
        and.b32 %r1, %tid, 3;
        match.any.sync.b32 %r2, %r1, -1;
        elect.sync %r3|%p1, -1;
        selp.b32 %r4, 1, 0, %p1;
        add.u32 %r2, %r2, %r4;
        st.global.u32 [%out], %r2;
        """,
        out,
    )
    t = np.arange(32)
    wanted = (0x11111111 << (t & 3)) & 0xFFFFFFFF
    assert (out == wanted + (t == 0)).all()


# -- barriers --------------------------------------------------------------------------------------

EXCHANGE = """
    mov.u32 %r1, buffer; shl.b32 %r2, %tid, 2; add.u32 %r2, %r1, %r2;
    st.shared.u32 [%r2], %tid;
    {barrier}
    xor.b32 %r3, %tid, 96; shl.b32 %r3, %r3, 2; add.u32 %r3, %r1, %r3;
    ld.shared.u32 %r4, [%r3];
    st.global.u32 [%out], %r4;
"""
BUFFER = ".shared .align 16 .b8 buffer[512];"


@pytest.mark.parametrize("schedule", [None, 3])
@pytest.mark.parametrize("barrier", ["bar.sync 0;", "barrier.cta.sync.aligned 3, 128;"])
def test_barrier_orders_shared_memory(barrier: str, schedule: int | None) -> None:
    out = cells(128)
    kernel(EXCHANGE.format(barrier=barrier), out, block=(128,), registers=BUFFER, schedule=schedule)
    assert (out == np.arange(128) ^ 96).all()


def test_without_the_barrier_a_schedule_shows_it() -> None:
    """The barrier above is needed: some order of execution reads stale bytes."""
    wrong = 0
    for seed in range(4):
        out = cells(128)
        body = "setp.lt.u32 %p1, %tid, 64; @%p1 bra X; nanosleep.u32 1; X: " + EXCHANGE
        kernel(body.format(barrier=""), out, block=(128,), registers=BUFFER, schedule=seed)
        wrong += bool((out != np.arange(128) ^ 96).any())
    assert wrong


def test_arrive_and_named_barriers() -> None:
    """Warps 0 and 1 produce and arrive, warps 2 and 3 wait."""
    out = cells(128)
    kernel(
        """
        mov.u32 %r1, buffer; and.b32 %r5, %tid, 63; shl.b32 %r2, %r5, 2; add.u32 %r2, %r1, %r2;
        setp.ge.u32 %p1, %tid, 64;
        @%p1 bra CONSUME;
        add.u32 %r3, %tid, 100;
        st.shared.u32 [%r2], %r3;
        bar.arrive 5, 128;
        bra END;
    CONSUME:
        bar.sync 5, 128;
        ld.shared.u32 %r4, [%r2];
        st.global.u32 [%out], %r4;
    END:
        """,
        out,
        block=(128,),
        registers=BUFFER,
    )
    assert (out[64:] == 100 + np.arange(64)).all()
    assert not out[:64].any()


def test_barrier_reductions() -> None:
    out = cells(64)
    kernel(
        """
        setp.lt.u32 %p1, %tid, 40;
        bar.red.popc.u32 %r1, 0, %p1;
        bar.red.and.pred %p2, 1, %p1;
        bar.red.or.pred %p3, 2, %p1;
        selp.b32 %r2, 100, 0, %p2; selp.b32 %r3, 1000, 0, %p3;
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;
        st.global.u32 [%out], %r1;
        """,
        out,
        block=(64,),
    )
    assert (out == 1040).all()


def test_deadlock_names_who_waits() -> None:
    with pytest.raises(
        EmulationError, match=r"deadlock in k.*32 lanes.*warp 0.*bar\.sync.*32 of 64"
    ):
        kernel(
            """
            setp.lt.u32 %p1, %tid, 32;
            @%p1 bra A;
            exit;
        A:  bar.sync 1, 64;
            """,
            cells(),
            block=(64,),
        )


def test_endless_loop_is_a_deadlock() -> None:
    with pytest.raises(EmulationError, match=r"deadlock.*polls at line \d+"):
        kernel(
            "L: ld.volatile.global.u32 %r1, [%out]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;", cells()
        )


@pytest.mark.parametrize("schedule", [None, 5])
def test_ring_of_mbarriers(schedule: int | None) -> None:
    """A producer warp and a consumer warp over a ring of two stages."""
    out = cells(64)
    kernel(
        """
        mov.u32 %r1, bars;
        setp.ne.u32 %p1, %tid, 0;
        @%p1 bra READY;
        mbarrier.init.shared.b64 [%r1], 32;
        mbarrier.init.shared.b64 [%r1+8], 32;
        mbarrier.init.shared.b64 [%r1+16], 32;
        mbarrier.init.shared.b64 [%r1+24], 32;
    READY:
        bar.sync 0;
        mov.u32 %r2, 0; mov.u32 %r10, 0;
        mov.u32 %r3, buffer;
        setp.ge.u32 %p2, %tid, 32;
        and.b32 %r20, %tid, 31; shl.b32 %r20, %r20, 2;
    LOOP:
        and.b32 %r4, %r2, 1; shl.b32 %r5, %r4, 3; add.u32 %r5, %r5, %r1;
        shr.u32 %r6, %r2, 1; and.b32 %r6, %r6, 1;
        shl.b32 %r7, %r4, 7; add.u32 %r7, %r7, %r3; add.u32 %r7, %r7, %r20;
        @%p2 bra CONSUME;
        xor.b32 %r8, %r6, 1;
    EMPTY:
        mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5+16], %r8;
        @!%p3 bra EMPTY;
        mad.lo.u32 %r9, %r2, 100, %tid;
        st.shared.u32 [%r7], %r9;
        mbarrier.arrive.shared::cta.b64 _, [%r5];
        bra NEXT;
    CONSUME:
        mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r5], %r6;
        @!%p3 bra CONSUME;
        ld.shared.u32 %r9, [%r7];
        add.u32 %r10, %r10, %r9;
        mbarrier.arrive.shared::cta.b64 _, [%r5+16];
    NEXT:
        add.u32 %r2, %r2, 1;
        setp.lt.u32 %p4, %r2, 10;
        @%p4 bra LOOP;
        st.global.u32 [%out], %r10;
        """,
        out,
        block=(64,),
        registers=".shared .align 8 .b8 bars[32]; .shared .align 16 .b8 buffer[256];",
        schedule=schedule,
    )
    assert (out[32:] == 4500 + 10 * np.arange(32)).all()


# -- memory ----------------------------------------------------------------------------------------


def test_vectors_widths_and_extension() -> None:
    source = np.arange(256, dtype=np.uint8)
    out = cells()
    kernel(
        """
        ld.param.u64 %rd1, [source]; mad.wide.u32 %rd2, %tid, 4, %rd1;
        ld.global.v4.u8 {%r1, %r2, %r3, %r4}, [%rd2];
        add.u64 %rd3, %rd1, 255; sub.u64 %rd3, %rd3, 31;
        cvt.u64.u32 %rd4, %tid; add.u64 %rd3, %rd3, %rd4;
        ld.global.s8 %r5, [%rd3];
        add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, %r5;
        st.global.u32 [%out], %r1;
        """,
        cells_source := out,
        source,
        parameters=".param .u64 out, .param .u64 source",
    )
    t = np.arange(32)
    wanted = 16 * t + 6 + (source[224:].view(np.int8).astype(np.int64))
    assert (cells_source.view(np.int32) == wanted).all()


def test_generic_addresses_reach_every_space() -> None:
    out = cells()
    kernel(
        """
        mov.u64 %rd1, stack; cvta.local.u64 %rd1, %rd1;
        mov.u64 %rd2, buffer; cvta.shared.u64 %rd2, %rd2; mad.wide.u32 %rd2, %tid, 4, %rd2;
        setp.lt.u32 %p1, %tid, 16;
        selp.b64 %rd3, %rd1, %rd2, %p1;
        setp.lt.u32 %p2, %tid, 8;
        selp.b64 %rd3, %out, %rd3, %p2;
        add.u32 %r1, %tid, 50;
        st.u32 [%rd3], %r1;
        ld.u32 %r2, [%rd3];
        st.global.u32 [%out], %r2;
        """,
        out,
        registers=BUFFER + " .local .align 4 .b8 stack[16];",
    )
    assert (out == np.arange(32) + 50).all()


def test_module_variables_and_scalars() -> None:
    out = cells()
    kernel(
        """
        mov.u64 %rd1, table; and.b32 %r1, %tid, 3; mad.wide.u32 %rd1, %r1, 4, %rd1;
        ld.const.u32 %r2, [%rd1];
        ld.param.s32 %r3, [scale]; ld.param.f32 %f1, [bias]; cvt.rni.s32.f32 %r4, %f1;
        mad.lo.s32 %r2, %r2, %r3, %r4;
        st.global.u32 [%out], %r2;
        """,
        out,
        -3,
        np.float32(7),
        parameters=".param .u64 out, .param .s32 scale, .param .f32 bias",
        before=".const .align 4 .u32 table[4] = {5, 6, 7, 0x8};",
    )
    assert (out.view(np.int32) == -3 * (5 + (np.arange(32) & 3)) + 7).all()


@pytest.mark.parametrize(
    ("text", "start", "model"),
    [
        ("red.global.add.u32 [%rd1], %tid;", 0, sum(range(64))),
        ("atom.global.max.s32 %r1, [%rd1], %tid;", 0, 63),
        ("atom.global.inc.u32 %r1, [%rd1], 9;", 0, 64 % 10),
        ("red.global.xor.b32 [%rd1], 1;", 0, 0),
        ("red.global.or.b32 [%rd1], %tid;", 64, 127),
    ],
)
def test_atomics(text: str, start: int, model: int) -> None:
    out = cells()
    out[0] = start
    kernel(f"ld.param.u64 %rd1, [out]; {text}", out, block=(64,))
    assert out[0] == model


def test_atomic_returns_distinct_tickets() -> None:
    out = cells(96)
    kernel(
        """
        ld.param.u64 %rd1, [ticket];
        atom.global.add.u32 %r1, [%rd1], 1;
        st.global.u32 [%out], %r1;
        """,
        out,
        ticket := cells(1),
        parameters=".param .u64 out, .param .u64 ticket",
        block=(96,),
    )
    assert sorted(out) == list(range(96))
    assert ticket[0] == 96


def test_float_atomics_add_in_order() -> None:
    out = np.zeros(1, np.float32)
    kernel(
        "ld.param.u64 %rd1, [out]; cvt.rn.f32.u32 %f1, %tid; red.global.add.f32 [%rd1], %f1;", out
    )
    assert out[0] == sum(range(32))


def test_grid_in_waves() -> None:
    """More blocks than are resident; %ctaid of each is its own."""
    out = np.zeros((4, 3, 5), np.uint32)
    kernel(
        """
        mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ctaid.y; mov.u32 %r3, %ctaid.z;
        mov.u32 %r4, %nctaid.x; mov.u32 %r5, %nctaid.y;
        mad.lo.u32 %r6, %r3, %r5, %r2; mad.lo.u32 %r6, %r6, %r4, %r1;
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r6, 4, %rd1;
        add.u32 %r6, %r6, 1;
        setp.eq.u32 %p1, %tid, 0;
        @%p1 st.global.u32 [%rd1], %r6;
        """,
        out,
        grid=(5, 3, 4),
        resident=8,
    )
    assert (out.ravel() == np.arange(60) + 1).all()


@pytest.mark.parametrize(("blocks", "waves"), [(256, [0]), (257, [0, 256])])
def test_as_many_warps_are_on_the_machine_together_as_is_said(
    blocks: int, waves: list[int]
) -> None:
    """docs/emulator.md: some 256 warps."""
    first: list[int] = []

    class Waves(Hooks):
        def on_wave_start(self) -> None:
            first.append(self.machine.first_block)

    kernel("", np.zeros(1, np.uint32), grid=(blocks,), checks=[Waves])
    assert first == waves


def test_lanes_that_come_together_go_on_in_the_same_round() -> None:
    """Whoever waits for them polls no longer than for lanes that were never apart."""

    def polls(apart: str) -> int:
        report = kernel(
            f"""
            mov.u32 %r1, %tid.x; ld.param.u64 %rd1, [out]; setp.ge.u32 %p1, %r1, 32;
            mov.u32 %r5, 1;
            @!%p1 bra WORK;
        POLL:
            ld.volatile.global.u32 %r2, [%rd1]; setp.eq.u32 %p2, %r2, 0; @%p2 bra POLL;
            bra DONE;
        WORK:
            setp.lt.u32 %p3, %r1, 5;
            {apart}
        MEET:
            shfl.sync.idx.b32 %r4, %r5, 0, 31, 0xffffffff;
            setp.eq.u32 %p3, %r1, 0; @%p3 st.volatile.global.u32 [%rd1], %r4;
            bra DONE;
        FAR:
            add.u32 %r5, %r5, 0; bra MEET;
        DONE:
            """,
            np.zeros(1, np.uint32),
            block=(64,),
        )
        return report.statistics.instructions["ld"]

    together = polls("")
    assert polls("@%p3 bra FAR;") == together > 1


def test_cluster_reads_its_neighbour() -> None:
    out = cells(8)
    kernel(
        """
        mov.u32 %r1, %cluster_ctarank; mov.u32 %r2, buffer; mov.u32 %r9, %ctaid.x;
        setp.ne.u32 %p1, %tid, 0;
        @%p1 bra JOIN;
        st.shared.u32 [%r2], %r9;
    JOIN:
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        xor.b32 %r3, %r1, 1;
        mapa.shared::cluster.u32 %r4, %r2, %r3;
        ld.shared::cluster.u32 %r5, [%r4];
        ld.param.u64 %rd1, [out]; mad.wide.u32 %rd1, %r9, 4, %rd1;
        @!%p1 st.global.u32 [%rd1], %r5;
        barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
        """,
        out,
        grid=(8,),
        cluster=(2,),
        registers=BUFFER,
    )
    assert (out == np.arange(8) ^ 1).all()


# -- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            "st.global.u32 [%out+128], %tid;",
            r"warp 0 lane 0, address 0x[0-9a-f]+: 4 bytes at offset 128",
        ),
        ("st.global.u32 [%out+4], %tid;", r"warp 0 lane 31, address"),
        (
            "setp.eq.u32 %p1, %tid, 9; @%p1 st.global.u32 [%out+-64], %tid;",
            r"lane 9.*28 bytes before argument 0",
        ),
        ("ld.global.b16 %h, [%out+1];", r"lane 0.*multiple of 2"),
        (
            "mov.u32 %r1, buffer; ld.shared.u32 %r2, [%r1+512];",
            r"shared offset 512; the block has 512",
        ),
        ("mov.u64 %rd1, 0; ld.global.u32 %r1, [%rd1];", r"address 0x0: 4 bytes outside"),
        ("trap;", r"trap in k, block \(0, 0, 0\) warp 0"),
        ("bar.sync 16;", r"no barrier 16"),
        ("mbarrier.arrive.shared.b64 _, [buffer];", r"not initialised"),
    ],
)
def test_faults_name_the_place(body: str, words: str) -> None:
    with pytest.raises(EmulationError, match=words) as caught:
        kernel(body, cells(), registers=BUFFER + " .reg .b16 %h;")
    assert caught.value.line is not None
    assert caught.value.source is not None


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("frobnicate.u32 %r1, %r2;", r"frobnicate\.u32 is not known"),
        ("txq.width.b32 %r0, [%rd1];", r"txq\.width\.b32 is not emulated"),
        ("add.u32 %r1, %r2, %nothing;", r"%nothing is not declared"),
        ("add.u32 %r1, %r2, %rd1;", r"a \.b64 register cannot be used as \.u32"),
        ("bra NOWHERE;", r"label NOWHERE is not declared"),
        ("cvt.s32.f32 %r1, %f1;", r"it needs one of .rni, .rzi"),
    ],
)
def test_refused_before_anything_runs(body: str, words: str) -> None:
    out = cells()
    with pytest.raises(EmulationError, match=words) as caught:
        kernel(f"st.global.u32 [%out], 1; bra END; {body} END:", out)
    assert not out.any()
    assert caught.value.line is not None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), r"k takes 1 arguments, 0 were given \(its parameters are: out\)"),
        ((cells(), 1), r"k takes 1 arguments, 2 were given"),
        ((cells(64)[::2],), r"argument 0 \(out\): the array must be C-contiguous"),
        ((cells().astype(">u4"),), r"argument 0 \(out\): the array has the other byte order"),
        ((np.zeros(4, object),), r"argument 0 \(out\): an array of object has no bytes"),
        ((np.zeros(4, "V0"),), r"argument 0 \(out\): an array of .*V0.* has no bytes"),
        ((b"1234",), r"4 bytes given, the parameter has 8"),
        (("text",), r"a str cannot be passed"),
        ((1 << 64,), r"does not fit"),
    ],
)
def test_wrong_arguments(arguments: tuple[Any, ...], words: str) -> None:
    with pytest.raises(EmulationError, match=words):
        kernel("", *arguments)


def test_structures_of_the_other_byte_order() -> None:
    """A record passed by value: its numbers count, not how numpy stores them."""
    head = ".version 7.0\n.target sm_80\n.address_size 64\n"
    head += ".visible .entry k(.param .u64 out, .param .b64 both)\n{ .reg .b64 %p, %x;\n"
    body = "ld.param.u64 %p, [out]; ld.param.b64 %x, [both]; st.global.u64 [%p], %x; ret; }"
    pair = np.array((5, 1.5), dtype=[("a", "<u4"), ("b", "<f4")])
    found: list[bytes] = []
    for order in "<>":
        stored = pair.astype([("a", f"{order}u4"), ("b", f"{order}f4")])
        fields = {0: np.array(5, f"{order}u4"), 4: np.array(1.5, f"{order}f4")}
        for argument in (stored[()], Struct(fields)):
            out = cells(2)
            run(head + body, "k", arguments=(out, argument))
            found.append(out.tobytes())
    assert found == [pair.tobytes()] * 4


def test_wrong_launches() -> None:
    launches: list[tuple[dict[str, Any], str]] = [
        ({"block": (2048,)}, "at most 1024"),
        ({"grid": (3,), "cluster": (2,)}, "no multiple of the cluster"),
        ({"grid": (0,)}, "positive"),
    ]
    for options, words in launches:
        with pytest.raises(EmulationError, match=words):
            kernel("", cells(), **options)
    with pytest.raises(EmulationError, match="no entry other"):
        run(HEAD + ".visible .entry k() { ret; }", "other")


def test_read_only_arrays_are_refused_when_written() -> None:
    out = cells()
    out.flags.writeable = False
    with pytest.raises(EmulationError, match="read-only"):
        kernel("st.global.u32 [%out], 1;", out)


def test_the_same_array_twice_is_one_buffer() -> None:
    out = cells()
    kernel(
        """
        st.global.u32 [%out], %tid;
        ld.param.u64 %rd1, [again]; mad.wide.u32 %rd1, %tid, 4, %rd1;
        ld.global.u32 %r1, [%rd1]; add.u32 %r1, %r1, 1; st.global.u32 [%rd1], %r1;
        """,
        out,
        out,
        parameters=".param .u64 out, .param .u64 again",
    )
    assert (out == np.arange(32) + 1).all()


def test_statistics() -> None:
    report = kernel("st.global.u32 [%out], %tid;", cells(64), block=(64,))
    assert report.statistics.instructions["st"] == 2
    assert report.statistics.stored["global"] == 256
    assert report.statistics.total == report.statistics.lanes // 32


@pytest.mark.parametrize(
    "body",
    [
        "add.u32 %r, %r;",
        "add;",
        "ld.u32 %r, %r;",
        "setp.foo.u32 %r, 1, 2;",
        "mbarrier;",
        "wgmma;",
        "wgmma.mma_async %r;",
        "cp.async;",
        "bar.sync;",
        "brx.idx %r;",
        "bra %r, %r;",
        "call;",
        "call nobody, (%r);",
        "fma.rn %r, %r, %r, %r;",
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, {%r};",
        "mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, {%r};",
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r, %r}, [%r];",
        "@%r mov.b32 %r, %r;",
        "shfl.sync %r, %r, 1, 2;",
        "mov.b32 {%r, %r}, %r;",
        "atom.global.add.u32 %r, [%r];",
        "cvt.rn.f16x2.e9m9x2 %r, %r;",
    ],
)
def test_malformed_instructions_are_user_errors(body: str) -> None:
    with pytest.raises(FragirError) as caught:
        run(HEAD + f".visible .entry k() {{ .reg .b32 %r; {body} }}")
    assert caught.value.line is not None


@pytest.mark.parametrize("kind", ["s32", "u32", "b32"])
def test_constants_of_a_variable_operand_wrap(kind: str) -> None:
    """`WARP_SZ-1` is 31 for every type of the instruction (PTX ISA, 4.4 and 4.5)."""
    out = cells(1)
    add = "xor" if kind == "b32" else "add"
    kernel(f"{add}.{kind} %r1, %tid, WARP_SZ-1; st.global.b32 [%out], %r1;", out, block=(1,))
    assert out[0] == 31


@pytest.mark.parametrize(
    ("store", "offset"), [("st.local.u32", 16), ("cvta.local.u64 %rd1, %rd1; st.u32", 20)]
)
def test_beyond_local_memory(store: str, offset: int) -> None:
    """The offset is told, of a generic address too; a lane's memory ends behind its variables."""
    with pytest.raises(EmulationError, match=f"4 bytes at local offset {offset}; the lane has 16"):
        kernel(
            f"mov.u64 %rd1, stack; {store} [%rd1+{offset}], 1;",
            cells(),
            registers=BUFFER + " .local .align 4 .b8 stack[16];",
        )
