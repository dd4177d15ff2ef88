"""Writes what CUTLASS's CuTe DSL makes of kernels into a folder."""

# Installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import cutlass
from cutlass import cute
from cutlass.cute.runtime import make_fake_compact_tensor

TARGETS = ("sm_80", "sm_90a", "sm_100a", "sm_120a")


@cute.kernel
def doubled(x: cute.Tensor, y: cute.Tensor):
    at, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    i = block * 128 + at
    y[i] = x[i] + x[i]


@cute.jit
def launch_doubled(x: cute.Tensor, y: cute.Tensor):
    doubled(x, y).launch(grid=(4, 1, 1), block=(128, 1, 1))


@cute.kernel
def total(x: cute.Tensor, y: cute.Tensor):
    at, _, _ = cute.arch.thread_idx()
    block, _, _ = cute.arch.block_idx()
    smem = cutlass.memory.SmemAllocator()
    part = smem.allocate_tensor(cutlass.Float32, cute.make_layout(4))
    value = x[block * 128 + at]
    for i in cutlass.range_constexpr(5):
        value += cute.arch.shuffle_sync_bfly(value, offset=1 << i)
    if at % 32 == 0:
        part[at // 32] = value
    cute.arch.sync_threads()
    if at == 0:
        y[block] = part[0] + part[1] + part[2] + part[3]


@cute.jit
def launch_total(x: cute.Tensor, y: cute.Tensor):
    total(x, y).launch(grid=(4, 1, 1), block=(128, 1, 1))


@cute.kernel
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, mma: cute.TiledMma):
    at, _, _ = cute.arch.thread_idx()
    thread = mma.get_slice(at)
    ta, tb, tc = thread.partition_A(a), thread.partition_B(b), thread.partition_C(c)
    ra, rb, rc = mma.make_fragment_A(ta), mma.make_fragment_B(tb), mma.make_fragment_C(tc)
    cute.autovec_copy(ta, ra)
    cute.autovec_copy(tb, rb)
    rc.fill(0.0)
    cute.gemm(mma, rc, ra, rb, rc)
    cute.autovec_copy(rc, tc)


@cute.jit
def launch_product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    op = cute.nvgpu.warp.MmaF16BF16Op(cutlass.Float16, cutlass.Float32, (16, 8, 16))
    mma = cute.make_tiled_mma(op, cute.make_layout((2, 2, 1)))
    product(a, b, c, mma).launch(grid=(1, 1, 1), block=(128, 1, 1))


def main() -> None:
    """One process a target: the target is read when the package is imported."""
    folder = Path(sys.argv[1])
    for target in TARGETS:
        environment = {**os.environ, "CUTE_DSL_ARCH": target, "CUTE_DSL_KEEP_PTX": "1"}
        command = [sys.executable, __file__, str(folder), target]
        subprocess.run(command, check=False, env=environment)


def compiled(folder: Path, target: str) -> None:
    def tensor(kind, *shape):
        order = tuple(reversed(range(len(shape))))
        return make_fake_compact_tensor(kind, shape, stride_order=order)

    f16, f32 = cutlass.Float16, cutlass.Float32
    jobs = {
        "doubled": (launch_doubled, tensor(f32, 512), tensor(f32, 512)),
        "total": (launch_total, tensor(f32, 512), tensor(f32, 4)),
        "product": (launch_product, tensor(f16, 64, 32), tensor(f16, 48, 32), tensor(f32, 64, 48)),
    }
    for name, (function, *tensors) in jobs.items():
        try:
            made = cute.compile(function, *tensors)
            text = made.__ptx__
            assert isinstance(text, str)
        except Exception as error:
            words = (str(error).strip().splitlines() or [""])[0]
            print(f"left out: {name}-{target}: {type(error).__name__}: {words}", file=sys.stderr)
            continue
        (folder / f"{name}-{target}.ptx").write_text(text.rstrip("\0"), "utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        compiled(Path(sys.argv[1]), sys.argv[2])
    else:
        main()
