"""Versions and targets of the opcodes around the tensor cores: data, for `fragir.isa.versions`.

A line is an opcode with some of its qualifiers, a PTX version, the lowest target or a name of
`EXACT`, and a target that got it in a later version than the others.
"""

from __future__ import annotations

from collections.abc import Mapping

from fragir.ptx.targets import MACHINES, targets_with

# Available everywhere from PTX 6.0 on, as far as no rule below says otherwise.
BASE = frozenset(
    (
        "abs add addc and atom bar barrier bfe bfi bfind bra brev brkpt call clz cnot copysign "
        "cos cvt cvta div dp2a dp4a ex2 exit fence fma isspacep ld ldu lg2 lop3 mad mad24 madc "
        "match max membar min mov mul mul24 neg not or pmevent popc prefetch prefetchu prmt rcp "
        "red rem ret rsqrt sad selp set setp shf shfl shl shr sin slct sqrt st sub subc suld "
        "suq sured sust tex testp tld4 trap txq vote xor fns istypep "
        "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset "
        "vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 "
        "vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4"
    ).split()
)

_RULES = """
activemask 6.2 sm_70
nanosleep 6.2 sm_70
alloca 7.3 sm_70
stacksave 7.3 sm_70
stackrestore 7.3 sm_70
szext 7.6 sm_70
lop3.and 8.2 sm_70
lop3.or 8.2 sm_70
bmsk 7.6 sm_70
cvta.param 7.7 sm_70
cvta.param::entry 8.3 sm_70
cvta.shared::cta 7.8 sm_70
cvta.shared::cluster 7.8 sm_90
mov.b128 8.3 sm_70
membar.proxy 7.5 sm_70
membar.proxy.async 8.0 sm_90
clmad 9.3 sm_80

cp.async 7.0 sm_80
cp.async.L2::cache_hint 7.4 sm_80
cp.async.L2::64B 7.4 sm_80
cp.async.L2::128B 7.4 sm_80
cp.async.L2::256B 7.4 sm_80
cp.async.ignore-src 7.5 sm_80
cp.async.mbarrier 7.0 sm_80
cp.async.mbarrier.shared::cta 7.8 sm_80
cp.async.bulk 8.0 sm_90
cp.async.bulk.shared::cta.global 8.6 sm_90
cp.async.bulk.cta_group::1 8.6 server
cp.async.bulk.cta_group::2 8.6 server
cp.async.bulk.ignore_oob 9.2 sm_90
cp.async.bulk.cp_mask 8.6 sm_100
cp.async.bulk.shared::cta.tile::gather4 8.6 sm_100
cp.async.bulk.shared::cluster.tile::gather4 8.6 server
cp.async.bulk.prefetch.tile::gather4 8.6 server
cp.async.bulk.tile::scatter4 8.6 server
cp.async.bulk.shared::cluster.im2col::w 8.6 server
cp.async.bulk.shared::cluster.im2col::w::128 8.6 server
cp.async.bulk.shared::cta.im2col::w 8.6 sm_100
cp.async.bulk.shared::cta.im2col::w::128 8.6 server
cp.async.bulk.prefetch.im2col::w 8.6 server
cp.async.bulk.prefetch.im2col::w::128 8.6 server
cp.reduce.async.bulk 8.0 sm_90
prefetch.tensormap 8.0 sm_90
prefetch.L2::evict_last 7.4 sm_80
prefetch.L2::evict_normal 7.4 sm_80
tensormap.replace 8.3 exact
tensormap.replace.swizzle_atomicity 8.6 blackwell
tensormap.cp_fenceproxy 8.3 sm_90
clusterlaunchcontrol 8.6 sm_100
clusterlaunchcontrol.multicast::cluster::all 8.6 blackwell
discard 7.4 sm_80
applypriority 7.4 sm_80
createpolicy 7.4 sm_80

mbarrier 7.0 sm_80
mbarrier.shared::cta 7.8 sm_80
mbarrier.shared::cluster 8.0 sm_90
mbarrier.arrive.release 8.0 sm_80
mbarrier.arrive.release.cluster 8.0 sm_90
mbarrier.arrive.sink 7.1 sm_80
mbarrier.arrive.count 7.8 sm_90
mbarrier.arrive.relaxed 8.6 sm_90
mbarrier.arrive.expect_tx 8.0 sm_90
mbarrier.arrive_drop.release 8.0 sm_80
mbarrier.arrive_drop.release.cluster 8.0 sm_90
mbarrier.arrive_drop.count 7.8 sm_90
mbarrier.arrive_drop.relaxed 8.6 sm_90
mbarrier.arrive_drop.expect_tx 8.0 sm_90
mbarrier.expect_tx 8.0 sm_90
mbarrier.complete_tx 8.0 sm_90
mbarrier.test_wait.parity 7.1 sm_80
mbarrier.test_wait.acquire 8.0 sm_80
mbarrier.test_wait.acquire.cluster 8.0 sm_90
mbarrier.test_wait.relaxed 8.6 sm_90
mbarrier.try_wait 7.8 sm_90
mbarrier.try_wait.acquire 8.0 sm_90
mbarrier.try_wait.relaxed 8.6 sm_90

fence.cluster 7.8 sm_90
fence.!proxy.!mbarrier_init.acquire 8.6 sm_90
fence.!proxy.!mbarrier_init.release 8.6 sm_90
fence.proxy 7.5 sm_70
fence.proxy.async 8.0 sm_90
fence.mbarrier_init 8.0 sm_90
fence.proxy.tensormap::generic 8.3 sm_90
fence.proxy.async::generic 8.6 sm_90

setmaxnreg 8.0 exact
griddepcontrol 7.8 sm_90
elect.sync 8.0 sm_90
redux.sync 7.0 sm_80
redux.sync.f32 8.6 sm100
bar.cta 7.8 sm_70
barrier.cta 7.8 sm_70
barrier.cluster 7.8 sm_90
barrier.cluster.release 8.0 sm_90
barrier.cluster.relaxed 8.0 sm_90
barrier.cluster.acquire 8.0 sm_90
mapa 7.8 sm_90
getctarank 7.8 sm_90
isspacep.param 7.7 sm_70
isspacep.param::entry 8.3 sm_70
isspacep.shared::cta 7.8 sm_70
isspacep.shared::cluster 7.8 sm_90
%clusterid 7.8 sm_90
%nclusterid 7.8 sm_90
%cluster_ctaid 7.8 sm_90
%cluster_nctaid 7.8 sm_90
%cluster_ctarank 7.8 sm_90
%cluster_nctarank 7.8 sm_90
%is_explicit_cluster 7.8 sm_90
%aggr_smem_size 8.1 sm_90
%current_graph_exec 8.0 sm_70
%reserved_smem_offset_begin 7.6 sm_80
%reserved_smem_offset_end 7.6 sm_80
%reserved_smem_offset_cap 7.6 sm_80
%reserved_smem_offset_0 7.6 sm_80
%reserved_smem_offset_1 7.6 sm_80

wgmma.fence 8.0 hopper
wgmma.commit_group 8.0 hopper
wgmma.wait_group 8.0 hopper
tcgen05 8.6 server
tcgen05.alloc.exclusive 9.4 server
tcgen05.dealloc.exclusive 9.4 server
tcgen05.ld.red 8.8 reducing
tcgen05.ld.spcompress 9.4 ti16_a
tcgen05.commit.multicast::cluster::16b 9.4 server
tcgen05.commit.multicast::cluster::32b 9.4 ti16
tcgen05.commit.sync_restrict::shared::read::mma::a 9.4 ti16
tcgen05.shift 8.6 server_a
tcgen05.mma.kind::i8 8.6 server_i8
tcgen05.mma.kind::ti16 9.4 ti16
tcgen05.mma.kind::mxf4nvf4 8.7 server
tcgen05.mma.scale_vec::1X 8.6 server_a
tcgen05.mma.scale_vec::2X 8.6 server_a
tcgen05.mma.scale_vec::4X 8.6 server_a
tcgen05.mma.block16 8.8 server
tcgen05.mma.block32 8.8 server
tcgen05.mma.sp.kind::mxf4 8.6 server_a
tcgen05.mma.sp.kind::mxf4nvf4 8.7 server_a
tcgen05.mma.scale-input-d 8.6 sm100
tcgen05.mma.decompress::lut::b 9.4 ti16
tcgen05.mma.collector::b::fill 9.4 ti16
tcgen05.mma.collector::b::use 9.4 ti16
tcgen05.mma.collector::b::lastuse 9.4 ti16
tcgen05.mma.collector::b::discard 9.4 ti16

ld.shared::cta 7.8 sm_70
ld.shared::cluster 7.8 sm_90
ld.cluster 7.8 sm_90
ld.v8 8.8 sm_100
ld.v4.b64 8.8 sm_100
ld.v4.u64 8.8 sm_100
ld.v4.s64 8.8 sm_100
ld.v4.f64 8.8 sm_100
ld.b128 8.3 sm_70
ld.sys.b128 8.4 sm_70
ld.mmio 8.2 sm_70
ld.param::entry 8.3 sm_70
ld.local.volatile 9.1 sm_75
ld.volatile.local 9.1 sm_75
ldu.b128 8.3 sm_70
ld.L1::evict_normal 7.4 sm_70
ld.L1::evict_unchanged 7.4 sm_70
ld.L1::evict_first 7.4 sm_70
ld.L1::evict_last 7.4 sm_70
ld.L1::no_allocate 7.4 sm_70
ld.L2::64B 7.4 sm_75
ld.L2::128B 7.4 sm_75
ld.L2::256B 7.4 sm_80
ld.L2::cache_hint 7.4 sm_80
st.shared::cta 7.8 sm_70
st.shared::cluster 7.8 sm_90
st.cluster 7.8 sm_90
st.v8 8.8 sm_100
st.v4.b64 8.8 sm_100
st.v4.u64 8.8 sm_100
st.v4.s64 8.8 sm_100
st.v4.f64 8.8 sm_100
st.b128 8.3 sm_70
st.sys.b128 8.4 sm_70
st.mmio 8.2 sm_70
st.local.volatile 9.1 sm_75
st.volatile.local 9.1 sm_75
st.L1::evict_normal 7.4 sm_70
st.L1::evict_unchanged 7.4 sm_70
st.L1::evict_first 7.4 sm_70
st.L1::evict_last 7.4 sm_70
st.L1::no_allocate 7.4 sm_70
st.L2::cache_hint 7.4 sm_80
st.async 8.1 sm_90
st.async.release 8.7 sm_100
st.bulk 8.6 sm_100
red.async 8.1 sm_90
red.async.release 8.7 sm_100
red.cluster 7.8 sm_90
red.L2::cache_hint 7.4 sm_80
red.shared::cta 7.8 sm_70
red.shared::cluster 7.8 sm_90
red.noftz.f16x2 6.2 sm_70
red.noftz.f16 6.3 sm_70
red.noftz.bf16 7.8 sm_90
red.noftz.bf16x2 7.8 sm_90
red.v2 8.1 sm_90
red.v4 8.1 sm_90
red.v8 8.1 sm_90
atom.shared::cta 7.8 sm_70
atom.shared::cluster 7.8 sm_90
atom.noftz.f16x2 6.2 sm_70
atom.noftz.f16 6.3 sm_70
atom.noftz.bf16 7.8 sm_90
atom.noftz.bf16x2 7.8 sm_90
atom.v2 8.1 sm_90
atom.v4 8.1 sm_90
atom.v8 8.1 sm_90
atom.cluster 7.8 sm_90
atom.L2::cache_hint 7.4 sm_80
atom.cas.b16 6.3 sm_70
atom.b128 8.3 sm_90
multimem 8.1 sm_90
multimem.acc::f32 8.2 sm_90
multimem.cp 9.1 sm_90
multimem.e4m3x4 8.6 multimem
multimem.e5m2x4 8.6 multimem

cvt.relu 7.0 sm_80
cvt.satfinite.bf16.f32 8.1 sm_80
cvt.satfinite.f16.f32 8.1 sm_70
cvt.satfinite.tf32.f32 8.1 sm_80
cvt.satfinite.f16x2.f32 8.1 sm_80
cvt.satfinite.bf16x2.f32 8.1 sm_80
cvt.f16x2.f32 7.0 sm_80
cvt.bf16x2.f32 7.0 sm_80
cvt.bf16.f32 7.0 sm_80
cvt.f32.bf16 7.1 sm_80
cvt.rna.tf32.f32 7.0 sm_80
cvt.rn.tf32.f32 7.8 sm_90
cvt.rz.tf32.f32 7.8 sm_90
cvt.rn.satfinite.tf32.f32 8.6 sm_100
cvt.rz.satfinite.tf32.f32 8.6 sm_100
cvt.rn.relu.satfinite.tf32.f32 8.6 sm_100
cvt.rs 8.7 rs
cvt.ftz.f32.bf16 7.8 sm_90
cvt.s2f6x2 9.1 accelerated
cvt.!s2f6x2.scaled::n2::ue8m0 9.2 blackwell
cvt.bf16.bf16 7.8 sm_90
cvt.e4m3x2 7.8 sm_89 sm_89=8.1
cvt.e5m2x2 7.8 sm_89 sm_89=8.1
cvt.e4m3x2.bf16x2 9.1 blackwell
cvt.e5m2x2.bf16x2 9.1 blackwell
cvt.bf16x2.e4m3x2 9.2 blackwell
cvt.bf16x2.e5m2x2 9.2 blackwell
cvt.e3m2x2 8.6 blackwell
cvt.e2m3x2 8.6 blackwell
cvt.e2m1x2 8.6 blackwell
cvt.e3m2x2.f16x2 9.1 blackwell
cvt.e3m2x2.bf16x2 9.1 blackwell
cvt.e2m3x2.f16x2 9.1 blackwell
cvt.e2m3x2.bf16x2 9.1 blackwell
cvt.e2m1x2.f16x2 9.1 blackwell
cvt.e2m1x2.bf16x2 9.1 blackwell
cvt.bf16x2.e3m2x2 9.2 blackwell
cvt.bf16x2.e2m3x2 9.2 blackwell
cvt.bf16x2.e2m1x2 9.2 blackwell
cvt.ue8m0x2 8.6 blackwell
cvt.pack 6.5 sm_72
cvt.pack.u4 6.5 sm_75
cvt.pack.s4 6.5 sm_75
cvt.pack.u2 6.5 sm_75
cvt.pack.s2 6.5 sm_75

add.bf16 7.8 sm_90
add.bf16x2 7.8 sm_90
sub.bf16 7.8 sm_90
sub.bf16x2 7.8 sm_90
mul.bf16 7.8 sm_90
mul.bf16x2 7.8 sm_90
add.f32x2 8.6 sm_100
sub.f32x2 8.6 sm_100
mul.f32x2 8.6 sm_100
fma.f32x2 8.6 sm_100
fma.bf16 7.0 sm_80
fma.bf16x2 7.0 sm_80
fma.relu 7.0 sm_80
fma.oob 8.1 sm_90
add.f32.f16 8.6 sm_100
add.f32.bf16 8.6 sm_100
sub.f32.f16 8.6 sm_100
sub.f32.bf16 8.6 sm_100
fma.f32.f16 8.6 sm_100
fma.f32.bf16 8.6 sm_100
abs.f16 6.5 sm_70
abs.f16x2 6.5 sm_70
abs.bf16 7.0 sm_80
abs.bf16x2 7.0 sm_80
neg.bf16 7.0 sm_80
neg.bf16x2 7.0 sm_80
add.s16x2 8.0 sm_90
add.u16x2 8.0 sm_90
sub.s16x2 6.0 sm_75
sub.u16x2 6.0 sm_75
neg.s16x2 6.0 sm_75
add.sat.s16x2 9.2 packed
add.sat.u16x2 9.2 packed
add.s8x4 9.2 packed
add.u8x4 9.2 packed
sub.sat.s16x2 9.2 packed
sub.sat.u16x2 9.2 packed
sub.s8x4 9.2 packed
sub.u8x4 9.2 packed
neg.sat.s16x2 9.2 packed
neg.s8x4 9.2 packed
setp.bf16 7.8 sm_90
setp.bf16x2 7.8 sm_90
set.bf16 7.8 sm_90
set.bf16x2 7.8 sm_90
set.u16.f16 6.5 sm_70
set.u32.f16x2 6.5 sm_70
set.s32.f16x2 6.5 sm_70
set.s16.f16 6.5 sm_70
set.u32.f16 6.5 sm_70
set.s32.f16 6.5 sm_70
ex2.f16 7.0 sm_75
ex2.f16x2 7.0 sm_75
ex2.bf16 7.8 sm_90
ex2.bf16x2 7.8 sm_90
tanh 7.0 sm_75
tanh.bf16 7.8 sm_90
tanh.bf16x2 7.8 sm_90
"""

_EXTREMES = """
f16 7.0 sm_80
f16x2 7.0 sm_80
bf16 7.0 sm_80
bf16x2 7.0 sm_80
NaN 7.0 sm_80
xorsign 7.2 sm_86
relu 8.0 sm_90
s16x2 8.0 sm_90
u16x2 8.0 sm_90
u8x4 9.2 packed
s8x4 9.2 packed
third 8.8 sm_100
"""

_INTEGERS = ("s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64")
_BF16_PARTNERS = ("f16", "f64", *_INTEGERS)

#: The versions of ptxas that were asked, and the newest PTX version that each knows.
ASSEMBLERS: Mapping[str, str] = {
    "12.9.86": "8.8",
    "13.0.88": "9.0",
    "13.2.86": "9.2",
    "13.5.37": "9.5",
}

EXACT: Mapping[str, tuple[str, ...]] = {
    "hopper": ("sm_90a",),
    "server": targets_with("server"),
    "server_a": targets_with("server", "a"),
    "server_i8": targets_with("i8", "a"),
    "reducing": targets_with("reducing"),
    "ti16": targets_with("ti16"),
    "ti16_a": targets_with("ti16", "a"),
    "packed": targets_with("packed"),
    "rs": targets_with("rounding", "a"),
    "accelerated": targets_with("server consumer", "a"),
    "multimem": (*targets_with("server"), *targets_with("consumer", "a")),
    "sm100": targets_with("rounding"),
    "exact": tuple(target for machine in MACHINES for target in machine.targets("af")),
    "blackwell": (*targets_with("server"), *targets_with("consumer")),
}


def lines() -> list[str]:
    """The rules, a line each."""
    lines = [line for line in _RULES.splitlines() if line]
    for line in _EXTREMES.split("\n")[1:-1]:
        # relu of floats came with the f16 types, that of integers later
        if line.startswith("relu"):
            lines += [f"{op}.relu.s32 8.0 sm_90" for op in ("min", "max")]
            lines += [f"{op}.relu.s16x2 8.0 sm_90" for op in ("min", "max")]
        else:
            lines += [f"{op}.{line}" for op in ("min", "max")]
    for other in _BF16_PARTNERS:
        lines += [f"cvt.bf16.{other} 7.8 sm_90", f"cvt.{other}.bf16 7.8 sm_90"]
    return lines
