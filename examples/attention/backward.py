"""The gradient of flash attention: dQ, dK and dV from dO, for heads of 64 columns in f16.

    python examples/attention/backward.py

Three kernels, as FlashAttention-2 has them, for the same heads, lengths and masks as `forward.py`,
whose O and `lse` they take. `delta` are the products of the rows of O and dO. P comes from `lse`
once more, so nothing of m x n is stored: P = e^(S - lse), dS = P (dO V^T - delta) / sqrt(d).

`dkdv` takes a block of keys and goes over the queries of all heads that share them. It computes S
transposed, K Q^T: so P and dS stand as the A operands of dV = P^T dO and dK = dS^T Q where they
are. `dq` takes a block of queries and computes S and dO V^T once more, for dQ = dS K. That is two
products more than adding to dQ by atomics in `dkdv`, but dS need not be transposed, no sum in f32
goes through memory, and the answer is the same bits every time.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import fragir
from fragir import f16, f32, index, s32

D = 64
LOG2E = float(np.log2(np.e))  # 2^x is what the machine has

with fragir.kernel("attention_delta", warps=(4, 1)) as delta:
    k = delta
    o, do = (k.memory(name, f16, ("h", "m", D)) for name in ("o", "do"))
    products = k.memory("delta", f32, ("h", "m"))
    k.grid("m / 64", "h")
    row, head = k.block_id("x") * 64, k.block_id("y")
    x, y = (k.load(t, (head, row, 0), shape=(64, D), masked=True).cast(f32) for t in (o, do))
    k.store((x * y).sum(1), products, (head, row), masked=True)

KEYS, QUERIES = 64, 32
with fragir.kernel("attention_dkdv", warps=(4, 1)) as dkdv:
    k = dkdv
    q = k.memory("q", f16, ("h", "m", D))
    keys, values = (k.memory(name, f16, ("g", "n", D)) for name in "kv")
    do = k.memory("do", f16, ("h", "m", D))
    lse, products = (k.memory(name, f32, ("h", "m")) for name in ("lse", "delta"))
    dk, dv = (k.memory(name, f16, ("g", "n", D)) for name in ("dk", "dv"))
    causal = k.scalar("causal", s32)
    k.grid(f"n / {KEYS}", "g")
    col, group = k.block_id("x") * KEYS, k.block_id("y")
    each = k.size("h") // k.size("g")
    m, n = k.size("m").cast(s32), k.size("n").cast(s32)
    since = col.cast(s32) - n + k.select(causal != 0, m, 0)
    visible = since + k.iota(0, (KEYS,))  # key j is seen by the queries from visible[j] on
    start = k.max(since, 0).cast(index)

    x, y = (k.load(t, (group, col, 0), shape=(KEYS, D), masked=True) for t in (keys, values))
    qs, dos = (k.shared((QUERIES, D), f16, swizzle=128) for _ in range(2))
    zero = k.fill(0, (KEYS, D), f32)
    with k.loop(group * each, (group + 1) * each, dk=zero, dv=zero) as heads:
        head = heads.index
        with (
            k.loop(start, k.size("m"), QUERIES, dk=heads.dk, dv=heads.dv) as loop,
            k.fastmath("afn"),
        ):
            at = (head, loop.index)
            k.barrier()
            k.copy(q, (*at, 0), qs, masked=True, asynchronous=True)
            k.copy(do, (*at, 0), dos, masked=True, asynchronous=True)
            k.commit()
            sums, rows = (k.load(t, at, shape=(QUERIES,), masked=True) for t in (lse, products))
            k.wait()
            k.barrier()
            s = k.mma(x, k.load(qs, (0, 0), shape=(D, QUERIES), transposed=True))
            p = k.exp2(k.fma(s, LOG2E / D**0.5, sums * -LOG2E))
            left = visible - loop.index.cast(s32)
            p = k.select(k.iota(0, (QUERIES,)) >= left[:, None], p, 0)
            loop.dv = k.mma(p.cast(f16), k.load(dos, (0, 0), shape=(QUERIES, D)), loop.dv)
            dp = k.mma(y, k.load(dos, (0, 0), shape=(D, QUERIES), transposed=True))
            ds = (p * (dp - rows)).cast(f16)
            loop.dk = k.mma(ds, k.load(qs, (0, 0), shape=(QUERIES, D)), loop.dk)
        heads.dk, heads.dv = loop.dk, loop.dv
    k.store((heads.dk * D**-0.5).cast(f16), dk, (group, col, 0), masked=True)
    k.store(heads.dv.cast(f16), dv, (group, col, 0), masked=True)

ROWS, COLS = 64, 32
with fragir.kernel("attention_dq", warps=(4, 1)) as dq:
    k = dq
    q = k.memory("q", f16, ("h", "m", D))
    keys, values = (k.memory(name, f16, ("g", "n", D)) for name in "kv")
    do = k.memory("do", f16, ("h", "m", D))
    lse, products = (k.memory(name, f32, ("h", "m")) for name in ("lse", "delta"))
    result = k.memory("dq", f16, ("h", "m", D))
    causal = k.scalar("causal", s32)
    k.grid(f"m / {ROWS}", "h")
    row, head = k.block_id("x") * ROWS, k.block_id("y")
    group = head // (k.size("h") // k.size("g"))
    m, n = k.size("m").cast(s32), k.size("n").cast(s32)
    reach = row.cast(s32) + n + k.select(causal != 0, 1 - m, 0)
    seen = k.min(reach + k.iota(0, (ROWS,)), n)  # query i sees the keys before seen[i]
    end = k.max(k.min(reach + (ROWS - 1), n), 0).cast(index)

    x, y = (k.load(t, (head, row, 0), shape=(ROWS, D), masked=True) for t in (q, do))
    sums, rows = (k.load(t, (head, row), shape=(ROWS,), masked=True) for t in (lse, products))
    sums = sums * -LOG2E
    ks, vs = (k.shared((COLS, D), f16, swizzle=128) for _ in range(2))
    with k.loop(0, end, COLS, acc=k.fill(0, (ROWS, D), f32)) as loop, k.fastmath("afn"):
        k.barrier()
        k.copy(keys, (group, loop.index, 0), ks, masked=True, asynchronous=True)
        k.copy(values, (group, loop.index, 0), vs, masked=True, asynchronous=True)
        k.commit()
        k.wait()
        k.barrier()
        s = k.mma(x, k.load(ks, (0, 0), shape=(D, COLS), transposed=True))
        p = k.exp2(k.fma(s, LOG2E / D**0.5, sums[:, None]))
        left = seen - loop.index.cast(s32)
        p = k.select(k.iota(0, (COLS,)) < left[:, None], p, 0)
        dp = k.mma(y, k.load(vs, (0, 0), shape=(D, COLS), transposed=True))
        ds = (p * (dp - rows[:, None])).cast(f16)
        loop.acc = k.mma(ds, k.load(ks, (0, 0), shape=(COLS, D)), loop.acc)
    k.store((loop.acc * D**-0.5).cast(f16), result, (head, row, 0), masked=True)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parent))
    from forward import forward

    h, g, m, n = 2, 1, 40, 70
    rng = np.random.default_rng(0)
    sizes = ((h, m), (g, n), (g, n), (h, m))
    q, keys, values, do = (rng.standard_normal((*s, D)).astype(np.float16) for s in sizes)
    o, lse = np.empty_like(q), np.empty((h, m), np.float32)
    forward(D).compile()(q, keys, values, o, lse, 1)
    products = np.empty_like(lse)
    found = [np.empty_like(x) for x in (q, keys, values)]
    delta.compile()(o, do, products)
    dkdv.compile()(q, keys, values, do, lse, products, *found[1:], 1)
    dq.compile()(q, keys, values, do, lse, products, found[0], 1)
    for name, is_, wanted in zip("qkv", found, gradients(q, keys[0], values[0], do), strict=True):
        error = np.abs(is_ - wanted).max() / np.abs(wanted).max()
        print(f"d{name}: largest error {error:.1e} of the largest element")
        # p, ds, o and the answers are rounded to f16
        if not error < 2**-9:
            raise SystemExit("FAIL")
    print("PASS")


def gradients(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    """dQ, dK, dV of causal attention of all heads with one head of keys, in f64."""
    q, k, v, do = (x.astype(np.float64) for x in arrays)
    i, j = np.indices((q.shape[1], len(k)))
    e = np.where(j <= i + len(k) - q.shape[1], np.exp(q @ k.T / D**0.5), 0)
    p = e / e.sum(-1, keepdims=True)
    dp = do @ v.T
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) / D**0.5
    turned = (0, 2, 1)
    dk, dv = (ds.transpose(turned) @ q).sum(0), (p.transpose(turned) @ do).sum(0)
    return ds @ k, dk[None], dv[None]


if __name__ == "__main__":
    main()
