"""What the table multiplies (PTX ISA 9.2, tables of 9.7.14.5, 9.7.14.6 and 9.7.15.5)."""

from __future__ import annotations

import pytest

from fragir.isa import products
from fragir.isa.products import DENSE, PACKED, SPARSE, WARPGROUP

# Type of A -> K of m16n8 of mma.sync, of mma.sp, of m64nNk of wgmma, and the accumulators.
EIGHT_BITS = ((32, 16), (64,), 32, ("f32", "f16"))
NARROW = ((32,), (64,), 0, ("f32", "f16"))
TYPES: dict[str, tuple[tuple[int, ...], tuple[int, ...], int, tuple[str, ...]]] = {
    "f16": ((16, 8), (32, 16), 16, ("f32", "f16")),
    "bf16": ((16, 8), (32, 16), 16, ("f32",)),
    "tf32": ((8, 4), (16, 8), 8, ("f32",)),
    "f64": ((16, 8, 4), (), 0, ("f64",)),
    "s8": ((32, 16), (64, 32), 32, ("s32",)),
    "u8": ((32, 16), (64, 32), 32, ("s32",)),
    "e4m3": EIGHT_BITS,
    "e5m2": EIGHT_BITS,
    "e3m2": NARROW,
    "e2m3": NARROW,
    "e2m1": NARROW,
    "s4": ((64, 32), (128, 64), 0, ("s32",)),
    "u4": ((64, 32), (128, 64), 0, ("s32",)),
    "b1": ((256, 128), (), 256, ("s32",)),
}
# Shapes of 8 rows, behind those of 16.
SMALL = {"f64": 4, "s8": 16, "u8": 16, "s4": 32, "u4": 32, "b1": 128}


@pytest.mark.parametrize("a", TYPES)
def test_shapes_and_accumulators(a: str) -> None:
    dense, sparse, wgmma, accumulators = TYPES[a]
    small = (f"m8n8k{SMALL[a]}",) if a in SMALL else ()
    assert products.shapes(DENSE, a, False) == (*(f"m16n8k{k}" for k in dense), *small)
    assert products.shapes(SPARSE, a, False) == tuple(f"m16n8k{k}" for k in sparse)
    assert products.wgmma_k(a) == wgmma
    assert products.accumulators(a) == accumulators
    assert products.has_wgmma(a, "sm_90a") == bool(wgmma)
    assert not products.has_wgmma(a, "sm_90")
    assert not products.has_wgmma(a, "sm_100a")


def test_types() -> None:
    assert products.by_width(products.multiplied(DENSE, False)) == list(TYPES)
    assert set(products.multiplied(WARPGROUP, False)) == {a for a in TYPES if TYPES[a][2]}
    assert set(products.multiplied(SPARSE, False)) == {a for a in TYPES if TYPES[a][1]}


def test_what_is_mixed() -> None:
    """Signs of integers, and any of the 8-, 6- and 4-bit floats."""
    groups = ({"s8", "u8"}, {"s4", "u4"}, {"e4m3", "e5m2", "e3m2", "e2m3", "e2m1"})
    for a in TYPES:
        for b in TYPES:
            mixed = a == b or any({a, b} <= group for group in groups)
            assert products.multiplies(a, b) == mixed, (a, b)


def test_block_scales() -> None:
    """One scale serves 32 elements of K, of the packed ones also 16 (9.7.14.5.14)."""
    floats = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
    assert set(products.multiplied(DENSE, True)) == {*floats, PACKED}
    for a in floats:
        assert products.shapes(DENSE, a, True) == ("m16n8k32",)
        assert products.shapes(SPARSE, a, True) == ("m16n8k64",)
        assert products.blocks(a, "ue8m0") == (32,)
        assert products.blocks(a, "ue4m3") == ()
    assert products.shapes(DENSE, PACKED, True) == ("m16n8k64",)
    assert products.shapes(SPARSE, PACKED, True) == ("m16n8k128",)
    assert products.blocks(PACKED, "ue8m0") == (32, 16)
    assert products.blocks(PACKED, "ue4m3") == (16,)
    assert products.accumulators(PACKED) == ()
