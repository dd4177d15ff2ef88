"""(Q K^T) V by wgmma with no order written: S's columns are K's rows, which lie as they suit."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from benchmarks.sweeps import row_orders
from benchmarks.sweeps.row_orders import MOVES, TYPES, M, by_warps, chain, drawn, shared
from fragir.dialects import frag
from fragir.dialects.frag.row_orders import row_order, tile_in_rows_order
from fragir.errors import FragirError
from fragir.layout import Layout


def result(text: str, narrow: str, keys: int, depth: int, *more: npt.NDArray[Any]) -> str:
    """The PTX, after its result has been compared, and what is stored besides: sums or K."""
    kernel = fragir.compile(text, target="sm_90a")
    rng = np.random.default_rng(7)
    q, k, v = (drawn(s, narrow, rng) for s in ((M, depth), (keys, depth), (depth, keys)))
    o = np.zeros((M, depth), np.int32 if narrow == "si8" else np.float32)
    kernel(q, k, v, o, *more, on="emulator")
    first = q.astype(float) @ k.astype(float).T
    assert 0 < np.abs(first).max() <= 8
    np.testing.assert_array_equal(o, first @ v.astype(float).T)
    for array in more:
        np.testing.assert_array_equal(array, first if array.dtype == o.dtype else k)
    return kernel.ptx


def orders(text: str) -> dict[str, tuple[str, str]]:
    """The order wanted of each memory's rows, and why it is not to be had."""
    told = fragir.explain_layouts(text, target="sm_90a").memories
    return {memory.name: (memory.rows, memory.kept) for memory in told}


@pytest.mark.parametrize("narrow", sorted(TYPES))
@pytest.mark.parametrize("keys", [32, 64, 96, 160])
def test_a_sum_is_the_operand_of_the_next_product(narrow: str, keys: int) -> None:
    depth = 32 // TYPES[narrow][1]
    text = chain(narrow, keys, depth)
    ptx = result(text, narrow, keys, depth)
    assert not any(word in ptx for word in MOVES)
    # the cast packs four s32 into a word by three
    assert ptx.count("prmt") == (keys // 8 * 3 if narrow == "si8" else 0)
    (conversion,) = (
        c for c in fragir.explain_layouts(text, target="sm_90a").conversions if c.name == "%s"
    )
    assert (conversion.steps, conversion.cost) == ("registers renamed", 0)
    assert orders(text) == {"%ks": ("2:4 4:1" if narrow == "tf32" else "2:1 4:4 2:2", "")}


def test_half_precision_needs_no_order() -> None:
    text = chain("f8E4M3FN").replace("f8E4M3FN", "f16").replace("swizzle = 64", "swizzle = 128")
    assert not any(word in fragir.compile(text, target="sm_90a").ptx for word in MOVES)
    assert orders(text) == {}


@pytest.mark.parametrize("seed", range(6))
def test_any_shape_is_free(seed: int) -> None:
    """`fragir sweep row-orders` runs many more."""
    assert row_orders.check(row_orders.trial(Random(seed)), seed) == []


LEFT = "#frag.mma<m64n64k32.e4m3, a>"
LIES = "row [2:64 4:^144 8:512] col [64:1]"


@pytest.mark.parametrize("convert", ["open", LEFT])
def test_a_written_conversion_is_free(convert: str) -> None:
    ptx = result(chain("f8E4M3FN", convert=convert), "f8E4M3FN", 64, 64)
    assert not any(word in ptx for word in MOVES)


def test_memory_with_a_written_layout_keeps_it_and_is_named() -> None:
    text = chain("f8E4M3FN", k_lies=LIES)
    found = fragir.explain_layouts(text, target="sm_90a")
    (memory,) = found.memories
    assert (memory.name, memory.kept) == ("%ks", "its layout is written")
    assert "as in operand a of frag.wgmma" in memory.asked_by
    assert "%ks" in str(found)
    assert "rows as they are: its layout is written" in str(found)
    (moved,) = found.conversions
    assert (moved.name, "8 shfl" in moved.steps) == ("%p", True)
    assert "shfl" in result(text, "f8E4M3FN", 64, 64)
    with pytest.raises(FragirError, match=r"asserted to be free, .* %ks .* its layout is written"):
        fragir.compile(chain("f8E4M3FN", k_lies=LIES, convert=LEFT), target="sm_90a")


WHOLE = """
      %e = frag.load %ks[0, 0] : {ks} -> !frag.tile<64x64xf8E4M3FN>
      frag.store %e, %out[0, 0] : !frag.tile<64x64xf8E4M3FN>, memref<64x64xf8E4M3FN>"""
SOMEWHERE = """
      %j = frag.block_id x
      %e = frag.load %ks[%j, 0] : {ks} -> !frag.tile<64x64xf8E4M3FN>
      frag.store %e, %out[0, 0] : !frag.tile<64x64xf8E4M3FN>, memref<64x64xf8E4M3FN>"""
PRODUCT = """
      %t = frag.wgmma %qs, %ks transposed, %c : {ks}, {ks}, {sums}
      frag.store %t, %out[0, 0] : {sums}, memref<64x64xf32>"""
LOADED_BESIDE = """
      %e = frag.load %ks[0, 0] : {ks} -> !frag.tile<64x64xsi8>
      frag.store %e, %v[0, 0] : !frag.tile<64x64xsi8>, memref<64x64xsi8>"""
LEFT_SIDE = """
      %t = frag.wgmma %ks, %qs transposed, %c : {ks}, {ks}, {sums}"""


def test_a_load_of_memory_in_another_order_reads_the_same() -> None:
    text = chain("f8E4M3FN", more=WHOLE, arguments=", %out: memref<64x64xf8E4M3FN>")
    ptx = result(text, "f8E4M3FN", 64, 64, drawn((64, 64), "f8E4M3FN", np.random.default_rng(0)))
    assert "shfl" not in ptx
    assert orders(text) == {"%ks": ("2:1 4:4 2:2", "")}


SUMS = ", %out: memref<64x64xf32>"


def test_two_products_read_one_memory() -> None:
    """The sum of the other is stored: its columns are in the same order, or nobody's are."""
    text = chain("f8E4M3FN", more=PRODUCT, arguments=SUMS)
    result(text, "f8E4M3FN", 64, 64, np.zeros((64, 64), np.float32))
    assert set(orders(text)) == {"%ks"}


@pytest.mark.parametrize(
    ("more", "arguments", "why"),
    [
        (SOMEWHERE, ", %out: memref<64x64xf8E4M3FN>", "frag.load takes it as it lies"),
        (LEFT_SIDE, "", "frag.wgmma takes it as it lies"),
    ],
    ids=["somewhere", "left"],
)
def test_who_needs_rows_as_they_are_keeps_them(more: str, arguments: str, why: str) -> None:
    text = chain("f8E4M3FN", more=more, arguments=arguments)
    assert orders(text)["%ks"] == ("2:1 4:4 2:2", why)
    assert "shfl" in fragir.compile(text, target="sm_90a").ptx


MAPPED = """%h = frag.map %s : {t} -> {t} {{
      ^bb0(%x: f32):
        %y = arith.addf %x, %x : f32
        frag.yield %y : f32
      }}"""


def ring(narrow: str, keys: int, depth: int, blocks: int) -> str:
    """Sums over blocks of keys in a loop, two of them in shared memory in turn."""
    q, k, v = (shared(*s, narrow) for s in ((M, depth), (keys, depth), (depth, keys)))
    ks, vs = (m.replace("memref<", "memref<2x") for m in (k, v))
    gq, gk, gv = (
        f"memref<{rows}x{cols}x{narrow}>"
        for rows, cols in ((M, depth), (keys * blocks, depth), (depth, keys * blocks))
    )
    s, p = f"!frag.tile<{M}x{keys}xf32>", f"!frag.tile<{M}x{keys}x{narrow}>"
    o = f"!frag.tile<{M}x{depth}xf32>"
    return f"""
    func.func @attention(%q: {gq}, %k: {gk}, %v: {gv}, %o: memref<{M}x{depth}xf32>) {{
      %qs = memref.alloc() : {q}
      %ks = memref.alloc() : {ks}
      %vs = memref.alloc() : {vs}
      %i0 = arith.constant 0 : index
      %i1 = arith.constant 1 : index
      %i2 = arith.constant 2 : index
      %n = arith.constant {keys} : index
      %end = arith.constant {keys * blocks} : index
      frag.copy async %q[0, 0] to %qs[] : {gq} to {q}
      %zero = arith.constant 0.0 : f32
      %c = frag.fill %zero : {s}
      %start = frag.fill %zero : {o}
      %r = scf.for %i = %i0 to %end step %n iter_args(%acc = %start) -> ({o}) {{
        %t = arith.divui %i, %n : index
        %slot = arith.remui %t, %i2 : index
        frag.copy async %k[%i, 0] to %ks[%slot] : {gk} to {ks}
        frag.copy async %v[0, %i] to %vs[%slot] : {gv} to {vs}
        frag.commit
        frag.wait 0
        frag.barrier
        %kv = frag.view %ks[%slot] : {ks} -> {k}
        %vv = frag.view %vs[%slot] : {vs} -> {v}
        %s = frag.wgmma %qs, %kv transposed, %c : {q}, {k}, {s}
        {MAPPED.format(t=s)}
        %p = frag.cast %h : {s} -> {p}
        %d = frag.wgmma %p, %vv transposed, %acc : {p}, {v}, {o}
        scf.yield %d : {o}
      }}
      frag.store %r, %o[0, 0] : {o}, memref<{M}x{depth}xf32>
      func.return
    }}"""


@pytest.mark.parametrize(("narrow", "keys"), [("f8E4M3FN", 64), ("tf32", 32)])
def test_through_a_ring_a_loop_and_maps(narrow: str, keys: int) -> None:
    depth, blocks = 32, 3
    text = ring(narrow, keys, depth, blocks)
    kernel = fragir.compile(text, target="sm_90a")
    assert not any(word in kernel.ptx for word in MOVES)
    rng = np.random.default_rng(7)
    many = keys * blocks
    q, k, v = (drawn(s, narrow, rng) for s in ((M, depth), (many, depth), (depth, many)))
    o = np.zeros((M, depth), np.float32)
    kernel(q, k, v, o, on="emulator")
    np.testing.assert_array_equal(o, 2 * (q.astype(float) @ k.astype(float).T) @ v.astype(float).T)


def test_what_is_placed_is_read_as_it_is_printed() -> None:
    module = fragir.parse(ring("f8E4M3FN", 64, 64, 2))
    placed = str(fragir.lower(module, to="placed", target="sm_90a"))
    assert "matrix [2:4096] row [2:64 2:512 4:^144 4:1024] col [64:1]" in placed
    assert str(fragir.parse(placed)) == placed


def test_a_tile_in_an_order_is_one_without_in_memory_that_has_it() -> None:
    """Where each lane's elements lie, row by row, is the same both ways."""
    order = row_order(Layout.parse("n [2:1 4:4 2:2] dims (n)"), 64)
    plain = frag.MmaFragment("m16n8k32.e4m3", "b", (4, 1)).layout(64, 32)
    tile = frag.MmaFragment("m16n8k32.e4m3", "a", (4, 1)).layout(64, 32)
    assert tile.dims == plain.dims
    found = tile_in_rows_order(tile, 0, 0, order.data)
    assert found is not None
    for lane in range(32):
        for element in range(16):
            slot = {"warp": 1, "lane": lane, "element": element}
            there, here = tile(**slot), found(**slot)
            assert there is not None
            assert here is not None
            assert (order.data(row=here[0]), here[1]) == (there[:1], there[1])
    assert tile_in_rows_order(tile, 0, 8, order.data) is None  # begins inside of an order
    narrow = frag.MmaFragment("m16n8k32.e4m3", "b", (1, 1)).layout(32, 8)
    assert tile_in_rows_order(narrow, 1, 0, order.data) is None


@pytest.mark.parametrize("narrow", sorted(TYPES))
def test_rows_follow_what_matrices_are_loaded_in(narrow: str) -> None:
    """K by ldmatrix with its N in another order, its rows lying so; V as it is."""
    keys, depth = 32, 32
    text = by_warps(narrow, keys, depth)
    assert set(orders(text)) == {"%ks"}
    ptx = result(text, narrow, keys, depth)
    assert not any(word in ptx for word in (*MOVES, "ld.shared"))
    assert ptx.count("ldmatrix") > 0
