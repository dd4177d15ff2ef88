"""How many registers of what type every operand takes (PTX ISA 9.2, sections 9.7.14 to 9.7.16)."""

from __future__ import annotations

import pytest

from fragir import isa

MMA = [
    # shape, D A B C, registers of A, B, C, D
    ("m8n8k4", "f16.f16.f16.f16", "2b32 2b32 4b32 4b32"),
    ("m8n8k4", "f32.f16.f16.f16", "2b32 2b32 4b32 8f32"),
    ("m8n8k4", "f32.f16.f16.f32", "2b32 2b32 8f32 8f32"),
    ("m16n8k8", "f16.f16.f16.f16", "2b32 1b32 2b32 2b32"),
    ("m16n8k8", "f32.bf16.bf16.f32", "2b32 1b32 4f32 4f32"),
    ("m16n8k16", "f32.f16.f16.f32", "4b32 2b32 4f32 4f32"),
    ("m16n8k4", "f32.tf32.tf32.f32", "2b32 1b32 4f32 4f32"),
    ("m16n8k8", "f32.tf32.tf32.f32", "4b32 2b32 4f32 4f32"),
    ("m8n8k4", "f64.f64.f64.f64", "1f64 1f64 2f64 2f64"),
    ("m16n8k16", "f64.f64.f64.f64", "8f64 4f64 4f64 4f64"),
    ("m8n8k16", "s32.s8.u8.s32", "1b32 1b32 2s32 2s32"),
    ("m16n8k32", "s32.u8.u8.s32", "4b32 2b32 4s32 4s32"),
    ("m8n8k32", "s32.s4.s4.s32", "1b32 1b32 2s32 2s32"),
    ("m16n8k64", "s32.u4.s4.s32", "4b32 2b32 4s32 4s32"),
    ("m16n8k256", "s32.b1.b1.s32.and.popc", "4b32 2b32 4s32 4s32"),
    ("m16n8k32", "f32.e4m3.e5m2.f32", "4b32 2b32 4f32 4f32"),
    ("m16n8k16", "f16.e5m2.e4m3.f16", "2b32 1b32 2b32 2b32"),
]


@pytest.mark.parametrize(("shape", "types", "counts"), MMA)
def test_dense_registers(shape: str, types: str, counts: str) -> None:
    found = isa.lookup(f"mma.sync.aligned.{shape}.row.col.{types}")
    assert [_text(found, name) for name in "abcd"] == counts.split()


def _text(instruction: isa.Instruction, name: str) -> str:
    registers = instruction.operands[name].registers
    return f"{registers.count}{registers.type}"


def test_narrow_floats_fill_bytes_or_nibbles() -> None:
    for kind, shape in (("mxf8f6f4", "m16n8k32"), ("mxf4", "m16n8k64")):
        found = isa.find(
            "mma",
            shape=shape,
            a="e2m1",
            d="f32",
            kind=kind,
            scale="ue8m0",
            scale_vec="1X" if kind == "mxf8f6f4" else "2X",
        )
        assert [_text(found, name) for name in ("a", "b", "d", "sfa", "sfb")] == [
            "4b32",
            "2b32",
            "4f32",
            "1b32",
            "1b32",
        ]


@pytest.mark.parametrize("n", range(8, 257, 8))
def test_wgmma_registers(n: int) -> None:
    for d, count in (("f32", n // 2), ("f16", n // 4)):
        found = isa.find("wgmma", shape=(64, n, 16), a="f16", d=d)
        assert found.operands["a"].registers.count == 4
        assert found.operands["d"].registers.count == count
        assert found.operands["b"].registers.cls == "descriptor"
        assert found.operands["a-shared"].registers.cls == "descriptor"


def test_every_fragment_fills_its_registers() -> None:
    """Registers times elements a register are the slots of the layout, and cover the matrix."""
    from fragir.isa.model import BITS

    for instruction in isa.instructions():
        for operand in instruction.operands.values():
            layout = operand.layout
            if layout is None or operand.registers.cls != "fragment" or instruction.refused:
                continue
            size = layout.size("element")
            narrow = any(f.startswith("kind::mxf4") for f in instruction.form.flags)
            bits = BITS[operand.element]
            if operand.element in ("e2m1", "e2m3", "e3m2") and not narrow:
                bits = 8
            width = 64 if operand.registers.type == "f64" else 32
            assert size * bits == operand.registers.count * width, (instruction, operand.name)
            if not instruction.family.startswith("tcgen05"):
                count = 1
                for extent in operand.shape:
                    count *= extent
                assert layout.size("lane") * size == count, (instruction.mnemonic, operand.name)


def test_matrix_copies() -> None:
    for num in (1, 2, 4):
        x = isa.find("ldmatrix", shape="m8n8", num=num, type="b16")
        assert x.operands["registers"].registers.count == num
        assert x.operands["addresses"].registers.cls == "address"
    x = isa.find("ldmatrix", shape="m16n16", num=2, trans=True, type="b8")
    assert x.operands["registers"].registers.count == 4
    move = isa.lookup("movmatrix.sync.aligned.m8n8.trans.b16")
    assert [move.operands[n].registers.count for n in ("a", "d")] == [1, 1]


def test_tensor_memory() -> None:
    for shape, each, most in (
        ("32x32b", 1, 128),
        ("16x64b", 1, 128),
        ("16x128b", 2, 64),
        ("16x256b", 4, 32),
        ("16x32bx2", 1, 128),
    ):
        found = isa.find("tcgen05.ld", shape=shape, num=most, type="b32")
        assert found.operands["registers"].registers.count == each * most
        with pytest.raises(isa.UnknownInstruction):
            isa.find("tcgen05.ld", shape=shape, num=most * 2, type="b32")
