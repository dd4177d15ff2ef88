"""Copies by TMA, and clusters, in Python."""

from __future__ import annotations

import numpy as np
import pytest

import fragir
from fragir import f16
from fragir.errors import FragirError


def doubled() -> fragir.builder.KernelBuilder:
    """c = 2 a by tiles of 32 x 64, in clusters of two."""
    with fragir.kernel("doubled", target="sm_90a") as k:
        a, c = (k.memory(name, f16, ("m", "n")) for name in "ac")
        k.grid("n / 64", "m / 32")
        k.cluster(2)
        first, second = (k.shared((32, 64), f16, swizzle=128) for _ in range(2))
        row, col = k.block_id("y") * 32, k.block_id("x") * 64
        k.copy(a, (row, col), first, tma=True)
        t = k.load(first, (0, 0), shape=(32, 64))
        k.store(t + t, second, (0, 0))
        k.copy(second, (), c, (row, col), tma=True)
    return k


def test_a_kernel_copies_by_tma() -> None:
    kernel = doubled().compile()
    assert kernel.cluster == (2, 1, 1)
    a = np.arange(40 * 200).reshape(40, 200).astype(np.float16)
    c = np.zeros_like(a)
    assert kernel(a, c, on="emulator", check=True).findings == []
    assert (c == a + a).all()


def test_multicast_and_rank() -> None:
    with fragir.kernel("spread", target="sm_90a") as k:
        a, c = k.memory("a", f16, (32, 64)), k.memory("c", f16, ("m", 64))
        k.grid("m / 32")
        k.cluster(2)
        s = k.shared((32, 64), f16, swizzle=128)
        k.copy(a, (0, 0), s, tma=True, multicast=True)
        k.copy(s, (), c, (k.cluster_rank() * 32, 0), tma=True)
    a = np.arange(32 * 64).reshape(32, 64).astype(np.float16)
    c = np.zeros((64, 64), np.float16)
    assert k.compile()(a, c, on="emulator", check=True).findings == []
    assert (c.reshape(2, 32, 64) == a).all()


def test_too_large_a_cluster_is_refused() -> None:
    with fragir.kernel("large") as k, pytest.raises(FragirError, match="1 to 8 blocks, not 4x4x1"):
        k.cluster(4, 4)
