"""Kernels of tcgen05 for tests: a GEMM with its ring, and single products of any form.

`gemm()` is written out as pieces by name, so that tests can leave one out or put another there.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

HEAD = ".version 8.8\n.target sm_100a\n.address_size 64\n"
#: Of the GEMM: dynamic shared memory, A and B in two stages, then barriers and the address.
STAGE = 32768
SHARED = 2 * STAGE + 64
_REGISTERS = ", ".join(f"v{i}" for i in range(32))
_STORES = "\n".join(
    f"    st.global.v4.b32 [C+{16 * i}], {{v{4 * i},v{4 * i + 1},v{4 * i + 2},v{4 * i + 3}}};"
    for i in range(8)
)

COPY = "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes"

#: The pieces, in order. C[M,N] = A[M,K] * B[N,K]^T, tiles of 128 x 128 x 64, 128 threads.
PIECES: dict[str, str] = {
    "alloc": "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [hold], 128;",
    "relinquish": "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
    "initialise": """
    mbarrier.init.shared::cta.b64 [full], 1;  mbarrier.init.shared::cta.b64 [full+8], 1;
    mbarrier.init.shared::cta.b64 [empty], 1; mbarrier.init.shared::cta.b64 [empty+8], 1;
    mbarrier.init.shared::cta.b64 [done], 1;
    fence.mbarrier_init.release.cluster;""",
    "meet": "bar.sync 0;",
    "free stage": """
FREE:
    mbarrier.try_wait.parity.shared::cta.b64 ready, [slot+16], turn;
    @!ready bra FREE;""",
    "load": """
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [slot], 32768;
    COPY [t], [gA, {k, m0}], [slot];
    COPY [t+16384], [gB, {k, n0}], [slot];""".replace("COPY", COPY),
    "loaded": """
LOADED:
    mbarrier.try_wait.parity.shared::cta.b64 ready, [slot], parity;
    @!ready bra LOADED;""",
    "products": """
    setp.ne.u32 acc, k, 0;
    tcgen05.mma.cta_group::1.kind::f16 [taddr], dA, dB, idesc, acc;
    add.u64 dA, dA, 2; add.u64 dB, dB, 2;
    tcgen05.mma.cta_group::1.kind::f16 [taddr], dA, dB, idesc, 1;
    add.u64 dA, dA, 2; add.u64 dB, dB, 2;
    tcgen05.mma.cta_group::1.kind::f16 [taddr], dA, dB, idesc, 1;
    add.u64 dA, dA, 2; add.u64 dB, dB, 2;
    tcgen05.mma.cta_group::1.kind::f16 [taddr], dA, dB, idesc, 1;""",
    "release": "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [slot+16];",
    "commit": "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [done];",
    "finished": """
FINISHED:
    mbarrier.try_wait.parity.shared::cta.b64 ready, [done], 0;
    @!ready bra FINISHED;""",
    "after": "",
    "ld": f"tcgen05.ld.sync.aligned.32x32b.x32.b32 {{{_REGISTERS}}}, [u];",
    "wait ld": "tcgen05.wait::ld.sync.aligned;",
    "store": _STORES,
    "all read": "bar.sync 0;",
    "dealloc": "tcgen05.dealloc.cta_group::1.sync.aligned.b32 taddr, 128;",
}


def gemm(**changed: str) -> str:
    """The kernel, with some pieces changed (`_` in names is a blank)."""
    p = {**PIECES, **{name.replace("_", " "): text for name, text in changed.items()}}
    assert p.keys() == PIECES.keys()
    return f"""{HEAD}
.extern .shared .align 1024 .b8 dyn[];
.visible .entry gemm(.param .align 64 .b8 mapA[128], .param .align 64 .b8 mapB[128],
                     .param .u64 pC, .param .u32 pN, .param .u32 pK)
.reqntid 128, 1, 1
{{
    .reg .pred first, leader, ready, more, acc;
    .reg .b32 tid, warp, full, empty, done, hold, taddr, k, K, N, m0, n0, parity, turn, stage;
    .reg .b32 col, idesc, row, t, u, v<32>, slot, base;
    .reg .b64 gA, gB, C, dA, dB, p, w;
    mov.u32 tid, %tid.x; shr.u32 warp, tid, 5; mov.u32 base, dyn;
    add.u32 full, base, {2 * STAGE}; add.u32 empty, full, 16; add.u32 done, full, 32;
    add.u32 hold, full, 40;
    ld.param.u32 N, [pN]; ld.param.u32 K, [pK]; ld.param.u64 C, [pC];
    mov.u32 t, %ctaid.x; shl.b32 n0, t, 7; mov.u32 t, %ctaid.y; shl.b32 m0, t, 7;
    setp.eq.u32 first, warp, 0; setp.eq.u32 leader, tid, 0;
    @!first bra ALLOCATED;
    {p["alloc"]}
    {p["relinquish"]}
ALLOCATED:
    @!leader bra INITIALISED;
    {p["initialise"]}
INITIALISED:
    {p["meet"]}
    ld.shared.b32 taddr, [hold];
    @!leader bra ISSUED;
    mov.b64 gA, mapA; cvta.param.u64 gA, gA; mov.b64 gB, mapB; cvta.param.u64 gB, gB;
    mov.b32 idesc, 0x08200010; mov.b32 k, 0; mov.b32 parity, 0; mov.b32 stage, 0;
TILE:
    shl.b32 slot, stage, 3; add.u32 slot, slot, full; xor.b32 turn, parity, 1;
    {p["free stage"]}
    mul.lo.u32 t, stage, {STAGE}; add.u32 t, t, base;
    {p["load"]}
    {p["loaded"]}
    shr.u32 u, t, 4; or.b32 u, u, 0x10000; mov.b64 dA, {{u, 0x40004040}};
    add.u64 dB, dA, 1024;
    {p["products"]}
    {p["release"]}
    xor.b32 stage, stage, 1; setp.eq.u32 ready, stage, 0; @ready xor.b32 parity, parity, 1;
    add.u32 k, k, 64; setp.lt.u32 more, k, K;
    @more bra TILE;
    {p["commit"]}
ISSUED:
    bar.warp.sync 0xffffffff;
    {p["finished"]}
    {p["after"]}
    shl.b32 t, warp, 21; add.u32 t, taddr, t;
    add.u32 row, m0, tid; mul.wide.u32 p, row, N; cvt.u64.u32 w, n0; add.u64 p, p, w;
    shl.b64 p, p, 2; add.u64 C, C, p; mov.b32 col, 0;
COLUMNS:
    add.u32 u, t, col;
    {p["ld"]}
    {p["wait ld"]}
    {p["store"]}
    add.u64 C, C, 128; add.u32 col, col, 32; setp.lt.u32 more, col, 128;
    @more bra COLUMNS;
    {p["all read"]}
    @!first bra DONE;
    {p["dealloc"]}
DONE:
    ret;
}}
"""


def gemm_arrays(
    m: int = 128, n: int = 128, k: int = 192
) -> tuple[npt.NDArray[np.float16], npt.NDArray[np.float16], npt.NDArray[np.float32]]:
    """A, B, and room for C."""
    rng = np.random.default_rng(5)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (n, k)).astype(np.float16)
    return a, b, np.zeros((m, n), np.float32)
