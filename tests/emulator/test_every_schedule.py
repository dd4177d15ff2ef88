"""For which schedules a run speaks: rules A to F on phases, and what is up to the schedule."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from benchmarks.sweeps import every_schedule as sweep
from fragir.emulator import EmulationError, Report, run
from fragir.sweeps import Plan

KERNEL = """
.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<20>; .reg .b64 %rd<8>; .reg .pred %p<8>; .reg .f32 %f<4>;
    .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar[4];
    ld.param.u64 %rd1, [data]; mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 5; and.b32 %r3, %r1, 31;
    shl.b32 %r4, %r1, 2; mov.u32 %r5, s; add.u32 %r5, %r5, %r4;
    setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r3, 0; setp.eq.u32 %p3, %r1, 0;
    {text}
    DONE: ret;
}}
"""
ORDERS: tuple[dict[str, Any], ...] = (
    {},
    {"asynchrony": "early"},
    *({"asynchrony": "random", "schedule": seed} for seed in range(1, 7)),
)


def init(count: int, where: str = "bar") -> str:
    return f"@%p3 mbarrier.init.shared.b64 [{where}], {count};\n"


BEGIN = "fence.mbarrier_init.release.cluster; bar.sync 0;\n"


def wait(name: str, parity: int, where: str = "bar") -> str:
    return f"""{name}: mbarrier.try_wait.parity.shared.b64 %p5, [{where}], {parity};
    @!%p5 bra {name};\n"""


def arrive(where: str = "bar") -> str:
    return f"@%p2 mbarrier.arrive.shared.b64 _, [{where}];\n"


def judged(text: str, threads: int, **order: Any) -> Report:
    data = np.zeros(256, np.uint32)
    ptx = KERNEL.format(text=text)
    return run(ptx, block=(threads,), arguments=[data], check=True, limit=100_000, **order)


def kinds(text: str, threads: int, **order: Any) -> set[str]:
    """Of findings; "stopped" where the run was, a star behind letters."""
    try:
        found = judged(text, threads, **order).findings
    except EmulationError:
        return {"stopped"}
    return {one.kind + "*" * (one.severity == "letter") for one in found}


# one phase of two arrivals, twice, with an "empty" barrier on the way back
RING = (
    init(1)
    + init(1, "bar+8")
    + BEGIN
    + f"""@!%p1 bra READ;
    {wait("E0", 1, "bar+8")} bar.warp.sync -1; @%p2 st.shared.u32 [s], 1; {arrive()}
    {wait("E1", 0, "bar+8")} bar.warp.sync -1; @%p2 st.shared.u32 [s], 2; {arrive()} bra DONE;
    READ: {wait("F0", 0)} ld.shared.u32 %r6, [s]; bar.warp.sync -1; {arrive("bar+8")}
    {wait("F1", 1)} ld.shared.u32 %r7, [s]; add.u32 %r6, %r6, %r7;
    @%p2 st.global.u32 [%rd1], %r6;
    """
)
EXCHANGE = """st.shared.u32 [%r5], %r1; shr.u32 %r6, %r2, 1; {barrier}
    xor.b32 %r7, %r4, 128; mov.u32 %r8, s; add.u32 %r7, %r7, %r8; ld.shared.u32 %r9, [%r7];
    mul.wide.u32 %rd2, %r4, 1; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r9;
"""
COPY = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
AHEAD = """@!%p1 bra TAKE; st.shared.u32 [%r5], %r1; bar.arrive 1, 64;
    {between} st.shared.u32 [%r5+512], %r1; bar.arrive 1, 64; bra DONE;
    TAKE: bar.sync 1, 64; ld.shared.u32 %r6, [%r5+-128]; {other}
    bar.sync 1, 64; ld.shared.u32 %r7, [%r5+384]; add.u32 %r6, %r6, %r7;
    mul.wide.u32 %rd2, %r4, 1; add.u64 %rd2, %rd1, %rd2; st.global.u32 [%rd2], %r6;
"""


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        (RING, 64),
        # each pair of warps has a barrier of its own
        (EXCHANGE.format(barrier="add.u32 %r6, %r6, 1; bar.sync %r6, 64;"), 128),
        (AHEAD.format(between="bar.sync 2, 64;", other="bar.sync 2, 64;"), 64),
        ("bar.sync 0; bar.sync 0;", 64),
        (init(1) + BEGIN + init(1, "bar+8") + "bar.sync 0;", 64),
    ],
)
def test_what_holds_in_every_schedule(text: str, threads: int) -> None:
    for order in ORDERS:
        report = judged(text, threads, **order)
        assert report.findings == []
        assert report.schedules is not None
        assert report.schedules.every
        assert report.schedules.assumptions == []


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        # the one who fills does not wait: the reader may miss a phase
        (RING.replace(wait("E1", 0, "bar+8"), ""), 64),
        # whichever pair of warps meets
        (EXCHANGE.format(barrier="bar.sync 1, 64;"), 128),
        (AHEAD.format(between="", other=""), 64),
        # two are to arrive, one warp may do so twice
        (init(2) + BEGIN + f"""setp.eq.u32 %p4, %r2, 2; @%p4 bra READ;
            st.shared.u32 [%r5], %r1; bar.warp.sync -1; {arrive()} {arrive()} bra DONE;
            READ: {wait("F0", 0)} ld.shared.u32 %r6, [%r5+-256]; ld.shared.u32 %r7, [%r5+-128];
            add.u32 %r6, %r6, %r7; @%p2 st.global.u32 [%rd1], %r6;""", 96),
        # bytes of the second copy may complete the first phase
        (init(1) + BEGIN + f"""@!%p3 bra READ;
            mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64;
            {COPY} [s], [%rd1], 64, [bar]; {COPY} [s+64], [%rd1], 64, [bar];
            mbarrier.arrive.expect_tx.shared.b64 _, [bar], 64; READ:
            """ + wait("F0", 0) + wait("F1", 1), 32),
        # two threads initialise one mbarrier
        ("@%p2 mbarrier.init.shared.b64 [bar], 1; bar.sync 0;", 64),
    ],
)  # fmt: skip
def test_what_breaks_a_rule_is_found_whatever_the_order(text: str, threads: int) -> None:
    for order in ORDERS:
        found = kinds(text, threads, **order)
        assert found & {"schedule", "stopped", "race", "mbarrier"}, order
    assert any("schedule" in kinds(text, threads, **order) for order in ORDERS) or (
        "stopped" in kinds(text, threads)
    )


def test_lanes_that_are_late_are_a_letter() -> None:
    """All lanes look, one of them goes on: without bar.warp.sync the others may miss a phase."""
    text = RING.replace("bar.warp.sync -1; @%p2 st.shared", "@%p2 st.shared")
    assert kinds(text, 64) == {"schedule*"}
    (finding, *_) = judged(text, 64).findings
    assert "as lanes of a warp need not go together" in finding.message


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "atom.global.add.u32 %r6, [%rd1], 1; @%p2 st.global.u32 [%rd1+64], %r6;",
            "who came first",
        ),
        ("ld.volatile.global.u32 %r6, [%rd1]; st.shared.u32 [%r5], %r6;", "a strong load"),
        ("red.global.add.u32 [%rd1], 1; fence.acq_rel.gpu;", "fences order"),
        ("activemask.b32 %r6; st.shared.u32 [%r5], %r6;", "which lanes go together"),
        ("mov.u32 %r6, %smid; st.shared.u32 [%r5], %r6;", "%smid differs"),
        (
            init(1) + BEGIN + "mbarrier.test_wait.parity.shared.b64 %p5, [bar], 0;"
            " selp.u32 %r6, 1, 0, %p5; st.shared.u32 [%r5], %r6;",
            "looked at once",
        ),
    ],
)
def test_what_is_up_to_the_schedule(text: str, why: str) -> None:
    found = judged(text, 32).schedules
    assert found is not None
    assert not found.every
    assert [one.line for one in found.open] == [one.line for one in found.open if one.line]
    assert all(why in one.why for one in found.open)


def test_sums_of_floats_by_atomics() -> None:
    """They commute but for their last bits, which is said."""
    text = "mov.f32 %f1, 0f3F800000; red.global.add.f32 [%rd1], %f1;"
    found = judged(text, 32).schedules
    assert found is not None
    assert (found.every, found.assumptions) == (True, ["float-sums"])
    whole = judged("red.global.add.u32 [%rd1], 1;", 32).schedules
    assert whole is not None
    assert (whole.every, whole.assumptions) == (True, [])


# -- against schedules -----------------------------------------------------------------------------


def test_schedules_refute_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`fragir sweep every-schedule` tries the kernels of the compiler and of others, and their
    mutants; were the rules too lenient, a schedule would tell."""
    plan = Plan(parameters={"launches": "", "mutants": 2, "schedules": 2})
    tasks = [t for t in sweep.SWEEP.all_tasks(plan) if t.what[0] == "passes: mma f64"]
    assert [task.what[1] for task in tasks][:2] == [-1, 0]
    found = [sweep.run(task) for task in tasks]
    assert [each["findings"] for each in found] == [[]] * len(tasks)
    assert (found[0]["every_schedule"], found[0]["every_value"]) == (1, 1)
    assert sum(each.get("reported", 0) for each in found) > 0
    monkeypatch.setattr(sweep, "execution", _other_under_a_schedule)
    (refuted,) = sweep.run(tasks[0])["findings"]
    assert refuted == "passes: mma f64, as it is: other results under schedule 0"


_execution = sweep.execution


def _other_under_a_schedule(one: sweep.Launch, text: str, **way: Any) -> tuple[Report, list[bytes]]:
    found = _execution(one, text)
    assert not isinstance(found, str)
    return found[0], [b""] if way.get("schedule") == 0 else found[1]
