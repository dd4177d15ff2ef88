"""Scopes of fences and strong accesses: two blocks, or two threads of one, and a flag."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.instructions.access import load
from fragir.emulator.instructions.alu import nothing
from fragir.ptx.opcodes.row import Opcode
from fragir.ptx.opcodes.table import registered_row

KERNEL = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<4>;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r1, %r2, %r3, %r1; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 32;
    ld.param.u64 %rd1, [data];
    @%p1 bra WRITER; @%p2 bra READER; bra.uni DONE;
WRITER:
    st.global.u32 [%rd1], 7;
    {writer}
    bra.uni DONE;
READER:
    {reader}
    setp.ne.u32 %p3, %r4, 1;
    @%p3 bra READER;
    {then}
    ld.global.u32 %r5, [%rd1];
    st.global.u32 [%rd1+8], %r5;
DONE:
    ret;
}}
"""
BLOCKS, CLUSTERS, WARPS = (
    {"grid": 2, "block": 32},
    {"grid": 2, "block": 32, "cluster": 2},
    {
        "grid": 1,
        "block": 64,
    },
)


def kinds(writer: str, reader: str, then: str, launch: dict[str, int]) -> set[str]:
    ptx = KERNEL.format(writer=writer, reader=reader, then=then)
    found: set[str] = set()
    for schedule in (None, 1, 2):
        report = run(
            ptx,
            grid=(launch["grid"],),
            block=(launch["block"],),
            cluster=(launch.get("cluster", 1),),
            arguments=[np.zeros(64, np.uint32)],
            check=True,
            schedule=schedule,
        )
        found |= {f.kind for f in report.findings}
    return found


FORMS = {
    "fences": (
        "fence.acq_rel.{}; st.relaxed.{}.global.u32 [%rd1+4], 1;",
        "ld.relaxed.{}.global.u32 %r4, [%rd1+4];",
        "fence.acq_rel.{};",
    ),
    "accesses": (
        "st.release.{}.global.u32 [%rd1+4], 1;",
        "ld.acquire.{}.global.u32 %r4, [%rd1+4];",
        "",
    ),
    "atomics": (
        "atom.release.{}.global.exch.b32 %r6, [%rd1+4], 1;",
        "atom.acquire.{}.global.cas.b32 %r4, [%rd1+4], 9, 9;",
        "",
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("launch", "enough"),
    [(WARPS, "cta cluster gpu sys"), (CLUSTERS, "cluster gpu sys"), (BLOCKS, "gpu sys")],
)
def test_how_far_a_scope_reaches(form: str, launch: dict[str, int], enough: str) -> None:
    """Within a block, a cluster, the device; .sys is .gpu on one device."""
    for scope in ("cta", "cluster", "gpu", "sys"):
        texts = [part.replace("{}", scope) for part in FORMS[form]]
        expected: set[str] = set() if scope in enough.split() else {"race"}
        assert kinds(texts[0], texts[1], texts[2], launch) == expected, scope


@pytest.mark.parametrize("form", ["accesses", "atomics"])
def test_both_sides_need_the_scope(form: str) -> None:
    writer, reader, then = FORMS[form]
    for narrow, wide in (("cta", "gpu"), ("cluster", "sys")):
        for one, other in ((narrow, wide), (wide, narrow)):
            texts = writer.replace("{}", one), reader.replace("{}", other)
            assert kinds(*texts, then, BLOCKS) == {"race"}
    assert kinds(writer.replace("{}", "gpu"), reader.replace("{}", "sys"), then, BLOCKS) == set()


@pytest.mark.parametrize(("fence", "races"), [("cta", True), ("gl", False), ("sys", False)])
def test_membar_and_volatile(fence: str, races: bool) -> None:
    writer = f"membar.{fence}; st.volatile.global.u32 [%rd1+4], 1;"
    reader = "ld.volatile.global.u32 %r4, [%rd1+4];"
    assert kinds(writer, reader, f"membar.{fence};", BLOCKS) == ({"race"} if races else set())
    assert kinds(writer, reader, f"membar.{fence};", WARPS) == set()


@pytest.mark.parametrize(
    ("scope", "races"), [(".cta", True), (".gpu", False), (".sys", False), ("", False)]
)
def test_atomics_of_several_blocks(scope: str, races: bool) -> None:
    sem = f".relaxed{scope}" if scope else ""
    count = f"red{sem}.global.add.u32 [%rd1+4], 1;"
    ready = "mov.u32 %r4, 1;"
    assert kinds(count, count + ready, "bra.uni DONE;", BLOCKS) == ({"race"} if races else set())
    assert kinds(count, count + ready, "bra.uni DONE;", WARPS) == set()


def test_a_wide_fence_covers_what_a_narrow_one_left() -> None:
    """Of two fences the wider one counts, whichever comes first."""
    flag = "st.relaxed.gpu.global.u32 [%rd1+4], 1;"
    reader = "ld.relaxed.gpu.global.u32 %r4, [%rd1+4];"
    for first, second in (("cta", "gpu"), ("gpu", "cta")):
        both = f"fence.acq_rel.{first}; fence.acq_rel.{second};"
        assert kinds(both + flag, reader, both, BLOCKS) == set()
    both = "fence.acq_rel.cta; fence.acq_rel.cluster;"
    assert kinds(both + flag, reader, "fence.acq_rel.gpu;", BLOCKS) == {"race"}


@pytest.mark.parametrize(
    ("after", "severities"), [("", {"letter"}), ("bar.warp.sync -1;", set[str]())]
)
def test_what_a_shuffle_tells_of_another_block(after: str, severities: set[str]) -> None:
    """Lane 0 acquires what another block has released; lane 5 reads it behind a shuffle."""
    ptx = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<5>;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r1, 5;
    ld.param.u64 %rd1, [data]; setp.eq.u32 %p3, %r2, 1; @%p3 bra READER;
    @%p1 st.global.u32 [%rd1], 7; @%p1 st.release.gpu.global.u32 [%rd1+4], 1;
    ret;
READER:
    mov.u32 %r4, 1; @!%p1 bra TELL;
POLL:
    ld.acquire.gpu.global.u32 %r4, [%rd1+4]; setp.ne.u32 %p4, %r4, 1; @%p4 bra POLL;
TELL:
    shfl.sync.idx.b32 %r5, %r4, 0, 31, -1; AFTER
    @%p2 ld.global.u32 %r6, [%rd1]; @%p2 st.global.u32 [%rd1+8], %r6;
    ret;
}
""".replace("AFTER", after)
    for schedule in (None, 1):
        data = [np.zeros(64, np.uint32)]
        report = run(ptx, grid=(2,), block=(32,), arguments=data, check=True, schedule=schedule)
        assert {f.severity for f in report.findings} == severities
        assert {f.kind for f in report.findings} <= {"race"}
    unaware = ptx.replace("shfl.sync.idx.b32 %r5, %r4, 0, 31, -1;", "")
    report = run(unaware, grid=(2,), block=(32,), arguments=data, check=True)
    assert {f.severity for f in report.findings} == ({"error"} if severities else set[str]())


REMOTE = """
.version 8.6
.target sm_90
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<5>;
    .shared .align 8 .b32 word[4];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %cluster_ctarank; setp.eq.u32 %p1, %r1, 0;
    ld.param.u64 %rd1, [data]; mov.u32 %r3, word;
    @%p1 st.shared.u32 [word+4], 0;
    barrier.cluster.arrive; barrier.cluster.wait;
    @!%p1 bra DONE;
    setp.eq.u32 %p3, %r2, 1; @%p3 bra READER;
    mov.u32 %r4, 1; mapa.shared::cluster.u32 %r5, %r3, %r4;
    st.shared::cluster.u32 [%r5], 7;
    st.release.{writer}.shared::cluster.u32 [%r5+4], 1;
    bra.uni DONE;
READER:
    ld.acquire.{reader}.shared::cta.u32 %r6, [word+4]; setp.ne.u32 %p4, %r6, 1; @%p4 bra READER;
    ld.shared.u32 %r7, [word]; st.global.u32 [%rd1], %r7;
DONE:
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
}}
"""


@pytest.mark.parametrize("writer", ["cta", "cluster", "sys"])
@pytest.mark.parametrize("reader", ["cta", "cluster", "gpu"])
def test_shared_memory_of_a_cluster(writer: str, reader: str) -> None:
    """A flag in the shared memory of another block needs the scope of the cluster on both sides."""
    ptx = REMOTE.format(writer=writer, reader=reader)
    data = [np.zeros(4, np.uint32)]
    report = run(ptx, grid=(2,), block=(32,), cluster=(2,), arguments=data, check=True)
    assert [f.kind for f in report.findings] == ["race"] * ("cta" in (writer, reader))
    assert "cta" in (writer, reader) or data[0][0] == 7


@pytest.mark.parametrize(("fence", "races"), [("memory", False), ("alias", True), ("", True)])
def test_a_fence_of_ones_own(fence: Any, races: bool) -> None:
    """What an opcode does for other threads is said by its row, not known by its name."""
    row = Opcode("settle", ".cta|gpu", lambda d, ins: nothing, fence=fence)
    with registered_row(row):
        writer = "settle.gpu; st.relaxed.gpu.global.u32 [%rd1+4], 1;"
        reader = "ld.relaxed.gpu.global.u32 %r4, [%rd1+4];"
        assert kinds(writer, reader, "settle.gpu;", BLOCKS) == ({"race"} if races else set())
        narrow = writer.replace(".gpu;", ".cta;")
        assert kinds(narrow, reader, "settle.gpu;", BLOCKS) == {"race"}


@pytest.mark.parametrize("strong", [True, False])
def test_a_strong_access_of_ones_own(strong: bool) -> None:
    row = Opcode("peek", ".global.u32 d, [a]", load, access="load", polls="always", strong=strong)
    writer = "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1+4], 1;"
    with registered_row(row):
        found = kinds(writer, "peek.global.u32 %r4, [%rd1+4];", "fence.acq_rel.gpu;", BLOCKS)
    assert found == (set() if strong else {"race"})


@pytest.mark.parametrize(
    ("look", "races"),
    [("atom.add.global.u32 %r4, [%rd1+4], 0;", False), ("red.global.add.u32 [%rd1+4], 0;", True)],
)
def test_a_reduction_acquires_nothing(look: str, races: bool) -> None:
    """It reads, but "this strong read does not form an acquire pattern" (section 8.8)."""
    writer = "fence.acq_rel.gpu; st.relaxed.gpu.global.u32 [%rd1+4], 1;"
    poll = f"nanosleep.u32 5000; {look} {'mov.u32 %r4, 1;' if races else ''}"
    found = kinds(writer, poll, "fence.acq_rel.gpu;", BLOCKS)
    assert found == ({"race"} if races else set())
