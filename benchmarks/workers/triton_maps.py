"""PTX of Triton's GEMMs in tensor memory, by maps of the host: a line of JSON, an answer each."""

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
def gemm(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, TM: tl.constexpr,
         TN: tl.constexpr, TK: tl.constexpr, TURNED: tl.constexpr, ROLES: tl.constexpr,
         PROGRAMS: tl.constexpr, OUT: tl.constexpr):  # fmt: skip
    """C = A B, or A Bᵀ where `TURNED`, by so many programs, tile after tile."""
    columns: tl.constexpr = N // TN
    for tile in tl.range(tl.program_id(0), M // TM * columns, PROGRAMS, warp_specialize=ROLES):
        row, col = tile // columns * TM, tile % columns * TN
        total = tl.zeros((TM, TN), tl.float32)
        for k in range(0, K, TK):
            if TURNED:
                total = tl.dot(a.load([row, k]), b.load([col, k]).T, total)
            else:
                total = tl.dot(a.load([row, k]), b.load([k, col]), total)
        c.store([row, col], total.to(OUT))


OUTS = {"fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32}


def main() -> None:
    triton.knobs.compilation.always_compile = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    for line in sys.argv[1:] or sys.stdin:
        asked = json.loads(line)
        (m, n, k), element, out = asked["tile"], asked["element"], asked["out"]
        b = (n, k) if asked["turned"] else (k, n)
        signature = {
            "a": f"tensordesc<{element}[{m},{k}]>",
            "b": f"tensordesc<{element}[{b[0]},{b[1]}]>",
            "c": f"tensordesc<{out}[{m},{n}]>",
        }
        constants = {
            **dict(zip(("M", "N", "K"), asked["sizes"], strict=True)),
            **dict(zip(("TM", "TN", "TK"), asked["tile"], strict=True)),
            "TURNED": asked["turned"],
            "ROLES": asked["roles"],
            "PROGRAMS": asked["programs"],
            "OUT": OUTS[out],
        }
        try:
            kernel = triton.compile(
                ASTSource(gemm, signature | dict.fromkeys(constants, "constexpr"), constants, {}),
                target=GPUTarget("cuda", asked["target"], 32),
                options={"num_warps": asked["warps"], "num_stages": asked["stages"]},
            )
            answer = {"ptx": kernel.asm["ptx"]}
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[-1]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
