"""Plans inside of warps, run lane by lane: all arrives, with as few shuffles as can be."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sweeps import warp_plans
from fragir.layout import Layout
from fragir.layout.planning.costs import COSTS, FEATURES, Costs, Features
from fragir.layout.planning.program import WordProgram, chain_programs, renaming, repeat_program
from fragir.layout.planning.registers import RegisterColumns, pair_of
from fragir.layout.planning.warp import WarpPlan, direct, price, turned_columns, warp_plan
from fragir.sweeps import Task

ACC_8 = "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 8:(0,8)]"
A_8 = "warp [4:(16,0)] lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0) 2:(0,16) 2:(0,32)]"
ACC_32 = "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 8:(0,8)]"
A_32 = "warp [4:(16,0)] lane [4:(0,1) 8:(1,0)] element [2:(8,0) 16:(0,4)]"
ACC_16 = "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]"
A_16 = ACC_16
B_16 = "lane [4:(2,0) 8:(0,1)] element [2:(1,0) 2:(8,0) 2:(0,8)]"
VECTOR = "lane [4:(0,0) 8:(1,0)] element [4:(8,0)]"
ROW_A_LANE = "lane [32:(1,0)]"


def planned(source: str, target: str, bits: int, features: Features = FEATURES) -> WarpPlan:
    pair = pair_of(Layout.parse(source), Layout.parse(target), bits)
    assert pair is not None
    plan = warp_plan(pair.source, pair.target, bits, features=features)
    assert plan is not None
    assert not warp_plans.lost(pair.source, pair.target, bits, plan)
    return plan


@pytest.mark.parametrize(
    ("source", "target", "bits", "counts"),
    [
        (ACC_16, A_16, 16, {}),
        (ACC_8, A_8, 8, {"shfl": 8, "selp": 8, "prmt": 8}),
        (ACC_32, A_32, 32, {"shfl": 32, "selp": 64}),
        (ACC_16, B_16, 16, {"movmatrix": 4}),
        (VECTOR, ROW_A_LANE, 32, {"shfl": 1, "selp": 3}),
        (ROW_A_LANE, VECTOR, 32, {"shfl": 4}),
    ],
    ids=["acc-a-f16", "acc-a-fp8", "acc-a-tf32", "acc-b-f16", "spread", "gather"],
)
def test_the_conversions_of_kernels(
    source: str, target: str, bits: int, counts: dict[str, int]
) -> None:
    plan = planned(source, target, bits)
    assert plan.counts == counts
    assert plan.reckoned == plan.cost


def test_without_movmatrix_a_transposition_is_shuffled() -> None:
    plan = planned(ACC_16, B_16, 16, Features(movmatrix=False))
    assert plan.counts == {"shfl": 4, "prmt": 8}


@pytest.mark.parametrize(
    ("bits", "target", "once", "hops"),
    [
        (8, RegisterColumns((4, 8), (1, 2, 16, 32, 64)), 3, 2),
        (8, RegisterColumns((4, 8), (2, 1, 16, 32, 64)), 3, 2),
        (8, RegisterColumns((4, 8), (16, 32, 64, 1, 2)), 4, 3),
        (8, RegisterColumns((5, 9), (1, 2, 16, 32, 64)), 3, 2),
    ],
)
def test_words_that_would_be_partly_filled_go_by_several_hops(
    bits: int, target: RegisterColumns, once: int, hops: int
) -> None:
    source = RegisterColumns((1, 2), (4, 8, 16, 32, 64))
    single = direct(source, target, 2, COSTS)
    assert single is not None
    assert single.program(1).counts["shfl"] == once
    plan = warp_plan(source, target, bits, features=Features(movmatrix=False))
    assert plan is not None
    assert plan.counts["shfl"] == hops
    assert plan.cost < price(single.program(1))
    assert not warp_plans.lost(source, target, bits, plan)


def test_pairs_of_bytes_are_transposed_like_halves() -> None:
    source = RegisterColumns((1, 2, 4), (8, 16, 32, 64, 128))
    plan = warp_plan(source, turned_columns(source, 1), 8)
    assert plan is not None
    assert plan.counts == {"movmatrix": 2}
    assert not warp_plans.lost(source, plan.target, 8, plan)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
@pytest.mark.parametrize("registers", [1, 2, 3])
def test_a_bit_of_lanes_for_a_bit_of_registers_takes_half_a_shuffle_and_1_5_selects_a_word(
    bits: int, registers: int
) -> None:
    inside = {8: 2, 16: 1}.get(bits, 0)
    element = tuple(1 << bit for bit in range(inside + registers))
    lane = tuple(1 << bit + inside + registers for bit in range(5))
    source = RegisterColumns(element, lane)
    target = RegisterColumns((*element[:-1], lane[3]), (*lane[:3], element[-1], lane[4]))
    plan = warp_plan(source, target, bits)
    assert plan is not None
    words = (1 + (bits == 64)) << registers
    assert plan.counts == {"shfl": words // 2, "selp": words + words // 2}
    assert not warp_plans.lost(source, target, bits, plan)


@pytest.mark.parametrize(
    ("bits", "element", "layers"),
    [
        (8, (4, 8, 1, 2), 2),  # the transposition of four words of four bytes
        (8, (4, 2, 1, 8), 1),
        (8, (2, 1, 4, 8), 1),
        (16, (2, 1, 4, 8), 1),
        (16, (3, 2, 4, 8), 1),
    ],
)
def test_bytes_moved_inside_of_a_lane_take_a_step_a_word_and_layer(
    bits: int, element: tuple[int, ...], layers: int
) -> None:
    lane = (16, 32, 64, 128, 256)
    source, target = RegisterColumns((1, 2, 4, 8), lane), RegisterColumns(element, lane)
    plan = warp_plan(source, target, bits)
    assert plan is not None
    assert plan.counts == {"prmt": layers * 16 * bits // 32}
    assert not warp_plans.lost(source, target, bits, plan)


def test_the_price_of_a_program() -> None:
    costs = Costs(shuffle=3, transpose=5, move=7, issue=0.25, formula=11)
    shuffled = planned(ACC_16, B_16, 16, Features(movmatrix=False)).program
    assert price(shuffled, costs) == 4 * 3 + 8 * 7 + 12 * 0.25 + 11
    assert price(planned(ACC_16, B_16, 16).program, costs) == 4 * 5.25
    # every lane's register from one lane: nothing differs but the lane's own number
    assert price(planned(ROW_A_LANE, VECTOR, 32).program, costs) == 4 * 3.25 + 11
    pair = pair_of(Layout.parse(ACC_8), Layout.parse(A_8), 8)
    assert pair is not None
    plan = warp_plan(pair.source, pair.target, 8, costs)
    assert plan is not None
    assert plan.reckoned == plan.cost == 8 * 3 + 16 * 7 + 24 * 0.25 + 11


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(warp_plans.KINDS), st.sampled_from(warp_plans.BITS), st.integers(0, 1 << 30))
def test_random_maps_arrive_with_the_least_shuffles(kind: str, bits: int, seed: int) -> None:
    warp_plans.fault(kind, bits, random.Random(seed))


def test_the_sweep() -> None:
    result = warp_plans.run(Task(0, ("full", 16), 1, {"batch": 10}))
    assert result == {"conversions": 10, "findings": []}


def test_data_that_cross_warps_have_no_plan() -> None:
    source = RegisterColumns((1,), (2, 4, 8, 16, 32), (64,))
    target = RegisterColumns((64,), (2, 4, 8, 16, 32), (1,))
    assert warp_plan(source, target, 32) is None


@pytest.mark.parametrize(
    ("target", "kind"),
    [
        (RegisterColumns((1, 2, 4), (8, 16, 32, 64, 128)), "nothing"),
        (RegisterColumns((1, 4, 2), (8, 16, 32, 64, 128)), "registers"),
        (RegisterColumns((2, 1, 4), (8, 16, 32, 64, 128)), "bytes"),
        (RegisterColumns((1, 2, 4), (8, 16, 32, 64, 129)), "bytes"),
        (RegisterColumns((1, 2, 8), (4, 16, 32, 64, 128)), "lanes"),
    ],
)
def test_what_is_moved(target: RegisterColumns, kind: str) -> None:
    plan = warp_plan(RegisterColumns((1, 2, 4), (8, 16, 32, 64, 128)), target, 16)
    assert plan is not None
    assert plan.kind == kind
    assert (plan.cost == 0) == (kind in ("nothing", "registers"))


def test_a_program_for_several_groups_of_words_has_the_same_numbers() -> None:
    plan = planned(ACC_16, B_16, 16)
    sources, targets = ((0, 2, 4, 6), (1, 3, 5, 7)), ((4, 5, 6, 7), (0, 1, 2, 3))
    twice = repeat_program(plan.program, sources, targets)
    assert twice.counts == {name: 2 * count for name, count in plan.counts.items()}
    assert _numbers(twice) == _numbers(plan.program)
    side = pair_of(Layout.parse(ACC_16), Layout.parse(B_16), 16)
    assert side is not None
    held, wanted = (warp_plans.points(one) for one in (side.source, side.target))
    apart = 1 << 9  # the second group's points
    given = [_interleaved(row, [point + apart for point in row]) for row in held]
    expected = [[point + apart for point in row] + list(row) for row in wanted]
    assert not warp_plans.lost_points(given, expected, 16, twice)


def _interleaved(first: list[int], second: list[int]) -> list[int]:
    """Words of two halves from both in turn."""
    words = [row[place : place + 2] for place in range(0, len(first), 2) for row in (first, second)]
    return [point for word in words for point in word]


def _numbers(program: WordProgram) -> set[object]:
    return {getattr(step, "selector", getattr(step, "lane", None)) for step in program.steps}


def test_a_chain_of_programs_makes_only_what_is_needed() -> None:
    plan = planned(ROW_A_LANE, VECTOR, 32)
    first = chain_programs(plan.program, renaming(4, (2, 2)))
    assert first.counts == {"shfl": 1}
    assert first.outputs == (1, 1)
    assert chain_programs(renaming(2, (1,)), first).steps == (replace(first.steps[0], a=1),)
