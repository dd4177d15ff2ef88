"""Writes what pyptx makes of kernels in its own language into a folder."""

# Installed in another environment than the one that checks types.
# pyright: reportMissingImports=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false, reportUnknownParameterType=false
# pyright: reportUnknownArgumentType=false, reportMissingParameterType=false
# pyright: reportUntypedFunctionDecorator=false, reportAttributeAccessIssue=false, reportFunctionMemberAccess=false

from __future__ import annotations

import sys
from pathlib import Path

from pyptx import Tile, kernel, ptx, reg
from pyptx.types import b32, bf16, f32, u32


def scaled(arch: str):
    @kernel(
        in_specs=(Tile(8, 128, f32),),
        out_specs=(Tile(8, 128, f32),),
        grid=(8, 1, 1),
        block=(128, 1, 1),
        arch=arch,
    )
    def scale(x, y):
        px, py = ptx.global_ptrs(x, y)
        at = reg.scalar(u32)
        ptx.inst.mov.u32(at, ptx.special.tid.x())
        block = reg.scalar(u32)
        ptx.inst.mov.u32(block, ptx.special.ctaid.x())
        offset = ((block << 7) + at) << 2
        px += offset
        py += offset
        value = reg.scalar(f32)
        ptx.inst.ld.global_.f32(value, ptx.addr(px))
        ptx.inst.mul.rn.f32(value, value, value)
        ptx.inst.st.global_.f32(ptx.addr(py), value)
        ptx.ret()

    return scale


def product(arch: str):
    """16x8 += 16x16 times 16x8 by one warp, fragments straight from global memory."""

    @kernel(
        in_specs=(Tile(16, 16, bf16), Tile(8, 16, bf16)),
        out_specs=(Tile(16, 8, f32),),
        grid=(1, 1, 1),
        block=(32, 1, 1),
        arch=arch,
    )
    def mma(a, b, c):
        pa, pb, pc = ptx.global_ptrs(a, b, c)
        lane = reg.scalar(u32)
        ptx.inst.mov.u32(lane, ptx.special.tid.x())
        row, column = lane >> 2, (lane & 3) << 1
        pa += ((row << 4) + column) << 1
        pb += ((row << 4) + column) << 1
        x, y, d = reg.array(b32, 4), reg.array(b32, 2), reg.array(f32, 4)
        zero = reg.scalar(f32, init=0.0)
        for i in range(4):
            ptx.inst.mov.f32(d[i], zero)
            ptx.inst.ld.global_.b32(x[i], ptx.addr(pa, (i & 1) * 256 + (i >> 1) * 16))
        for i in range(2):
            ptx.inst.ld.global_.b32(y[i], ptx.addr(pb, i * 16))
        registers = ([d[i] for i in range(4)], [x[i] for i in range(4)], [y[i] for i in range(2)])
        ptx.mma.sync(
            shape=(16, 8, 16), dtype_d=f32, dtype_a=bf16, dtype_b=bf16, dtype_c=f32,
            d=registers[0], a=registers[1], b=registers[2], c=registers[0],
        )  # fmt: skip
        pc += ((row << 3) + column) << 2
        for i in range(4):
            ptx.inst.st.global_.f32(ptx.addr(pc, (i >> 1) * 256 + (i & 1) * 4), d[i])
        ptx.ret()

    return mma


def main() -> None:
    for make in (scaled, product):
        for arch in ("sm_80", "sm_90a", "sm_100a"):
            title = f"{make.__name__}-{arch}"
            try:
                text = make(arch).ptx()
            except Exception as error:
                print(
                    f"left out: {title}: {type(error).__name__}: {error}".splitlines()[0],
                    file=sys.stderr,
                )
                continue
            Path(sys.argv[1], f"{title}.ptx").write_text(text, "utf-8")


if __name__ == "__main__":
    main()
