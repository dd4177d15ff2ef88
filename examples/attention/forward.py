"""Flash attention: O = softmax(Q K^T / sqrt(d)) V for heads of d = 64 or 128 in f16, any lengths.

    python examples/attention/forward.py

h query heads share g heads of keys and values, h / g each; Q has m rows, K and V have n. With
`causal` query i sees the keys up to i + n - m, so the last query sees the last key. `lse` is the
logarithm of the sum of e^score over a row, which the backward pass takes. A query that sees no key
gets zeros, and lse -inf. For sm_80 by mma.sync, for sm_90a by wgmma: there Q, K and V are read from
shared memory. P, the sums of the first product, is an operand of the second where it is.
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Tile, f16, f32, index, s32


def forward(d: int, target: str = "sm_80", tile: tuple[int, int, int] | None = None):
    """The kernel for heads of d columns; `tile` is queries and keys at a time, and warps."""
    hopper = target == "sm_90a"
    rows, cols, warps = tile or ((64, 32, 4) if d == 64 and not hopper else (128, 64, 8))
    by = {"warpgroups": (warps // 4, 1)} if hopper else {"warps": (warps, 1)}
    scale = float(np.log2(np.e)) / d**0.5  # 2^x is what the machine has
    with fragir.kernel(f"attention_{d}", target=target, **by) as k:
        q = k.memory("q", f16, ("h", "m", d))
        keys, values = (k.memory(name, f16, ("g", "n", d)) for name in "kv")
        o = k.memory("o", f16, ("h", "m", d))
        lse = k.memory("lse", f32, ("h", "m"))
        causal = k.scalar("causal", s32)
        k.grid(f"m / {rows}", "h")
        row, head = k.block_id("x") * rows, k.block_id("y")
        group = head // (k.size("h") // k.size("g"))
        m, n = k.size("m").cast(s32), k.size("n").cast(s32)
        reach = row.cast(s32) + n + k.select(causal != 0, 1 - m, 0)
        seen = k.min(reach + k.iota(0, (rows,)), n)  # query i sees the keys before seen[i]
        end = k.max(k.min(reach + (rows - 1), n), 0).cast(index)

        ks, vs = (k.shared((cols, d), f16, swizzle=128) for _ in "kv")
        if hopper:
            qs = k.shared((rows, d), f16, swizzle=128)
            k.copy(q, (head, row, 0), qs, masked=True, asynchronous=True)
            k.commit()

            def scores() -> Tile:
                return k.wgmma(qs, ks, transposed_b=True)

            def add_values(p: Tile, acc: Tile) -> Tile:
                return k.wgmma(p, vs, acc)
        else:
            x = k.load(q, (head, row, 0), shape=(rows, d), masked=True)

            def scores() -> Tile:
                return k.mma(x, k.load(ks, (0, 0), shape=(d, cols), transposed=True))

            def add_values(p: Tile, acc: Tile) -> Tile:
                return k.mma(p, k.load(vs, (0, 0), shape=(cols, d)), acc)

        first = {"top": k.fill(-1e30, (rows,), f32), "total": k.fill(0, (rows,), f32)}
        with (
            k.loop(0, end, cols, acc=k.fill(0, (rows, d), f32), **first) as loop,
            k.fastmath("afn"),
        ):
            k.barrier()  # all have read the keys and values before
            k.copy(keys, (group, loop.index, 0), ks, masked=True, asynchronous=True)
            k.copy(values, (group, loop.index, 0), vs, masked=True, asynchronous=True)
            k.commit()
            k.wait()
            k.barrier()
            left = seen - loop.index.cast(s32)
            s = k.select(k.iota(0, (cols,)) < left[:, None], scores(), -np.inf)
            top = k.max(loop.top, s.max(1))
            p = k.exp2(k.fma(s, scale, (top * -scale)[:, None]))
            factor = k.exp2((loop.top - top) * scale)
            loop.total = k.fma(loop.total, factor, p.sum(1))
            loop.top = top
            loop.acc = add_values(p.cast(f16), loop.acc * factor[:, None])

        if hopper:
            k.wait()  # where there are no keys, nobody has waited for the queries
        total = k.select(seen > 0, loop.total, 1)
        k.store((loop.acc / total[:, None]).cast(f16), o, (head, row, 0), masked=True)
        sums = k.select(seen > 0, loop.top / d**0.5 + k.log(total), -np.inf)
        k.store(sums, lse, (head, row), masked=True)
    return k


k = forward(64)


def main() -> None:
    rng = np.random.default_rng(0)
    q = rng.standard_normal((2, 70, 64)).astype(np.float16)
    keys, values = rng.standard_normal((2, 1, 97, 64)).astype(np.float16)
    o, lse = np.empty_like(q), np.empty((2, 70), np.float32)
    k.compile()(q, keys, values, o, lse, 1)
    scores = q.astype(np.float64) @ keys[0].T.astype(np.float64) / 8
    i, j = np.indices((70, 97))
    e = np.where(j <= i + 27, np.exp(scores), 0)
    wanted = e @ values[0].astype(np.float64) / e.sum(-1, keepdims=True)
    error = np.abs(o - wanted).max()
    print(f"largest error {error:.1e}")
    # p and the answer are rounded to f16
    if error > 2**-9 or not np.allclose(lse, np.log(e.sum(-1)), atol=1e-5):
        raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
