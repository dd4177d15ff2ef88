"""Triton's product on a GPU: its tutorial (03-matrix-multiplication), with its configurations.

Imported by benchmarks/gemm.py where PyTorch and Triton are installed.
"""

# Triton and PyTorch are installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportIndexIssue=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

CONFIGURATIONS = [
    triton.Config({"TM": tm, "TN": tn, "TK": tk, "GROUP": 8}, num_warps=warps, num_stages=stages)
    for tm, tn, tk, stages, warps in (
        (128, 256, 64, 3, 8),
        (256, 128, 64, 3, 8),
        (128, 128, 64, 4, 8),
        (128, 128, 64, 4, 4),
        (128, 256, 128, 3, 8),
        (64, 256, 32, 4, 4),
        (128, 128, 32, 4, 4),
        (128, 64, 32, 4, 4),
        (64, 128, 32, 4, 4),
    )
]


@triton.autotune(configs=CONFIGURATIONS, key=["M", "N", "K"])
@triton.jit
def product(a, b, c, M, N, K, am, ak, bk, bn, TM: tl.constexpr, TN: tl.constexpr,
            TK: tl.constexpr, GROUP: tl.constexpr):  # fmt: skip
    """C = A B, C row-major; blocks in groups of rows."""
    number, rows, columns = tl.program_id(0), tl.cdiv(M, TM), tl.cdiv(N, TN)
    width = GROUP * columns
    first = number // width * GROUP
    height = min(rows - first, GROUP)
    i, j = first + number % width % height, number % width // height
    at_row = (i * TM + tl.arange(0, TM)) % M
    at_column = (j * TN + tl.arange(0, TN)) % N
    depth = tl.arange(0, TK)
    x = a + at_row[:, None].to(tl.int64) * am + depth[None, :] * ak
    y = b + depth[:, None].to(tl.int64) * bk + at_column[None, :].to(tl.int64) * bn
    total = tl.zeros((TM, TN), tl.float32)
    for k in range(0, tl.cdiv(K, TK)):
        left = tl.load(x, depth[None, :] < K - k * TK, 0.0)
        right = tl.load(y, depth[:, None] < K - k * TK, 0.0)
        total = tl.dot(left, right, total)
        x += TK * ak
        y += TK * bk
    row, column = i * TM + tl.arange(0, TM), j * TN + tl.arange(0, TN)
    inside = (row[:, None] < M) & (column[None, :] < N)
    at = c + row[:, None].to(tl.int64) * N + column[None, :]
    tl.store(at, total.to(c.dtype.element_ty), inside)


def contender(
    torch: Any, case: Any, kind: Any, arrays: tuple[Any, ...]
) -> tuple[Callable[[], None], dict[str, Any]]:
    """What starts the product on these arrays, and its version."""
    types = {"bf16": torch.bfloat16, "f8E4M3FN": torch.float8_e4m3fn}
    a, b, c = (torch.as_tensor(array, device="cuda") for array in arrays)
    a, b = (x.view(types.get(kind.element, x.dtype)) for x in (a, b))
    c = c.view(types.get(kind.result, c.dtype))
    steps = (1, case.k) if kind.turned else (case.n, 1)

    def blocks(chosen: dict[str, int]) -> tuple[int]:
        return (triton.cdiv(case.m, chosen["TM"]) * triton.cdiv(case.n, chosen["TN"]),)

    def start() -> None:
        product[blocks](a, b, c, case.m, case.n, case.k, case.k, 1, *steps)

    return start, {"triton": triton.__version__}
