"""Tiles transposed, reshaped, sliced, concatenated, split and joined: what numpy gives."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness

import fragir
from benchmarks.sweeps import tile_shapes
from fragir.dialects import frag
from fragir.passes.placing.placement import default_layout
from tests.properties.judge import judge

Array = npt.NDArray[Any]


@pytest.mark.parametrize("seed", range(6))
def test_any_chain(seed: int) -> None:
    program = tile_shapes.shape_program(seed)
    target = ("sm_80", "sm_90a")[seed % 2]
    assert tile_shapes.check(program, target, assemble=True) == [], program.text


@pytest.mark.parametrize("element", ["f16", "f32"])
@pytest.mark.parametrize(
    ("operation", "warp", "lane", "elements", "shape"),
    [
        ("slice %t [0, 8]", "2:(16,0)", "4:(0,2) 8:(1,0)", "2:(0,1) 2:(8,0) 2:(0,8)", "32x16"),
        ("slice %t [8, 0]", "2:(0,0)", "4:(0,2) 8:(1,0)", "2:(0,1) 4:(0,8)", "8x32"),
        (
            "reshape %t", "2:(2,0,0)", "4:(0,0,2) 8:(0,1,0)", "2:(0,0,1) 2:(1,0,0) 4:(0,0,8)",
            "4x8x32",
        ),
        (
            "reshape %t", "2:(16,0,0)", "4:(0,0,2) 8:(1,0,0)", "2:(0,0,1) 2:(8,0,0) 4:(0,0,8)",
            "32x1x32",
        ),
    ],
)  # fmt: skip
def test_registers_get_other_names(
    operation: str, warp: str, lane: str, elements: str, shape: str, element: str
) -> None:
    """No instruction: what stands side by side in a register is not taken apart."""
    whole = "warp [2:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 4:(0,8)]"
    if shape == "8x32":  # both warps have to hold rows 8 to 15
        whole = whole.replace("2:(16,0)", "2:(0,0)").replace("2:(8,0)", "4:(8,0)")
    tile = f'!frag.tile<32x32x{element}, #frag.layout<"{whole}">>'
    layout = f"warp [{warp}] lane [{lane}] element [{elements}]"
    result = f'!frag.tile<{shape}x{element}, #frag.layout<"{layout}">>'
    zeros = ", ".join("0" * len(shape.split("x")))
    program = f"""
    func.func @k(%m: memref<32x32x{element}>, %d: memref<{shape}x{element}>)
        attributes {{frag.warps = array<i64: 2, 1>}} {{
      %t = frag.load %m[0, 0] : memref<32x32x{element}> -> {tile}
      %r = frag.{operation} : {tile} -> {result}
      frag.store %r, %d[{zeros}] : {result}, memref<{shape}x{element}>
      func.return
    }}"""
    kernel = judge(program, "sm_80", assemble=False)
    assert not re.search(r"shfl|bar\.|prmt|selp|mov\.b", kernel.ptx)


def test_truth_values() -> None:
    tile, mask = "!frag.tile<16x8xf32>", "!frag.tile<16x8xi1>"
    judge(
        f"""
    func.func @k(%m: memref<16x8xf32>, %d: memref<8x16xf32>) {{
      %t = frag.load %m[0, 0] : memref<16x8xf32> -> {tile}
      %p = frag.map %t : {tile} -> {mask} {{
      ^bb0(%v: f32):
        %zero = arith.constant 0.0 : f32
        %q = arith.cmpf ogt, %v, %zero : f32
        frag.yield %q : i1
      }}
      %low = frag.slice %p [8, 0] : {mask} -> !frag.tile<8x8xi1>
      %high = frag.slice %p [0, 0] : {mask} -> !frag.tile<8x8xi1>
      %both = frag.concat %low, %high dim 1
          : !frag.tile<8x8xi1>, !frag.tile<8x8xi1> -> !frag.tile<8x16xi1>
      %x = frag.cast %both : !frag.tile<8x16xi1> -> !frag.tile<8x16xf32>
      frag.store %x, %d[0, 0] : !frag.tile<8x16xf32>, memref<8x16xf32>
      func.return
    }}""",
        "sm_80",
    )


#: Of a 64x32 tile: an operation, its result's shape, and the same of numpy.
OPERATIONS: list[tuple[str, str, Callable[[Array], Array]]] = [
    ("frag.slice %t [16, 8]", "32x16", lambda x: x[16:48, 8:24]),
    ("frag.slice %t [0, 1] strides [1, 2]", "64x16", lambda x: x[:, 1::2]),
    ("frag.transpose %t [1, 0]", "32x64", lambda x: x.T),
    ("frag.reshape %t", "8x8x32", lambda x: x.reshape(8, 8, 32)),
]


@pytest.mark.parametrize(("operation", "shape", "numpy"), OPERATIONS)
def test_elements_of_half_a_byte(
    operation: str, shape: str, numpy: Callable[[Array], Array]
) -> None:
    """Bytes that part are unpacked and packed again."""
    rank = len(shape.split("x"))
    sizes = tuple(map(int, shape.split("x")))
    rows = default_layout(frag.TileType(sizes, IntegerType(4, Signedness.UNSIGNED)), 32)
    stored, zeros = f'!frag.tile<{shape}xui4, #frag.layout<"{rows}">>', ", ".join("0" * rank)
    program = f"""
    func.func @k(%m: memref<64x32xui4>, %d: memref<{shape}xui4>) {{
      %t = frag.load %m[0, 0] : memref<64x32xui4> -> !frag.tile<64x32xui4>
      %n = {operation} : !frag.tile<64x32xui4> -> !frag.tile<{shape}xui4>
      %r = frag.convert %n : !frag.tile<{shape}xui4> -> {stored}
      frag.store %r, %d[{zeros}] : {stored}, memref<{shape}xui4>
      func.return
    }}"""
    kernel = fragir.compile(program, target="sm_80")
    packed = np.random.default_rng(4).integers(0, 256, (64, 16)).astype(np.uint8)
    wanted = numpy(np.stack([packed & 15, packed >> 4], -1).reshape(64, 32))
    found = np.zeros((*wanted.shape[:-1], wanted.shape[-1] // 2), np.uint8)
    report = kernel.launch((1,), (32,), packed, found, on="emulator", check=True)
    assert report.findings == []
    assert (found == (wanted[..., ::2] | wanted[..., 1::2] << 4)).all()
