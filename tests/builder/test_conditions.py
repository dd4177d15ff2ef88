"""Memory of conditions: arrays of bool, a byte each, whose tiles are conditions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from fragir import f32, s32
from fragir.errors import FragirError

CHECKED: dict[str, Any] = {"on": "emulator", "check": True}
RANDOM = np.random.default_rng(5)


def masks() -> fragir.Kernel:
    """Conditions read whole, and past the end, where they hold; written as such."""
    with fragir.kernel("masks", warps=(2, 1)) as k:
        m, n = k.memory("m", bool, (64,)), k.memory("n", bool, ("n",))
        y, o = k.memory("y", f32, (64,)), k.memory("o", bool, (64,))
        x = k.load(m, (0,), shape=(64,))
        z = k.load(n, (0,), shape=(64,), masked=True, other=True)
        k.store(k.select(x & z, k.constant(1.0, f32), 0.0), y, (0,))
        k.store(~x | z, o, (0,))
    return k.compile()


@pytest.mark.parametrize("type_", [np.bool_, np.uint8, np.int8])
def test_arrays_of_bool(type_: type[np.generic]) -> None:
    m, n = RANDOM.random(64) < 0.5, RANDOM.random(50) < 0.5
    y, o = np.zeros(64, np.float32), np.full(64, 7, type_)
    report = masks()(m.astype(type_), n.astype(type_), y, o, **CHECKED)
    held = np.concatenate([n, np.ones(14, bool)])
    assert np.array_equal(y, m & held)
    assert np.array_equal(o.view(np.uint8), ~m | held)  # 0 or 1, whatever stood there
    assert not report.findings


def test_every_byte_but_zero_is_true() -> None:
    m, n, y, o = (np.full(64, 200, np.uint8) for _ in range(4))
    masks()(m, n, y := np.zeros(64, np.float32), o, **CHECKED)
    assert y.all()
    assert (o == 1).all()


def test_at_computed_places_and_in_shared_memory() -> None:
    with fragir.kernel("places", warps=(2, 1)) as k:
        m, i = k.memory("m", bool, (8, 64)), k.memory("i", s32, (64,))
        o, q, s = (k.memory(name, bool, (8, 64)) for name in "oqs")
        places = k.load(i, (0,), shape=(64,))
        k.scatter(k.gather(m, (1, places), shape=(64,)), o, (0, places))
        tile = k.shared((8, 64), bool)
        k.copy(m, (0, 0), tile)
        k.barrier()
        k.store(~k.load(tile, (0, 0), shape=(8, 64)), q, (0, 0))
        with k.if_(k.load_scalar(m, (0, 3))):
            k.store(k.load(m, (0, 0), shape=(8, 64)), s, (0, 0))
    kernel = k.compile()
    m, i = RANDOM.random((8, 64)) < 0.5, RANDOM.permutation(64).astype(np.int32)
    for first in (False, True):
        m[0, 3] = first
        o, q, s = (np.zeros((8, 64), bool) for _ in range(3))
        report = kernel(m, i, o, q, s, **CHECKED)
        assert np.array_equal(o[0], m[1])
        assert np.array_equal(q, ~m)
        assert np.array_equal(s, m & first)
        assert not report.findings


def test_what_holds_no_conditions() -> None:
    with fragir.kernel("wrong", warps=(1, 1)) as k:
        m, x = k.memory("m", bool, (64,)), k.memory("x", f32, (64,))
        tile = k.load(x, (0,), shape=(64,))
        with pytest.raises(FragirError, match=r"takes conditions, not f32 \(compare the tile\)"):
            k.store(tile, m, (0,))
        with pytest.raises(FragirError, match="takes conditions, not s32"):
            k.scatter(k.iota(0, (64,)), m, (k.iota(0, (64,)),))
        with pytest.raises(FragirError, match="must be a condition"):
            k.load(m, (0,), shape=(64,), masked=True, other=k.constant(1.0, f32))
        k.store(tile > 0.5, m, (0,))
    with pytest.raises(FragirError, match="m holds float32"):
        k.compile()(np.zeros(64, np.float32), np.zeros(64, np.float32), on="emulator")
