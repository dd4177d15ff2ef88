"""Flash attention whose products run while the softmax is computed (sm_90a), in f16.

    python examples/attention/forward_overlapped.py

What it computes is what `forward.py` does, for one key or more. One warp fetches Q, K and V by TMA
into rings; two warpgroups take 64 queries each. Each turn issues Q K^T of its block of keys and P V
of the block before together, and computes the softmax of the first while the second goes on
(FlashAttention-3, Shah and others 2024). P stays in registers. No wait or barrier is written.
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Tile, f16, f32, index, s32


def forward(d: int, cols: int = 64):
    """The kernel for heads of d columns, with so many keys at a time."""
    rows = 128
    scale = float(np.log2(np.e)) / d**0.5  # 2^x is what the machine has
    with fragir.kernel(f"attention_{d}", target="sm_90a") as k:
        q = k.memory("q", f16, ("h", "m", d))
        keys, values = (k.memory(name, f16, ("g", "n", d)) for name in "kv")
        o = k.memory("o", f16, ("h", "m", d))
        lse = k.memory("lse", f32, ("h", "m"))
        causal = k.scalar("causal", s32)
        k.grid(f"m / {rows}", "h")
        row, head = k.block_id("x") * rows, k.block_id("y")
        group = head // (k.size("h") // k.size("g"))
        m, n = k.size("m").cast(s32), k.size("n").cast(s32)
        # query i sees the keys before reach + i, and before n
        reach = row.cast(s32) + n + k.select(causal != 0, 1 - m, 0)
        end = k.max(k.min(reach + (rows - 1), n), 1).cast(index)  # one block of keys at least

        queries = k.ring(1, [k.part((rows, d), f16, swizzle=128)])
        block = [k.part((cols, d), f16, swizzle=128)]
        key_blocks, value_blocks = k.ring(2, block), k.ring(2, block)

        def fetch(ring, memory, at):
            slot = ring.acquire()
            k.copy(memory, at, slot.parts[0], tma=True)
            slot.publish()

        with k.role("load", warps=(1, 1), registers=24):
            fetch(queries, q, (head, row, 0))
            with k.loop(0, end, cols) as loop:
                fetch(key_blocks, keys, (group, loop.index, 0))
                fetch(value_blocks, values, (group, loop.index, 0))

        with k.role("attend", warpgroups=(2, 1), registers=240), k.fastmath("afn"):
            seen = k.min(reach + k.iota(0, (rows,)), n)
            held = queries.wait()
            (qs,) = held.parts

            def weights(sums: Tile, at, top: Tile) -> tuple[Tile, Tile, Tile]:
                left = seen - at.cast(s32)
                s = k.select(k.iota(0, (cols,)) < left[:, None], sums, -np.inf)
                new = k.max(top, s.max(1))
                p = k.exp2(k.fma(s, scale, (new * -scale)[:, None]))
                return new, p, k.exp2((top - new) * scale)

            slot = key_blocks.wait()
            s = k.wgmma_async(qs, slot.parts[0], transposed_b=True).wait()
            slot.release()
            top, p, _ = weights(s, k.constant(0, index), k.fill(-1e30, (rows,), f32))
            start = {"top": top, "total": p.sum(1), "p": p.cast(f16)}
            with k.loop(cols, end, cols, acc=k.fill(0, (rows, d), f32), **start) as loop:
                slot = key_blocks.wait()
                scores = k.wgmma_async(qs, slot.parts[0], transposed_b=True)
                old = value_blocks.wait()
                sums = k.wgmma_async(loop.p, old.parts[0], loop.acc)
                s = scores.wait()  # the product with the values goes on
                slot.release()
                top, p, factor = weights(s, loop.index, loop.top)
                loop.total = k.fma(loop.total, factor, p.sum(1))
                loop.top = top
                acc = sums.wait()
                old.release()
                loop.acc = acc * factor[:, None]
                loop.p = p.cast(f16)
            old = value_blocks.wait()
            acc = k.wgmma_async(loop.p, old.parts[0], loop.acc).wait()
            old.release()
            held.release()
            total = k.select(seen > 0, loop.total, 1)
            answer = k.select((seen > 0)[:, None], acc / total[:, None], 0)
            k.store(answer.cast(f16), o, (head, row, 0), masked=True)
            logs = k.select(seen > 0, loop.top / d**0.5 + k.log(total), -np.inf)
            k.store(logs, lse, (head, row), masked=True)
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
