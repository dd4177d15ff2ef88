"""For which contents of the arrays a run speaks: all sources, ways and sinks of marks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from benchmarks.sweeps import other_values
from fragir.emulator import EmulationError, Pointer, Stream, Struct, TensorMap, pointers, run
from fragir.emulator.native import library
from fragir.emulator.report import ArrayValues
from fragir.sweeps import Plan

from .other_values import executed
from .other_values import other_values as values_like

HEAD = """
.version 8.6
.target sm_90a
.address_size 64
.global .align 8 .b8 kept[64];
.global .align 8 .b8 table[64] = {1, 2, 3};
.const .align 8 .b8 fixed[64];
.extern .func (.param .b64 r) malloc (.param .b64 s);
"""
KERNEL = """
.visible .entry k(.param .u64 a, .param .u64 b, .param .u32 n)
{
    .reg .b64 %rd<20>; .reg .b32 %r<20>; .reg .f32 %f<20>; .reg .b16 %h<8>; .reg .pred %p<8>;
    .reg .b128 %q; .shared .align 128 .b8 s[1024]; .local .align 16 .b8 l[64];
    ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x; mov.u32 %r3, s; mul.wide.u32 %rd3, %r2, 4; add.u64 %rd4, %rd1, %rd3;
    ld.global.u32 %r4, [%rd4];
    BODY
    ret;
}
"""
#: What shows that %r5 has a mark, and that it has none.
SHOW = "setp.eq.u32 %p7, %r5, 77; @%p7 bra END; END:"
BRANCH = {("a branch", "a")}


def judged(
    body: str,
    arguments: Sequence[Any] | None = None,
    *,
    before: str = "",
    kernel: str = KERNEL,
    block: int = 32,
    **options: Any,
) -> ArrayValues:
    """What a run with checks says of the data."""
    if arguments is None:
        arguments = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32), 5]
    text = HEAD + before + kernel.replace("BODY", body)
    report = run(text, block=(block,), arguments=arguments, check=True, **options)
    assert report.data is not None
    return report.data


def found(body: str, *arguments: Any, **options: Any) -> set[tuple[str, str | None]]:
    return {(one.what, one.argument) for one in judged(body, *arguments, **options).open}


# -- sinks -----------------------------------------------------------------------------------------

CONDITION = "setp.gt.u32 %p1, %r4, 40;"
SINKS = {
    "branch": (f"{CONDITION} @%p1 bra L; add.u32 %r5, %r4, 1; L:", "a branch"),
    "indexed branch": ("and.b32 %r5, %r4, 0; brx.idx %r5, {L, M}; L: M:", "a branch"),
    "exit": (f"{CONDITION} @%p1 exit;", "the guard"),
    "ret": (f"{CONDITION} @%p1 ret;", "the guard"),
    "guarded load": (f"{CONDITION} @%p1 ld.global.u32 %r5, [%rd2];", "the guard"),
    "guarded store": (f"{CONDITION} @%p1 st.global.u32 [%rd2], 1;", "the guard"),
    "guarded barrier": ("setp.lt.u32 %p1, %r4, 999; @%p1 bar.sync 0;", "the guard"),
    "guarded copy": (
        f"{CONDITION} @%p1 cp.async.ca.shared.global [%r3], [%rd1], 4; cp.async.wait_all;",
        "the guard",
    ),
    "address of a load": (
        "and.b32 %r5, %r4, 4; cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd2;"
        "ld.global.u32 %r6, [%rd5];",
        "an address",
    ),
    "address of a store": (
        "shl.b32 %r5, %r4, 2; cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd2;"
        "st.global.u32 [%rd5], 1;",
        "an address",
    ),
    "address of an atomic": (
        "and.b32 %r5, %r4, 4; cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd2;"
        "red.global.add.u32 [%rd5], 1;",
        "an address",
    ),
    "address in shared memory": (
        "and.b32 %r5, %r4, 60; add.u32 %r5, %r5, %r3; red.shared.add.u32 [%r5], 1;",
        "an address",
    ),
    "address of a matrix": (
        "mov.u32 %r8, 0; st.shared.u32 [%r3], %r8; bar.sync 0;"
        "and.b32 %r5, %r4, 0; add.u32 %r5, %r5, %r3;"
        "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r6}, [%r5];",
        "an address",
    ),
    "address of a copy": (
        "and.b32 %r5, %r4, 4; cvt.u64.u32 %rd5, %r5; add.u64 %rd5, %rd5, %rd2;"
        "mad.lo.u32 %r6, %r2, 4, %r3;"
        "cp.async.ca.shared.global [%r6], [%rd5], 4; cp.async.wait_all;",
        "an address",
    ),
    "bytes of a copy": (
        "and.b32 %r5, %r4, 4; mad.lo.u32 %r6, %r2, 4, %r3;"
        "cp.async.ca.shared.global [%r6], [%rd2], 4, %r5; cp.async.wait_all;",
        "an operand of cp.async.ca",
    ),
    "a barrier's number": ("and.b32 %r5, %r4, 0; bar.sync %r5;", "an operand of bar.sync"),
    "a barrier's count": (
        "and.b32 %r5, %r4, 0; add.u32 %r5, %r5, 32; bar.sync 1, %r5;",
        "an operand of bar.sync",
    ),
    "a membermask": (
        "and.b32 %r5, %r4, 0; not.b32 %r5, %r5; bar.warp.sync %r5;",
        "a membermask",
    ),
    "the mask of a shuffle": (
        "and.b32 %r5, %r4, 0; not.b32 %r5, %r5; shfl.sync.bfly.b32 %r6, %r2, 1, 31, %r5;",
        "a membermask",
    ),
    "an mbarrier's count": (
        "setp.eq.u32 %p2, %r2, 0; and.b32 %r5, %r4, 0; add.u32 %r5, %r5, 1;"
        "@%p2 mbarrier.init.shared.b64 [%r3], %r5;",
        "an operand of mbarrier.init",
    ),
    "a phase": (
        "setp.eq.u32 %p2, %r2, 0; @%p2 mbarrier.init.shared.b64 [%r3], 1; bar.sync 0;"
        "and.b32 %r5, %r4, 0; add.u32 %r5, %r5, 1;"
        "mbarrier.test_wait.parity.shared.b64 %p3, [%r3], %r5;",
        "an operand of mbarrier.test_wait",
    ),
    "a stack": ("and.b32 %r5, %r4, 0; add.u32 %r5, %r5, 16; alloca.u32 %r6, %r5;", "the stack"),
}


@pytest.mark.parametrize("name", SINKS)
def test_sinks(name: str) -> None:
    body, what = SINKS[name]
    assert (what, "a") in found(body)
    assert found(body, structure=["a"]) == set()
    assert found(body.replace("%r4", "%r2")) == set()


def test_the_size_of_malloc() -> None:
    body = """
    { .param .b64 s0; .param .b64 r0; and.b32 %r5, %r4, 0; add.u32 %r5, %r5, 16;
      cvt.u64.u32 %rd5, %r5; st.param.b64 [s0], %rd5; call.uni (r0), malloc, (s0);
      ld.param.b64 %rd6, [r0]; }
    st.u32 [%rd6], 0;
    """
    assert found(body) == {("an argument of malloc", "a")}
    assert found(body.replace("%r4", "%r2")) == set()


def test_a_register_that_may_be_left_unwritten() -> None:
    """With other data the guard fails, and what is stored is undefined."""
    body = "setp.lt.u32 %p1, %r4, 999; @%p1 mov.u32 %r5, 3; st.global.u32 [%rd2], %r5;"
    assert found(body) >= {("whether a register is written", "a")}
    before = "mov.u32 %r5, 0; " + body
    assert ("whether a register is written", "a") not in found(before)


@pytest.mark.parametrize(
    "decided",
    [
        "and.b32 %r6, %r5, %r4;",
        "setp.lt.u32 %p1, %r4, 999; selp.b32 %r6, %r2, %r5, %p1;",
        "and.b32 %r7, %r4, 0; add.u32 %r7, %r7, 0x3210; prmt.b32 %r6, %r2, %r5, %r7;",
    ],
)
def test_values_that_decide_what_is_defined(decided: str) -> None:
    """%r5 is undefined, and its bits go on or not by what an array holds."""
    body = f"ld.shared.u32 %r5, [%r3]; {decided} and.b32 %r6, %r6, 0; st.global.u32 [%rd2], %r6;"
    assert ("whether bits are initialised", None) in found(body)
    assert found(body.replace("%r4", "%r2")) == set()


EQUAL = "whether the bytes of two stores are equal"
STORES = {
    "two warps": "st.shared.u32 [%r3], %r5;",
    "two warps, to global memory": "st.global.u32 [%rd2], %r5;",
    "lanes of one store": "setp.lt.u32 %p2, %r2, 32; @%p2 st.shared.u32 [%r3], %r5;",
    "two stores": """
        setp.eq.u32 %p2, %r2, 0; @%p2 st.shared.u32 [%r3], %r5;
        setp.eq.u32 %p3, %r2, 32; @%p3 st.shared.u32 [%r3], 0;""",
    "the other way round": """
        setp.eq.u32 %p2, %r2, 0; @%p2 st.shared.u32 [%r3], 0;
        setp.eq.u32 %p3, %r2, 32; @%p3 st.shared.u32 [%r3], %r5;""",
    "what another warp reads": """
        setp.eq.u32 %p2, %r2, 0; @%p2 st.global.u32 [%rd2], %r5; bar.sync 0;
        setp.eq.u32 %p3, %r2, 32; @%p3 ld.global.u32 %r6, [%rd2];
        @%p2 st.global.u32 [%rd2], %r5;""",
}


@pytest.mark.parametrize("core", ["compiled", "numpy"])
@pytest.mark.parametrize("name", STORES)
def test_stores_of_the_same(name: str, core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two stores of equal bytes do not race; with other data they may not be equal."""
    if core == "compiled" and library.reason() is not None:
        pytest.skip("the compiled core is not there")
    monkeypatch.setenv(library.VARIABLE, core)
    body = "and.b32 %r5, OF, 0;" + STORES[name]
    arguments = [np.zeros(64, np.uint32), np.zeros(64, np.uint32), 5]

    def seen(of: str) -> set[tuple[str, str | None]]:
        return found(body.replace("OF", of), arguments, block=64)

    assert seen("%r4") == {(EQUAL, None)}
    assert seen("%r2") == set()


def test_a_store_of_what_is_there() -> None:
    """The zeros that an array had are its data."""
    body = """
    setp.eq.u32 %p2, %r2, 32; @%p2 ld.global.u32 %r6, [%rd2];
    setp.eq.u32 %p3, %r2, 0; @%p3 st.global.u32 [%rd2], 0;
    """
    assert found(body, block=64) == {(EQUAL, None)}
    assert found(body, block=64, structure=["a", "b"]) == set()


# -- ways ------------------------------------------------------------------------------------------

WAYS = {
    "arithmetic": "add.u32 %r5, %r4, 1;",
    "comparisons": "setp.ne.u32 %p1, %r4, 3; selp.b32 %r5, 1, 0, %p1;",
    "predicates": "setp.ne.u32 %p1, %r4, 3; not.pred %p2, %p1; selp.b32 %r5, 1, 0, %p2;",
    "selected": "setp.ne.u32 %p1, %r2, 3; selp.b32 %r5, %r4, 0, %p1;",
    "guarded": "mov.u32 %r5, 0; setp.ne.u32 %p1, %r4, 3; @%p1 mov.u32 %r5, 1;",
    "guarded, and not executed": "mov.u32 %r5, 0; setp.eq.u32 %p1, %r4, 999; @%p1 mov.u32 %r5, 1;",
    "a carry": "add.cc.u32 %r6, %r4, -1; addc.u32 %r5, 0, 0;",
    "a guarded carry": """
        setp.eq.u32 %p1, %r4, 999; add.cc.u32 %r6, 0, 0; @%p1 add.cc.u32 %r6, -1, -1;
        addc.u32 %r5, 0, 0;""",
    "wide": "cvt.u64.u32 %rd5, %r4; shl.b64 %rd5, %rd5, 8; mov.b64 {%r6, %r5}, %rd5;",
    "halves": "mov.b32 {%h1, %h2}, %r4; cvt.u32.u16 %r5, %h2;",
    "a float": "cvt.rn.f32.u32 %f1, %r4; ex2.approx.f32 %f1, %f1; cvt.rzi.u32.f32 %r5, %f1;",
    "a video instruction": "mov.u32 %r5, 0; vadd.u32.u32.u32 %r5.b0, %r4.b1, %r2, %r2;",
    "part of a register": "vadd.u32.u32.u32 %r5.b0, %r2, %r2, %r4;",
    "128 bits": "mov.b128 %q, {%rd6, %rd7}; mov.b128 {%rd8, %rd9}, %q; cvt.u32.u64 %r5, %rd9;",
    "a shuffle": "shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;",
    "the lane of a shuffle": "shfl.sync.idx.b32 %r5, %r2, %r4, 31, -1;",
    "a vote": "setp.ne.u32 %p1, %r4, 3; vote.sync.ballot.b32 %r5, %p1, -1;",
    "a match": "match.any.sync.b32 %r5, %r4, -1;",
    "a reduction": "redux.sync.add.u32 %r5, %r4, -1;",
    "shared memory": """
        mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], %r4; bar.sync 0;
        xor.b32 %r7, %r2, 1; mad.lo.u32 %r6, %r7, 4, %r3; ld.shared.u32 %r5, [%r6];""",
    "a byte of shared memory": """
        mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], 0; st.shared.u8 [%r6+3], %r4;
        ld.shared.u32 %r5, [%r6];""",
    "local memory": "st.local.u32 [l+4], %r4; ld.local.v2.u32 {%r6, %r5}, [l];",
    "generic addresses": """
        mov.u64 %rd5, l; cvta.local.u64 %rd5, %rd5; st.u32 [%rd5], %r4; ld.u32 %r5, [%rd5];""",
    "generic shared addresses": """
        cvt.u64.u32 %rd5, %r3; cvta.shared.u64 %rd5, %rd5; add.u64 %rd5, %rd5, %rd3;
        st.u32 [%rd5], %r4; ld.u32 %r5, [%rd5];""",
    "global memory": """
        add.u64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r4; ld.global.u32 %r5, [%rd5];""",
    "a copy": """
        mad.lo.u32 %r6, %r2, 4, %r3; cp.async.ca.shared.global [%r6], [%rd4], 4;
        cp.async.wait_all; ld.shared.u32 %r5, [%r6];""",
    "matrices": """
        mad.lo.u32 %r6, %r2, 16, %r3; st.shared.v4.u32 [%r6], {%r4, %r4, %r4, %r4}; bar.sync 0;
        ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r5}, [%r6];""",
    "stored matrices": """
        mad.lo.u32 %r6, %r2, 16, %r3; stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r6], {%r4};
        bar.sync 0; ld.shared.u32 %r5, [%r3];""",
    "a turned matrix": "movmatrix.sync.aligned.m8n8.trans.b16 %r5, %r4;",
    "a product": """
        mov.f32 %f1, 0f00000000;
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32
            {%f2, %f3, %f4, %f5}, {%r2, %r2}, {%r4}, {%f1, %f1, %f1, %f1};
        mov.b32 %r5, %f2;""",
    "an atomic's old value": """
        mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], %r4;
        atom.shared.add.u32 %r5, [%r6], 1;""",
    "an atomic's operand": """
        mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], 0;
        red.shared.add.u32 [%r6], %r4; ld.shared.u32 %r5, [%r6];""",
    "an atomic of other lanes": """
        setp.eq.u32 %p1, %r2, 0; @%p1 st.shared.u32 [%r3], 0; bar.sync 0;
        atom.shared.add.u32 %r5, [%r3], %r4;""",
    "a compare and swap": """
        mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], 0;
        atom.shared.cas.b32 %r5, [%r6], 0, %r4; ld.shared.u32 %r5, [%r6];""",
    "votes at a barrier": "setp.ne.u32 %p1, %r4, 3; bar.red.popc.u32 %r5, 0, %p1;",
    "a call": """
        { .param .b32 x; .param .b32 y; st.param.b32 [x], %r4; call.uni (y), twice, (x);
          ld.param.b32 %r5, [y]; }""",
    "a call by registers": "call.uni (%r5), same, (%r4);",
    "a pointer to a function": """
        mov.u64 %rd5, same; call (%r5), %rd5, (%r4), P;""",
    "a recursive call": "call.uni (%r5), deep, (%r4, 3);",
}
FUNCTIONS = """
.func (.param .b32 y) twice (.param .b32 x)
{ .reg .b32 %a<3>; ld.param.b32 %a1, [x]; add.u32 %a2, %a1, %a1; st.param.b32 [y], %a2; ret; }
.func (.reg .b32 y) same (.reg .b32 x) { mov.b32 y, x; ret; }
.func (.reg .b32 y) deep (.reg .b32 x, .reg .b32 n)
{ .reg .b32 %a<4>; .reg .pred %p; setp.eq.u32 %p, n, 0; mov.b32 y, 0; @%p ret;
  sub.u32 %a1, n, 1; call (%a2), deep, (n, %a1); add.u32 y, %a2, x; ret; }
"""


@pytest.mark.parametrize("name", WAYS)
def test_ways(name: str) -> None:
    """%r5 depends on an array by every way, and does not where the array is none of its data."""
    body = WAYS[name]
    if "P;" in body:
        body = "P: .callprototype (.reg .b32 _) _ (.reg .b32 _);" + body
    if "%q" in body:
        body = "cvt.u64.u32 %rd7, %r4; mov.b64 %rd6, 0;" + body
    assert found(body + SHOW, before=FUNCTIONS) >= BRANCH
    clean = body.replace("%r4", "%r2").replace("[%rd4]", "[%rd9]")
    clean = clean.replace("cp.async.ca.shared.global [%r6], [%rd9], 4;", "st.shared.u32 [%r6], 0;")
    assert found(clean + SHOW, before=FUNCTIONS) == set()


UNMARKED = {
    "what is overwritten": "mov.u32 %r5, %r4; mov.u32 %r5, 1;",
    "what cancels": "xor.b32 %r5, %r4, %r4;",
    "shared memory that is overwritten": """
        mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], %r4; st.shared.u32 [%r6], 0;
        ld.shared.u32 %r5, [%r6];""",
    "its neighbour": """
        mad.lo.u32 %r6, %r2, 8, %r3; st.shared.u32 [%r6], %r4; st.shared.u32 [%r6+4], 0;
        ld.shared.u32 %r5, [%r6+4];""",
    "global memory that is overwritten": """
        add.u64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], 0; ld.global.u32 %r5, [%rd5];""",
    "a variable with a value": "ld.global.u32 %r5, [table];",
    "a variable without one": "ld.global.u32 %r5, [kept];",
    "a constant": "ld.const.u32 %r5, [fixed];",
    "a parameter": "mov.u32 %r5, %r1;",
    "the address of an array": "cvt.u32.u64 %r5, %rd1;",
    "an mbarrier": """
        setp.eq.u32 %p2, %r2, 0; @%p2 mbarrier.init.shared.b64 [%r3], 32; bar.sync 0;
        mbarrier.arrive.shared.b64 %rd5, [%r3]; mov.u32 %r5, 0;
        WAIT: mbarrier.try_wait.shared.b64 %p1, [%r3], %rd5; @!%p1 bra WAIT;""",
}


@pytest.mark.parametrize("name", UNMARKED)
def test_what_depends_on_no_data(name: str) -> None:
    assert found(UNMARKED[name] + SHOW) == set()


def test_blocks_hand_on_marks() -> None:
    """What one block has stored, a later wave of blocks reads."""
    body = """
    mov.u32 %r8, %ctaid.x; mul.wide.u32 %rd6, %r8, 4; add.u64 %rd7, %rd2, %rd6;
    setp.eq.u32 %p2, %r8, 0; @%p2 bra FIRST; ld.global.u32 %r5, [%rd7+-4]; SHOW bra DONE;
    FIRST: st.global.u32 [%rd7], %r4; DONE:
    """.replace("SHOW", SHOW)
    arguments = [np.zeros(64, np.uint32), np.zeros(64, np.uint32), 5]
    seen = found(body, arguments, grid=(2,), resident=1, structure=["b"])
    assert seen - {(EQUAL, None)} == BRANCH


# -- sources ---------------------------------------------------------------------------------------


def test_which_argument() -> None:
    body = "add.u64 %rd5, %rd2, %rd3; ld.global.u32 %r6, [%rd5]; add.u32 %r5, %r4, %r6;" + SHOW
    assert found(body) == {("a branch", "a"), ("a branch", "b")}
    assert found(body, structure=[0]) == {("a branch", "b")}
    assert found(body, structure=["a", 1]) == set()
    (first, _) = judged(body).open
    line = next(i for i, text in enumerate((HEAD + KERNEL).splitlines(), 1) if "BODY" in text)
    assert first.line == line


def test_more_arrays_than_marks() -> None:
    parameters = ", ".join(f".param .u64 p{i}" for i in range(12))
    kernel = f".visible .entry k({parameters})\n{{ .reg .b64 %rd<3>; .reg .b32 %r<9>;"
    kernel += " .reg .pred %p<8>; BODY ret; }"
    arrays = [np.zeros(8, np.uint32) for _ in range(12)]
    for i, names in ((2, {"p2"}), (11, {f"p{k}" for k in range(6, 12)})):
        body = f"ld.param.u64 %rd1, [p{i}]; ld.global.u32 %r5, [%rd1];" + SHOW
        assert found(body, arrays, kernel=kernel) == {("a branch", name) for name in names}


def test_arrays_that_overlap() -> None:
    whole = np.arange(96, dtype=np.uint32)
    arguments = [whole[:64], whole[32:], 5]
    assert found("mov.u32 %r5, %r4;" + SHOW, arguments) == {("a branch", "a and b")}
    assert found("mov.u32 %r5, %r4;" + SHOW, arguments, structure=[0]) == {("a branch", "b")}


def test_variables() -> None:
    """A variable is data where the launch gives it an array."""
    load = "ld.global.u32 %r5, [kept];" + SHOW
    values = np.zeros(64, np.uint8)
    assert found(load, variables={"kept": values}) == {("a branch", "kept")}
    assert found(load, variables={"kept": values}, structure=["kept"]) == set()
    constant = "ld.const.u32 %r5, [fixed];" + SHOW
    assert found(constant, variables={"fixed": values}) == {("a branch", "fixed")}
    through = "mov.u64 %rd5, fixed; cvta.const.u64 %rd5, %rd5; ld.u32 %r5, [%rd5];" + SHOW
    assert found(through, variables={"fixed": values}) == {("a branch", "fixed")}


def test_variables_that_an_earlier_launch_has_left() -> None:
    stream = Stream()
    assert found("ld.global.u32 %r5, [kept];" + SHOW, stream=stream) == set()
    assert found("ld.global.u32 %r5, [kept];" + SHOW, stream=stream) == {("a branch", "kept")}


def test_pointers_are_structure() -> None:
    """An array of pointers says where the data is; what is there is data."""
    arrays = [np.arange(32, dtype=np.uint32) for _ in range(20)]
    arguments = [pointers(*arrays), np.zeros(64, np.uint32), 5]
    through = "ld.global.u64 %rd5, [%rd1+8]; ld.global.u32 %r5, [%rd5];"
    data = judged(through, arguments)
    assert data == ArrayValues([], ["a"])
    assert found(through + SHOW, arguments) == BRANCH
    sizes = [
        Pointer(Struct({0: np.int32(3), 8: arrays[0], 120: arrays[1]})),
        np.zeros(64, np.uint32),
        5,
    ]
    assert found("ld.global.u32 %r5, [%rd1];" + SHOW, sizes) == set()


def test_structure_that_is_not_there() -> None:
    for wrong in ("c", 3, -1):
        with pytest.raises(EmulationError, match="has no parameter"):
            judged("", structure=[wrong])
    with pytest.raises(EmulationError, match="list of names"):
        judged("", structure="a")


def test_nothing_is_said_where_nobody_asks() -> None:
    arguments = [np.zeros(64, np.uint32), np.zeros(64, np.uint32), 5]
    text = HEAD + KERNEL.replace("BODY", "")
    assert run(text, arguments=arguments).data is None
    assert run(text, arguments=arguments, check=True, structure=None).data is None


def test_several_processes() -> None:
    """Each says of its blocks what it has found."""
    body = """
    mov.u32 %r6, %ctaid.x; setp.lt.u32 %p1, %r6, 900; @%p1 bra DONE;
    mov.u32 %r5, %r4; SHOW DONE:
    """.replace("SHOW", SHOW)
    assert found(body, grid=(1000,), jobs=2) == BRANCH


# -- products --------------------------------------------------------------------------------------

WGMMA = """
    mad.lo.u32 %r6, %r2, 32, %r3; mov.u32 %r7, VALUE;
    st.shared.v4.u32 [%r6], {%r7, %r7, %r7, %r7}; st.shared.v4.u32 [%r6+16], {%r7, %r7, %r7, %r7};
    fence.proxy.async; bar.sync 0;
    shr.u32 %r8, %r3, 4; and.b32 %r8, %r8, 16383; cvt.u64.u32 %rd5, %r8;
    mov.b64 %rd6, 0x0000000800080000; or.b64 %rd5, %rd5, %rd6;
    SETUP
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd5, %rd5, %p1,
        1, 1, 0, 0;
    wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0; mov.b32 %r5, %f1;
"""


def test_asynchronous_products() -> None:
    kernel = KERNEL.replace("s[1024]", "s[4096]")

    def seen(value: str, setup: str) -> set[tuple[str, str | None]]:
        body = WGMMA.replace("VALUE", value).replace("SETUP", setup) + SHOW
        arguments = [np.arange(128, dtype=np.uint32), np.zeros(64, np.uint32), 5]
        return found(body, arguments, kernel=kernel, block=128)

    nothing = "setp.ne.u32 %p1, 0, 0;"
    assert seen("0", nothing) == set()
    assert seen("%r4", nothing) == BRANCH
    scale = "setp.eq.u32 %p1, %r4, 999;"
    assert ("an operand of wgmma.mma_async", "a") in seen("0", scale)
    moved = nothing + "and.b32 %r9, %r4, 0; cvt.u64.u32 %rd7, %r9; or.b64 %rd5, %rd5, %rd7;"
    assert ("an operand of wgmma.mma_async", "a") in seen("0", moved)


# -- asynchronous copies ---------------------------------------------------------------------------

BULK = """
    setp.ne.u32 %p1, %r2, 0; @%p1 bra WAIT; mbarrier.init.shared.b64 [s], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [s], SIZE;
    COPY
    WAIT: bar.sync 0;
    POLL: mbarrier.try_wait.parity.shared.b64 %p2, [s], 0; @!%p2 bra POLL;
    ld.shared.u32 %r5, [s+128];
"""
FROM = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s+128], [{}], 64, [s];"


def test_bulk_copies() -> None:
    body = BULK.replace("SIZE", "64").replace("COPY", FROM.format("%rd1")) + SHOW
    assert found(body) == BRANCH
    assert found(body, structure=["a"]) == set()
    assert found(body.replace("[%rd1]", "[%rd2]")) == {("a branch", "b")}
    size = body.replace("64, [s];", "%r8, [s];")
    size = "ld.global.u32 %r8, [%rd1]; and.b32 %r8, %r8, 0; add.u32 %r8, %r8, 64;" + size
    assert ("an operand of cp.async.bulk", "a") in found(size)


REDUCED = """
    mad.lo.u32 %r6, %r2, 4, %r3; st.shared.u32 [%r6], VALUE; fence.proxy.async; bar.sync 0;
    setp.ne.u32 %p1, %r2, 0; @%p1 bra DONE;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.OPERATION [%rd2], [s], 64;
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE: bar.sync 0;
    fence.proxy.async; ld.global.u32 %r5, [%rd2];
"""


@pytest.mark.parametrize("operation", ["add.u32", "min.u32", "and.b32"])
def test_bulk_reductions(operation: str) -> None:
    """No operation on the values may be done to the marks."""
    body = REDUCED.replace("OPERATION", operation) + SHOW
    assert found(body.replace("VALUE", "%r4"), structure=["b"]) == BRANCH
    assert found(body.replace("VALUE", "0"), structure=["b"]) == set()


def test_stores_that_come_later() -> None:
    store = "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [s+128], %r4, [s];"
    body = BULK.replace("SIZE", "4").replace("COPY", store) + SHOW
    body = body.replace("[s]", "[%r3]").replace("[s+128]", "[%r3+128]")
    assert found(body) == BRANCH
    assert found(body.replace("%r4", "%r2")) == set()


TENSOR = """
.visible .entry k(.param PARAMETER a, .param .u64 b, .param .u32 n)
{
    .reg .b64 %rd<20>; .reg .b32 %r<20>; .reg .pred %p<8>; .shared .align 128 .b8 s[4096];
    ld.param.u64 %rd2, [b]; ld.param.u32 %r1, [n]; MAP
    mov.u32 %r2, %tid.x; mov.u32 %r3, s; ld.global.u32 %r4, [%rd2];
    BODY
    ret;
}
"""
BY_VALUE = TENSOR.replace("PARAMETER a", ".align 64 .b8 a[128]").replace(
    "MAP", "mov.u64 %rd1, a; cvta.param.u64 %rd1, %rd1;"
)
IN_MEMORY = TENSOR.replace("PARAMETER", ".u64").replace("MAP", "ld.param.u64 %rd1, [a];")


def test_reductions_beyond_the_edges() -> None:
    """A tile of which nothing lies in the array is added nowhere."""
    body = """
    mad.lo.u32 %r6, %r2, 8, %r3; st.shared.v2.u32 [%r6], {%r4, %r4}; fence.proxy.async; bar.sync 0;
    setp.ne.u32 %p1, %r2, 0; @%p1 bra DONE; mov.u32 %r8, AT;
    cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
        [%rd1, {%r8, %r8}], [s];
    cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; DONE: bar.sync 0;
    fence.proxy.async; ld.param.u64 %rd5, [where]; ld.global.u32 %r5, [%rd5];
    """
    kernel = BY_VALUE.replace(".param .u32 n", ".param .u32 n, .param .u64 where")
    array = np.zeros((16, 16), np.uint32)
    arguments = [TensorMap(array, (8, 8)), np.zeros(64, np.uint32), 5, array]
    body += SHOW

    def seen(at: str) -> set[tuple[str, str | None]]:
        return found(body.replace("AT", at), arguments, kernel=kernel, structure=["a", "where"])

    assert seen("0") == {("a branch", "b")}
    assert seen("16") == set()


TILE = (
    "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
    " [s+128], [%rd1, {%r8, %r8}], [s];"
)
TILED = "mov.u32 %r8, 0;" + BULK.replace("SIZE", "256").replace("COPY", TILE)


@pytest.mark.parametrize("kernel", [BY_VALUE, IN_MEMORY], ids=["by value", "in memory"])
def test_tensor_copies(kernel: str) -> None:
    def arguments() -> list[Any]:
        tiles = TensorMap(np.zeros((16, 16), np.float32), (8, 8))
        return [tiles, np.zeros(64, np.uint32), 5]

    assert found(TILED, arguments(), kernel=kernel) == set()
    assert found(TILED + SHOW, arguments(), kernel=kernel) == BRANCH
    moved = TILED.replace("mov.u32 %r8, 0;", "mov.u32 %r8, %r4;")
    assert found(moved, arguments(), kernel=kernel) == {("an address", "b")}


def test_tensor_maps_that_depend_on_data() -> None:
    """One that the kernel has overwritten with what an array holds, and one that it has changed."""
    tiles = TensorMap(np.zeros((16, 16), np.float32), (8, 8))
    arguments = [tiles, np.zeros(64, np.uint32), 5]
    stored = """
    setp.ne.u32 %p3, %r2, 0; @%p3 bra KEPT; ld.global.u8 %r9, [%rd1+120]; and.b32 %r10, %r4, 0;
    or.b32 %r9, %r9, %r10; st.global.u8 [%rd1+120], %r9; fence.proxy.async; KEPT:
    """
    assert ("a tensor map", "b") in found(stored + TILED, arguments, kernel=IN_MEMORY)
    changed = "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 0, %r9;"
    changed = f"and.b32 %r9, %r4, 0; add.u32 %r9, %r9, 8; {changed}"
    assert ("a tensor map", "b") in found(changed, arguments, kernel=IN_MEMORY, block=1)


# -- other values ----------------------------------------------------------------------------------


def test_other_values() -> None:
    """Kernels of the compiler do the same whatever is in their arrays: `fragir sweep other-values`
    tries them all."""
    name = "mma f64"
    plan = Plan(parameters={"others": 2})
    _, task = (t for t in other_values.SWEEP.all_tasks(plan) if t.what[0] == name)
    assert other_values.run(task)["findings"] == []


def test_a_difference_is_a_finding() -> None:
    """Were a branch on data not seen, other values would tell."""
    body = "setp.gt.u32 %p1, %r4, 40; @%p1 bra L; st.global.u32 [%rd2], %r4; L:"
    arguments = [np.arange(64, dtype=np.uint32), np.zeros(64, np.uint32), 5]
    text = HEAD + KERNEL.replace("BODY", body)
    first = executed(text, None, arguments)
    others = values_like(arguments, np.random.default_rng(0))
    assert executed(text, None, arguments) == first != executed(text, None, others)
