"""Scans along every dimension of any tile, both ways, with the element itself and without."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import ceil, log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragir
from fragir.dialects.frag.reductions import neutral
from fragir.dialects.frag.scan import most_roundings_of_scan
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.scanning import runs
from fragir.passes.lowering.scan import prefixes
from tests.passes.test_ranks import SHAPES, WARPS, layouts, tile
from tests.passes.test_reductions import MIXED, NUMPY, SIGNED, Array, buffer, divides, numbers, run
from tests.properties.judge import examples, judge

#: word -> types of elements, and what numpy has for it.
KINDS: dict[str, tuple[tuple[str, ...], Callable[..., Array]]] = {
    "add": (("f16", "f32", "f64", *SIGNED, "ui32"), np.add.accumulate),
    "mul": (("f32", "f64", *SIGNED), np.multiply.accumulate),
    "max": (("f16", "f32", "f64", *SIGNED, "ui32"), np.maximum.accumulate),
    "min": (("f16", "f32", "f64", *SIGNED, "ui32"), np.minimum.accumulate),
    "maxnum": (("f16", "f32", "f64"), np.fmax.accumulate),
    "minnum": (("f16", "f32", "f64"), np.fmin.accumulate),
    "and": (SIGNED, np.bitwise_and.accumulate),
    "or": (SIGNED, np.bitwise_or.accumulate),
    "xor": (SIGNED, np.bitwise_xor.accumulate),
}
FLAGS = ("", "exclusive", "reverse", "exclusive reverse")
NAMES = {"ui32": "u32", **{f"i{bits}": f"s{bits}" for bits in (8, 16, 32, 64)}}


def program(
    kind: str,
    element: str,
    shape: Sequence[int],
    dim: int,
    flags: str,
    warps: int,
    layout: Layout | None,
) -> str:
    memory, type_ = buffer(shape, element), tile(shape, element, layout)
    at = ", ".join("0" for _ in shape)
    return f"""
    func.func @k(%x: {memory}, %y: {memory}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %a = frag.load %x[{at}] : {memory} -> {type_}
      %r = frag.scan {kind} dim {dim} {flags} %a : {type_}
      frag.store %r, %y[{at}] : {type_}, {memory}
      func.return
    }}
    """


def answer(kind: str, element: str, x: Array, dim: int, flags: str) -> Array:
    turned = np.moveaxis(x, dim, 0)
    if "reverse" in flags:
        turned = turned[::-1]
    with np.errstate(all="ignore"):
        found = KINDS[kind][1](turned, axis=0).astype(x.dtype)
    if "exclusive" in flags:
        first = np.asarray(neutral(kind, NAMES.get(element, element)))
        found = np.concatenate([np.full_like(found[:1], first.astype(x.dtype)), found[:-1]])
    if "reverse" in flags:
        found = found[::-1]
    return np.moveaxis(found, 0, dim)


@examples(10)
@given(st.data())
def test_every_dimension_of_every_layout(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    element = data.draw(st.sampled_from(KINDS[kind][0]))
    shape = data.draw(st.sampled_from(SHAPES))
    dim = data.draw(st.integers(0, len(shape) - 1))
    warps = data.draw(st.sampled_from(WARPS))
    flags = data.draw(st.sampled_from(FLAGS))
    layout = data.draw(layouts(shape, warps))
    text = program(kind, element, shape, dim, flags, warps, layout)
    seed = data.draw(st.integers(0, 99))
    if layout is None and not divides(shape, warps):
        with pytest.raises(FragirError, match="threads do not divide"):
            fragir.compile(text, target="sm_80")
        return
    x = numbers(kind, element, shape, seed)
    y = np.full(shape, 77, NUMPY[element])
    run(text, warps, x, y, assembled=seed % 4 == 0)
    np.testing.assert_array_equal(y, answer(kind, element, x, dim, flags), text)


@pytest.mark.parametrize(("dim", "flags"), [(0, "exclusive"), (1, "reverse")])
@pytest.mark.parametrize(
    "layout",
    [
        *MIXED,
        # digits of registers, lanes and warps between each other, and copies
        "warp [2:(8,0) 2:(0,16)] lane [4:(0,2) 4:(1,0) 2:(32,0)]"
        " element [2:(0,1) 2:(0,8) 2:(4,0) 2:(16,0)]",
        "warp [2:(0,0) 2:(0,1)] lane [2:(1,0) 2:(0,2) 2:(0,0) 4:(0,8)] element [2:(0,4) 32:(2,0)]",
    ],
)
def test_digits_in_any_order(layout: str, dim: int, flags: str) -> None:
    shape = (64, 32)
    x = numbers("add", "f32", shape, 3)
    y = np.zeros(shape, np.float32)
    run(program("add", "f32", shape, dim, flags, 4, Layout.parse(layout)), 4, x, y)
    np.testing.assert_array_equal(y, answer("add", "f32", x, dim, flags))


@pytest.mark.parametrize("flags", FLAGS)
@pytest.mark.parametrize("word", ["and", "or", "xor"])
def test_truth_values(word: str, flags: str) -> None:
    shape = (16, 96)
    x = np.random.default_rng(5).integers(0, 2, shape).astype(np.int32)
    x[::2] = x[::2] & (np.arange(96) % 31 == 30)
    x[1::4] |= np.arange(96) % 31 < 30
    text = f"""
    func.func @k(%x: memref<16x96xi32>, %y: memref<16x96xi32>)
        attributes {{frag.warps = array<i64: 1, 3>}} {{
      %a = frag.load %x[0, 0] : memref<16x96xi32> -> !frag.tile<16x96xi32>
      %p = frag.map %a : !frag.tile<16x96xi32> -> !frag.tile<16x96xi1> {{
      ^bb0(%v: i32):
        %zero = arith.constant 0 : i32
        %q = arith.cmpi ne, %v, %zero : i32
        frag.yield %q : i1
      }}
      %r = frag.scan {word} dim 1 {flags} %p : !frag.tile<16x96xi1>
      %n = frag.cast %r : !frag.tile<16x96xi1> -> !frag.tile<16x96xi32>
      frag.store %n, %y[0, 0] : !frag.tile<16x96xi32>, memref<16x96xi32>
      func.return
    }}
    """
    y = np.full(shape, 77, np.int32)
    run(text, 3, x, y)
    wanted = answer(word, "pred", x, 1, flags)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(
    ("kind", "element", "flags"),
    [
        *(("add", "f32", flags) for flags in FLAGS),
        ("add", "f16", ""),
        ("mul", "f32", "exclusive"),
        ("max", "bf16", "reverse"),
        ("min", "ui32", "exclusive"),
        ("xor", "i32", "exclusive reverse"),
    ],
)
def test_within_the_bound(kind: str, element: str, flags: str) -> None:
    """Of numbers that every sum rounds, what runs is as near as the reference says."""
    judge(program(kind, element, (16, 96), 1, flags, 2, None), "sm_80", assemble=False)


@pytest.mark.parametrize("count", [*range(1, 70), 100, 127, 128, 129, 1000])
def test_levels_of_a_tree(count: int) -> None:
    """No item goes through more operations than are promised; all in order, once."""

    def combine(x: tuple[int, int, int], y: tuple[int, int, int]) -> tuple[int, int, int]:
        """First, last, levels."""
        nonlocal operations
        operations += 1
        assert x[1] + 1 == y[0]
        return x[0], y[1], max(x[2], y[2]) + 1

    operations = 0
    found = prefixes([(i, i, 0) for i in range(count)], combine)
    assert [(x[0], x[1]) for x in found] == [(0, i) for i in range(count)]
    assert max(x[2] for x in found) <= most_roundings_of_scan(count)
    assert found[-1][2] == ceil(log2(count))
    # one more operation adds what is before all of them
    assert max((x[2] for x in found[:-1]), default=-1) + 1 <= 2 * log2(count)
    assert operations < 2 * count


def test_digits_of_a_place() -> None:
    layout = Layout.parse(
        "warp [2:(0,16) 2:(16,0)] lane [2:(0,4) 2:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,8)]"
    )
    found = runs(layout, "col")
    assert found is not None
    assert [(r.axis, r.low, r.size) for r in found] == [
        ("element", 1, 2), ("lane", 2, 4), ("element", 8, 2), ("warp", 16, 2),
    ]  # fmt: skip
    assert found[1].digits == ((2, 2), (1, 2))
    assert runs(Layout.parse("lane [32:(0,1)] element [4:(1,0)] offset (0,1)"), "col") is None
    assert runs(Layout.parse("lane [8:(1,1)] element [4:(1,0)]"), "col") is None


def test_methods_of_tiles() -> None:
    """Names and options as numpy's; halves are added in f32."""
    with fragir.kernel("k") as k:
        x = k.memory("x", fragir.f16, (8, 64))
        outs = [k.memory(name, fragir.f16, (8, 64)) for name in "abcd"]
        t = k.load(x, (0, 0), shape=(8, 64))
        found = (
            t.cumsum(1),
            t.cumprod(-1, exclusive=True),
            t.cummax(0, reverse=True),
            t.cummin(1),
        )
        for tile_, out in zip(found, outs, strict=True):
            k.store(tile_, out, (0, 0))
    source = np.random.default_rng(1).standard_normal((8, 64)).astype(np.float16)
    results = [np.zeros_like(source) for _ in outs]
    k.compile()(source, *results, on="emulator", check=True)
    wide = source.astype(np.float64)
    products = np.cumprod(wide, 1)
    for found_, wanted in zip(
        results,
        (
            np.cumsum(wide, 1),
            np.concatenate([np.ones((8, 1)), products[:, :-1]], 1),
            np.maximum.accumulate(wide[::-1], 0)[::-1],
            np.minimum.accumulate(wide, 1),
        ),
        strict=True,
    ):
        np.testing.assert_allclose(found_, wanted, rtol=2**-10, atol=1e-4)
    with fragir.kernel("wrong") as k:
        t = k.load(k.memory("x", fragir.u8, (8, 64)), (0, 0), shape=(8, 64))
        with pytest.raises(FragirError, match="is not combined"):
            t.cumsum(1)
