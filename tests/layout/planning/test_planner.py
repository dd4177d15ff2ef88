"""Which way is chosen, for whole fragments, and what no way undercuts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.isa import find
from fragir.isa.tiling import tile_layout
from fragir.layout import Layout, LayoutError
from fragir.layout.planning.bounds import conversion_bound
from fragir.layout.planning.costs import COSTS, Features
from fragir.layout.planning.planner import ConversionPlan, plan_conversion
from tests.properties.draws import layouts


def fragment(operand: str, type_: str, shape: tuple[int, int], m: int, n: int, k: int) -> Layout:
    """An operand's tile over four warps below each other, or one warpgroup."""
    sums = {"s8": "s32", "f64": "f64"}.get(type_, "f32")
    shape_name = f"m{m}n{n}k{k}"
    if m == 64:
        instruction = find("wgmma", shape=shape_name, a=type_, b=type_, d=sums)
    else:
        instruction = find("mma", shape=shape_name, a=type_, b=type_, c=sums, d=sums)
    return tile_layout(instruction, operand, shape, (1 if m == 64 else 4, 1))


def test_the_sum_of_a_product_as_operand_of_the_next() -> None:
    def way(type_: str, k: int, bits: int) -> tuple[str, dict[str, int]]:
        c, a = (fragment(operand, type_, (64, 64), 16, 8, k) for operand in "ca")
        plan = plan_conversion(c, a, bits)
        return plan.way, plan.counts

    assert way("f16", 16, 16) == ("nothing", {})
    assert way("e4m3", 32, 8) == ("shuffles", {"selp": 8, "shfl": 8, "prmt": 8})
    assert way("tf32", 8, 32) == ("shared", {"st.128": 8, "ld.128": 8, "bar.warp.sync": 1})
    c, b = (fragment(operand, "f16", (64, 64), 16, 8, 16) for operand in "cb")
    plan = plan_conversion(c, b, 16, Features(stmatrix=True))
    assert plan.counts == {"stmatrix.x4": 4, "ldmatrix.x4.trans": 16, "bar.sync": 1}
    assert plan.scratch == 64 * 64 * 2


def test_odd_digits_that_stay_in_registers_cost_nothing() -> None:
    """96 columns: three times the conversion of 32."""
    c, a = (fragment(operand, "e4m3", (64, 96), 64, 96, 32) for operand in "ca")
    plan = plan_conversion(c, a, 8)
    assert plan.counts == {"selp": 12, "shfl": 12, "prmt": 12}
    assert plan.least_shuffles == 12
    wide = plan_conversion(c, a, 32)
    assert wide.way == "shared"
    assert wide.through is not None
    assert sum(wide.through.passes) == 2 * 48  # 48 words of a thread, no bank met twice
    assert wide.scratch == 64 * 96 * 4


def test_larger_tiles_than_the_scratch_go_in_turns() -> None:
    c, a = (fragment(operand, "tf32", (64, 96), 64, 96, 8) for operand in "ca")
    whole = plan_conversion(c, a, 32)
    small = plan_conversion(c, a, 32, Features(scratch=whole.scratch // 3))
    assert whole.through is not None
    assert small.through is not None
    assert (len(whole.through.turns), len(small.through.turns)) == (1, 3)
    assert small.through.barriers == 5
    assert small.scratch * 3 == whole.scratch
    assert small.cost > whole.cost


def test_elements_that_are_missing_are_named() -> None:
    source = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)]")
    target = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    with pytest.raises(LayoutError, match=r"\(8, 0\)"):
        plan_conversion(source, target, 32)
    other = Layout.parse("warp [2:(8,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1)]")
    with pytest.raises(LayoutError, match="64"):
        plan_conversion(target, other, 32)


def test_exclusive_or_and_offsets() -> None:
    rows = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)] offset (16,8)")
    turned = Layout.parse("lane [4:(0,2) 4:^(1,2) 2:(4,0)] element [2:(0,1) 2:(8,0)]")
    plain = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    assert plan_conversion(rows, rows, 16).way == "nothing"
    assert plan_conversion(plain, turned, 32).counts == {"shfl": 4}
    shifted = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)] offset (16,0)")
    with pytest.raises(LayoutError):
        plan_conversion(plain, shifted, 16)


def test_a_predicate_is_no_matter_of_f2() -> None:
    some = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)] where lane%4==1")
    every = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1)]")
    assert plan_conversion(every, some, 32).way == "nothing"


def test_layouts_of_other_digits_go_by_tables_or_by_elements() -> None:
    some = Layout.parse("lane [4:(0,0) 8:(1,0)] element [4:(0,1)] where lane%4==0")
    every = Layout.parse("lane [4:(0,1) 8:(1,0)] element [1:(0,0)]")
    plan = plan_conversion(some, every, 32)
    assert (plan.way, plan.counts["shfl"]) == ("shuffles", 3)
    sums = Layout.parse("warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]")
    rows = Layout.parse("warp [4:(16,0)] lane [3:(0,8) 8:(1,0)] element [8:(0,1) 2:(8,0)]")
    assert plan_conversion(sums, rows, 16).way == "elements"
    assert plan_conversion(rows, sums, 16).way == "elements"


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_plan_undercuts_the_bound(data: st.DataObject) -> None:
    rows, cols = data.draw(st.sampled_from([(16, 32), (64, 16), (32, 48), (8, 8)]))
    warps = data.draw(st.sampled_from([1, 2, 4]))
    source, target = (data.draw(layouts(rows, cols, warps)) for _ in range(2))
    bits = data.draw(st.sampled_from([8, 16, 32, 64]))
    plan = plan_conversion(source, target, bits)
    assert conversion_bound(source, target, bits) <= plan.cost
    assert plan.least <= plan.cost
    assert (plan.cost == 0) == plan.free
    if plan.way == "shuffles":
        # a movmatrix moves a word between lanes, as a shuffle does
        assert plan.counts.get("shfl", 0) + plan.counts.get("movmatrix", 0) >= plan.least_shuffles
    _check_words(plan, rows * cols)


def _check_words(plan: ConversionPlan, points: int) -> None:
    """Outputs and accesses name words that exist."""
    if plan.program is not None:
        made = plan.program.inputs + len(plan.program.steps)
        assert all(0 <= word < made for word in plan.program.outputs)
    through = plan.through
    if through is None:
        return
    stored = [a for stores, _ in through.turns for a in stores]
    loaded = [a for _, loads in through.turns for a in loads]
    made = through.before.inputs + len(through.before.steps)
    assert all(word < made for access in stored for word in access.words)
    words = sorted(word for access in loaded for word in access.words)
    assert words == list(range(through.after.inputs))
    assert 0 < through.scratch <= points * plan.bits // 8 * 4
    assert COSTS.barrier(through.meeting.reach) > 0
