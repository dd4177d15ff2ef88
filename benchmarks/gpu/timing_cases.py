"""Cases of microbenchmarks: loops in PTX around products and arithmetic, and what is one.

A body is a round of a loop that stands between two readings of the clock (`kernel`); it is a text,
as are the statements before and after the loop. The cases of copies and barriers are in
`timing_copies`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import NamedTuple

from benchmarks.gpu.kit import TARGET
from fragir.isa import lookup
from fragir.isa.descriptors import MatrixDescriptor
from fragir.isa.emit import statement
from fragir.isa.model import Instruction
from fragir.isa.probe_texts import register_bytes
from fragir.isa.throughput import multiply_adds

HEADER = f""".version 8.5
.target {TARGET}
.address_size 64
.extern .shared .align 1024 .b8 tile[];
"""
"""PTX 8.5 is the lowest that has `mma.sp::ordered_metadata`."""
PARAMETERS = ".param .u64 out, .param .u64 memory, .param .u64 other, .param .u32 count"
ROW = 128
"""Bytes of a row of a tensor map's box, and of an operand in shared memory: a swizzle's width."""
NOTHING: Mapping[str, float] = MappingProxyType({})


class Case(NamedTuple):
    """A row: the loop's PTX, what one of its rounds holds, and how it is launched."""

    name: str
    body: str
    each: int = 1
    """Instructions of one warp (or of whoever issues) that a round counts."""
    head: str = ""
    tail: str = ""
    threads: int = 32
    issuers: int = 0
    """How many warps or warpgroups of an SM issue independently; 0: it is a latency."""
    work: Mapping[str, float] = NOTHING
    """What an instruction stands for: `bytes`, `multiply-adds`."""
    shared: int = 0
    rounds: tuple[int, int] = (32, 160)
    blocks: str = "one"
    """`one`, `pair` (a cluster) or `all`: one for each SM; `pairs`: the same in clusters."""
    timed: tuple[int, int] | None = None
    """The warps whose clocks count; all where there is nothing."""
    solo: bool = False
    """Whether one lane of each warp runs the loop alone."""
    chain: int = 0
    """Bytes of global memory through which pointers lead, line by line."""
    flush: bool = False
    """Whether the L2 cache is written over before each launch."""
    box: int = 0
    """Rows of the tensor map's box; 0: there is no map."""


def kernel(entry: str, case: Case) -> str:
    """The kernel of a case: clocks of every warp go to `out`, behind them a word of each thread.

    What a case may use: %thread, %lane, %warp, %block, %i (the round), %n (of them), %lead (one
    lane), %zero (which ptxas does not know to be 0), %base (of shared memory), %memory, %other,
    %map; for whatever comes %p, %at, %t0..., %w0...; %sum is stored.
    """
    box = ", .param .align 64 .b8 map[128]" if case.box else ""
    place = "mov.b64 %map, map; cvta.param.u64 %map, %map;" if case.box else ""
    return f""".visible .entry {entry}({PARAMETERS}{box})
.maxntid {case.threads}
{{
.reg .pred %p, %again, %lead;
.reg .b32 %thread, %lane, %warp, %block, %i, %n, %zero, %sum, %base, %at, %t<8>;
.reg .b64 %out, %memory, %other, %map, %start, %stop, %w<8>;
ld.param.u32 %n, [count];
ld.param.u64 %out, [out]; cvta.to.global.u64 %out, %out;
ld.param.u64 %memory, [memory]; cvta.to.global.u64 %memory, %memory;
ld.param.u64 %other, [other]; cvta.to.global.u64 %other, %other;
mov.u32 %thread, %tid.x; mov.u32 %block, %ctaid.x; mov.u32 %base, tile; {place}
and.b32 %lane, %thread, 31; shr.u32 %warp, %thread, 5; elect.sync _|%lead, -1;
mul.wide.u32 %w0, %thread, 4; add.u64 %w0, %other, %w0; ld.global.u32 %zero, [%w0];
mov.b32 %sum, %zero; mov.u32 %i, 0;
{case.head}
bar.sync 0;
{"@!%lead bra DONE;" if case.solo else ""}
mov.u64 %start, %clock64;
AGAIN: .pragma "nounroll";
{case.body}
add.u32 %i, %i, 1; setp.lt.u32 %again, %i, %n;
@%again bra AGAIN;
mov.u64 %stop, %clock64;
{"DONE: bar.warp.sync -1;" if case.solo else ""}
{case.tail}
mad.lo.u32 %t0, %block, {case.threads // 32}, %warp;
mul.wide.u32 %w0, %t0, 16; add.u64 %w0, %out, %w0;
@%lead st.global.v2.u64 [%w0], {{%start, %stop}};
mov.u32 %t0, %nctaid.x; mul.wide.u32 %w0, %t0, {case.threads // 2};
mad.lo.u32 %t0, %block, {case.threads}, %thread; mul.wide.u32 %w1, %t0, 4;
add.u64 %w0, %w0, %w1; add.u64 %w0, %out, %w0; st.global.u32 [%w0], %sum;
ret;
}}
"""


def kept(words: Iterable[str]) -> str:
    """Adds words to what the kernel stores, so that nothing is left out."""
    return " ".join(f"xor.b32 %sum, %sum, {word};" for word in words)


def fill(size: int, value: str, before: str = "") -> str:
    """Writes words to the first bytes of shared memory; %at is where, `before` makes the value."""
    return f"""mad.lo.u32 %at, %thread, 4, %base; mov.u32 %t1, %ntid.x; shl.b32 %t1, %t1, 2;
add.u32 %t2, %base, {size};
FILL: setp.ge.u32 %p, %at, %t2;
@%p bra FILLED;
{before} st.shared.b32 [%at], {value}; add.u32 %at, %at, %t1;
bra FILL;
FILLED:"""


# Products ---------------------------------------------------------------------------------------

MMA = (
    *("m16n8k16.row.col.f32.f16.f16.f32", "m16n8k8.row.col.f32.f16.f16.f32"),
    *("m16n8k16.row.col.f16.f16.f16.f16", "m16n8k16.row.col.f32.bf16.bf16.f32"),
    *("m16n8k8.row.col.f32.tf32.tf32.f32", "m16n8k4.row.col.f32.tf32.tf32.f32"),
    *("m16n8k32.row.col.s32.s8.s8.s32", "m16n8k16.row.col.s32.s8.s8.s32"),
    *("m16n8k32.row.col.f32.e4m3.e4m3.f32", "m8n8k4.row.col.f64.f64.f64.f64"),
    *("m16n8k8.row.col.f64.f64.f64.f64", "m16n8k16.row.col.f64.f64.f64.f64"),
    *("m8n8k4.row.col.f32.f16.f16.f32", "m16n8k256.row.col.s32.b1.b1.s32.and.popc"),
)
SPARSE = ("m16n8k32.row.col.f32.f16.f16.f32", "m16n8k64.row.col.s32.s8.s8.s32")


def mma() -> Iterator[Case]:
    """mma.sync: a chain through C, and independent ones of more and more warps."""
    names = [f"mma.sync.aligned.{form}" for form in MMA]
    names += [f"mma.sp::ordered_metadata.sync.aligned.{form}" for form in SPARSE]
    for name, (warps, chains) in product(names, ((1, 1), (1, 4), (4, 4), (8, 4), (16, 4))):
        one = lookup(name)
        statements = [_of_chain(statement(one), chain) for chain in range(chains)]
        if one.lowering[TARGET] == "emulated":  # with the same A its products would leave the loop
            statements = [f"{text} mov.b32 %a0, %d{c}_0;" for c, text in enumerate(statements)]
        yield Case(
            f"{name}: {'latency' if chains == 1 else f'rate, {warps} warps of {chains}'}",
            "\n".join(statements * (32 // chains)),
            32,
            "\n".join((*_operands(one, "abe"), *_accumulators(one, chains))),
            _sum(one, chains),
            threads=32 * warps,
            issuers=0 if chains == 1 else warps,
            work={"multiply-adds": multiply_adds(one)},
        )


def _of_chain(text: str, chain: int) -> str:
    """A statement whose C and D are those of a chain."""
    return re.sub(r"%[cd](\d)", rf"%d{chain}_\1", text)


def _operands(one: Instruction, names: str, mark: str = "", first: int = 0) -> Iterator[str]:
    """Declares registers and sets them to numbers that ptxas does not know."""
    for name in names:
        if name not in one.operands:
            continue
        held = one.operands[name].registers
        yield f".reg .{held.type} %{name}{mark}<{held.count}>;"
        wide = register_bytes(held) == 8
        moved = "cvt.u64.u32 %w0, %t0; mov.b64 {}, %w0;" if wide else "mov.b32 {}, %t0;"
        for index in range(held.count):
            yield f"add.u32 %t0, %zero, {first + index}; {moved.format(f'%{name}{mark}{index}')}"


def _accumulators(one: Instruction, chains: int) -> Iterator[str]:
    for chain in range(chains):
        yield from _operands(one, "d", f"{chain}_", 100 * chain)


def _sum(one: Instruction, chains: int) -> str:
    """Adds a word of each chain to what the kernel stores."""
    wide = register_bytes(one.operands["d"].registers) == 8
    word = "mov.b64 %w0, {}; cvt.u32.u64 %t0, %w0;" if wide else "mov.b32 %t0, {};"
    return "\n".join(word.format(f"%d{c}_0") + kept(["%t0"]) for c in range(chains))


_A, _B = 64 * ROW, 256 * ROW
"""Bytes of four steps of K of A and of the largest B."""
WGMMA = (
    ("f32.f16.f16", 16, (8, 16, 32, 64, 128, 192, 256)),
    ("f32.e4m3.e4m3", 32, (8, 64, 128, 256)),
    ("f32.bf16.bf16", 16, (64, 256)),
    ("f16.f16.f16", 16, (64, 256)),
    ("f32.tf32.tf32", 8, (64, 256)),
    ("s32.s8.s8", 32, (64, 256)),
)
"""Types of D, A and B; K; sizes of N."""
SOURCES = {"descriptor": "shared memory", "registers": "registers"}
"""Forms of wgmma and where its A is."""


def wgmma() -> Iterator[Case]:
    """wgmma: one at a time, four, and many in flight, of one and of two warpgroups."""
    for types, k, sizes in WGMMA:
        for n, a in product(sizes, SOURCES):
            name = f"wgmma.mma_async.sync.aligned.m64n{n}k{k}.{types}"
            yield _wgmma(name, a, "latency", 1)
            yield _wgmma(name, a, "latency, 4 and a wait", 4)
            yield _wgmma(name, a, "rate, 1 warpgroup", 16, 1)
            yield _wgmma(name, a, "rate, 2 warpgroups", 16, 2)
    for n in (64, 128, 256):
        name = f"wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16"
        what = "rate, 2 warpgroups, each its own B"
        yield _wgmma(name, "descriptor", what, 16, 2, one_b=False)
        what = "rate, 1 warpgroup, no swizzle"
        yield _wgmma(name, "descriptor", what, 16, 1, swizzled=False)


def _wgmma(
    name: str,
    a: str,
    what: str,
    count: int,
    issuers: int = 0,
    *,
    one_b: bool = True,
    swizzled: bool = True,
) -> Case:
    """`count` in a commit group; of a rate a second group is in flight.

    `one_b`: warpgroups have their own A and the same B.
    """
    one = lookup(name)
    fields = (16, 1024, 1) if swizzled else (128, 256, 0)  # LBO, SBO in bytes, swizzle
    word = MatrixDescriptor(TARGET, 0, *fields).word
    # the warpgroup is the same in all of a warp, so that descriptors are in uniform registers
    group = "shr.u32 %t7, %thread, 7; shfl.sync.idx.b32 %t7, %t7, 0, 31, -1;"
    head = f"""{fill(2 * (_A + _B), "%zero")}
fence.proxy.async;
.reg .b64 %a_shared_<4>, %b_<4>;
{group if issuers > 1 else "mov.u32 %t7, 0;"}
mad.lo.u32 %t6, %t7, {_A}, %base;
mad.lo.u32 %t7, %t7, {0 if one_b else _B}, %base; add.u32 %t7, %t7, {2 * _A};"""
    for operand, start, size in (("a_shared", "%t6", _A), ("b", "%t7", _B)):
        for step in range(4):
            offset = step * (32 if swizzled else size // 4)
            head += f"""
add.u32 %t0, {start}, {offset}; and.b32 %t0, %t0, 0x3ffff; shr.u32 %t0, %t0, 4;
cvt.u64.u32 %w0, %t0; or.b64 %{operand}_{step}, %w0, {word};"""
    head = "\n".join(
        (head, *_operands(one, "a" if a == "registers" else ""), *_accumulators(one, 1))
    )
    text = _of_chain(statement(one, a), 0)
    products = [re.sub(r"%(a_shared|b)\b", rf"%\1_{i % 4}", text) for i in range(count)]
    lines = [
        "wgmma.fence.sync.aligned;",
        *products,
        "wgmma.commit_group.sync.aligned;",
        f"wgmma.wait_group.sync.aligned {1 if issuers else 0};",
    ]
    times = 1 if issuers else 4
    return Case(
        f"{name}, A in {SOURCES[a]}: {what}",
        "\n".join(lines * times),
        count * times,
        head,
        f"wgmma.wait_group.sync.aligned 0;\n{_sum(one, 1)}",
        threads=128 * max(1, issuers),
        issuers=issuers,
        work={"multiply-adds": multiply_adds(one)},
        shared=2 * (_A + _B),
    )


BESIDE = (
    ("ex2.approx.ftz.f32 {x}, {x};", 8, 12),
    ("fma.rn.f32 {x}, {x}, %u, %v;", 64, 64),
    ("cvt.rn.bf16x2.f32 {x}, {x}, %u;", 16, 32),
    ("ld.volatile.shared.b32 {x}, [%base];", 16, 24),
)
"""What a warpgroup does beside the products of another, as in attention; how often 8 of it are a
round that is shorter than 16 products of 128 cycles, and one that is longer than 2 of them."""


def beside() -> Iterator[Case]:
    """wgmma of one warpgroup, something else of another: each by itself, while the other is busy.

    The one whose clocks count has the shorter rounds, so that the other is there to its end.
    """
    name = "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"
    for (text, few, many), a in product(BESIDE, SOURCES):
        for count, repeats, first in ((16, few, 4), (2, many, 0)):
            case = _wgmma(name, a, "", count, 1)
            head, lines, tail = _alu(text, 8)
            names = [_plain(text), case.name.rstrip(": ")]
            if not first:
                names.reverse()
            others = "\n".join(lines * repeats)
            yield case._replace(
                name=f"{names[0]}, beside {names[1]}: rate",
                body=f"@%second bra OTHER;\n{case.body}\nbra JOINED;\nOTHER:\n{others}\nJOINED:",
                each=8 * repeats if first else count,
                head=f"{case.head}\n{head}\n.reg .pred %second; setp.ge.u32 %second, %warp, 4;",
                tail=case.tail + tail,
                threads=256,
                timed=(first, first + 4),
                issuers=4 if first else 1,
                work=NOTHING if first else case.work,
            )


# Arithmetic -------------------------------------------------------------------------------------

ALU = (
    *(f"{op}.f32 {{x}}, {{x}}, %u;" for op in ("add.rn", "mul.rn")),
    *(f"fma.rn.{kind} {{x}}, {{x}}, %u, %v;" for kind in ("f32", "f16x2", "bf16x2")),
    *(f"max.{kind} {{x}}, {{x}}, %u; min.{kind} {{x}}, {{x}}, %v;" for kind in ("f32", "f16x2")),
    "add.rn.f16x2 {x}, {x}, %u;",
    "fma.rn.f64 {y}, {y}, %z, %z;",
    "add.rn.f64 {y}, {y}, %z;",
    "mad.lo.u32 {x}, {x}, %u, %v;",
    "lop3.b32 {x}, {x}, %u, %v, 0xe8;",
    "add.u32 {x}, {x}, %u; xor.b32 {x}, {x}, %v;",
    "shf.l.wrap.b32 {x}, {x}, %u, 7;",
    "prmt.b32 {x}, {x}, %u, 0x2540;",
    "popc.b32 {x}, {x};",
    "setp.lt.u32 %p, {x}, %u; selp.b32 {x}, %v, {x}, %p;",
    *(f"{op}.approx.ftz.f32 {{x}}, {{x}};" for op in ("ex2", "lg2", "rsqrt", "sin")),
    "rcp.approx.ftz.f32 {x}, {x}; add.rn.f32 {x}, {x}, %u;",
    *(f"{op} {{x}}, {{x}};" for op in ("tanh.approx.f32", "ex2.approx.f16x2")),
    "ex2.approx.ftz.bf16x2 {x}, {x};",
    *(f"cvt.rn.{kind}.f32 {{x}}, {{x}}, %u;" for kind in ("f16x2", "bf16x2")),
    "cvt.rni.s32.f32 {x}, {x}; cvt.rn.f32.s32 {x}, {x};",
    "cvt.rn.satfinite.e4m3x2.f32 {h}, {x}, %u; cvt.rn.f16x2.e4m3x2 {x}, {h};",
    "mov.b32 {{{h}, %g}}, {x}; cvt.f32.f16 {x}, {h};",
    "shfl.sync.bfly.b32 {x}, {x}, 1, 31, -1;",
    "shfl.sync.idx.b32 {x}, {x}, %u, 31, -1;",
    "redux.sync.add.s32 {x}, {x}, -1;",
    "setp.lt.u32 %p, {x}, %u; vote.sync.ballot.b32 {x}, %p, -1;",
    "movmatrix.sync.aligned.m8n8.trans.b16 {x}, {x};",
)
"""What takes the result of the same before it: {x} is a word, {y} 64 bits, {h} 16 of a chain. A
line counts as one instruction. Its inverse stands beside what ptxas would take together."""


def arithmetic() -> Iterator[Case]:
    """Instructions of the ALUs, the special functions, exchange between lanes."""
    for text, (warps, chains) in product(ALU, ((1, 1), (4, 8), (16, 4))):
        head, lines, tail = _alu(text, chains)
        yield Case(
            f"{_plain(text)}: {'latency' if chains == 1 else f'rate, {warps} warps of {chains}'}",
            "\n".join(lines * (128 // chains)),
            128,
            head,
            tail,
            threads=32 * warps,
            issuers=0 if chains == 1 else warps,
        )


def _alu(text: str, chains: int) -> tuple[str, list[str], str]:
    """What comes before a loop, a line for each chain, and what comes after it."""
    one = 0x3FF << 52  # the bits of 1 in f64
    head = f""".reg .b32 %x<{chains}>, %u, %v; .reg .b64 %y<{chains}>, %z;
.reg .b16 %h<{chains}>, %g; add.u32 %u, %zero, 1; add.u32 %v, %zero, 3;
cvt.u64.u32 %z, %u; or.b64 %z, %z, {one};"""
    tail = ""
    for c in range(chains):
        head += f"\nadd.u32 %x{c}, %zero, {c + 5}; cvt.u64.u32 %y{c}, %x{c};"
        head += f" or.b64 %y{c}, %y{c}, {one};"
        tail += f"\ncvt.u32.u64 %t0, %y{c}; {kept(['%t0', f'%x{c}'])}"
    return head, [text.format(x=f"%x{c}", y=f"%y{c}", h=f"%h{c}") for c in range(chains)], tail


def _plain(text: str) -> str:
    """A line of `ALU` as rows call it."""
    return text.format(x="x", y="y", h="h").replace("%", "").rstrip(";")
