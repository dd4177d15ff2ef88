"""Memory of which a dimension is empty, in the reference and on the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import func

import fragir
from fragir import FragirError, f32
from fragir.compiler import parse
from fragir.reference import evaluate


def program(masked: bool) -> fragir.builder.KernelBuilder:
    with fragir.kernel("k", warps=(1, 1)) as k:
        x = k.memory("x", f32, ("g", 16, 16))
        y = k.memory("y", f32, (16, 16))
        other = 2 if masked else None
        k.store(k.load(x, (0, 0, 0), shape=(16, 16), masked=masked, other=other), y, (0, 0))
    return k


def function_of(text: str) -> func.FuncOp:
    return next(op for op in parse(text).ops if isinstance(op, func.FuncOp))


def test_a_matrix_that_does_not_exist_is_masked() -> None:
    """Of no matrices the first is read: all of the tile lies outside."""
    k = program(masked=True)
    x, y = np.zeros((0, 16, 16), np.float32), np.zeros((16, 16), np.float32)
    function = function_of(k.mlir)
    reference = evaluate(function, [x, y.copy()], target="sm_80", grid=(1, 1, 1))[1]
    assert k.compile()(x, y, on="emulator", check=True).findings == []
    assert reference is not None
    assert (reference.value == 2).all()
    np.testing.assert_array_equal(y, reference.value)


def test_without_a_mask_it_is_an_error() -> None:
    function = function_of(program(masked=False).mlir)
    x, y = np.zeros((0, 16, 16), np.float32), np.zeros((16, 16), np.float32)
    with pytest.raises(FragirError, match="leaves the memory of 0x16x16"):
        evaluate(function, [x, y], target="sm_80", grid=(1, 1, 1))
