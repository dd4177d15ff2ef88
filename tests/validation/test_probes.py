"""The probes: what they know by themselves, that they pass, and that they see a wrong table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.emit import default_target
from fragir.isa.query import View
from fragir.layout import Layout
from fragir.toolchain import driver
from fragir.validation import probes
from fragir.validation.products import (
    Words,
    encode,
    one_hot,
    one_hot_count,
    one_hot_matrices,
    pack,
    random,
    unpack,
    unpack_sparse,
)

MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("e4m3", ml_dtypes.float8_e4m3fn),
        ("e5m2", ml_dtypes.float8_e5m2),
        ("e2m3", ml_dtypes.float6_e2m3fn),
        ("e3m2", ml_dtypes.float6_e3m2fn),
        ("e2m1", ml_dtypes.float4_e2m1fn),
        ("bf16", ml_dtypes.bfloat16),
        ("f16", np.float16),
    ],
)
def test_codes_are_those_of_ml_dtypes(element: str, dtype: type[np.generic]) -> None:
    values = np.arange(-4, 5)
    width = np.dtype(dtype).itemsize
    expected = values.astype(np.float32).astype(dtype).view(f"u{width}")
    assert np.array_equal(encode(element, values), np.where(values == 0, 0, expected))


def test_other_codes() -> None:
    assert encode("s4", np.array([-1, -8, 7])).tolist() == [15, 8, 7]
    assert encode("ue8m0", np.array([1, 2])).tolist() == [127, 128]
    assert encode("ue4m3", np.array([1, 2])).tolist() == [0x38, 0x40]
    with pytest.raises(FragirError, match="e2m1 has no 5"):
        encode("e2m1", np.array([5]))
    with pytest.raises(FragirError, match="ue4m3 has no -1"):
        encode("ue4m3", np.array([-1]))


@pytest.mark.parametrize(
    ("mnemonic", "operand"),
    [
        (MMA, "a"),
        (MMA, "d"),
        ("mma.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32", "b"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "d"),
        ("mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32", "b"),
        ("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16", "d"),
    ],
)
def test_packing_goes_both_ways(mnemonic: str, operand: str) -> None:
    view = View.of(isa.lookup(mnemonic), operand)
    low, high = view.place(0, 0).low, view.place(0, 0).high
    top = min(high - low + 1, 32)
    codes = np.random.default_rng(0).integers(0, 1 << top, (3, *view.shape)).astype(np.uint64)
    words = pack(view, codes)
    assert words.shape == (3, view.lanes, view.operand.registers.count)
    back = unpack(view, words) & np.uint64((1 << top) - 1)
    assert np.array_equal(back, codes)


def test_metadata_names_the_kept_elements() -> None:
    """0b1001 keeps elements 1 and 2 of four (PTX ISA 9.2, section 9.7.14.6.1)."""
    full = unpack_sparse(np.array([[[5, 6]]]), np.array([[[0b1001]]]), 4)
    assert full.tolist() == [[[0, 5, 6, 0]]]
    tf32 = unpack_sparse(np.array([[[5, 6]]]), np.array([[[0b1110, 0b0100]]]), 2)
    assert tf32.tolist() == [[[0, 5, 6, 0]]]
    s4 = unpack_sparse(np.array([[[5, 6, 7, 8]]]), np.array([[[0b1100]]]), 8)
    assert s4.tolist() == [[[5, 6, 0, 0, 0, 0, 7, 8]]]


ONE_HOT = [
    MMA,
    "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32",
    "mma.sp.sync.aligned.m16n8k16.row.col.f32.tf32.tf32.f32",
    "mma.sp.sync.aligned.m16n8k64.row.col.s32.s4.s4.s32",
    "wgmma.mma_async.sync.aligned.m64n40k16.f32.f16.f16",
    "wgmma.mma_async.sp.sync.aligned.m64n8k32.f32.f16.f16",
]


@pytest.mark.parametrize("mnemonic", ONE_HOT)
def test_one_hot_cases_touch_everything(mnemonic: str) -> None:
    """Every element of A, B and D; each product has exactly the ones that it should."""
    instruction = isa.lookup(mnemonic)
    cases = list(one_hot(instruction))
    assert len(cases) == one_hot_count(instruction)
    made = one_hot_matrices(instruction, cases)
    for name in ("a", "b"):
        assert (made[name].sum(0) > 0).all()
    a, b = made["a"], made["b"]
    if "e" in made:
        a = unpack_sparse(a, made["e"], instruction.operands["e"].chunk)
    d = np.einsum("cik...,ckj...->cij...", a, b)
    assert (d.sum(0) > 0).all()
    for case, (i, _, j, _) in enumerate(cases):
        assert set(zip(*np.nonzero(d[case])[:2], strict=True)) == set(zip(i, j, strict=True))


def sample() -> Iterator[tuple[str, str]]:
    """One of every family, type of A and shape but wgmma's N."""
    seen: set[tuple[str, ...]] = set()
    for instruction in isa.instructions():
        if not probes.can_probe(instruction):
            continue
        wide = instruction.family.startswith("wgmma")
        shape = "" if wide else instruction.form.shape
        key = (instruction.family, instruction.types.a, instruction.types.d, shape)
        if key in seen or (wide and instruction.shape[1] != 24):
            continue
        seen.add(key)
        # both ways of holding A in turn
        variants = instruction.variants or ("registers",)
        yield instruction.mnemonic, variants[len(seen) % len(variants)]


SAMPLE = list(sample())


def cheap(instruction: Instruction) -> bool:
    """Without the thousands of one-hot cases of the largest K."""
    return instruction.family in probes.COPIES or one_hot_count(instruction) <= 1500


@pytest.mark.parametrize("family", isa.FAMILIES[:8])
def test_probes_pass_on_the_emulator(family: str) -> None:
    """`fragir validate` runs the rest."""
    chosen = [(m, v) for m, v in SAMPLE if isa.lookup(m).family == family]
    assert chosen
    failed: list[str] = []
    for mnemonic, variant in chosen:
        instruction = isa.lookup(mnemonic)
        if not cheap(instruction):
            continue
        target = default_target(instruction)
        outcome = probes.probe(instruction, variant, target, probes.emulator_runner, cases=4)
        assert outcome.cases["random"] == 4
        if outcome.mismatches:
            failed.append(f"{mnemonic} {variant}: {outcome.first}")
    assert failed == []


def test_the_sign_of_zero_does_not_count() -> None:
    """Rounded down, 1 - 1 is -0."""
    down = isa.lookup("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64.rm")
    outcome = probes.probe(down, "registers", "sm_80", probes.emulator_runner)
    assert outcome.mismatches == 0


def swapped(layout: Layout) -> Layout:
    """The two last modes of the element axis exchanged."""
    lane, element = layout.axes
    assert len(element.modes) >= 2
    modes = (*element.modes[:-2], element.modes[-1], element.modes[-2])
    return replace(layout, axes=(lane, replace(element, modes=modes)))


@pytest.mark.parametrize(
    ("mnemonic", "operand"),
    [
        *product([MMA], "abd"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", "e"),
        ("wgmma.mma_async.sync.aligned.m64n24k16.f32.f16.f16", "d"),
        ("ldmatrix.sync.aligned.m8n8.x4.b16", "registers"),
        ("stmatrix.sync.aligned.m8n8.x4.b16", "registers"),
    ],
)
def test_a_wrong_table_is_seen(mnemonic: str, operand: str) -> None:
    instruction = isa.lookup(mnemonic)
    held = instruction.operands[operand]
    assert held.layout is not None
    wrong = instruction.with_operands(replace(held, layout=swapped(held.layout)))
    target = default_target(instruction)
    right = probes.probe(instruction, "registers", target, probes.emulator_runner, cases=2)
    assert right.mismatches == 0
    outcome = probes.probe(wrong, "registers", target, probes.emulator_runner, cases=2)
    assert outcome.mismatches > 0
    assert outcome.first is not None


def flipped(ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]) -> None:
    """An emulator whose last result has one bit wrong."""
    probes.emulator_runner(ptx, target, blocks, threads, words)
    words[-1][blocks - 1, 7, 0] ^= 1


def test_a_wrong_bit_is_seen() -> None:
    """As it would be of a GPU: the comparison of bits names the word."""
    mma = isa.lookup(MMA)
    runner = probes.emulator_runner
    same = probes.probe(mma, "registers", "sm_80", runner, against=runner, cases=4)
    assert (same.cases["bits"], same.mismatches) == (4, 0)
    outcome = probes.probe(mma, "registers", "sm_80", runner, against=flipped, cases=4)
    assert outcome.mismatches == 1
    assert outcome.first is not None
    assert "case 3" in outcome.first


def test_random_sums_are_exact() -> None:
    """No sum reaches what f16 cannot hold, even with the largest K."""
    for instruction in isa.instructions():
        if instruction.types.d == "f16" and instruction.shape[1] == 8:
            made = random(instruction, 2, 0)
            k = instruction.operands["b"].shape[0]
            assert k * 4 + np.abs(made["c"]).max() < 2048


@pytest.mark.gpu
def test_a_gpu_agrees() -> None:
    """A few instructions of the GPU at hand; `fragir validate --on gpu` runs all."""
    reason = driver.available()
    if reason is not None:
        pytest.skip(f"no GPU: {reason}")
    target = probes.gpu_target(driver.gpu().target)
    for mnemonic, variant in SAMPLE[::5]:
        instruction = isa.lookup(mnemonic)
        if target not in instruction.targets or not cheap(instruction):
            continue
        outcome = probes.probe(
            instruction,
            variant,
            target,
            probes.gpu_runner,
            against=probes.emulator_runner,
            cases=8,
        )
        assert outcome.mismatches == 0, f"{mnemonic} {variant}: {outcome.first}"
