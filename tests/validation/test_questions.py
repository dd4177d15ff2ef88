"""The open questions: the emulator gives what is documented, and they tell models apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from fragir.emulator import tensor_cores
from fragir.emulator.tensor_cores import arithmetic, mma
from fragir.emulator.tensor_cores.arithmetic import Fused
from fragir.errors import FragirError
from fragir.validation.probes import emulator_runner
from fragir.validation.products import Words
from fragir.validation.questions import Code, ask, code_of, questions, scalars

# What docs/arithmetic.md says of Hopper, by name.
HOPPER = {
    "F16F-24": "F is at least 24",
    "F16F-25": "F is at least 25",
    "F16F-26": "F is below 26",
    "F16RD": "magnitudes are cut",
    "F16STK": "none",
    "FLOOR16-46": "kept",
    "FLOOR16-47": "cut",
    "FLOOR32-158": "2^-158 is kept",
    "FLOOR32-159": "2^-159 is cut",
    "ZEROEXP": "no",
    "NORM": "no",
    "NEGZERO": "+0",
    "UNDER16": "+0",
    "UNDER32": "+0",
    "NAN": "0x7fffffff",
    "INFZERO": "0x7fffffff",
    "INF": "Inf",
    "OVF": "Inf",
    "OVFW": "wide exponents",
    "OVF16+15": "65504",
    "OVF16+16": "Inf",
    "SUBC": "kept",
    "SUBA": "kept",
    "STEP16": "one step",
    "STEP16-B": "one step",
    "WSTEP16": "one step",
    "WSTEP16-B": "one step",
    "STEP8-TF32": "one step",
    "WSTEP8-TF32": "one step",
    "FP8C": "13 bits",
    "FP8F-13": "F is at least 13",
    "FP8F-14": "F is 13",
    "FP8OUT": "cut to 13 bits",
    "FP8STEP2": "one step of 32",
    "FP8STEP2-B": "one step of 32",
    "FP8F16-13": "F is at least 13",
    "FP8F16-14": "F is 13",
    "FP8SYNC": "chained (ptxas 12.8)",
    "TF32LOW": "ignored",
    "TF32NAN": "Inf",
    "TF32SUB": "0",
    "F64-ORDER": "ascending k",
    "F64-ORDER-B": "ascending k, or exact",
    "F64-FMA": "fused",
    "F64-NAN": "0x7ff8000000000000",
    "SAT": "once, at the end",
    "OOB": "yes",
    "OOB-C": "no",
    "DIV": "0, as the ISA says",
    **{f"{kind}-0-{j}": "one step" for kind in ("SP", "WSP") for j in range(1, 16)},
    **{f"SPT-0-{j}": "one step" for j in range(1, 8)},
}


def meanings(target: str) -> dict[str, str | None]:
    return {answer.name: answer.meaning for answer in ask(target, emulator_runner)}


def test_hopper_as_documented() -> None:
    assert meanings("sm_90a") == HOPPER


@pytest.mark.parametrize(
    "target", ["sm_80", "sm_89", "sm_100a", "sm_103a", "sm_107a", "sm_120a", "sm_121a"]
)
def test_every_answer_has_a_meaning(target: str) -> None:
    found = meanings(target)
    assert len(found) > 30
    assert None not in found.values()
    if target == "sm_80":
        assert found["STEP16"] == "two steps, ascending k"
        assert found["STEP8-TF32"] == "two steps, ascending k"
        assert found["SP-0-3"] == "8 kept columns a step"
        assert found["F16F-25"] == "F is below 25"
    if target == "sm_120a":
        assert found["MXF4-35"] == "F is at least 35"
        assert found["MXF4-36"] == "F is below 36"
    if target == "sm_103a":
        assert [found[f"RS4-{byte}"] for byte in range(4)] == [
            "result 1", "result 3", "result 0", "result 2",
        ]  # fmt: skip
        assert found["RS8"] == "odd ones reversed"


def test_other_parameters_give_other_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """With F = 24 and steps of 8 the questions about them are answered so."""
    real = arithmetic.fused_parameters

    def older(architecture: Any, element: str, accumulator: str, **more: Any) -> Fused:
        by = real(architecture, element, accumulator, **more)
        return Fused(by.fraction - 1, by.floor + 1, max(by.step // 2, 1), by.rounding)

    monkeypatch.setattr(mma, "fused_parameters", older)
    build = tensor_cores._build  # pyright: ignore[reportPrivateUsage]
    build.cache_clear()
    try:
        found = meanings("sm_90a")
    finally:
        monkeypatch.undo()
        build.cache_clear()
    assert found["F16F-25"] == "F is below 25"
    assert found["STEP16"] == "two steps, ascending k"
    assert found["STEP8-TF32"] == "two steps, ascending k"
    assert found["SP-0-5"] == "8 kept columns a step"
    assert found["FLOOR32-158"] == "2^-158 is cut"
    assert {n for n in HOPPER if found[n] != HOPPER[n]} > {"F16F-25", "NORM", "FLOOR16-46"}


def test_unexpected_bits_are_shown() -> None:
    def run(ptx: str, target: str, blocks: int, threads: int, words: Sequence[Words]) -> None:
        words[-1][...] = 0x12341234

    found = {answer.name: answer for answer in ask("sm_80", run)}
    assert found["SUBC"].meaning is None
    assert found["SUBC"].text == "something else: 0x12341234"
    assert found["UNDER16"].text == "something else: 0x1234"


def test_answers_of_a_question_differ() -> None:
    for question in (*questions(), *scalars()):
        assert len(set(question.answers.values())) == len(question.answers), question.name
    names = [q.name for q in (*questions(), *scalars())]
    assert len(set(names)) == len(names)


def test_numbers_become_codes() -> None:
    assert code_of("e4m3", -(2.0**-9)) == 0x81
    assert code_of("bf16", 2.0**-75) == 52 << 7
    assert code_of("f16", Code(0x7C01)) == 0x7C01
    assert code_of("e2m1", 0.5) == 1
    with pytest.raises(FragirError, match=r"f16 has no 1e-09"):
        code_of("f16", 1e-9)
    with pytest.raises(FragirError, match=r"e4m3 has no 1000"):
        code_of("e4m3", 1000.0)
