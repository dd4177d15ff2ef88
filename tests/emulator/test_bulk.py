"""cp.async.bulk, cp.reduce.async.bulk, st.async, red.async, st.bulk: data, faults, checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Report, run
from fragir.emulator.instructions.alu import of2
from fragir.emulator.numbers.types import where
from tests.emulator.kernels import HEAD

MBAR = "mbarrier::complete_tx::bytes"


def bulk(text: str, *arrays: Any, **options: Any) -> Report:
    """One thread of each of two blocks of a cluster; %a, %b are the arrays, bar an mbarrier.

    BUFFER (1 KiB) and OTHER lie in shared memory; the mbarrier expects one arrival.
    """
    ptx = f"""{HEAD}
.visible .entry k(.param .u64 a, .param .u64 b) .reqnctapercluster 2
{{
    .shared .align 128 .b8 BUFFER[1024]; .shared .align 128 .b8 OTHER[1024]; .shared .b64 bar;
    .reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<16>; .reg .b64 %d<8>; .reg .b64 %a, %b;
    .reg .b32 %rank, %peer, %pbar, %pbuf;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mov.u32 %rank, %cluster_ctarank;
    xor.b32 %peer, %rank, 1; mapa.shared::cluster.u32 %pbar, bar, %peer;
    mapa.shared::cluster.u32 %pbuf, BUFFER, %peer;
    mbarrier.init.shared.b64 [bar], 1; fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    {text}
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
""".replace("WAIT", "W%=: mbarrier.try_wait.parity.shared.b64 %p0, [bar], 0; @!%p0 bra W%=;")
    pieces = ptx.split("W%=")
    ptx = "".join(p + (f"W{i // 2}" if i < len(pieces) - 1 else "") for i, p in enumerate(pieces))
    return run(ptx, grid=(2,), block=(1,), arguments=arrays, **options)


def fill(name: str, words: int, value: str) -> str:
    """Write `words` 32-bit words: `value` of %r1 (the index), to shared memory."""
    return f"""
    mov.u32 %r1, 0; mov.u32 %r2, {name};
FILL_{name}: {value} st.shared.u32 [%r2], %r3; add.u32 %r2, %r2, 4; add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, {words}; @%p1 bra FILL_{name};
    """


def drain(words: int, source: str = "BUFFER") -> str:
    """Copy shared memory to this block's half of b."""
    return f"""
    mul.wide.u32 %d1, %rank, {4 * words}; add.u64 %d1, %b, %d1; mov.u32 %r1, 0;
    mov.u32 %r2, {source};
DRAIN: ld.shared.u32 %r3, [%r2]; st.global.u32 [%d1], %r3; add.u32 %r2, %r2, 4;
    add.u64 %d1, %d1, 4; add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, {words}; @%p1 bra DRAIN;
    """


@pytest.mark.parametrize("asynchrony", ["late", "early"])
def test_copies_to_the_other_block(asynchrony: Any) -> None:
    """shared::cta to shared::cluster: the other block's mbarrier counts the bytes."""
    out = np.zeros((2, 64), np.uint32)
    report = bulk(
        fill("OTHER", 64, "mad.lo.u32 %r3, %rank, 1000, %r1;")
        + f"""
        fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
        barrier.cluster.arrive; barrier.cluster.wait;
        cp.async.bulk.shared::cluster.shared::cta.{MBAR} [%pbuf], [OTHER], 256, [%pbar];
        WAIT
        """
        + drain(64),
        np.zeros(1, np.uint32),
        out,
        asynchrony=asynchrony,
        check=True,
    )
    assert (out == [np.arange(64) + 1000, np.arange(64)]).all()
    assert report.findings == []


def test_the_source_must_be_visible_to_the_other_proxy() -> None:
    report = bulk(
        fill("OTHER", 64, "mov.u32 %r3, %r1;")
        + f"""
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
        barrier.cluster.arrive; barrier.cluster.wait;
        cp.async.bulk.shared::cluster.shared::cta.{MBAR} [%pbuf], [OTHER], 256, [%pbar];
        WAIT
        """,
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint32),
        check=True,
    )
    assert {f.kind for f in report.findings} == {"proxy-fence"}


@pytest.mark.parametrize(
    ("operation", "function"),
    [
        ("add.u32", np.add),
        ("max.s32", of2(lambda a, b: np.maximum(a.view(np.int32), b.view(np.int32)))),
        ("inc.u32", of2(lambda a, b: where(a >= b, 0, a + 1))),
        ("xor.b32", np.bitwise_xor),
    ],
)
def test_reductions_into_the_other_block(operation: str, function: Callable[..., Any]) -> None:
    out = np.zeros((2, 64), np.uint32)
    report = bulk(
        fill("OTHER", 64, "mad.lo.u32 %r3, %rank, -900, %r1;")
        + fill("BUFFER", 64, "mov.u32 %r3, 32;")
        + f"""
        fence.proxy.async; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
        barrier.cluster.arrive; barrier.cluster.wait;
        cp.reduce.async.bulk.shared::cluster.shared::cta.{MBAR}.{operation}
            [%pbuf], [OTHER], 256, [%pbar];
        WAIT
        """
        + drain(64),
        np.zeros(1, np.uint32),
        out,
        check=True,
    )
    given = np.stack([np.arange(64) - 900, np.arange(64)]).astype(np.uint32)
    assert (out == function(np.full((2, 64), 32, np.uint32), given).view(np.uint32)).all()
    assert report.findings == []


REDUCTIONS: list[tuple[str, Any, Callable[..., Any]]] = [
    ("add.u64", np.uint64, np.add),
    ("min.s64", np.int64, np.minimum),
    ("or.b64", np.uint64, np.bitwise_or),
    ("add.f32", np.float32, np.add),
    ("add.f64", np.float64, np.add),
    ("min.f16", np.float16, np.minimum),
    ("add.noftz.f16", np.float16, np.add),
    ("max.bf16", ml_dtypes.bfloat16, np.maximum),
    ("add.noftz.bf16", ml_dtypes.bfloat16, np.add),
]


@pytest.mark.parametrize(("operation", "kind", "function"), REDUCTIONS)
def test_reductions_into_global_memory(
    operation: str, kind: Any, function: Callable[..., Any]
) -> None:
    size = np.dtype(kind).itemsize
    rng = np.random.default_rng(5)
    given, old = (rng.normal(size=256 // size) * 100 for _ in range(2))
    source, target = given.astype(kind), old.astype(kind)
    wide = np.float32 if kind is ml_dtypes.bfloat16 else kind
    expected = function(target.astype(wide), source.astype(wide)).astype(kind)
    bulk(
        f"""
        setp.ne.u32 %p2, %rank, 0; @%p2 bra OUT;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
        cp.async.bulk.shared::cta.global.{MBAR} [BUFFER], [%a], 256, [bar];
        WAIT
        cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%b], [BUFFER], 256;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        OUT:
        """,
        source.view(np.uint8),
        target.view(np.uint8),
    )
    assert (target.view(np.uint8) == expected.view(np.uint8)).all()


def test_some_bytes_of_every_unit() -> None:
    source = np.arange(64, dtype=np.uint8)
    target = np.full(64, 255, np.uint8)
    bulk(
        f"""
        setp.ne.u32 %p2, %rank, 0; @%p2 bra OUT;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
        cp.async.bulk.shared::cta.global.{MBAR}.L2::cache_hint [BUFFER], [%a], 64, [bar], %d5;
        WAIT
        mov.b16 %h0, 0x8105;
        cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%b], [BUFFER], 64, %h0;
        cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
        OUT:
        """,
        source,
        target,
    )
    chosen = np.isin(np.arange(64) % 16, [0, 2, 8, 15])
    assert (target == np.where(chosen, source, 255)).all()


@pytest.mark.parametrize(("left", "right", "fits"), [(3, 5, True), (0, 5, True), (3, 4, False)])
def test_bytes_outside_the_array_can_be_left_out(left: int, right: int, fits: bool) -> None:
    """Of 48 bytes the array has 43; at the end 5 are not there, at the start 3 are not wanted."""
    ptx = f"""{HEAD}
.visible .entry k(.param .u64 a, .param .u64 b)
{{
    .shared .align 128 .b8 BUFFER[64]; .shared .b64 bar;
    .reg .pred %p; .reg .b64 %a, %b; .reg .b32 %r<4>;
    ld.param.u64 %a, [a]; ld.param.u64 %b, [b]; mbarrier.init.shared.b64 [bar], 1;
    mov.u32 %r1, 0x77777777; st.shared.u32 [BUFFER], %r1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 48; fence.proxy.async;
    cp.async.bulk.shared::cta.global.{MBAR}.ignore_oob
        [BUFFER], [%a], 48, {left}, {right}, [bar];
W:  mbarrier.try_wait.parity.shared.b64 %p, [bar], 0; @!%p bra W;
    ld.shared.u32 %r1, [BUFFER]; st.global.u32 [%b], %r1; ld.shared.u32 %r1, [BUFFER+40];
    st.global.u32 [%b+4], %r1; ret;
}}
"""
    out = np.zeros(2, np.uint32)
    given = np.arange(43, dtype=np.uint8)
    if fits:
        run(ptx, block=(1,), arguments=[given, out])
        skipped = [0x77] * left + list(range(left, 4))
        assert out.view(np.uint8).tolist() == [*skipped, 40, 41, 42, 0]
    else:
        with pytest.raises(EmulationError, match="which has 43"):
            run(ptx, block=(1,), arguments=[given, out])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"cp.async.bulk.shared::cta.global.{MBAR} [BUFFER], [%a], 24, [bar];", "multiple of 16"),
        (f"cp.async.bulk.shared::cta.global.{MBAR} [BUFFER+8], [%a], 16, [bar];", "multiple of 16"),
        (f"cp.async.bulk.shared::cta.global.{MBAR} [BUFFER], [%a], 80, [bar];", "which has 64"),
        ("cp.async.bulk.global.shared::cta.bulk_group [%a], [bar+16], 64;", "shared offset"),
        (f"cp.async.bulk.global.shared::cta.{MBAR} [%a], [BUFFER], 16, [bar];", "there is no"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f16 [%a], [BUFFER], 16;", "is no"),
        (f"cp.async.bulk.shared::cluster.shared::cta.{MBAR} [BUFFER], [OTHER], 16;", "takes 4"),
        ("cp.async.bulk.prefetch.L2.global.L2::cache_hint [%a], 16, %r1;", "be used as .b64"),
    ],
)
def test_faults_of_bulk_copies(text: str, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        bulk(text, np.zeros(64, np.uint8), np.zeros(64, np.uint8))


# -- st.async and red.async ------------------------------------------------------------------------


@pytest.mark.parametrize("asynchrony", ["late", "early"])
def test_asynchronous_stores(asynchrony: Any) -> None:
    out = np.zeros((2, 64), np.uint32)
    report = bulk(
        f"""
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 36; barrier.cluster.arrive;
        add.u32 %r3, %rank, 5; mov.u32 %r4, 6; cvt.u64.u32 %d2, %rank; barrier.cluster.wait;
        st.async.weak.shared::cluster.{MBAR}.v4.u32 [%pbuf], {{%r3, %r4, %r3, %r4}}, [%pbar];
        st.async.shared::cluster.{MBAR}.v2.u64 [%pbuf+16], {{%d2, %d2}}, [%pbar];
        st.async.shared::cluster.{MBAR}.u32 [%pbuf+32], %r4, [%pbar];
        WAIT
        """
        + drain(9),
        np.zeros(1, np.uint32),
        out.reshape(-1)[:18],
        asynchrony=asynchrony,
        check=True,
    )
    got = out.reshape(-1)[:18].reshape(2, 9)
    assert (got == [[6, 6, 6, 6, 1, 0, 1, 0, 6], [5, 6, 5, 6, 0, 0, 0, 0, 6]]).all()
    assert report.findings == []


def test_a_reader_must_wait_for_asynchronous_stores() -> None:
    text = f"""
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 4; mov.u32 %r3, 7;
        barrier.cluster.arrive; barrier.cluster.wait;
        st.async.shared::cluster.{MBAR}.u32 [%pbuf], %r3, [%pbar];
        barrier.cluster.arrive; barrier.cluster.wait;
        {{}} ld.shared.u32 %r1, [BUFFER]; WAIT
    """
    arrays = np.zeros(1, np.uint32), np.zeros(1, np.uint32)
    assert bulk(text.format("WAIT"), *arrays, check=True).findings == []
    with pytest.raises(EmulationError, match="still pending"):
        bulk(text.format(""), *arrays, check=True)
    early = bulk(text.format(""), *arrays, check=True, asynchrony="early")
    assert [f.kind for f in early.findings] == ["race"]


def test_asynchronous_reductions() -> None:
    out = np.zeros((2, 4), np.uint32)
    text = f"""
        mov.u32 %r3, 40; st.shared.u32 [BUFFER], %r3; st.shared.u32 [BUFFER+4], %r3;
        mov.u64 %d2, 0xFFFFFFFF; st.shared.u64 [BUFFER+8], %d2;
        mbarrier.arrive.expect_tx.shared.b64 _, [bar], 20;
        add.u32 %r4, %rank, 2; barrier.cluster.arrive; barrier.cluster.wait;
        red.async.relaxed.cluster.shared::cluster.{MBAR}.add.u32 [%pbuf], %r4, [%pbar];
        red.async.relaxed.cluster.shared::cluster.{MBAR}.add.u32 [%pbuf], %r4, [%pbar];
        red.async.relaxed.cluster.shared::cluster.{MBAR}.min.s32 [%pbuf+4], -3, [%pbar];
        mov.u64 %d2, 1;
        red.async.relaxed.cluster.shared::cluster.{MBAR}.add.u64 [%pbuf+8], %d2, [%pbar];
        WAIT
        """
    report = bulk(text + drain(4), np.zeros(1, np.uint32), out, check=True)
    assert (out[:, 0] == [46, 44]).all()
    assert (out[:, 1].view(np.int32) == -3).all()
    assert (out[:, 2:] == [0, 1]).all()
    assert report.findings == []
    unwaited = text.replace("WAIT", "ld.shared.u32 %r5, [BUFFER]; WAIT")
    early = bulk(unwaited, np.zeros(1, np.uint32), out, check=True, asynchrony="early")
    assert [f.kind for f in early.findings] == ["race"]


def test_asynchronous_stores_belong_to_one_block() -> None:
    with pytest.raises(EmulationError, match="the same block"):
        bulk(
            f"st.async.shared::cluster.{MBAR}.u32 [%pbuf], 1, [bar];",
            np.zeros(1, np.uint32),
            np.zeros(1, np.uint32),
        )


# -- st.bulk ---------------------------------------------------------------------------------------


def zeros(size: int, extra: str = "") -> tuple[npt.NDArray[np.uint32], Report]:
    ptx = f"""{HEAD}
.visible .entry k(.param .u64 out)
{{
    .shared .align 16 .b8 BUFFER[256]; .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<4>;
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, BUFFER; add.u32 %r3, %r3, %r2;
    {extra} setp.eq.u32 %p1, %r1, 0; mov.u64 %d1, {size};
    @%p1 st.bulk.weak.shared::cta [BUFFER+8], %d1, 0;
    bar.sync 0;
    ld.shared.u32 %r4, [%r3]; ld.param.u64 %d2, [out]; mad.wide.u32 %d2, %r1, 4, %d2;
    st.global.u32 [%d2], %r4; ret;
}}
"""
    out = np.zeros(64, np.uint32)
    return out, run(ptx, block=(64,), arguments=[out], check=True)


def test_filling_with_zeros() -> None:
    out, report = zeros(128, "st.shared.u32 [%r3], 9; bar.sync 0;")
    assert (out == np.where((np.arange(64) >= 2) & (np.arange(64) < 34), 0, 9)).all()
    assert report.findings == []


def test_what_is_not_filled_is_not_initialised() -> None:
    _, report = zeros(128)
    assert [f.kind for f in report.findings] == ["uninitialised"]


def test_filling_races_with_other_stores() -> None:
    _, report = zeros(128, "st.shared.u32 [%r3], 9;")
    assert [f.kind for f in report.findings] == ["race"]


@pytest.mark.parametrize(("size", "message"), [(12, "multiple of 8"), (256, "shared offset")])
def test_fills_out_of_bounds(size: int, message: str) -> None:
    with pytest.raises(EmulationError, match=message):
        zeros(size, "st.shared.u32 [%r3], 9; bar.sync 0;")
