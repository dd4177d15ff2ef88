"""Operands with a register and a constant, addresses of functions, contents without a meaning."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fragir.emulator import EmulationError, run

HEAD = """.version 8.7
.target sm_90a
.address_size 64
.func (.reg .b32 z) f(.reg .b32 a) { add.u32 z, a, 5; ret; }
.visible .entry other(.param .u64 o) { ret; }
.visible .entry k(.param .u64 out) {
 .reg .b64 %rd<9>; .reg .b32 %r<9>; .reg .b16 %h<4>; .reg .f32 %f<4>; .reg .pred %p<4>;
 .shared .u32 s[32]; ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.f32 %f1, 0f3F800000;
 setp.eq.u32 %p1, %r1, 0; cvt.u16.u32 %h1, %r1; cvt.u64.u32 %rd3, %r1;
 mul.wide.u32 %rd4, %r1, 4; add.u64 %rd4, %rd4, %rd1;
"""


def results(body: str, **options: Any) -> tuple[list[int], list[str]]:
    out = np.zeros(32, np.uint32)
    report = run(f"{HEAD}{body}\nret; }}\n", "k", arguments=[out], check=True, **options)
    return out.tolist(), [f.kind for f in report.findings]


#: A statement that leaves its result in %r2, and what lane 3 gets; ptxas takes all of them.
SUMS = {
    "mov.u32 %r2, %r1+5;": 8,
    "mov.u32 %r2, %r1+5+6;": 14,
    "mov.u32 %r2, %r1+4294967295;": 2,
    "mov.b16 %h2, %h1+65535; cvt.u32.u16 %r2, %h2;": 2,
    "mov.u64 %rd2, %rd3+5000000000; shr.u64 %rd2, %rd2, 3; cvt.u32.u64 %r2, %rd2;": 625000000,
    "add.u32 %r2, %r1+7, %r1+1;": 14,
    "sub.u32 %r2, %r1+7, %r1+1;": 6,
    "mul.lo.s32 %r2, %r1+7, %r1+1;": 40,
    "mad.lo.u32 %r2, %r1+1, %r1+2, %r1+3;": 26,
    "shl.b32 %r2, %r1+1, %r1+2;": 128,
    "selp.b32 %r2, 1, %r1+7, %p1;": 10,
    "cvt.u32.u16 %r2, %h1+3;": 6,
    "neg.s32 %r2, %r1+5; neg.s32 %r2, %r2;": 8,
    "prmt.b32 %r2, %r1+258, 0, 0x4401;": 0x0501,
    "bfe.u32 %r2, 0xF0, %r1+1, %r1;": 7,
    "setp.lt.u32 %p2, %r1+1, 5; selp.u32 %r2, 1, 2, %p2;": 1,
    "shfl.sync.bfly.b32 %r2, %r1+10, %r1+1, 31, -1;": 17,
    "st.shared.u32 [s], 0; bar.sync 0; mov.u32 %r3, s+12; "
    "st.shared.u32 [%r3], %r1+1; ld.shared.u32 %r2, [s+12]; mov.u32 %r2, 1;": 1,
    "mov.u32 %r2, %r1; .reg .b32 %q; call (%q), f, (%r1); mov.u32 %r2, %q;": 8,
    "cvt.rn.f32.u32 %f2, %r1+7; cvt.rzi.u32.f32 %r2, %f2;": 10,
}


@pytest.mark.parametrize("statement", SUMS)
def test_a_register_and_a_constant(statement: str) -> None:
    out, _ = results(f"{statement} st.global.u32 [%rd4], %r2+9;")
    assert out[3] == SUMS[statement] + 9


def test_a_sum_of_something_undefined_is_undefined() -> None:
    assert results("mov.u32 %r2, %r7+5; st.global.u32 [%rd4], %r2;")[1] == ["uninitialised"]
    assert results("st.global.u32 [%rd4], %r7+5;")[1] == ["uninitialised"]
    assert results("mov.u32 %r2, %r1+5; st.global.u32 [%rd4], %r2;")[1] == []


@pytest.mark.parametrize(
    "statement",
    ["mov.f32 %f2, %f1+1;", "add.f32 %f2, %f1+1, %f1;", "mov.pred %p2, %p1+1;"],
)
def test_sums_without_a_meaning_are_refused(statement: str) -> None:
    with pytest.raises(EmulationError, match="are added as integers, not as"):
        results(statement)


def test_addresses_of_functions() -> None:
    for name in ("other", "k", "f"):
        out, _ = results(
            f"mov.u64 %rd2, {name}; setp.ne.u64 %p2, %rd2, 0; selp.u32 %r2, 1, 2, %p2; "
            "st.global.u32 [%rd4], %r2;"
        )
        assert set(out) == {1}, name
    with pytest.raises(EmulationError, match="nothing is added to the address of f"):
        results("mov.u64 %rd2, f+4;")
    call = "mov.u64 %rd2, NAME; call (%r2), %rd2, (%r1), P; st.global.u32 [%rd4], %r2;"
    proto = "P: .callprototype (.reg .b32 _) _ (.reg .b32 _); "
    assert results(proto + call.replace("NAME", "f"))[0][3] == 8
    with pytest.raises(EmulationError, match="is the address of other, a kernel"):
        results(proto + call.replace("NAME", "other"))


#: Opcode, registers of A, metadata, whether it has a meaning.
HALF = "mma.ORDER.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "{%r1, %r1}"
SINGLE = "mma.ORDER.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "{%r1, %r1}"
METADATA = [
    (HALF, "sp::ordered_metadata", 0x44444444, True),
    (HALF, "sp::ordered_metadata", 0xEDC98E4D, True),
    (HALF, "sp::ordered_metadata", 0x00000000, False),
    (HALF, "sp::ordered_metadata", 0x44441444, False),
    (HALF, "sp::ordered_metadata", 0x4444444F, False),
    (HALF, "sp", 0x44441444, True),
    (HALF, "sp", 0x444A4444, False),
    (SINGLE, "sp::ordered_metadata", 0x4E4E44EE, True),
    (SINGLE, "sp::ordered_metadata", 0x4E4E84EE, False),
]


@pytest.mark.parametrize(("form", "order", "word", "legal"), METADATA)
def test_metadata(form: tuple[str, str], order: str, word: int, legal: bool) -> None:
    opcode, a = form
    d = "{%f0, %f1, %f2, %f3}"
    text = f"{opcode.replace('ORDER', order)} {d}, {a}, {{%r1, %r1}}, {d}, %r2, 0;"
    zeros = "mov.f32 %f0, %f1; mov.f32 %f2, %f1; mov.f32 %f3, %f1;"
    out, kinds = results(f"{zeros} mov.u32 %r2, {word}; {text} st.global.f32 [%rd4], %f0;")
    assert kinds == ([] if legal else ["operand"])
    assert any(out)


def test_metadata_of_other_lanes_is_not_read() -> None:
    opcode, a = HALF
    d = "{%f0, %f1, %f2, %f3}"
    text = f"{opcode.replace('ORDER', 'sp::ordered_metadata')} {d}, {a}, {{%r1, %r1}}, {d}, %r2, 1;"
    zeros = "mov.f32 %f0, %f1; mov.f32 %f2, %f1; mov.f32 %f3, %f1;"
    chosen = "and.b32 %r3, %r1, 3; setp.eq.u32 %p2, %r3, LANE; selp.u32 %r2, 0x44444444, 0, %p2;"
    for lane, kinds in ((1, []), (0, ["operand"])):
        assert results(f"{zeros} {chosen.replace('LANE', str(lane))} {text}")[1] == kinds


@pytest.mark.parametrize(("word", "kinds"), [(0x44444444, []), (0x44404444, ["operand"])])
def test_metadata_of_wgmma(word: int, kinds: list[str]) -> None:
    d = "{%f0, %f1, %f2, %f3}"
    body = (
        ".shared .align 1024 .b8 m[4096]; mov.u32 %r2, m; shr.u32 %r2, %r2, 4;"
        f"mov.u32 %r3, {word};"
        "cvt.u64.u32 %rd5, %r2; or.b64 %rd5, %rd5, 0x1000080000; wgmma.fence.sync.aligned;"
        "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 "
        f"{d}, %rd5, %rd5, %r3, 0, 0, 1, 1, 0, 0;"
        "wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
    )
    assert results(body, block=(128,))[1] == kinds


FIRST = "setp.eq.u32 %p2, %r1, 0;"
INIT = f"{FIRST} @%p2 mbarrier.init.shared.b64 [s], 1; bar.sync 0;"
WAIT = "mbarrier.test_wait{}.shared.b64 %p3, [s], {};"
PREFETCH = "cp.async.bulk.prefetch.L2.global [%rd1], %r2;"
RESPONSE = (
    ".reg .b128 %q; cvt.u64.u32 %rd2, %r2; mov.b128 %q, {%rd1, %rd2}; clusterlaunchcontrol."
    "query_cancel.get_first_ctaid::x.b32.b128 %r3, %q;"
)
COPY = "mov.u32 %r3, s; cp.async.ca.shared.global [%r3], [%rd1], 8, %r2; cp.async.wait_all;"
#: A statement with %r2, what it holds, another that PTX gives no meaning, and how grave that is.
CONTENTS = {
    "src-size": (COPY, (0, 3, 8), (9, 16, 0xFFFFFFFF), "error"),
    "src-size as a number": (COPY.replace("%r2", "8"), (1,), (), "error"),
    "fns": ("fns.b32 %r3, %r1, %r2, 1;", (0, 31), (32, 0xFFFFFFFF), "error"),
    "parity": (INIT + WAIT.format(".parity", "%r2"), (0, 1), (2, 3), "letter"),
    "state": (
        f"{INIT} cvt.u64.u32 %rd2, %r2; {WAIT.format('', '%rd2')}",
        (),
        (0, 5),
        "error",
    ),
    "pending_count": (
        f"{INIT} cvt.u64.u32 %rd2, %r2; mbarrier.pending_count.b64 %r3, %rd2;",
        (),
        (0, 5),
        "error",
    ),
    "fraction": (
        "mov.b32 %f2, %r2; createpolicy.fractional.L2::evict_last.b64 %rd2, %f2;",
        (0x3F800000, 0x00800000),
        (0, 0x3F800001, 0xBF800000, 0x7FC00000),
        "error",
    ),
    "range": (
        "createpolicy.range.global.L2::evict_last.L2::evict_unchanged.b64 %rd2, [%rd1], %r2, 64;",
        (0, 64),
        (65, 0xFFFFFFFF),
        "error",
    ),
    "prefetch": (PREFETCH, (16, 64), (8, 17), "error"),
    "prefetch from": (
        "cvt.u64.u32 %rd2, %r2; add.u64 %rd1, %rd1, %rd2;" + PREFETCH.replace("%r2", "16"),
        (0, 16),
        (4, 8),
        "error",
    ),
    "first block": (RESPONSE, (1,), (0,), "error"),
    "cvta.to.shared": (
        "cvt.u64.u32 %rd2, %r2; shl.b64 %rd2, %rd2, 40; cvta.to.shared.u64 %rd5, %rd2;",
        (0, 1),
        (2, 127),
        "letter",
    ),
    "cvta.to.global": ("cvt.u64.u32 %rd2, %r2; cvta.to.global.u64 %rd5, %rd2;", (0, 5), (), ""),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_contents(name: str) -> None:
    body, legal, others, severity = CONTENTS[name]
    for value in (*legal, *others):
        report = run(
            f"{HEAD}mov.u32 %r2, {value}; {body}\nret; }}\n".replace("sm_90a", "sm_100a"),
            "k",
            block=(32,),
            arguments=[np.zeros(64, np.uint32)],
            check=True,
        )
        found = [(f.severity, f.kind) for f in report.findings if f.kind == "operand"]
        assert found == ([(severity, "operand")] if value in others else []), value
        assert value in others or not report.findings, report.findings


def test_states_that_an_arrival_has_given() -> None:
    arrive = "@%p2 mbarrier.arrive.shared.b64 %rd2, [s]; @%p2 "
    assert results(INIT + arrive + WAIT.format("", "%rd2"))[1] == []
    assert results(INIT + arrive + "mbarrier.pending_count.b64 %r3, %rd2;")[1] == []


def test_vector_registers_as_a_whole() -> None:
    body = (
        ".reg .v2 .u32 v, w; mov.u32 v.x, %r1; mov.u32 v.y, 7; mov.v2.u32 w, v; mov.b64 %rd5, w;"
        "mov.b64 v, %rd5; st.shared.v2.u32 [s], v; bar.sync 0; ld.shared.v2.u32 w, [s];"
        "add.u32 %r2, v.x, w.y; st.global.u32 [%rd4], %r2;"
    )
    out, _ = results(body)
    assert out == [lane + 7 for lane in range(32)]
    half = ".reg .v2 .u32 v; mov.u32 v.x, 3; mov.b64 %rd5, v; st.global.u64 [%rd1], %rd5;"
    assert "uninitialised" in results(half)[1]
    with pytest.raises(EmulationError):
        results(".reg .v2 .u32 v; ld.global.v4.u32 v, [%rd1];")
    inner = ".reg .v2 .u32 v; { .reg .u32 v; mov.u32 v, 5; st.global.u32 [%rd4], v; }"
    assert set(results(inner)[0]) == {5}
