"""mbarriers, collectives, waits and bad addresses: what is wrong is found, and has a kind."""

from __future__ import annotations

import pytest

from fragir.emulator import KINDS
from fragir.emulator.common import Asynchrony
from fragir.emulator.report import PERFORMANCE

from .faults import Fault, faults
from .test_races import KINDS as RACES

ELSEWHERE = {"uninitialised", "fragment"}
FAULTS = [f for f in faults() if f.kind not in RACES | PERFORMANCE | ELSEWHERE]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_the_fault_is_reported(fault: Fault) -> None:
    found = fault.findings(mended=False)
    assert found, fault.purpose
    assert (found[0].kind, found[0].line) == (fault.kind, fault.line), fault.purpose
    # What stops the run can follow from it.
    assert {f.kind for f in found[1:]} <= {"deadlock"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
@pytest.mark.parametrize(
    ("schedule", "asynchrony"), [(None, "late"), (None, "early"), (5, "random")]
)
def test_the_mended_twin_is_silent(
    fault: Fault, schedule: int | None, asynchrony: Asynchrony
) -> None:
    assert fault.findings(mended=True, schedule=schedule, asynchrony=asynchrony) == []


@pytest.mark.parametrize("fault", faults(), ids=lambda f: f.name)
def test_findings_name_line_warp_lane_and_address(fault: Fault) -> None:
    found = fault.findings(mended=False)[0]
    assert found.line is not None
    assert found.warp is not None
    if found.kind != "stopped":
        assert found.lane is not None
    if found.kind in {"race", "mbarrier", "out-of-bounds", "misaligned", "bank-conflict"}:
        assert found.address is not None


def test_every_kind_has_a_fault() -> None:
    assert {f.kind for f in faults()} - ELSEWHERE == set(KINDS) - ELSEWHERE


def test_deadlocks_say_who_waits_for_what() -> None:
    by_name = {f.name: f for f in FAULTS}
    (barrier,) = by_name["deadlock-barrier"].findings(mended=False)
    assert "32 lanes" in barrier.message
    assert "barrier 1: 32 of 64 threads" in barrier.message
    assert "barrier 2: 32 of 64 threads" in barrier.message
    (polled,) = by_name["deadlock-mbarrier"].findings(mended=False)
    assert "mbarrier.try_wait" in polled.message
    assert "shared offset 4096: its phase of parity 0 lacks 1 of 33 arrivals" in polled.message
