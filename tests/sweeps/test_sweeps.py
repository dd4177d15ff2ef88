"""The sweeps of the project: some tasks in this process, and that they can find something."""

from __future__ import annotations

import pytest

from benchmarks.sweeps import wgmma_families
from fragir.sweeps import Plan, catalogue, runner

#: Tests of their own rooms run some tasks of the others.
SMALL = {
    "isa-ptxas": Plan(seed=3, count=2),
    "validation": Plan(count=2, parameters={"only": "mma*m16n8k8*", "cases": 1}),
    "wgmma-families": Plan(count=2, parameters={"only": "*m16n8k*"}),
}


@pytest.mark.parametrize("name", SMALL)
def test_some_tasks(name: str) -> None:
    found = runner.results(name, SMALL[name])
    assert len(found) == 2
    assert [each["failed"] for each in found] == [None] * 2
    assert [each["result"] and each["result"]["findings"] for each in found] == [[]] * 2


def test_families_are_all_of_the_table() -> None:
    tasks = wgmma_families.SWEEP.all_tasks(Plan(0, None, wgmma_families.SWEEP.parameters))
    assert len({tuple(task.what) for task in tasks}) == len(tasks) > 2000
    assert catalogue.load(catalogue.find("wgmma-families")) is wgmma_families.SWEEP


def test_a_wrong_product_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> None:
        raise AssertionError("planted")

    monkeypatch.setattr(wgmma_families.judges, "products_are_exact", wrong)
    wrong.__name__ = "products_are_exact"
    plan = Plan(0, 1, {"only": "mma*m16n8k8*", "ptxas": False})
    (task,) = wgmma_families.SWEEP.all_tasks(plan)
    (finding,) = wgmma_families.run(task)["findings"]
    assert "products_are_exact: AssertionError: planted" in finding
