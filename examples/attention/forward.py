"""Flash attention: O = softmax(Q K^T / sqrt(d)) V for heads of d = 64 or 128 in f16, any lengths.

    python examples/attention/forward.py

h query heads share g heads of keys and values, h / g each; Q has m rows, K and V have n. With
`causal` query i sees the keys up to i + n - m, so the last query sees the last key. `lse` is the
logarithm of the sum of e^score over a row, which the backward pass takes. A query that sees no key
gets zeros, and lse -inf. For sm_80 by mma.sync, for sm_90a by wgmma: there Q, K and V are read from
shared memory. Keys and values are on their way a block ahead; blocks that all queries see whole
have a loop without a mask. P, the sums of the first product, is an operand of the second where it
is, and sums of rows stay in their lanes until the end.
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import Memory, Scalar, Tile, f16, f32, index, s32


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
        whole = k.max(k.min(reach, n), 0).cast(index) // cols * cols  # keys that all queries see

        def fetch(ring, memory: Memory, at: tuple[Scalar | int, ...]) -> None:
            slot = ring.acquire()
            k.copy(memory, at, slot.parts[0], masked=True, asynchronous=True)
            slot.publish()

        key_blocks, value_blocks = (k.ring(2, [k.part((cols, d), f16, swizzle=128)]) for _ in "kv")
        if hopper:
            queries = k.ring(1, [k.part((rows, d), f16, swizzle=128)])
            fetch(queries, q, (head, row, 0))
        fetch(key_blocks, keys, (group, 0, 0))
        fetch(value_blocks, values, (group, 0, 0))
        if hopper:
            held = queries.wait()

            def scores(ks: Memory) -> Tile:
                return k.wgmma(held.parts[0], ks, transposed_b=True)

            def add_values(p: Tile, vs: Memory, acc: Tile) -> Tile:
                return k.wgmma(p, vs, acc)
        else:
            x = k.load(q, (head, row, 0), shape=(rows, d), masked=True)

            def scores(ks: Memory) -> Tile:
                return k.mma(x, k.load(ks, (0, 0), shape=(d, cols), transposed=True))

            def add_values(p: Tile, vs: Memory, acc: Tile) -> Tile:
                return k.mma(p, k.load(vs, (0, 0), shape=(cols, d)), acc)

        def turns(start: Scalar | int, end: Scalar, masked: bool, state: dict[str, Tile]):
            """Takes the keys from `start` to `end`."""
            with k.loop(start, end, cols, **state) as loop, k.fastmath("afn"):
                after = (group, loop.index + cols, 0)
                slot = key_blocks.wait()
                fetch(key_blocks, keys, after)
                s = scores(slot.parts[0])
                slot.release()
                if masked:
                    left = seen - loop.index.cast(s32)
                    s = k.select(k.iota(0, (cols,)) < left[:, None], s, -np.inf)
                top = k.max(loop.top, s.max(1))
                p = k.exp2(k.fma(s, scale, (top * -scale)[:, None]))
                factor = k.exp2((loop.top - top) * scale)[:, None]
                # lanes have pairs of each 8 columns
                part = p.reshape(rows, cols // 8, 4, 2).sum(3).sum(1)
                loop.total = k.fma(loop.total, factor, part)
                loop.top = top
                slot = value_blocks.wait()
                fetch(value_blocks, values, after)
                loop.acc = add_values(p.cast(f16), slot.parts[0], loop.acc * factor)
                slot.release()
            return {name: getattr(loop, name) for name in state}

        start = {"top": (rows,), "total": (rows, 4), "acc": (rows, d)}
        state = {name: k.fill(-1e30 if name == "top" else 0, start[name], f32) for name in start}
        state = turns(0, whole, False, state)
        state = turns(whole, end, True, state)
        if hopper:
            held.release()
        total = k.select(seen > 0, state["total"].sum(1), 1)
        k.store((state["acc"] / total[:, None]).cast(f16), o, (head, row, 0), masked=True)
        sums = k.select(seen > 0, state["top"] / d**0.5 + k.log(total), -np.inf)
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
