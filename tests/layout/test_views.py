"""Divides, products, partial inverses, recast and reshape: CuTe's examples, and slot by slot."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest

from fragir.layout import (
    Layout,
    LayoutChain,
    LayoutError,
    LinearLayout,
    SharedLayout,
    Swizzle,
    chained,
    coalesce,
    compose,
    difference,
    flat_divide,
    flat_product,
    from_cute,
    max_common_layout,
    max_common_vector,
    partial_left_inverse,
    partial_right_inverse,
    recast,
    reshape,
    sublayout,
    swizzle_of,
    tiled_divide,
    tiled_product,
    to_cute,
    transpose,
    zipped_divide,
    zipped_product,
)

C = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0)]")


def random_layout(rng: random.Random, dims: int = 2, xor: bool = False) -> Layout:
    """A layout of few slots: bijective digits in any order, gaps, copies, exclusive or."""
    covered = [1] * dims
    modes: list[str] = []
    for _ in range(rng.randint(1, 5)):
        size, dim = rng.choice((2, 2, 4) if xor else (2, 2, 3, 4)), rng.randrange(dims)
        stride = [0] * dims
        if rng.random() < 0.85:
            stride[dim] = covered[dim] * rng.choice((1, 1, 1, 2))
            covered[dim] = stride[dim] * size
        if xor and rng.random() < 0.4:
            stride[rng.randrange(dims)] ^= rng.choice((1, 2, 4))
        text = ",".join(map(str, stride))
        modes.append(f"{size}:{'^' if xor else ''}({text})")
    rng.shuffle(modes)
    at = rng.randrange(len(modes) + 1)
    names = f" dims ({','.join('xyz'[:dims])})"
    return Layout.parse(f"lane [{' '.join(modes[:at])}] element [{' '.join(modes[at:])}]{names}")


# CuTe's documentation, media/docs/cpp/cute/02_layout_algebra.md


def test_divides_as_in_cute() -> None:
    layout = from_cute("(9,(4,8)):(59,(13,1))")
    assert isinstance(layout, Layout)
    rows, cols = from_cute("3:3", axes=("tile",)), from_cute("(2,4):(1,8)", axes=("tile",))
    assert isinstance(rows, Layout)
    assert isinstance(cols, Layout)
    assert (
        to_cute(zipped_divide(layout, row=rows, col=cols))
        == "((3,2,4),(3,2,2)):((177,13,2),(59,26,1))"
    )
    tiled = tiled_divide(layout, row=rows, col=cols)
    assert to_cute(tiled) == "((3,2,4),3,(2,2)):((177,13,2),59,(26,1))"
    assert tiled.names == ("tile", "row", "col")
    flat = flat_divide(layout, row=rows, col=cols)
    assert to_cute(flat) == "(3,(2,4),3,(2,2)):(177,(13,2),59,(26,1))"
    assert flat.names == ("row_tile", "col_tile", "row", "col")


def test_products() -> None:
    tile = Layout.parse("x [2:4] y [2:1]")
    grid = Layout.parse("x [2:1] z [3:2]")
    zipped = zipped_product(tile, grid)
    assert str(zipped) == "tile [2:4 2:1] rest [2:2 3:8]"
    assert str(tiled_product(tile, grid)) == "tile [2:4 2:1] x [2:2] z [3:8]"
    assert str(flat_product(tile, grid)) == "x [2:4] y [2:1] x_rest [2:2] z [3:8]"
    assert zipped.is_bijection()


def test_coalesce() -> None:
    long = Layout.parse("lane [2:(0,1) 2:(0,2) 1:(5,5)] element [2:(1,0) 2:(2,0)]")
    assert str(coalesce(long)) == "lane [4:(0,1)] element [4:(1,0)]"
    assert str(coalesce(long, "element")) == "lane [2:(0,1) 2:(0,2) 1:(5,5)] element [4:(1,0)]"
    assert str(coalesce(Layout.parse("row [2:^9 2:^18]"))) == "row [4:^9]"
    with pytest.raises(LayoutError, match="no axis warp"):
        coalesce(long, "warp")


def test_transpose() -> None:
    assert str(transpose(C)) == "lane [4:(2,0) 8:(0,1)] element [2:(1,0) 2:(0,8)]"
    assert transpose(C, axes=("element", "lane")).names == ("element", "lane")
    assert transpose(C, dims=("col", "row")).dims == ("col", "row")


@pytest.mark.parametrize("seed", range(4))
def test_reshape_as_numpy_does(seed: int) -> None:
    rng = random.Random(seed)
    done = 0
    for number in range(60):
        one = random_layout(rng, xor=number % 3 == 0)
        if not one.is_bijection():
            continue
        rows, cols = one.shape
        new = rng.choice(
            [(cols, rows), (rows * cols,), (2, rows * cols // 2), (rows, 2, cols // 2)]
        )
        names = tuple("abc"[: len(new)])
        if np.prod(new) != rows * cols:
            continue
        try:
            found = reshape(one, dict(zip(names, new, strict=True)))
        except LayoutError:
            continue
        numbers = np.arange(rows * cols).reshape(new)
        for slot, point in one.slots():
            at = dict(zip(one.names, slot, strict=True))
            held = found(**at)
            assert point is not None
            assert held is not None
            assert numbers[held] == point[0] * cols + point[1]
        done += 1
        lanes, elements = one.sizes.values()
        if lanes > 1 and elements > 1:
            turned = reshape(one, axes={"slot": lanes * elements})
            for n in range(lanes * elements):
                assert turned(slot=n) == one(lane=n // elements, element=n % elements)
    assert done > 5


def test_reshape_refuses_what_does_not_divide() -> None:
    with pytest.raises(LayoutError, match="as many points"):
        reshape(C, {"row": 16, "col": 16})
    with pytest.raises(LayoutError, match="is cut by"):
        reshape(Layout.parse("row [6:(1,0)] col [4:(0,1)]"), {"a": 4, "b": 6})


def test_sublayout() -> None:
    assert str(sublayout(C, ("element",))) == "element [2:(0,1) 2:(8,0)]"
    assert str(sublayout(C, dims=("col",))) == "lane [4:2 8:0] element [2:1 2:0] dims (col)"
    some = Layout.parse("lane [4:(0,1)] warp [2:(1,0)] where warp%2==1")
    with pytest.raises(LayoutError, match="Nothing is held where warp is 0"):
        sublayout(some, ("lane",))
    with pytest.raises(LayoutError, match="no dimension depth"):
        sublayout(C, dims=("depth",))


# recast


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        ("row [8:64] col [64:1]", 16, 32, "row [8:32] col [32:1]"),
        ("row [8:64] col [64:1]", 8, 32, "row [8:16] col [16:1]"),
        ("row [8:64] col [64:1]", 16, 8, "row [8:128] col [128:1]"),
        ("row [8:^72] col [64:1]", 16, 32, "row [8:^36] col [32:1]"),
        ("row [8:^72] col [64:1]", 16, 8, "row [8:^144] col [128:1]"),
        ("row [8:1] col [4:8]", 16, 64, "row [2:1] col [4:2]"),
    ],
)
def test_recast(text: str, old: int, new: int, expected: str) -> None:
    assert recast(Layout.parse(text), old, new).simplified() == Layout.parse(expected)


def test_recast_of_a_swizzle_is_the_swizzle_of_bytes() -> None:
    for width in (32, 64, 128):
        permute = swizzle_of(width)
        tile = permute * Layout.parse("row [16:128] col [128:1] dims (byte)")
        elements = recast(tile, 8, 16)
        for row, col in product(range(16), range(64)):
            assert elements(row=row, col=col) == (permute(128 * row + 2 * col) // 2,)


@pytest.mark.parametrize(
    ("text", "old", "new", "message"),
    [
        ("row [8:63] col [63:1]", 16, 32, "Mode 8:63 of axis row"),
        ("row [8:64] col [32:2]", 16, 32, "Not all 2 neighbours"),
        ("row [8:64] col [32:2]", 16, 8, "goes element by element"),
        ("row [8:64] col [64:1]", 16, 24, "neither parts nor multiples"),
        ("row [2:1] col [2:1 4:2]", 16, 32, "each once"),
    ],
)
def test_recast_refuses(text: str, old: int, new: int, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        recast(Layout.parse(text), old, new)


@pytest.mark.parametrize("seed", range(2))
def test_recast_slot_by_slot(seed: int) -> None:
    """The elements of a wider element's slot are those of the narrower ones, in order."""
    rng = random.Random(seed)
    done = 0
    for number in range(200):
        one = random_layout(rng, dims=1, xor=number % 2 == 0)
        try:
            wide = recast(one, 8, 16)
        except LayoutError:
            continue
        done += 1
        held = sorted(p[0] // 2 for _, p in one.slots() if p is not None)
        again = sorted(p[0] for _, p in wide.slots() for _ in range(2) if p is not None)
        assert held == again
    assert done > 20


# Partial inverses, vectors


@pytest.mark.parametrize("seed", range(4))
def test_partial_inverses(seed: int) -> None:
    rng = random.Random(seed)
    for number in range(60):
        one = random_layout(rng, xor=number % 3 == 0)
        right = partial_right_inverse(one)
        for point in product(*(range(right.size(name)) for name in one.dims)):
            at = right(**dict(zip(one.dims, point, strict=True)))
            assert at is not None
            assert one(**dict(zip(one.names, at, strict=True))) == point
        if one.is_bijection():
            assert right.shape == tuple(one.sizes.values())
        try:
            left = partial_left_inverse(one)
        except LayoutError:
            continue
        firsts = {point: min(slots) for point, slots in one.holders.items()}
        for point, slot in firsts.items():
            assert left(**dict(zip(one.dims, point, strict=True))) == slot


def test_vectors() -> None:
    plain = Layout.parse("row [8:16] col [16:1]")
    assert max_common_vector(plain, plain) == 128
    assert max_common_vector(plain, Layout.parse("row [8:24] col [16:1]")) == 16
    assert max_common_vector(plain, Layout.parse("row [8:1] col [16:8]")) == 1
    assert max_common_vector(plain, Layout.parse("row [8:16] col [4:1 4:32]")) == 4
    swizzle = Layout.parse("row [8:^72] col [64:1]")
    assert max_common_vector(Layout.parse("row [8:64] col [64:1]"), swizzle) == 64
    common = max_common_layout(plain, Layout.parse("row [8:24] col [16:1]"))
    assert [common(index=n) for n in (0, 5, 15)] == [(0, 0), (0, 5), (0, 15)]
    with pytest.raises(LayoutError, match="one dimension"):
        max_common_vector(C, C)


# Differences


def test_differences() -> None:
    other = Layout.parse("lane [4:(0,2) 8:(1,0)] element [2:(8,0) 2:(0,1)]")
    found = difference(C, other)
    assert found is not None
    assert (found.at, found.first, found.second) == ({"lane": 0, "element": 1}, (0, 1), (8, 0))
    assert "element 1 alone moves by (0, 1) and by (8, 0)" in str(found)
    assert "sizes 32 and 16" in str(difference(C, Layout.parse("lane [16:(1,0)]")))
    assert "dimensions are" in str(difference(C, Layout.parse("lane [32:1]")))
    assert "begin at" in str(difference(C, Layout.parse(f"{C} offset (1,0)")))
    flipped = Layout.parse("a [2:1] b [2:^1]")
    assert "combined differently" in str(difference(flipped, Layout.parse("a [2:1] b [2:1]")))
    padded = Layout.parse("row [8:80] col [80:1]")
    chain = chained(Swizzle(3, 4, 3), padded)
    assert isinstance(chain, LayoutChain)
    assert difference(chain, chain) is None
    found = difference(padded, chain)
    assert found is not None
    assert found.at == {"row": 1, "col": 48}
    masked = Layout.parse(f"{C} where lane%2==0")
    assert "condition holds in one" in str(difference(C, masked))


# Everything with everything


def test_composing_everything_with_everything() -> None:
    plain = Layout.parse("row [8:64] col [64:1]")
    tile = SharedLayout(Layout.parse("row [16:128] col [64:2] dims (byte)"), swizzle_of(128))
    f2 = LinearLayout.parse("f2:{lane = [[0,2],[0,4],[1,0],[2,0],[4,0]], register = [[0,1],[8,0]]}")
    permute = Swizzle(3, 3, 3)
    for outer, inner in product((tile, tile.as_layout()), (C, f2, f2.as_layout())):
        found = compose(outer, inner)  # pyright: ignore[reportArgumentType] - made layouts
        assert found(lane=13, element=3) == (tile(row=11, col=3),)
    once = compose(permute, plain)
    assert once(row=3, col=8) == (permute(3 * 64 + 8),)
    assert compose(permute, once) == plain
    line = Layout.parse("index [512:2] dims (byte)")
    assert compose(line, permute)(index=72) == (2 * permute(72),)
    both = compose(Swizzle(1, 4, 3), permute)
    assert both(byte=200) == (Swizzle(1, 4, 3)(permute(200)),)
    chain = chained(permute, Layout.parse("row [8:80] col [80:1]"))
    assert isinstance(chain, LayoutChain)
    longer = chained(chain, Layout.parse("lane [8:(1,0)] element [2:(0,40)] dims (row,col)"))
    assert longer(lane=5, element=1) == chain(row=5, col=40)
    with pytest.raises(LayoutError, match="Mode 8:80 of axis row"):
        compose(Layout.parse("index [1024:1]"), chain)  # pyright: ignore[reportArgumentType]
    with pytest.raises(LayoutError, match="takes a Layout, not int"):
        compose(3, plain)  # pyright: ignore[reportArgumentType]
    with pytest.raises(LayoutError, match="several axes"):
        compose(plain, permute)
