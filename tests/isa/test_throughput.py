"""Cycles at the dense peak, against the TFLOP/s of NVIDIA's data sheets."""

from __future__ import annotations

import pytest

from fragir import isa
from fragir.isa.throughput import cycles, multiply_adds, notes

# Part: target, multiprocessors, boost clock in GHz; tera operations a second by type of A, dense
# (data sheets of V100 SXM2, T4, A100, A40, L40S and H100 SXM).
SHEETS: dict[str, tuple[str, int, float, dict[str, float]]] = {
    "T4": ("sm_75", 40, 1.59, {"f16": 65, "s8": 130, "s4": 260}),
    "A100": ("sm_80", 108, 1.41, {"f16": 312, "bf16": 312, "tf32": 156, "s8": 624, "f64": 19.5}),
    "A40": ("sm_86", 84, 1.74, {"f16": 149.7, "bf16": 149.7, "tf32": 74.8, "s8": 299.3}),
    "L40S": ("sm_89", 142, 2.52, {"f16": 362, "tf32": 183, "s8": 733, "e4m3": 733}),
    "H100": ("sm_90a", 132, 1.83, {"f16": 989, "tf32": 495, "s8": 1979, "e5m2": 1979}),
}
MNEMONICS = {
    ("f16", False): "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32",
    ("bf16", False): "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32",
    ("tf32", False): "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32",
    ("s8", False): "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32",
    ("s4", False): "mma.sync.aligned.m8n8k32.row.col.s32.s4.s4.s32",
    ("f64", False): "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
    ("e4m3", False): "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32",
    ("f16", True): "wgmma.mma_async.sync.aligned.m64n96k16.f32.f16.f16",
    ("tf32", True): "wgmma.mma_async.sync.aligned.m64n96k8.f32.tf32.tf32",
    ("s8", True): "wgmma.mma_async.sync.aligned.m64n96k32.s32.s8.s8",
    ("e5m2", True): "wgmma.mma_async.sync.aligned.m64n96k32.f32.e5m2.e5m2",
}
CASES = [(part, a) for part, (*_, rates) in SHEETS.items() for a in rates]


@pytest.mark.parametrize(("part", "a"), CASES)
def test_the_peak_is_that_of_the_data_sheet(part: str, a: str) -> None:
    target, processors, clock, rates = SHEETS[part]
    instruction = isa.lookup(MNEMONICS[a, target == "sm_90a"])
    found = cycles(instruction, target)
    assert found is not None
    assert any(
        f"{target}: at least {found:g} cycles of an SM ({part}" in n for n in notes(instruction)
    )
    per_clock = rates[a] * 1e12 / (2 * processors * clock * 1e9)
    assert multiply_adds(instruction) / found == pytest.approx(per_clock, rel=0.05)


def test_multiply_adds() -> None:
    assert multiply_adds(isa.lookup(MNEMONICS["bf16", False])) == 16 * 8 * 16
    assert multiply_adds(isa.lookup(MNEMONICS["e5m2", True])) == 64 * 96 * 32
    quads = isa.lookup("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    assert multiply_adds(quads) == 4 * 8 * 8 * 4


def test_a_sparse_product_takes_half_the_time() -> None:
    sparse = isa.lookup("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    dense = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    assert multiply_adds(sparse) == 2 * multiply_adds(dense)
    assert cycles(sparse, "sm_80") == cycles(dense, "sm_80")
