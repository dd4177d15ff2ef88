"""What lanes of a warp do to global memory: lost updates, writes without an order."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import run

KERNEL = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<10>; .reg .b64 %rd<6>; .reg .pred %p<4>; .reg .f32 %f<4>;
    mov.u32 %r1, %tid.x; setp.eq.u32 %p1, %r1, 0;
    ld.param.u64 %rd1, [data]; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
    shr.u32 %r2, %r1, 3; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd3, %rd1, %rd3;
    {text}
    ret;
}}
"""


def found(text: str, schedule: int | None = None) -> list[str]:
    data = np.arange(1, 129, dtype=np.uint32)
    report = run(KERNEL.format(text=text), arguments=[data], check=True, schedule=schedule)
    return [f.kind for f in report.findings]


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, 1; st.global.u32 [%rd3], %r3;",
        "ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, %r1; st.global.u32 [%rd1], %r3;",
        "ld.u32 %r3, [%rd3]; max.u32 %r3, %r3, %r1; add.u32 %r3, %r3, 9; st.u32 [%rd3], %r3;",
        "ld.global.f32 %f1, [%rd3]; fma.rn.f32 %f1, %f1, 0f40000000, 0f3f800000;"
        " st.global.f32 [%rd3], %f1;",
        "ld.global.v2.u32 {%r3, %r4}, [%rd1]; add.u32 %r4, %r4, 7;"
        " st.global.v2.u32 [%rd1], {%r3, %r4};",
        "ld.global.u32 %r3, [%rd3]; bar.warp.sync -1; add.u32 %r3, %r3, 1;"
        " st.global.u32 [%rd3], %r3;",
    ],
)
def test_lost_updates(text: str) -> None:
    assert found(text) == ["race"]
    assert found(text, schedule=2) == ["race"]


@pytest.mark.parametrize(
    "text",
    [
        # every lane a place of its own
        "ld.global.u32 %r3, [%rd2]; add.u32 %r3, %r3, 1; st.global.u32 [%rd2], %r3;",
        # what is stored does not come from what was read
        "ld.global.u32 %r3, [%rd1]; setp.ne.u32 %p2, %r3, 0; bar.warp.sync -1;"
        " @%p2 st.global.u32 [%rd1], 7;",
        # the warp agrees on it
        "ld.global.u32 %r3, [%rd1]; redux.sync.max.u32 %r4, %r3, -1; add.u32 %r4, %r4, 1;"
        " bar.warp.sync -1; st.global.u32 [%rd1], %r4;",
        # one lane does it for all
        "ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, 32; bar.warp.sync -1;"
        " @%p1 st.global.u32 [%rd1], %r3;",
        # an atomic
        "red.global.add.u32 [%rd3], 1;",
        # nothing changes
        "ld.global.u32 %r3, [%rd3]; add.u32 %r3, %r3, 0; st.global.u32 [%rd3], %r3;",
        # one lane after the other, each of which reads anew
        """setp.lt.u32 %p2, %r1, 8; @!%p2 bra OTHERS;
           ld.global.u32 %r3, [%rd1]; add.u32 %r3, %r3, 1; bar.warp.sync 255;
           @%p1 st.global.u32 [%rd1], %r3; bar.warp.sync 255;
           setp.eq.u32 %p3, %r1, 1;
           @%p3 ld.global.u32 %r4, [%rd1]; add.u32 %r4, %r4, 1;
           @%p3 st.global.u32 [%rd1], %r4;
           OTHERS:""",
    ],
)
def test_correct_updates(text: str) -> None:
    assert found(text) == []


OTHER = "xor.b32 %r4, %r1, 1; mul.wide.u32 %rd4, %r4, 4; add.u64 %rd4, %rd1, %rd4;"


@pytest.mark.parametrize(
    ("between", "kinds"),
    [
        ("", ["race"]),
        ("shfl.sync.idx.b32 %r5, %r1, 0, 31, -1;", ["race"]),  # it orders no memory
        ("bar.warp.sync -1;", []),
        ("bar.sync 0;", []),
    ],
)
@pytest.mark.parametrize(
    "then",
    ["ld.global.u32 %r3, [%rd4];", "st.global.u32 [%rd4], %r2;"],
)
def test_lanes_of_a_warp_go_their_own_ways(between: str, kinds: list[str], then: str) -> None:
    """What one lane has written another one reads, or writes anew, behind bar.warp.sync."""
    text = f"{OTHER} st.global.u32 [%rd2], %r1; {between} {then}"
    assert found(text) == kinds
    assert found(text, schedule=3) == kinds


def test_lanes_of_one_store_write_different_values() -> None:
    assert found("st.global.u32 [%rd3], %r1;") == ["race"]
    assert found("st.global.u32 [%rd3], %r2;") == []


def test_read_only_loads() -> None:
    """What nobody writes, or only later, may be read by .nc."""
    assert found("ld.global.nc.u32 %r3, [%rd2]; st.global.u32 [%rd2], %r1;") == []
    assert found("st.global.u32 [%rd2], %r1; ld.global.nc.u32 %r3, [%rd2+256];") == []
    assert found("red.global.add.u32 [%rd2], 1; ld.global.nc.u32 %r3, [%rd2];") == ["read-only"]
    assert found(
        "st.global.u32 [%rd2], 1; ld.global.nc.L1::no_allocate.v2.u32 {%r3, %r4}, [%rd1];"
    ) == ["read-only"]
    assert found("st.global.u32 [%rd2], 1; ldu.global.u32 %r3, [%rd2];") == ["read-only"]


@pytest.mark.parametrize(
    "text",
    [
        "ld.global.u32 %r3, [%rd1]; @%p1 st.global.u32 [%rd1], 7;",
        "ld.global.u32 %r3, [%rd1]; redux.sync.max.u32 %r4, %r3, -1; add.u32 %r4, %r4, 1;"
        " @%p1 st.global.u32 [%rd1], %r4;",
        "setp.eq.u32 %p2, %r1, 1; @%p2 ld.global.u32 %r3, [%rd1]; @%p1 st.global.u32 [%rd1], 7;",
    ],
)
@pytest.mark.parametrize("shared", [False, True])
def test_what_another_lane_reads(text: str, shared: bool) -> None:
    """A lane that reads late reads what another lane of its warp has written: as in shared memory,
    only bar.warp.sync holds them together."""
    if shared:
        first = "mov.u64 %rd4, s; @%p1 st.shared.u32 [%rd4], 1; bar.sync 0;"
        text = first + text.replace("global", "shared").replace("[%rd1]", "[%rd4]")
        text = ".shared .b8 s[16];" + text
    assert found(text) == ["race"]
    store = text.rindex("@%p1")
    assert found(text[:store] + "bar.warp.sync -1;" + text[store:]) == []
