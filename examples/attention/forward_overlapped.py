"""Flash attention whose products run while the softmax is computed (sm_90a).

    python examples/attention/forward_overlapped.py

What it computes is what `forward.py` does, for one key or more; see `forward` for what else it
takes. Blocks stay, and go from tile to tile of queries, of some heads the longest first. One warp
fetches Q, K and V by TMA into rings; two warpgroups take 64 queries each. Each turn issues Q K^T of
its block of keys and P V of the block before together, and computes the softmax of the first while
the second goes on (FlashAttention-3, Shah and others 2024). Keys come from the last to the first,
so that those which a mask cuts are soon over; the others have a loop without it. P stays in
registers, sums of rows stay in their lanes until the end. No wait or barrier is written.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from typing import NamedTuple

import numpy as np

import fragir
from fragir import Scalar, Tile, bf16, e4m3, f16, f32, index, s32

ROWS = 128  # queries of a block
LOG_2 = float(np.log(2))
SIZES = {64: (128, 2), 96: (160, 2), 128: (128, 2), 192: (96, 1), 256: (64, 1)}
"""Columns of a head to keys at a time, and slots for queries: what shared memory has room for."""


class Work(NamedTuple):
    """A tile of queries, and the keys that it sees: the blocks from `last` down to `first`."""

    row: Scalar
    head: Scalar
    rows: Scalar | int  # what follows is no query of this sequence
    n: Scalar
    reach: Scalar  # query i sees the keys before reach + i
    low: Scalar | None  # and from low + i on
    keys: tuple[Scalar, Scalar]  # the head of keys, and where they begin
    last: Scalar
    blocks: Scalar


def forward(
    d: int,
    cols: int | None = None,
    element=f16,
    *,
    window: bool = False,
    varlen: bool = False,
    paged: bool = False,
    ping_pong: bool = False,
):
    """The kernel for heads of d columns, with so many keys at a time.

    `window`: a query sees so many keys at most, its own the last of them. `varlen`: sequences lie
    behind each other, heads side by side in rows; they end at `q_ends` and `k_ends`. `paged`: keys
    and values lie in pages of `cols` keys, which a table has for each of b sequences of `lengths`
    keys. `ping_pong`: the warpgroups issue their products in turn. `element`: f16, bf16 or e4m3,
    of which V is transposed on the way, by four more warps; then O is bf16.
    """
    cols, slots = cols or SIZES[d][0], SIZES[d][1]
    parts = 2 if ping_pong else 1
    fp8 = element is e4m3
    rows, row_bytes = ROWS // parts, d if fp8 else 2 * d
    swizzle = next(bytes_ for bytes_ in (128, 64, 32) if row_bytes % bytes_ == 0)
    answers = bf16 if fp8 else element
    scale = float(np.log2(np.e)) / d**0.5  # 2^x is what the machine has
    with fragir.kernel(f"attention_{d}", target="sm_90a") as k:
        if varlen:
            q = k.memory("q", element, ("t", "hd"))
            keys, values = (k.memory(name, element, ("s", "gd")) for name in "kv")
            o, lse = k.memory("o", answers, ("t", "hd")), k.memory("lse", f32, ("t", "h"))
            q_ends, k_ends = (k.memory(name, s32, ("b",)) for name in ("q_ends", "k_ends"))
            k.divisible(hd=d, gd=d)
            groups = k.size("gd") // d
        else:
            first = ("p", "g", cols, d) if paged else ("g", "n", d)
            q = k.memory("q", element, ("h", "m", d))
            keys, values = (k.memory(name, element, first) for name in "kv")
            o, lse = k.memory("o", answers, ("h", "m", d)), k.memory("lse", f32, ("h", "m"))
            if paged:
                table = k.memory("table", s32, ("b", "pages"))
                lengths = k.memory("lengths", s32, ("b",))
            groups = k.size("g")
        causal = k.scalar("causal", s32)
        longest = k.scalar("window", s32) if window else None
        if fp8:
            scale = k.scalar("qk_scale", f32) * scale
            v_scale = k.scalar("v_scale", f32)
        heads = k.size("h")

        @contextmanager
        def tiles():
            """Goes from tile to tile of queries."""
            if varlen:
                sizes = (k.size("t"), heads), (ROWS, 1)
                loop = k.for_tiles(*sizes, persistent=True, groups=q_ends)
            else:
                sizes = (heads, k.size("m")), (1, ROWS)
                loop = k.for_tiles(*sizes, order="grouped", group=8, persistent=True)
            with loop as place:
                if varlen:
                    row, head, sequence, end = place
                    before = k.max(sequence.cast(s32) - 1, 0).cast(index)
                    here = [
                        k.select(sequence > 0, k.load_scalar(ends, (before,)), 0)
                        for ends in (q_ends, k_ends)
                    ]
                    m, at = end.cast(s32) - here[0], row.cast(s32) - here[0]
                    n, start = k.load_scalar(k_ends, (sequence,)) - here[1], here[1].cast(index)
                    group = head // (heads // groups)
                else:
                    head, row = place
                    row = (k.size("m") + (ROWS - 1)) // ROWS * ROWS - ROWS - row
                    m, at = k.size("m").cast(s32), row.cast(s32)
                    group, start = head // (heads // groups), k.constant(0, index)
                    end = k.size("m")
                    if paged:
                        each = heads // k.size("b")  # heads of a sequence
                        start = head // each
                        group = head % each // (each // groups)
                        n = k.load_scalar(lengths, (start,))
                    else:
                        n = k.size("n").cast(s32)
                # query i sees the keys before reach + i, and before n
                reach = at + n + k.select(causal != 0, 1 - m, 0)
                low = None if longest is None else at + n - m + 1 - longest
                last = ((k.max(k.min(reach + (ROWS - 1), n), 1) - 1).cast(index)) // cols
                blocks = last + 1
                if low is not None:
                    seen = k.max(low, 0).cast(index) // cols
                    blocks = blocks - k.min(seen, last)
                yield Work(row, head, end, n, reach, low, (group, start), last, blocks)

        query_rings = [
            k.ring(slots, [k.part((rows, d), element, swizzle=swizzle)]) for _ in range(parts)
        ]
        block = [k.part((cols, d), element, swizzle=swizzle)]
        key_blocks, value_blocks = k.ring(2, block), k.ring(2, block)
        if fp8:  # which wgmma reads with keys in a row alone
            fetched, turned = value_blocks, k.part((d, cols), element, swizzle=128)
            value_blocks = k.ring(2, [turned])

        def fetch(ring, memory, at):
            slot = ring.acquire()
            k.copy(memory, at, slot.parts[0], tma=True)
            slot.publish()

        loaded = fetched if fp8 else value_blocks
        with k.role("load", warps=(1, 1), registers=24), tiles() as work:
            for part, ring in enumerate(query_rings):
                row = work.row + part * rows
                at = (row, work.head * d) if varlen else (work.head, row, 0)
                fetch(ring, q, at)
            with k.loop(0, work.blocks) as loop:
                number = work.last - loop.index
                group, start = work.keys
                if varlen:
                    at = (start + number * cols, group * d)
                elif paged:
                    at = (k.load_scalar(table, (start, number)).cast(index), group, 0, 0)
                else:
                    at = (group, number * cols, 0)
                fetch(key_blocks, keys, at)
                fetch(loaded, values, at)

        if fp8:
            with k.role("turn", warps=(4, 1), registers=72), tiles() as work:
                with k.loop(0, work.blocks):
                    slot = fetched.wait()
                    x = k.load(slot.parts[0], (0, 0), shape=(d, cols), transposed=True)
                    slot.release()
                    slot = value_blocks.acquire()
                    k.store(x, slot.parts[0], (0, 0))
                    slot.publish()

        for part, queries in enumerate(query_rings):
            with (
                k.role(
                    f"attend{part or ''}", warpgroups=(2 // parts, 1), registers=208 if fp8 else 240
                ),
                k.fastmath("afn"),
                tiles() as work,
            ):
                here = k.iota(0, (rows,)) + part * rows
                seen = k.min(work.reach + here, work.n)
                low = None if work.low is None else work.low + here
                held = queries.wait()
                (qs,) = held.parts

                def weights(sums: Tile, top: Tile, i: Scalar | None) -> tuple[Tile, Tile, Tile]:
                    """The largest so far, the weights, and the factor of what is there; of block i
                    some keys are not seen."""
                    if i is not None:
                        at, key = ((work.last - i) * cols).cast(s32), k.iota(0, (cols,))
                        sums = k.select(key < (seen - at)[:, None], sums, -np.inf)
                        if low is not None:
                            sums = k.select(key >= (low - at)[:, None], sums, -np.inf)
                    new = k.max(top, sums.max(1))
                    # P times 2^8 fills the range of e4m3
                    less = new * -scale + 8 if fp8 else new * -scale
                    p = k.exp2(k.fma(sums, scale, less[:, None]))
                    return new, p, k.exp2((top - new) * scale)

                def total(p: Tile) -> Tile:
                    """The sum of a row, as far as a lane has it: lanes have pairs of each 8."""
                    return p.reshape(rows, cols // 8, 4, 2).sum(3).sum(1)

                slot = key_blocks.wait()
                s = k.wgmma_async(qs, slot.parts[0], transposed_b=True).wait()
                slot.release()
                top, p, _ = weights(s, k.fill(-1e30, (rows,), f32), k.constant(0, index))
                acc = k.fill(0, (rows, d), f32)
                state = {"top": top, "total": total(p), "p": p.cast(element), "acc": acc}

                def turns(start: Scalar | int, end: Scalar, masked: bool, state: dict[str, Tile]):
                    with k.loop(start, end, **state) as loop:
                        slot = key_blocks.wait()
                        with k.turn("products") if ping_pong else nullcontext():
                            scores = k.wgmma_async(qs, slot.parts[0], transposed_b=True)
                            old = value_blocks.wait()
                            sums = k.wgmma_async(loop.p, old.parts[0], loop.acc, transposed_b=fp8)
                        s = scores.wait()  # the product with the values goes on
                        slot.release()
                        top, p, factor = weights(s, loop.top, loop.index if masked else None)
                        loop.total = k.fma(loop.total, factor[:, None], total(p))
                        loop.top = top
                        acc = sums.wait()
                        old.release()
                        loop.acc = acc * factor[:, None]
                        loop.p = p.cast(element)
                    return {name: getattr(loop, name) for name in state}

                # blocks that all of these queries see whole
                whole = k.max(k.min(work.reach, work.n), 0).cast(index) // cols
                first = k.min(k.max(work.last + 1 - whole, 1), work.blocks)
                state = turns(1, first, True, state)
                if work.low is None:
                    state = turns(first, work.blocks, False, state)
                else:
                    cut = (k.max(work.low + (ROWS - 1), 0).cast(index) + (cols - 1)) // cols
                    cut = k.max(work.last + 1 - k.min(cut, work.last), first)
                    state = turns(first, k.min(cut, work.blocks), False, state)
                    state = turns(k.min(cut, work.blocks), work.blocks, True, state)

                old = value_blocks.wait()
                acc = k.wgmma_async(state["p"], old.parts[0], state["acc"], transposed_b=fp8).wait()
                old.release()
                any_seen = seen > 0 if low is None else (seen > k.max(low, 0))
                sums = k.select(any_seen, state["total"].sum(1), 1)
                each = v_scale / sums if fp8 else 1 / sums
                answer = k.select(any_seen[:, None], acc * each[:, None], 0).cast(answers)
                logs = state["top"] * (scale * LOG_2) + k.log(sums)
                logs = k.select(any_seen, logs - 8 * LOG_2 if fp8 else logs, -np.inf)
                row, head = work.row + part * rows, work.head
                if varlen:
                    held.release()
                    k.store(answer, k.head(o, work.rows), (row, head * d), masked=True)
                    k.store(logs[:, None], k.head(lse, work.rows), (row, head), masked=True)
                else:
                    if fp8:
                        k.store(answer, o, (head, row, 0), masked=True)
                    else:
                        k.store(answer, qs, (0, 0))
                        k.copy(qs, (), o, (head, row, 0), tma=True)
                    held.release()
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
