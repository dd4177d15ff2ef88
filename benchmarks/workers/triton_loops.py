"""PTX of Triton's GEMMs of many types, without a GPU: one request, a line of JSON, one answer."""

# Triton is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false

from __future__ import annotations

import json
import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton_hook import without_ptxas


@triton.jit
def pointers(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TM: tl.constexpr,
             TN: tl.constexpr, TK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
             SUM: tl.constexpr):  # fmt: skip
    """C = A B with strides of B; the tile divides every size."""
    rows = tl.program_id(1) * TM + tl.arange(0, TM)
    cols = tl.program_id(0) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    at_a = a + rows[:, None] * K + depth[None, :]
    at_b = b + depth[:, None] * BK + cols[None, :] * BN
    total = tl.zeros((TM, TN), SUM)
    for _ in range(0, K, TK):
        total = tl.dot(tl.load(at_a), tl.load(at_b), total, out_dtype=SUM)
        at_a += TK
        at_b += TK * BK
    tl.store(c + rows[:, None] * N + cols[None, :], total.to(c.dtype.element_ty))


@triton.jit
def descriptors(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TM: tl.constexpr,
                TN: tl.constexpr, TK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
                SUM: tl.constexpr):  # fmt: skip
    """As `pointers`, copied by TMA; B is row-major."""
    a_desc = tl.make_tensor_descriptor(a, [M, K], [K, 1], [TM, TK])
    b_desc = tl.make_tensor_descriptor(b, [K, N], [N, 1], [TK, TN])
    c_desc = tl.make_tensor_descriptor(c, [M, N], [N, 1], [TM, TN])
    row, col = tl.program_id(1) * TM, tl.program_id(0) * TN
    total = tl.zeros((TM, TN), SUM)
    for k in range(0, K, TK):
        total = tl.dot(a_desc.load([row, k]), b_desc.load([k, col]), total, out_dtype=SUM)
    c_desc.store([row, col], total.to(c.dtype.element_ty))


@triton.jit
def scaled(a, b, c, x, y, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TM: tl.constexpr,
           TN: tl.constexpr, TK: tl.constexpr, BK: tl.constexpr, BN: tl.constexpr,
           SUM: tl.constexpr):  # fmt: skip
    """As `pointers`, each 128 of K times x[k / 128, row] and y[col / 128, k / 128]."""
    rows = tl.program_id(1) * TM + tl.arange(0, TM)
    cols = tl.program_id(0) * TN + tl.arange(0, TN)
    depth = tl.arange(0, TK)
    at_a = a + rows[:, None] * K + depth[None, :]
    at_b = b + depth[:, None] * BK + cols[None, :] * BN
    at_x = x + rows
    at_y = y + (tl.program_id(0) * TN // 128) * (K // 128)
    total = tl.zeros((TM, TN), SUM)
    for _ in range(0, K, TK):
        scale = tl.load(at_x) * tl.load(at_y)
        total += tl.dot(tl.load(at_a), tl.load(at_b), out_dtype=SUM) * scale[:, None]
        at_a += TK
        at_b += TK * BK
        at_x += M
        at_y += 1
    tl.store(c + rows[:, None] * N + cols[None, :], total.to(c.dtype.element_ty))


def main() -> None:
    triton.knobs.compilation.always_compile = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    for line in sys.argv[1:] or sys.stdin:
        asked = json.loads(line)
        m, n, k = asked["sizes"]
        sums = {"i32": tl.int32, "fp32": tl.float32, "fp64": tl.float64}[asked["sum"]]
        strides = {"BK": 1, "BN": k} if asked["turned"] else {"BK": n, "BN": 1}
        constants = {
            **dict(zip("MNK", (m, n, k), strict=True)),
            **dict(zip(("TM", "TN", "TK"), asked["tile"], strict=True)),
            **strides,
            "SUM": sums,
        }
        signature = {name: f"*{asked['element']}" for name in "ab"} | {"c": f"*{asked['out']}"}
        function = {"descriptors": descriptors, "scaled": scaled}.get(asked["kernel"], pointers)
        if function is scaled:
            signature |= {name: "*fp32" for name in "xy"}
        aligned = {(i,): DIVISIBLE for i in range(len(signature))}
        signature |= dict.fromkeys(constants, "constexpr")
        try:
            kernel = triton.compile(
                ASTSource(function, signature, constants, aligned),
                target=GPUTarget("cuda", asked["target"], 32),
                options={"num_warps": asked["warps"], "num_stages": asked["stages"]},
            )
            answer = {"ptx": kernel.asm["ptx"]}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[-1]}
        print(json.dumps(answer), flush=True)


DIVISIBLE = [["tt.divisibility", 16]]

if __name__ == "__main__":
    main()
