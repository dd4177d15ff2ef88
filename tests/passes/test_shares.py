"""Rings whose slots roles share out by turns, and roles that multiply by turns (ping-pong)."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from benchmarks.sweeps.pipelines import Config, check, text_of
from fragir import f16
from fragir.compilation.kernel import Kernel
from fragir.errors import FragirError

PING_PONG = "roles, consumers = 2 : i64"


def shared_out(slots: int, turns: tuple[int, int, int], warps: int, tma: bool) -> Kernel:
    """Tiles of x go to three roles, so many at a turn each, which write them, doubled, to y."""
    rows = 16 * warps
    with fragir.kernel("share", target="sm_90a") as k:
        x, y = (k.memory(name, f16, ("m", 32)) for name in "xy")
        ring = k.ring(slots, [k.part((rows, 32), f16)], turns="reading")
        with k.role("load", warps=(1, 1)), k.loop(0, k.size("m"), rows) as loop:
            slot = ring.acquire()
            if tma:
                k.copy(x, (loop.index, 0), slot.parts[0], tma=True)
            else:
                tile = k.load(x, (loop.index, 0), shape=(rows, 32), masked=True)
                k.store(tile, slot.parts[0], (0, 0))
            slot.publish()
        round_ = sum(turns)
        for number, count in enumerate(turns):
            first = sum(turns[:number])
            with k.role(f"read {number}", warps=(warps, 1)):
                with k.loop(first * rows, k.size("m"), round_ * rows) as loop:
                    with k.turn("reading"), k.loop(0, count * rows, rows) as inner:
                        full = ring.wait()
                        tile = k.load(full.parts[0], (0, 0), shape=(rows, 32))
                        full.release()
                        k.store(tile + tile, y, (loop.index + inner.index, 0), masked=True)
    return k.compile()


@pytest.mark.parametrize(
    ("slots", "turns", "warps", "tma"),
    [(1, (1, 1, 1), 1, False), (3, (2, 1, 4), 2, False), (4, (1, 3, 1), 2, True)],
)
def test_a_slot_goes_to_the_role_that_awaits_next(
    slots: int, turns: tuple[int, int, int], warps: int, tma: bool
) -> None:
    """Numbers of slots that no number of turns divides, so that phases differ from role to role."""
    kernel = shared_out(slots, turns, warps, tma)
    assert kernel.assembled.warnings == []
    x = np.arange(16 * warps * sum(turns) * 3 * 32, dtype=np.float16).reshape(-1, 32) % 97
    for asynchrony, schedule in (("late", None), ("early", 1), ("random", 2)):
        y = np.zeros_like(x)
        report = kernel(x, y, on="emulator", check=True, asynchrony=asynchrony, schedule=schedule)
        assert report.findings == []
        assert (y == x + x).all()


SMALL = "tile = array<i64: 64, 64, 32>"
CASES = [
    Config("sm_90a", f"{PING_PONG}, {SMALL}", *rest)
    for rest in [
        ("f16", (False, False), "none", (136, 72, 112), True, "f16"),
        ("bf16", (False, True), "old", (72, 136, 80), False, "bf16"),
    ]
]
CASES.append(
    Config(
        "sm_90a",
        f"{PING_PONG}, cluster = 2 : i64, {SMALL}",
        "si8",
        (True, False),
        "bias",
        (144, 80, 64),
        True,
    )
)


@pytest.mark.parametrize("config", CASES, ids=lambda c: f"{c.schedule} {c.element}")
def test_products_by_turns(config: Config) -> None:
    """Exact, silent in every check under three schedules, and nothing that ptxas says; few
    blocks compute several tiles each."""
    assert check(config) == []


def test_the_kernel_of_two_roles_that_multiply() -> None:
    """The main loop is that of one role; a turn costs a barrier, and the place in the ring."""
    text = text_of(CASES[0])
    body = fragir.compile(text, target="sm_90a").ptx
    assert body.count("wgmma.wait_group.sync.aligned 1;") == 2
    assert body.count("setmaxnreg.inc.sync.aligned.u32 232") == 2
    assert body.count("ld.shared.v2.b32") == 2
    assert body.count("bar.arrive") == 3
    one = fragir.compile(text.replace(", consumers = 2 : i64", ""), target="sm_90a").ptx
    assert "bar.arrive" not in one
    assert "ld.shared.v2.b32" not in one


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("consumers = 2 : i64", r"write \{roles, consumers = 2\}"),
        ("roles, consumers = 0 : i64", "consumers is the number of roles that multiply"),
        ("roles, consumers = 8 : i64", "more than its 16 barriers"),
    ],
)
def test_what_has_no_such_roles(words: str, message: str) -> None:
    config = CASES[0]._replace(schedule=words)
    with pytest.raises(FragirError, match=message):
        fragir.compile(text_of(config), target="sm_90a")


OUTSIDE = """
func.func @f(%a: memref<128x96xf16>, %b: memref<96x32xf16>, %c: memref<128x32xf32>)
    attributes {frag.warpgroups = array<i64: 1, 1>, frag.consumers = 2 : i64, frag.specialize} {
  %zero = arith.constant 0.0 : f32
  %start = frag.fill %zero : !frag.tile<64x32xf32>
  %c0 = arith.constant 0 : index
  %c96 = arith.constant 96 : index
  %c32 = arith.constant 32 : index
  LOOP
    %sum = scf.for %k = %c0 to %c96 step %c32 iter_args(%acc = %start) -> (!frag.tile<64x32xf32>) {
      %ta = frag.load %a[0, %k] : memref<128x96xf16> -> !frag.tile<64x32xf16>
      %tb = frag.load %b[%k, 0] : memref<96x32xf16> -> !frag.tile<32x32xf16>
      %d = frag.mma %ta, %tb, %acc
          : !frag.tile<64x32xf16>, !frag.tile<32x32xf16>, !frag.tile<64x32xf32>
          -> !frag.tile<64x32xf32>
      scf.yield %d : !frag.tile<64x32xf32>
    } {frag.stages = 2 : i64, frag.tma}
    frag.store %sum, %c[0, 0] : !frag.tile<64x32xf32>, memref<128x32xf32>
  END
  func.return
}
"""


@pytest.mark.parametrize(
    ("loop", "message"),
    [
        ("", "this is done once for all of them: write it into the loop frag.for_tiles"),
        ("frag.for_tiles (%i, %j) of (128, 32) by (64, 32) {", "a loop that is persistent"),
    ],
)
def test_what_is_not_done_tile_by_tile(loop: str, message: str) -> None:
    text = OUTSIDE.replace("LOOP", loop).replace("END", "}" if loop else "")
    with pytest.raises(FragirError, match=message):
        fragir.compile(text, target="sm_90a")
