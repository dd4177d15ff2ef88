"""docs/arithmetic.md says of its evidence what the tests hold."""

from __future__ import annotations

from pathlib import Path

from fragir.validation.questions import questions
from tests.emulator import test_tensor_model as model

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "arithmetic.md").read_text("utf-8")


def test_the_numbers_of_results() -> None:
    forms, kinds, each = len(model.floating_forms()), len(model.KINDS), model.OUTPUTS
    said = (
        f"{forms} floating-point forms of mma and mma.sp, {kinds} kinds of inputs, {each} elements"
    )
    assert f"{said} each: {forms * kinds * each:,} results" in PAGE
    assert f"{len(model.WGMMA) * 2 * kinds * each:,} of wgmma" in PAGE
    assert f"{len(model.SCALED) * 2 * 4 * 2 * each:,} of block scales" in PAGE
    assert f"every element of {len(model.DOUBLES)} forms of f64 in 5 roundings" in PAGE
    assert f"and of {len(model.INTEGERS)} of integers and bits" in PAGE


def test_the_number_of_questions() -> None:
    assert f"has a name each and inputs that decide it: {len(list(questions()))} questions" in PAGE
