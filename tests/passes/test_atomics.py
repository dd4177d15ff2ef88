"""Atomics on tiles against numpy: every operation and type, in any layout, by several blocks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.dialects.frag.atomics import KINDS
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.reference import compare, evaluate
from tests.properties.judge import examples

from .test_gather import SHAPES, memref, placements
from .test_ranks import tile

Array = npt.NDArray[Any]
EXAMPLES = Path(__file__).parents[2] / "examples"
DTYPES: dict[str, Any] = {
    "f16": np.float16, "f32": np.float32, "f64": np.float64, "i32": np.int32, "ui32": np.uint32,
    "i64": np.int64,
}  # fmt: skip
UFUNCS: dict[str, Any] = {
    "add": np.add, "max": np.maximum, "min": np.minimum, "and": np.bitwise_and,
    "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip
PTX = {"i32": "s32", "ui32": "u32", "i64": "s64"}


def changes(
    kind: str, shape: Sequence[int], memory: Sequence[int], element: str, layout: Layout | None,
    form: str, warps: int, how: Sequence[str] = (),
) -> str:  # fmt: skip
    """%m is changed by %x at the places of %p, of as many blocks as there are parts of %x."""
    places = shape if form == "elements" else shape[:1]
    kind_of, buffer = tile(shape, element, layout), memref([2, *shape], element)
    plain = layout if form == "elements" else None
    index = tile(places, "i32", plain)
    entries = {"elements": "%i", "rows": "%i" + ", 0" * (len(memory) - 1),
               "block": ", ".join(["%at", *"0" * (len(memory) - 1)])}[form]  # fmt: skip
    types = {"elements": f", {index}", "rows": f", {index}", "block": ", index"}[form]
    masked = " masked" if "masked" in how else ""
    where = (" where %k", f" where {index}".replace("i32", "i1", 1)) if "where" in how else ("", "")
    return f"""
    func.func @k(%x: {buffer}, %p: {memref(places, "i32")}, %m: {memref(memory, element)},
                 %at: index) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %b = frag.block_id x
      %t = frag.load %x[%b{", 0" * len(shape)}] : {buffer} -> {kind_of}
      %i = frag.load %p[{", ".join("0" * len(places))}] : {memref(places, "i32")} -> {index}
      %k = frag.map %i : {index} -> {index.replace("i32", "i1", 1)} {{
      ^bb0(%v: i32):
        %one = arith.constant 1 : i32
        %a = arith.andi %v, %one : i32
        %q = arith.cmpi eq, %a, %one : i32
        frag.yield %q : i1
      }}
      frag.atomic {kind} %t, %m[{entries}]{masked}{where[0]}
        : {kind_of}, {memref(memory, element)}{types}{where[1]}
      func.return
    }}"""


def judged(text: str, target: str, arguments: Sequence[Any], warps: int, seed: int | None) -> Any:
    """Run by two blocks with every check; the reference's memory, within whose bound it is."""
    kernel = fragir.compile(text, target=target)
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    wanted = evaluate(function, [np.copy(a) for a in arguments], target=target, grid=(2, 1, 1))[2]
    assert wanted is not None
    launch = (2,), (32 * warps,)
    report = kernel.launch(*launch, *arguments, on="emulator", check=True, schedule=seed)
    assert report.findings == []
    element = str(kernel.signature[2].type).rpartition("x")[2].removesuffix(">")
    found = compare(wanted, arguments[2], PTX.get(element, element))
    assert found.passed, f"{found}\n{text}"
    return wanted


@examples(24)
@given(st.data())
def test_any_order_gives_the_same(data: st.DataObject) -> None:
    """Integers, and floats that are sums of few integers, at places that meet."""
    element = data.draw(st.sampled_from(sorted(DTYPES)))
    kind = data.draw(st.sampled_from([w for w in UFUNCS if PTX.get(element, element) in KINDS[w]]))
    shape = data.draw(st.sampled_from(SHAPES))
    forms = ["elements", "block"] + ["rows"] * (len(shape) > 1)
    form = data.draw(st.sampled_from(forms))
    warps, layout = data.draw(placements(shape))
    how = [w for w in ("masked", "where") if data.draw(st.booleans())]
    if form == "block" and len(shape) > 1 and "where" in how:
        how.remove("where")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    loose = 2 if "masked" in how else 0
    memory = [11] if form == "elements" else [shape[0] + 3, *shape[1:]]
    places = shape if form == "elements" else shape[:1]
    high = memory[0] + loose
    p = rng.integers(-loose, high, places).astype(np.int32)
    at = data.draw(st.integers(-loose, 3 + loose))
    x = rng.integers(0, 9, (2, *shape)).astype(DTYPES[element])
    m = rng.integers(0, 9, memory).astype(DTYPES[element])
    wanted = m.copy()
    text = changes(kind, shape, memory, element, layout, form, warps, how)
    target = data.draw(st.sampled_from(("sm_80", "sm_90a")))
    assert judged(text, target, [x, p, m, at], warps, data.draw(st.sampled_from((None, 3)))).exact
    for block, *point in np.ndindex(2, *places):
        index = at + point[0] if form == "block" else p[*point]
        if 0 <= index < memory[0] and ("where" not in how or p[*point] % 2 == 1):
            wanted[index] = UFUNCS[kind](wanted[index], x[block, *point])
    assert np.array_equal(m, wanted)


@pytest.mark.parametrize("element", ["f16", "f32", "f64"])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_sums_that_round(element: str, seed: int | None) -> None:
    """Of terms of very different size, in the emulator's orders: within the bound of any order."""
    rng = np.random.default_rng(5)
    x = (rng.standard_normal((2, 16, 24)) * 2.0 ** rng.integers(-9, 4, (2, 16, 24))).astype(
        DTYPES[element]
    )
    p = rng.integers(0, 5, (16, 24)).astype(np.int32)
    m = np.zeros(5, DTYPES[element])
    text = changes("add", (16, 24), [5], element, None, "elements", 1)
    found = judged(text, "sm_80", [x, p, m, 0], 1, seed)
    exact = np.zeros(5)
    np.add.at(exact, np.broadcast_to(p, x.shape), x.astype(np.float64))
    assert (np.abs(exact - found.value) <= found.bound).all()
    unit = {"f16": 2.0**-11, "f32": 2.0**-24, "f64": 2.0**-53}[element]
    total = np.zeros(5)
    np.add.at(total, np.broadcast_to(p, x.shape), np.abs(x.astype(np.float64)))
    assert (found.bound < 400 * unit * total).all()


def test_the_order_of_blocks_is_open() -> None:
    """One and a half that a later block's large number swallows, if that comes first."""
    text = changes("add", (1,), [1], "f32", None, "elements", 1)
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    x, p = np.array([[1.5], [2.0**25]], np.float32), np.zeros(1, np.int32)
    given = [x, p, np.array([2.0**-3], np.float32), 0]
    found = evaluate(function, given, target="sm_80", grid=(2, 1, 1))[2]
    assert found is not None
    for order in ((x[0, 0], x[1, 0]), (x[1, 0], x[0, 0])):
        result = (np.float32(2.0**-3) + order[0]) + order[1]
        assert abs(float(result) - found.value[0]) <= found.bound[0]
    assert found.bound[0] > 0


def test_subnormal_numbers_are_lost() -> None:
    """In global memory, in f32 (PTX ISA 9.2, section 9.7.13.12); the bound allows for that."""
    x = np.full((2, 16, 24), 2.0**-130, np.float32)
    p, m = np.zeros((16, 24), np.int32), np.full(1, 2.0**-130, np.float32)
    text = changes("add", (16, 24), [1], "f32", None, "elements", 1)
    found = judged(text, "sm_80", [x, p, m, 0], 1, None)
    assert not found.exact
    assert m[0] == 0


@pytest.mark.parametrize(
    ("target", "element", "form", "wanted"),
    [
        ("sm_80", "f32", "block", "red.global.add.f32"),
        ("sm_90a", "f32", "rows", "red.global.add.v4.f32"),
        ("sm_90a", "f32", "block", "red.global.add.v4.f32"),
        ("sm_80", "f16", "rows", "red.global.add.noftz.f16x2"),
        ("sm_90a", "bf16", "block", "red.global.add.noftz.bf16x2"),
    ],
)
def test_neighbours_go_together(target: str, element: str, form: str, wanted: str) -> None:
    kernel = fragir.compile(
        changes("add", (16, 32), [50, 32], element, None, form, 1), target=target
    )
    assert kernel.assembled.warnings == []
    found = {line.split()[0] for line in kernel.ptx.splitlines() if " red." in line}
    assert found == {wanted}


def test_accumulators_of_a_product_are_added_in_pairs() -> None:
    text = """
    func.func @split(%a: memref<64x16xf16>, %b: memref<64x16xf16>, %c: memref<64x64xf32>) {
      %x = frag.load %a[0, 0] : memref<64x16xf16> -> !frag.tile<64x16xf16>
      %y = frag.load %b[0, 0] transposed : memref<64x16xf16> -> !frag.tile<16x64xf16>
      %zero = arith.constant 0.0 : f32
      %s = frag.fill %zero : !frag.tile<64x64xf32>
      %r = frag.mma %x, %y, %s : !frag.tile<64x16xf16>, !frag.tile<16x64xf16>,
        !frag.tile<64x64xf32> -> !frag.tile<64x64xf32>
      frag.atomic add %r, %c[0, 0] : !frag.tile<64x64xf32>, memref<64x64xf32>
      func.return
    }"""
    kernel = fragir.compile(text, target="sm_90a")
    assert kernel.assembled.warnings == []
    assert kernel.ptx.count("red.global.add.v2.f32") == 64
    a, b = (np.random.default_rng(s).integers(-3, 4, (64, 16)).astype(np.float16) for s in (1, 2))
    c = np.ones((64, 64), np.float32)
    kernel.launch((3,), None, a, b, c, on="emulator", check=True)
    assert np.array_equal(c, 1 + 3 * (a.astype(np.float32) @ b.T.astype(np.float32)))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_ptxas_takes_all_of_them(target: str) -> None:
    """Every operation on every type that it has, in one kernel."""
    names = {"s32": "i32", "u32": "ui32", "s64": "i64"}
    arguments: list[str] = []
    body: list[str] = []
    for number, (kind, name) in enumerate((k, n) for k, types in KINDS.items() for n in types):
        element, n = names.get(name, name), number
        if (name, target) == ("bf16", "sm_80"):
            continue
        arguments.append(f"%m{n}: memref<50x{element}>, %x{n}: memref<128x{element}>")
        loaded = tile((128,), element, None)
        body.append(f"%t{n} = frag.load %x{n}[0] : memref<128x{element}> -> {loaded}")
        expected = f" expected %t{n}" if kind == "cas" else ""
        body.append(
            f"frag.atomic {kind} %t{n}, %m{n}[%i]{expected} masked"
            f" : !frag.tile<128x{element}>, memref<50x{element}>, !frag.tile<128xi32>"
        )
    text = f"""
    func.func @k(%p: memref<128xi32>, {", ".join(arguments)}) {{
      %i = frag.load %p[0] : memref<128xi32> -> !frag.tile<128xi32>
      {chr(10).join(body)}
      func.return
    }}"""
    assert fragir.compile(text, target=target).assembled.warnings == []


def test_sm_80_adds_no_bf16() -> None:
    text = changes("add", (96,), [50], "bf16", None, "elements", 1)
    with pytest.raises(FragirError, match="sm_80 has no atomic add of bf16"):
        fragir.compile(text, target="sm_80")


OLD = """
func.func @k(%x: memref<64xi32>, %e: memref<64xi32>, %p: memref<64xi32>, %m: memref<70xi32>,
             %o: memref<64xi32>) {{
  %t = frag.load %x[0] : memref<64xi32> -> !frag.tile<64xi32>
  %u = frag.load %e[0] : memref<64xi32> -> !frag.tile<64xi32>
  %i = frag.load %p[0] : memref<64xi32> -> !frag.tile<64xi32>
  %r = frag.atomic {kind} %t, %m[%i] {expected} masked
    : !frag.tile<64xi32>, memref<70xi32>, !frag.tile<64xi32> -> !frag.tile<64xi32>
  frag.store %r, %o[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}}"""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_memory_held(kind: str) -> None:
    expected = "expected %u" if kind == "cas" else ""
    kernel = fragir.compile(OLD.format(kind=kind, expected=expected), target="sm_80")
    assert kernel.assembled.warnings == []
    rng = np.random.default_rng(4)
    p = (rng.permutation(80)[:64] - 5).astype(np.int32)
    x, e = (rng.integers(0, 3, 64).astype(np.int32) for _ in range(2))
    m, o = rng.integers(0, 3, 70).astype(np.int32), np.full(64, 77, np.int32)
    before = m.copy()
    report = kernel.launch((1,), None, x, e, p, m, o, on="emulator", check=True)
    assert report.findings == []
    kept = (p >= 0) & (p < 70)
    held = np.where(kept, before[np.clip(p, 0, 69)], 0)
    assert np.array_equal(o, held)
    written = {"exch": x, "cas": np.where(held == e, x, held)}.get(kind)
    after = before.copy()
    after[p[kept]] = (UFUNCS[kind](held, x) if written is None else written)[kept]
    assert np.array_equal(m, after)


@pytest.mark.parametrize("shape", [(1,), (16,), (5, 7), (3, 100), (96,)])
@pytest.mark.parametrize("warps", [(1, 1), (4, 1)])
def test_what_memory_held_is_told_to_all_that_hold_it(
    shape: tuple[int, ...], warps: tuple[int, int]
) -> None:
    """The ticket of a work queue, and of tiles that the threads do not divide: one takes it."""
    count = int(np.prod(shape))
    with fragir.kernel("tickets", warps=warps) as k:
        counters, held = (k.memory(name, fragir.s32, shape) for name in ("counters", "held"))
        at = (0,) * len(shape)
        old = k.atomic("add", k.iota(0, shape) + 1, counters, at, old=True)
        assert old is not None
        k.store(old, held, at)
    given, found = np.arange(count, dtype="i4").reshape(shape), np.zeros(shape, "i4")
    before = given.copy()
    report = k.compile("sm_80")(given, found, on="emulator", check=True)
    assert not report.findings
    assert (found == before).all()
    assert (given == before + 1 + np.indices(shape)[0]).all()


def test_in_shared_memory() -> None:
    """A histogram of one block, by two warps."""
    shared = "memref<1x16xi32, #frag.shared>"
    text = f"""
    func.func @k(%x: memref<256xi32>, %h: memref<1x16xi32>)
        attributes {{frag.warps = array<i64: 2, 1>}} {{
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      %s = memref.alloc() : {shared}
      %n = frag.fill %zero : !frag.tile<1x16xi32>
      frag.store %n, %s[0, 0] : !frag.tile<1x16xi32>, {shared}
      frag.barrier
      %t = frag.load %x[0] : memref<256xi32> -> !frag.tile<256xi32>
      %u = frag.fill %one : !frag.tile<256xi32>
      frag.atomic add %u, %s[0, %t] : !frag.tile<256xi32>, {shared}, !frag.tile<256xi32>
      frag.barrier
      %r = frag.load %s[0, 0] : {shared} -> !frag.tile<1x16xi32>
      frag.store %r, %h[0, 0] : !frag.tile<1x16xi32>, memref<1x16xi32>
      func.return
    }}"""
    kernel = fragir.compile(text, target="sm_80")
    assert kernel.assembled.warnings == []
    x, h = np.random.default_rng(1).integers(0, 16, 256).astype(np.int32), np.zeros((1, 16), "i4")
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    wanted = evaluate(function, [x, h.copy()], target="sm_80")[1]
    report = kernel.launch((1,), None, x, h, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(h[0], np.bincount(x, minlength=16))
    assert wanted is not None
    assert wanted.exact
    assert np.array_equal(wanted.value, h)


@pytest.mark.parametrize("m", [1, 300])
def test_the_examples_in_numpy(m: int) -> None:
    """examples/data/histogram.mlir and examples/embedding.mlir, at sizes that nothing divides."""
    rng = np.random.default_rng(m)
    x, h = rng.integers(-5, 40, m).astype(np.int32), np.zeros(33, np.int32)
    fragir.compile((EXAMPLES / "data/histogram.mlir").read_text(), target="sm_80")(
        x, h, on="emulator", check=True
    )
    kept = x[(x >= 0) & (x < 33)]
    assert np.array_equal(h, np.bincount(kept, minlength=33))
    text = (EXAMPLES / "data/embedding.mlir").read_text()
    table = rng.integers(-9, 9, (33, 71)).astype(np.float32)
    x, y = x[:20], np.full((len(x[:20]), 71), 77, np.float32)
    forward, backward = (
        fragir.compile(text, entry=entry, target="sm_90a") for entry in ("forward", "backward")
    )
    forward(table, x, y, on="emulator", check=True)
    inside = (x >= 0) & (x < 33)
    assert np.array_equal(y, np.where(inside[:, None], table[np.clip(x, 0, 32)], 0))
    gradient = np.zeros_like(table)
    backward(y, x, gradient, on="emulator", check=True)
    wanted = np.zeros_like(table)
    np.add.at(wanted, x[inside], y[inside])
    assert np.array_equal(gradient, wanted)
