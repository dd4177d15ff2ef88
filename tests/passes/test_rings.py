"""Programs with rings: slots filled ahead by every way of copying, read, carried, released."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.sweeps.rings import ORDERS, Pipeline, check, room
from tests.properties.judge import examples, judge


@st.composite
def pipelines(draw: st.DrawFn, copies: str | None = None) -> Pipeline:
    slots = draw(st.integers(1, 5))
    order = draw(st.sampled_from([o for o in ORDERS if room(slots, o) >= (o == "carried")]))
    ahead = draw(st.integers(int(order == "carried"), room(slots, order)))
    return Pipeline(
        slots,
        ahead,
        order,
        copies or draw(st.sampled_from(["async", "plain", "tile"])),
        draw(st.integers(1, 2)),
        draw(st.sampled_from([1, 2, 4])),
        draw(st.booleans()),
    )


def agrees(pipeline: Pipeline, target: str, trips: int, seed: int) -> None:
    """The program gives what it means, and what it copies."""
    judge(pipeline.text(), target, scalars={"n": trips}, seed=seed, assemble=False)
    assert check(pipeline, target, trips, seed) == [], pipeline.text()


@examples(5)
@given(
    pipelines(),
    st.sampled_from(["sm_75", "sm_80", "sm_90a"]),
    st.integers(0, 9),
    st.integers(0, 99),
)
def test_groups_of_copies(pipeline: Pipeline, target: str, trips: int, seed: int) -> None:
    agrees(pipeline, target, trips, seed)


@examples(4)
@given(
    pipelines("tma"), st.sampled_from(["sm_90a", "sm_120a"]), st.integers(0, 9), st.integers(0, 99)
)
def test_mbarriers(pipeline: Pipeline, target: str, trips: int, seed: int) -> None:
    agrees(pipeline, target, trips, seed)


def test_an_inner_loop_goes_on_in_the_registers_of_the_outer_one() -> None:
    """What the outer loop carries next is not written there before the last use of what it left."""
    assert check(Pipeline(2, 1, "first", "tma", 1, 1, True), "sm_90a", trips=2, seed=80) == []
