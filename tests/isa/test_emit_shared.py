"""Probe kernels of wgmma with operands in shared memory as they may lie there, executed."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from fragir import isa
from fragir.emulator import run
from fragir.errors import FragirError
from fragir.isa.canonical import SWIZZLES, Major
from fragir.isa.emit import InShared, emit_ptx, image_bytes, shared_tile
from fragir.isa.model import Operand
from fragir.isa.query import View

F16 = "wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16"
MAJORS: tuple[Major, ...] = ("k", "mn")


def image(
    operand: Operand, placed: InShared, matrix: np.ndarray[tuple[int, int], np.dtype[np.float16]]
) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    """The bytes of an operand's (mn, k) matrix, by the closed formula of its layout."""
    tile = shared_tile(operand, placed)
    out = np.zeros(image_bytes(operand, placed) // 2, np.float16)
    places = tile.shared.places(*matrix.shape) // 2
    out[places] = matrix
    return out.view(np.uint32)


@pytest.mark.parametrize(("a", "b", "swizzle"), [*product(MAJORS, MAJORS, SWIZZLES)])
def test_products(a: Major, b: Major, swizzle: int) -> None:
    instruction = isa.lookup(F16)
    placed = InShared(a, b, swizzle)
    rng = np.random.default_rng(3)
    left = rng.integers(-4, 5, (64, 16)).astype(np.float16)
    right = rng.integers(-4, 5, (24, 16)).astype(np.float16)
    operands = instruction.operands
    d = np.zeros((128, 12), np.float32)
    words = {
        "a-shared": image(operands["a-shared"], placed, left),
        "b": image(operands["b"], placed, right),
        "c": np.zeros((128, 12), np.float32),
        "d": d,
    }
    ptx = emit_ptx(instruction, "sm_90a", "descriptor", placed)
    given = list(words.values())
    run(ptx, "probe", grid=(1, 1, 1), block=(128, 1, 1), arguments=given, target="sm_90a")
    found = View.of(instruction, "d").collect(d)
    assert (found == left.astype(np.float32) @ right.astype(np.float32).T).all()


def test_refusals() -> None:
    instruction = isa.lookup(F16)
    with pytest.raises(FragirError, match="no swizzle of 16 bytes"):
        emit_ptx(instruction, "sm_90a", "descriptor", InShared("k", "k", 16))
    with pytest.raises(FragirError, match="A in registers is not MN-major"):
        emit_ptx(instruction, "sm_90a", "registers", InShared("mn", "k", 0))
    narrow = isa.lookup("wgmma.mma_async.sync.aligned.m64n24k32.f32.e4m3.e4m3")
    with pytest.raises(FragirError, match="e4m3 cannot be mn-major"):
        emit_ptx(narrow, "sm_90a", "descriptor", InShared("k", "mn", 0))
    warp = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32")
    with pytest.raises(FragirError, match="lies in shared memory"):
        emit_ptx(warp, "sm_80", "registers", InShared("k", "mn", 0))
