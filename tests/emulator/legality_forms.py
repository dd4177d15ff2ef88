# ruff: noqa: E501 - a template is one line
"""Spellings of memory, asynchronous and control instructions, as templates (PTX ISA 9.2).

`<a|b>` stands for either text, and templates may hold several such groups: every combination is a
form. Registers of the kernels that the forms are put in: %p (predicates), %h (16 bits), %r (32),
%f (f32), %d (64), %g (f64), %q (128), numbered from 0; `sh` is a variable in shared memory, `gl` in
global, `cn` in constant, `lo` in local memory, `par` a parameter of the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator


def expand(template: str) -> Iterator[str]:
    """All texts of a template."""
    end = template.find(">")
    if end < 0:
        yield template
        return
    start = template.rindex("<", 0, end)
    for choice in template[start + 1 : end].split("|"):
        yield from expand(template[:start] + choice + template[end + 1 :])


_SPACES = "<.global|.shared|.shared::cta|.shared::cluster|.local|>"
_STRONG = "<.relaxed|.acquire><.cta|.cluster|.gpu|.sys>"
_L1 = "<.L1::evict_normal|.L1::evict_unchanged|.L1::evict_first|.L1::evict_last|.L1::no_allocate>"
_WIDE_GLOBAL = "ld.global<|.nc><|.L1::no_allocate><|.L2::evict_last|.L2::evict_first>"
_EIGHT_R = "{%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}"
_EIGHT_F = "{%f0, %f1, %f2, %f3, %f4, %f5, %f6, %f7}"
_EIGHT_H = "{%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}"
_DIMS = (
    "{%r0}",
    "{%r0, %r1}",
    "{%r0, %r1, %r2}",
    "{%r0, %r1, %r2, %r3}",
    "{%r0, %r1, %r2, %r3, %r4}",
)
_MBAR = ".mbarrier::complete_tx::bytes"

FORMS: dict[str, tuple[str, ...]] = {
    "ld": (
        f"ld{_SPACES}.<b8|u8|s8> %r0, [%d0];",
        f"ld{_SPACES}.<b16|u16|s16> %h0, [%d0];",
        f"ld{_SPACES}.<b32|u32|s32> %r0, [%d0];",
        f"ld{_SPACES}.f32 %f0, [%d0];",
        f"ld{_SPACES}.<b64|u64|s64> %d1, [%d0];",
        f"ld{_SPACES}.f64 %g1, [%d0];",
        "ld<.global|.shared|.local|>.b128 %q0, [%d0];",
        f"ld{_SPACES}.<s8|u8|s16|u16|s32|u32> %d1, [%d0];",
        f"ld{_SPACES}.v2.<b8|u8> {{%r0, %r1}}, [%d0];",
        f"ld{_SPACES}.v4.<u8|s8> {{%h0, %h1, %h2, %h3}}, [%d0];",
        f"ld{_SPACES}.v4.u16 {{%h0, %h1, %h2, %h3}}, [%d0];",
        f"ld{_SPACES}.<weak.|volatile.|>v4.b32 {{%r0, %r1, %r2, %r3}}, [%d0];",
        f"ld{_SPACES}.v2.f64 {{%g0, %g1}}, [%d0];",
        f"ld<.global|.shared|>{_STRONG}.b32 %r0, [%d0];",
        f"ld{_STRONG}.global.v2.b64 {{%d0, %d1}}, [%d2];",
        "ld.global<.relaxed.gpu|.acquire.sys>.b128 %q0, [%d0];",
        "ld.mmio.relaxed.sys<.global|>.<u32|b8> %r0, [%d0];",
        "ld.volatile<.global|.shared|>.<b32|u8> %r0, [%d0];",
        "ld.global<.ca|.cg|.cs|.lu|.cv>.u32 %r0, [%d0];",
        f"ld.global{_L1}.u32 %r0, [%d0];",
        "ld.global.L2::<64B|128B|256B>.u32 %r0, [%d0];",
        "ld.global.L1::evict_last.L2::cache_hint.L2::128B.v4.f32 {%f0, %f1, %f2, %f3}, [%d0], %d1;",
        "ld<.global|>.L2::cache_hint.b64 %d2, [%d0], %d1;",
        "ld.global<.nc><|.L1::evict_first|.L1::no_allocate><|.L2::256B>.<u8|b32> %r0, [%d0];",
        "ld.global.nc<|.ca|.cg|.cs>.v4.u32 {%r0, %r1, %r2, %r3}, [%d0];",
        "ld.global.nc.L2::cache_hint.v2.b64 {%d1, %d2}, [%d0], %d3;",
        "ld.global.nc.b128 %q0, [%d0];",
        "ld<.global|>.u32 %r0, [%d0].unified;",
        f"{_WIDE_GLOBAL}.v8.<b32|u32|s32> {_EIGHT_R}, [%d0];",
        f"{_WIDE_GLOBAL}.v8.f32 {_EIGHT_F}, [%d0];",
        f"{_WIDE_GLOBAL}.v4.<b64|u64|s64> {{%d1, %d2, %d3, %d4}}, [%d0];",
        f"{_WIDE_GLOBAL}.v4.f64 {{%g1, %g2, %g3, %g4}}, [%d0];",
        "ld.global.v8.f32 {%f0, _, %f2, %f3, _, %f5, %f6, %f7}, [%d0+32];",
        "ld.const.<b32|u32> %r0, [cn<|+4>];",
        "ld.const.v2.u32 {%r0, %r1}, [%d0];",
        "ld.param<|::entry>.<u32|b8> %r0, [par<|+4>];",
        "ld.param.u64 %d0, [par];",
        "ld.shared.u32 %r0, [sh<|+8|+-0>];",
        "ld.shared.u32 %r0, [%r1<|+8|+-8>];",
        "ld.local.u32 %r0, [lo+4];",
        "ld.global.u32 %r0, [gl];",
        "ldu.global.<b32|u32|s32> %r0, [%d0];",
        "ldu.global.v4.f32 {%f0, %f1, %f2, %f3}, [%d0];",
        "ldu.global.b128 %q0, [%d0];",
        "ldu.b64 %d1, [%d0];",
    ),
    "st": (
        f"st{_SPACES}.<b8|u8|s8> [%d0], %r0;",
        f"st{_SPACES}.<b16|u16|s16> [%d0], %h0;",
        f"st{_SPACES}.<b32|u32|s32> [%d0], %r0;",
        f"st{_SPACES}.f32 [%d0], %f0;",
        f"st{_SPACES}.<b64|u64|s64> [%d0], %d1;",
        f"st{_SPACES}.f64 [%d0], %g1;",
        "st<.global|.shared|.local|>.b128 [%d0], %q0;",
        f"st{_SPACES}.<b8|b16|b32> [%d0], %d1;",
        f"st{_SPACES}.v2.b8 [%d0], {{%r0, %r1}};",
        f"st{_SPACES}.v4.u16 [%d0], {{%h0, %h1, %h2, %h3}};",
        f"st{_SPACES}.<weak.|volatile.|>v4.b32 [%d0], {{%r0, %r1, %r2, 7}};",
        f"st{_SPACES}.v2.f64 [%d0], {{%g0, %g1}};",
        "st<.global|.shared|><.relaxed|.release><.cta|.cluster|.gpu|.sys>.b32 [%d0], %r0;",
        "st.release.gpu.global.v2.b64 [%d2], {%d0, %d1};",
        "st.global<.relaxed.gpu|.release.sys>.b128 [%d0], %q0;",
        "st.mmio.relaxed.sys<.global|>.<u32|b8> [%d0], %r0;",
        "st.volatile<.global|.shared|>.<b32|u8> [%d0], %r0;",
        "st.global<.wb|.cg|.cs|.wt>.u32 [%d0], %r0;",
        f"st.global{_L1}.u32 [%d0], %r0;",
        "st.global.L1::no_allocate.L2::cache_hint.v4.f32 [%d0], {%f0, %f1, %f2, %f3}, %d1;",
        "st<.global|>.L2::cache_hint.b64 [%d0], %d2, %d1;",
        f"st.global<|.L1::no_allocate><|.L2::evict_last|.L2::evict_first>.v8.b32 [%d0], {_EIGHT_R};",
        f"st.global.v8.f32 [%d0], {_EIGHT_F};",
        "st.global.v4.<b64|u64|s64> [%d0], {%d1, %d2, %d3, %d4};",
        "st.global.v4.f64 [%d0], {%g1, %g2, %g3, %g4};",
        "st.global.v8.f32 [%d0+32], {%f0, _, %f2, %f3, _, %f5, %f6, %f7};",
        "st.shared.u32 [sh<|+8>], <%r0|5|-1>;",
        "st.shared.f32 [%r1<|+8|+-8>], <%f0|0f3F800000|1.5>;",
        "st.local.u32 [lo+4], %r0;",
        "st.global.u32 [gl], %r0;",
        "st.async<.weak|>" + _MBAR + ".u32 [%r0], %r1, [%r2];",
        "st.async.weak.shared::cluster" + _MBAR + ".<b32|u32|s32> [%r0], %r1, [%r2];",
        "st.async.shared::cluster" + _MBAR + ".<b64|u64|s64> [%r0], %d1, [%r2];",
        "st.async.weak.shared::cluster" + _MBAR + ".f32 [%r0], %f1, [%r2];",
        "st.async.shared::cluster" + _MBAR + ".f64 [%r0], %g1, [%r2];",
        "st.async.shared::cluster" + _MBAR + ".v2.<b32|u32> [%r0], {%r1, %r3}, [%r2];",
        "st.async.shared::cluster" + _MBAR + ".v4.f32 [%r0], {%f1, %f3, %f2, %f4}, [%r2];",
        "st.async.shared::cluster" + _MBAR + ".v2.b64 [%r0], {%d1, %d3}, [%r2];",
        "st.async<|.mmio>.release<.gpu|.sys><|.global>.<b32|u8> [%d0], %r0;",
        "st.async.release.sys.global.b64 [%d0], %d1;",
        "st.bulk<|.weak>.shared::cta [%r0], %d1, 0;",
        "st.bulk<|.weak> [%d0], %d1, 0;",
        "st.bulk.weak.shared::cta [sh], 1024, 0;",
    ),
    "atom": (
        "atom<.global|.shared|>.add.<u32|s32> %r0, [%d0], %r1;",
        "atom<.global|.shared|>.<min|max>.<u32|s32> %r0, [%d0], %r1;",
        "atom<.global|.shared|>.<min|max>.<u64|s64> %d1, [%d0], %d2;",
        "atom<.global|.shared|>.<inc|dec>.u32 %r0, [%d0], %r1;",
        "atom<.global|.shared|>.<and|or|xor|exch>.b32 %r0, [%d0], %r1;",
        "atom<.global|.shared|>.<and|or|xor|exch>.b64 %d1, [%d0], %d2;",
        "atom<.global|.shared|>.add.<u64> %d1, [%d0], %d2;",
        "atom<.global|.shared|>.cas.b16 %h0, [%d0], %h1, %h2;",
        "atom<.global|.shared|>.cas.b32 %r0, [%d0], %r1, %r2;",
        "atom<.global|.shared|>.cas.b64 %d1, [%d0], %d2, %d3;",
        "atom<.global|.shared|>.cas.b128 %q0, [%d0], %q1, %q2;",
        "atom<.global|.shared|>.exch.b128 %q0, [%d0], %q1;",
        "atom<.global|.shared|>.add.f32 %f0, [%d0], %f1;",
        "atom<.global|.shared|>.add.f64 %g1, [%d0], %g2;",
        "atom<.global|.shared|>.add.noftz.<f16|bf16> %h0, [%d0], %h1;",
        "atom<.global|.shared|>.add.noftz.<f16x2|bf16x2> %r0, [%d0], %r1;",
        "atom<.relaxed|.acquire|.release|.acq_rel><.cta|.cluster|.gpu|.sys>.global.add.u32 %r0, [%d0], %r1;",
        "atom<.acquire.gpu|.acq_rel.sys|.cta>.shared<|::cta|::cluster>.cas.b32 %r0, [%r3], %r1, %r2;",
        "atom.global.add.L2::cache_hint.u32 %r0, [%d0], %r1, %d1;",
        "atom.relaxed.gpu.global.exch.L2::cache_hint.b128 %q0, [%d0], %q1, %d1;",
        "atom.global<|.relaxed.gpu>.v2.f32.add {%f0, %f1}, [%d0], {%f2, %f3};",
        "atom.global.v4.f32.add {%f0, %f1, %f2, %f3}, [%d0], {%f2, %f3, %f4, %f5};",
        "atom.global.v2.<f16|bf16>.<add|min|max>.noftz {%h0, %h1}, [%d0], {%h2, %h3};",
        "atom.global.v4.<f16|bf16>.<add|min|max>.noftz {%h0, %h1, %h2, %h3}, [%d0], {%h2, %h3, %h4, %h5};",
        f"atom.global.v8.<f16|bf16>.<add|max>.noftz {_EIGHT_H}, [%d0], {_EIGHT_H};",
        "atom.global.v2.<f16x2|bf16x2>.<add|min|max>.noftz {%r0, %r1}, [%d0], {%r2, %r3};",
        "atom.global.v4.<f16x2|bf16x2>.<add|min|max>.noftz {%r0, %r1, %r2, %r3}, [%d0], {%r2, %r3, %r4, %r5};",
        "atom.add.L2::cache_hint.v2.f32 {%f0, %f1}, [%d0], {%f2, %f3}, %d1;",
        "atom.shared.add.u32 %r0, [sh+4], 1;",
        "atom.global.add.u32 _, [%d0], 1;",
    ),
    "red": (
        "red<.global|.shared|>.add.<u32|s32> [%d0], %r1;",
        "red<.global|.shared|>.<min|max>.<u32|s32> [%d0], %r1;",
        "red<.global|.shared|>.<min|max>.<u64|s64> [%d0], %d2;",
        "red<.global|.shared|>.<inc|dec>.u32 [%d0], %r1;",
        "red<.global|.shared|>.<and|or|xor>.b32 [%d0], %r1;",
        "red<.global|.shared|>.<and|or|xor>.b64 [%d0], %d2;",
        "red<.global|.shared|>.add.u64 [%d0], %d2;",
        "red<.global|.shared|>.add.f32 [%d0], %f1;",
        "red<.global|.shared|>.add.f64 [%d0], %g2;",
        "red<.global|.shared|>.add.noftz.<f16|bf16> [%d0], %h1;",
        "red<.global|.shared|>.add.noftz.<f16x2|bf16x2> [%d0], %r1;",
        "red<.relaxed|.release><.cta|.cluster|.gpu|.sys>.global.add.u32 [%d0], %r1;",
        "red.global.and.L2::cache_hint.b32 [%d0], %r1, %d1;",
        "red.global<|.release.gpu>.v2.f32.add [%d0], {%f2, %f3};",
        "red.global.v4.f32.add [%d0], {%f2, %f3, %f4, %f5};",
        "red.global.v2.<f16|bf16>.<add|min|max>.noftz [%d0], {%h2, %h3};",
        f"red.global.v8.<f16|bf16>.<add|min>.noftz [%d0], {_EIGHT_H};",
        "red.global.v4.<f16x2|bf16x2>.<add|min|max>.noftz [%d0], {%r2, %r3, %r4, %r5};",
        "red.add.L2::cache_hint.v2.f32 [%d0], {%f2, %f3}, %d1;",
        "red.async.relaxed.cluster<|.shared::cluster>"
        + _MBAR
        + ".<inc|dec|min|max|add>.u32 [%r0], %r1, [%r2];",
        "red.async.relaxed.cluster.shared::cluster"
        + _MBAR
        + ".<min|max|add>.s32 [%r0], %r1, [%r2];",
        "red.async.relaxed.cluster.shared::cluster"
        + _MBAR
        + ".<and|or|xor>.b32 [%r0], %r1, [%r2];",
        "red.async.relaxed.cluster.shared::cluster" + _MBAR + ".add.u64 [%r0], %d1, [%r2];",
        "red.async<|.mmio>.release<.gpu|.sys><|.global>.add.<u32|s32> [%d0], %r0;",
        "red.async.release.gpu.global.add.<u64|s64> [%d0], %d1;",
    ),
    "hints": (
        "prefetch<.global|.local|>.<L1|L2> [%d0];",
        "prefetch.global.L2::<evict_last|evict_normal> [%d0];",
        "prefetchu.L1 [%d0];",
        "prefetch<.const|.param|>.tensormap [%d0];",
        "applypriority<|.global>.L2::evict_normal [%d0], 128;",
        "discard<|.global>.L2 [%d0], 128;",
        "createpolicy.fractional.L2::<evict_last|evict_normal|evict_first|evict_unchanged>.b64 %d1<|, 0.5|, %f0>;",
        "createpolicy.fractional.L2::evict_last.L2::<evict_first|evict_unchanged>.b64 %d1, 1.0;",
        "createpolicy.range<|.global>.L2::evict_last.L2::evict_first.b64 %d1, [%d0], 4096, 8192;",
        "createpolicy.range.L2::evict_last.b64 %d1, [%d0], %r0, %r1;",
        "createpolicy.cvt.L2.b64 %d1, %d0;",
    ),
    "addresses": (
        "cvta<.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry>.u64 %d0, %d1;",
        "cvta.to<.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry>.u64 %d0, %d1;",
        "cvta.shared.u64 %d0, sh<|+4>;",
        "cvta.global.u64 %d0, gl<|+4>;",
        "cvta.const.u64 %d0, cn;",
        "cvta.local.u64 %d0, lo;",
        "cvta.param.u64 %d0, par;",
        "isspacep<.const|.global|.local|.shared|.shared::cta|.shared::cluster|.param|.param::entry> %p0, %d0;",
        "mapa<|.shared::cluster>.u64 %d0, %d1, %r0;",
        "mapa.shared::cluster.u32 %r1, <%r2|sh|sh+4>, <%r0|1>;",
        "getctarank<|.shared::cluster>.u64 %r0, %d1;",
        "getctarank.shared::cluster.u32 %r0, <%r1|sh|sh+4>;",
        "alloca.u64 %d0, <%d1|64><|, 16>;",
        "stacksave.u64 %d0;",
        "stackrestore.u64 %d0;",
        "mov.u64 %d0, <sh|gl|cn|lo|gl+4>;",
        "mov.u32 %r0, <sh|sh+4>;",
        "mov.b128 %q0, {%d0, %d1};",
        "mov.b128 {%d0, %d1}, %q0;",
        "mov.b128 %q0, %q1;",
    ),
    "cp.async": (
        "cp.async.ca.shared<|::cta>.global [%r0], [%d0], <4|8|16>;",
        "cp.async.cg.shared<|::cta>.global [%r0], [%d0], 16;",
        "cp.async.<ca|cg>.shared.global<|.L2::64B|.L2::128B|.L2::256B> [%r0+16], [%d0+16], 16, <%r1|8|0|%p0|!%p0>;",
        "cp.async.<ca|cg>.shared.global.L2::cache_hint [%r0], [%d0], 16<|, %r1|, %p0>, %d1;",
        "cp.async.cg.shared.global.L2::cache_hint.L2::128B [sh], [gl], 16, %d1;",
        "cp.async.commit_group;",
        "cp.async.wait_group <0|3>;",
        "cp.async.wait_all;",
        "cp.async.mbarrier.arrive<|.noinc><|.shared|.shared::cta>.b64 [<%d0|sh>];",
    ),
    "bulk": (
        "cp.async.bulk.shared::<cta|cluster>.global" + _MBAR + " [%r0], [%d0], <%r1|64>, [%r2];",
        "cp.async.bulk.shared::<cta|cluster>.global"
        + _MBAR
        + ".L2::cache_hint [%r0], [%d0], %r1, [%r2], %d1;",
        "cp.async.bulk.shared::cluster.global"
        + _MBAR
        + ".multicast::cluster<|.L2::cache_hint> [%r0], [%d0], %r1, [%r2], %h0;",
        "cp.async.bulk.shared::cluster.global"
        + _MBAR
        + ".multicast::cluster.L2::cache_hint [%r0], [%d0], %r1, [%r2], %h0, %d1;",
        "cp.async.bulk.shared::cluster.shared::cta" + _MBAR + " [%r0], [%r3], %r1, [%r2];",
        "cp.async.bulk.global.shared::cta.bulk_group<|.L2::cache_hint> [%d0], [%r0], %r1;",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%d0], [%r0], %r1, %d1;",
        "cp.async.bulk.global.shared::cta.bulk_group.cp_mask [%d0], [%r0], %r1, %h0;",
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.cp_mask [%d0], [%r0], %r1, %d1, %h0;",
        "cp.async.bulk.shared::<cta|cluster>.global"
        + _MBAR
        + ".ignore_oob [%r0], [%d0], %r1, %r3, %r4, [%r2];",
        "cp.async.bulk.shared::cta.global"
        + _MBAR
        + ".ignore_oob.L2::cache_hint [%r0], [%d0], %r1, %r3, %r4, [%r2], %d1;",
        "cp.async.bulk.prefetch.L2.global [%d0], <%r1|64>;",
        "cp.async.bulk.prefetch.L2.global.L2::cache_hint [%d0], %r1, %d1;",
        "cp.async.bulk.commit_group;",
        "cp.async.bulk.wait_group<|.read> <0|2>;",
        "cp.reduce.async.bulk.shared::cluster.shared::cta"
        + _MBAR
        + ".<and|or|xor>.b32 [%r0], [%r3], %r1, [%r2];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta"
        + _MBAR
        + ".<add|min|max|inc|dec>.u32 [%r0], [%r3], %r1, [%r2];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta"
        + _MBAR
        + ".<add|min|max>.s32 [%r0], [%r3], %r1, [%r2];",
        "cp.reduce.async.bulk.shared::cluster.shared::cta"
        + _MBAR
        + ".add.u64 [%r0], [%r3], %r1, [%r2];",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.<and|or|xor>.<b32|b64> [%d0], [%r0], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.<add|min|max>.<u32|s32|u64|s64> [%d0], [%r0], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.<inc|dec>.u32 [%d0], [%r0], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.<min|max>.<f16|bf16> [%d0], [%r0], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.<f16|bf16> [%d0], [%r0], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group<|.L2::cache_hint>.add.<f32|f64> [%d0], [%r0], %r1;",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f32 [%d0], [%r0], %r1, %d1;",
    ),
    "tensor": (
        *(
            f"cp.async.bulk.tensor.{n}d.shared::<cluster|cta>.global<|.tile>{_MBAR} [%r0], [%d0, {c}], [%r2];"
            for n, c in enumerate(_DIMS, 1)
        ),
        *(
            f"cp.async.bulk.tensor.{n}d.global.shared::cta<|.tile>.bulk_group [%d0, {c}], [%r0];"
            for n, c in enumerate(_DIMS, 1)
        ),
        f"cp.async.bulk.tensor.2d.shared::cluster.global.tile{_MBAR}.multicast::cluster [%r0], [%d0, {_DIMS[1]}], [%r2], %h0;",
        f"cp.async.bulk.tensor.2d.shared::cluster.global.tile{_MBAR}.multicast::cluster.L2::cache_hint [%r0], [%d0, {_DIMS[1]}], [%r2], %h0, %d1;",
        f"cp.async.bulk.tensor.2d.shared::cluster.global.tile{_MBAR}<|.cta_group::1|.cta_group::2>.L2::cache_hint [%r0], [%d0, {_DIMS[1]}], [%r2], %d1;",
        f"cp.async.bulk.tensor.2d.shared::<cluster|cta>.global.tile::gather4{_MBAR} [%r0], [%d0, {_DIMS[4]}], [%r2];",
        f"cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%d0, {_DIMS[4]}], [%r0];",
        f"cp.async.bulk.tensor.3d.shared::cluster.global.im2col{_MBAR} [%r0], [%d0, {_DIMS[2]}], [%r2], {{%h0}};",
        f"cp.async.bulk.tensor.4d.shared::cluster.global.im2col{_MBAR} [%r0], [%d0, {_DIMS[3]}], [%r2], {{%h0, %h1}};",
        f"cp.async.bulk.tensor.5d.shared::cluster.global.im2col{_MBAR} [%r0], [%d0, {_DIMS[4]}], [%r2], {{%h0, %h1, %h2}};",
        f"cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w{_MBAR} [%r0], [%d0, {_DIMS[3]}], [%r2], {{%h0, %h1}};",
        f"cp.async.bulk.tensor.4d.shared::cluster.global.im2col::w::128{_MBAR} [%r0], [%d0, {_DIMS[3]}], [%r2], {{%h0, %h1}};",
        f"cp.async.bulk.tensor.4d.global.shared::cta.im2col_no_offs.bulk_group [%d0, {_DIMS[3]}], [%r0];",
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.<add|min|max|inc|dec|and|or|xor><|.tile>.bulk_group [%d0, {_DIMS[1]}], [%r0];",
        f"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group.L2::cache_hint [%d0, {_DIMS[1]}], [%r0], %d1;",
        f"cp.reduce.async.bulk.tensor.4d.global.shared::cta.add.im2col_no_offs.bulk_group [%d0, {_DIMS[3]}], [%r0];",
        f"cp.async.bulk.prefetch.tensor.2d.L2.global<|.tile> [%d0, {_DIMS[1]}];",
        f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile.L2::cache_hint [%d0, {_DIMS[1]}], %d1;",
        f"cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 [%d0, {_DIMS[4]}];",
        f"cp.async.bulk.prefetch.tensor.4d.L2.global.im2col [%d0, {_DIMS[3]}], {{%h0, %h1}};",
        "tensormap.replace.tile.global_address<.global|.shared::cta|>.b1024.b64 [%d0], %d1;",
        "tensormap.replace.tile.rank<.global|.shared::cta|>.b1024.b32 [%d0], <%r0|1>;",
        "tensormap.replace.tile.<box_dim|global_dim|element_stride><.global|.shared::cta|>.b1024.b32 [%d0], <0|4>, <%r0|64>;",
        "tensormap.replace.tile.global_stride<.global|.shared::cta|>.b1024.b64 [%d0], <0|3>, %d1;",
        "tensormap.replace.tile.<elemtype|interleave_layout|swizzle_mode|fill_mode><.global|.shared::cta|>.b1024.b32 [%d0], <0|1>;",
        "tensormap.replace.tile.swizzle_atomicity.shared::cta.b1024.b32 [%d0], 0;",
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.<cta|cluster|gpu|sys>.sync.aligned [%d0], [%r0], 128;",
    ),
    "mbarrier": (
        "mbarrier.init<|.shared|.shared::cta>.b64 [<%d0|sh>], <%r0|12>;",
        "mbarrier.inval<|.shared|.shared::cta>.b64 [%d0];",
        "mbarrier.<expect_tx|complete_tx><|.relaxed.cta|.relaxed.cluster><|.shared|.shared::cta|.shared::cluster>.b64 [%d0], <%r0|16>;",
        "mbarrier.<arrive|arrive_drop><|.shared|.shared::cta>.b64 <%d1|_>, [%d0]<|, %r0|, 3>;",
        "mbarrier.<arrive|arrive_drop><|.release|.relaxed><.cta|.cluster><|.shared::cta>.b64 %d1, [%d0]<|, 1>;",
        "mbarrier.<arrive|arrive_drop><|.release.cluster|.relaxed.cluster>.shared::cluster.b64 _, [%r0]<|, 2>;",
        "mbarrier.<arrive|arrive_drop>.expect_tx<|.release.cta|.relaxed.cluster><|.shared|.shared::cta>.b64 <%d1|_>, [%d0], %r0;",
        "mbarrier.<arrive|arrive_drop>.expect_tx<|.release.cluster|.relaxed.cluster>.shared::cluster.b64 _, [%r1], 64;",
        "mbarrier.<arrive|arrive_drop>.noComplete<|.release.cta><|.shared|.shared::cta>.b64 %d1, [%d0], <%r0|1>;",
        "mbarrier.<test_wait|try_wait><|.acquire.cta|.acquire.cluster|.relaxed.cta|.relaxed.cluster><|.shared|.shared::cta>.b64 %p0, [%d0], %d1;",
        "mbarrier.<test_wait|try_wait>.parity<|.acquire.cta|.acquire.cluster|.relaxed.cluster><|.shared|.shared::cta>.b64 %p0, [%d0], <%r1|1>;",
        "mbarrier.try_wait<|.shared::cta>.b64 %p0, [%d0], %d1, <%r0|1000>;",
        "mbarrier.try_wait.parity.shared::cta.b64 %p0, [%d0], %r1, <%r0|1000>;",
        "mbarrier.pending_count.b64 %r0, %d0;",
    ),
    "barriers": (
        "bar<|.cta>.sync <0|%r0><|, 64|, %r1>;",
        "bar<|.cta>.arrive <0|%r0>, <64|%r1>;",
        "bar<|.cta>.red.popc.u32 %r0, <0|%r1><|, 64>, <%p0|!%p0>;",
        "bar<|.cta>.red.<and|or>.pred %p1, <0|%r1><|, 64>, <%p0|!%p0>;",
        "barrier<|.cta>.sync<|.aligned> <0|%r0><|, 64|, %r1>;",
        "barrier<|.cta>.arrive<|.aligned> 0, 64;",
        "barrier<|.cta>.red.popc<|.aligned>.u32 %r0, 0<|, 64>, %p0;",
        "barrier<|.cta>.red.<and|or><|.aligned>.pred %p1, 0<|, 64>, <%p0|!%p0>;",
        "barrier.cluster.arrive<|.release|.relaxed><|.aligned>;",
        "barrier.cluster.wait<|.acquire><|.aligned>;",
        "bar.warp.sync <%r0|0xffffffff>;",
        "membar.<cta|gl|sys>;",
        "fence<|.sc|.acq_rel|.acquire|.release>.<cta|cluster|gpu|sys>;",
        "fence.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.release.sync_restrict::shared::cta.cluster;",
        "fence.mbarrier_init.release.cluster;",
        "<fence|membar>.proxy.<alias|async|async.global|async.shared::cta|async.shared::cluster>;",
        "fence.proxy.tensormap::generic.release.<cta|cluster|gpu|sys>;",
        "fence.proxy.tensormap::generic.acquire.<cta|cluster|gpu|sys> [%d0], 128;",
        "fence.proxy.async::generic.acquire.sync_restrict::shared::cluster.cluster;",
        "fence.proxy.async::generic.release.sync_restrict::shared::cta.cluster;",
        "griddepcontrol.<launch_dependents|wait>;",
        "clusterlaunchcontrol.try_cancel.async<|.shared::cta>"
        + _MBAR
        + "<|.multicast::cluster::all>.b128 [%r0], [%r1];",
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p0, %q0;",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%r0, %r1, %r2, _}, %q0;",
        "clusterlaunchcontrol.query_cancel.get_first_ctaid::<x|y|z>.b32.b128 %r0, %q0;",
        "setmaxnreg.<inc|dec>.sync.aligned.u32 <24|232>;",
    ),
    "control": (
        "nanosleep.u32 <%r0|100>;",
        "pmevent <0|15>;",
        "pmevent.mask 3;",
        "trap;",
        "brkpt;",
        "exit;",
        "ret<|.uni>;",
        "elect.sync <%r0|_>|%p0, <%r1|0xffffffff>;",
        "activemask.b32 %r0;",
        "@<%p0|!%p0> bra<|.uni> END;",
        "@%p0 exit;",
        "@%p0 trap;",
    ),
    "special": (
        "mov.u32 %r0, %<tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid>.<x|y|z|w>;",
        "mov.u32 %r0, %<laneid|warpid|nwarpid|smid|nsmid|cluster_ctarank|cluster_nctarank>;",
        "mov.u32 %r0, %lanemask_<eq|le|lt|ge|gt>;",
        "mov.u32 %r0, %<clock|clock_hi|globaltimer_lo|globaltimer_hi>;",
        "mov.u64 %d0, %<clock64|globaltimer|gridid|current_graph_exec>;",
        "mov.u32 %r0, %<total_smem_size|aggr_smem_size|dynamic_smem_size>;",
        "mov.b32 %r0, %reserved_smem_<offset_begin|offset_end|offset_cap|offset_0|offset_1>;",
        "mov.b32 %r0, %envreg<0|31>;",
        "mov.u32 %r0, %pm<0|7>;",
        "mov.u64 %d0, %pm<0|7>_64;",
        "mov.pred %p0, %is_explicit_cluster;",
        "mov.v4.u32 {%r0, %r1, %r2, %r3}, %<tid|ntid|ctaid|nctaid>;",
    ),
    "not there": (
        "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%d0];",
        "multimem.red.release.gpu.global.add.v4.f32 [%d0], {%f0, %f1, %f2, %f3};",
        "multimem.st.weak.global.b32 [%d0], %r0;",
        "istypep.<texref|surfref> %p0, %d0;",
        "tex.2d.v4.f32.f32 {%f0, %f1, %f2, %f3}, [%d0, {%f4, %f5}];",
        "txq.width.b32 %r0, [%d0];",
        "suld.b.2d.b32.trap {%r0}, [%d0, {%r1, %r2}];",
        "sust.b.1d.b32.trap [%d0, {%r1}], {%r0};",
    ),
    "tensor memory": (
        "tcgen05.alloc.cta_group::<1|2>.sync.aligned<.shared::cta|>.b32 [%d0], <32|512>;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;",
        "tcgen05.relinquish_alloc_permit.cta_group::<1|2>.sync.aligned;",
        "tcgen05.ld.sync.aligned.<32x32b|16x64b>.x2<.pack::16b|>.b32 {%r0, %r1}, [%r2];",
        "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r0}, [%r2], 8;",
        "tcgen05.st.sync.aligned.<32x32b|16x64b>.x2<.unpack::16b|>.b32 [%r2], {%r0, %r1};",
        "tcgen05.wait::<ld|st>.sync.aligned;",
        "tcgen05.fence::<before|after>_thread_sync;",
        "tcgen05.cp.cta_group::1.<128x256b|4x256b|128x128b><|.b8x16.b6x16_p32|.b8x16.b4x16_p64> [%r0], %d0;",
        "tcgen05.cp.cta_group::2.<64x128b.warpx2::02_13|64x128b.warpx2::01_23|32x128b.warpx4> [%r0], %d0;",
        "tcgen05.shift.cta_group::1.down [%r0];",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one<.shared::cluster|>.b64 [%d0];",
        "tcgen05.mma<|.ws>.cta_group::1.kind::<f16|tf32|f8f6f4|i8> [%r0], %d0, %d1, %r2, 1;",
        "tcgen05.mma<|.ws>.sp.cta_group::1.kind::<f16|tf32|f8f6f4|i8> [%r0], %d0, %d1, [%r1], %r2, 1;",
    ),
}

#: Patterns of forms that ptxas takes and the emulator refuses, and why.
REFUSED: dict[str, str] = {
    r"^multimem": "memory of several GPUs",
    r"^(istypep|tex|txq|suld|sust)": "textures and surfaces",
    r"im2col::w": "the wide modes of im2col are described by figures only",
}
#: Patterns of forms that ptxas takes and the emulator does not, being no sensible spelling.
STRICT: dict[str, str] = {
    r"^tcgen05.*\.(b8x16|b6x16_p32|b4x16_p64)": "types of a decompression where there is none",
    r"^(mapa|getctarank)\.([us]32|s64)": "generic addresses of 32 bits, signed ones",
    r"^cp\.async\.(L2|shared|global|bulk_group|mbarrier)": "modifiers before .ca and .bulk",
    r"^(tensormap\.replace|barrier|bar|st|fence|mbarrier)\..*": "modifiers within the name, or twice",
}
#: Patterns of forms that ptxas refuses and the emulator takes, and why.
LAX: dict[str, str] = {
    r"^st\.async.*\.u8 ": "a .b32 register for .u8, which st itself takes",
    r"^st\.bulk.*\[sh\]": "ptxas wants the address in a register",
    r"^(ld|st)\.[^ ]* .*\[(par|gl|cn|lo|sh)\b": "the space of a variable goes before that of the opcode",
    r"^cvta\.[^ ]* %d0, (par|gl|cn|lo|sh)\b": "the same",
}
