"""Functions of linalg as others print them: each compiles, runs, and is what numpy says."""

from __future__ import annotations

import pytest

import fragir
from tests.linalg.cases import Case, cases, differences, nearness, trial_of

CASES = cases()
#: By file, what fragir says of those that it does not compile yet.
NOT_YET: dict[str, str] = {}


@pytest.mark.parametrize(
    ("case", "number"), [(c, n) for n, c in enumerate(CASES)], ids=[c.name for c in CASES]
)
def test_a_function(case: Case, number: int) -> None:
    """For one of the two machines here; benchmarks/linalg_corpus.py takes both."""
    target = ("sm_80", "sm_90a")[number % 2]
    if case.name in NOT_YET:
        with pytest.raises(fragir.FragirError, match=NOT_YET[case.name]) as caught:
            fragir.compile(case.text, target=target)
        assert caught.value.line is not None
        return
    trial = trial_of(case, target)
    trial.evaluate()
    trial.execute()
    trial.judge()
    assert trial.has_passed, trial.comparisons
    assert max(differences(case, trial)) <= nearness(trial)


def test_there_are_enough() -> None:
    assert len(CASES) - len(NOT_YET) >= 53
    assert NOT_YET.keys() <= {case.name for case in CASES}
