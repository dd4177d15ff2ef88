"""Random functions of linalg: the program, the reference of the undivided function, and numpy."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fragir.cli.trial import Trial
from tests.linalg.functions import RandomFunction


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_program_reference_and_numpy_agree(data: st.DataObject) -> None:
    function = RandomFunction(
        lambda options: data.draw(st.sampled_from(options)),
        data.draw(st.integers(1, 6)),
        data.draw(st.booleans()),
    )
    assume(function.result not in function.arguments)
    target = data.draw(st.sampled_from(["sm_80", "sm_90a"]))
    trial = Trial(function.text, "<random>", None, target, "emulator", None)
    trial.compile()
    with tempfile.TemporaryDirectory() as folder:
        given: dict[str, str] = {}
        for x in function.arguments:
            path = Path(folder) / f"{x.name[1:]}.npy"
            np.save(path, x.array)
            given[x.name[1:]] = str(path)
        trial.prepare({}, given, "normal", 0)
    trial.evaluate()
    trial.execute()
    trial.judge()
    assert trial.passed, trial.comparisons
    (found,) = (trial.results[i] for i in trial.expected)
    wanted = np.asarray(function.result.array, np.float64)
    scale = np.abs(wanted).max(initial=1)
    assert np.abs(found - wanted).max(initial=0) <= 1e-3 * scale
