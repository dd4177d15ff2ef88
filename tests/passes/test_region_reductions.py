"""Reductions by a region: pairs along every dimension of any tile, sums that round, places."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fragir
from fragir import Scalar, f16, f32, s32
from fragir.builder.kernel import KernelBuilder
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.reference import evaluate
from tests.passes.test_ranks import SHAPES, WARPS, layouts, tile
from tests.passes.test_reductions import MIXED, buffer, divides, run
from tests.properties.judge import examples, judge

LARGEST = """
      ^bb0(%v: f32, %i: i32, %w: f32, %j: i32):
        %more = arith.cmpf ogt, %w, %v : f32
        %same = arith.cmpf oeq, %w, %v : f32
        %first = arith.cmpi slt, %j, %i : i32
        %tie = arith.andi %same, %first : i1
        %other = arith.ori %more, %tie : i1
        %r = arith.select %other, %w, %v : f32
        %s = arith.select %other, %j, %i : i32
        frag.yield %r, %s : f32, i32"""


def pairs(shape: Sequence[int], dim: int, warps: int, layout: Layout | None) -> str:
    """The largest along a dimension and its place, as two tiles."""
    rest = [*shape[:dim], *shape[dim + 1 :]]
    types = [tile(shape, element, layout) for element in ("f32", "i32")]
    small = [tile(rest, element, None) if rest else element for element in ("f32", "i32")]
    at, to = (", ".join("0" for _ in sizes) for sizes in (shape, rest or [1]))
    x = buffer(shape, "f32")
    outs = [buffer(rest or [1], element) for element in ("f32", "i32")]
    stored = "\n".join(
        f"frag.store %{name}, %out{name}[{to}] : {type_}, {memory}"
        if rest
        else f"%t{name} = frag.fill %{name} : !frag.tile<1x{type_}>\n"
        f"frag.store %t{name}, %out{name}[0] : !frag.tile<1x{type_}>, {memory}"
        for name, type_, memory in zip("mp", small, outs, strict=True)
    )
    return f"""
    func.func @k(%x: {x}, %outm: {outs[0]}, %outp: {outs[1]})
        attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %a = frag.load %x[{at}] : {x} -> {types[0]}
      %c = frag.iota dim {dim} : {types[1]}
      %m, %p = frag.reduce_by dim {dim} %a, %c
          : {", ".join(types)} -> {", ".join(small)} {{{LARGEST}
      }}
      {stored}
      func.return
    }}
    """


@examples(6)
@given(st.data())
def test_pairs_of_every_layout(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    dim = data.draw(st.integers(0, len(shape) - 1))
    warps = data.draw(st.sampled_from(WARPS))
    layout = data.draw(layouts(shape, warps))
    text = pairs(shape, dim, warps, layout)
    if layout is None and not divides(shape, warps):
        with pytest.raises(FragirError, match="threads do not divide"):
            fragir.compile(text, target="sm_80")
        return
    x = np.random.default_rng(dim).integers(-3, 4, shape).astype(np.float32)
    m = np.zeros(np.asarray(x.max(dim)).shape or (1,), np.float32)
    p = np.zeros(m.shape, np.int32)
    run(text, warps, x, m, p, assembled=False)
    np.testing.assert_array_equal(m, x.max(dim).reshape(m.shape))
    np.testing.assert_array_equal(p, x.argmax(dim).reshape(m.shape))


@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("layout", MIXED[1:2])
def test_digits_of_several_dimensions(layout: str, dim: int) -> None:
    x = np.random.default_rng(5).integers(-30, 40, (64, 32)).astype(np.float32)
    m, p = np.zeros(x.shape[1 - dim], np.float32), np.zeros(x.shape[1 - dim], np.int32)
    run(pairs(x.shape, dim, 4, Layout.parse(layout)), 4, x, m, p)
    np.testing.assert_array_equal(m, x.max(dim))
    np.testing.assert_array_equal(p, x.argmax(dim))


def moments(warps: tuple[int, int]) -> KernelBuilder:
    """Count, mean and sum of squared differences of every row (Welford, Chan)."""
    with fragir.kernel("moments", warps=warps) as k:
        x = k.memory("x", f16, (16, 96))
        mean, spread = (k.memory(name, f32, (16,)) for name in ("mean", "spread"))
        t = k.load(x, (0, 0), shape=(16, 96)).cast(f32)

        def both(
            n: Scalar, a: Scalar, s: Scalar, m: Scalar, b: Scalar, t: Scalar
        ) -> tuple[Scalar, Scalar, Scalar]:
            count, apart = n + m, b - a
            share = m / count
            return count, a + apart * share, s + t + apart * apart * n * share

        one, zero = k.fill(1, t.shape, f32), k.fill(0, t.shape, f32)
        _, a, s = k.reduce([one, t, zero], 1, both)
        k.store(a, mean, (0,))
        k.store(s, spread, (0,))
    return k


@pytest.mark.parametrize("warps", [(1, 1), (1, 3)])
def test_moments_within_the_bound(warps: tuple[int, int]) -> None:
    """What is not symmetric to the last bit is the same in all lanes that share a row: no check
    finds two values written to one place."""
    k = moments(warps)
    judge(k.mlir, "sm_80")
    x = np.random.default_rng(2).standard_normal((16, 96)).astype(np.float16)
    mean, spread = np.zeros(16, np.float32), np.zeros(16, np.float32)
    assert k.compile()(x, mean, spread, on="emulator", check=True).findings == []
    wide = x.astype(np.float64)
    np.testing.assert_allclose(mean, wide.mean(1), atol=1e-6)
    np.testing.assert_allclose(spread, wide.var(1) * 96, rtol=1e-5)


def test_bounds_are_tight_and_hold_for_any_order() -> None:
    """Exact where nothing rounds; else near the error of a tree, not of a chain."""
    with fragir.kernel("sums") as k:
        x, y = k.memory("x", f32, (8, 256)), k.memory("y", f32, (8,))
        t = k.load(x, (0, 0), shape=(8, 256))
        (found,) = k.reduce([t], 1, operator.add)
        k.store(found, y, (0,))
    function = next(op for op in fragir.parse(k.mlir).ops if op.name == "func.func")
    rng = np.random.default_rng(3)
    for source, exact in (
        (rng.integers(-9, 9, (8, 256)), True),
        (rng.standard_normal((8, 256)), False),
    ):
        given_ = source.astype(np.float32)
        results = evaluate(function, [given_, np.zeros(8, np.float32)], target="sm_80")  # pyright: ignore[reportArgumentType]
        reference = results[1]
        assert reference is not None
        wide = given_.astype(np.float64)
        assert (reference.bound == 0).all() == exact
        assert (np.abs(reference.value - wide.sum(1)) <= reference.bound).all()
        # a tree: some 9 levels, each of half a unit of 2^-24 of what is added, two trees apart
        assert (reference.bound <= 2 * 10 * 2.0**-24 * np.abs(wide).sum(1)).all()
        in_a_chain = np.add.accumulate(given_[:, ::-1], axis=1)[:, -1]
        assert (np.abs(in_a_chain - reference.value) <= 8 * reference.bound).all()


def test_scalars_and_mistakes() -> None:
    with fragir.kernel("k") as k:
        x, y = k.memory("x", s32, (64,)), k.memory("y", s32, (64,))
        t = k.load(x, (0,), shape=(64,))

        def ends(a: Scalar, b: Scalar, c: Scalar, d: Scalar) -> tuple[Scalar, Scalar]:
            return k.min(a, c), k.max(b, d)

        low, high = k.reduce([t, t], 0, ends)
        assert isinstance(low, Scalar)
        k.store(t - low + high, y, (0,))
        with pytest.raises(FragirError, match="a scalar for each of 2 tiles"):
            k.reduce([t, t], 0, lambda *x: x[0])
        with pytest.raises(FragirError, match="is called with 2 scalars"):
            k.reduce([t], 0, operator.neg)
        with pytest.raises(FragirError, match="differ in shape"):
            k.reduce([t, t[0:32]], 0, ends)
        with pytest.raises(FragirError, match="are no tiles"):
            k.reduce([], 0, lambda: ())
    source = np.random.default_rng(1).integers(-99, 99, 64).astype(np.int32)
    target = np.zeros_like(source)
    assert k.compile()(source, target, on="emulator", check=True).findings == []
    np.testing.assert_array_equal(target, source - source.min() + source.max())
    assert frag.ReduceByOp.name in k.mlir
