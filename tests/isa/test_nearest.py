"""A misspelt mnemonic is answered with the part that is wrong and with what is near."""

from __future__ import annotations

import pytest

from fragir import isa

M16 = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"


@pytest.mark.parametrize(
    ("wrong", "says", "nearest"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf61.bf16.f32", "'bf61' is no word.*'bf16'", M16),
        ("mma.sync.aligned.m16n8k17.row.col.f32.bf16.bf16.f32", "the shape is wrong", M16),
        ("mma.sync.aligned.row.col.f32.bf16.bf16.f32", "the shape is missing", None),
        ("mma.sync.aligned.m16n8k16.col.col.f32.bf16.bf16.f32", "the layout is wrong", M16),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32", "the type is wrong", None),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16", "the types are wrong", M16),
        ("mma.sync.aligned.m16n8k16.row.col.satfinite.f32.bf16.bf16.f32", "without .satf", M16),
        ("mma.m16n8k16.row.col.f32.bf16.bf16.f32", r"\.sync is missing", M16),
        ("mma.sync.aligned.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "stands there twice", M16),
        (
            "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16",
            "the shape is wrong: m64n12k16 does not exist",
            "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8",
            "the shape is wrong",
            "wgmma.mma_async.sync.aligned.m64n48k32.s32.s8.s8",
        ),
        (
            "stmatrix.sync.aligned.m16n8.x4.b8",
            r"with \.trans",
            "stmatrix.sync.aligned.m16n8.x4.trans.b8",
        ),
        (
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.popc.xor",
            r"\.xor stands before \.popc",
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
        ),
        (
            "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32",
            "kind::f8f6f4",
            "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e2m1.e2m1.f32",
        ),
        ("add.f32", "begins like none of", None),
    ],
)
def test_the_wrong_part_is_named(wrong: str, says: str, nearest: str | None) -> None:
    with pytest.raises(isa.UnknownInstruction, match=says) as caught:
        isa.lookup(wrong)
    assert nearest is None or caught.value.nearest[0] == nearest
    assert all(isa.lookup(near).mnemonic == near for near in caught.value.nearest)
    assert not any(isa.lookup(near).refused for near in caught.value.nearest)


def test_the_wrong_target_is_named() -> None:
    mnemonic = "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32"
    assert isa.lookup(mnemonic, target="sm_89").mnemonic == mnemonic
    with pytest.raises(isa.UnknownInstruction, match="the target is wrong") as caught:
        isa.lookup(mnemonic, target="sm_80")
    assert all("sm_80" in isa.lookup(near).targets for near in caught.value.nearest)


@pytest.mark.parametrize(
    ("spelt", "canonical"),
    [
        ("mma.sync.aligned.row.col.f32.bf16.bf16.f32.m16n8k16", M16),
        (
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rn",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        ),
        (
            "mma.sync.aligned.m8n8k4.row.col.rz.f64.f64.f64.f64",
            "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rz",
        ),
        (
            "ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16",
            "ldmatrix.sync.aligned.m8n8.x4.b16",
        ),
        (
            "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8.satfinite",
            "wgmma.mma_async.sync.aligned.m64n8k32.satfinite.s32.s8.s8",
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X"
            ".f32.e2m1.e2m1.f32.ue8m0",
        ),
    ],
)
def test_other_spellings_give_the_canonical_one(spelt: str, canonical: str) -> None:
    assert isa.lookup(spelt).mnemonic == canonical
