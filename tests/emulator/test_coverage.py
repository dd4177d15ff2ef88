"""Which statements a run has executed, and which guards have gone one way."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.emulator import Coverage, Covered, run

PTX = """.version 8.0
.target sm_80
.address_size 64
.func (.reg .b32 %out) twice(.reg .b32 %in)
{
    add.u32 %out, %in, %in;
    ret;
}
.visible .entry k(.param .u64 y, .param .u32 n)
{
    .reg .pred %p<4>; .reg .b32 %r<6>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [y];
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x;
    mov.u32 %r3, 0;
    setp.ge.u32 %p1, %r2, %r1;
    @%p1 bra done;
    setp.gt.u32 %p2, %r2, 7;
    @%p2 add.u32 %r3, %r3, 5;
    @!%p2 call (%r3), twice, (%r2);
done:
    mul.wide.u32 %rd2, %r2, 4;
    add.u64 %rd1, %rd1, %rd2;
    st.global.u32 [%rd1], %r3;
    bra end;
    add.u32 %r3, %r3, 1;
end:
    ret;
}
"""
LINES = PTX.splitlines()


def line(text: str) -> int:
    (found,) = (i for i, each in enumerate(LINES, 1) if text in each)
    return found


def covered(n: int) -> Covered:
    coverage = Coverage()
    y = np.zeros(32, np.uint32)
    run(PTX, "k", arguments=[y, n], checks=[coverage])
    return coverage.covered


def test_all_of_it() -> None:
    found = covered(20)
    done, reachable = found.counts
    assert done == reachable == 16
    assert (found.missed, found.branches_one_way, found.guards_one_way) == ([], [], [])


def test_what_was_not_executed() -> None:
    none, some = covered(0), covered(8)
    assert none.branches_one_way == [line("bra done")]
    assert none.missed == [
        *(line("add.u32 %out"), line("add.u32 %out") + 1),
        *(line(text) for text in ("setp.gt", "%r3, %r3, 5", "call (")),
    ]
    assert some.missed == [line("%r3, %r3, 5")]
    assert some.guards_one_way == [line("%r3, %r3, 5"), line("call (")]
    assert some.branches_one_way == []
    assert line("add.u32 %r3, %r3, 1") not in none.lines.values()


@settings(max_examples=20)
@given(st.integers(0, 40), st.integers(0, 40))
def test_two_runs_together(one: int, other: int) -> None:
    both = covered(one) | covered(other)
    assert both.executed == covered(one).executed | covered(other).executed
    assert set(both.missed) == set(covered(one).missed) & set(covered(other).missed)
    # lanes on either side of the branch, in one run or in two
    either = [min(max(n, 0), 32) for n in (one, other)]
    assert (both.branches_one_way == []) == (any(either) and min(either) < 32)
