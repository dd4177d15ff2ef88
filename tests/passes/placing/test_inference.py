"""Tiles that are wanted in several layouts: what is chosen, and that it computes the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product
from math import prod
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from xdsl.context import Context
from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, f16
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def
from xdsl.rewriter import InsertPoint, Rewriter

import fragir
from benchmarks.sweeps.row_orders import chain as wgmma_chain
from fragir.dialects import frag
from fragir.dialects.interfaces import LayoutInterface, Threads
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.passes.frag_place import FragPlacePass
from fragir.passes.placing.inference import infer
from fragir.passes.placing.pbqp import Problem
from fragir.passes.placing.relations import Relations, tiles_of
from fragir.passes.scopes import threads_of, warps_of
from tests.passes.placing.test_row_orders import LOADED_BESIDE, PRODUCT, SUMS

Arrays = list[npt.NDArray[Any]]


def placed(text: str, target: str = "sm_80") -> ModuleOp:
    module = fragir.parse(text)
    FragPlacePass(target).apply(Context(), module)
    module.verify()
    return module


def conversions(module: ModuleOp) -> list[frag.ConvertOp]:
    return [op for op in module.walk() if isinstance(op, frag.ConvertOp)]


def loads(module: ModuleOp) -> list[frag.LoadOp]:
    return [op for op in module.walk() if isinstance(op, frag.LoadOp)]


def drawn(shape: tuple[int, ...], dtype: Any, seed: int) -> npt.NDArray[Any]:
    """Small whole numbers, mostly zero: sums stay exact in narrow types."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-2, 3, shape) * (rng.random(shape) < 0.4)).astype(dtype)


def f16_product(a: str, b: str, c: str, shape: str, name: str, using: str = "") -> str:
    m, n, k = shape.split("x")
    word = f'using "{using}" ' if using else ""
    return (
        f"%{name} = frag.mma %{a}, %{b}, %{c} {word}: !frag.tile<{m}x{k}xf16>, "
        f"!frag.tile<{k}x{n}xf16>, !frag.tile<{m}x{n}xf32> -> !frag.tile<{m}x{n}xf32>"
    )


# --- operands of several instructions -------------------------------------------------------------

SQUARE = """func.func @f(%a: memref<16x16xf16>, %d: memref<16x16xf32>) {
  %t = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<16x16xf32>
  %s = frag.mma %t, %t, %c
    : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>, !frag.tile<16x16xf32> -> !frag.tile<16x16xf32>
  frag.store %s, %d[0, 0] : !frag.tile<16x16xf32>, memref<16x16xf32>
  func.return
}"""


def test_a_tile_is_both_operands_of_a_product() -> None:
    assert len(loads(placed(SQUARE))) + len(conversions(placed(SQUARE))) == 2
    a, d = drawn((16, 16), np.float16, 1), np.zeros((16, 16), np.float32)
    fragir.compile(SQUARE)(a, d, on="emulator")
    np.testing.assert_array_equal(d, a.astype(float) @ a.astype(float))


def test_products_of_different_shapes_share_an_operand() -> None:
    text = f"""func.func @f(%a: memref<32x16xf16>, %b: memref<16x16xf16>, %d: memref<32x16xf32>)
        attributes {{frag.warps = array<i64: 2, 1>}} {{
      %ta = frag.load %a[0, 0] : memref<32x16xf16> -> !frag.tile<32x16xf16>
      %tb = frag.load %b[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
      %z = arith.constant 0.0 : f32
      %c = frag.fill %z : !frag.tile<32x16xf32>
      {f16_product("ta", "tb", "c", "32x16x16", "s", "m16n8k8.f16")}
      {f16_product("ta", "tb", "s", "32x16x16", "t", "m16n8k16.f16")}
      frag.store %t, %d[0, 0] : !frag.tile<32x16xf32>, memref<32x16xf32>
      func.return
    }}"""
    # two k8 fragments beside each other are a k16 one: registers renamed at most
    assert all("m16n8k16" in str(op) or "m16n8k8" in str(op) for op in conversions(placed(text)))
    ptx = fragir.compile(text).ptx
    assert not any(word in ptx for word in ("shfl", "st.shared", "movmatrix"))
    a, b = drawn((32, 16), np.float16, 1), drawn((16, 16), np.float16, 2)
    d = np.zeros((32, 16), np.float32)
    fragir.compile(text)(a, b, d, on="emulator")
    np.testing.assert_array_equal(d, 2 * (a.astype(float) @ b.astype(float)))


def chain(narrow: str, loop: bool = False) -> str:
    """O = cast(Q K) V, in a loop over K and V where asked."""
    n, d = 32, 32
    body = f"""
      %k = frag.load %K[0, 0] : memref<{d}x{n}x{narrow}> -> !frag.tile<{d}x{n}x{narrow}>
      %s = frag.mma %q, %k, %zero : !frag.tile<64x{d}x{narrow}>, !frag.tile<{d}x{n}x{narrow}>,
        !frag.tile<64x{n}xf32> -> !frag.tile<64x{n}xf32>
      %p = frag.cast %s : !frag.tile<64x{n}xf32> -> !frag.tile<64x{n}x{narrow}>
      %v = frag.load %V[0, 0] : memref<{n}x{d}x{narrow}> -> !frag.tile<{n}x{d}x{narrow}>
      %o = frag.mma %p, %v, ACC : !frag.tile<64x{n}x{narrow}>, !frag.tile<{n}x{d}x{narrow}>,
        !frag.tile<64x{d}xf32> -> !frag.tile<64x{d}xf32>"""
    if loop:
        body = f"""
      %i0 = arith.constant 0 : index
      %i1 = arith.constant 1 : index
      %i4 = arith.constant 4 : index
      %out = scf.for %i = %i0 to %i4 step %i1 iter_args(%acc = %start)
          -> (!frag.tile<64x{d}xf32>) {{
        {body.replace("ACC", "%acc")}
        scf.yield %o : !frag.tile<64x{d}xf32>
      }}"""
    else:
        body = body.replace("ACC", "%start").replace("%o =", "%out =")
    return f"""
    func.func @f(%Q: memref<64x{d}x{narrow}>, %K: memref<{d}x{n}x{narrow}>,
                 %V: memref<{n}x{d}x{narrow}>, %O: memref<64x{d}xf32>)
        attributes {{frag.warps = array<i64: 4, 1>}} {{
      %z = arith.constant 0.0 : f32
      %zero = frag.fill %z : !frag.tile<64x{n}xf32>
      %start = frag.fill %z : !frag.tile<64x{d}xf32>
      %q = frag.load %Q[0, 0] : memref<64x{d}x{narrow}> -> !frag.tile<64x{d}x{narrow}>
      {body}
      frag.store %out, %O[0, 0] : !frag.tile<64x{d}xf32>, memref<64x{d}xf32>
      func.return
    }}"""


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(
    ("narrow", "target", "dtype"),
    [("f16", "sm_80", np.float16), ("f8E4M3FN", "sm_89", ml_dtypes.float8_e4m3fn)],
)
def test_a_sum_is_the_operand_of_the_next_product(
    narrow: str, target: str, dtype: Any, loop: bool
) -> None:
    text = chain(narrow, loop)
    found = fragir.explain_layouts(text, target=target)
    # registers are renamed: of 8-bit types because N is counted in another order in %s and %k
    (moved,) = [one for one in found.conversions if one.name in ("%s", "%p")]
    assert moved.cost == 0
    reordered = {tile.name for tile in found.tiles if ", n = " in tile.layout}
    reordered |= {one.name for one in found.conversions if ", n = " in one.target}
    assert reordered == (set() if narrow == "f16" else {"%zero", "%s", "%k"})
    if narrow == "f16":
        ptx = fragir.compile(text, target=target).ptx
        assert not any(word in ptx for word in ("shfl", "st.shared", "movmatrix"))
    q, k, v = (drawn(s, dtype, i) for i, s in enumerate(((64, 32), (32, 32), (32, 32))))
    o = np.zeros((64, 32), np.float32)
    fragir.compile(text, target=target)(q, k, v, o, on="emulator")
    first = (q.astype(np.float32) @ k.astype(np.float32)).astype(dtype).astype(np.float32)
    np.testing.assert_array_equal(o, (4 if loop else 1) * (first @ v.astype(np.float32)))


PLAIN = "#frag.mma<m16n8k32.e4m3, b, warps = [4, 1]>"


def written(text: str, name: str) -> str:
    """The narrow chain with a tile of B in the instruction's own order, as the user's word."""
    tile = "!frag.tile<32x32xf8E4M3FN"
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if f"%{name} = frag.load" in line:
            lines[number] = line.replace(f"{tile}>", f"{tile}, {PLAIN}>")
        if f"%{name}, " in line:
            lines[number] = line.replace(f"{tile}>", f"{tile}, {PLAIN}>")
    assert "\n".join(lines).count(PLAIN) == text.count(PLAIN) + 2
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("given", "order"),
    [("v", ', n = "2:1 4:4 2:2"'), ("k", ', k = "2:1 2:8 4:2"')],
)
def test_either_product_counts_in_another_order(given: str, order: str) -> None:
    """Which one, the operand tells whose layout is not written: neither moves anything."""
    text = written(chain("f8E4M3FN", loop=True), given)
    found = fragir.explain_layouts(text, target="sm_89")
    assert all(one.cost == 0 for one in found.conversions if one.name in ("%s", "%p"))
    other = next(one for one in found.conversions if one.name == {"v": "%k", "k": "%v"}[given])
    assert order in other.target
    e4m3 = ml_dtypes.float8_e4m3fn
    q, k, v = (drawn(s, e4m3, i) for i, s in enumerate(((64, 32), (32, 32), (32, 32))))
    o = np.zeros((64, 32), np.float32)
    fragir.compile(text, target="sm_89")(q, k, v, o, on="emulator")
    first = (q.astype(np.float32) @ k.astype(np.float32)).astype(e4m3).astype(np.float32)
    np.testing.assert_array_equal(o, 4 * (first @ v.astype(np.float32)))


# --- loops and branches ---------------------------------------------------------------------------

POWERS = """func.func @f(%a: memref<16x16xf16>, %d: memref<16x16xf16>) {
  %t = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<16x16xf32>
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %i2 = arith.constant 2 : index
  %r = scf.for %i = %i0 to %i2 step %i1 iter_args(%x = %t) -> (!frag.tile<16x16xf16>) {
    %s = frag.mma %x, %t, %c : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>,
      !frag.tile<16x16xf32> -> !frag.tile<16x16xf32>
    %y = frag.cast %s : !frag.tile<16x16xf32> -> !frag.tile<16x16xf16>
    scf.yield %y : !frag.tile<16x16xf16>
  }
  frag.store %r, %d[0, 0] : !frag.tile<16x16xf16>, memref<16x16xf16>
  func.return
}"""


def test_what_a_loop_carries_is_made_what_is_wanted_of_it() -> None:
    module = placed(POWERS)
    (loop,) = [op for op in module.walk() if isinstance(op, scf.ForOp)]
    # B stands before the loop: nothing but a renaming is left inside
    inside = [op for op in loop.body.walk() if isinstance(op, frag.ConvertOp)]
    assert all("m16n8k16.f16, b" not in str(op.result.type) for op in inside)
    a, d = drawn((16, 16), np.float16, 3), np.zeros((16, 16), np.float16)
    fragir.compile(POWERS)(a, d, on="emulator")
    wide = a.astype(np.float64)
    np.testing.assert_array_equal(d, wide @ wide @ wide)


ROWS = '#frag.layout<"warp [4:(16,0)] lane [4:(0,8) 8:(1,0)] element [8:(0,1) 2:(8,0)]">'


def test_what_comes_from_outside_is_converted_before_the_loop() -> None:
    text = chain("f16", loop=True).replace(
        "%q = frag.load %Q[0, 0] : memref<64x32xf16> -> !frag.tile<64x32xf16>",
        f"%q0 = frag.load %Q[0, 0] : memref<64x32xf16> -> !frag.tile<64x32xf16, {ROWS}>\n"
        f"%q = frag.map %q0 : !frag.tile<64x32xf16, {ROWS}> -> !frag.tile<64x32xf16, {ROWS}> {{\n"
        "^bb0(%x: f16):\n %y = arith.addf %x, %x : f16\n frag.yield %y : f16\n}",
    )
    text = text.replace("%zero : !frag.tile<64x32xf16>", f"%zero : !frag.tile<64x32xf16, {ROWS}>")
    module = placed(text)
    outside = [op for op in conversions(module) if not isinstance(op.parent_op(), scf.ForOp)]
    assert [str(op.result.type) for op in outside] == [
        "!frag.tile<64x32xf16, #frag.mma<m16n8k16.f16, a, warps = [4, 1]>>"
    ]
    q, k, v = (drawn(s, np.float16, i) for i, s in enumerate(((64, 32), (32, 32), (32, 32))))
    o = np.zeros((64, 32), np.float32)
    fragir.compile(text)(q, k, v, o, on="emulator")
    np.testing.assert_array_equal(o, 8 * (q.astype(float) @ k.astype(float)) @ v.astype(float))


BRANCH = """func.func @f(%a: memref<16x16xf16>, %n: index, %d: memref<16x16xf32>) {
  %t = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<16x16xf32>
  %i0 = arith.constant 0 : index
  %yes = arith.cmpi eq, %n, %i0 : index
  %r = scf.if %yes -> (!frag.tile<16x16xf32>) {
    %s = frag.mma %t, %t, %c : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>,
      !frag.tile<16x16xf32> -> !frag.tile<16x16xf32>
    scf.yield %s : !frag.tile<16x16xf32>
  } else {
    %w = frag.cast %t : !frag.tile<16x16xf16> -> !frag.tile<16x16xf32>
    scf.yield %w : !frag.tile<16x16xf32>
  }
  frag.store %r, %d[0, 0] : !frag.tile<16x16xf32>, memref<16x16xf32>
  func.return
}"""


def test_branches_have_what_they_need() -> None:
    kernel = fragir.compile(BRANCH)
    a = drawn((16, 16), np.float16, 5)
    wide = a.astype(np.float64)
    for n, wanted in ((0, wide @ wide), (1, wide)):
        d = np.zeros((16, 16), np.float32)
        kernel(a, n, d, on="emulator")
        np.testing.assert_array_equal(d, wanted)


# --- memory ---------------------------------------------------------------------------------------

EPILOGUE = """func.func @f(%a: memref<64x16xf16>, %b: memref<16x64xf16>, %d: memref<64x64x{out}>)
    attributes {{frag.warps = array<i64: 4, 1>}} {{
  %ta = frag.load %a[0, 0] : memref<64x16xf16> -> !frag.tile<64x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x64xf16> -> !frag.tile<16x64xf16>
  %z = arith.constant 0.0 : f32
  %c = frag.fill %z : !frag.tile<64x64xf32>
  %s = frag.mma %ta, %tb, %c : !frag.tile<64x16xf16>, !frag.tile<16x64xf16>,
    !frag.tile<64x64xf32> -> !frag.tile<64x64xf32>
  {cast}
  frag.store %{stored}, %d[0, 0] : !frag.tile<64x64x{out}>, memref<64x64x{out}>
  func.return
}}"""
CAST = "%h = frag.cast %s : !frag.tile<64x64xf32> -> !frag.tile<64x64xf16>"


def test_narrow_sums_are_stored_through_rows_of_16_bytes() -> None:
    text = EPILOGUE.format(out="f16", cast=CAST, stored="h")
    (moved,) = conversions(placed(text))
    assert isinstance(moved.source.owner, frag.CastOp)  # after the cast: half as much moves
    ptx = fragir.compile(text).ptx
    assert ptx.count("st.global.v4.b32") == ptx.count("st.global") == 4
    assert "bar.sync" not in ptx  # every warp keeps its rows
    a, b = drawn((64, 16), np.float16, 1), drawn((16, 64), np.float16, 2)
    d = np.zeros((64, 64), np.float16)
    fragir.compile(text)(a, b, d, on="emulator")
    np.testing.assert_array_equal(d, a.astype(float) @ b.astype(float))


STREAMED = """%r = frag.load %d[0, 0] : memref<64x64xf16> -> !frag.tile<64x64xf16>
  %i = frag.cast %s : !frag.tile<64x64xf32> -> !frag.tile<64x64xf16>
  %h = frag.map %r, %i : !frag.tile<64x64xf16>, !frag.tile<64x64xf16> -> !frag.tile<64x64xf16> {
  ^bb0(%x: f16, %y: f16):
    %w = arith.addf %x, %y : f16
    frag.yield %w : f16
  }"""


@pytest.mark.parametrize(
    ("out", "cast", "stored"),
    [
        ("f32", "", "s"),  # a quad's part of a row is a whole sector
        ("f16", STREAMED, "h"),  # made and stored fragment by fragment
    ],
)
def test_what_is_stored_well_enough_stays(out: str, cast: str, stored: str) -> None:
    assert conversions(placed(EPILOGUE.format(out=out, cast=cast, stored=stored))) == []


def test_a_constant_is_made_again_instead_of_converted() -> None:
    text = (
        SQUARE.replace("%t, %t, %c", "%t, %u, %c")
        .replace(
            "%z = arith",
            "%h = arith.constant 1.0 : f16\n %u = frag.fill %h : !frag.tile<16x16xf16>\n"
            "%w = frag.mma %u, %t, %v : !frag.tile<16x16xf16>, !frag.tile<16x16xf16>, "
            "!frag.tile<16x16xf32> -> !frag.tile<16x16xf32>\n %z = arith",
        )
        .replace(
            "%h = arith",
            "%y = arith.constant 0.0 : f32\n%v = frag.fill %y : !frag.tile<16x16xf32>\n %h = arith",
        )
    )
    module = placed(text)
    assert all(not isinstance(op.source.owner, frag.FillOp) for op in conversions(module))
    assert sum(isinstance(op, frag.FillOp) for op in module.walk()) == 4


# --- what the user writes -------------------------------------------------------------------------

WRITTEN = """func.func @f(%a: memref<16x16xf32>, %d: memref<16x16xf32>) {{
  %t = frag.load %a[0, 0] : memref<16x16xf32> -> !frag.tile<16x16xf32, {first}>
  %u = frag.convert %t assert_free
    : !frag.tile<16x16xf32, {first}> -> !frag.tile<16x16xf32, {second}>
  frag.store %u, %d[0, 0] : !frag.tile<16x16xf32, {second}>, memref<16x16xf32>
  func.return
}}"""
SUM, LEFT, RIGHT = (f"#frag.mma<m16n8k16.f16, {operand}>" for operand in "cab")


def test_a_conversion_that_is_asserted_to_be_free_is_free() -> None:
    ptx = fragir.compile(WRITTEN.format(first=SUM, second=LEFT)).ptx
    assert not any(word in ptx for word in ("shfl", "shared", "selp"))
    with pytest.raises(FragirError, match=r"asserted to be free, but takes .*shfl.* half cycles"):
        fragir.compile(WRITTEN.format(first=LEFT, second=RIGHT))


def test_two_written_layouts_of_one_site_are_told_with_a_way_out() -> None:
    text = SQUARE.replace(
        "-> !frag.tile<16x16xf32>\n  frag.store %s, %d[0, 0] : !frag.tile<16x16xf32>",
        f"-> !frag.tile<16x16xf32, {LEFT}>\n"
        f"  frag.store %s, %d[0, 0] : !frag.tile<16x16xf32, {LEFT}>",
    )
    text = text.replace(LEFT, '#frag.layout<"lane [16:(1,0) 2:(0,8)] element [8:(0,1)]">')
    with pytest.raises(FragirError) as found:
        fragir.compile(text)
    message = str(found.value)
    assert "%s must have two layouts" in message
    assert "as written of frag.mma" in message
    assert "operand c of frag.mma" in message
    assert "leave the layout of %s out" in message


# --- against all choices --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (SQUARE, "sm_80"),
        (BRANCH, "sm_80"),
        (chain("f8E4M3FN"), "sm_89"),
        (wgmma_chain("f8E4M3FN"), "sm_90a"),
        (wgmma_chain("si8", more=LOADED_BESIDE), "sm_90a"),
        (
            wgmma_chain("f8E5M2", more=PRODUCT, arguments=SUMS),
            "sm_90a",
        ),
    ],
    ids=["square", "branch", "chain", "rows", "rows-loaded", "rows-twice"],
)
def test_no_choice_costs_less_by_exact_prices(text: str, target: str) -> None:
    """Every conversion of every choice planned, and all choices looked at."""
    (function,) = (op for op in fragir.parse(text).ops if isinstance(op, func.FuncOp))
    warps = warps_of(function, "frag.warps")
    threads, count = Threads(target, warps, (1, 1)), threads_of(function)
    tiles = tiles_of(function.walk())
    plain = Relations(function, function.walk(), tiles, threads, count).solve()
    for chosen in infer(function, plain.open, threads, count).chosen:
        tables, domains = chosen.tables, chosen.component.domains
        for edge in tables.sites.edges:
            for have, want in product(domains[edge.source], domains[edge.target]):
                tables.is_impossible(edge.value, have, want)  # plans it
        exact = replace(tables, problem=Problem(), variables={})
        sizes = exact.problem.sizes
        assert prod(sizes) < 1 << 16
        totals = (exact.problem.cost(choice) for choice in product(*map(range, sizes)))
        assert chosen.solution.total == min(totals)


@irdl_op_definition
class RowsOp(IRDLOperation, LayoutInterface):
    """A tile of one dimension less: its layout is the operand's without the columns."""

    name = "test.rows"
    source = operand_def(frag.TileType)
    result = result_def(frag.TileType)

    def propagate(
        self, known: Mapping[SSAValue, Attribute]
    ) -> Iterator[tuple[SSAValue, Attribute]]:
        layout, tile = known.get(self.source), self.source.type
        if isinstance(layout, frag.LayoutAttr) and isinstance(tile, frag.TileType):
            places = layout.layout(*tile.shape)
            axes = (
                Axis(a.name, tuple(Mode(m.size, m.stride[:1]) for m in a.modes))
                for a in places.axes
            )
            yield self.result, frag.ExplicitLayoutAttr(Layout(tuple(axes), ("index",)))


def test_a_reduction_has_the_slice_of_its_operand() -> None:
    """Also where the operand's layout is chosen: it is as the other use wants it."""
    module = fragir.parse(SQUARE)
    load = next(op for op in module.walk() if isinstance(op, frag.LoadOp))
    rows = RowsOp.create(operands=[load.tile], result_types=[frag.TileType((16,), f16)])
    Rewriter.insert_op(rows, InsertPoint.after(load))
    FragPlacePass("sm_80").apply(Context(), module)
    source, result = rows.source.type, rows.result.type
    assert isinstance(source, frag.TileType)
    assert isinstance(result, frag.TileType)
    places, row = source.resolve(), result.resolve()
    for lane, element in product(range(32), range(8)):
        here, there = places(lane=lane, element=element), row(lane=lane, element=element)
        assert here is not None
        assert there is not None
        assert here[0] == there[0]


# --- explanations ---------------------------------------------------------------------------------


def test_each_layout_and_conversion_is_explained() -> None:
    """K and V are written in the plain order, so that the sum has to be moved between lanes."""
    text = written(written(chain("f8E4M3FN", loop=True), "k"), "v")
    found = fragir.explain_layouts(text, target="sm_89")
    by_name = {tile.name: tile for tile in found.tiles}
    assert set(by_name) == {
        f"%{name}" for name in ("zero", "start", "q", "acc", "out", "k", "s", "p", "v", "o")
    }
    assert by_name["%q"].asked_by.startswith("operand a of frag.mma (")
    assert by_name["%v"].asked_by.startswith("as written of frag.load (")
    assert by_name["%p"].layout == by_name["%s"].layout
    (moved,) = found.conversions
    assert (moved.name, moved.trips) == ("%p", 4)
    assert moved.asked_by.startswith("operand a of frag.mma (")
    assert "4 shfl" in moved.steps
    # the wide tile, or V, would be converted instead
    assert moved.total_without is not None
    assert moved.total_without > found.total
    assert found.least
    assert moved.steps in str(found)


def test_what_is_plain_is_explained_too() -> None:
    found = fragir.explain_layouts(EPILOGUE.format(out="f32", cast="", stored="s"))
    assert (found.total, found.conversions) == (0, ())
    assert len(found.tiles) == 4
    assert all("of frag.mma (" in tile.asked_by for tile in found.tiles)
