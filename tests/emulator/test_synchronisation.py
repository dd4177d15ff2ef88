"""mbarriers, collectives, waits and bad addresses: what is wrong is found, and has a kind."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import KINDS, EmulationError, run
from fragir.emulator.checks.operand_contents import SENTENCES, quote
from fragir.emulator.report import PERFORMANCE, Asynchrony

from .faults import Fault, faults
from .test_races import KINDS as RACES

#: Their faults are planted by other tests.
ELSEWHERE = {"uninitialised", "fragment", "limit", "tensor-memory", "pending-tensor"}
FAULTS = [f for f in faults() if f.kind not in RACES | PERFORMANCE | ELSEWHERE]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_the_fault_is_reported(fault: Fault) -> None:
    found = fault.findings(mended=False)
    assert found, fault.purpose
    assert (found[0].kind, found[0].line) == (fault.kind, fault.line), fault.purpose
    assert found[0].severity == fault.severity
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


def test_an_mbarrier_that_is_used_after_it_was_overwritten() -> None:
    """Overwriting one that nobody uses does no harm; using it afterwards does."""
    fault = next(f for f in FAULTS if f.name == "mbarrier-reserved")
    text = fault.ptx(mended=True).replace(
        "mbarrier.inval.shared.b64 [%r5];", "st.shared.b64 [%r5], %rd2;"
    )
    assert fault.line is not None
    again = text.splitlines()[fault.line - 1]  # the second initialisation
    unused = text.replace(again, "").replace("mbarrier.arrive.shared.b64 %rd3, [%r5];", "")
    used = text.replace(again, "")
    data = [np.zeros(64, np.uint32)]
    for ptx in (text, unused):
        report = run(ptx, block=(32,), arguments=data, check=True)
        assert [(f.kind, f.severity) for f in report.findings] == [("mbarrier", "letter")]
    with pytest.raises(EmulationError, match="is not initialised"):
        run(used, block=(32,), arguments=data, check=True)
    # What is stored happens to look like an mbarrier.
    copied = used.replace("[%r5], %rd2;", "[%r5], %rd4;").replace(
        "bar.sync 0;", "bar.sync 0; @%p1 ld.shared.b64 %rd4, [%r5];", 1
    )
    report = run(copied, block=(32,), arguments=data, check=True)
    found = [f for f in report.findings if f.kind == "mbarrier"][-1]
    assert found.severity == "error"
    assert "has been overwritten by st.shared.b64 of line" in found.message


@pytest.mark.parametrize(
    "fault", [f for f in faults() if f.severity == "letter"], ids=lambda f: f.name
)
def test_a_letter_quotes_the_isa(fault: Fault) -> None:
    (found,) = fault.findings(mended=False)
    assert any(quote(name) in found.message for name in SENTENCES)
