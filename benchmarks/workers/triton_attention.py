"""Compiles Triton's attention in an environment of its own, without a GPU.

Requests are lines of JSON on stdin: `kernel` (attention, dkdv or dq), `tile` (queries, keys,
columns of a head), `warps`, `stages` and `target` (80 or 90). Each is answered with the `ptx`.
"""

# Triton is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false
# pyright: reportFunctionMemberAccess=false

from __future__ import annotations

import json
import sys
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_hook import without_ptxas


@triton.jit
def attention(q, k, v, o, lse, h, g, m, n, causal, TM: tl.constexpr, TN: tl.constexpr,
              D: tl.constexpr):  # fmt: skip
    """The program of examples/attention/forward.py."""
    row, head = tl.program_id(0) * TM, tl.program_id(1)
    group = head // (h // g)
    i, j, depth = tl.arange(0, TM), tl.arange(0, TN), tl.arange(0, D)
    inside = row + i < m
    rows = head.to(tl.int64) * m + row + i
    at_k = k + (group.to(tl.int64) * n + j)[None, :] * D + depth[:, None]
    at_v = v + (group.to(tl.int64) * n + j)[:, None] * D + depth[None, :]
    reach = row + n + tl.where(causal != 0, 1 - m, 0)
    seen = tl.minimum(reach + i, n)
    end = tl.minimum(reach + (TM - 1), n)
    x = tl.load(q + rows[:, None] * D + depth[None, :], inside[:, None], 0.0)
    scale = 1.4426950408889634 / D**0.5
    top = tl.full((TM,), -1e30, tl.float32)
    total = tl.zeros((TM,), tl.float32)
    acc = tl.zeros((TM, D), tl.float32)
    for t in range(0, end, TN):
        y = tl.load(at_k + t * D, (t + j < n)[None, :], 0.0)
        s = tl.dot(x, y)
        s = tl.where(j[None, :] < (seen - t)[:, None], s, -float("inf"))
        higher = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s * scale - (higher * scale)[:, None])
        factor = tl.exp2((top - higher) * scale)
        total = total * factor + tl.sum(p, 1)
        top = higher
        z = tl.load(at_v + t * D, (t + j < n)[:, None], 0.0)
        acc = tl.dot(p.to(tl.float16), z, acc * factor[:, None])
    total = tl.where(seen > 0, total, 1.0)
    out = (acc / total[:, None]).to(tl.float16)
    tl.store(o + rows[:, None] * D + depth[None, :], out, inside[:, None])
    sums = tl.where(seen > 0, top / D**0.5 + tl.log(total), -float("inf"))
    tl.store(lse + rows, sums, inside)


@triton.jit
def dkdv(q, k, v, do, lse, delta, dk, dv, h, g, m, n, causal, TM: tl.constexpr, TN: tl.constexpr,
         D: tl.constexpr):  # fmt: skip
    """The program of examples/attention/backward.py: TN keys a block, TM queries at a time."""
    col, group = tl.program_id(0) * TN, tl.program_id(1)
    each = h // g
    i, j, depth = tl.arange(0, TM), tl.arange(0, TN), tl.arange(0, D)
    since = col - n + tl.where(causal != 0, m, 0)
    visible = since + j
    at = (group.to(tl.int64) * n + col + j)[:, None] * D + depth[None, :]
    inside = (col + j < n)[:, None]
    x = tl.load(k + at, inside, 0.0)
    y = tl.load(v + at, inside, 0.0)
    scale = 1.4426950408889634 / D**0.5
    sum_k = tl.zeros((TN, D), tl.float32)
    sum_v = tl.zeros((TN, D), tl.float32)
    for head in range(group * each, (group + 1) * each):
        first = head.to(tl.int64) * m
        for t in range(tl.maximum(since, 0), m, TM):
            there = t + i < m
            rows = (first + t + i)[:, None] * D + depth[None, :]
            a = tl.load(q + rows, there[:, None], 0.0)
            b = tl.load(do + rows, there[:, None], 0.0)
            sums = tl.load(lse + first + t + i, there, 0.0)
            products = tl.load(delta + first + t + i, there, 0.0)
            s = tl.dot(x, a.T)
            p = tl.exp2(s * scale + (sums * -1.4426950408889634)[None, :])
            p = tl.where(i[None, :] >= (visible - t)[:, None], p, 0.0)
            sum_v = tl.dot(p.to(tl.float16), b, sum_v)
            dp = tl.dot(y, b.T)
            ds = (p * (dp - products[None, :])).to(tl.float16)
            sum_k = tl.dot(ds, a, sum_k)
    tl.store(dk + at, (sum_k / D**0.5).to(tl.float16), inside)
    tl.store(dv + at, sum_v.to(tl.float16), inside)


@triton.jit
def dq(q, k, v, do, lse, delta, out, h, g, m, n, causal, TM: tl.constexpr, TN: tl.constexpr,
       D: tl.constexpr):  # fmt: skip
    """The program of examples/attention/backward.py: TM queries a block, TN keys at a time."""
    row, head = tl.program_id(0) * TM, tl.program_id(1)
    group = head // (h // g)
    i, j, depth = tl.arange(0, TM), tl.arange(0, TN), tl.arange(0, D)
    reach = row + n + tl.where(causal != 0, 1 - m, 0)
    seen = tl.minimum(reach + i, n)
    end = tl.minimum(reach + (TM - 1), n)
    inside = row + i < m
    rows = head.to(tl.int64) * m + row + i
    at = rows[:, None] * D + depth[None, :]
    x = tl.load(q + at, inside[:, None], 0.0)
    y = tl.load(do + at, inside[:, None], 0.0)
    sums = tl.load(lse + rows, inside, 0.0) * -1.4426950408889634
    products = tl.load(delta + rows, inside, 0.0)
    scale = 1.4426950408889634 / D**0.5
    acc = tl.zeros((TM, D), tl.float32)
    for t in range(0, end, TN):
        there = (t + j < n)[:, None]
        keys = (group.to(tl.int64) * n + t + j)[:, None] * D + depth[None, :]
        a = tl.load(k + keys, there, 0.0)
        b = tl.load(v + keys, there, 0.0)
        p = tl.exp2(tl.dot(x, a.T) * scale + sums[:, None])
        p = tl.where(j[None, :] < (seen - t)[:, None], p, 0.0)
        ds = p * (tl.dot(y, b.T) - products[:, None])
        acc = tl.dot(ds.to(tl.float16), a, acc)
    tl.store(out + at, (acc / D**0.5).to(tl.float16), inside[:, None])


POINTERS = {
    attention: ("q k v o", "lse"),
    dkdv: ("q k v do dk dv", "lse delta"),
    dq: ("q k v do out", "lse delta"),
}


def compile_attention(request: dict[str, Any]) -> str:
    function = {"attention": attention, "dkdv": dkdv, "dq": dq}[request["kernel"]]
    halves, floats = (names.split() for names in POINTERS[function])
    signature = dict.fromkeys(halves, "*fp16") | dict.fromkeys(floats, "*fp32")
    names: list[str] = list(function.arg_names)
    aligned = {(names.index(name),): [["tt.divisibility", 16]] for name in signature}
    signature |= dict.fromkeys(("h", "g", "m", "n", "causal"), "i32")
    constants = dict(zip(("TM", "TN", "D"), request["tile"], strict=True))
    signature |= dict.fromkeys(constants, "constexpr")
    signature = {name: signature[name] for name in names}
    kernel = triton.compile(
        ASTSource(function, signature, constants, aligned),
        target=GPUTarget("cuda", request["target"], 32),
        options={"num_warps": request["warps"], "num_stages": request["stages"]},
    )
    ptx: str = kernel.asm["ptx"]
    return ptx


def main() -> None:
    triton.knobs.compilation.always_compile = True
    triton.knobs.compilation.disable_line_info = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    for line in sys.stdin:
        print(json.dumps({"ptx": compile_attention(json.loads(line))}), flush=True)


if __name__ == "__main__":
    main()
