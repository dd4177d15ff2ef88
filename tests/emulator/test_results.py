"""Results that are left out, second ones, vectors of registers: taken where ptxas takes them."""

from __future__ import annotations

import pytest

from benchmarks.sweeps import opcodes as sweep
from fragir.ptx.opcodes.syntax import Line
from tests.emulator.test_legality import needs_ptxas

RESULTS = ("_", "_|%p7", "{}|_", "{}|%p7", "{}")
#: Statements with their first result as `{}`, and the results that ptxas 13.2 takes there.
STATEMENTS = {
    "elect.sync {}, %r1": "_|%p7 {}|%p7",
    "lop3.and.b32 {}, %r1, %r2, %r3, 0x1b, %p3": "_|%p7 {}|%p7",
    "lop3.b32 {}, %r1, %r2, %r3, 0x1b": "_ {}|_ {}",
    "match.all.sync.b32 {}, %r1, %r1": "_ _|%p7 {}|_ {}|%p7 {}",
    "match.any.sync.b32 {}, %r1, %r1": "{}|_ {}",
    "setp.eq.and.s32 {}, %r1, %r2, %p3": "_ _|%p7 {}|_ {}|%p7 {}",
    "setp.lt.f16 {}, %h1, %h2": "_ {}|_ {}",
    "shfl.sync.idx.b32 {}, %r1, 0, 31, -1": "{}|_ {}|%p7 {}",
    "vote.sync.any.pred {}, %p1, -1": "{}|_ {}",
    "atom.global.add.u32 {}, [%d0], %r1": "_ {}|_ {}",
    "mbarrier.arrive.shared.b64 {}, [%r0]": "_ {}|_ {}",
    "add.u32 {}, %r1, %r2": "{}|_ {}",
    "cvt.u32.s32 {}, %r1": "{}|_ {}",
    "ld.global.b32 {}, [%d0]": "{}|_ {}",
    "and.pred {}, %p1, %p2": "{}|_ {}",
}
#: Vectors of registers, and whether ptxas takes them.
VECTORS = {
    "ld.global.v2.b32 {_, _}, [%d0]": False,
    "ld.global.v4.b32 {_, _, _, %r1}, [%d0]": True,
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {_, _}, [%r0]": False,
    "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {_, %r1}, [%r0]": True,
    "mov.b64 {_, %r1}, %d1": True,
    "mov.b64 {_, _}, %d1": False,
    "atom.global.add.v2.f32 {_, _}, [%d0], {%f1, %f2}": False,
    "atom.global.add.v2.f32 {%f1, _}, [%d0], {%f1, %f2}": True,
    "st.global.v2.b32 [%d0], {_, %r1}": False,
    "st.global.v2.b16 [%d0], {%h1, %r1}": False,
    "ld.global.v2.b8 {%h1, %c1}, [%d0]": False,
    "ld.global.v2.b8 {%h1, %h2}, [%d0]": True,
    "ld.global.v2.b32 {%r1, %f1}, [%d0]": True,
    "st.global.v2.b32 [%d0], {%q1, %q1}": True,
}


def _written(statement: str, result: str) -> str:
    first = statement.split(".")[0]
    register = (
        "%p0" if first in ("setp", "vote", "and") else "%d0" if first == "mbarrier" else "%r0"
    )
    return statement.replace("{}", result.replace("{}", register))


EVERY = {
    **{_written(s, r): r in given.split() for s, given in STATEMENTS.items() for r in RESULTS},
    **VECTORS,
}


@pytest.mark.parametrize("statement", EVERY)
def test_results(statement: str) -> None:
    how, said = sweep.verdict(statement, "sm_100a")
    assert how == ("ran" if EVERY[statement] else "refused"), said


@needs_ptxas
def test_ptxas_says_so() -> None:
    taken = sweep.taken(list(EVERY))
    assert {s: s in taken for s in EVERY} == EVERY


def test_lines_say_which_results_there_are() -> None:
    line = Line(".all.sync.b32|b64 d_:b32{|p}, a{, c:pred?and|or}, members:b32")
    assert [(o.name, o.second, o.spare) for o in line.operands[:2]] == [
        ("d", "may", True),
        ("a", "", False),
    ]
    assert str(line) == ".all.sync.b32|b64 d{|p}, a{, c}, members"
    assert Line(".sync d|p:b32, members").pairs
    assert not line.pairs
