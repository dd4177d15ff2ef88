"""The programs of docs/front-doors.md compute what the page says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.compiler import Argument
from fragir.dialects.shorthands import memref_type

TEXT = (Path(__file__).parents[2] / "docs" / "front-doors.md").read_text()
PROGRAMS = re.findall(r"^```mlir\n(.*?)^```", TEXT, flags=re.M | re.S)
SIZES = {"m": 33, "n": 41, "k": 29}


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 4
    assert TEXT.count("```") == 2 * len(PROGRAMS)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("program", PROGRAMS, ids=["matmul", "memrefs", "named", "tensors"])
def test_program(program: str, target: str) -> None:
    kernel = fragir.compile(program, target=target)
    given = {argument.name: array(argument) for argument in kernel.signature}
    wanted = meaning(kernel.name, {name: np.array(value) for name, value in given.items()})
    kernel(*given.values(), on="emulator")
    np.testing.assert_array_equal(given["d"], wanted)


def array(argument: Argument) -> npt.NDArray[Any] | np.generic:
    """Small whole numbers, whose sums are exact in every type."""
    if not argument.is_memory:
        return np.float32(2)
    shape = [SIZES[str(dim)] for dim in argument.dims]
    bits = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    type_ = bits[str(memref_type(argument.type).element_type)]
    return np.random.default_rng(len(argument.name)).integers(-3, 4, shape).astype(type_)


def meaning(name: str, given: dict[str, npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """What the page says that a function computes."""
    a, b, d = (given[name].astype(np.float64) for name in "abd")
    if name == "linear":
        return (a @ b.T + given["bias"]).astype(np.float16)
    if name == "update":
        return a @ b + d
    assert name == "blend"
    return (a @ b.T + given["beta"] * d).astype(np.float32)
