"""The numbers on docs/accuracy.md are those of the code."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fragir.reference.tensor_cores import chains

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "accuracy.md").read_text()


def rows() -> list[list[str]]:
    """The rows of the table of machines."""
    lines = PAGE.split("| machine |")[1].splitlines()[2:]
    table = [line.strip("|").split("|") for line in lines[: lines.index("")]]
    return [[cell.strip() for cell in row] for row in table]


@pytest.mark.parametrize(
    ("row", "target", "a", "instruction"),
    [
        (0, "sm_70", "f16", "m8n8k4.f16"),
        (0, "sm_75", "f16", "m8n8k4.f16"),
        (1, "sm_75", "f16", "m16n8k8.f16"),
        (2, "sm_80", "f16", "m16n8k16.f16"),
        (2, "sm_89", "bf16", "m16n8k16.bf16"),
        (3, "sm_86", "tf32", "m16n8k8.tf32"),
        (4, "sm_89", "e4m3", "m16n8k32.e4m3"),
        (5, "sm_90", "f16", "m16n8k16.f16"),
        (5, "sm_90a", "bf16", "m64n128k16.bf16"),
        (5, "sm_120a", "f16", "m16n8k16.f16"),
        (6, "sm_100a", "tf32", "m16n8k8.tf32"),
        (7, "sm_90a", "e5m2", "m64n8k32.e5m2"),
        (8, "sm_90", "e4m3", "m16n8k32.e4m3"),
        (9, "sm_120", "e4m3", "m16n8k32.e4m3"),
        (10, "sm_90", "f16", "m8n8k4.f16"),
        (11, "sm_80", "f64", "m8n8k4.f64"),
    ],
)
def test_machines(row: int, target: str, a: str, instruction: str) -> None:
    _, types, sums, fraction, step, rounding = rows()[row]
    assert a in (types or rows()[row - 1][1])
    for accumulator, text in zip(sums.split(" / "), rounding.split(" / "), strict=True):
        (way,) = chains(target, a, accumulator, instruction)
        assert way.fraction == (int(fraction) if fraction else None)
        assert way.step == int(step.split()[0])
        formula = text.strip("$").replace(r"\cdot", "*").replace("^", "**")
        formula = formula.replace("{", "(").replace("}", ")")
        assert way.rounding.relative == eval(formula)


@pytest.mark.parametrize(
    ("row", "a", "options"),
    [
        (12, "f64", {"rounding": "rz"}),
        (13, "e2m1x2", {"scale": "ue8m0"}),
        (14, "e2m1x2", {"scale": "ue4m3"}),
    ],
)
def test_words(row: int, a: str, options: dict[str, str]) -> None:
    _, types, _, fraction, step, rounding = rows()[row]
    assert a.removesuffix("x2") in types
    (way,) = chains("sm_120a", a, "f32", **options)
    assert way.fraction == (int(fraction) if fraction else None)
    assert way.step == int(step)
    exponent = rounding.strip("$").removeprefix("2^{").removesuffix("}")
    assert way.rounding.relative == 2.0 ** int(exponent)


def test_the_example() -> None:
    (way, _) = chains("sm_80", "f16", "f32")
    assert way.steps(256) == 32
    assert way.relative == pytest.approx(11 * 2.0**-24, rel=1e-5)
    terms = 256 * (2 / np.pi)
    assert terms == pytest.approx(163, abs=0.5)
    assert np.expm1(32 * np.log1p(way.relative)) * terms == pytest.approx(0.0034, rel=0.02)
