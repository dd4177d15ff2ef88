"""The products that are compiled: fragir's text, and what Triton is asked for to match it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
SIZE = 4096
_NAMES = {"f16": "fp16", "bf16": "bf16"}


@dataclass(frozen=True)
class Product:
    """C = A B with f32 sums in C; row-major, `tile` (m, n, k) divides the sizes.

    Dynamic: examples/gemm.mlir, C = alpha A B + beta C for any sizes, with this tile.
    """

    name: str
    tile: tuple[int, int, int]
    target: str
    element: str = "f16"
    dynamic: bool = False
    warps: int = 4  # what Triton is told; fragir chooses its own

    @property
    def program(self) -> str:
        tile = f"{{tile = array<i64: {', '.join(map(str, self.tile))}>}}"
        if self.dynamic:
            text = (ROOT / "examples/gemm.mlir").read_text("utf-8")
            return text.replace("into %c :", f"into %c {tile} :")
        a = b = f"memref<{SIZE}x{SIZE}x{self.element}>"
        c = f"memref<{SIZE}x{SIZE}xf32>"
        return f"""func.func @gemm(%a: {a}, %b: {b}, %c: {c}) {{
  frag.matmul %a, %b into %c {tile} : {a}, {b} into {c}
  func.return
}}
"""

    @property
    def promised(self) -> str:
        """The program of a dynamic product with sizes that are promised to be multiples of 16."""
        promise = "attributes {frag.divisible = {m = 16, n = 16, k = 16}}"
        return self.program.replace("%beta: f32) {", f"%beta: f32) {promise} {{")

    def triton(self, kernel: str | None = None, *, aligned: bool = False) -> dict[str, Any]:
        """The request for `workers/triton_worker.py`."""
        return {
            "kernel": kernel or ("masked" if self.dynamic else "static"),
            "tile": self.tile,
            "sizes": [SIZE] * 3,
            "element": _NAMES[self.element],
            "target": int(self.target.removeprefix("sm_").rstrip("a")),
            "warps": self.warps,
            "stages": 3,
            "aligned": aligned,
        }


WGMMA_F16 = Product("wgmma 128x256x64 f16", (128, 256, 64), "sm_90a", warps=8)
WGMMA_BF16 = Product("wgmma 128x256x64 bf16", (128, 256, 64), "sm_90a", "bf16", warps=8)
WGMMA_DYNAMIC = Product("wgmma 128x256x64, any sizes", (128, 256, 64), "sm_90a", "f16", True, 8)
MMA_64 = Product("mma 128x128x64 f16", (128, 128, 64), "sm_80")
MMA_32 = Product("mma 128x128x32 f16", (128, 128, 32), "sm_80")
DYNAMIC_64 = Product("mma 128x128x64, any sizes", (128, 128, 64), "sm_80", dynamic=True)
DYNAMIC_32 = Product("mma 128x128x32, any sizes", (128, 128, 32), "sm_80", dynamic=True)
