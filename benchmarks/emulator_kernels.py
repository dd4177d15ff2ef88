"""Kernels by hand that benchmarks/emulator.py runs: a product, loops, a histogram, a probe."""

from __future__ import annotations

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


_START = """
.version 7.0
.target sm_80
.address_size 64
"""

LOOP = f"""{_START}
.visible .entry loop(.param .u64 out, .param .u32 rounds)
{{
    .reg .pred %p; .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %rd;
    mov.u32 %r1, %tid.x; ld.param.u32 %r2, [rounds]; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x;
    mad.lo.u32 %r6, %r3, %r4, %r1; ld.param.u64 %rd, [out]; mad.wide.u32 %rd, %r6, 4, %rd;
    cvt.rn.f32.u32 %f1, %r1; mov.u32 %r3, 0;
L:
    add.u32 %r4, %r1, %r3; xor.b32 %r5, %r4, %r1; mad.lo.u32 %r1, %r5, 3, %r4;
    and.b32 %r1, %r1, 1023;
    fma.rn.f32 %f1, %f1, 0f3F7FFFFF, 0f3F800000; add.f32 %f2, %f1, 0f40000000;
    add.u32 %r3, %r3, 1; setp.lt.u32 %p, %r3, %r2;
    @%p bra L;
    cvt.rn.f32.u32 %f3, %r1; add.f32 %f2, %f2, %f3; st.global.f32 [%rd], %f2;
    ret;
}}
"""
"""Numbers only. A thread with the number t in its block writes f + 2 + i: see `loop_results`."""

MEMORY_LOOP = f"""{_START}
.visible .entry memory_loop(.param .u64 data, .param .u32 rounds)
{{
    .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd;
    .shared .align 4 .b8 buffer[1024];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; ld.param.u32 %r4, [rounds];
    mad.lo.u32 %r5, %r3, %r2, %r1; ld.param.u64 %rd, [data]; mad.wide.u32 %rd, %r5, 4, %rd;
    mov.u32 %r5, buffer; mad.lo.u32 %r6, %r1, 4, %r5;
    add.u32 %r7, %r1, 1; sub.u32 %r8, %r2, 1; and.b32 %r7, %r7, %r8; mad.lo.u32 %r7, %r7, 4, %r5;
L:
    ld.global.u32 %r8, [%rd]; st.shared.u32 [%r6], %r8;
    bar.sync 0;
    ld.shared.u32 %r8, [%r7]; add.u32 %r8, %r8, 1; st.global.u32 [%rd], %r8;
    bar.sync 0;
    sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0;
    @%p bra L;
    ret;
}}
"""
"""Blocks of 2^n threads, at most 256: each round a thread takes its right neighbour's, plus 1."""

GATHER = f"""{_START}
.visible .entry gather(.param .u64 table, .param .u64 sums, .param .u32 rounds)
{{
    .reg .pred %p; .reg .b32 %r<8>; .reg .b64 %table, %sums, %at;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; ld.param.u32 %r4, [rounds];
    mad.lo.u32 %r5, %r3, %r2, %r1; mov.u32 %r6, 0;
    ld.param.u64 %table, [table];
    ld.param.u64 %sums, [sums]; mad.wide.u32 %sums, %r5, 4, %sums;
L:
    mad.lo.u32 %r7, %r5, 1664525, %r4; mul.lo.u32 %r7, %r7, 1664525; shr.u32 %r7, %r7, 16;
    mad.wide.u32 %at, %r7, 4, %table; ld.global.u32 %r7, [%at]; add.u32 %r6, %r6, %r7;
    sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0;
    @%p bra L;
    st.global.u32 [%sums], %r6;
    ret;
}}
"""
"""Sums of 2^16 numbers in no order: each round a thread adds another one."""

TOGETHER = f"""{_START}
.visible .entry together(.param .u64 sums, .param .u32 rounds)
{{
    .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %sums;
    .shared .align 4 .b8 slots[32];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; ld.param.u32 %r4, [rounds];
    mad.lo.u32 %r5, %r3, %r2, %r1; ld.param.u64 %sums, [sums]; mad.wide.u32 %sums, %r5, 4, %sums;
    mov.u32 %r3, slots; shr.u32 %r7, %r1, 5; mad.lo.u32 %r5, %r7, 4, %r3; mov.u32 %r6, 0;
    add.u32 %r7, %r7, 1; shr.u32 %r8, %r2, 5; sub.u32 %r8, %r8, 1; and.b32 %r7, %r7, %r8;
    mad.lo.u32 %r7, %r7, 4, %r3;
L:
    st.shared.u32 [%r5], %r4;
    bar.sync 0;
    ld.shared.u32 %r8, [%r7]; add.u32 %r6, %r6, %r8;
    bar.sync 0;
    sub.u32 %r4, %r4, 1; setp.ne.u32 %p, %r4, 0;
    @%p bra L;
    st.global.u32 [%sums], %r6;
    ret;
}}
"""
"""Blocks of 2^n warps, at most 8: each round all lanes of a warp store what is left of the rounds
to the place of their warp, and read that of the next one."""

HISTOGRAM = f"""{_START}
.visible .entry histogram(.param .u64 x, .param .u64 h, .param .u32 each)
{{
    .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %x, %h;
    .shared .align 4 .b8 counts[1024];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; ld.param.u32 %r3, [each];
    mov.u32 %r4, counts; mad.lo.u32 %r5, %r1, 4, %r4; mov.u32 %r6, 0; st.shared.u32 [%r5], %r6;
    shl.b32 %r7, %r2, 8; mad.lo.u32 %r7, %r7, %r3, %r1;
    ld.param.u64 %x, [x]; mad.wide.u32 %x, %r7, 4, %x;
    bar.sync 0;
L:
    ld.global.u32 %r6, [%x]; mad.lo.u32 %r6, %r6, 4, %r4; red.shared.add.u32 [%r6], 1;
    add.u64 %x, %x, 1024; sub.u32 %r3, %r3, 1; setp.ne.u32 %p, %r3, 0;
    @%p bra L;
    bar.sync 0;
    ld.shared.u32 %r6, [%r5]; ld.param.u64 %h, [h]; mad.wide.u32 %h, %r1, 4, %h;
    red.global.add.u32 [%h], %r6;
    ret;
}}
"""
"""Blocks of 256 threads count numbers below 256, `each` a thread: in shared memory, then in h."""

PROBE = f"""{_START}
.visible .entry probe(.param .u64 x, .param .u64 y)
{{
    .reg .b32 %r<3>; .reg .b64 %x, %y;
    mov.u32 %r1, %tid.x; ld.param.u64 %x, [x]; ld.param.u64 %y, [y];
    mad.wide.u32 %x, %r1, 4, %x; mad.wide.u32 %y, %r1, 4, %y;
    ld.global.u32 %r2, [%x]; popc.b32 %r2, %r2; st.global.u32 [%y], %r2;
    ret;
}}
"""
"""One warp asks what an instruction gives."""
