"""Kernels that Triton compiled: the same functions as their references, for every schedule.

`fragir sweep judge-mutants` judges more of them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fragir.judge import Judging, judge

from .triton_cases import FOLDER

CASES = Path(__file__).with_name("triton_cases.py")
EXACT = "exact (2^-60)"
KERNELS = [
    ("softmax", "softmax.sm_80", EXACT),
    ("gemm_f16", "gemm.sm_80", EXACT),
    ("gemm_fp8", "gemm_fp8.sm_89", EXACT),
    ("gemm_int8", "gemm_int8.sm_80", "bounded"),
    ("gemm_tma", "gemm_tma.sm_90", EXACT),
    ("attention", "attention.sm_80", EXACT),
]


def text(title: str) -> str:
    return (FOLDER / f"{title}.ptx").read_text("utf-8")


@pytest.mark.parametrize(("function", "title", "equality"), KERNELS)
def test_they_pass(function: str, title: str, equality: str) -> None:
    verdict = judge(text(title), f"{CASES}:{function}", Judging(seed=1, jobs=1))
    assert verdict.word == "pass", verdict.reasons
    assert verdict.equality == equality, verdict.unproved
    assert verdict.document()["schedules"] == "every"


def test_the_same_function_with_less_precision_than_the_case_allows() -> None:
    verdict = judge(text("gemm_fp8.sm_89"), f"{CASES}:gemm_fp8_in_f32", Judging(seed=1, jobs=1))
    assert (verdict.word, verdict.equality) == ("incomplete", EXACT)
    assert [reason.kind for reason in verdict.reasons] == ["rounding"]


EPSILON, DOUBLED = "add.f32 \t%r59, %r9, %r58;", "fma.rn.f32 %r59, %r9, 0f40000000, %r58;"
FAULTS = [
    # what allclose(1e-2) passes, or nearly
    ("layer_norm", "layer_norm.sm_80", EPSILON, DOUBLED),  # twice the epsilon
    ("softmax", "softmax.sm_80", "0f3FB8AA3B", "0f3FB8FFFF"),  # another base
    ("attention", "attention.sm_80", "setp.lt.s32", "setp.le.s32"),  # a padded key too many
]


@pytest.mark.parametrize(("function", "title", "old", "new"), FAULTS)
def test_another_function_fails(function: str, title: str, old: str, new: str) -> None:
    good = text(title)
    assert old in good
    verdict = judge(good.replace(old, new), f"{CASES}:{function}", Judging(seed=1, jobs=1))
    assert verdict.word == "fail"
