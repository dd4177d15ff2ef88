"""Compiles Triton's own IR to PTX in an environment of its own, without a GPU.

Requests are lines of JSON on stdin: `ttgir`, the text of a module, and `target`, 80 or 90. Each is
answered with the `ptx` and the bytes of `shared` memory that it takes. The passes of the TTGIR
stage do not run: they would move or remove conversions.
"""

# Triton is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton_hook import without_ptxas


def compile_module(text: str, target: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="fragir-bench-") as folder:
        path = Path(folder, "conversion.ttgir")
        path.write_text(text, "utf-8")
        kernel = triton.compile(str(path), target=GPUTarget("cuda", target, 32))
    return {"ptx": kernel.asm["ptx"], "shared": kernel.metadata.shared}


def main() -> None:
    triton.knobs.compilation.always_compile = True
    triton.knobs.compilation.disable_line_info = True
    triton.knobs.runtime.add_stages_inspection_hook = without_ptxas
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(compile_module(request["ttgir"], request["target"])), flush=True)


if __name__ == "__main__":
    main()
