"""Three products against their bounds: by mma.sync, by wgmma, and by TMA with roles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.gpu.commands import fragir_run
from benchmarks.gpu.kit import TARGET, Kit, Work

if TYPE_CHECKING:
    from benchmarks.gpu.build import Builder

ROOT = Path(__file__).parents[2]
PRODUCTS = {
    "mma.sync": ("examples/mma_m16n8k16_f16.mlir", "f16_f32", ()),
    "wgmma": ("examples/gemm.mlir", "gemm", ("--size", "m=250,n=130,k=77")),
    "tma": ("benchmarks/gpu/tma.mlir", "tma", ()),
}
"""Programs that are run against their bound, their entries and sizes."""


def units(kit: Kit) -> list[str]:
    """A product each."""
    return list(PRODUCTS)


def prepare(kit: Builder) -> None:
    """Cubins of the products."""
    import fragir

    for file, entry, _ in PRODUCTS.values():
        text = (ROOT / file).read_text("utf-8")
        kit.carry_kernel(fragir.compile(text, target=TARGET, entry=entry))


def run(work: Work) -> dict[str, Any]:
    """What `fragir run` says of it."""
    file, entry, sizes = PRODUCTS[work.unit]
    return fragir_run(str(ROOT / file), "--entry", entry, "--on", "gpu", *sizes)
