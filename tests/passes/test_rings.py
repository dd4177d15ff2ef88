"""Programs with rings: slots filled ahead by every way of copying, read, carried, released."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragir
from benchmarks.sweeps.rings import MEMORY, ORDERS, TILE, Pipeline, X, check, room
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


@pytest.mark.parametrize("slots", [1, 2, 3, 4])
@pytest.mark.parametrize("order", ["first", "last"])
def test_acquiring_waits_for_the_slot_that_it_takes(order: str, slots: int) -> None:
    """Turn i awaits block i and fills block i + ahead, into the slot that turn i + ahead - slots
    has read: who waits for that has met at an await since, unless that turn was the last one."""
    for ahead in range(room(slots, order) + 1):
        text = Pipeline(slots, ahead, order, "async", 1, 1, False).text()
        met_since = slots > 1 if ahead == 0 else order == "first" or ahead < slots
        found = fragir.compile(text, target="sm_80").ptx.count("bar.sync")
        assert found == (1 if met_since else 2), (ahead, text)


OUT_OF_TURN = """
!ring = !frag.ring<MEMORY>
!slot = !frag.slot<MEMORY>
func.func @f(%x: X, %y: X) attributes {frag.warps = array<i64: 4, 1>} {
  %r = frag.ring 3 : !ring
  FILL0 FILL1 FILL2
  %s0 = frag.await %r : !ring
  %m0 = frag.part %s0[0] : !slot
  %s1 = frag.await %r : !ring
  %m1 = frag.part %s1[0] : !slot
  %t1 = frag.load %m1[0, 0] : MEMORY -> TURNED
  frag.store %t1, %y[16, 0] : TURNED, X
  frag.release %s1 : !slot
  frag.barrier
  %t0 = frag.load %m0[0, 0] : MEMORY -> TURNED
  frag.store %t0, %y[0, 0] : TURNED, X
  frag.release %s0 : !slot
  FILL3
  %s2 = frag.await %r : !ring
  %s3 = frag.await %r : !ring
  %m3 = frag.part %s3[0] : !slot
  %t3 = frag.load %m3[0, 0] : MEMORY -> TILE
  frag.store %t3, %y[48, 0] : TILE, X
  frag.release %s2 : !slot
  frag.release %s3 : !slot
  func.return
}
"""
FILL = """
  %aN = frag.acquire %r : !ring
  %pN = frag.part %aN[0] : !slot
  frag.copy async %x[ROW, 0] to %pN[] : X to MEMORY
  frag.publish %aN : !slot
"""


def test_slots_released_out_of_turn() -> None:
    """The next slot is the one that was released last, though others were free for longer."""
    text = OUT_OF_TURN
    for n in range(4):
        text = text.replace(f"FILL{n}", FILL.replace("N", str(n)).replace("ROW", str(16 * n)))
    # who reads is not who copies
    turned = (
        TILE[:-1] + ', #frag.layout<"warp [4:(0,16)] lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">>'
    )
    for name, what in (("MEMORY", MEMORY), ("TILE", TILE), ("TURNED", turned), ("X", X)):
        text = text.replace(name, what)
    x = np.random.default_rng(0).random((256, 64)).astype(np.float16)
    y = np.zeros_like(x)
    assert fragir.compile(text)(x, y, on="emulator", check=True).findings == []
    rows = [0, 1, 3]
    assert all(np.array_equal(y[16 * n : 16 * n + 16], x[16 * n : 16 * n + 16]) for n in rows)
