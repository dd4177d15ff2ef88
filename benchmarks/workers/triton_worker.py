"""Compiles Triton's GEMMs in an environment of their own, without a GPU.

Requests are lines of JSON on stdin, or arguments; see `compile_gemm`. Each is answered with the
wall and CPU time in ms of one compilation to PTX (no cache, ptxas left out), and the PTX when it
is asked for.
"""

# Triton is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import json
import sys
import time
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_hook import without_ptxas


@triton.jit
def static(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TM: tl.constexpr,
           TN: tl.constexpr, TK: tl.constexpr):  # fmt: skip
    """C = A B; the tile divides every size."""
    rows = tl.program_id(1) * TM + tl.arange(0, TM)
    cols = tl.program_id(0) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    at_a = a + rows[:, None] * K + depth[None, :]
    at_b = b + depth[:, None] * N + cols[None, :]
    total = tl.zeros((TM, TN), tl.float32)
    for _ in range(0, K, TK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total)
        at_a += TK
        at_b += TK * N
    tl.store(c + rows[:, None] * N + cols[None, :], total)


@triton.jit
def descriptors(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TM: tl.constexpr,
                TN: tl.constexpr, TK: tl.constexpr):  # fmt: skip
    """As `static`, copied by TMA."""
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [TM, TK])
    b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [TK, TN])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [TM, TN])
    row, col = tl.program_id(1) * TM, tl.program_id(0) * TN
    total = tl.zeros((TM, TN), tl.float32)
    for k in range(0, K, TK):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), total)
    c_desc.store([row, col], total)


@triton.jit
def masked(a, b, c, M, N, K, alpha, beta, TM: tl.constexpr, TN: tl.constexpr,
           TK: tl.constexpr):  # fmt: skip
    """C = alpha A B + beta C for any sizes, masked in all three."""
    rows = tl.program_id(1) * TM + tl.arange(0, TM)
    cols = tl.program_id(0) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    at_a = a + rows[:, None].to(tl.int64) * K + depth[None, :]
    at_b = b + depth[:, None].to(tl.int64) * N + cols[None, :]
    total = tl.zeros((TM, TN), tl.float32)
    for k in range(0, K, TK):
        left = K - k
        x = tl.load(at_a, (rows[:, None] < M) & (depth[None, :] < left), 0.0)
        y = tl.load(at_b, (depth[:, None] < left) & (cols[None, :] < N), 0.0)
        total = tl.dot(x, y, total)
        at_a += TK
        at_b += TK * N.to(tl.int64)
    at_c = c + rows[:, None].to(tl.int64) * N + cols[None, :]
    inside = (rows[:, None] < M) & (cols[None, :] < N)
    tl.store(at_c, alpha * total + beta * tl.load(at_c, inside, 0.0), inside)


DIVISIBLE = [["tt.divisibility", 16]]


def compile_gemm(request: dict[str, Any]) -> Any:
    """One compilation.

    `kernel`: static, descriptors or masked; `tile` (m, n, k); `sizes` (m, n, k) of the first two;
    `element`: fp16 or bf16; `target`: 80 or 90; `warps`, `stages`; `aligned`: sizes that are
    arguments are multiples of 16.
    """
    function = {"static": static, "descriptors": descriptors, "masked": masked}[request["kernel"]]
    signature = {"a": f"*{request['element']}", "b": f"*{request['element']}", "c": "*fp32"}
    constants = dict(zip(("TM", "TN", "TK"), request["tile"], strict=True))
    attributes: dict[tuple[int], list[list[Any]]] = {(i,): DIVISIBLE for i in range(3)}
    if function is masked:
        signature |= dict.fromkeys("MNK", "i32") | {"alpha": "fp32", "beta": "fp32"}
        if request["aligned"]:
            attributes |= {(i,): DIVISIBLE for i in range(3, 6)}
    else:
        constants = dict(zip("MNK", request["sizes"], strict=True)) | constants
    signature |= dict.fromkeys(constants, "constexpr")
    return triton.compile(
        ASTSource(function, signature, constants, attributes),
        target=GPUTarget("cuda", request["target"], 32),
        options={"num_warps": request["warps"], "num_stages": request["stages"]},
    )


def main() -> None:
    triton.knobs.compilation.always_compile = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    for line in sys.argv[1:] or sys.stdin:
        request = json.loads(line)
        cpu, wall = time.process_time(), time.perf_counter()
        kernel = compile_gemm(request)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        answer = {"wall": wall * 1e3, "cpu": cpu * 1e3}
        if request.get("ptx"):
            answer["ptx"] = kernel.asm["ptx"]
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
