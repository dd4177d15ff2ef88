"""Tiles from and to places that tiles of indices say, against numpy: by elements, by rows."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func

import fragir
from fragir.compiler import Kernel, parse
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.replicas import first_holders
from fragir.reference import evaluate
from tests.properties.judge import examples

from .test_ranks import layouts, tile

Array = npt.NDArray[Any]
DTYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32, "i8": np.int8, "f64": np.float64}
SHAPES = ((64,), (7,), (16, 24), (32, 4), (3, 4, 24))


@st.composite
def placements(draw: st.DrawFn, shape: Sequence[int]) -> tuple[int, Layout | None]:
    """Warps, and a layout over them; None where the compiler has one that is."""
    warps = draw(st.sampled_from((1, 2)))
    layout = draw(layouts(shape, warps))
    threads = 32 * warps
    divides = prod(shape) < threads or prod(shape) % threads == 0
    return (warps if layout is not None or divides else 1), layout


def memref(shape: Sequence[int], element: str) -> str:
    return f"memref<{'x'.join(map(str, shape))}x{element}>"


def gathers(
    shape: Sequence[int], memory: Sequence[int], element: str, layout: Layout | None, rows: bool,
    how: Sequence[str], start: int, warps: int,
) -> str:  # fmt: skip
    """%y = %m at the places of %i0, %i1, ...; of rows the last ones from `start` on."""
    places = shape[:1] if rows else shape
    count = 1 if rows else len(memory)
    plain = None if rows else layout
    loads = "\n".join(
        f"%i{d} = frag.load %p{d}[{', '.join('0' * len(places))}]"
        f" : {memref(places, 'i32')} -> {tile(places, 'i32', plain)}"
        for d in range(count)
    )
    entries = [f"%i{d}" for d in range(count)] + [str(start)] * (len(memory) - count)
    types = ", ".join([tile(places, "i32", plain)] * count)
    mask, kind = tile(places, "i1", plain), tile(shape, element, layout)
    words = {"masked": "masked", "where": "where %k", "other": "other %x"}
    given = " ".join(words[word] for word in words if word in how)
    masking = f" where {mask}" if "where" in how else ""
    arguments = "".join(f", %p{d}: {memref(places, 'i32')}" for d in range(count))
    x = "" if "other" not in how else f", %x: {element}"
    zeros = ", ".join("0" * len(shape))
    return f"""
    func.func @k(%m: {memref(memory, element)}, %y: {memref(shape, element)}{arguments}{x})
        attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      {loads}
      %k = frag.map %i0 : {tile(places, "i32", plain)} -> {mask} {{
      ^bb0(%v: i32):
        %one = arith.constant 1 : i32
        %b = arith.andi %v, %one : i32
        %q = arith.cmpi eq, %b, %one : i32
        frag.yield %q : i1
      }}
      %t = frag.gather %m[{", ".join(entries)}] {given}
        : {memref(memory, element)}, {types}{masking} -> {kind}
      frag.store %t, %y[{zeros}] : {kind}, {memref(shape, element)}
      func.return
    }}"""


def run(text: str, target: str, arguments: Sequence[Any], warps: int, *outputs: int) -> Kernel:
    """On the emulator with every check, and in numpy, which must agree."""
    kernel = fragir.compile(text, target=target)
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    wanted = evaluate(function, [np.copy(a) for a in arguments], target=target)
    report = kernel.launch((1,), (32 * warps,), *arguments, on="emulator", check=True)
    assert report.findings == []
    for number in outputs:
        reference = wanted[number]
        assert reference is not None
        assert reference.exact
        assert np.array_equal(reference.value, arguments[number])
    return kernel


@examples(20)
@given(st.data())
def test_gather(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    element = data.draw(st.sampled_from(sorted(DTYPES)))
    rows = len(shape) > 1 and data.draw(st.booleans())
    warps, layout = data.draw(placements(shape))
    how = [w for w in ("masked", "where", "other") if data.draw(st.booleans())]
    if "other" in how and len(how) == 1:
        how.remove("other")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    start = 0
    if rows:
        memory = [9, *(n + data.draw(st.sampled_from((0, 3, 8))) for n in shape[1:])]
        start = data.draw(st.integers(0, min(m - n for m, n in zip(memory[1:], shape[1:]))))
        if "masked" in how:
            start += data.draw(st.integers(-4, 4))
    else:
        memory = data.draw(st.sampled_from([[50], [6, 7], [2, 3, 4]]))
    text = gathers(shape, memory, element, layout, rows, how, start, warps)
    places = shape[:1] if rows else shape
    loose = 3 if "masked" in how else 0
    m = rng.integers(-50, 50, memory).astype(DTYPES[element])
    y = np.full(shape, 77, DTYPES[element])
    indices = [
        rng.integers(-loose, size + loose, places).astype(np.int32)
        for size in (memory[:1] if rows else memory)
    ]
    other = [DTYPES[element](13)] if "other" in how else []
    run(text, "sm_80", [m, y, *indices, *other], warps, 1)
    at: list[Array] = [i.reshape(i.shape + (1,) * (len(shape) - i.ndim)) for i in indices]
    if rows:
        at += [start + np.indices(shape)[d] for d in range(1, len(shape))]
    keep = np.ones(shape, bool)
    for i, n in zip(at, memory, strict=True):
        keep = keep & (i >= 0) & (i < n)
    if "where" in how:
        keep = keep & (at[0] % 2 == 1)
    clipped = tuple(np.clip(i, 0, n - 1) for i, n in zip(at, memory, strict=True))
    assert np.array_equal(y, np.where(keep, m[clipped], 13 if other else 0))


@examples(12)
@given(st.data())
def test_scatter(data: st.DataObject) -> None:
    """To places of which each element has its own, some of them outside."""
    shape = data.draw(st.sampled_from(SHAPES))
    element = data.draw(st.sampled_from(sorted(DTYPES)))
    rows = len(shape) > 1 and data.draw(st.booleans())
    warps, layout = data.draw(placements(shape))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    places = shape[:1] if rows else shape
    count = prod(places)
    memory = [count - 1, *shape[1:]] if rows else [count + 3]
    index = rng.permutation(count + 5)[:count].reshape(places).astype(np.int32) - 1
    plain = None if rows else layout
    entries = ", ".join(["%i", *("0" * (len(memory) - 1))])
    buffer, kind = memref(memory, element), tile(shape, element, layout)
    text = f"""
    func.func @k(%x: {memref(shape, element)}, %p: {memref(places, "i32")}, %m: {buffer})
        attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %t = frag.load %x[{", ".join("0" * len(shape))}] : {memref(shape, element)} -> {kind}
      %i = frag.load %p[{", ".join("0" * len(places))}]
        : {memref(places, "i32")} -> {tile(places, "i32", plain)}
      frag.scatter %t, %m[{entries}] masked : {kind}, {buffer}, {tile(places, "i32", plain)}
      func.return
    }}"""
    x = rng.integers(-50, 50, shape).astype(DTYPES[element])
    m = np.full(memory, 77, DTYPES[element])
    run(text, "sm_80", [x, index, m], warps, 2)
    wanted = np.full(memory, 77, DTYPES[element])
    for place in np.ndindex(*places):
        if 0 <= index[place] < memory[0]:
            wanted[index[place]] = x[place]
    assert np.array_equal(m, wanted)


EMBEDDING = """
func.func @k(%w: memref<?x64xf16>, %ids: memref<32xi32>, %y: memref<32x64xf16>)
    attributes {frag.warps = array<i64: 4, 1>} {
  %i = frag.load %ids[0] : memref<32xi32> -> !frag.tile<32xi32>
  %t = frag.gather %w[%i, 0] masked : memref<?x64xf16>, !frag.tile<32xi32> -> !frag.tile<32x64xf16>
  frag.store %t, %y[0, 0] : !frag.tile<32x64xf16>, memref<32x64xf16>
  func.return
}"""


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_rows_are_read_in_wide_accesses(target: str) -> None:
    """16 bytes at a time, each with one test of its row."""
    kernel = fragir.compile(EMBEDDING, target=target)
    assert kernel.assembled.warnings == []
    assert kernel.ptx.count("ld.global.v4.b32") == 2
    assert kernel.ptx.count("setp") == 2
    ids = np.array([5, 0, -1, 100, 2**31 - 1, -(2**31), 99, 3] * 4, np.int32)
    w = np.arange(6400).reshape(100, 64).astype(np.float16)
    y = np.zeros((32, 64), np.float16)
    report = kernel.launch((1,), None, w, ids, y, on="emulator", check=True)
    assert report.findings == []
    kept = ((ids >= 0) & (ids < 100))[:, None]
    assert np.array_equal(y, np.where(kept, w[np.clip(ids, 0, 99)], 0))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("element", sorted(DTYPES))
def test_ptxas_takes_it(target: str, element: str) -> None:
    text = gathers((16, 24), (6, 7), element, None, False, ("masked", "where", "other"), 0, 1)
    assert fragir.compile(text, target=target).assembled.warnings == []


def test_an_index_outside_is_told_with_its_element() -> None:
    text = EMBEDDING.replace(" masked", "")
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    ids = np.zeros(32, np.int32)
    ids[7] = 3
    given = [np.zeros((3, 64), np.float16), ids, np.zeros((32, 64), np.float16)]
    with pytest.raises(FragirError, match=r"element \[7, 0\] .* lies at \[3, 0\]") as caught:
        evaluate(function, given, target="sm_80")
    assert caught.value.line == 5
    assert "write `masked`" in caught.value.message


def test_one_of_several_at_a_place() -> None:
    """It is not said which: the reference covers all of them, and is certain where they agree."""
    text = """
    func.func @k(%x: memref<64xf32>, %p: memref<64xi32>, %m: memref<4xf32>) {
      %t = frag.load %x[0] : memref<64xf32> -> !frag.tile<64xf32>
      %i = frag.load %p[0] : memref<64xi32> -> !frag.tile<64xi32>
      frag.scatter %t, %m[%i] : !frag.tile<64xf32>, memref<4xf32>, !frag.tile<64xi32>
      func.return
    }"""
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    p = np.repeat(np.arange(4), 16).astype(np.int32)
    x = np.where(p == 2, 5, np.arange(64)).astype(np.float32)
    found = evaluate(function, [x, p, np.zeros(4, np.float32)], target="sm_80")[2]
    assert found is not None
    assert found.value[2] == 5
    assert list(found.bound > 0) == [True, True, False, True]
    for k in (0, 1, 3):
        assert (np.abs(found.value[k] - x[p == k]) <= found.bound[k]).all()


@examples(40)
@given(st.data())
def test_each_element_has_one_first_holder(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(((6,), (8, 4), (2, 12))))
    layout = data.draw(layouts(shape, 4))
    if layout is None:
        layout = Layout.parse("warp [2:0] lane [4:^3 2:^1 4:^4] element [2:^4] dims (row)")
    held: list[tuple[int, ...]] = []
    conditions = first_holders(layout, 128)
    for slot in np.ndindex(4, 32, layout.size("element") if "element" in layout.names else 1):
        slots: dict[str, int] = dict(zip(("warp", "lane", "element"), slot, strict=True))
        if all(c(slots[c.axis]) for c in conditions):
            inside = {n: v % layout.size(n) for n, v in slots.items() if n in layout.names}
            point = layout(**inside)
            assert point is not None
            held.append(point)
    assert len(held) == len(set(held)) == len(layout.holders)


#: Layouts with more to them: of products, with flipped bits, and with lanes that hold nothing.
SPECIAL = {
    "operand": ("16x32xf16", "#frag.mma<m16n8k16.f16, a>", 1),
    "accumulator": ("32x16xf32", "#frag.mma<m16n8k16.f16, c, warps = [2, 1]>", 2),
    "accumulator over columns": ("16x32xf32", "#frag.mma<m16n8k16.f16, c, warps = [1, 2]>", 2),
    "flipped": (
        "8x32xf32",
        '#frag.layout<"lane [8:^(1,1) 4:(0,8)] element [8:^(0,1)]">',
        1,
    ),
    "some lanes": (
        "8x4xf32",
        '#frag.layout<"lane [8:(1,0) 4:(0,0)] element [4:(0,1)] where lane/8%4==2">',
        1,
    ),
}


@pytest.mark.parametrize("name", sorted(SPECIAL))
@pytest.mark.parametrize("rows", [True, False], ids=["rows", "elements"])
def test_layouts(name: str, rows: bool) -> None:
    """What is gathered is scattered to twice its place, once for each element."""
    size, layout, warps = SPECIAL[name]
    *shape, element = size.split("x")
    shape = [int(n) for n in shape]
    placed = f"!frag.tile<{size}, {layout}>"
    places = shape[:1] if rows else shape
    index = f"!frag.tile<{'x'.join(map(str, places))}xi32>"
    if not rows:
        index = f"!frag.tile<{'x'.join(map(str, places))}xi32, {layout}>"
    memory = [64, shape[1]] if rows else [2 * prod(shape)]
    entries, buffer = "%i, 0" if rows else "%i", memref(memory, element)
    text = f"""
    func.func @k(%m: {buffer}, %p: {memref(places, "i32")}, %y: {buffer})
        attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %i = frag.load %p[{", ".join("0" * len(places))}] : {memref(places, "i32")} -> {index}
      %t = frag.gather %m[{entries}] : {buffer}, {index} -> {placed}
      frag.scatter %t, %y[{entries}] : {placed}, {buffer}, {index}
      frag.atomic add %t, %y[{entries}] : {placed}, {buffer}, {index}
      func.return
    }}"""
    rng = np.random.default_rng(2)
    m = rng.integers(-50, 50, memory).astype(DTYPES[element])
    p = rng.permutation(memory[0])[: prod(places)].reshape(places).astype(np.int32)
    y = np.full(memory, 77, DTYPES[element])
    wanted = y.copy()
    wanted[p] = 2 * m[p]
    kernel = fragir.compile(text, target="sm_90a")
    assert kernel.assembled.warnings == []
    kernel.launch((1,), None, m, p, y, on="emulator", check=True)
    assert np.array_equal(y, wanted)
