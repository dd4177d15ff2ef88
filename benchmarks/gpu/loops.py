"""Products by mma.sync: what fragir and Triton make for sm_80, both assembled for this machine.

Triton's own cubins for sm_80 would not run here: its PTX is assembled by the same ptxas as ours, so
that only the PTX differs. cuBLAS, which has wgmma, says how far it is to the machine's best.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.gemm_cases import TYPES, Case
from benchmarks.gpu import peers
from benchmarks.gpu.contest import Maker
from benchmarks.gpu.device import DeviceArray
from benchmarks.gpu.gemm import Tiling, compiled, fragir_makers, product, schedules
from benchmarks.gpu.kit import MACHINE, Kit, Work
from benchmarks.gpu.triton_cubins import Maker as TritonMaker

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

OLDER = "sm_80"
MOST = 3
CASES = tuple(
    Case(kind, type, *sizes)
    for kind, *sizes in (("square", 4096, 4096, 4096), ("flat", 8192, 8192, 1024))
    for type in ("bf16", "tf32", "f16")
)
SMALL = (Case("square", "bf16", 128, 128, 64), Case("square", "tf32", 64, 64, 64))
TILINGS = (
    Tiling("pointers", 128, 256, 128, 8, 3, 80),
    Tiling("pointers", 128, 128, 128, 4, 3, 80),
    Tiling("pointers", 128, 128, 64, 4, 4, 80),
)
SMALL_TILINGS = (Tiling("pointers", 64, 64, 64, 4, 2, 80),)

PACKAGES = ("torch",)


def units(kit: Kit) -> list[str]:
    return [case.key for case in kit.size(CASES, SMALL)]


def prepare(kit: Builder) -> None:
    make = TritonMaker(kit).make
    for case in kit.size(CASES, SMALL):
        for attributes in schedules(case, OLDER, MOST).values():
            kit.carry_kernel(compiled(case, OLDER, attributes))
        for tiling in kit.size(TILINGS, SMALL_TILINGS):
            make(tiling.name(case), tiling.request(case), MACHINE)


def run(work: Work) -> dict[str, Any]:
    case = next(one for one in work.kit.size(CASES, SMALL) if one.key == work.unit)
    kind = TYPES[case.type]

    def makers(arrays: Sequence[DeviceArray]) -> dict[str, Maker]:
        found = fragir_makers(case, OLDER, MOST, arrays)
        types = kind.element, kind.result
        found["cuBLAS"] = functools.partial(peers.matmul, *arrays, *types, turned=kind.turned)
        for tiling in work.kit.size(TILINGS, SMALL_TILINGS):
            found[tiling.label(case)] = functools.partial(tiling.start, work.kit, case, arrays)
        return found

    return product(work, case, makers)
