"""Layouts that are written: beside products, and in placed text that is read again."""

from __future__ import annotations

import pytest

import fragir
from benchmarks.sweeps.round_trips import RoundTrips
from fragir import bf16, f32, s32, tf32
from fragir.errors import FragirError
from fragir.layout import Layout

DIGITS = "warp [2:(8,0) 2:(0,2)] lane [2:(2,0) 2:(4,0) 2:(0,4) 2:(1,0) 2:(0,1)] element []"


@pytest.mark.parametrize(
    ("warps", "batched", "joined"),
    [((4, 1), True, True), ((2, 2), False, True), ((1, 4), False, False)],
)
def test_a_conversion_beside_a_product(warps: tuple[int, int], batched: bool, joined: bool) -> None:
    """Classes of tiles that are open have no demand of their own to compare."""
    batch = (3,) if batched else ()
    with fragir.kernel("k", warps=warps, target="sm_80") as k:
        m1, m2 = k.memory("m1", bf16, ("m", "n")), k.memory("m2", bf16, (16, 8))
        a = k.memory("a", tf32, (*batch, 64, 64))
        b = k.memory("b", tf32, (*batch, 64, 32))
        out = k.memory("out", bf16, (16, 8))
        x = k.load(m1, (1, -1), shape=(16, 8), masked=True)
        k.mma(
            k.load(a, [0] * (2 + batched), shape=(*batch, 64, 64)),
            k.load(b, [0] * (2 + batched), shape=(*batch, 64, 32)),
        )
        if joined:
            k.concatenate([x, k.load(m2, (0, 0), shape=(16, 8))], 0)
        k.store(k.convert(x, Layout.parse(DIGITS)), out, (0, 0))
    trips = RoundTrips()
    kernel = fragir.compile(k.mlir, target="sm_80", observe=trips)
    assert trips.findings == []
    assert trips.ends_alike(kernel.ptx, "sm_80", 0) == []


SHAPES = [((1,), (1, 1)), ((1, 1), (1,)), ((1,), (1, 1, 1)), ((1, 1, 1), (1, 1)), ((2,), (1, 2))]


@pytest.mark.parametrize(("old", "new"), SHAPES)
@pytest.mark.parametrize("warps", [(2, 2)])
def test_other_shapes_of_one_element_are_taken_back(
    old: tuple[int, ...], new: tuple[int, ...], warps: tuple[int, int]
) -> None:
    with fragir.kernel("k", warps=warps, target="sm_80") as k:
        a, b = k.memory("a", s32, [16] * len(old)), k.memory("b", s32, new)
        x = k.load(a, [0] * len(old), shape=[4] * len(old))
        part = x[tuple(slice(1, 1 + n) for n in old)]
        k.store(part.reshape(*new), b, [0] * len(new))
    trips = RoundTrips()
    fragir.compile(k.mlir, target="sm_80", observe=trips)
    assert trips.findings == []
    placed = trips.texts["frag-place"]
    assert "#frag.layout" in placed
    fragir.compile(placed, target="sm_80")


ONE = "warp [] lane [4:(0,2) 8:(1,0)] element [2:(0,1)]"
SAME = "warp [] lane [2:(0,2) 2:(0,4) 8:(1,0)] element [2:(0,1)]"
OTHER = "warp [] lane [8:(1,0) 4:(0,2)] element [2:(0,1)]"
SIDE_BY_SIDE = {
    "frag.map": """
  %r = frag.map %x, %y : X, Y -> X {
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    frag.yield %w : f32
  }
  frag.store %r, %b[0, 0] : X, memref<8x8xf32>""",
    "frag.reduce_by": """
  %r, %s = frag.reduce_by dim 1 %x, %y : X, Y -> !frag.tile<8xf32>, !frag.tile<8xf32> {
  ^bb0(%a0: f32, %b0: f32, %a1: f32, %b1: f32):
    %p = arith.addf %a0, %a1 : f32
    %q = arith.addf %b0, %b1 : f32
    frag.yield %p, %q : f32, f32
  }
  frag.store %s, %c[0] : !frag.tile<8xf32>, memref<8xf32>""",
}


def side_by_side(body: str, second: str) -> str:
    first, other = (
        f'!frag.tile<8x8xf32, #frag.layout<"{text}">>' if text else "!frag.tile<8x8xf32>"
        for text in (ONE, second)
    )
    loads = "".join(
        f"  %{name} = frag.load %a[0, 0] : memref<8x8xf32> -> {letter}\n"
        for name, letter in (("x", "X"), ("y", "Y"))
    )
    head = "func.func @k(%a: memref<8x8xf32>, %b: memref<8x8xf32>, %c: memref<8xf32>) {\n"
    text = head + loads + body + "\n  func.return\n}"
    return text.replace("X", first).replace("Y", other)


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
@pytest.mark.parametrize("second", [SAME, ""])
def test_layouts_are_equal_by_function(name: str, second: str) -> None:
    """Two texts of one function, or a tile that has no layout yet, go side by side."""
    fragir.compile(side_by_side(SIDE_BY_SIDE[name], second), target="sm_80")


@pytest.mark.parametrize("name", SIDE_BY_SIDE)
def test_other_functions_do_not_go_side_by_side(name: str) -> None:
    with pytest.raises(FragirError, match="differ in shape or layout"):
        fragir.compile(side_by_side(SIDE_BY_SIDE[name], OTHER), target="sm_80")


def test_a_builder_reduces_a_converted_tile_beside_its_places() -> None:
    with fragir.kernel("k", warps=(1, 1), target="sm_80") as k:
        a, b = k.memory("a", f32, (8, 8)), k.memory("b", s32, (8,))
        x = k.convert(k.load(a, (0, 0), shape=(8, 8)), Layout.parse(ONE))

        def larger(
            x: fragir.Scalar, i: fragir.Scalar, y: fragir.Scalar, j: fragir.Scalar
        ) -> tuple[fragir.Scalar, fragir.Scalar]:
            return k.select(x > y, x, y), k.select(x > y, i, j)

        _, at = k.reduce([x, k.iota(1, (8, 8))], 1, larger)
        k.store(at, b, (0,))
    k.compile("sm_80")
