"""`fragir run --exact`: whether kernels are the functions that their programs mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fragir.algebra import Values
from fragir.algebra.equality import ElementEquality, equality
from fragir.cli.exact import follow_trial
from fragir.cli.trial import Trial
from fragir.reference import algebra
from fragir.reference.bounded import Bounded

from .conftest import Fragir

EXAMPLES = Path(__file__).parents[2] / "examples"


def trial(
    program: str, target: str, sizes: dict[str, int], given: dict[str, str] | None = None
) -> Trial:
    file, _, entry = program.partition(":")
    text = (EXAMPLES / file).read_text("utf-8") if file.endswith(".mlir") else file
    made = Trial(text, file, entry or None, target, "emulator", None)
    made.compile()
    made.prepare(sizes, given or {}, "normal", 0)
    made.evaluate()
    return made


CASES: dict[str, tuple[str, dict[str, int]]] = {
    "gemm.mlir": ("sm_80", {"m": 40, "n": 24, "k": 40}),
    "products/split_k.mlir:split_k": ("sm_80", {"m": 20, "n": 24, "k": 300}),
    "mma_m16n8k32_fp8.mlir:e4m3_e5m2": ("sm_90a", {}),
    "mma_sparse.mlir:f16": ("sm_80", {}),
    "wgmma_sparse.mlir": ("sm_90a", {}),
    "mma_block_scaled.mlir:nvf4": ("sm_120a", {}),
    "mma_m8n8k4_f16.mlir:col_row_f16_f32": ("sm_80", {}),
    "mma_block_scaled.mlir:mxf8": ("sm_120a", {}),
    "mma_m8n8k4_f64.mlir": ("sm_80", {}),
    "rows/layer_norm.mlir:layer_norm": ("sm_80", {"m": 2, "n": 40}),
    "leaky_relu.mlir": ("sm_80", {"n": 40}),
}


@pytest.mark.parametrize("program", CASES)
def test_an_example_is_the_function_that_it_means(program: str):
    target, sizes = CASES[program]
    found = follow_trial(trial(program, target, sizes), 1)
    assert found
    for one in found.values():
        assert (one.word, one.different, one.undecided) == ("the same function", 0, 0)
        assert one.equal > 0


def test_a_constant_that_is_near_is_another_function():
    made = trial("elementwise/gelu.mlir:gelu_tanh", "sm_80", {"n": 40})
    before = "0f3D372713"  # 0.044715
    assert before in made.kernel.ptx
    object.__setattr__(made.kernel, "ptx", made.kernel.ptx.replace(before, "0f3D372714"))
    (found,) = follow_trial(made, 1).values()
    assert (found.different, found.where) == (40, (0,))


def test_a_function_of_several_instructions_is_not_decided():
    (found,) = follow_trial(trial("elementwise/gelu.mlir:gelu", "sm_80", {"n": 40}), 1).values()
    assert found.word == "not decided"


def test_what_is_printed(fragir: Fragir):
    program = str(EXAMPLES / "leaky_relu.mlir")
    run = ("run", program, "--on", "emulator", "--size", "n=40", "--exact")
    assert "y is" in fragir(*run).out
    document = json.loads(fragir(*run, "--json").out)
    assert document["exact"]["y"] == {
        "verdict": "the same function",
        "equal": 40,
        "different": 0,
        "undecided": 0,
        "first": None,
    }


# -- what is compared ------------------------------------------------------------------------------


def some(*shape: int) -> Values:
    rng = np.random.default_rng(0)
    return Values.random(rng.normal(size=shape), rng)


def compare(got: Values, wanted: Values, **more: Any) -> ElementEquality:
    return equality(got, wanted, np.zeros(got.shape, bool), **{"opaque": False, **more})


def test_elements_are_compared():
    x = some(3, 4)
    assert compare(x, x) == ElementEquality(12, 0, 0, None)
    y = x.copy()
    y[1, 2] = x[1, 2] + 1.0
    assert compare(y, x) == ElementEquality(11, 1, 0, (1, 2))
    assert compare(y, x, opaque=True).undecided == 1


def test_a_root_of_what_is_no_square_says_nothing():
    x = some(200)
    squared = x.sqrt().square()
    assert (squared.p != x.p).any()
    found = compare(squared, x)
    assert found.different == 0
    # in one of three rounds it mostly is one
    assert found.equal > 150


def test_what_something_else_has_computed_is_lost():
    with algebra.exactly_followed() as rows:
        x = some(4)
        known = rows.bounded(x, np.zeros(4, bool), "f32")
        values, lost = rows.look(known)
        assert not lost.any()
        assert (values.p == x.p).all()
        none = np.ones(4)
        for bound in (known.bound + 0.5, known.bound + 1e9, none * np.inf, none):
            assert rows.look(Bounded(known.value, bound))[1].all()
        moved = Bounded(known.value[::-1], known.bound)  # another one's row
        assert rows.look(moved)[1].any()
        _, lost = rows.look(algebra.computed(Values.__add__, [known, moved], "f32"))
        assert lost.all()
