"""Roles of warps, and turns that they take, written in Python."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir import f16, f32
from fragir.errors import FragirError


def test_roles_meet_in_a_ring() -> None:
    with fragir.kernel("twice", target="sm_90a") as k:
        x, y = (k.memory(name, f16, ("m", 64)) for name in "xy")
        ring = k.ring(2, [k.part((64, 64), f16, swizzle=128)])
        with k.role("load", warps=(1, 1)), k.loop(0, k.size("m"), 64) as loop:
            slot = ring.acquire()
            k.copy(x, (loop.index, 0), slot.parts[0], masked=True, asynchronous=True)
            slot.publish()
        with k.role("double", warps=(4, 1)), k.loop(0, k.size("m"), 64) as loop:
            full = ring.wait()
            tile = k.load(full.parts[0], (0, 0), shape=(64, 64))
            full.release()
            k.store(tile + tile, y, (loop.index, 0), masked=True)
    kernel = k.compile()
    assert kernel.block == (160, 1, 1)
    x = np.random.default_rng(0).standard_normal((200, 64)).astype(np.float16)
    y = np.zeros_like(x)
    assert kernel.launch((1, 1, 1), None, x, y, on="emulator", check=True).findings == []
    assert np.array_equal(y, x + x)


def test_turns() -> None:
    with fragir.kernel("turns") as k:
        y = k.memory("y", f32, (16, 32))
        for i in range(3):
            with k.role(f"r{i}", warps=(1 << i, 1)):
                with k.loop(0, 4), k.turn("memory"):
                    tile = k.load(y, (0, 0), shape=(16, 32))
                    k.store(tile * 2.0 if i else tile + 1.0, y, (0, 0))
    y = np.zeros((16, 32), np.float32)
    kernel = k.compile()
    assert kernel.launch((1, 1, 1), None, y, on="emulator", check=True).findings == []
    wanted = 0.0
    for _ in range(4):
        wanted = (wanted + 1) * 4
    assert np.all(y == wanted)


def test_a_role_has_either_warps_or_warpgroups() -> None:
    with pytest.raises(FragirError, match="either warps or warpgroups"), fragir.kernel("f") as k:
        k.role("load")


def test_a_role_is_not_inside_of_a_loop() -> None:
    with (
        pytest.raises(FragirError, match="a role inside of a loop"),
        fragir.kernel("f") as k,
        k.loop(0, 4),
        k.role("load", warps=(1, 1)),
    ):
        pass


def interrupted() -> None:
    with fragir.kernel("f") as k:
        with k.role("load", warps=(1, 1)):
            pass
        k.barrier()
        with k.role("store", warps=(1, 1)):
            pass


def crossing() -> None:
    with fragir.kernel("f") as k:
        y = k.memory("y", f32, (16, 16))
        with k.role("load", warps=(1, 1)):
            tile = k.fill(1.0, (16, 16), f32)
        with k.role("store", warps=(1, 1)):
            k.store(tile, y, (0, 0))


def test_nothing_happens_between_roles() -> None:
    with pytest.raises(FragirError, match=r"frag\.barrier between two roles"):
        interrupted()


def test_a_tile_belongs_to_its_role() -> None:
    with pytest.raises(FragirError, match="in the role"):
        crossing()
