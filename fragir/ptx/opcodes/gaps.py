"""What ptxas takes and no row has: opcodes and words of PTX 9.3 to 9.5.

A line is a statement that ptxas takes on a target, the words that tell it from what has a row (an
opcode that begins with the same word and has one of them belongs to it), and what it is. Registers
are %p (predicates), %h (16 bits), %r (32), %f, %d (64), b (8). PTX ISA 9.4, sections 13.1 and 13.2;
`trace` and `tensormap.query` are in no document. Tests ask ptxas and the table: what gets a row
has to go here.
"""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import NamedTuple

_TABLE = """
sm_100a | e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 | sums of four narrow floats
    add.rn.e4m3x4.e4m3x4 %r0, %r1, %r2
    sub.rn.e4m3x4.e4m3x4 %r0, %r1, %r2
sm_100a | e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 | products of four narrow floats
    mul.rn.e4m3x4.e4m3x4.e4m3x4 %r0, %r1, %r2
    fma.rn.e4m3x4.e4m3x4.e4m3x4 %r0, %r1, %r2, %r3
sm_107a | f32x2.f16x2 f32x2.bf16x2 | sums of packed floats of two formats
    add.rn.f32x2.f16x2.f32x2 %d0, %r1, %d2
sm_107a | u8x4 s8x4 u16x2 s16x2 | comparisons of packed integers
    set.lt.u8x4 %r0, %r1, %r2
sm_107a | ue5m3x2 pzo scaled::n1::ue8m0 | conversions of ue5m3, with .pzo, with one scale
    cvt.rn.satfinite.ue5m3x2.f32 %h0, %f0, %f1
    cvt.rn.pzo.satfinite.e4m3x2.f32 %h0, %f0, %f1
    cvt.rn.satfinite.scaled::n1::ue8m0.e4m3x2.f32 %h0, %f0, %f1, b1
sm_107a | * | compression of registers
    spcompress.b8.b2.sp::2:4.x1 {%r0}, {%r1}, {%r2, %r3}, %r4
    spdecompress.b8.b2.sp::2:4.x2 {%r0, %r1}, {%r2}, {%r3}
sm_90 | proxy::readonly | loads by the read-only proxy
    ld.global.u32.proxy::readonly %r0, [%d0]
sm_90 | valid_addr L1::32B | prefetches of 32 bytes
    prefetch.L1::32B.valid_addr [%d0]
sm_100a | s4 | matrices of s4, widened
    ldmatrix.sync.aligned.m8n16.x1.shared.s8.s4 {%r0}, [%r1]
sm_90 | noftz | sums of f32 in memory that keep subnormal numbers
    atom.global.add.noftz.f32 %f0, [%d0], %f1
    red.global.add.noftz.f32 [%d0], %f1
sm_90 | alias.acquire alias.release sync_restrict::shared::cluster::read | fences with an order
    fence.proxy.alias.acquire.sys
    fence.proxy.async::generic.release.sync_restrict::shared::cluster::read.cluster
sm_90 | check_layout layout::v0 layout::v1 | layouts of mbarriers
    mbarrier.check_layout.layout::v0.shared::cta.b64 %p0, [%r0]
    mbarrier.init.layout::v1.shared::cta.b64 [%r0], %r1
sm_107a | multicast::cluster::32b | arrivals at the mbarriers of several blocks
    mbarrier.arrive.release.cluster.shared::cluster.multicast::cluster::32b.b64 _, [%r0], %r1
sm_107a | multicast::cluster::16b multicast::cluster::32b | copies to up to 32 blocks
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster::32b\
 [%r0], [%d0], 16, [%r1], %r2
sm_107a | mbarrier::report | copies that look at what they copy
    cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes\
.mbarrier::report::validity::per_16bytes::8 [%r0], [%d0, {%r1}], [%r2]
sm_107a | override | copies that override their tensor map
    cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes\
.override::global_address [%r0], [%d0, %d1, {%r1}], [%r2]
sm_107a | im2col_no_offs::w | stores by im2col_no_offs::w
    cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs::w.bulk_group\
 [%d0, {%r0, %r1, %r2}], [%r3]
sm_107a | L2::evict_last | prefetches by bulk copies with a priority
    cp.async.bulk.prefetch.L2.global.L2::evict_last [%d0], %r0
sm_107a | async | priorities in L2, later
    applypriority.async.bulk.global.bulk_group.L2::evict_normal [%d0], %r0
sm_100a | * | copies over fabrics
    fabric.submit
    fabric.wait.sync_restrict::reads
sm_100a | fabric | cache policies of fabrics
    createpolicy.range.fabric.L2::evict_last.b64 %d0, [%r0, %d1], 1, 2
sm_107a | * | marks of traces
    trace.mark 1
sm_107a | query | questions about tensor maps
    tensormap.query.alloc_class_large.b1024 %p0, [%d0]
"""


class Gap(NamedTuple):
    """`words`: those that tell, as they are or as a beginning before `::`; `firsts`: the words that
    its opcodes begin with; `examples`: statements without semicolons.
    """

    target: str
    words: frozenset[str]
    what: str
    examples: tuple[str, ...]

    @property
    def firsts(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(example.split(".")[0] for example in self.examples))

    def has(self, opcode: tuple[str, ...]) -> bool:
        """Whether an opcode that no row has belongs to it."""
        if opcode[0] not in self.firsts:
            return False
        if "*" in self.words:
            return True
        pairs = [".".join(pair) for pair in pairwise(opcode)]
        begins = [word.partition("::")[0] for word in opcode if word.count("::")]
        begins += ["::".join(word.split("::")[:2]) for word in opcode if word.count("::") > 1]
        return not self.words.isdisjoint((*opcode[1:], *pairs, *begins))


@cache
def gaps() -> tuple[Gap, ...]:
    """All of them."""
    found: list[Gap] = []
    for line in _TABLE.strip().splitlines():
        if line.startswith(" "):
            last = found[-1]
            found[-1] = last._replace(examples=(*last.examples, line.strip()))
        else:
            target, words, what = (part.strip() for part in line.split("|"))
            found.append(Gap(target, frozenset(words.split()), what, ()))
    return tuple(found)


def gap_of(opcode: tuple[str, ...]) -> Gap | None:
    """The gap that an opcode without a row belongs to."""
    return next((gap for gap in gaps() if gap.has(opcode)), None)
