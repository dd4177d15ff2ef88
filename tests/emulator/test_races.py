"""Races on shared memory are found, and correct kernels are left alone."""

from __future__ import annotations

import numpy as np
import pytest

from fragir.emulator import run
from fragir.emulator.report import Asynchrony

from .faults import Fault, faults

KINDS = {"race", "proxy-fence", "pending-source", "pending-copy"}
FAULTS = [f for f in faults() if f.kind in KINDS]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_the_fault_is_reported(fault: Fault) -> None:
    # a phase that ends early breaks rules of phases too
    found = [f for f in fault.findings(mended=False) if f.kind != "schedule"]
    assert [(f.kind, f.line, f.severity) for f in found] == [
        (fault.kind, fault.line, fault.severity)
    ], fault.purpose
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
    # what may come of it
    assert kinds <= {"race", "uninitialised", "pending-copy", "schedule"}


WAVES = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .b32 %r<4>; .reg .b64 %p<3>;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x;
    ld.param.u64 %p1, [out];
    SLOT
    mul.wide.u32 %p2, %r1, 4; add.u64 %p1, %p1, %p2;
    st.global.u32 [%p1], %r2;
    ret;
}
"""


@pytest.mark.parametrize("resident", [1, 4, 256])
def test_blocks_of_different_waves_race(resident: int) -> None:
    """Which blocks are on the machine together is chance: all of them race."""
    apart = WAVES.replace("SLOT", "mad.lo.u32 %r1, %r2, 32, %r1;")
    out = np.zeros(32 * 12, np.uint32)
    report = run(apart, grid=(12,), arguments=[out], check=True, resident=resident)
    assert report.findings == []
    report = run(
        WAVES.replace("SLOT", ""), grid=(12,), arguments=[out], check=True, resident=resident
    )
    assert [(f.kind, f.line) for f in report.findings] == [("race", 12)]
    assert "byte 0 of argument 0 (out)" in report.findings[0].message
