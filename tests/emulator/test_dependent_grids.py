"""Programmatic dependent launch: grids that begin before the one before them has ended."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fragir.emulator import EmulationError, Finding, Report, Stream, run

COUNT, BLOCK = 128, 64
NAMES = ("x", "y", "z")

Words = npt.NDArray[np.uint32]


def entry(name: str, body: str) -> str:
    """A kernel of three arrays: %x, %y, %z are the thread's words, %bx, %by, %bz the block's."""
    loads = "".join(
        f"ld.param.u64 %q, [{p}]; mad.wide.u32 %{p}, %g, 4, %q; mad.wide.u32 %b{p}, %f, 4, %q;"
        for p in NAMES
    )
    parameters = ", ".join(f".param .u64 {p}" for p in NAMES)
    return f"""
.visible .entry {name}({parameters}) {{
 .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b32 %g, %t, %c, %f;
 .reg .b64 %x, %y, %z, %bx, %by, %bz, %q;
 .shared .align 128 .b8 tile[256]; .shared .b64 bar;
 mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mul.lo.u32 %f, %c, {BLOCK}; add.u32 %g, %f, %t;
 setp.eq.u32 %p1, %t, 0; setp.lt.u32 %p2, %t, 32; {loads}
 {body}
 ret;
}}
"""


def grids(*bodies: str, **options: Any) -> tuple[list[Report], dict[str, Words]]:
    """The reports of kernels k0, k1, ..., each dependent on the one before; the arrays."""
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.global .u32 shared_word;\n"
    text += "".join(entry(f"k{i}", body) for i, body in enumerate(bodies))
    arrays = {name: np.arange(COUNT, dtype=np.uint32) for name in NAMES}
    stream, reports = Stream(), list[Report]()
    given: dict[str, Any] = {"check": True, "programmatic": True, **options}
    for i in range(len(bodies)):
        found = run(
            text,
            f"k{i}",
            grid=(COUNT // BLOCK,),
            block=(BLOCK,),
            arguments=list(arrays.values()),
            stream=stream,
            **given,
        )
        reports.append(found)
    return reports, arrays


def findings(reports: list[Report]) -> list[Finding]:
    return [finding for report in reports for finding in report.findings]


RELEASE, WAIT = "griddepcontrol.launch_dependents;", "griddepcontrol.wait;"
ADD_ONE = "ld.global.u32 %r1, [%x]; add.u32 %r1, %r1, 1; st.global.u32 [%y], %r1;"
#: Releases at once, then y = x + 1.
FIRST = f"{RELEASE} {ADD_ONE}"
COPY = "ld.global.u32 %r1, [%y]; st.global.u32 [%z], %r1;"
INIT = (
    "@%p1 mbarrier.init.shared.b64 [bar], 1; @%p1 fence.mbarrier_init.release.cluster; bar.sync 0;"
)
POLL = "L: mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0; @!%p3 bra L;"
BULK_LOAD = f"""{INIT}
 @%p1 mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
 {{}} @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
 [tile], [%by], 256, [bar];
 {POLL}"""
BULK_STORE = """mov.u32 %r3, tile; mad.lo.u32 %r3, %t, 4, %r3; st.shared.u32 [%r3], %t;
 fence.proxy.async.shared::cta; bar.sync 0; {wait}
 @%p1 cp.async.bulk.global.shared::cta.bulk_group [{to}], [tile], 256;
 @%p1 cp.async.bulk.commit_group; @%p1 cp.async.bulk.wait_group 0;"""
CP_ASYNC = """mov.u32 %r3, tile; mad.lo.u32 %r3, %t, 4, %r3; {}
 cp.async.ca.shared.global [%r3], [%y], 4; cp.async.wait_all; bar.sync 0;"""

#: First grid, the second grid's fault, and the same as it should be.
TWINS = {
    "load": (FIRST, f"{COPY} {WAIT}", f"{WAIT} {COPY}"),
    "no wait": (FIRST, COPY, f"{WAIT} {COPY}"),
    "released behind the writes": (f"{ADD_ONE} {RELEASE}", COPY, f"{WAIT} {COPY}"),
    "some blocks release": (
        f"setp.eq.u32 %p3, %c, 0; @%p3 {RELEASE} {ADD_ONE}",
        COPY,
        f"{WAIT} {COPY}",
    ),
    "ld.global.nc": (
        FIRST,
        f"ld.global.nc.u32 %r1, [%y]; {WAIT} st.global.u32 [%z], %r1;",
        f"{WAIT} ld.global.nc.u32 %r1, [%y]; st.global.u32 [%z], %r1;",
    ),
    "write after read": (
        FIRST,
        f"st.global.u32 [%x], 7; {WAIT}",
        f"{WAIT} st.global.u32 [%x], 7;",
    ),
    "write after write": (
        FIRST,
        f"st.global.u32 [%y], 1000; {WAIT}",
        f"{WAIT} st.global.u32 [%y], 1000;",
    ),
    "one thread, no barrier": (FIRST, f"@%p1 {WAIT} {COPY}", f"@%p1 {WAIT} bar.sync 0; {COPY}"),
    "one warp for itself": (FIRST, f"@%p2 {WAIT} {COPY}", f"@!%p2 ret; {WAIT} {COPY}"),
    "one lane of each warp": (
        FIRST,
        f"and.b32 %r2, %t, 31; setp.eq.u32 %p3, %r2, 0; @%p3 {WAIT} {COPY}",
        f"and.b32 %r2, %t, 31; setp.eq.u32 %p3, %r2, 0; @%p3 {WAIT} bar.warp.sync -1; {COPY}",
    ),
    "an mbarrier hands it on": (
        FIRST,
        f"{INIT} @%p1 mbarrier.arrive.shared.b64 _, [bar]; @%p1 {WAIT} {POLL} {COPY}",
        f"{INIT} @%p1 {WAIT} @%p1 mbarrier.arrive.shared.b64 _, [bar]; {POLL} {COPY}",
    ),
    "reductions, then a load": (
        f"{RELEASE} red.global.add.u32 [%by], 1;",
        "ld.global.u32 %r1, [%by]; st.global.u32 [%z], %r1;",
        f"red.global.add.u32 [%by], 1; {WAIT} ld.global.u32 %r1, [%z]; st.global.u32 [%z], %r1;",
    ),
    "bulk load": (FIRST, BULK_LOAD.format(""), BULK_LOAD.format(WAIT)),
    "cp.async": (FIRST, CP_ASYNC.format(""), CP_ASYNC.format(WAIT)),
    "bulk store over writes": (
        FIRST,
        BULK_STORE.format(wait="", to="%by"),
        BULK_STORE.format(wait=WAIT, to="%by"),
    ),
    "bulk store over reads": (
        FIRST,
        BULK_STORE.format(wait="", to="%bx"),
        BULK_STORE.format(wait=WAIT, to="%bx"),
    ),
    "bulk stores before": (
        RELEASE + BULK_STORE.format(wait="", to="%by"),
        COPY,
        f"{WAIT} {COPY}",
    ),
    "a variable": (
        f"{RELEASE} @%p1 red.global.add.u32 [shared_word], 1;",
        f"ld.global.u32 %r1, [shared_word]; {WAIT} st.global.u32 [%z], %r1;",
        f"{WAIT} ld.global.u32 %r1, [shared_word]; st.global.u32 [%z], %r1;",
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_what_comes_before_the_wait_is_a_race(name: str) -> None:
    first, fault, twin = TWINS[name]
    before, there = grids(first, fault)[0]
    assert not before.findings
    assert {(f.kind, f.severity) for f in there.findings} == {("race", "error")}
    message = there.findings[0].message
    assert "of the earlier grid k0" in message
    assert "griddepcontrol.wait first" in message
    assert not findings(grids(first, twin)[0])


def test_both_places_are_named() -> None:
    found = findings(grids(FIRST, f"\n{COPY}\n{WAIT}")[0])
    assert [(f.line, f.other and f.other[0]) for f in found] == [(23, 12)]
    assert "st.global.u32 of line 12 by block (0, 0, 0) warp 0 lane 0" in found[0].message
    assert found[0].message.startswith("ld.global.u32 at byte 0 of argument 1 (y): ")


@pytest.mark.parametrize(
    ("schedule", "asynchrony"), [(None, "late"), (None, "early"), (1, "random"), (2, "random")]
)
def test_every_schedule(schedule: int | None, asynchrony: str) -> None:
    options = {"schedule": schedule, "asynchrony": asynchrony}
    assert findings(grids(FIRST, f"{COPY} {WAIT}", **options)[0])
    reports, arrays = grids(FIRST, f"{WAIT} {COPY}", **options)
    assert not findings(reports)
    assert (arrays["z"] == np.arange(1, COUNT + 1)).all()


def test_blocks_that_come_later() -> None:
    """Two warps are on the machine at once: the second block is another wave."""
    assert len(findings(grids(FIRST, COPY, resident=2)[0])) == 1
    assert not findings(grids(FIRST, f"{WAIT} {COPY}", resident=2)[0])


@pytest.mark.parametrize(
    "bodies",
    [
        (ADD_ONE, COPY),  # nobody lets it begin before all have exited
        (FIRST, f"ld.global.u32 %r1, [%x]; {WAIT} st.global.u32 [%z], %r1;"),  # both read
        (f"{RELEASE} red.global.add.u32 [%bx], 1;", "red.global.add.u32 [%bx], 1;"),
        (FIRST, f"ld.global.u32 %r1, [%x]; st.global.u32 [%x], %r1; {WAIT}"),  # changes nothing
    ],
)
def test_what_is_no_race(bodies: tuple[str, str]) -> None:
    assert not findings(grids(*bodies)[0])


def test_an_ordinary_launch_waits_for_everything() -> None:
    assert not findings(grids(FIRST, COPY, programmatic=False)[0])


def test_a_flag_orders_as_within_a_grid() -> None:
    word = "st.global.u32 [%y], 5; bar.sync 0; @%p1 st.release.gpu.global.u32 [%bz], 1000;"
    look = "L: ld.acquire.gpu.global.u32 %r1, [%bz]; setp.ne.u32 %p3, %r1, 1000; @%p3 bra L;"
    then = f"{look} ld.global.u32 %r2, [%y]; add.u32 %r2, %r2, %r1; st.global.u32 [%x], %r2;"
    assert not findings(grids(f"{RELEASE} {word}", then)[0])
    assert findings(grids(f"{RELEASE} {word}", then.replace("acquire", "relaxed"))[0])


def test_variables_keep_what_the_grid_before_has_left() -> None:
    first = "@%p1 red.global.add.u32 [shared_word], 21;"
    then = "ld.global.u32 %r1, [shared_word]; st.global.u32 [%z], %r1;"
    _, arrays = grids(first, then, programmatic=False, check=False)
    assert (arrays["z"] == 42).all()


class TestThreeGrids:
    #: Reads y, which the first writes, and writes z.
    MIDDLE = f"{RELEASE} {WAIT} {COPY}"
    #: Reads what the first grid has written, and what the middle one has.
    LAST = "ld.global.u32 %r1, [%y]; ld.global.u32 %r2, [%z];"

    def test_waits_all_along(self) -> None:
        assert not findings(grids(FIRST, self.MIDDLE, f"{WAIT} {self.LAST}")[0])

    def test_the_middle_one_does_not_wait(self) -> None:
        """The last one's wait is for the middle grid, which may end before the first has."""
        touches_nothing = f"{RELEASE} st.global.u32 [%z], %t;"
        reports, _ = grids(FIRST, touches_nothing, f"{WAIT} {self.LAST}")
        (finding,) = findings(reports)
        assert "of the earlier grid k0" in finding.message
        assert "the grid between has not executed griddepcontrol.wait" in finding.message

    def test_the_middle_one_ends_first(self) -> None:
        """It lets nobody begin early, and waits: the first has ended when it has."""
        assert not findings(grids(FIRST, f"{WAIT} {COPY}", self.LAST)[0])

    def test_the_last_one_does_not_wait(self) -> None:
        found = findings(grids(FIRST, self.MIDDLE, self.LAST)[0])
        assert [f"earlier grid k{i}" in f.message for i, f in enumerate(found)] == [True, True]


def test_a_grid_before_that_was_not_checked() -> None:
    stream, x = Stream(), np.zeros(4, np.uint32)
    text = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 a) { griddepcontrol.launch_dependents; griddepcontrol.wait; ret; }
"""
    run(text, arguments=[x], stream=stream)
    report = run(text, arguments=[x], stream=stream, programmatic=True, check=True)
    assert "k, which may still run when this grid begins, ran without checks" in report.notes[0]
    with pytest.raises(EmulationError, match="depends on the one before, on a stream"):
        run(text, arguments=[x], programmatic=True)


def test_arrays_that_are_parts_of_others() -> None:
    """The second grid is given a part of the array, at 4 bytes beyond a multiple of 16."""
    text = ".version 8.0\n.target sm_90\n.address_size 64\n"
    text += entry("k0", f"{RELEASE} st.global.u32 [%x], 9;")
    text += entry("k1", f"{WAIT} ld.global.u32 %r1, [%x];").replace(WAIT, "")
    whole, rest = np.zeros(COUNT + 8, np.uint32), [np.zeros(COUNT, np.uint32) for _ in range(2)]
    for part, expected in ((whole[1:], 1), (whole[COUNT:], 0)):
        stream = Stream()
        launch: dict[str, Any] = {"grid": (2,), "block": (64,), "check": True, "stream": stream}
        run(text, "k0", arguments=[whole, *rest], **launch)
        launch = {**launch, "grid": (1,), "block": (4,), "programmatic": True}
        report = run(text, "k1", arguments=[part, *rest], **launch)
        assert len(report.findings) == expected
