"""Races on shared memory are found, and correct kernels are left alone."""

from __future__ import annotations

import pytest

from fragir.emulator.common import Asynchrony

from .faults import Fault, faults

KINDS = {"race", "proxy-fence", "pending-source", "pending-copy"}
FAULTS = [f for f in faults() if f.kind in KINDS]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_the_fault_is_reported(fault: Fault) -> None:
    found = fault.findings(mended=False)
    assert [(f.kind, f.line) for f in found] == [(fault.kind, fault.line)], fault.purpose
    assert found[0].warp is not None
    assert found[0].lane is not None
    assert found[0].address is not None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    ("schedule", "asynchrony"), [(None, "late"), (None, "early"), (5, "random")]
)
def test_the_mended_twin_is_silent(
    fault: Fault, schedule: int | None, asynchrony: Asynchrony
) -> None:
    assert fault.findings(mended=True, schedule=schedule, asynchrony=asynchrony) == []


@pytest.mark.parametrize("schedule", [1, 2, 3])
@pytest.mark.parametrize("fault", [f for f in FAULTS if f.kind == "race"], ids=lambda f: f.name)
def test_races_are_found_in_any_order(fault: Fault, schedule: int) -> None:
    """The two sides may come in either order; the finding is at the later one."""
    kinds = {f.kind for f in fault.findings(mended=False, schedule=schedule)}
    assert "race" in kinds
    assert kinds <= {"race", "uninitialised", "pending-copy"}  # what may come of it
