"""Conversions through shared memory: run lane by lane, passes counted, theory's least reached."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.conversion_cases import CASES, Case
from benchmarks.sweeps import shared_plans as sweep
from fragir.layout import LayoutError
from fragir.layout.f2 import image, rank
from fragir.layout.planning.access import common_complement
from fragir.layout.planning.costs import Features
from fragir.layout.planning.program import Linear, gather_words
from fragir.layout.planning.registers import RegisterColumns, pair_of
from fragir.layout.planning.shared import shared_plan
from fragir.sweeps import Task


@pytest.mark.parametrize("seed", range(4))
def test_random_pairs(seed: int) -> None:
    """`fragir sweep shared-plans` runs many more."""
    result = sweep.run(Task(0, None, seed, {"batch": 30}))
    assert result["findings"] == []


@pytest.mark.parametrize("case", [c for c in CASES if c.name.endswith("128x64")], ids=str)
def test_what_one_ldmatrix_loads_is_side_by_side_in_a_large_fragment(case: Case) -> None:
    """Else ptxas copies a register for most of the 32 ldmatrix."""
    pair = pair_of(case.source, case.target, case.bits)
    assert pair is not None
    plan = shared_plan(pair.source, pair.target, case.bits, Features(stmatrix=True))
    assert plan.counts["ldmatrix.x4.trans"] == 32
    assert not plan.after.steps
    assert plan.after.outputs == tuple(range(128))


@st.composite
def any_pair(draw: st.DrawFn) -> tuple[RegisterColumns, RegisterColumns]:
    """Any columns, dependent or not, and others of what the first ones reach."""
    dims = draw(st.integers(1, 9))
    vectors = st.integers(0, (1 << dims) - 1)

    def columns(count: int) -> st.SearchStrategy[tuple[int, ...]]:
        return st.tuples(*[vectors] * count)

    warps = draw(st.integers(0, 2))
    source = RegisterColumns(
        draw(columns(draw(st.integers(0, 4)))), draw(columns(5)), draw(columns(warps))
    )
    reached = [
        image(source.columns, draw(st.integers(0, (1 << len(source.columns)) - 1)))
        for _ in range(draw(st.integers(0, 4)) + 5 + warps)
    ]
    elements = len(reached) - 5 - warps
    lanes = slice(elements, elements + 5)
    return source, RegisterColumns(
        tuple(reached[:elements]), tuple(reached[lanes]), tuple(reached[elements + 5 :])
    )


@given(any_pair(), st.sampled_from([8, 16, 32, 64]), st.booleans(), st.sampled_from([256, 49152]))
@settings(deadline=None, max_examples=40)
def test_any_columns(
    pair: tuple[RegisterColumns, RegisterColumns], bits: int, matrix: bool, scratch: int
) -> None:
    features = Features(matrix, matrix, scratch=scratch)
    _, found = sweep.checked(*pair, bits, features)
    assert found == []


# Where more passes than bytes / 128 are cheaper than what else would have to be done: four words
# of 8 different lanes would need selects first, and bytes of four words permutes.
CHEAPER = {
    "acc to B, s8": (32, 32),
    "row a lane to row vector, f32": (1, 4),
    "row vector to row a lane, f32": (4, 1),
}


@pytest.mark.parametrize(
    ("case", "stmatrix"),
    [(case, True) for case in CASES] + [(case, False) for case in CASES[::4]],
    ids=lambda given: given.name if isinstance(given, Case) else "",
)
def test_operands(case: Case, stmatrix: bool) -> None:
    """Every byte goes over the banks once on each side: 128 of them in a pass."""
    pair = pair_of(case.source, case.target, case.bits)
    assert pair is not None
    plan, found = sweep.checked(pair.source, pair.target, pair.bits, Features(stmatrix=stmatrix))
    assert found == []
    moved = [
        max(1, (pair.bits // 8 << rank((*side.element, *side.lane))) // 128)
        for side in (pair.source, pair.target)
    ]
    assert plan.passes == CHEAPER.get(case.name, tuple(moved))


def test_no_bank_is_met_twice() -> None:
    """Of layouts over F2 whose vectors are of one width none has a conflict, of others few."""
    rng = random.Random(7)
    others = 0
    for _ in range(150):
        source, target, bits = sweep.random_pair(rng)
        plan = shared_plan(source, target, bits)
        widths = {access.size for access in plan.stores + plan.loads if not access.matrices}
        same = len(widths) == 1 and not any(a.matrices for a in plan.stores + plan.loads)
        conflicts = plan.passes != sweep.ideal(plan)
        assert not (same and conflicts)
        others += conflicts
    assert others < 5


@pytest.mark.parametrize("scratch", [32768, 16384, 4096])
def test_rounds(scratch: int) -> None:
    """The scratch memory halves with every register of both sides that is taken in turns."""
    source = RegisterColumns((1, 2, 32, 64, 256, 512, 1024), (4, 8, 16, 128, 2048))
    target = RegisterColumns((64, 32, 1, 2, 256, 512, 1024), (2048, 16, 128, 8, 4))
    features = Features(scratch=scratch)
    plan, found = sweep.checked(source, target, 32, features)
    assert found == []
    assert plan.scratch <= scratch
    assert plan.rounds * plan.scratch == 4 * 4096
    assert plan.counts["bar.warp.sync"] == 2 * plan.rounds - 1
    assert plan.passes == (128, 128)


def test_warps_that_hold_the_same_store_once() -> None:
    """Two of four warps store 16 passes each, and all wait."""
    source = RegisterColumns((1, 2, 32, 64, 128, 256), (4, 8, 16, 512, 1024), (2048, 0))
    target = RegisterColumns((1, 2, 32, 64, 128, 2048), (4, 8, 16, 512, 1024), (256, 0))
    plan, found = sweep.checked(source, target, 32, Features())
    assert found == []
    assert plan.meeting.reach == "block"
    assert plan.stores[0].unless is not None
    assert plan.stores[0].unless.warp == (0, 32)
    few = shared_plan(
        RegisterColumns((1,), source.lane, (2048, 0)),
        RegisterColumns((2048,), source.lane, (1, 0)),
        32,
    )
    assert few.meeting.reach == "group"
    assert (few.meeting.warps, few.meeting.groups) == (2, 2)


def test_lanes_that_hold_the_same_store_once() -> None:
    """Of 16-byte vectors in eight different lanes only those eight are stored: one pass."""
    source = RegisterColumns((1, 2), (4, 8, 16, 0, 0))
    target = RegisterColumns((16, 8), (1, 2, 4, 0, 0))
    plan, found = sweep.checked(source, target, 32, Features())
    assert found == []
    assert plan.stores[0].unless == Linear(0, (0, 0, 0, 8, 16))
    assert plan.passes[0] == len(plan.stores)


def test_bytes_are_transposed_by_eight_permutes() -> None:
    program = gather_words(4, [[0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15]], 1)
    assert program.counts == {"prmt": 8}


@pytest.mark.parametrize("seed", range(50))
def test_two_spaces_have_a_common_complement(seed: int) -> None:
    rng = random.Random(seed)
    dims = rng.randint(1, 10)
    first, second = ([rng.getrandbits(dims) for _ in range(rng.randint(0, 8))] for _ in range(2))
    found = common_complement(first, second, dims)
    assert len(found) == rank(found) == dims - max(rank(first), rank(second))
    for space in (first, second):
        assert rank(space + found) == rank(space) + len(found)


def test_points_that_nobody_has() -> None:
    source = RegisterColumns((0,), (1, 2, 4, 8, 16))
    with pytest.raises(LayoutError, match="has points"):
        shared_plan(source, RegisterColumns((32,), source.lane), 32)
