# ruff: noqa: E501 - a statement is not broken
"""Statements with wrong words and operands: taken, or refused with a reason; the emulator never fails.

Every shape of instruction has its operands dropped, doubled, swapped and replaced by every other
kind of operand, its words dropped, doubled and exchanged. Each mutant is one kernel that runs for a
moment. A task is a batch of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

from fragir.emulator import run as emulate
from fragir.sweeps import Plan, Result, Sweep, Task
from fragir.sweeps.attempt import attempt
from tests.emulator.legality_forms import FORMS, expand

HEAD = """.version 9.2
.target {target}
.address_size 64
.global .align 16 .b8 gl[1024];
.const .align 16 .b8 cn[1024];
.visible .func (.reg .b32 %o) fn(.reg .b32 %i) {{ mov.b32 %o, %i; ret; }}
.visible .entry k(.param .align 16 .b8 par[64]) {{
    .shared .align 128 .b8 sh[8192]; .local .align 16 .b8 lo[1024];
    .reg .pred %p<8>; .reg .b16 %h<16>; .reg .b32 %r<16>; .reg .f32 %f<16>; .reg .b64 %d<16>;
    .reg .f64 %g<8>; .reg .b128 %q<8>; .reg .b8 %c<16>; .reg .v4 .b32 %v; .local .b32 lv;
    TABLE: .branchtargets END, MORE;
    PROTO: .callprototype (.reg .b32 _) _ (.reg .b32 _);
    mov.u64 %d0, gl; mov.u64 %d1, gl; mov.u32 %r0, sh; mov.u32 %r1, 0; setp.eq.u32 %p0, %r1, 0;
    add.u32 %r2, %r0, 128; mbarrier.init.shared.b64 [%r2], 32;
"""
TAIL = "\nMORE: membar.cta;\nEND: ret;\n}}\n"

_R4 = "{%r0, %r1, %r2, %r3}"
_R2 = "{%r0, %r1}"
_F4 = "{%f0, %f1, %f2, %f3}"
_F8 = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"
_R8 = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
_SCALAR = """
abs.s32 %r2, %r3; abs.f32 %f0, %f1; abs.ftz.f32 %f0, %f1; neg.f16x2 %r2, %r3; not.b32 %r2, %r3
not.pred %p1, %p2; cnot.b32 %r2, %r3; popc.b32 %r2, %r3; popc.b64 %r2, %d2; clz.b64 %r2, %d2
brev.b32 %r2, %r3; bfind.shiftamt.u32 %r2, %r3; bfind.s64 %r2, %d2; fns.b32 %r2, %r3, %r4, %r5
add.u32 %r2, %r3, %r4; add.s64 %d2, %d3, 5; add.cc.u32 %r2, %r3, %r4; add.sat.s32 %r2, %r3, %r4
add.rn.f32 %f0, %f1, %f2; add.f64 %g0, %g1, %g2; add.f16x2 %r2, %r3, %r4; add.u16x2 %r2, %r3, %r4
add.rn.f32.f16 %f0, %h1, %f2; addc.cc.u32 %r2, %r3, %r4; sub.cc.u64 %d2, %d3, %d4; subc.u32 %r2, %r3, %r4
mul.lo.u32 %r2, %r3, %r4; mul.wide.s32 %d2, %r3, %r4; mul.wide.u16 %r2, %h3, %h4; mul.hi.u64 %d2, %d3, %d4
mul.rn.f32 %f0, %f1, %f2; mul24.lo.u32 %r2, %r3, %r4; mad.lo.s32 %r2, %r3, %r4, %r5
mad.wide.u32 %d2, %r3, %r4, %d5; mad.hi.sat.s32 %r2, %r3, %r4, %r5; mad.lo.cc.u32 %r2, %r3, %r4, %r5
madc.hi.u32 %r2, %r3, %r4, %r5; mad24.hi.s32 %r2, %r3, %r4, %r5; fma.rn.f32 %f0, %f1, %f2, %f3
fma.rn.relu.f16x2 %r2, %r3, %r4, %r5; fma.rn.bf16 %h0, %h1, %h2, %h3; fma.rn.f32x2 %d2, %d3, %d4, %d5
div.s32 %r2, %r3, %r4; div.rn.f32 %f0, %f1, %f2; div.full.f32 %f0, %f1, %f2; rem.u64 %d2, %d3, %d4
rcp.approx.ftz.f64 %g0, %g1; rcp.rn.f32 %f0, %f1; sqrt.approx.f32 %f0, %f1; rsqrt.approx.f32 %f0, %f1
ex2.approx.f16x2 %r2, %r3; lg2.approx.f32 %f0, %f1; sin.approx.f32 %f0, %f1; tanh.approx.f32 %f0, %f1
min.s32 %r2, %r3, %r4; max.NaN.f16 %h0, %h1, %h2; min.f32 %f0, %f1, %f2, %f3; max.relu.s16x2 %r2, %r3, %r4
and.b32 %r2, %r3, 255; or.pred %p1, %p2, %p3; xor.b64 %d2, %d3, %d4; shl.b32 %r2, %r3, 4; shr.s64 %d2, %d3, %r4
shf.l.wrap.b32 %r2, %r3, %r4, %r5; shf.r.clamp.b32 %r2, %r3, %r4, 7; bfe.s32 %r2, %r3, 4, 8; bfe.u64 %d2, %d3, %r4, %r5
bfi.b32 %r2, %r3, %r4, 4, 8; lop3.b32 %r2, %r3, %r4, %r5, 0x96; lop3.or.b32 %r2|%p1, %r3, %r4, %r5, 0x96, %p2
prmt.b32 %r2, %r3, %r4, 0x5410; prmt.b32.f4e %r2, %r3, %r4, %r5; sad.u32 %r2, %r3, %r4, %r5; dp4a.u32.s32 %r2, %r3, %r4, %r5
dp2a.lo.s32.u32 %r2, %r3, %r4, %r5; bmsk.wrap.b32 %r2, %r3, %r4; szext.clamp.s32 %r2, %r3, %r4
copysign.f32 %f0, %f1, %f2; testp.finite.f32 %p1, %f1; setp.lt.s32 %p1, %r2, %r3; setp.ge.and.f32 %p1|%p2, %f0, %f1, !%p3
set.gt.u32.f32 %r2, %f1, %f2; set.lt.xor.f16x2.f16x2 %r2, %r3, %r4, %p1; selp.b32 %r2, %r3, %r4, %p1; selp.f64 %g0, %g1, %g2, %p1
slct.s32.f32 %r2, %r3, %r4, %f1; slct.u64.s32 %d2, %d3, %d4, %r5
mov.b32 %r2, %r3; mov.u64 %d2, gl; mov.b64 {%r2, %r3}, %d2; mov.b64 %d2, {%r2, %r3}; mov.b128 %q0, {%d2, %d3}; mov.b128 {%d2, %d3}, %q0
mov.u32 %r2, %tid.x; mov.pred %p1, 1; mov.f32 %f0, 0f3F800000; mov.b32 {%h0, %h1}, %r2; mov.u64 %d2, fn; mov.v4.b32 %v, %v
cvt.u32.u16 %r2, %h3; cvt.rn.f32.s32 %f0, %r1; cvt.rzi.s32.f32 %r2, %f1; cvt.rn.f16x2.f32 %r2, %f1, %f2
cvt.rn.satfinite.e4m3x2.f32 %h0, %f1, %f2; cvt.rn.f16x2.e4m3x2 %r2, %h1; cvt.rs.satfinite.e4m3x4.f32 %r2, {%f0, %f1, %f2, %f3}, %r5
cvt.sat.f32.f64 %f0, %g1; cvt.pack.sat.u8.s32.b32 %r2, %r3, %r4, %r5; cvt.rna.tf32.f32 %r2, %f1; cvt.rn.satfinite.e2m1x2.f32 %c0, %f1, %f2
vadd.u32.u32.u32 %r2, %r3.b0, %r4.h1; vmad.s32.s32.u32.sat %r2, %r3.b0, -%r4.h1, %r5; vset.s32.u32.lt %r2, %r3, %r4
vadd2.s32.s32.s32 %r2, %r3, %r4, %r5; vabsdiff4.u32.u32.u32.add %r2.b0, %r3.b3210, %r4, %r5; vshl.u32.u32.u32.clamp %r2, %r3, %r4
vote.sync.ballot.b32 %r2, %p1, -1; vote.sync.all.pred %p1, !%p2, -1; match.any.sync.b32 %r2, %r3, -1; match.all.sync.b64 %r2|%p1, %d3, -1
redux.sync.add.u32 %r2, %r3, -1; shfl.sync.idx.b32 %r2|%p1, %r3, 0, 31, -1; shfl.sync.bfly.b32 %r2, %r3, %r4, %r5, %r6
elect.sync %r2|%p1, -1; activemask.b32 %r2; bar.sync 0; bar.sync 1, 32; bar.arrive 0, 64; bar.red.popc.u32 %r2, 0, %p1
bar.red.and.pred %p1, 0, 32, !%p2; barrier.sync.aligned %r1, %r2; bar.warp.sync -1; barrier.cluster.arrive; barrier.cluster.wait
bra END; bra.uni MORE; brx.idx %r1, TABLE; call (%r2), fn, (%r3); call (%r2), %d1, (%r3), PROTO; call fn; ret; exit; trap; brkpt
"""
_TENSOR = (
    f"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {_F4}, {_R4}, {_R2}, {_F4}",
    f"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {_F4}, {_R4}, {_R2}, {_F4}",
    f"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {_R4}, {_R4}, {_R2}, {_R4}",
    "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g0, %g1}, {%g2}, {%g3}, {%g4, %g5}",
    f"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {_F8}, {_R2}, {_R2}, {_F8}",
    f"mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {_F4}, {_R4}, {_R4}, {_F4}, %r5, 0",
    "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 "
    f"{_F4}, {_R4}, {_R2}, {_F4}, %r5, {{0, 0}}, %r6, {{0, 0}}",
    "mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, %r9}, {%r0, %r1, %r2, %r3}",
    f"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {_R4}, [%r0]",
    "ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%r2}, [sh]",
    f"stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r0], {_R2}",
    "movmatrix.sync.aligned.m8n8.trans.b16 %r2, %r3",
    f"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {_R8}, [%r0], %r2",
    f"wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {_R8}, [%r0]",
    f"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32 {_F8}, [%r0]",
    f"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {_F8}, {_R8}, {_R8}, {_F8}",
    f"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r0], {_F8}, 16",
)
_WGMMA = (
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %d2, %d3, 1, 1, 1, 0, 0",
    f"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_F4}, {_R4}, %d3, %p0, 1, -1, 0",
    f"wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {_R4}, %d2, %d3, %p0",
    f"wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16 {_F4}, %d2, %d3, %r5, 0, %p0, 1, 1, 0, 0",
    "wgmma.fence.sync.aligned",
    "wgmma.commit_group.sync.aligned",
    "wgmma.wait_group.sync.aligned 0",
)
OPERANDS = """%r2 %h1 %d1 %p1 %q1 %f1 %g1 %c1 %v %v.x %r1.b0 5 -1 1.5 0f3F800000 0xFFFFFFFFFFFFFFFF
[%d0] [%r0] [sh] [%d0+4] [5] [gl+%r1] [%d0,{%r1}] [%q1] [%p1] {%r2,%r3} {%r2} {5,6} {%d2,%d3} {%p1,%p2} {_,%r2} {}
{{%r2,%r3},{%r4,%r5}} sh gl cn lo par fn END TABLE PROTO k _ %p1|%p2 %r2|%p1 _|%p1 !%p1 !%r2 -%r2 ~%r2 %tid.x %tid %clock
%clock64 %laneid WARP_SZ sh[1] gl+4 %r1+4 (5) (%r2) (%r2,%r3) 1<<3 1/0 %nosuch nosuch .5""".split()
WORDS = """f16 bf16 f32 f64 b8 b16 b32 b64 b128 u8 u16 u32 s32 u64 s64 pred f16x2 f32x2 e4m3 tf32 rn rz ftz sat
cc lo hi wide lt eq and add global shared local param volatile relaxed sync aligned x4 v2 v4 trans row col
m16n8k16 m64n8k16 shared::cluster mbarrier::complete_tx::bytes approx uni to cta nosuch""".split()


def bases() -> list[tuple[str, str]]:
    """(target, statement): one of every shape."""
    scalar = [s.strip() for line in _SCALAR.splitlines() for s in line.split(";")]
    memory = [next(expand(t)).rstrip(";") for group in FORMS.values() for t in group]
    found = [("sm_120a", s) for s in (*scalar, *_TENSOR) if s]
    found += [("sm_90a", s) for s in _WGMMA]
    found += [("sm_100a", s) for s in memory if s and ";" not in s]
    return list(dict.fromkeys(found))


def split(operands: str) -> list[str]:
    """Operands between the commas that are outside brackets."""
    parts: list[str] = []
    depth, start = 0, 0
    for at, char in enumerate(operands):
        depth += (char in "[{(") - (char in "]})")
        if char == "," and depth == 0:
            parts.append(operands[start:at].strip())
            start = at + 1
    return [*parts, operands[start:].strip()] if operands.strip() else []


def mutants(base: str) -> Iterator[str]:
    """All mutants of a statement with one thing changed."""
    opcode, _, text = base.partition(" ")
    operands = split(text)

    def made(parts: list[str], words: str = opcode) -> str:
        return f"{words} {', '.join(parts)}"

    for at in range(len(operands) + 1):
        before, after = operands[:at], operands[at:]
        for other in OPERANDS:
            yield made([*before, other, *after[1:]])
        yield made([*before, "%r2", *after])
        yield made(before)
        if after:
            yield made([*before, *after[1:]])
            yield made([*before, after[0], *after])
            yield made([*before, *reversed(after)])
            if after[0][0] == "{":  # a vector with an element more, less, or of another kind
                inner = split(after[0][1:-1])
                for changed in (
                    inner[:-1],
                    [*inner, "%r2"],
                    ["%p1", *inner[1:]],
                    ["5", *inner[1:]],
                ):
                    yield made([*before, "{" + ", ".join(changed) + "}", *after[1:]])
    words = opcode.split(".")
    for at in range(len(words)):
        yield made(operands, ".".join([*words[:at], *words[at + 1 :]]) or "nop")
        for word in (*WORDS, *words[1:]):
            yield made(operands, ".".join([*words[: at + 1], word, *words[at + 1 :]]))
            if at:
                yield made(operands, ".".join([*words[:at], word, *words[at + 1 :]]))
    yield f"@%r2 {base}"
    yield f"@!%p1 {base}"
    yield f"@nosuch {base}"


def verdict(target: str, statement: str, check: bool = False) -> str | None:
    """How the emulator fails at a statement; None where it runs it, or says what is wrong."""
    text = HEAD.format(target=target) + f"{statement};" + TAIL.format()
    threads = 128 if "wgmma" in statement else 32
    return attempt(
        lambda: emulate(text, arguments=[bytes(64)], block=(threads,), check=check, limit=2000)
    ).finding


def tasks(plan: Plan) -> Sequence[Any]:
    return [None] * (plan.count or 500)


def run(task: Task) -> Result:
    """A batch of mutants, of all shapes equally."""
    random, found = Random(f"{task.seed}/{task.index}"), bases()
    size: int = task.parameters["batch"]
    findings: list[str] = []
    for number in range(size):
        target, base = found[(task.index * size + number) % len(found)]
        mutant = random.choice(list(mutants(base)))
        failed = verdict(target, mutant, check=number % 2 == 0)
        if failed is not None:
            findings.append(f"{mutant}: {failed}")
    return {"mutants": size, "findings": findings}


SWEEP = Sweep(tasks, run, {"batch": 100}, seconds=300.0)
