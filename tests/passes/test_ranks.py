"""Tiles of one to four dimensions, and of i1: loaded, computed with, converted and stored."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
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
from fragir.layout import Axis, Layout, Mode
from fragir.layout.distribution import dims_of
from fragir.passes.placing.placement import default_layout

WARPS = (1, 2, 3, 4)


@st.composite
def layouts(draw: st.DrawFn, shape: Sequence[int], warps: int) -> Layout | None:
    """A layout of all elements over so many warps, with digits of every dimension anywhere; lanes
    that find nothing left hold copies. None: the compiler's choice."""
    if draw(st.booleans()):
        return None
    left, steps = list(shape), [1] * len(shape)
    axes: dict[str, list[Mode]] = {"element": [], "lane": [], "warp": []}
    rooms = {"lane": 32, "warp": warps}
    while any(n > 1 for n in left):
        dim = draw(st.sampled_from([d for d, n in enumerate(left) if n > 1]))
        factor = next(p for p in range(2, left[dim] + 1) if left[dim] % p == 0)
        fitting = [name for name, room in rooms.items() if room % factor == 0]
        axis = draw(st.sampled_from(["element", *fitting]))
        stride = tuple(steps[dim] * (d == dim) for d in range(len(shape)))
        axes[axis].append(Mode(factor, stride))
        if axis != "element":
            rooms[axis] //= factor
        left[dim] //= factor
        steps[dim] *= factor
    for name, room in rooms.items():
        if room > 1:
            axes[name].append(Mode(room, (0,) * len(shape)))
    order = ("warp", "lane", "element")
    return Layout(tuple(Axis(n, tuple(axes[n])) for n in order), dims_of(len(shape)))


SHAPES = (
    (96,), (256,), (7,), (64, 6), (16, 24), (2, 8, 32), (3, 4, 24), (2, 2, 4, 16), (2, 1, 3, 32),
)  # fmt: skip


def tile(shape: Sequence[int], element: str, layout: Layout | None) -> str:
    size = "x".join(map(str, shape))
    return f"!frag.tile<{size}x{element}" + (f', #frag.layout<"{layout}">>' if layout else ">")


def program(
    shape: Sequence[int], memory: Sequence[int], warps: int, first: Layout | None,
    second: Layout | None, at: Sequence[int], masked: bool,
) -> str:  # fmt: skip
    """y = x > 0 ? x : 3 x, the mask made in one layout and used in another, carried by a loop."""
    buffer = f"memref<{'x'.join(map(str, memory))}xf32>"
    value, mask = tile(shape, "f32", first), tile(shape, "i1", first)
    other, moved = tile(shape, "f32", second), tile(shape, "i1", second)
    index, how = ", ".join(map(str, at)), " masked" if masked else ""
    return f"""
    func.func @k(%x: {buffer}, %y: {buffer}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c3 = arith.constant 3 : index
      %a = frag.load %x[{index}]{how} : {buffer} -> {value}
      %p = frag.map %a : {value} -> {mask} {{
      ^bb0(%v: f32):
        %zero = arith.constant 0.0 : f32
        %q = arith.cmpf ogt, %v, %zero : f32
        frag.yield %q : i1
      }}
      %b = frag.convert %a : {value} -> {other}
      %start = frag.convert %p : {mask} -> {moved}
      %r, %end = scf.for %i = %c0 to %c3 step %c1 iter_args(%s = %b, %m = %start)
          -> ({other}, {moved}) {{
        %n = frag.map %s, %m, %b : {other}, {moved}, {other} -> {other} {{
        ^bb0(%v: f32, %q: i1, %w: f32):
          %sum = arith.addf %v, %w : f32
          %k = arith.select %q, %v, %sum : f32
          frag.yield %k : f32
        }}
        %same = frag.map %m : {moved} -> {moved} {{
        ^bb0(%q: i1):
          %true = arith.constant true
          %t = arith.andi %q, %true : i1
          frag.yield %t : i1
        }}
        scf.yield %n, %same : {other}, {moved}
      }}
      frag.store %r, %y[{index}]{how} : {other}, {buffer}
      func.return
    }}
    """


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_rank(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from(SHAPES))
    warps = data.draw(st.sampled_from(WARPS))
    first, second = (data.draw(layouts(shape, warps)) for _ in range(2))
    masked = data.draw(st.booleans())
    extra = data.draw(st.integers(0, 1))  # leading dimensions of the memory
    memory = [2] * extra + [n + data.draw(st.integers(-n + 1 if masked else 0, 3)) for n in shape]
    at = [1] * extra + [
        data.draw(st.integers(0, max(0, m - n))) for m, n in zip(memory[extra:], shape, strict=True)
    ]
    text = program(shape, memory, warps, first, second, at, masked)
    if None in (first, second) and prod(shape) >= 32 * warps:
        try:
            default_layout(frag.TileType(shape, f32), 32 * warps)
        except FragirError:
            with pytest.raises(FragirError, match="threads do not divide"):
                fragir.compile(text, target="sm_80")
            return
    kernel = fragir.compile(text, target="sm_80")
    x = np.random.default_rng(prod(memory)).integers(-9, 9, memory).astype(np.float32)
    y = np.full_like(x, 77)
    report = kernel.launch((1,), (32 * warps,), x, y, on="emulator", check=True)
    assert report.findings == []
    inside = tuple(slice(i, i + n) for i, n in zip(at, [1] * extra + list(shape), strict=True))
    wanted: npt.NDArray[np.float32] = np.full_like(x, 77)
    wanted[inside] = np.where(x[inside] > 0, x[inside], 4 * x[inside])
    assert (y == wanted).all()


#: How a truth value becomes a number: the operation, the type, and what true is.
NUMBERS = [
    ("arith.extui", "i32", 1),
    ("arith.extui", "i8", 1),
    ("arith.extsi", "i32", -1),
    ("arith.extsi", "i8", -1),
    ("arith.uitofp", "f32", 1),
    ("arith.uitofp", "bf16", 1),
    ("arith.uitofp", "f64", 1),
    ("arith.sitofp", "f16", -1),
    ("arith.sitofp", "f64", -1),
    *(("frag.cast", t, 1) for t in ("f16", "tf32", "f64", "f8E4M3FN", "si8", "ui8", "i32")),
]
#: Type -> how its bits are read here.
READ: dict[str, Any] = {
    **{"i32": np.int32, "i8": np.int8, "si8": np.int8, "ui8": np.uint8, "f8E4M3FN": np.uint8},
    **{"f16": np.float16, "bf16": np.uint16, "tf32": np.float32, "f32": np.float32},
    "f64": np.float64,
}
PATTERNS = {"bf16": 0x3F80, "f8E4M3FN": 0x38}


@pytest.mark.parametrize(("how", "type_", "true"), NUMBERS)
def test_truth_values_as_numbers(how: str, type_: str, true: int) -> None:
    if how == "frag.cast":
        made = f"%b = frag.cast %p : !frag.tile<96xi1> -> !frag.tile<96x{type_}>"
    else:
        made = f"""%b = frag.map %p : !frag.tile<96xi1> -> !frag.tile<96x{type_}> {{
        ^bb0(%t: i1):
          %r = {how} %t : i1 to {type_}
          frag.yield %r : {type_}
        }}"""
    text = f"""
    func.func @k(%x: memref<96xf32>, %y: memref<96x{type_}>) {{
      %a = frag.load %x[0] : memref<96xf32> -> !frag.tile<96xf32>
      %p = frag.map %a : !frag.tile<96xf32> -> !frag.tile<96xi1> {{
      ^bb0(%v: f32):
        %zero = arith.constant 0.0 : f32
        %q = arith.cmpf ogt, %v, %zero : f32
        frag.yield %q : i1
      }}
      {made}
      frag.store %b, %y[0] : !frag.tile<96x{type_}>, memref<96x{type_}>
      func.return
    }}
    """
    x = np.random.default_rng(3).integers(-2, 3, 96).astype(np.float32)
    y = np.full(96, 7, READ[type_])
    fragir.compile(text, target="sm_90a").launch((1,), (32,), x, y, on="emulator", check=True)
    assert (y == np.where(x > 0, PATTERNS.get(type_, true), 0)).all()


def test_the_lowest_bit_is_a_truth_value() -> None:
    text = """
    func.func @k(%x: memref<64xi32>, %y: memref<64xi32>) {
      %a = frag.load %x[0] : memref<64xi32> -> !frag.tile<64xi32>
      %b = frag.map %a : !frag.tile<64xi32> -> !frag.tile<64xi32> {
      ^bb0(%v: i32):
        %p = arith.trunci %v : i32 to i1
        %ten = arith.constant 10 : i32
        %r = arith.select %p, %ten, %v : i32
        frag.yield %r : i32
      }
      frag.store %b, %y[0] : !frag.tile<64xi32>, memref<64xi32>
      func.return
    }
    """
    x, y = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    fragir.compile(text, target="sm_80").launch((1,), (32,), x, y, on="emulator", check=True)
    assert (y == np.where(x & 1, 10, x)).all()


def test_addresses_share_what_they_have_in_common() -> None:
    """Where only a row's number differs, a further row takes one instruction."""
    layout = "warp [] lane [32:(0,0,1)] element [2:(0,1,0) 4:(1,0,0)] dims (inner,row,col)"
    kind = f'!frag.tile<4x2x32xf32, #frag.layout<"{layout}">>'
    kernel = fragir.compile(f"""
    func.func @k(%x: memref<?x?x?xf32>, %y: memref<4x2x32xf32>) {{
      %i = frag.block_id x
      %j = frag.block_id y
      %t = frag.load %x[%i, %j, %i] masked : memref<?x?x?xf32> -> {kind}
      frag.store %t, %y[0, 0, 0] : {kind}, memref<4x2x32xf32>
      func.return
    }}""")
    # four terms of the first element, two of them products of 64 bits that take one and two
    # instructions more; seven more elements, one each; one of the store
    found = re.findall(r"(?:mad|mul)\.(?:wide\.s32|lo\.s64)", kernel.ptx)
    assert len(found) == 4 + 3 + 7 + 1


@pytest.mark.parametrize("shape", [(3, 16, 32), (2, 3, 8, 32), (5, 7, 9)])
@pytest.mark.parametrize("shared", [False, True])
def test_the_last_two_dimensions_are_transposed(shape: tuple[int, ...], shared: bool) -> None:
    """A batch of matrices that memory holds the other way round, masked too."""
    turned = (*shape[:-2], shape[-1], shape[-2])
    inside = tuple(size - 1 for size in turned)
    with fragir.kernel("turned", warps=(2, 1)) as k:
        x, y, z = (k.memory(n, fragir.f16, s) for n, s in zip("xyz", (inside, shape, inside)))
        at = (0,) * len(shape)
        tile = k.load(x, at, shape=shape, transposed=True, masked=True)
        if shared:
            held = k.shared(turned, fragir.f16)
            k.store(tile, held, at, transposed=True)
            k.barrier()
            tile = k.load(held, at, shape=shape, transposed=True)
        k.store(tile, y, at)
        k.store(tile, z, at, transposed=True, masked=True)
    given = np.arange(np.prod(inside), dtype="f2").reshape(inside)
    whole, back = np.zeros(shape, "f2"), np.zeros(inside, "f2")
    report = k.compile("sm_80")(given, whole, back, on="emulator", check=True)
    assert not report.findings
    padded = np.pad(given, [(0, 1)] * len(shape))
    assert (whole == padded.swapaxes(-1, -2)).all()
    assert (back == given).all()
