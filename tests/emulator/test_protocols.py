"""Why a run stands still, races or breaks a rule: which phase of which barrier, who came, who did
not, and who waits for whom in a circle."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from fragir.draw.protocol import protocol_svg
from fragir.emulator import EmulationError, Finding, run
from fragir.emulator.report import Awaited, BarrierSeen, Party, Why

from .faults import faults

FAULTS = {fault.name: fault for fault in faults()}
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<9>;
    .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 full; .shared .align 8 .b64 empty[2];
    ld.param.u64 %rd1, [data];
    mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; mov.u32 %r3, 0;
    setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p2, %r2, 0; setp.ge.u32 %p3, %r1, 32;
    @%p1 mbarrier.init.shared.b64 [full], 1;
    @%p1 mbarrier.init.shared.b64 [empty+8], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
"""
# the reader gives the slot back a turn too late, which the writer waits for
LATE = f"""{HEAD}    @%p3 bra READ;
FILL:
    setp.eq.u32 %p4, %r3, 0;
    @%p4 bra FIRST;
    xor.b32 %r4, %r3, 1;
EMPTY:
    mbarrier.try_wait.parity.shared.b64 %p5, [empty+8], %r4;  // empty waits
    @!%p5 bra EMPTY;
FIRST:
    bar.warp.sync -1;
    @%p2 mbarrier.arrive.shared.b64 _, [full];  // full arrives
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p6, %r3, 2;
    @%p6 bra FILL;
    bra DONE;
READ:
    mbarrier.try_wait.parity.shared.b64 %p5, [full], %r3;  // full waits
    @!%p5 bra READ;
    setp.eq.u32 %p4, %r3, 1;
    and.pred %p4, %p4, %p2;
    @%p4 mbarrier.arrive.shared.b64 _, [empty+8];  // empty arrives
    add.u32 %r3, %r3, 1;
    setp.lt.u32 %p6, %r3, 2;
    @%p6 bra READ;
DONE:
    ret;
}}
"""
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
BYTES = f"""{HEAD}    @!%p1 bra READ;
    mbarrier.arrive.expect_tx.shared.b64 _, [full], 96;  // expects
    {COPY} [s], [%rd1], 64, [full];  // copy
READ:
    mbarrier.try_wait.parity.shared.b64 %p5, [full], 0;  // full waits
    @!%p5 bra READ;
    ret;
}}
"""


def line(text: str, marker: str) -> int:
    (found,) = (n for n, each in enumerate(text.splitlines(), 1) if each.endswith(f"// {marker}"))
    return found


def stopped(text: str, block: int, *, check: bool = True) -> Why:
    with pytest.raises(EmulationError) as raised:
        run(text, block=(block,), arguments=[np.zeros(256, np.uint32)], check=check)
    assert raised.value.kind == "deadlock"
    assert raised.value.why is not None
    return raised.value.why


def awaited(barrier: BarrierSeen) -> Awaited:
    """The only one that has not come."""
    assert barrier.awaited is not None
    assert len(barrier.awaited) == 1
    return barrier.awaited[0]


def of_fault(name: str) -> Finding:
    return FAULTS[name].findings(mended=False)[0]


def why_of(text: str, block: int) -> dict[str, Why]:
    """By kind, of the findings of a run."""
    report = run(text, block=(block,), arguments=[np.zeros(256, np.uint32)], check=True)
    return {one.kind: one.why for one in report.findings if one.why is not None}


# -- deadlocks -------------------------------------------------------------------------------------


def test_an_arrival_that_never_comes() -> None:
    why = stopped(FAULTS["deadlock-mbarrier"].ptx(mended=False), 32)
    assert why.lines() == [
        "phase 0 of mbarrier bar[0] (parity 0, shared offset 4096) of block (0, 0, 0): "
        "32 of 33 arrivals have come, it lacks 1 arrival",
        "  waits: warp 0 (32 lanes) at line 29",
        "  arrived: warp 0 (32 lanes) at line 27",
        "  not arrived: no thread has an arrival here ahead of it",
    ]


def test_nobody_arrives() -> None:
    why = stopped(FAULTS["deadlock-parity"].ptx(mended=False), 32)
    assert "phase 0 of mbarrier bar[0] (parity 0" in why.lines()[0]
    assert why.lines()[1:] == [
        "  waits: warp 0 (32 lanes) at line 29",
        "  arrived: nobody",
        "  not arrived: no thread has an arrival here ahead of it",
    ]


def test_two_named_barriers() -> None:
    why = stopped(FAULTS["deadlock-barrier"].ptx(mended=False), 64)
    assert why.lines() == [
        "phase 0 of barrier 1 of block (0, 0, 0): 32 of 64 threads have come, it lacks 32 threads",
        "  waits: warp 0 (32 lanes) at line 25",
        "  not arrived: warp 1 (32 lanes) at line 26, which waits for phase 0 of barrier 2: no "
        "arrival for this barrier is ahead of it",
        "phase 0 of barrier 2 of block (0, 0, 0): 32 of 64 threads have come, it lacks 32 threads",
        "  waits: warp 1 (32 lanes) at line 26",
        "  not arrived: warp 0 (32 lanes) at line 25, which waits for phase 0 of barrier 1: ahead "
        "of it is the arrival at line 26",
    ]
    assert why.cycle == ()  # warp 1 has nothing to give


def test_a_flag_is_at_no_barrier() -> None:
    why = stopped(FAULTS["deadlock-flag"].ptx(mended=False), 64)
    assert why.barriers == ()
    assert why.lines() == ["block (0, 0, 0) warp 1 (1 lane) at line 30: it polls at no barrier"]


def test_a_circle_of_two_mbarriers() -> None:
    at = {name: line(LATE, name) for name in ("empty waits", "full arrives", "full waits")}
    at["empty arrives"] = line(LATE, "empty arrives")
    why = stopped(LATE, 64)
    known = [
        (link.barrier.name, link.barrier.phase, link.barrier.parity, link.awaited.ground)
        for link in why.cycle
    ]
    assert known == [("mbarrier empty[1]", 0, 0, "ahead"), ("mbarrier full", 1, 1, "before")]
    lines = [(link.party.line, link.awaited.arrival) for link in why.cycle]
    assert lines == [
        (at["empty waits"], at["empty arrives"]),
        (at["full waits"], at["full arrives"]),
    ]
    assert [link.awaited.party.warps for link in why.cycle] == [(1,), (0,)]
    assert why.lines()[:3] == [
        "they wait for each other:",
        f"  warp 0 waits at line {at['empty waits']} for phase 0 of mbarrier empty[1] (parity 0, "
        f"shared offset 16), which lacks 1 arrival, from warp 1: ahead of it is the arrival at "
        f"line {at['empty arrives']}",
        f"  warp 1 waits at line {at['full waits']} for phase 1 of mbarrier full (parity 1, shared "
        f"offset 0), which lacks 1 arrival, from warp 0: in the phase before its arrival was at "
        f"line {at['full arrives']}",
    ]


def test_what_is_known_without_checks() -> None:
    """Where all stand, and what is ahead of them; not who came, nor how often."""
    why = stopped(LATE, 64, check=False)
    assert {barrier.phase for barrier in why.barriers} == {None}
    assert {barrier.arrived for barrier in why.barriers} == {None}
    assert [link.awaited.arrival for link in why.cycle] == [
        line(LATE, "empty arrives"),
        line(LATE, "full arrives"),
    ]
    assert [link.barrier.parity for link in why.cycle] == [0, 1]


def test_bytes_that_no_copy_brings() -> None:
    why = stopped(BYTES, 32)
    (barrier,) = why.barriers
    assert (barrier.came, barrier.wants, barrier.bytes, barrier.phase) == (1, 1, 32, 0)
    place = (0, 0, 0)
    assert barrier.arrived == (
        Party(place, (0,), 1, line(BYTES, "expects")),
        Party(place, (0,), 1, line(BYTES, "copy")),
    )
    assert barrier.awaited == ()
    assert "it lacks 32 bytes" in why.lines()[0]


def test_who_has_missed_a_phase() -> None:
    """The writer does not wait, ends three phases, and leaves; the reader has seen one."""
    text = LATE.replace("@%p4 bra FIRST;", "bra FIRST;").replace("%r3, 2;", "%r3, 3;")
    text = text.replace("[full], %r3;", "[full], %r5;").replace(
        "READ:\n", "READ:\n    and.b32 %r5, %r3, 1;\n"
    )
    why = stopped(text, 64)
    (barrier,) = why.barriers
    assert (barrier.name, barrier.phase, barrier.parity) == ("mbarrier full", 3, 1)
    absent = awaited(barrier)
    assert (absent.does, absent.party.warps) == ("has exited", (0,))
    at = line(text, "full waits")
    assert why.notes == (
        "warp 1 has seen the end of 1 of the 3 phases that mbarrier full has ended, the last at "
        f"line {at}",
    )


def test_a_barrier_of_a_cluster() -> None:
    text = f"""{HEAD}    mov.u32 %r6, %cluster_ctarank;
    setp.eq.u32 %p7, %r6, 0;
    @%p7 barrier.cluster.arrive;  // arrives
    @%p7 barrier.cluster.wait;  // waits
    bar.sync 0;
    @%p7 bra END;
LOOP:
    mbarrier.try_wait.parity.shared.b64 %p5, [full], 0;  // never
    @!%p5 bra LOOP;
    barrier.cluster.arrive;  // late
    barrier.cluster.wait;
END:
    ret;
}}
"""
    with pytest.raises(EmulationError) as raised:
        run(text, grid=(2,), block=(32,), cluster=(2,), arguments=[np.zeros(4)], check=True)
    assert raised.value.why is not None
    cluster = next(b for b in raised.value.why.barriers if b.name == "the cluster's barrier")
    assert (cluster.phase, cluster.came, cluster.wants) == (0, 32, 64)
    absent = awaited(cluster)
    assert absent.party == Party((1, 0, 0), (0,), 32, line(text, "never"))
    assert (absent.arrival, absent.ground) == (line(text, "late"), "ahead")


# -- broken rules ----------------------------------------------------------------------------------


def test_a_parity_that_comes_again() -> None:
    """Rule A: lanes 1 to 31 wait, lane 0 alone goes on."""
    finding = of_fault("schedule-late-lanes")
    assert finding.why is not None
    (phase,) = finding.why.barriers
    assert (phase.name, phase.phase, phase.parity, phase.ended) == ("mbarrier bar[1]", 0, 0, True)
    assert phase.waiting == (Party((0, 0, 0), (0,), 31, finding.line),)
    assert phase.arrived == (Party((0, 0, 0), (1,), 1, 47),)
    assert finding.why.notes[0].startswith("rule A: none of these arrivals is known")


def test_arrivals_that_nothing_holds_apart() -> None:
    """Rule B: two of one thread count in a phase each, and nothing says so to the second."""
    text = f"""{HEAD}    @!%p1 bra READ;
    mbarrier.arrive.shared.b64 _, [full];  // one
    mbarrier.arrive.shared.b64 _, [full];  // other
    bra DONE;
READ:
    mbarrier.try_wait.parity.shared.b64 %p5, [full], 1;
DONE:
    ret;
}}
"""
    why = why_of(text, 32)["schedule"]
    (phase,) = why.barriers
    place = (0, 0, 0)
    assert (phase.phase, phase.parity) == (0, 0)
    assert phase.arrived == (Party(place, (0,), 1, line(text, "one")),)
    assert why.notes == (
        "rule B: who arrives in a phase must know that the one before is over, which this ended",
        f"not known to: warp 0 (1 lane) at line {line(text, 'other')}",
        "warp 0 has not yet seen the end of a phase of it",
    )


def test_who_initialises() -> None:
    finding = of_fault("schedule-two-initialise")
    assert finding.why is not None
    assert finding.why.notes == (
        "mbarrier bar[0]: one thread initialises an mbarrier, and again only who knows of that",
    )


# -- races -----------------------------------------------------------------------------------------


def test_a_race_names_the_barrier_of_others() -> None:
    why = of_fault("race-named").why
    assert why is not None
    (phase,) = why.barriers
    assert (phase.name, phase.phase, phase.ended) == ("barrier 1", 0, True)
    assert phase.arrived == (Party((0, 0, 0), (0, 1), 64, 26),)
    assert why.notes == (
        "warp 0 has since come to barrier 1 in its phase 0, at line 26; warp 2 has never come to "
        "it",
    )


def test_a_race_without_any_barrier() -> None:
    why = of_fault("race-block").why
    assert why == Why(notes=("there is no barrier in this kernel",))


def test_a_race_past_a_phase_that_is_not_waited_for() -> None:
    why = of_fault("race-no-wait").why
    assert why is not None
    assert [b.phase_text for b in why.barriers] == [
        "phase 0 of mbarrier bar[0] (parity 0, shared offset 4096)"
    ]
    assert why.notes == (
        "warp 0 has since come to mbarrier bar[0] in its phase 0, at line 29; warp 1 has not yet "
        "seen the end of a phase of it",
    )


# -- the picture -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [LATE, BYTES])
def test_the_picture_has_everybody(text: str) -> None:
    why = stopped(text, 64)
    drawn = protocol_svg(why)
    root = ET.fromstring(drawn)
    words = [node.text for node in root.iter("{http://www.w3.org/2000/svg}text")]
    for barrier in why.barriers:
        assert barrier.phase_text in words
        for party in barrier.waiting:
            assert f"waits: {party.warps_text}, line {party.line}" in words
        for one in barrier.awaited or ():
            assert one.ground_text in words
    arrows = root.iter("{http://www.w3.org/2000/svg}polyline")
    assert len(list(arrows)) == 2 * len(why.cycle)  # to a phase, and on from it
    wide = float(root.attrib["width"])
    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        assert float(box.attrib.get("x", 0)) + float(box.attrib["width"]) <= wide


def test_nothing_to_draw() -> None:
    assert protocol_svg(Why(notes=("no barrier",))) == ""


def test_a_picture_escapes_names() -> None:
    why = stopped(BYTES, 32)
    (barrier,) = why.barriers
    drawn = protocol_svg(Why((replace(barrier, name="mbarrier <a&b>"),)))
    assert "<a&b>" not in drawn
    ET.fromstring(drawn)
