"""Writes what numba-cuda makes of a few kernels into a folder."""

# numba-cuda is installed in another environment than the one that checks types; what numba itself
# says of these names is another thing's.
# pyright: reportCallIssue=false, reportArgumentType=false, reportPrivateImportUsage=false
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportMissingModuleSource=false

from __future__ import annotations

import math
import sys
from pathlib import Path

from numba import complex64, cuda, float32, float64, int32, uint8


def saxpy(alpha, x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = alpha * x[i] + y[i]


def total(x, out):
    part = cuda.shared.array(128, float32)
    at = cuda.threadIdx.x
    i = cuda.grid(1)
    part[at] = x[i] if i < x.size else 0.0
    cuda.syncthreads()
    step = 64
    while step > 0:
        if at < step:
            part[at] += part[at + step]
        cuda.syncthreads()
        step //= 2
    if at == 0:
        cuda.atomic.add(out, 0, part[0])


def mandelbrot(out, limit):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        c = complex(3.0 * x / out.shape[1] - 2.0, 2.0 * y / out.shape[0] - 1.0)
        z = 0j
        count = 0
        while count < limit and z.real * z.real + z.imag * z.imag < 4:
            z = z * z + c
            count += 1
        out[y, x] = count


def functions(x, y):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        y[i] = math.sin(v) + math.exp(-v) * math.erf(v) + math.pow(abs(v), 1.5) + v % 3 + v // 2


def matmul(a, b, c):
    ta = cuda.shared.array((16, 16), float64)
    tb = cuda.shared.array((16, 16), float64)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    s = 0.0
    for k in range(0, a.shape[1], 16):
        ta[ty, tx] = a[y, k + tx] if y < a.shape[0] and k + tx < a.shape[1] else 0
        tb[ty, tx] = b[k + ty, x] if k + ty < b.shape[0] and x < b.shape[1] else 0
        cuda.syncthreads()
        for j in range(16):
            s += ta[ty, j] * tb[j, tx]
        cuda.syncthreads()
    if y < c.shape[0] and x < c.shape[1]:
        c[y, x] = s


def warps(x, out):
    i = cuda.grid(1)
    v = x[i]
    d = 16
    while d > 0:
        v += cuda.shfl_xor_sync(0xFFFFFFFF, v, d)
        d //= 2
    out[i] = (
        v + cuda.ballot_sync(0xFFFFFFFF, v > 3) + cuda.popc(v) + cuda.match_any_sync(0xFFFFFFFF, v)
    )


def local(x, out):
    stack = cuda.local.array(16, int32)
    i = cuda.grid(1)
    for j in range(16):
        stack[j] = x[i, j]
    for j in range(1, 16):
        v, k = stack[j], j
        while k > 0 and stack[k - 1] > v:
            stack[k] = stack[k - 1]
            k -= 1
        stack[k] = v
    for j in range(16):
        out[i, j] = stack[j]


KERNELS = (
    (saxpy, (float32, float32[:], float32[:])),
    (total, (float32[:], float32[:])),
    (mandelbrot, (uint8[:, :], int32)),
    (functions, (float64[:], float64[:])),
    (matmul, (float64[:, ::1], float64[:, ::1], float64[:, ::1])),
    (warps, (int32[:], int32[:])),
    (local, (int32[:, :], int32[:, :])),
    (saxpy, (complex64, complex64[:], complex64[:])),
)
WAYS = (
    ("sm_75", (7, 5), {}),
    ("sm_80-lines", (8, 0), {"lineinfo": True}),
    ("sm_90-fast", (9, 0), {"fastmath": True}),
    ("sm_80-debug", (8, 0), {"debug": True, "opt": False}),
)


def main() -> None:
    for number, (function, signature) in enumerate(KERNELS):
        for way, target, options in WAYS:
            title = f"{function.__name__}{number}-{way}"
            try:
                text, _ = cuda.compile_ptx(function, signature, cc=target, **options)
            except Exception as error:
                print(f"left out: {title}: {error}".splitlines()[0], file=sys.stderr)
                continue
            Path(sys.argv[1], f"{title}.ptx").write_text(text.rstrip("\0"), "utf-8")


if __name__ == "__main__":
    main()
