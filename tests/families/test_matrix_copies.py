"""ldmatrix, stmatrix and movmatrix, from tiles in swizzled shared memory and at lane level."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from fragir import compile as compile_program
from fragir.compiler import Place

from .programs import PLACES, multiply, random

EXAMPLES = Path(__file__).parents[2] / "examples"
SWIZZLES = (0, 32, 64, 128)
# element type, instruction of the layout, rows, columns of the tile of A and of B
TILES = {
    "f16": ("m16n8k16.f16", (32, 64), (64, 32)),
    "bf16": ("m16n8k8.bf16", (32, 64), (64, 32)),
    "tf32": ("m16n8k8.tf32", (32, 32), (32, 32)),
    "si8": ("m16n8k32.s8", (32, 128), (128, 32)),
}


def shared_type(shape: tuple[int, int], element: str, swizzle: int) -> str:
    space = f"#frag.shared<swizzle = {swizzle}>" if swizzle else "#frag.shared"
    return f"memref<{shape[0]}x{shape[1]}x{element}, {space}>"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("element", "operand", "transposed", "swizzle"),
    [
        case
        for case in product(TILES, "ab", (False, True), SWIZZLES)
        # ldmatrix transposes 16-bit elements only
    ],
    ids=str,
)
def test_tiles_from_shared_memory(
    element: str, operand: str, transposed: bool, swizzle: int, place: Place
) -> None:
    """What was loaded is stored to global memory, element by element where it belongs."""
    instruction, a, b = TILES[element]
    rows, cols = a if operand == "a" else b
    stored = (cols, rows) if transposed else (rows, cols)
    memory = f"memref<{stored[0]}x{stored[1]}x{element}>"
    shared = shared_type(stored, element, swizzle)
    tile = (
        f"!frag.tile<{rows}x{cols}x{element}, #frag.mma<{instruction}, {operand}, warps = [2, 2]>>"
    )
    program = f"""
func.func @copy(%a: {memory}, %d: memref<{rows}x{cols}x{element}>) attributes {{
    frag.warps = array<i64: 2, 2>}} {{
  %s = memref.alloc() : {shared}
  frag.copy async %a[0, 0] to %s[] : {memory} to {shared}
  frag.commit
  frag.wait 0
  frag.barrier
  %t = frag.load %s[0, 0]{" transposed" if transposed else ""} : {shared} -> {tile}
  frag.store %t, %d[0, 0] : {tile}, memref<{rows}x{cols}x{element}>
  func.return
}}
"""
    kernel = compile_program(program, target="sm_80")
    assert kernel.assembled.warnings == []
    array = random(np.random.default_rng(3), element, stored)
    found = multiply(kernel, [array, np.zeros((rows, cols), array.dtype)], place, 1)
    np.testing.assert_array_equal(found, array.T if transposed else array)
    # A lies as ldmatrix reads it where K runs along its rows, B where K runs along its columns
    turned = (operand == "a") == transposed
    words = set(re.findall(r"ldmatrix\S*?x\d(\.trans)?", kernel.ptx))
    if turned and element not in ("f16", "bf16"):
        assert words == set()
    else:
        assert words == {".trans" if turned else ""}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("swizzle", SWIZZLES)
@pytest.mark.parametrize("element", ["f16", "bf16", "f32", "si8"])
def test_tiles_into_shared_memory(element: str, swizzle: int, target: str, place: Place) -> None:
    """An accumulator's or operand's tile goes to shared memory; it is read back by rows."""
    layout = {
        "f16": "#frag.mma<m16n8k16.f16, c, warps = [2, 2]>",
        "bf16": "#frag.mma<m16n8k16.bf16, a, warps = [2, 2]>",
        "f32": "#frag.mma<m16n8k16.f16, c, warps = [2, 2]>",
        "si8": "#frag.mma<m16n8k32.s8, a, warps = [2, 2]>",
    }[element]
    shared = shared_type((32, 64), element, swizzle)
    memory = f"memref<32x64x{element}>"
    tile, plain = f"!frag.tile<32x64x{element}, {layout}>", f"!frag.tile<32x64x{element}>"
    program = f"""
func.func @store(%a: {memory}, %d: {memory}) attributes {{frag.warps = array<i64: 2, 2>}} {{
  %s = memref.alloc() : {shared}
  %t = frag.load %a[0, 0] : {memory} -> {tile}
  frag.store %t, %s[0, 0] : {tile}, {shared}
  frag.barrier
  %r = frag.load %s[0, 0] : {shared} -> {plain}
  frag.store %r, %d[0, 0] : {plain}, {memory}
  func.return
}}
"""
    kernel = compile_program(program, target=target)
    assert kernel.assembled.warnings == []
    array = random(np.random.default_rng(4), element, (32, 64))
    found = multiply(kernel, [array, np.zeros_like(array)], place, 1)
    np.testing.assert_array_equal(found, array)
    # an f32 accumulator has two neighbouring elements a lane, which are 64 bits
    assert ("stmatrix" in kernel.ptx) == (target == "sm_90a" and element != "f32")


@pytest.mark.parametrize("place", PLACES)
def test_lane_level(place: Place) -> None:
    """examples/stmatrix.mlir: every 8x8 quadrant of a 16x16 matrix is transposed."""
    kernel = compile_program((EXAMPLES / "stmatrix.mlir").read_text(), target="sm_90")
    assert kernel.assembled.warnings == []
    array = random(np.random.default_rng(5), "f16", (16, 16))
    found = multiply(kernel, [array, np.zeros_like(array)], place, 1)
    quadrants = array.reshape(2, 8, 2, 8).transpose(0, 3, 2, 1).reshape(16, 16)
    np.testing.assert_array_equal(found, quadrants)
