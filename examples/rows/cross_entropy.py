"""Cross entropy of rows of any length, forward and backward: bf16 in memory, f32 in registers.

loss = log(sum of exp(x)) - x[target], 0 where the target is `ignored`. The forward kernel keeps
the logarithms for the backward one: dx = (exp(x - logsum) - (column is target)) dloss.

    python examples/rows/cross_entropy.py
"""

from __future__ import annotations

import numpy as np

import fragir
from fragir import bf16, f32, s32
from fragir.reference.formats import decode, encode

ROWS, PART = 1, 2048
LOWEST = -3.4028235e38
IGNORED = -100

with fragir.kernel("cross_entropy", warps=(4, 1)) as k:
    x = k.memory("x", bf16, ("m", "n"))
    targets = k.memory("targets", s32, ("m",))
    losses = k.memory("losses", f32, ("m",))
    logsums = k.memory("logsums", f32, ("m",))
    ignored = k.scalar("ignored", s32)
    k.grid(f"m / {ROWS}")
    row = k.block_id("x") * ROWS
    start = {"largest": k.fill(LOWEST, (ROWS,), f32), "total": k.fill(0, (ROWS,), f32)}
    with k.loop(0, k.size("n"), PART, **start) as loop:
        t = k.load(x, (row, loop.index), shape=(ROWS, PART), masked=True, other=-np.inf).cast(f32)
        largest = k.max(loop.largest, t.max(1))
        more = k.exp(t - largest[:, None]).sum(1)
        loop.total = loop.total * k.exp(loop.largest - largest) + more
        loop.largest = largest
    log = k.log(loop.total)
    target = k.load(targets, (row,), shape=(ROWS,), masked=True)
    counts = target != ignored
    rows = k.iota(0, (ROWS,)) + row.cast(s32)
    picked = k.gather(x, (rows, target), shape=(ROWS,), masked=True, where=counts).cast(f32)
    k.store(loop.largest + log, logsums, (row,), masked=True)
    loss = k.select(counts, log + (loop.largest - picked), 0)  # not logsum - picked, which cancels
    k.store(loss, losses, (row,), masked=True)

with fragir.kernel("cross_entropy_backward", warps=(4, 1)) as backward:
    b = backward
    x = b.memory("x", bf16, ("m", "n"))
    targets = b.memory("targets", s32, ("m",))
    logsums = b.memory("logsums", f32, ("m",))
    dlosses = b.memory("dlosses", f32, ("m",))
    dx = b.memory("dx", bf16, ("m", "n"))
    ignored = b.scalar("ignored", s32)
    b.grid(f"n / {PART}", f"m / {ROWS}")
    row, column = b.block_id("y") * ROWS, b.block_id("x") * PART
    target = b.load(targets, (row,), shape=(ROWS,), masked=True)
    logsum = b.load(logsums, (row,), shape=(ROWS,), masked=True)
    dloss = b.load(dlosses, (row,), shape=(ROWS,), masked=True)
    scale = b.select(target == ignored, 0, dloss)[:, None]
    t = b.load(x, (row, column), shape=(ROWS, PART), masked=True).cast(f32)
    p = b.exp(t - logsum[:, None])
    here = b.iota(1, (ROWS, PART)) + column.cast(s32) == target[:, None]
    r = b.select(here, p - 1, p) * scale
    b.store(r.cast(bf16), dx, (row, column), masked=True)


def main() -> None:
    rng = np.random.default_rng(0)
    forward, gradient = k.compile(), backward.compile()
    for m, n in ((37, 300), (1, 1)):
        a = encode(rng.standard_normal((m, n)), "bf16")
        chosen = rng.integers(0, n, m).astype(np.int32)
        chosen[m // 2 :: 4] = IGNORED
        loss, logs = (np.empty(m, np.float32) for _ in range(2))
        dloss, da = np.ones(m, np.float32), np.empty_like(a)
        forward(a, chosen, loss, logs, IGNORED)
        gradient(a, chosen, logs, dloss, da, IGNORED)
        v, counts = decode(a, "bf16"), chosen != IGNORED
        total = np.log(np.exp(v).sum(1))
        rows = np.arange(m)
        wanted = np.where(counts, total - v[rows, np.where(counts, chosen, 0)], 0)
        gradients = np.exp(v - total[:, None])
        gradients[rows[counts], chosen[counts]] -= 1
        gradients[~counts] = 0
        errors = np.abs(loss - wanted).max(), np.abs(decode(da, "bf16") - gradients).max()
        print(f"{m} x {n}: error of the loss {errors[0]:.1e}, of the gradient {errors[1]:.1e}")
        if not (errors[0] < 1e-5 and errors[1] <= 2**-9 + 1e-5):  # half an ulp of bf16 below 1
            raise SystemExit("FAIL")
    print("PASS")


if __name__ == "__main__":
    main()
