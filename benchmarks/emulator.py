"""How fast the emulator is, to the bit: a GEMM, and loops of integer and fma instructions.

    python benchmarks/emulator.py [--rounds N] [--large] [--json FILE] [--update PAGE.md]

The GEMMs are examples/gemm.mlir (cp.async, swizzled shared memory, ldmatrix, mma.m16n8k16, edges
and an epilogue), compiled for sm_80, with and without checks, and one for whole tiles written by
hand; times include reading and decoding the PTX. `--large` adds 1024^3, run twice. A lane
instruction is one instruction of one lane.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import numpy as np

from fragir.emulator import run

if TYPE_CHECKING:
    from measure import Times
    from report import Table

    from fragir.compiler import Kernel
    from fragir.emulator import Report as Ran

# The tests of the emulator load this file for its kernel, without those beside it.

STAGES = 3
TILE, DEPTH = 128, 32
STAGE_BYTES = TILE * DEPTH * 2


def gemm_ptx() -> str:
    """C[M, N] = A[M, K] B[N, K]^T; grid (N/128, M/128), 128 threads, 48 KiB of shared memory."""
    copies = "".join(
        f"""
    cp.async.cg.shared.global [%to+{32 * i * DEPTH * 2}], [%ga{i}], 16;
    cp.async.cg.shared.global [%to+{STAGES * STAGE_BYTES + 32 * i * DEPTH * 2}], [%gb{i}], 16;
    add.u64 %ga{i}, %ga{i}, {2 * DEPTH}; add.u64 %gb{i}, %gb{i}, {2 * DEPTH};"""
        for i in range(4)
    )
    load = f"""
    mad.lo.u32 %to, %stage_in, {STAGE_BYTES}, %copy_to;{copies}
    add.u32 %stage_in, %stage_in, 1;
    setp.eq.u32 %p, %stage_in, {STAGES};
    selp.b32 %stage_in, 0, %stage_in, %p;"""
    body: list[str] = []
    for k in range(2):
        for i in range(4):
            body.append(
                f"xor.b32 %x, %swap_a{k}, %row_a; add.u32 %x, %x, %base; ldmatrix.sync.aligned"
                f".m8n8.x4.shared.b16 {{%a{i}_0, %a{i}_1, %a{i}_2, %a{i}_3}}, [%x+{16 * i * 64}];"
            )
        for j in range(4):
            body.append(
                f"xor.b32 %x, %swap_b{k}, %row_b; add.u32 %x, %x, %base; ldmatrix.sync.aligned"
                f".m8n8.x4.shared.b16 {{%b{2 * j}_0, %b{2 * j}_1, %b{2 * j + 1}_0, "
                f"%b{2 * j + 1}_1}}, [%x+{STAGES * STAGE_BYTES + 16 * j * 64}];"
            )
        for i in range(4):
            for j in range(8):
                d = ", ".join(f"%c{i}_{j}_{e}" for e in range(4))
                a = ", ".join(f"%a{i}_{r}" for r in range(4))
                body.append(
                    "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                    f"{{{d}}}, {{{a}}}, {{%b{j}_0, %b{j}_1}}, {{{d}}};"
                )
    accumulators = [f"%c{i}_{j}_{e}" for i in range(4) for j in range(8) for e in range(4)]
    fragments = [f"%a{i}_{r}" for i in range(4) for r in range(4)]
    fragments += [f"%b{j}_{r}" for j in range(8) for r in range(2)]
    pointers = [f"%g{x}{i}" for x in "ab" for i in range(4)]
    start = "".join(
        f"""
    mad.lo.u32 %x, %by, {TILE}, %copy_row; add.u32 %x, %x, {32 * i}; mad.lo.u32 %x, %x, %k, %copy_k;
    mad.wide.u32 %ga{i}, %x, 2, %A;
    mad.lo.u32 %x, %bx, {TILE}, %copy_row; add.u32 %x, %x, {32 * i}; mad.lo.u32 %x, %x, %k, %copy_k;
    mad.wide.u32 %gb{i}, %x, 2, %B;"""
        for i in range(4)
    )
    stores = "".join(
        f"""
    mad.lo.u32 %x, %n, {16 * i + 8 * h}, %corner; mad.wide.u32 %cp, %x, 4, %C;"""
        + "".join(
            f"\n    st.global.v2.f32 [%cp+{32 * j}], {{%c{i}_{j}_{2 * h}, %c{i}_{j}_{2 * h + 1}}};"
            for j in range(8)
        )
        for i in range(4)
        for h in range(2)
    )
    newline = "\n    "
    return f"""
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 128 .b8 memory[];
.visible .entry gemm(.param .u64 A, .param .u64 B, .param .u64 C, .param .u32 N, .param .u32 K)
{{
    .reg .pred %p, %more; .reg .b64 %A, %B, %C, %cp; .reg .f32 {", ".join(accumulators)};
    .reg .b32 {", ".join(fragments)}; .reg .b64 {", ".join(pointers)};
    .reg .b32 %n, %k, %x, %y, %tid, %lane, %warp, %bx, %by, %copy_row, %copy_k, %copy_to, %to;
    .reg .b32 %stage_in, %stage_out, %left, %ahead, %base, %row_a, %row_b, %swap_a<2>, %swap_b<2>;
    .reg .b32 %corner, %smem;
    ld.param.u64 %A, [A]; ld.param.u64 %B, [B]; ld.param.u64 %C, [C];
    ld.param.u32 %n, [N]; ld.param.u32 %k, [K];
    mov.u32 %tid, %tid.x; mov.u32 %bx, %ctaid.x; mov.u32 %by, %ctaid.y; mov.u32 %smem, memory;
    and.b32 %lane, %tid, 31; shr.u32 %warp, %tid, 5;
    // this thread copies 16 bytes (8 elements) of rows tid/4, +32, +64, +96
    shr.u32 %copy_row, %tid, 2; and.b32 %x, %tid, 3; shl.b32 %copy_k, %x, 3;
    shr.u32 %y, %copy_row, 1; and.b32 %y, %y, 3; xor.b32 %x, %x, %y; shl.b32 %x, %x, 4;
    mad.lo.u32 %copy_to, %copy_row, 64, %x; add.u32 %copy_to, %copy_to, %smem;{start}
    // rows for ldmatrix, and the 16-byte chunk of k step 0 and 1 under the swizzle
    and.b32 %x, %warp, 1; shl.b32 %x, %x, 6; and.b32 %y, %lane, 15; add.u32 %x, %x, %y;
    shl.b32 %row_a, %x, 6; shr.u32 %y, %x, 1; and.b32 %y, %y, 3;
    shr.u32 %x, %lane, 4; xor.b32 %x, %x, %y; shl.b32 %swap_a0, %x, 4;
    xor.b32 %swap_a1, %swap_a0, 32;
    shr.u32 %x, %warp, 1; shl.b32 %x, %x, 6; and.b32 %y, %lane, 7; add.u32 %x, %x, %y;
    shr.u32 %y, %lane, 4; shl.b32 %y, %y, 3; add.u32 %x, %x, %y;
    shl.b32 %row_b, %x, 6; shr.u32 %y, %x, 1; and.b32 %y, %y, 3;
    shr.u32 %x, %lane, 3; and.b32 %x, %x, 1; xor.b32 %x, %x, %y;
    shl.b32 %swap_b0, %x, 4; xor.b32 %swap_b1, %swap_b0, 32;
    {newline.join(f"mov.f32 {c}, 0f00000000;" for c in accumulators)}
    mov.u32 %stage_in, 0; mov.u32 %stage_out, 0; shr.u32 %left, %k, 5;
    sub.u32 %ahead, %left, 2;{load}
    cp.async.commit_group;{load}
    cp.async.commit_group;
LOOP:
    cp.async.wait_group {STAGES - 2};
    bar.sync 0;
    setp.eq.u32 %p, %ahead, 0;
    @%p bra COMPUTE;
    sub.u32 %ahead, %ahead, 1;{load}
COMPUTE:
    cp.async.commit_group;
    mad.lo.u32 %base, %stage_out, {STAGE_BYTES}, %smem;
    {newline.join(body)}
    add.u32 %stage_out, %stage_out, 1;
    setp.eq.u32 %p, %stage_out, {STAGES}; selp.b32 %stage_out, 0, %stage_out, %p;
    sub.u32 %left, %left, 1; setp.ne.u32 %more, %left, 0;
    @%more bra LOOP;
    and.b32 %x, %warp, 1; shl.b32 %x, %x, 6; mad.lo.u32 %x, %by, {TILE}, %x;
    shr.u32 %y, %lane, 2; add.u32 %x, %x, %y; mul.lo.u32 %corner, %x, %n;
    shr.u32 %x, %warp, 1; shl.b32 %x, %x, 6; mad.lo.u32 %x, %bx, {TILE}, %x;
    and.b32 %y, %lane, 3; shl.b32 %y, %y, 1; add.u32 %x, %x, %y;
    add.u32 %corner, %corner, %x;{stores}
    ret;
}}
"""


PLAIN = "examples/gemm.mlir"
LOOP = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry loop(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd;
    mov.u32 %r1, %tid.x; ld.param.u32 %r2, [rounds]; cvt.rn.f32.u32 %f1, %r1; mov.u32 %r3, 0;
L:
    add.u32 %r4, %r1, %r3; xor.b32 %r5, %r4, %r1; mad.lo.u32 %r1, %r5, 3, %r4;
    and.b32 %r1, %r1, 1023;
    fma.rn.f32 %f1, %f1, 0f3F7FFFFF, 0f3F800000; add.f32 %f2, %f1, 0f40000000;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, %r2;
    @%p bra L;
    ld.param.u64 %rd, [out]; st.global.f32 [%rd], %f2;
    ret;
}
"""


class Gemm:
    """One size^3 product; the reports of all runs and the last result are kept."""

    def __init__(self, size: int) -> None:
        self.size = size
        rng = np.random.default_rng(0)
        self.a, self.b = (rng.standard_normal((size, size)).astype(np.float16) for _ in range(2))
        self.b_transposed = np.ascontiguousarray(self.b.T)
        self.c = np.zeros((size, size), np.float32)
        self.reports: list[Ran] = []

    def compiled(self, kernel: Kernel, check: bool) -> None:
        values = self.a, self.b, self.c, np.float32(1), np.float32(0)
        grid = kernel.grid(kernel.sizes(values))
        self.reports.append(kernel.launch(grid, None, *values, on="emulator", check=check))

    def by_hand(self) -> None:
        report = run(
            gemm_ptx(),
            grid=(self.size // TILE, self.size // TILE),
            block=(128,),
            arguments=[self.a, self.b_transposed, self.c, self.size, self.size],
            shared=2 * STAGES * STAGE_BYTES,
        )
        self.reports.append(report)

    def error(self) -> float:
        """The largest difference from the product in f64."""
        wanted = self.a.astype(np.float64) @ self.b.astype(np.float64)
        return float(np.abs(self.c - wanted).max())


def products(options: argparse.Namespace) -> Table:
    from measure import here, take_turns
    from programs import ROOT
    from report import Column, Table, status
    from rich.console import Console

    import fragir

    table = Table(
        "f16 GEMM with f32 sums, bit-exact, for sm_80",
        (
            Column("size", "size"),
            Column("kernel", "kernel"),
            Column("cpu", "CPU s, least", ".3f"),
            Column("wall", "wall s, least", ".3f"),
            Column("wall_median", "wall s, median", ".3f"),
            Column("mma", "mma", ",d"),
            Column("mma_rate", "mma/s", ",.0f"),
            Column("lane_rate", "lane instr./s, M", ".1f"),
            Column("decoding", "decoding", ".0%"),
            Column("ratio", "÷ unchecked", ".2f"),
            Column("error", "largest error", ".1e"),
        ),
        note="Rates divide by the least CPU time. Decoding is the share of wall time spent "
        "reading and decoding PTX. The error is against the product in f64.",
    )
    kernel = fragir.compile((ROOT / "examples/gemm.mlir").read_text("utf-8"), target="sm_80")
    sizes = [128] if options.quick else [256, 512, *([1024] if options.large else [])]
    say = status(Console(stderr=True))
    for size in sizes:
        plain, checked, by_hand = Gemm(size), Gemm(size), Gemm(size)
        rows = {
            PLAIN: (plain, lambda g=plain: g.compiled(kernel, False)),
            f"{PLAIN}, every check": (checked, lambda g=checked: g.compiled(kernel, True)),
            "by hand, whole tiles": (by_hand, by_hand.by_hand),
        }
        runs = {name: here(run_) for name, (_, run_) in rows.items()}
        rounds = options.rounds if size < 1024 else min(2, options.rounds)
        found = take_turns(runs, rounds, warm_up=int(size < 1024), progress=say)
        for name, (gemm, _) in rows.items():
            row = product_row(gemm, name, found[name])
            if gemm is checked:
                row["ratio"] = min(found[name].cpu) / min(found[PLAIN].cpu)
            table.rows.append(row)
    return table


def product_row(gemm: Gemm, name: str, times: Times) -> dict[str, object]:
    cpu, statistics = min(times.cpu) / 1e3, gemm.reports[-1].statistics
    shares = [r.statistics.decode_seconds / r.statistics.seconds for r in gemm.reports]
    return {
        "size": f"{gemm.size}^3",
        "kernel": name,
        "cpu": cpu,
        "wall": min(times.wall) / 1e3,
        "wall_median": times.summary()["wall_median"] / 1e3,
        "mma": statistics.mma,
        "mma_rate": statistics.mma / cpu,
        "lane_rate": statistics.lanes / cpu / 1e6,
        "decoding": min(shares),
        "error": gemm.error(),
        "runs": len(times.cpu),
    }


def loops(options: argparse.Namespace) -> Table:
    from measure import here, take_turns
    from report import Column, Table

    table = Table(
        "A scalar loop (4 integer, 2 f32, 1 fma, 1 branch)",
        (
            Column("warps", "warps together"),
            Column("lane_rate", "lane instr./s, M", ",.0f"),
            Column("microseconds", "us an instruction", ".2f"),
        ),
        note="Least CPU time, decoding left out.",
    )
    turns = 30 if options.quick else 300
    for warps in (1, 4) if options.quick else (1, 4, 16, 64, 256, 1024):
        reports: list[Ran] = []

        def once(warps: int = warps, reports: list[Ran] = reports) -> None:
            out = np.zeros(1, np.float32)
            reports.append(run(LOOP, grid=(warps,), arguments=[out, turns], resident=warps))

        times = take_turns({"loop": here(once)}, options.rounds)["loop"]
        statistics = reports[-1].statistics
        decoding = min(report.statistics.decode_seconds for report in reports)
        seconds = min(times.cpu) / 1e3 - decoding
        table.rows.append(
            {
                "warps": str(warps),
                "lane_rate": statistics.lanes / seconds / 1e6,
                "microseconds": seconds / (statistics.lanes / 32 / warps) * 1e6,
            }
        )
    return table


def main() -> None:
    from report import Report, arguments, command, machine, present

    parser = arguments(__doc__)
    parser.add_argument("--large", action="store_true", help="1024^3 too")
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else 5)
    facts = machine(["fragir", "numpy"])
    tables = [products(options), loops(options)]
    present(Report("emulator", command(options), facts, tables), options)


if __name__ == "__main__":
    sys.exit(main())
