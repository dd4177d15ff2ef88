"""Shared memory: swizzles against the documented formula, banks against counting."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.layout import (
    Layout,
    LayoutError,
    SharedLayout,
    Swizzle,
    conflicts,
    linear,
    swizzle_of,
    wavefronts,
)
from fragir.layout.shared import banks, row_major

quick = settings(deadline=None, max_examples=80)


@pytest.mark.parametrize(("width", "chunks"), [(0, 1), (32, 2), (64, 4), (128, 8)])
def test_swizzle_modes_of_tma_and_wgmma(width: int, chunks: int) -> None:
    """16-byte chunk c of 128-byte line r goes to chunk c ^ (r % W)."""
    swizzle = swizzle_of(width)
    for address in range(0, 4096):
        assert swizzle(address) == address ^ (((address >> 7) & (chunks - 1)) << 4)
    for line, chunk in product(range(16), range(8)):
        assert swizzle(128 * line + 16 * chunk) == 128 * line + 16 * (chunk ^ (line % chunks))
    assert swizzle.period == {0: 1, 32: 256, 64: 512, 128: 1024}[width]


@given(st.integers(0, 4), st.integers(0, 4), st.integers(-6, 6), st.integers(0, 1 << 14))
@quick
def test_swizzle_is_its_own_inverse(bits: int, base: int, shift: int, address: int) -> None:
    if abs(shift) < bits:
        with pytest.raises(LayoutError, match="onto themselves"):
            Swizzle(bits, base, shift)
        return
    swizzle = Swizzle(bits, base, shift)
    assert swizzle(swizzle(address)) == address
    assert swizzle(address + swizzle.period) == swizzle(address) + swizzle.period
    # CuTe, include/cute/swizzle.hpp: apply(x) = x ^ shiftr(x & yyy_msk, msk_sft)
    mask = ((1 << bits) - 1) << (base + max(0, shift))
    moved = (address & mask) >> shift if shift >= 0 else (address & mask) << -shift
    assert swizzle(address) == address ^ moved


def test_there_is_no_other_mode() -> None:
    with pytest.raises(LayoutError, match="no 96-byte swizzle"):
        swizzle_of(96)


@pytest.mark.parametrize("name", ["bits", "base", "shift"])
def test_addresses_have_64_bits(name: str) -> None:
    with pytest.raises(LayoutError, match="64"):
        Swizzle(**{"bits": 0, "base": 0, "shift": 0, name: 65})


def test_lanes_that_access_together() -> None:
    """Half warps at 8 bytes, quarter warps at 16: what these read alike is read for each anew."""
    assert wavefronts([0] * 32, 4) == 1
    assert [wavefronts([0] * lanes, 8) for lanes in (16, 17, 32)] == [1, 2, 2]
    assert [wavefronts([0] * lanes, 16) for lanes in (8, 9, 16, 17, 32)] == [1, 2, 2, 3, 4]


@pytest.mark.parametrize("width", [0, 32, 64, 128])
@pytest.mark.parametrize("text", ["row [16:128] col [64:2] dims (byte)", "x [24:16] dims (byte)"])
def test_text(width: int, text: str) -> None:
    tile = SharedLayout(Layout.parse(text), swizzle_of(width))
    assert SharedLayout.parse(str(tile)) == tile
    assert str(SharedLayout(Layout.parse(text), Swizzle(2, 4, 3))) == f"{text} swizzle (2,4,3)"


def test_addresses_and_composition() -> None:
    tile = SharedLayout(row_major(16, 64, 2), swizzle_of(128))
    assert tile.size == 16 * 128 - 1
    for row, col in product(range(16), range(64)):
        address = 128 * row + 2 * col
        assert tile(row=row, col=col) == address ^ ((address >> 7 & 7) << 4)
    fragment = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")
    placed = tile.compose(fragment)
    for slot, point in fragment.slots():
        assert point is not None
        assert placed(lane=slot[0], element=slot[1]) == tile(row=point[0], col=point[1])
    assert placed.offsets() == [tile(row=p[0], col=p[1]) for _, p in fragment.slots() if p]
    # The same swizzle as a matrix over F2.
    bits = linear.to_linear(Layout.parse("row [16:128] col [128:1] dims (byte)"))
    xor = linear.LinearLayout(
        (("byte", tuple((tile.swizzle(1 << bit),) for bit in range(11))),), ("byte",)
    )
    swizzled = linear.compose(xor, bits)
    assert swizzled.is_bijection
    assert swizzled(row=13, col=50) == (tile(row=13, col=25),)


def test_a_shared_layout_has_bytes_only() -> None:
    with pytest.raises(LayoutError, match="one dimension"):
        SharedLayout(Layout.parse("lane [4:(0,2)]"))
    with pytest.raises(LayoutError, match="holds nothing"):
        SharedLayout(Layout.parse("x [4:4] where x%2==0"))(x=1)


def brute_passes(addresses: list[int], width: int) -> int:
    """Per group of lanes: the largest number of different words wanted from one bank."""
    group = {16: 8, 8: 16}.get(width, 32)
    total = 0
    for start in range(0, len(addresses), group):
        words = {(a + byte) // 4 for a in addresses[start : start + group] for byte in range(width)}
        total += max(sum(1 for word in words if word % 32 == bank) for bank in range(32))
    return total


@given(st.sampled_from([1, 2, 4, 8, 16]), st.lists(st.integers(0, 255), min_size=1, max_size=32))
@quick
def test_wavefronts(width: int, numbers: list[int]) -> None:
    addresses = [width * n for n in numbers]
    assert wavefronts(addresses, width) == brute_passes(addresses, width)
    for address in addresses:
        wanted = {(address + byte) // 4 % 32 for byte in range(width)}
        assert set(banks(address, width)) == wanted


@pytest.mark.parametrize(
    ("stride", "width", "extra"),
    [  # row strides in bytes of 32 lanes, each at the beginning of its row
        (4, 4, 0),
        (8, 4, 1),
        (12, 4, 0),
        (64, 4, 15),
        (128, 4, 31),
        (132, 4, 0),
        (8, 8, 0),
        (16, 16, 0),
        (128, 16, 4 * 7),
        (144, 16, 0),
        (2, 2, 0),
    ],
)
def test_conflicts_of_strided_rows(stride: int, width: int, extra: int) -> None:
    assert conflicts([stride * lane for lane in range(32)], width) == extra


@pytest.mark.parametrize(("width", "extra"), [(0, 7), (32, 3), (64, 1), (128, 0)])
def test_ldmatrix_rows_and_swizzles(width: int, extra: int) -> None:
    """Eight rows of 16 bytes in lines of 128 bytes: each mode spreads them over W chunks."""
    tile = SharedLayout(row_major(8, 64, 2), swizzle_of(width))
    assert conflicts([tile(row=row, col=0) for row in range(8)], 16) == extra


def test_bad_accesses() -> None:
    with pytest.raises(LayoutError, match="Address 2 is not a multiple"):
        wavefronts([0, 2], 4)
    with pytest.raises(LayoutError, match="not 3"):
        wavefronts([0], 3)
