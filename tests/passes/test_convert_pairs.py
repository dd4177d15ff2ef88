"""Some of the ordered pairs of register layouts; `fragir sweep conversions` runs all of them."""

from __future__ import annotations

import pytest

from benchmarks.sweeps.conversions import SWEEP, Case, cases, findings
from fragir.sweeps import Plan

SAMPLE = 60


def test_there_are_all_pairs() -> None:
    names = [case.name for case in cases()]
    assert len(set(names)) == len(names) > 1700
    assert {case.bits for case in cases()} == {1, 4, 8, 16, 32, 64}
    assert {case.warps for case in cases()} == {1, 4, 8}


def test_pairs_arrive_as_planned() -> None:
    """Every element; the plan's instructions in the PTX; its passes over the banks."""
    parameters = {**SWEEP.parameters, "ptxas": False}  # which takes longer than all the rest
    tasks = SWEEP.all_tasks(Plan(seed=1, count=SAMPLE, parameters=parameters))
    results = [SWEEP.run(task) for task in tasks]
    assert len(results) == SAMPLE
    assert not [finding for result in results for finding in result["findings"]]
    assert {result["way"] for result in results} >= {"nothing", "shuffles", "shared"}


NARROW = [case for case in cases() if case.bits < 8]
ORDERS = [case for case in cases() if case.shape == (32, 24) and case.bits < 32]
"""Registers that only change their order, and elements with it inside of words."""


@pytest.mark.parametrize("case", ORDERS[::3], ids=lambda case: case.name)
def test_elements_change_places_inside_of_words(case: Case) -> None:
    found, plan = findings(case, 1)
    assert not found
    assert plan.way == "bytes" or plan.free
    assert set(plan.counts) <= {"prmt"}


@pytest.mark.parametrize("case", NARROW[:: len(NARROW) // 4], ids=lambda case: case.name)
def test_elements_of_less_than_a_byte(case: Case) -> None:
    found, plan = findings(case, 1)
    assert not found
    assert plan.way != "elements"
