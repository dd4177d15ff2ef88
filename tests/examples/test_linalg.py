"""Functions of linalg as programs of kernels: examples/linalg."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from fragir.host import Program
from tests.examples.judged import EXAMPLES, judged, script

# kernels, temporaries
PLANS = {"linears": (3, 2), "residual_block": (2, 1), "transformer_block": (11, 11)}
NAMES = {
    "linears": "x w1 b1 w2 b2 w3 b3",
    "residual_block": "x w1 b1 w2 b2",
    "transformer_block": "x g1 g2 wq wk wv wo w1 w2",
}


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", sorted(PLANS))
def test_kernels_and_temporaries(name: str, target: str) -> None:
    text = (EXAMPLES / f"linalg/{name}.mlir").read_text()
    program = fragir.compile(text, target=target)
    assert isinstance(program, Program)
    assert (len(program.plan.launches), len(program.plan.temporaries)) == PLANS[name]


@pytest.mark.parametrize("rows", [0, 1, 50])
def test_linears(rows: int) -> None:
    """Inputs of the example lie where nothing cancels or overflows."""
    given = script("linalg/linears.py")["arguments"](rows)
    judge("linears", "sm_90a" if rows == 50 else "sm_80", given, 1e-3)


def test_residual_block() -> None:
    judge("residual_block", "sm_80", script("linalg/residual_block.py")["arguments"](), 1e-2)


def test_transformer_block() -> None:
    judge("transformer_block", "sm_80", script("linalg/transformer_block.py")["arguments"](), 1e-2)


def judge(name: str, target: str, given: list[Any], rtol: float) -> None:
    """Within the reference's bound, and near the script's answer in numpy."""
    path = EXAMPLES / f"linalg/{name}.mlir"
    answer = script(f"linalg/{name}.py")["layers" if name == "linears" else "block"]
    arrays = dict(zip(NAMES[name].split(), given, strict=True))
    wanted = answer(*given)
    trial = judged(path, {}, {"y": lambda: wanted}, target, given=arrays, rtol=rtol)
    assert not np.isnan(trial.results[-1].astype(np.float64)).any()
