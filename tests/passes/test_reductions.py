"""Reductions along every dimension of any tile, repetitions, and places."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32

import fragir
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.passes.placing.placement import default_layout
from tests.passes.test_ranks import SHAPES, WARPS, layouts, tile

Array = npt.NDArray[Any]

NUMPY: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "ui32": np.uint32,
    "i8": np.int8, "i16": np.int16, "i64": np.int64,
}  # fmt: skip
SIGNED = ("i8", "i16", "i32", "i64")
#: word -> types of elements, and what numpy has for it.
KINDS: dict[str, tuple[tuple[str, ...], Any]] = {
    "add": (("f16", "f32", "f64", *SIGNED), np.add.reduce),
    "mul": (("f16", "f32", "f64", *SIGNED), np.multiply.reduce),
    "max": (("f16", "f32", "f64", *SIGNED, "ui32"), np.maximum.reduce),
    "min": (("f16", "f32", "f64", *SIGNED, "ui32"), np.minimum.reduce),
    "maxnum": (("f16", "f32", "f64"), np.fmax.reduce),
    "minnum": (("f16", "f32", "f64"), np.fmin.reduce),
    "and": (SIGNED, np.bitwise_and.reduce),
    "or": (SIGNED, np.bitwise_or.reduce),
    "xor": (SIGNED, np.bitwise_xor.reduce),
    "argmax": (("f16", "f32", "f64", *SIGNED, "ui32"), np.argmax),
    "argmin": (("f16", "f32", "f64", *SIGNED, "ui32"), np.argmin),
}


def buffer(shape: Sequence[int], element: str) -> str:
    return f"memref<{'x'.join(map(str, shape))}x{element}>"


def run(text: str, warps: int, *arrays: Array, assembled: bool = True) -> None:
    kernel = fragir.compile(text, target="sm_80")
    if assembled:
        assert kernel.assembled.warnings == []
    report = kernel.launch((1,), (32 * warps,), *arrays, on="emulator", check=True)
    assert report.findings == []


def divides(shape: Sequence[int], warps: int) -> bool:
    """Whether a tile of this shape has a default layout."""
    try:
        default_layout(frag.TileType(shape, f32), 32 * warps)
    except FragirError:
        return False
    return True


def reduction(
    kind: str, element: str, shape: Sequence[int], dim: int, warps: int, layout: Layout | None
) -> str:
    """y: the reduction, written once; z: the same beside every element (a sum with zero times)."""
    gives = "i32" if kind.startswith("arg") else element
    rest = [*shape[:dim], *shape[dim + 1 :]]
    x, y, z = buffer(shape, element), buffer(rest or [1], gives), buffer(shape, gives)
    source, small, large = tile(shape, element, layout), tile(rest, gives, None), ""
    large = tile(shape, gives, layout)
    if rest:
        back = f"%b = frag.broadcast %r along {dim} : {small} -> {large}"
        stored = f"frag.store %r, %y[{', '.join('0' for _ in rest)}] : {small}, {y}"
    else:
        back = f"%b = frag.fill %r : {large}"
        stored = f"""%t = frag.fill %r : !frag.tile<1x{gives}>
          frag.store %t, %y[0] : !frag.tile<1x{gives}>, {y}"""
    at = ", ".join("0" for _ in shape)
    return f"""
    func.func @k(%x: {x}, %y: {y}, %z: {z}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %a = frag.load %x[{at}] : {x} -> {source}
      %r = frag.reduce {kind} dim {dim} %a : {source} -> {small if rest else gives}
      {stored}
      {back}
      frag.store %b, %z[{at}] : {large}, {z}
      func.return
    }}
    """


def numbers(kind: str, element: str, shape: Sequence[int], seed: int) -> Array:
    """Of which every order gives the same sum or product."""
    rng = np.random.default_rng(seed)
    if kind == "mul":
        # rarely more than 1 or less, so that nothing leaves f16
        found = rng.choice([-1, 1], shape) * np.where(rng.random(shape) < 4 / max(shape), 2, 1)
    elif element[0] != "f":
        info = np.iinfo(NUMPY[element])
        found = rng.integers(info.min, info.max, shape, NUMPY[element], endpoint=True)
        if kind.startswith("arg"):
            found = rng.integers(0, 5, shape)  # equals
    else:
        found = rng.integers(-4, 5, shape)
    result: Array = found.astype(NUMPY[element])
    if element[0] == "f" and kind not in ("add", "mul") and rng.random() < 0.3:
        result[rng.random(shape) < 0.1] = np.nan
    return result


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_every_dimension_of_every_layout(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(sorted(KINDS)))
    element = data.draw(st.sampled_from(KINDS[kind][0]))
    shape = data.draw(st.sampled_from(SHAPES))
    dim = data.draw(st.integers(0, len(shape) - 1))
    warps = data.draw(st.sampled_from(WARPS))
    layout = data.draw(layouts(shape, warps))
    text = reduction(kind, element, shape, dim, warps, layout)
    seed = data.draw(st.integers(0, 99))
    x = numbers(kind, element, shape, seed)
    with np.errstate(all="ignore"):
        wanted = np.asarray(KINDS[kind][1](x, axis=dim))
        if not kind.startswith("arg"):
            wanted = wanted.astype(x.dtype)  # numpy widens sums of integers
    gives = np.int32 if kind.startswith("arg") else NUMPY[element]
    y = np.full(wanted.shape or (1,), 77, gives)
    z = np.full(shape, 77, gives)
    if layout is None and not divides(shape, warps):
        with pytest.raises(FragirError, match="threads do not divide"):
            fragir.compile(text, target="sm_80")
        return
    run(text, warps, x, y, z, assembled=seed % 4 == 0)
    np.testing.assert_array_equal(y, wanted.reshape(y.shape))
    np.testing.assert_array_equal(z, np.broadcast_to(np.expand_dims(wanted, dim), shape))


MIXED = (
    "warp [4:(16,0)] lane [8:^(1,1) 4:(0,8)] element [8:(0,1) 2:(8,0)]",
    "warp [4:^(16,8)] lane [8:(1,0) 4:(0,8)] element [8:^(0,1) 2:(8,0)]",
    "warp [2:(32,0) 2:(0,16)] lane [8:(2,0) 4:(0,4)] element [2:^(1,1) 4:^(0,1) 2:(16,0)]",
)


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("layout", MIXED)
def test_digits_of_several_dimensions(layout: str, dim: int) -> None:
    shape = (64, 32)
    x = numbers("add", "f32", shape, 3)
    y, z = np.zeros(shape[1 - dim], np.float32), np.zeros(shape, np.float32)
    text = reduction("add", "f32", shape, dim, 4, Layout.parse(layout))
    run(text, 4, x, y, z)
    np.testing.assert_array_equal(y, x.sum(dim))
    np.testing.assert_array_equal(z, np.broadcast_to(np.expand_dims(x.sum(dim), dim), shape))


@pytest.mark.parametrize("word", ["and", "or", "xor"])
@pytest.mark.parametrize("warps", [1, 4])
def test_truth_values(word: str, warps: int) -> None:
    shape = (64, 48)
    combine = {"and": np.all, "or": np.any, "xor": np.logical_xor.reduce}[word]
    text = f"""
    func.func @k(%x: {buffer(shape, "i32")}, %y: memref<64xi32>)
        attributes {{frag.warps = array<i64: 1, {warps}>}} {{
      %a = frag.load %x[0, 0] : {buffer(shape, "i32")} -> !frag.tile<64x48xi32>
      %p = frag.map %a : !frag.tile<64x48xi32> -> !frag.tile<64x48xi1> {{
      ^bb0(%v: i32):
        %zero = arith.constant 0 : i32
        %q = arith.cmpi ne, %v, %zero : i32
        frag.yield %q : i1
      }}
      %r = frag.reduce {word} dim 1 %p : !frag.tile<64x48xi1> -> !frag.tile<64xi1>
      %n = frag.cast %r : !frag.tile<64xi1> -> !frag.tile<64xi32>
      frag.store %n, %y[0] : !frag.tile<64xi32>, memref<64xi32>
      func.return
    }}
    """
    rng = np.random.default_rng(5)
    x = (rng.random(shape) < rng.choice([0.01, 0.5, 0.99], (64, 1))).astype(np.int32)
    x[0], x[1] = 0, 1
    y = np.full(64, 77, np.int32)
    run(text, warps, x, y)
    np.testing.assert_array_equal(y, combine(x != 0, axis=1))


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_places(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    warps = data.draw(st.sampled_from(WARPS))
    layout = data.draw(layouts(shape, warps))
    dim = data.draw(st.integers(0, len(shape) - 1))
    type_, memory = tile(shape, "i32", layout), buffer(shape, "i32")
    text = f"""
    func.func @k(%y: {memory}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %i = frag.iota dim {dim} : {type_}
      frag.store %i, %y[{", ".join("0" for _ in shape)}] : {type_}, {memory}
      func.return
    }}
    """
    y = np.full(shape, -1, np.int32)
    if layout is None and not divides(shape, warps):
        with pytest.raises(FragirError, match="threads do not divide"):
            fragir.compile(text, target="sm_80")
        return
    run(text, warps, y, assembled=False)
    np.testing.assert_array_equal(y, np.indices(shape)[dim])


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(
    "layout",
    [
        "warp [4:(3,0)] lane [16:(0,1) 2:(0,8)] element [2:(0,16) 2:(1,0) 2:(1,0)]",
        "warp [4:(0,10)] lane [4:(3,0) 8:(0,1)] element [2:(0,1) 2:(1,0) 2:(0,1) 2:(1,0)]",
        "warp [2:(6,0) 2:(0,0)] lane [32:(0,1)] element [2:(0,4) 2:(0,4) 6:(1,0)]",
    ],
)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("word", ["add", "argmax"])
def test_elements_that_a_lane_holds_twice(word: str, dim: int, layout: str) -> None:
    """They count once, and the result holds them as often."""
    tile, size = f'!frag.tile<12x40xi32, #frag.layout<"{layout}">>', (40, 12)[dim]
    text = f"""
    func.func @f(%x: memref<12x40xi32>, %y: memref<{size}xi32>) attributes {{frag.warps = array<i64: 4, 1>}} {{
      %t = frag.load %x[0, 0] : memref<12x40xi32> -> {tile}
      %r = frag.reduce {word} dim {dim} %t : {tile} -> !frag.tile<{size}xi32>
      frag.store %r, %y[0] : !frag.tile<{size}xi32>, memref<{size}xi32>
      func.return
    }}
    """  # noqa: E501
    x = np.random.default_rng(0).integers(-100, 100, (12, 40)).astype(np.int32)
    y = np.zeros(size, np.int32)
    run(text, 4, x, y)
    assert (y == KINDS[word][1](x, axis=dim)).all()


@pytest.mark.parametrize(("m", "n"), [(1, 1), (18, 300), (5, 128)])
def test_softmax(m: int, n: int) -> None:
    text = (EXAMPLES / "rows/softmax.mlir").read_text()
    x = np.random.default_rng(n).standard_normal((m, n)).astype(np.float32) * 9
    y = np.full((m, n), np.nan, np.float32)
    kernel = fragir.compile(text, entry="softmax")
    assert kernel(x, y, on="emulator", check=True).findings == []
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (9, 300)])
def test_layer_norm(m: int, n: int) -> None:
    text = (EXAMPLES / "rows/layer_norm.mlir").read_text()
    rng = np.random.default_rng(n)
    x = (rng.standard_normal((m, n)) * 3 + 5).astype(np.float16)
    gamma, beta = (rng.standard_normal(n).astype(np.float32) for _ in range(2))
    y = np.full((m, n), np.nan, np.float16)
    means, rstds = (np.full(m, np.nan, np.float32) for _ in range(2))
    kernel = fragir.compile(text, entry="layer_norm")
    arguments = (x, gamma, beta, y, means, rstds, 1e-5)
    assert kernel(*arguments, on="emulator", check=True).findings == []
    wide = x.astype(np.float64)
    d = wide - wide.mean(1, keepdims=True)
    wanted = d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * gamma + beta
    np.testing.assert_allclose(y, wanted, rtol=2**-10, atol=2**-10)


def test_rows_of_a_warp_meet_by_shuffles() -> None:
    """Sixteen rows a block, so that each warp has its own: no shared memory."""
    text = (EXAMPLES / "rows/layer_norm.mlir").read_text()
    for one, other in (("1x1024x", "16x128x"), ("1024x", "128x"), ("1xf32", "16xf32")):
        text = text.replace(f"tile<{one}", f"tile<{other}")
    assert "shared" not in fragir.compile(text, entry="layer_norm").ptx


@pytest.mark.parametrize("name", ["softmax", "layer_norm"])
def test_norms_convert_nothing(name: str) -> None:
    """Rows lie as they are loaded, and what belongs to columns is loaded where it is wanted."""
    text = (EXAMPLES / f"rows/{name}.mlir").read_text()
    assert fragir.explain_layouts(text, entry=name).conversions == ()


def columns(rows: int, bits: int) -> str:
    """A layout with 2^bits lanes along dimension 0; of each column a lane has two elements."""
    others = 32 >> bits
    lanes = f"{1 << bits}:(2,0)" + (f" {others}:(0,{rows})" if others > 1 else "")
    return f'#frag.layout<"warp [] lane [{lanes}] element [2:(1,0) {rows}:(0,1)]">'


@pytest.mark.parametrize(
    ("rows", "bits", "shuffles"),
    # pairs and rows left over at each bit, then every row fetched; or each told at each bit
    [
        (1, 5, 5),
        (2, 3, 3 + 2),
        (7, 3, 4 + 2 + 1 + 7),
        (16, 3, 14 + 16),
        (16, 2, 32),
        (9, 5, 21),
    ],
)
def test_lanes_share_rows_out(rows: int, bits: int, shuffles: int) -> None:
    """Who adds up what is shared; every lane has every sum in the end, the same bits."""
    shape = (2 << bits, rows * (32 >> bits))
    x = np.random.default_rng(rows).standard_normal(shape).astype(np.float32)
    for kind, wanted in (("add", None), ("argmax", x.argmax(0)), ("max", x.max(0))):
        gives = "i32" if kind == "argmax" else "f32"
        source = f"!frag.tile<{shape[0]}x{shape[1]}xf32, {columns(rows, bits)}>"
        sums = f"!frag.tile<{shape[1]}x{gives}>"
        back = f"!frag.tile<{shape[0]}x{shape[1]}x{gives}, {columns(rows, bits)}>"
        matrix, result = buffer(shape, "f32"), buffer(shape, gives)
        text = f"""
        func.func @k(%x: {matrix}, %y: {result}) {{
          %a = frag.load %x[0, 0] : {matrix} -> {source}
          %r = frag.reduce {kind} dim 0 %a : {source} -> {sums}
          %b = frag.broadcast %r along 0 : {sums} -> {back}
          frag.store %b, %y[0, 0] : {back}, {result}
          func.return
        }}
        """
        y = np.full(shape, 77, np.int32 if kind == "argmax" else np.float32)
        run(text, 1, x, y)
        if wanted is None:
            ptx = fragir.compile(text, target="sm_80").ptx
            assert ptx.count("shfl.sync") == shuffles
            wanted = by_halves(x)
        np.testing.assert_array_equal(y, np.broadcast_to(wanted, shape))


def by_halves(x: Array) -> Array:
    """The sums as lanes form them: neighbours, then neighbours of these, and so on."""
    while len(x) > 1:
        x = x[::2] + x[1::2]
    return x[0]
