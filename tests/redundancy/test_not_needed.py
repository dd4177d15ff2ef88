"""Which synchronisation a kernel could do without, and what must not be called that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from benchmarks.sweeps import not_needed as sweep
from fragir.errors import FragirError
from fragir.redundancy import ASSUMPTIONS, NotNeeded, not_needed
from fragir.redundancy.statements import synchronising, without
from fragir.sweeps import Plan
from tests.emulator.faults import faults

KERNEL = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 count)
{{
    .reg .b32 %r<12>; .reg .b64 %rd<4>; .reg .pred %p<6>;
    .shared .align 16 .b8 s[512]; .shared .align 8 .b64 bar[2];
    ld.param.u64 %rd1, [out]; ld.param.u32 %r8, [count];
    mov.u32 %r1, %tid.x; shl.b32 %r2, %r1, 2; mov.u32 %r3, s; add.u32 %r4, %r3, %r2;
    xor.b32 %r5, %r2, 128; add.u32 %r5, %r5, %r3; mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd2, %rd2, %rd1; mov.u32 %r9, 0; mov.u32 %r6, 0; setp.lt.u32 %p1, %r1, 32;
{body}
    st.global.u32 [%rd2], %r6;
    ret;
}}
"""
EXCHANGE = """
    st.shared.u32 [%r4], %r1;
    bar.sync 0;  // one
    bar.sync 0;  // other
    ld.shared.u32 %r6, [%r5];
    bar.sync 0;  // behind
"""
# the second barrier keeps the next turn's write behind this turn's read
LOOP = """
TURN:
    st.shared.u32 [%r4], %r9;
    bar.sync 0;  // written
    ld.shared.u32 %r7, [%r5]; add.u32 %r6, %r6, %r7;
    bar.sync 0;  // read
    add.u32 %r9, %r9, 1; setp.lt.u32 %p2, %r9, %r8; @%p2 bra TURN;
"""


def launch(count: int = 1) -> dict[str, Any]:
    return {"block": (64,), "arguments": lambda: [np.zeros(128, np.uint32), count]}


def judged(body: str, *counts: int) -> tuple[NotNeeded, dict[str, str]]:
    """The answer, and the verdict of the statement in front of each comment."""
    text = KERNEL.format(body=body)
    found = not_needed(text, [launch(count) for count in counts or (1,)])
    lines = text.splitlines()
    return found, {lines[one.line - 1].partition("// ")[2]: one.verdict for one in found.statements}


def test_a_barrier_too_many() -> None:
    """Either of the first two is enough; nobody needs the one behind the last read."""
    found, verdicts = judged(EXCHANGE)
    assert verdicts == dict.fromkeys(("one", "other", "behind"), "not needed")
    assert found.together == (0, 2)  # not the pair
    assert found.launches == 1
    assert found.assumptions == ("launches", "time")


def test_a_barrier_that_is_needed() -> None:
    found, verdicts = judged(EXCHANGE.replace("    bar.sync 0;  // other\n", ""))
    assert verdicts == {"one": "needed", "behind": "not needed"}
    assert found.together == (1,)
    (why,) = (one.why for one in found.statements if one.verdict == "needed")
    assert why.startswith("race at line ")


def test_what_one_launch_does_not_need_another_does() -> None:
    assert judged(LOOP, 1)[1] == {"written": "needed", "read": "not needed"}
    found, verdicts = judged(LOOP, 1, 2)
    assert verdicts == {"written": "needed", "read": "needed"}
    assert [one.why.rpartition(" (")[2] for one in found.statements] == ["launch 1)", "launch 2)"]
    assert (found.together, found.launches) == ((), 2)
    assert judged(LOOP, 2, 3)[1]["read"] == "needed"


def test_nothing_is_said_of_what_no_launch_comes_to() -> None:
    body = (
        EXCHANGE
        + """
    setp.lt.u32 %p3, %r8, 5;
    @%p3 bra SMALL;
    bar.sync 0;  // large
SMALL:
    setp.gt.u32 %p4, %r8, 9;
    @%p4 bar.sync 0;  // larger
"""
    )
    _, verdicts = judged(body, 1)
    assert (verdicts["large"], verdicts["larger"]) == ("not executed", "not executed")
    assert judged(body, 1, 7)[1]["large"] == "not needed"


def test_writes_that_are_equal_here_only() -> None:
    """Without the barrier two warps write the same bytes, whose values happen to be equal."""
    body = """
    add.u32 %r7, %r8, 0;
    @%p1 st.shared.u32 [%r4], %r7;
    bar.sync 0;  // between
    @!%p1 st.shared.u32 [%r5], %r8;
    bar.sync 0;  // written
    @%p1 ld.shared.u32 %r6, [%r4];
    @!%p1 ld.shared.u32 %r6, [%r5];
"""
    found, verdicts = judged(body)
    assert verdicts == {"between": "needed", "written": "needed"}
    assert "the values written are equal here" in found.statements[0].why


def test_a_letter_more_is_a_need() -> None:
    """bar.warp.sync behind a look at an mbarrier: without it lanes may miss a phase."""
    fault = next(one for one in faults() if one.name == "schedule-late-lanes")
    text = fault.ptx(mended=True)
    call = {"block": (64,), "arguments": lambda: [np.zeros(64, np.uint32)]}
    found = not_needed(text, [call])
    lines = enumerate(fault.text.splitlines(), 1)
    line = next(number for number, each in lines if each.endswith("// mend"))
    (held,) = (one for one in found.statements if one.line == line)
    assert (held.verdict, held.why) == ("needed", f"schedule at line {fault.line}, by the letter")
    waits = [one for one in found.statements if "try_wait" in one.statement]
    assert [one.verdict for one in waits] == ["needed", "needed"]
    assert all("bra" in one.statement for one in waits)
    assert {one.verdict for one in found.statements if "arrive" in one.statement} == {"needed"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("st.shared.u32 [%r4], %r1; ld.shared.u32 %r6, [%r5];", "without errors; here line "),
        (
            "atom.global.add.u32 %r6, [%rd1+256], 1;",
            "is up to the schedule: the result of an atomic",
        ),
        ("bar.sync 1, 96;", "has one, deadlock"),
    ],
)
def test_what_cannot_be_asked(body: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        judged(body)


def test_there_must_be_a_launch() -> None:
    with pytest.raises(FragirError, match="there is no launch to judge by"):
        not_needed(KERNEL.format(body=EXCHANGE), [])


def test_a_kernel_of_the_compiler() -> None:
    """Behind the loop of a GEMM only empty groups are left to wait for, which a sentence of the ISA
    says; no schedule shows another result. `fragir sweep not-needed` looks at all kernels."""
    plan = Plan(parameters={"schedules": 4})
    (task,) = (one for one in sweep.SWEEP.all_tasks(plan) if one.what == "mma f16")
    found = sweep.run(task)
    assert found == {"statements": 7, "not_needed": 1, "together": 1, "findings": []}


def test_time_may_be_over() -> None:
    found = not_needed(KERNEL.format(body=EXCHANGE), [launch()], seconds=1e-9)
    assert {one.verdict for one in found.statements} == {"not judged"}
    assert found.together == ()


def test_progress_ends_at_one() -> None:
    shares: list[float] = []
    note: Callable[[float], None] = shares.append
    not_needed(KERNEL.format(body=EXCHANGE), [launch()], progress=note)
    assert shares == sorted(shares)
    assert shares[-1] == 1


def test_other_kernels_are_left_out() -> None:
    text = KERNEL.format(body=EXCHANGE)
    other = text[text.index(".visible") :].replace(".entry k(", ".entry other(")
    found = not_needed(text + other, [{**launch(), "entry": "k"}])
    assert [one.verdict for one in found.statements] == ["not needed"] * 3
    assert found.together == (0, 2)


# -- assumptions -----------------------------------------------------------------------------------


def test_threads_that_have_left() -> None:
    body = "setp.gt.u32 %p3, %r1, 31; @%p3 ret;\n" + EXCHANGE.replace("%r5", "%r4")
    assert "exited-threads" in judged(body)[0].assumptions
    assert {"launches", "time", "wgmma-joins", "wgmma-waits", "exited-threads"} <= set(ASSUMPTIONS)


# -- statements ------------------------------------------------------------------------------------


def test_waits_go_with_their_loops() -> None:
    body = """
WAIT:
    mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0;
    @%p2 bra DONE;
    bra WAIT;
DONE:
AGAIN:
    mbarrier.try_wait.parity.shared.b64 %p2,
        [bar], 1;
    @!%p2 bra AGAIN;
    bra END;
END:
    mbarrier.test_wait.parity.shared.b64 %p2, [bar], 0;
    selp.u32 %r6, 1, 0, %p2;
"""
    text = KERNEL.format(body=body)
    first, second = synchronising(text)  # a look that nothing repeats is no wait
    assert first.text.endswith("@%p2 bra DONE; bra WAIT;")
    assert second.text.endswith("@!%p2 bra AGAIN;")
    assert [len(one.places) for one in (first, second)] == [3, 2]
    left = without(text, [first, second])
    assert (len(left), left.count("\n")) == (len(text), text.count("\n"))
    assert list(synchronising(left)) == []
    assert left[second.end :] == text[second.end :]
