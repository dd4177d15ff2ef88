"""Tiles of one instruction over several warps."""

from __future__ import annotations

from itertools import product

import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.tiling import fitted_warps, tile_layout

MMA = isa.lookup("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32")
WGMMA = isa.find("wgmma", shape=(64, 24, 16), a="bf16", d="f32")


@pytest.mark.parametrize(("wm", "wn"), [(1, 1), (2, 2), (4, 1), (1, 3)])
@pytest.mark.parametrize(("rm", "rn", "rk"), [(1, 1, 1), (2, 3, 2)])
def test_every_warp_owns_its_block(wm: int, wn: int, rm: int, rn: int, rk: int) -> None:
    m, n, k = 16 * wm * rm, 8 * wn * rn, 16 * rk
    for operand, shape, step in (
        ("d", (m, n), (16, 8)),
        ("a", (m, k), (16, 16)),
        ("b", (k, n), (16, 8)),
    ):
        tile = tile_layout(MMA, operand, shape, (wm, wn))
        own = MMA.operands[operand].layout
        assert own is not None
        assert tile.shape == shape
        assert tile.size("warp") == wm * wn
        repeats = (shape[0] // step[0], shape[1] // step[1])
        if operand in "da":
            repeats = (rm, repeats[1])
        if operand in "db":
            repeats = (repeats[0], rn)
        for warp, lane in product(range(wm * wn), (0, 5, 31)):
            warp_m, warp_n = warp % wm, warp // wm
            for column, row in product(range(repeats[1]), range(repeats[0])):
                for i in range(own.size("element")):
                    base = own(lane=lane, element=i)
                    assert base is not None
                    top = warp_m * 16 * rm if operand in "da" else 0
                    left = warp_n * 8 * rn if operand in "db" else 0
                    expected = (top + row * step[0] + base[0], left + column * step[1] + base[1])
                    element = i + own.size("element") * (row + repeats[0] * column)
                    assert tile(warp=warp, lane=lane, element=element) == expected


def test_replication() -> None:
    assert tile_layout(MMA, "d", (64, 32), (2, 2)).is_bijection()
    assert tile_layout(MMA, "a", (64, 32), (2, 2)).replication() == 2
    assert tile_layout(MMA, "b", (32, 64), (4, 2)).replication() == 4


@pytest.mark.parametrize(
    ("shape", "warps", "shares"),
    [((16, 8), (4, 2), (1, 1)), ((32, 8), (4, 1), (2, 1)), ((48, 24), (2, 2), (1, 1))],
)
def test_warps_without_a_part_hold_copies(
    shape: tuple[int, int], warps: tuple[int, int], shares: tuple[int, int]
) -> None:
    """Warp w has the block (w mod wm) mod shares of the rows, and so of the columns."""
    tile = tile_layout(MMA, "d", shape, warps)
    assert tile.shape == shape
    assert tile.replication() == warps[0] * warps[1] // (shares[0] * shares[1])
    for warp in range(warps[0] * warps[1]):
        block = (warp % warps[0] % shares[0], warp // warps[0] % shares[1])
        first = tile(warp=warp, lane=0, element=0)
        assert first == tuple(b * n // s for b, n, s in zip(block, shape, shares, strict=True))


def test_warps_turn_to_where_there_is_work() -> None:
    assert fitted_warps((4, 1), (4, 2)) == (4, 1)
    assert fitted_warps((4, 1), (1, 8)) == (1, 4)
    assert fitted_warps((4, 1), (2, 2)) == (2, 2)
    assert fitted_warps((2, 2), (1, 1)) == (2, 2)
    assert fitted_warps((3, 1), (1, 6)) == (1, 3)


def test_warpgroups() -> None:
    """Axis warp has the four warps of a warpgroup fastest; lanes are those of one warp."""
    tile = tile_layout(WGMMA, "d", (128, 48), (2, 2))
    assert (tile.size("warp"), tile.size("lane"), tile.size("element")) == (16, 32, 12)
    assert tile.is_bijection()
    for warp in range(16):
        group = warp // 4
        row, col = 64 * (group % 2) + 16 * (warp % 4), 24 * (group // 2)
        assert tile(warp=warp, lane=0, element=0) == (row, col)
    single = tile_layout(WGMMA, "d", (64, 24))
    assert str(single) == (
        "warp [4:(16,0)] lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 3:(0,8)]"
    )


def test_what_does_not_fit() -> None:
    with pytest.raises(FragirError, match="24 rows of operand d"):
        tile_layout(MMA, "d", (24, 8))
    with pytest.raises(FragirError, match=r"20 columns of operand b.*no multiple of 8"):
        tile_layout(MMA, "b", (16, 20), (1, 4))
    with pytest.raises(FragirError, match="has no layout in registers"):
        tile_layout(WGMMA, "b", (16, 24))


def test_four_products_are_one_tile() -> None:
    volta = isa.lookup("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")
    tile = tile_layout(volta, "a", (8, 4, 4))
    assert tile.dims == ("row", "col", "product")
    with pytest.raises(FragirError, match="four products at once"):
        tile_layout(volta, "a", (16, 4))
