"""Half a warp executes what needs the whole one: every `.aligned` opcode, every membermask."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import EmulationError, run
from fragir.emulator.checks.operand_contents import quote
from fragir.ptx.opcodes.table import OPCODES

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data) {
    .reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .pred %p<9>; .reg .f32 %f<9>;
    .shared .align 1024 .b8 s[4096];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.lt.u32 %p1, %r2, 16;
    mov.u32 %r3, s; mov.u32 %r4, 0; mov.u32 %r5, 0;
    mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;
    setp.eq.u32 %p2, %r1, 0; @%p2 st.shared.v4.u32 [%r3], {%r4, %r4, %r4, %r4}; bar.sync 15;
"""
A, M, LETTER = ".sync.aligned", "-1", "letter"
WMMA = "m8n32k16.shared.f32"
#: The first words of an opcode -> a statement, and how grave it is.
STATEMENTS: dict[str, tuple[str, str]] = {
    "bar.sync": ("bar.sync 0;", LETTER),
    "barrier.sync": ("barrier.sync.aligned 0;", LETTER),
    "barrier.cta.sync": ("barrier.cta.sync.aligned 0;", LETTER),
    **{
        f"{name}.red.{how}": (f"{name}.red.{how}.aligned.{to}, 0, %p1;", LETTER)
        for name in ("barrier", "barrier.cta")
        for how, to in (("popc", "u32 %r6"), ("and", "pred %p4"), ("or", "pred %p4"))
    },
    "setmaxnreg.inc": (f"setmaxnreg.inc{A}.u32 40;", "error"),
    "setmaxnreg.dec": (f"setmaxnreg.dec{A}.u32 24;", "error"),
    "mma": (
        f"mma{A}.m8n8k16.row.col.s32.s8.s8.s32 {{%r6, %r7}}, {{%r4}}, {{%r4}}, {{%r4, %r5}};",
        "error",
    ),
    "ldmatrix": (f"ldmatrix{A}.m8n8.x1.shared.b16 {{%r6}}, [%r3];", "error"),
    "stmatrix": (f"stmatrix{A}.m8n8.x1.shared.b16 [%r3], {{%r4}};", "error"),
    "movmatrix": (f"movmatrix{A}.m8n8.trans.b16 %r6, %r4;", "error"),
    "wgmma.fence": (f"wgmma.fence{A};", "error"),
    "wgmma.commit_group": (f"wgmma.commit_group{A};", "error"),
    "wgmma.wait_group": (f"wgmma.wait_group{A} 0;", "error"),
    "shfl": (f"shfl.sync.idx.b32 %r6, %r4, 0, 31, {M};", LETTER),
    "vote": (f"vote.sync.any.pred %p4, %p1, {M};", LETTER),
    "match": (f"match.any.sync.b32 %r6, %r4, {M};", LETTER),
    "redux": (f"redux.sync.add.u32 %r6, %r4, {M};", LETTER),
    "elect": (f"elect.sync %r6|%p4, {M};", LETTER),
    "bar.warp.sync": (f"bar.warp.sync {M};", LETTER),
}
#: What other tests have, with operands of their own, and what tells in another way.
ELSEWHERE = {
    *("wmma.mma", "wmma.load.a", "wmma.load.b", "wmma.load.c", "wmma.store.d", "wgmma.mma_async"),
    "tensormap.cp_fenceproxy",
    *("barrier.arrive", "barrier.cta.arrive", "barrier.cluster.arrive", "barrier.cluster.wait"),
    *(row.name for row in OPCODES.rows if row.name.startswith("tcgen05.") and row.together),
}
#: Those that do not wait: before, the statement, after.
ARRIVES = {
    "bar.arrive": ("", "bar.arrive 1, 256;", ""),
    "bar.cta.arrive": ("", "bar.cta.arrive 1, 256;", ""),
    "barrier.arrive": ("", "barrier.arrive.aligned 1, 256;", ""),
    "barrier.cta.arrive": ("", "barrier.cta.arrive.aligned 1, 256;", ""),
    "barrier.cluster.arrive": ("", "barrier.cluster.arrive.aligned;", "barrier.cluster.wait;"),
    "barrier.cluster.wait": ("barrier.cluster.arrive;", "barrier.cluster.wait.aligned;", ""),
}


def found(body: str, schedule: int | None = None) -> list[tuple[str, str, str]]:
    arguments = [np.zeros(64, np.uint32)]
    try:
        report = run(
            f"{HEAD}{body} ret; }}",
            block=(128,),
            arguments=arguments,
            check=True,
            schedule=schedule,
        )
    except EmulationError as error:
        return [("error", error.kind, str(error))]
    return [(f.severity, f.kind, f.message) for f in report.findings]


def test_every_opcode_is_there() -> None:
    rows = [r for r in OPCODES.rows if r.together or r.takes("aligned")]
    assert {r.name for r in rows} == {*STATEMENTS, *ELSEWHERE} - {"bar.sync"}
    whole = [r.name for r in rows if r.together == "warp"]  # all of which one wrapper watches
    assert {name for name, (_, how) in STATEMENTS.items() if how == "error"} <= set(whole)


@pytest.mark.parametrize("name", STATEMENTS)
def test_half_a_warp_is_told(name: str) -> None:
    statement, severity = STATEMENTS[name]
    more = "add.u32 %r8, %r1, 1;"
    for body in (f"@!%p1 bra L; {statement} L: {more}", f"@%p1 {statement} {more}"):
        for schedule in (None, 1):
            kinds = [(how, kind) for how, kind, _ in found(body, schedule)]
            assert kinds == [(severity, "divergent")]
    sentences = [quote(each) for each in ("aligned", "members")]
    if severity == LETTER:
        ((_, _, message),) = found(f"@%p1 {statement} {more}")
        assert any(each in message for each in sentences)


@pytest.mark.parametrize("name", STATEMENTS)
def test_whole_warps_are_not(name: str) -> None:
    statement, _ = STATEMENTS[name]
    if not name.startswith("setmaxnreg"):  # which needs registers that are there
        assert found(statement) == []


@pytest.mark.parametrize(
    "body",
    [
        "@%p1 barrier.sync 0;",  # whoever comes
        "@!%p1 bra L; shfl.sync.idx.b32 %r6, %r4, 0, 31, 0xffff; L:",
        "@!%p1 bra L; bar.warp.sync 0xffff; L:",
        "@!%p1 bra L; add.u32 %r4, %r4, 1; L: bar.sync 0;",
        "setp.lt.u32 %p3, %r1, 64; @%p3 bar.sync 1, 64;",
    ],
)
def test_halves_that_are_meant_are_not(body: str) -> None:
    assert found(body) == []


@pytest.mark.parametrize("name", [name for name, (_, how) in STATEMENTS.items() if how == LETTER])
def test_lanes_that_have_left_need_not_come(name: str) -> None:
    """They wait for "all non-exited threads" (PTX ISA, barrier and shfl.sync)."""
    statement, _ = STATEMENTS[name]
    for body in (f"@!%p1 exit; {statement}", f"@!%p1 bra L; {statement} L:"):
        for schedule in (None, 1, 2):
            assert found(body, schedule) == []


def test_a_barrier_by_halves_of_warps_is_an_error() -> None:
    """It counts threads; the other halves wait elsewhere."""
    kinds = {(how, kind) for how, kind, _ in found("@%p1 bar.sync 0, 64; @!%p1 bar.sync 1, 64;")}
    assert kinds == {("error", "divergent")}


@pytest.mark.parametrize("name", ARRIVES)
class TestWhatDoesNotWait:
    def test_half_a_warp(self, name: str) -> None:
        before, statement, _ = ARRIVES[name]
        for half in (f"@!%p1 bra L; {statement} L:", f"@%p1 {statement}"):
            body = f"{before} {half} add.u32 %r8, %r1, 1;"
            for schedule in (None, 1):
                told = found(body, schedule)
                assert ("letter", "divergent") in [each[:2] for each in told]
                assert any("goes by" in text and quote("aligned") in text for *_, text in told)

    def test_two_halves_at_two_statements(self, name: str) -> None:
        before, statement, after = ARRIVES[name]
        for halves in (
            f"@%p1 {statement} @!%p1 {statement}",
            f"@!%p1 bra L; {statement} bra M; L: {statement} M:",
        ):
            for schedule in (None, 1):
                told = found(f"{before} {halves} {after} add.u32 %r8, %r1, 1;", schedule)
                assert {each[:2] for each in told} == {("error", "divergent")}

    def test_whole_warps(self, name: str) -> None:
        before, statement, after = ARRIVES[name]
        apart = "@!%p1 bra L; add.u32 %r4, %r4, 1; L:"
        loop = f"mov.u32 %r7, 0; A: {before} {statement} {after} add.u32 %r7, %r7, 1;"
        loop += "setp.lt.u32 %p3, %r7, 3; @%p3 bra A;"
        for body in (
            f"{before} {apart} {statement} {after}",
            f"@%p1 exit; {before} {statement} {after}",
            f"{before} {statement.replace('.aligned', '').replace('bar.', 'barrier.')} {after}",
            loop if "256" not in statement else "",  # which waits for more threads than come
        ):
            for schedule in (None, 1):
                assert found(body, schedule) == []


def test_half_a_warp_before_a_deadlock() -> None:
    """The half that has come counts for itself, and the barrier for ever waits for the other."""
    arrive = (
        "@!%p3 bra S; @%p1 bar.arrive 1, 128; bra E; S: bar.sync 1, 128; E: add.u32 %r8, %r1, 1;"
    )
    with pytest.raises(EmulationError) as raised:
        run(
            f"{HEAD} setp.lt.u32 %p3, %r1, 32; {arrive} ret; }}",
            block=(128,),
            arguments=[np.zeros(64, np.uint32)],
            check=True,
        )
    assert raised.value.kind == "deadlock"
    assert raised.value.report is not None
    assert [(f.severity, f.kind) for f in raised.value.report.findings] == [("letter", "divergent")]
