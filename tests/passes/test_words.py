"""Words of products beyond their shapes: constants as scales, shared memory, notes, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import fragir
from fragir.cli.main import main
from fragir.compilation.notes import instruction_notes
from fragir.dialects.frag.product_layouts import selected_tile, turns
from fragir.errors import FragirError
from fragir.isa import Instruction, instructions
from fragir.isa.selection import selected_layout
from fragir.passes.writer.literals import small_float_bits

Array = NDArray[Any]

SELECTED = [
    instruction
    for instruction in instructions()
    if instruction.family.startswith(("mma", "wgmma.sp"))
    and ({"e", "sfa"} & set(instruction.operands))
    and instruction.shape[1] == 8
]


@settings(max_examples=150, deadline=None)
@given(
    instruction=st.sampled_from(SELECTED),
    steps=st.tuples(*[st.integers(1, 6)] * 3),
    warps=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
def test_what_an_instruction_reads_is_its_own_part(
    instruction: Instruction, steps: tuple[int, int, int], warps: tuple[int, int]
) -> None:
    """Where the table says that a lane supplies (row, chunk), the tile's register has it."""
    m, n, k = steps
    for name in ("e", "sfa", "sfb"):
        if name not in instruction.operands:
            continue
        unit = instruction.operands[name].shape
        rows, cols = {"e": (m * warps[0], k), "sfa": (m * warps[0], k), "sfb": (k, n * warps[1])}[
            name
        ]
        tile = selected_tile(instruction, name, (unit[0] * rows, unit[1] * cols), warps)
        assert tile.shape == (unit[0] * rows, unit[1] * cols)
        count = {"e": k, "sfa": m, "sfb": n}[name]
        ways = turns(instruction, name, count)
        total = tile.size("element")
        for step in range(count):
            group, selector = divmod(step, ways)
            if name == "e":
                chosen = {"selector": selector}
                register = 8 * (0 + m * group)
                corner = (0, unit[1] * step)
            else:
                blocks = total * ways // count
                register = blocks * group
                chosen = {"byte": 0, "thread": selector}
                corner = (unit[0] * step, 0) if name == "sfa" else (0, unit[1] * step)
            own = selected_layout(instruction, name, **chosen)
            for (lane, element), point in own.slots():
                if point is None:
                    continue
                # wgmma's four warps are the fastest of the tile's axis
                held = tile(warp=lane // 32, lane=lane % 32, element=register + element)
                assert held == (corner[0] + point[0], corner[1] + point[1])


def scaled(fill: str) -> str:
    return f"""
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<8x32xf8E4M3FN>, %d: memref<16x8xf32>) {{
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] transposed : memref<8x32xf8E4M3FN> -> !frag.tile<32x8xf8E4M3FN>
  %zero = arith.constant 0.0 : f32
  %tc = frag.fill %zero : !frag.tile<16x8xf32>
  %s = arith.constant {fill} : f8E8M0FNU
  %tx = frag.fill %s : !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.fill %s : !frag.tile<1x8xf8E8M0FNU>
  %r = frag.mma %ta, %tb, %tc scaled %tx, %ty
    : !frag.tile<16x32xf8E4M3FN>, !frag.tile<32x8xf8E4M3FN>, !frag.tile<16x8xf32>,
      !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU> -> !frag.tile<16x8xf32>
  frag.store %r, %d[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}}
"""


@pytest.mark.parametrize("fill", ["1.0", "0.25", "1024.0"])
def test_constant_scales(fill: str) -> None:
    kernel = fragir.compile(scaled(fill), target="sm_120a")
    assert kernel.assembled.warnings == []
    rng = np.random.default_rng(0)
    a, b = rng.integers(-2, 3, (16, 32)), rng.integers(-2, 3, (8, 32))
    d = np.zeros((16, 8), np.float32)
    kernel(*(x.astype(ml_dtypes.float8_e4m3fn) for x in (a, b)), d, on="emulator")
    np.testing.assert_array_equal(d, a @ b.T * float(fill) ** 2)


@pytest.mark.parametrize("value", [0.0, 3.0, -1.0, 2.0**128])
def test_numbers_that_are_no_scales(value: float) -> None:
    with pytest.raises(FragirError, match="is no scale"):
        small_float_bits(value, "ue8m0")


BITS = """
func.func @f(%a: memref<8x128xui1>, %b: memref<8x128xui1>, %c: memref<8x8xi32>) {{
  %ta = frag.load %a[0, 0] : memref<8x128xui1> -> !frag.tile<8x128xui1>
  %tb = frag.load %b[0, 0] transposed : memref<8x128xui1> -> !frag.tile<128x8xui1>
  %tc = frag.load %c[0, 0] : memref<8x8xi32> -> !frag.tile<8x8xi32>
  %r = frag.mma %ta, %tb, %tc {word}
    : !frag.tile<8x128xui1>, !frag.tile<128x8xui1>, !frag.tile<8x8xi32> -> !frag.tile<8x8xi32>
  frag.store %r, %c[0, 0] : !frag.tile<8x8xi32>, memref<8x8xi32>
  func.return
}}
"""


def test_a_target_that_has_the_other_operation_on_bits() -> None:
    with pytest.raises(FragirError, match=r'it exists from sm_80 on; sm_75 has bitop "xor"'):
        fragir.compile(BITS.format(word=""), target="sm_75")
    kernel = fragir.compile(BITS.format(word='bitop "xor"'), target="sm_75")
    assert "xor.popc" in kernel.ptx


def through_shared(element: str, swizzle: int, k: int) -> str:
    """D = A B + 0 with both operands by way of shared memory, two matrices in one stack."""
    space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
    memory, stack = f"memref<3x16x{k}x{element}>", f"memref<2x16x{k}x{element}, {space}>"
    return f"""
func.func @f(%a: {memory}, %b: {memory}, %d: memref<16x16xi32>) {{
  %s = memref.alloc() : {stack}
  frag.copy async %a[1, 0, 0] to %s[0] : {memory} to {stack}
  frag.copy async %b[2, 0, 0] to %s[1] : {memory} to {stack}
  frag.commit
  frag.wait 0
  frag.barrier
  %ta = frag.load %s[0, 0, 0] : {stack} -> !frag.tile<16x{k}x{element}>
  %tb = frag.load %s[1, 0, 0] transposed : {stack} -> !frag.tile<{k}x16x{element}>
  %zero = arith.constant 0 : i32
  %tc = frag.fill %zero : !frag.tile<16x16xi32>
  %r = frag.mma %ta, %tb, %tc
    : !frag.tile<16x{k}x{element}>, !frag.tile<{k}x16x{element}>, !frag.tile<16x16xi32>
      -> !frag.tile<16x16xi32>
  frag.store %r, %d[0, 0] : !frag.tile<16x16xi32>, memref<16x16xi32>
  func.return
}}
"""


@pytest.mark.parametrize(
    ("element", "swizzle", "k"),
    [
        ("si4", 0, 64),
        ("si4", 32, 128),
        ("ui4", 64, 128),
        ("si4", 128, 256),
        ("ui1", 32, 256),
        ("ui1", 128, 1024),
    ],
)
def test_elements_of_less_than_a_byte_in_shared_memory(element: str, swizzle: int, k: int) -> None:
    kernel = fragir.compile(through_shared(element, swizzle, k), target="sm_80")
    assert kernel.assembled.warnings == []
    assert "cp.async.cg" in kernel.ptx
    assert "ldmatrix" in kernel.ptx
    low, high, bits = {"si4": (-8, 8, 4), "ui4": (0, 16, 4), "ui1": (0, 2, 1)}[element]
    rng = np.random.default_rng(k)
    a, b = (rng.integers(low, high, (3, 16, k)) for _ in range(2))
    per = 8 // bits
    packed = [
        ((x & ((1 << bits) - 1)).reshape(3, 16, -1, per) << bits * np.arange(per))
        .sum(-1)
        .astype(np.uint8)
        for x in (a, b)
    ]
    d = np.zeros((16, 16), np.int32)
    kernel(*packed, d, on="emulator")
    np.testing.assert_array_equal(d, a[1] @ b[2].T)


@pytest.mark.parametrize(
    ("mnemonic", "target", "words"),
    [
        (
            "mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32",
            "sm_100",
            ["reduced performance", "is emulated on sm_100"],
        ),
        ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "sm_100", []),
        (
            "mma.sp::ordered_metadata.sync.aligned.m16n8k128.row.col.s32.s4.s4.s32",
            "sm_90",
            ["is emulated on sm_90"],
        ),
        (
            "mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e4m3.e4m3.f32",
            "sm_100a",
            ["is emulated on sm_100a"],
        ),
        (
            "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
            "sm_90",
            ["is split on sm_90"],
        ),
        ("wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc", "sm_90a", []),
    ],
)
def test_notes(mnemonic: str, target: str, words: list[str]) -> None:
    notes = instruction_notes([mnemonic], target)
    assert [w for w, note in zip(words, notes, strict=True) if w not in note] == []


def test_the_command_says_that_metadata_are_sorted(
    capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "f.mlir"
    tiles = "!frag.tile<16x16xf16>, !frag.tile<32x8xf16>, !frag.tile<16x8xf32>"
    path.write_text(f"""
func.func @f(%a: memref<16x16xf16>, %b: memref<32x8xf16>, %c: memref<16x8xf32>,
    %e: memref<16x8xui4>) {{
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<32x8xf16> -> !frag.tile<32x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x8xui4> -> !frag.tile<16x8xui4>
  %r = frag.mma_sparse %ta, %tb, %tc, %te unordered
    : {tiles}, !frag.tile<16x8xui4> -> !frag.tile<16x8xf32>
  frag.store %r, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}}""")
    slow, said = fragir.compile(path.read_text(), target="sm_120a").notes
    assert said.startswith("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 is emulated")
    assert "substantially reduced performance" in slow
    (slow,) = fragir.compile(path.read_text(), target="sm_90").notes
    assert "substantially reduced performance" in slow
    assert main(["compile", str(path), "--target", "sm_120a"]) == 0
    assert "mma.sp.sync.aligned.m16n8k32" in (note := capfd.readouterr().err)
    assert "emulated on sm_120a" in note


WGMMA = """
func.func @f() {{
  %a = memref.alloc() : memref<64x{ka}x{e}, #frag.shared<swizzle = {sa}>>
  %b = memref.alloc() : memref<{b}x{e}, #frag.shared<swizzle = {sb}>>
  %m = memref.alloc() : memref<64x16xui4, #frag.shared>
  %zero = arith.constant {zero}
  %c = frag.fill %zero : !frag.tile<64x8x{d}>
  %t = frag.load %m[0, 0] : memref<64x16xui4, #frag.shared> -> !frag.tile<64x16xui4>
  %r = frag.wgmma %a, %b {turned}, %c {words}
    : memref<64x{ka}x{e}, #frag.shared<swizzle = {sa}>>,
      memref<{b}x{e}, #frag.shared<swizzle = {sb}>>, !frag.tile<64x8x{d}>{more}
  func.return
}}
"""
METADATA = {"words": "sparse %t", "more": ", !frag.tile<64x16xui4>"}
F16 = {"e": "f16", "d": "f32", "zero": "0.0 : f32"}


@pytest.mark.parametrize(
    ("given", "target", "words"),
    [
        (
            {"ka": 32, "b": "8x64", "sa": 32, "sb": 32, "turned": "transposed", **F16, **METADATA},
            "sm_90a",
            "operand b of wgmma has 64 bytes of K, more than the swizzle of 32 bytes",
        ),
        (
            {"ka": 32, "b": "8x64", "sa": 0, "sb": 64, "turned": "transposed", **F16, **METADATA},
            "sm_90a",
            "operand a of wgmma lies in shared memory without a swizzle",
        ),
    ],
)
def test_wgmma_refusals(given: dict[str, Any], target: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        fragir.compile(WGMMA.format(**given), target=target)
