"""Mnemonics of tensor cores with wrong words are refused where ptxas refuses them.

A sample of `fragir sweep tensor-words`; and without ptxas, mutants of one kind each.
"""

from __future__ import annotations

from random import Random

import pytest

from benchmarks.sweeps import tensor_words as words
from fragir.emulator.tensor_cores import tensor_instruction
from fragir.errors import FragirError
from tests.emulator.test_legality import needs_ptxas


@needs_ptxas
@pytest.mark.parametrize("family", words.FAMILIES)
def test_mutants_are_taken_as_ptxas_takes_them(family: str) -> None:
    found = words.judge(words.drawn(family, 24, Random(family)))
    assert found["taken"]
    assert found["lax"] == []
    assert found["strict"] == []


MMA, WMMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "wmma.mma.sync.aligned.row.col"
WGMMA = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16"
SCALED = "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3"
WRONG = [
    # Words of other families.
    (f"{MMA}.trans", ".trans is no modifier of mma"),
    (f"{MMA}.mma_async", ".mma_async is no modifier of mma"),
    (f"{WGMMA}.rz", ".rz is no modifier of wgmma"),
    (f"{WGMMA}.kind::f8f6f4", ".kind::f8f6f4 is no modifier of wgmma"),
    (f"{WMMA}.m16n16k16.f32.f32.block_scale", ".block_scale is no modifier of wmma"),
    ("wmma.load.a.sync.aligned.row.m16n16k16.kind::mxf4.f16", ".kind::mxf4 is no modifier of wmma"),
    # Two of one kind.
    ("mma.sync.aligned.m8n8k4.row.col.rm.rn.f64.f64.f64.f64", ".rm and .rn exclude each other"),
    (f"{WMMA}.m8n8k4.rm.rm.f64.f64.f64.f64", ".rm is given twice"),
    (f"{MMA}.row", ".row is given twice"),
    (f"{WGMMA}.sp.sp", ".sp is given twice"),
    # Words that do not go together.
    (f"{SCALED}.f32.ue8m0", ".kind::f8f6f4 does not go with the others"),
    (f"{MMA}.popc", ".popc does not go with the others"),
    # Places that are no matter of taste.
    ("wmma.load.sync.a.aligned.row.m16n16k16.f16", ".sync is no modifier of wmma.load"),
    ("ldmatrix.sync.aligned.m8n16.x2.b4x16_p64.b8x16", ".b4x16_p64 does not stand here"),
    ("ldmatrix.sync.aligned.m8n9.x2.b16", ".m8n9 is no modifier of ldmatrix"),
]


@pytest.mark.parametrize(("mnemonic", "why"), WRONG)
def test_what_is_wrong_is_said(mnemonic: str, why: str) -> None:
    for target in words.TARGETS:
        with pytest.raises(FragirError) as caught:
            tensor_instruction(tuple(mnemonic.split(".")), target)
        assert why in caught.value.message


def test_what_ptxas_takes_twice_is_taken() -> None:
    text = "mma.sync.aligned.m16n8k32.satfinite.row.col.s32.s8.s8.satfinite.s32"
    assert tensor_instruction(tuple(text.split(".")), "sm_80").mnemonic.count("satfinite") == 1
