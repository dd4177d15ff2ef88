"""Shapes of operands are broadcast as numpy broadcasts arrays."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir import FragirError, f32, s32
from fragir.builder.broadcasting import together
from tests.properties.judge import examples

SIZES = st.sampled_from([1, 2, 4, 8, 32])


@st.composite
def operands(draw: st.DrawFn) -> list[tuple[int, ...]]:
    """Shapes that go together, of which the whole has something for every thread."""
    whole = draw(st.lists(SIZES, min_size=1, max_size=4))
    shapes: list[tuple[int, ...]] = []
    for _ in range(draw(st.integers(2, 3))):
        rank = draw(st.integers(1, len(whole)))
        last = whole[len(whole) - rank :]
        shapes.append(tuple(n if draw(st.booleans()) else 1 for n in last))
    return shapes


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 3), max_size=4).map(tuple), min_size=1, max_size=4))
def test_together_is_numpys_rule(shapes: list[tuple[int, ...]]) -> None:
    try:
        wanted = np.broadcast_shapes(*shapes)
    except ValueError:
        wanted = None
    assert together(shapes) == wanted


@given(shapes=operands())
@examples(12)
def test_operands_are_broadcast(shapes: list[tuple[int, ...]]) -> None:
    whole = np.broadcast_shapes(*shapes)
    names = "xyz"[: len(shapes)]
    with fragir.kernel("sums", warps=(1, 1)) as k:
        given_memory = [
            k.memory(name, f32, shape) for name, shape in zip(names, shapes, strict=True)
        ]
        result = k.memory("result", f32, whole)
        tiles = [
            k.load(m, [0] * len(s), shape=s) for m, s in zip(given_memory, shapes, strict=True)
        ]
        total = tiles[0]
        for tile in tiles[1:]:
            total = total * 3 - tile
        assert total.shape == whole
        k.store(total, result, [0] * len(whole))
    rng = np.random.default_rng(0)
    arrays = [rng.integers(-9, 9, shape).astype(np.float32) for shape in shapes]
    wanted = arrays[0]
    for array in arrays[1:]:
        wanted = wanted * 3 - array
    found = np.full(whole, np.nan, np.float32)
    assert k.compile()(*arrays, found, on="emulator", check=True).findings == []
    np.testing.assert_array_equal(found, wanted)


def test_new_dimensions_that_are_broadcast_leave_no_reshape() -> None:
    with fragir.kernel("outer", warps=(1, 1)) as k:
        result = k.memory("result", s32, (16, 32))
        place = (k.iota(0, (16,)) * 100)[:, None] + k.iota(0, (32,))
        k.store(place, result, (0, 0))
    assert "frag.reshape" not in k.mlir
    found = np.zeros((16, 32), np.int32)
    k.compile()(found, on="emulator")
    np.testing.assert_array_equal(found, np.arange(16)[:, None] * 100 + np.arange(32))


def test_a_tile_is_repeated_once() -> None:
    """However many operations take it in one shape, also within a loop."""
    with fragir.kernel("k") as k:
        x, y = k.memory("x", fragir.f32, (16, 32)), k.memory("y", fragir.f32, (32,))
        tile, row = k.load(x, (0, 0), shape=(16, 32)), k.load(y, (0,), shape=(32,))
        total = (tile + row) * (tile - row).cast(fragir.f32)
        with k.loop(0, 3, total=total) as loop:
            loop.total = loop.total * row
        k.store(loop.total + row[None, :], x, (0, 0))
    assert k.mlir.count("frag.broadcast") == 1


def test_places_and_conditions_are_broadcast() -> None:
    with fragir.kernel("places", warps=(2, 1)) as k:
        x = k.memory("x", f32, ("m", "n"))
        y = k.memory("y", f32, (16, 64))
        i, j = k.iota(0, (16,)), k.iota(0, (64,))
        at = (15 - i[:, None], 2 * j[None])
        k.store(k.gather(x, at, shape=(16, 64), where=(i < 9)[:, None]), y, (0, 0))
    source = np.random.default_rng(0).standard_normal((20, 200)).astype(np.float32)
    found = np.full((16, 64), np.nan, np.float32)
    assert k.compile()(source, found, on="emulator", check=True).findings == []
    rows, columns = np.ogrid[:16, :64]
    np.testing.assert_array_equal(found, np.where(rows < 9, source[15 - rows, 2 * columns], 0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_keepdims(axis: int) -> None:
    with fragir.kernel("norm", warps=(2, 1)) as k:
        x = k.memory("x", f32, (32, 64))
        t = k.load(x, (0, 0), shape=(32, 64))
        assert t.sum(axis, keepdims=True).shape == np.ones((32, 64)).sum(axis, keepdims=True).shape
        k.store(t - t.max(axis, keepdims=True), x, (0, 0))
    values = np.random.default_rng(0).standard_normal((32, 64)).astype(np.float32)
    found = values.copy()
    k.compile()(found, on="emulator")
    np.testing.assert_array_equal(found, values - values.max(axis, keepdims=True))


def test_shapes_without_a_common_one() -> None:
    with fragir.kernel("wrong", warps=(1, 1)) as k:
        x = k.fill(0, (16, 32), f32)
        with pytest.raises(FragirError, match=r"have no shape in common \(dimensions are counted"):
            _ = x + x.sum(1)
