"""Products whose dimensions are counted in another order: two products in a row without a move."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from xdsl.context import Context

import fragir
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.layout import Layout, compose, identity, inverse
from fragir.layout.reorder import free_order, in_order
from fragir.layout.shared import swizzled_elements
from fragir.passes.frag_place import FragPlacePass

# (instruction, types of A and of the sum, type in IR of both, target)
CHAINS = (
    ("m16n8k32.e4m3", "f8E4M3FN", "f32", "sm_89"),
    ("m16n8k16.e5m2", "f8E5M2", "f32", "sm_89"),
    ("m16n8k32.s8", "si8", "i32", "sm_80"),
    ("m16n8k16.s8", "si8", "i32", "sm_80"),
    ("m16n8k8.tf32", "tf32", "f32", "sm_80"),
    ("m16n8k4.tf32", "tf32", "f32", "sm_80"),
    ("m8n8k4.f64", "f64", "f64", "sm_80"),
    ("m16n8k8.f64", "f64", "f64", "sm_90"),
    ("m16n8k16.f16", "f16", "f32", "sm_80"),
)
M, N, K, D = 64, 32, 32, 16


def fragment(instruction: str, operand: str, order: str = "") -> str:
    words = f', k = "{order}"' if order else ""
    return f"#frag.mma<{instruction}, {operand}, warps = [4, 1]{words}>"


def order_of(instruction: str) -> str:
    """The order of K in which the accumulator is the A operand of the next product."""
    c, a = (frag.MmaFragment(instruction, operand, (4, 1)).layout(M, N) for operand in "ca")
    order = free_order(a, c, 1)
    assert order is not None
    return " ".join(map(str, order.axes[0].modes))


def chain(instruction: str, narrow: str, wide: str, order: str) -> str:
    """O = (A B) V, V's rows in the order that makes the conversion between both a renaming."""
    s = f"!frag.tile<{M}x{N}x{wide}, {fragment(instruction, 'c')}>"
    moved = f"!frag.tile<{M}x{N}x{wide}, {fragment(instruction, 'a', order)}>"
    p = f"!frag.tile<{M}x{N}x{narrow}, {fragment(instruction, 'a', order)}>"
    cast = "" if narrow == wide else f"%p = frag.cast %m : {moved} -> {p}"
    v = f"!frag.tile<{N}x{D}x{narrow}, {fragment(instruction, 'b', order)}>"
    o = f"!frag.tile<{M}x{D}x{wide}>"
    zero = "0.0" if wide[0] == "f" else "0"
    a, b = f"memref<{M}x{K}x{narrow}>", f"memref<{K}x{N}x{narrow}>"
    return f"""
    func.func @k(%a: {a}, %b: {b}, %v: memref<{N}x{D}x{narrow}>, %o: memref<{M}x{D}x{wide}>)
        attributes {{frag.warps = array<i64: 4, 1>}} {{
      %zero = arith.constant {zero} : {wide}
      %0 = frag.load %a[0, 0] : {a} -> !frag.tile<{M}x{K}x{narrow}>
      %1 = frag.load %b[0, 0] : {b} -> !frag.tile<{K}x{N}x{narrow}>
      %2 = frag.fill %zero : {s}
      %3 = frag.mma %0, %1, %2 using "{instruction}"
        : !frag.tile<{M}x{K}x{narrow}>, !frag.tile<{K}x{N}x{narrow}>, {s} -> {s}
      %m = frag.convert %3 : {s} -> {moved}
      {cast}
      %4 = frag.load %v[0, 0] : memref<{N}x{D}x{narrow}> -> {v}
      %5 = frag.fill %zero : {o}
      %6 = frag.mma {"%p" if cast else "%m"}, %4, %5 : {p}, {v}, {o} -> {o}
      frag.store %6, %o[0, 0] : {o}, memref<{M}x{D}x{wide}>
      func.return
    }}"""


def numbers(rng: np.random.Generator, shape: tuple[int, int], narrow: str) -> npt.NDArray[Any]:
    import ml_dtypes

    drawn = rng.integers(-1, 2, shape)
    drawn *= rng.random(shape) < 0.3  # sums stay exact in the narrow types
    types: dict[str, Any] = {
        "f8E4M3FN": ml_dtypes.float8_e4m3fn,
        "f8E5M2": ml_dtypes.float8_e5m2,
        "si8": np.int8,
        "tf32": np.float32,
        "f64": np.float64,
        "f16": np.float16,
    }
    return drawn.astype(types[narrow])


@pytest.mark.parametrize(("instruction", "narrow", "wide", "target"), CHAINS)
def test_a_product_of_a_product_moves_nothing_between_lanes(
    instruction: str, narrow: str, wide: str, target: str
) -> None:
    kernel = fragir.compile(chain(instruction, narrow, wide, order_of(instruction)), target=target)
    for word in ("shfl", "st.shared", "bar.sync", "movmatrix"):
        assert word not in kernel.ptx
    rng = np.random.default_rng(7)
    a, b, v = (numbers(rng, s, narrow) for s in ((M, K), (K, N), (N, D)))
    sums = {"f32": np.float32, "i32": np.int32, "f64": np.float64}[wide]
    o = np.zeros((M, D), sums)
    kernel(a, b, v, o, on="emulator")
    first = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(first).max() <= 8  # exact in every type
    np.testing.assert_array_equal(o, first @ v.astype(np.float64))


def test_an_order_is_the_lanes_of_the_operand_in_those_of_the_sum() -> None:
    for instruction, *_ in CHAINS:
        c, a = (frag.MmaFragment(instruction, operand, (4, 1)).layout(M, N) for operand in "ca")
        order = free_order(a, c, 1)
        assert order is not None
        ordered = in_order(a, 1, order)
        for warp in range(4):
            for lane in range(32):
                held = {ordered(warp=warp, lane=lane, element=e) for e in range(16)}
                assert held == {c(warp=warp, lane=lane, element=e) for e in range(16)}


KEYS, DEPTH = 64, 64


def warpgroup_chain(order: str, lies: Layout) -> str:
    """O = (Q K^T) V by wgmma; S has its columns (the keys) in an order, K's rows lie so."""
    s = f"#frag.mma<m64n{KEYS}k32.e4m3, c{order}>"
    a = f"#frag.mma<m64n{DEPTH}k32.e4m3, a>"
    qs = f"memref<{M}x{DEPTH}xf8E4M3FN, #frag.shared<swizzle = 64>>"
    ks = f'memref<{KEYS}x{DEPTH}xf8E4M3FN, #frag.layout<"{lies}">, #frag.shared>'
    vs = f"memref<{DEPTH}x{KEYS}xf8E4M3FN, #frag.shared<swizzle = 64>>"
    q, k, v = (m.split(", #")[0] + ">" for m in (qs, ks, vs))
    tile, o = f"!frag.tile<{M}x{KEYS}xf32", f"!frag.tile<{M}x{DEPTH}xf32>"
    return f"""
    func.func @k(%q: {q}, %k: {k}, %v: {v}, %o: memref<{M}x{DEPTH}xf32>) {{
      %qs = memref.alloc() : {qs}
      %ks = memref.alloc() : {ks}
      %vs = memref.alloc() : {vs}
      frag.copy async %q[0, 0] to %qs[] : {q} to {qs}
      frag.copy async %k[0, 0] to %ks[] : {k} to {ks}
      frag.copy async %v[0, 0] to %vs[] : {v} to {vs}
      frag.commit
      frag.wait 0
      frag.barrier
      %zero = arith.constant 0.0 : f32
      %0 = frag.fill %zero : {tile}, {s}>
      %s = frag.wgmma %qs, %ks transposed, %0 : {qs}, {ks}, {tile}, {s}>
      %m = frag.convert %s assert_free : {tile}, {s}> -> {tile}, {a}>
      %p = frag.cast %m : {tile}, {a}> -> !frag.tile<{M}x{KEYS}xf8E4M3FN, {a}>
      %1 = frag.fill %zero : {o}
      %2 = frag.wgmma %p, %vs transposed, %1 : !frag.tile<{M}x{KEYS}xf8E4M3FN, {a}>, {vs}, {o}
      frag.store %2, %o[0, 0] : {o}, memref<{M}x{DEPTH}xf32>
      func.return
    }}"""


def keys_in_order() -> tuple[str, Layout]:
    """The order of keys in which S is the A operand, and where K's rows lie for it."""
    c, a = (frag.MmaFragment(f"m64n{KEYS}k32.e4m3", operand).layout(M, KEYS) for operand in "ca")
    order = free_order(a, c, 1)
    assert order is not None
    order = inverse(order)
    rows = in_order(identity({"row": KEYS, "col": DEPTH}), 0, order)
    lies = compose(swizzled_elements((KEYS, DEPTH), 8, 64), inverse(rows))
    return f', n = "{" ".join(map(str, order.axes[0].modes))}"', lies


def test_rows_of_shared_memory_in_the_order_of_the_columns_of_sums() -> None:
    """Permuting the keys makes S the A operand of the next product, V as it is."""
    kernel = fragir.compile(warpgroup_chain(*keys_in_order()), target="sm_90a")
    assert kernel.ptx.count("wgmma.mma_async") == 4
    for word in ("shfl", "stmatrix", "selp"):
        assert word not in kernel.ptx
    rng = np.random.default_rng(7)
    q, k, v = (
        numbers(rng, shape, "f8E4M3FN") for shape in ((M, DEPTH), (KEYS, DEPTH), (DEPTH, KEYS))
    )
    o = np.zeros((M, DEPTH), np.float32)
    kernel(q, k, v, o, on="emulator")
    first = q.astype(np.float64) @ k.astype(np.float64).T
    assert np.abs(first).max() <= 16
    np.testing.assert_array_equal(o, first @ v.astype(np.float64).T)


def test_memory_in_another_order_than_its_product_is_refused() -> None:
    order, lies = keys_in_order()
    with pytest.raises(FragirError, match="operand b of wgmma lies as"):
        fragir.compile(warpgroup_chain("", lies).replace(" assert_free", ""), target="sm_90a")
    plain = swizzled_elements((KEYS, DEPTH), 8, 64)
    with pytest.raises(FragirError, match="operand b of wgmma lies as"):
        fragir.compile(warpgroup_chain(order, plain), target="sm_90a")


REFUSED = {
    '#frag.mma<m16n8k16.f16, a, k = "2:1 2:1">': "does not name every k",
    '#frag.mma<m16n8k16.f16, a, n = "2:1">': "operand a has no dimension n",
    '#frag.mma<m16n8k16.f16, a, k = "3:1">': "has the extent 16, which its order",
    '#frag.mma<m16n8k16.f16, a, k = "2:1", k = "2:1">': "each once",
    '#frag.mma<m16n8k16.f16, a, k = "2:(1,0)">': "2:(1,0)",
}


@pytest.mark.parametrize("layout", sorted(REFUSED))
def test_what_is_no_order_is_refused(layout: str) -> None:
    with pytest.raises(FragirError, match=REFUSED[layout].replace("(", r"\(").replace(")", r"\)")):
        fragir.compile(
            f"""func.func @k(%a: memref<16x16xf16>) {{
              %0 = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16, {layout}>
              frag.store %0, %a[0, 0] : !frag.tile<16x16xf16, {layout}>, memref<16x16xf16>
              func.return
            }}""",
            target="sm_80",
        )


def test_orders_print_as_they_are_read() -> None:
    fragment = frag.MmaFragment(
        "m16n8k32.s8", "a", (2, 2), (("k", Layout.parse("k [2:1 2:8 4:2] dims (k)")),)
    )
    attribute = frag.MmaLayoutAttr(fragment)
    text = '#frag.mma<m16n8k32.s8, a, warps = [2, 2], k = "2:1 2:8 4:2">'
    assert str(attribute) == text
    tile = f"!frag.tile<32x32xsi8, {text}>"
    module = fragir.parse(
        f"""func.func @k(%a: memref<32x32xsi8>) {{
          %0 = frag.load %a[0, 0] : memref<32x32xsi8> -> {tile}
          func.return
        }}"""
    )
    assert tile in str(module)


def test_operands_of_a_product_share_their_order() -> None:
    """One that is placed in another order is converted to it, and the product is the same."""
    text = chain("m16n8k32.s8", "si8", "i32", order_of("m16n8k32.s8"))
    ordered, plain = (
        fragment("m16n8k32.s8", "b", order) for order in (order_of("m16n8k32.s8"), "")
    )
    other = text.replace(ordered, plain)
    assert other != text
    placed = fragir.parse(other)
    FragPlacePass("sm_80").apply(Context(), placed)
    (last,) = [op for op in placed.walk() if isinstance(op, frag.ConvertOp)][-1:]
    assert plain in str(last.source.type)
    assert ordered in str(last.result.type)
    rng = np.random.default_rng(7)
    a, b, v = (numbers(rng, s, "si8") for s in ((M, K), (K, N), (N, D)))
    o = np.zeros((M, D), np.int32)
    fragir.compile(other, target="sm_80")(a, b, v, o, on="emulator")
    np.testing.assert_array_equal(o, a.astype(int) @ b.astype(int) @ v.astype(int))
