"""Conversions of any tables inside of warps: all arrives, with as few shuffles as can be."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.sweeps import warp_plans
from fragir.layout import Layout
from fragir.layout.planning.colouring import Points, table_plan
from fragir.layout.planning.colours import WordEdge, colour_edges
from fragir.layout.planning.costs import COSTS
from fragir.layout.planning.program import LaneTable, repeat_program
from fragir.layout.planning.warp import price
from fragir.sweeps import Task


def tables(text: str) -> list[list[list[int | None]]]:
    """The points of a layout in every warp, lane and element; lanes that it lacks hold nothing."""
    one = Layout.parse(text)
    sizes = one.sizes
    found: list[list[list[int | None]]] = []
    for warp in range(sizes.get("warp", 1)):
        lanes: list[list[int | None]] = [[None] * sizes["element"] for _ in range(32)]
        for lane in range(sizes["lane"]):
            for element in range(sizes["element"]):
                slot = {"warp": warp, "lane": lane, "element": element}
                point = one(**{axis: slot[axis] for axis in one.names})
                lanes[lane][element] = None if point is None else point[0] * 256 + point[1]
        found.append(lanes)
    return found


def flat(points: Points) -> list[list[int]]:
    return [[-1 if p is None else p for p in lane] for warp in points for lane in warp]


@pytest.mark.parametrize(
    ("source", "target", "bits", "shuffles"),
    [
        (
            "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]",
            "warp [4:(16,0)] lane [3:(0,8) 8:(1,0)] element [8:(0,1) 2:(8,0)]",
            16,
            8,
        ),
        (
            "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 5:(0,8)]",
            "warp [4:(16,0)] lane [2:(0,4) 16:(1,0)] element [4:(0,1) 5:(0,8)]",
            32,
            20,
        ),
        (
            "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 5:(0,8)]",
            "warp [4:(16,0)] lane [2:(0,20) 16:(1,0)] element [20:(0,1)]",
            16,
            10,
        ),
        (
            "lane [4:(0,0) 8:(1,0)] element [4:(0,1)] where lane%4==0",
            "lane [4:(0,1) 8:(1,0)] element [1:(0,0)]",
            32,
            3,
        ),
        (
            "lane [4:(0,2) 8:(1,0)] element [2:(0,1) 3:(0,8)]",
            "lane [4:(0,2) 8:(1,0)] element [3:(0,8) 2:(0,1)]",
            64,
            0,
        ),
    ],
    ids=["n24-24-lanes", "n40-by-8", "n40-rows", "every-fourth-lane", "registers"],
)
def test_layouts_of_any_digits(source: str, target: str, bits: int, shuffles: int) -> None:
    held, wanted = tables(source), tables(target)
    plan = table_plan(held, wanted, bits)
    assert plan is not None
    assert not warp_plans.lost_points(flat(held), flat(wanted), bits, plan.program)
    assert plan.counts.get("shfl", 0) == plan.bound == shuffles


@settings(deadline=None, max_examples=15)
@given(
    st.sampled_from(warp_plans.TABLES), st.sampled_from(warp_plans.BITS), st.integers(0, 1 << 30)
)
def test_random_tables_arrive(kind: str, bits: int, seed: int) -> None:
    warp_plans.fault_of_tables(kind, bits, random.Random(seed))


def test_the_sweep() -> None:
    result = warp_plans.run(Task(0, ("single", 8), 1, {"batch": 2}))
    assert result == {"conversions": 2, "findings": []}


def test_data_that_cross_warps_have_no_plan() -> None:
    held: list[list[list[int | None]]] = [
        [[warp * 32 + lane] for lane in range(32)] for warp in (0, 1)
    ]
    assert table_plan(held, list(reversed(held)), 32) is None


def test_numbers_of_lanes_are_linear_where_they_can_be() -> None:
    held = [[[lane] for lane in range(32)]]
    turned = [[[lane * 4 % 32 + lane // 8] for lane in range(32)]]
    plan = table_plan(held, turned, 32)
    assert plan is not None
    (step,) = plan.program.steps
    assert not isinstance(getattr(step, "lane"), LaneTable)
    odd = table_plan(held, [[[lane * 3 % 32] for lane in range(32)]], 32)
    assert odd is not None
    (step,) = odd.program.steps
    assert isinstance(getattr(step, "lane"), LaneTable)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=60))
def test_edges_take_as_many_colours_as_the_busiest_end(ends: Sequence[tuple[int, int]]) -> None:
    edges = [WordEdge(s, r, (number,), (0,), frozenset({0})) for number, (s, r) in enumerate(ends)]
    colours = colour_edges(edges, 1)
    busiest = max((sum(e[i] == end for e in ends) for i in (0, 1) for end in range(8)), default=0)
    assert len(set(colours)) == busiest
    for side in (0, 1):
        painted = [(end[side], colour) for end, colour in zip(ends, colours, strict=True)]
        assert len(set(painted)) == len(painted)


def test_a_word_that_several_lanes_want_is_sent_once() -> None:
    held = [[[2 * lane, 2 * lane + 1] for lane in range(32)]]
    asked = [[[8 * (lane // 4), 8 * (lane // 4) + 1] for lane in range(32)]]
    plan = table_plan(held, asked, 32)
    assert plan is not None
    assert plan.counts == {"shfl": 2}
    halves = table_plan(held, asked, 16)
    assert halves is not None
    assert halves.counts == {"shfl": 1}


def test_lanes_that_give_parts_of_a_word_give_them_together() -> None:
    held = [[[2 * lane, 2 * lane + 1] for lane in range(32)]]
    asked = [[[(lane + 1) % 32 * 2, (lane + 2) % 32 * 2 + 1] for lane in range(32)]]
    plan = table_plan(held, asked, 16)
    assert plan is not None
    assert plan.counts["shfl"] == plan.bound == 2
    four = [[[4 * lane + half for half in range(4)] for lane in range(32)]]
    # lanes 2 i and 2 i + 1 take the first and the last half of lane i, which are in two words
    both = table_plan(four, [[[lane // 2 * 4 + lane % 2 * 3] for lane in range(32)]], 16)
    assert both is not None
    assert both.counts["shfl"] == both.bound == 1


def test_tables_are_priced_one_by_one() -> None:
    held = [[[lane] for lane in range(32)]]
    odd = table_plan(held, [[[lane * 3 % 32] for lane in range(32)]], 32)
    even = table_plan(held, [[[lane * 4 % 32 + lane // 8] for lane in range(32)]], 32)
    assert odd is not None
    assert even is not None
    both = repeat_program(odd.program, [(0,), (1,)], [(0,), (1,)])
    shuffle = COSTS.shuffle + COSTS.issue
    assert price(even.program) == price(odd.program) == shuffle + COSTS.formula
    assert price(both) == 2 * shuffle + COSTS.formula
    more = table_plan([[[lane, 32 + lane] for lane in range(32)]], _mixed(3, 5), 32)
    assert more is not None
    assert price(more.program) == 2 * (shuffle + COSTS.formula)


def _mixed(first: int, second: int) -> list[list[list[int]]]:
    return [[[lane * first % 32, 32 + lane * second % 32] for lane in range(32)]]
