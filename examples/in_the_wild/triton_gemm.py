"""A warp-specialised GEMM in Triton, for docs/in-the-wild.md: writes PTX of it.

It needs Triton 3.6.0, best in an environment of its own, and no GPU:

    python -m venv triton && triton/bin/pip install triton==3.6.0
    triton/bin/python examples/in_the_wild/triton_gemm.py device gemm.ptx

`device`: tensor maps are made by the kernel; `host`: they are arguments. Further words, in any
order: `descriptor` stores C through a tensor map instead of pointers, `8` takes eight warps.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

try:
    import triton
    import triton.language as tl
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
except ImportError:
    sys.exit("this needs Triton: pip install triton==3.6.0")


@triton.jit
def multiply(a, b, c, n, k, row, col, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
             DESCRIPTOR: tl.constexpr):  # fmt: skip
    total = tl.zeros((TM, TN), tl.float32)
    for s in tl.range(0, k, TK, warp_specialize=True):
        total = tl.dot(a.load([row, s]), b.load([col, s]).T, total)
    if DESCRIPTOR:
        c.store([row, col], total)
    else:
        rows, cols = row + tl.arange(0, TM), col + tl.arange(0, TN)
        tl.store(c + rows[:, None] * n + cols[None, :], total)


@triton.jit
def device_gemm(a, b, c, m, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
                DESCRIPTOR: tl.constexpr):  # fmt: skip
    da = tl.make_tensor_descriptor(a, [m, k], [k, 1], [TM, TK])
    db = tl.make_tensor_descriptor(b, [n, k], [k, 1], [TN, TK])
    out = c
    if DESCRIPTOR:
        out = tl.make_tensor_descriptor(c, [m, n], [n, 1], [TM, TN])
    row, col = tl.program_id(1) * TM, tl.program_id(0) * TN
    multiply(da, db, out, n, k, row, col, TM, TN, TK, DESCRIPTOR)


@triton.jit
def host_gemm(a, b, c, n, k, TM: tl.constexpr, TN: tl.constexpr, TK: tl.constexpr,
              DESCRIPTOR: tl.constexpr):  # fmt: skip
    row, col = tl.program_id(1) * TM, tl.program_id(0) * TN
    multiply(a, b, c, n, k, row, col, TM, TN, TK, DESCRIPTOR)


def without_ptxas(_backend: Any, stages: dict[str, Any], *_: Any) -> None:
    """The PTX is all that is wanted."""
    stages["cubin"] = lambda *_: b""


def ptx(where: str, descriptor: bool, warps: int) -> str:
    tile = {"TM": 128, "TN": 64, "TK": 64, "DESCRIPTOR": descriptor}
    if where == "device":
        kernel, types = device_gemm, ["*fp16", "*fp16", "*fp32", "i32", "i32", "i32"]
    else:
        maps = [f"tensordesc<fp16[{rows},64]>" for rows in (tile["TM"], tile["TN"])]
        kernel, types = host_gemm, [*maps, "*fp32", "i32", "i32"]
    signature = dict(zip(kernel.arg_names, types, strict=False)) | dict.fromkeys(tile, "constexpr")
    aligned = {
        (i,): [["tt.divisibility", 16]]
        for i, kind in enumerate(types)
        if not kind.startswith("tensordesc")
    }
    triton.knobs.compilation.always_compile = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    compiled = triton.compile(
        ASTSource(kernel, signature, tile, aligned),
        target=GPUTarget("cuda", 90, 32),
        options={"num_warps": warps, "num_stages": 3},
    )
    return compiled.asm["ptx"]


def main(words: list[str]) -> None:
    if len(words) < 2 or words[0] not in ("device", "host"):
        sys.exit("usage: triton_gemm.py device|host FILE.ptx [descriptor] [8]")
    text = ptx(words[0], "descriptor" in words[2:], 8 if "8" in words[2:] else 4)
    Path(words[1]).write_text(text, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
