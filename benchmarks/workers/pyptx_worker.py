"""Builds pyptx's GEMM in an environment of its own.

Its Hopper example, a 128x256x64 tile in bf16 by TMA, wgmma and specialised warps. Requests are
lines of JSON on stdin, or arguments. Each is answered with the wall and CPU time in ms of tracing
and printing it, and the PTX when it is asked for.
"""

# pyptx is installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import json
import sys
import time

from pyptx.examples.hopper.gemm_highperf_hopper import gemm_warp_specialized


def main() -> None:
    for line in sys.argv[1:] or sys.stdin:
        request = json.loads(line)
        m, n, k = request["sizes"]
        gemm_warp_specialized._cache.clear()  # pyright: ignore[reportPrivateUsage]
        cpu, wall = time.process_time(), time.perf_counter()
        ptx = gemm_warp_specialized.ptx(M=m, N=n, K=k)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        answer = {"wall": wall * 1e3, "cpu": cpu * 1e3}
        if request.get("ptx"):
            answer["ptx"] = ptx
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
