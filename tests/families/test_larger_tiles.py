"""Products of tiles of many instructions over many warps: what each lane supplies of metadata and
scales, which part of shared memory each warpgroup reads, signs and orders of a wgmma."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir import compile as compile_program
from fragir import isa

from .every import Case
from .programs import DEEP

EXAMPLES = 400 if DEEP else 40
MMA = [
    instruction
    for instruction in isa.instructions()
    if instruction.family.startswith("mma") and not instruction.refused
]
SELECTED = [i for i in MMA if len(i.selectors) > 1 or i.types.scale]
OTHERS = [i for i in MMA if i not in SELECTED and len(i.operands["a"].shape) == 2]
WGMMA = [
    instruction
    for instruction in isa.instructions()
    if instruction.family.startswith("wgmma") and instruction.shape[1] in (8, 24, 32, 96)
]


def check(case: Case, seed: int) -> str:
    """Compiles, runs and compares; the PTX."""
    kernel = compile_program(case.program(), target=case.target)
    rng = np.random.default_rng(seed)
    shapes = case.shapes()
    values = {x: case.random(rng, x, 1, False) for x in shapes if x not in "ed"}
    if case.is_sparse:
        values["e"], values["positions"] = case.metadata(rng, 1)
    wanted = case.expected(values)
    d = case.stored("d", np.zeros_like(wanted))
    arrays = [case.stored(x, values[x]) for x in shapes if x != "d"]
    report = kernel.launch(1, None, *arrays, d, on="emulator")
    assert report.findings == []
    np.testing.assert_array_equal(d.astype(wanted.dtype), wanted)
    return kernel.ptx


@st.composite
def mma_cases(draw: st.DrawFn) -> Case:
    few, more = draw(st.sampled_from([(OTHERS, 2), (SELECTED, 8)]))
    instruction = draw(st.sampled_from(few))
    warps = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2), (2, 2)]))
    m, n = (draw(st.integers(1, 4)) * count for count in warps)
    return Case(instruction, repeats=(m, n, draw(st.integers(1, more))), warps=warps)


@settings(max_examples=EXAMPLES, deadline=None)
@given(mma_cases(), st.integers(0, 2**32))
def test_mma(case: Case, seed: int) -> None:
    """Also the selectors: as many instructions share a register as come out even."""
    check(case, seed)


@st.composite
def wgmma_cases(draw: st.DrawFn) -> Case:
    instruction = draw(st.sampled_from(WGMMA))
    groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)]))
    form = draw(st.sampled_from(instruction.variants))
    m, n = (draw(st.integers(1, 2)) * count for count in groups)
    half = instruction.types.a in ("f16", "bf16")
    floats = instruction.types.d != "s32"
    turned = (half and form == "descriptor" and draw(st.booleans()), half and draw(st.booleans()))
    negated = (floats and draw(st.booleans()), floats and draw(st.booleans()))
    swizzles = draw(st.sampled_from([(32, 32), (64, 64), (128, 128), (32, 128), (128, 64)]))
    columns = instruction.shape[1] * n // groups[1]
    if columns % (swizzles[1] // 2):  # a warpgroup's columns begin with a panel of MN-major B
        turned = turned[0], False
    return Case(
        instruction, form, (m, n, draw(st.integers(1, 4))), groups, negated, turned, swizzles
    )


@settings(max_examples=EXAMPLES, deadline=None)
@given(wgmma_cases(), st.integers(0, 2**32))
def test_wgmma(case: Case, seed: int) -> None:
    check(case, seed)


@pytest.mark.parametrize(
    ("instruction", "steps", "wanted"),
    [
        (("mma.sp::ordered_metadata", "m16n8k16", "f16", "f32"), 4, {0, 1, 2, 3}),
        (("mma.sp::ordered_metadata", "m16n8k16", "f16", "f32"), 6, {0, 1}),
        (("mma.sp::ordered_metadata", "m16n8k16", "f16", "f32"), 3, {0}),
        (("mma.sp", "m16n8k8", "tf32", "f32"), 8, {0, 1, 2, 3}),
        (("mma.sp", "m16n8k32", "s8", "s32"), 2, {0, 1}),
        (("mma.sp", "m16n8k64", "s8", "s32"), 2, {0}),
    ],
)
def test_a_register_of_metadata_serves_every_selector(
    instruction: tuple[str, str, str, str], steps: int, wanted: set[int]
) -> None:
    family, shape, a, d = instruction
    case = Case(isa.find(family, shape=shape, a=a, d=d), repeats=(1, 1, steps))
    ptx = check(case, 1)
    found = re.findall(r"mma\.sp.*, %\w+, (\d);", ptx)
    assert len(found) == steps
    assert {int(selector) for selector in found} == wanted


def test_a_register_of_scales_serves_every_byte_and_thread() -> None:
    case = Case(
        isa.find("mma", shape="m16n8k32", a="e4m3", d="f32", kind="mxf8f6f4", scale="ue8m0"),
        repeats=(2, 4, 4),
    )
    ptx = check(case, 2)
    found = re.findall(r"(%\w+), \{(\d), (\d)\}, (%\w+), \{(\d), (\d)\};", ptx)
    assert len(found) == 32
    assert len({line[0] for line in found}) == len({line[3] for line in found}) == 1
    assert {line[1:3] for line in found} == {(str(b), str(t)) for b in range(4) for t in range(2)}
    assert {line[4:] for line in found} == {(str(b), str(t)) for b in range(4) for t in range(4)}
