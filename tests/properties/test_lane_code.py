"""Lane-level code in any layout: every element is where `frag.coordinates` says, on its way there
and back."""

from __future__ import annotations

import re

import numpy as np
import pytest
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.dialects import frag
from tests.properties.judge import judge

ROWS, COLS = 32, 16
LAYOUTS = {
    "accumulator, warps 2x1": ("#frag.mma<m16n8k16.f16, c, warps = [2, 1]>", (2, 1)),
    "accumulator, warps 2x2": ("#frag.mma<m16n8k16.f16, c, warps = [2, 2]>", (2, 2)),
    "operand a": ("#frag.mma<m16n8k16.f16, a>", (1, 1)),
    "rows": ('#frag.layout<"lane [32:(1,0)] element [16:(0,1)]">', (1, 1)),
    "columns": ('#frag.layout<"lane [16:(0,1) 2:(16,0)] element [16:(1,0)]">', (1, 1)),
    "the same in both warps": (
        '#frag.layout<"warp [2:(0,0)] lane [4:(0,4) 8:(1,0)] element [4:(0,1) 4:(8,0)]">',
        (2, 1),
    ),
    "fewer warps than the block has": (
        '#frag.layout<"warp [2:(16,0)] lane [4:(0,4) 8:(1,0)] element [4:(0,1) 2:(8,0)]">',
        (2, 2),
    ),
    "flipped bits": (
        '#frag.layout<"warp [2:(16,0)] lane [4:(0,4) 8:^(1,0)] element [4:^(0,5) 2:^(8,4)]">',
        (2, 1),
    ),
    "half of the lanes": (
        '#frag.layout<"lane [16:(1,0) 2:(0,0)] element [16:(0,1) 2:(16,0)] where lane/16%2==0">',
        (1, 1),
    ),
}
# type -> how a number becomes one, how it is added, numpy's
ELEMENTS = {
    "f32": (["%n = arith.sitofp %w : i32 to f32"], "arith.addf", "float32"),
    "f16": (
        ["%f = arith.sitofp %w : i32 to f32", "%n = arith.truncf %f : f32 to f16"],
        "arith.addf",
        "float16",
    ),
    "f64": (["%n = arith.sitofp %w : i32 to f64"], "arith.addf", "float64"),
    "i32": (["%n = arith.bitcast %w : i32 to i32"], "arith.addi", "int32"),
}
CASES = [*zip(sorted(LAYOUTS), ["f32", "f16", "f64", "i32"] * 3, strict=False)]


def program(layout: str, warps: tuple[int, int], type_: str) -> str:
    """Adds to every element its number in order of rows."""
    cast, add, _ = ELEMENTS[type_]
    count = elements(layout)
    lines: list[str] = []
    for e in range(count):
        lines += [
            f"%i{e}, %j{e} = frag.coordinates operand 0 element {e} : index, index",
            f"%s{e} = arith.muli %i{e}, %cols : index",
            f"%t{e} = arith.addi %s{e}, %j{e} : index",
            f"%w{e} = arith.index_cast %t{e} : index to i32",
            *(re.sub(r"%([nfw])\b", rf"%\g<1>{e}", line) for line in cast),
            f"%r{e} = {add} %x{e}, %n{e} : {type_}",
        ]
    vector, tile = f"vector<{count}x{type_}>", f"!frag.tile<{ROWS}x{COLS}x{type_}>"
    types = ", ".join([type_] * count)
    body = "\n    ".join(lines)
    return f"""
func.func @k(%a: memref<{ROWS}x{COLS}x{type_}>, %o: memref<{ROWS}x{COLS}x{type_}>)
    attributes {{frag.warps = array<i64: {warps[0]}, {warps[1]}>}} {{
  %t = frag.load %a[0, 0] : memref<{ROWS}x{COLS}x{type_}> -> {tile}
  %r = frag.lanes %t in {layout} : {tile} -> {tile} like %t {{
  ^bb0(%lane: index, %warp: index, %v: {vector}):
    %cols = arith.constant {COLS} : index
    {", ".join(f"%x{e}" for e in range(count))} = ptx.unpack %v : {vector} -> {types}
    {body}
    %all = ptx.pack {", ".join(f"%r{e}" for e in range(count))} : {types} -> {vector}
    frag.yield %all : {vector}
  }}
  frag.store %r, %o[0, 0] : {tile}, memref<{ROWS}x{COLS}x{type_}>
  func.return
}}
"""


def elements(layout: str) -> int:
    """How many a lane has."""
    tile = f"!frag.tile<{ROWS}x{COLS}xf32, {layout}>"
    function = next(iter(parse(f"func.func @f(%t: {tile}) {{ func.return }}").ops))
    assert isinstance(function, func.FuncOp)
    type_ = function.function_type.inputs.data[0]
    assert isinstance(type_, frag.TileType)
    return type_.resolve().size("element")


@pytest.mark.parametrize(("name", "type_"), CASES)
def test_every_element_is_where_it_is_said_to_be(name: str, type_: str) -> None:
    layout, warps = LAYOUTS[name]
    kernel = judge(program(layout, warps, type_), "sm_80", assemble=type_ == "f16")
    rng = np.random.default_rng(1)
    a = rng.integers(-100, 100, (ROWS, COLS)).astype(ELEMENTS[type_][2])
    o = np.zeros_like(a)
    kernel(a, o)
    assert (o == a + np.arange(ROWS * COLS).reshape(ROWS, COLS)).all()


def test_a_barrier_that_all_warps_meet_at() -> None:
    """mbarrier in shared memory of one's own: the reference knows nothing of what it gives."""
    text = """
func.func @k(%a: memref<64xi32>, %o: memref<64xi32>) attributes {frag.warps = array<i64: 2, 1>} {
  %t = frag.load %a[0] : memref<64xi32> -> !frag.tile<64xi32>
  %r = frag.lanes %t in #frag.layout<"warp [2:(32)] lane [32:(1)] element []">
      : !frag.tile<64xi32> -> !frag.tile<64xi32> like %t {
  ^bb0(%lane: index, %warp: index, %v: vector<1xi32>):
    %s = ptx.shared 1024 : !ptx.ptr<shared>
    %first = ptx.op "mov.u32 $0, %tid.x" () : () -> i32
    %zero = arith.constant 0 : i32
    %one = arith.cmpi eq, %first, %zero : i32
    ptx.op "mbarrier.init.shared::cta.b64 [$0+512], 64" (%s) if %one : (!ptx.ptr<shared>) -> ()
    ptx.op "bar.sync 0" () : () -> ()
    %at = arith.index_cast %first : i32 to index
    %p = ptx.offset %s, %at * 4 : !ptx.ptr<shared> -> !ptx.ptr<shared>
    %x = ptx.unpack %v : vector<1xi32> -> i32
    ptx.op "st.shared.b32 [$0], $1" (%p, %x) : (!ptx.ptr<shared>, i32) -> ()
    %token = ptx.op "mbarrier.arrive.shared::cta.b64 $0, [$1+512]" (%s)
        : (!ptx.ptr<shared>) -> i64
    %no = arith.constant false
    %done = scf.while (%d = %no) : (i1) -> (i1) {
      %yes = arith.constant true
      %more = arith.xori %d, %yes : i1
      scf.condition(%more) %d : i1
    } do {
    ^bb0(%d: i1):
      %e = ptx.op "mbarrier.test_wait.shared::cta.b64 $0, [$1+512], $2" (%s, %token)
          : (!ptx.ptr<shared>, i64) -> i1
      scf.yield %e : i1
    }
    %last = arith.constant 63 : i32
    %other = arith.subi %last, %first : i32
    %q = arith.index_cast %other : i32 to index
    %from = ptx.offset %s, %q * 4 : !ptx.ptr<shared> -> !ptx.ptr<shared>
    %y = ptx.op "ld.shared.b32 $0, [$1]" (%from) : (!ptx.ptr<shared>) -> i32
    %w = ptx.pack %y : i32 -> vector<1xi32>
    frag.yield %w : vector<1xi32>
  }
  frag.store %r, %o[0] : !frag.tile<64xi32>, memref<64xi32>
  func.return
}
"""
    a, o = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    report = fragir.compile(text).launch((1, 1, 1), None, a, o, on="emulator", check=True)
    assert report.findings == []
    assert (o == a[::-1]).all()


def test_elements_by_their_numbers() -> None:
    """xDSL's own vector dialect."""
    text = """
func.func @k(%a: memref<16x8xf16>, %o: memref<16x8xf16>) {
  %t = frag.load %a[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %q = frag.lanes %t in #frag.mma<m16n8k16.f16, c>
      : !frag.tile<16x8xf16> -> !frag.tile<16x8xf16> like %t {
  ^bb0(%lane: index, %warp: index, %v: vector<4xf16>):
    %x = vector.extract %v[2] : f16 from vector<4xf16>
    %b = vector.broadcast %x : f16 to vector<4xf16>
    %w = arith.addf %v, %b : vector<4xf16>
    %u = vector.insert %x, %w [1] : f16 into vector<4xf16>
    %s = vector.shuffle %u, %v [3, 0, 5, 1] : vector<4xf16>, vector<4xf16>
    frag.yield %s : vector<4xf16>
  }
  frag.store %q, %o[0, 0] : !frag.tile<16x8xf16>, memref<16x8xf16>
  func.return
}
"""
    kernel = judge(text, "sm_80")
    a = np.arange(128, dtype=np.float16).reshape(16, 8)
    o = np.zeros_like(a)
    kernel(a, o)
    v0, v1, v2, v3 = a[:8, ::2], a[:8, 1::2], a[8:, ::2], a[8:, 1::2]
    assert (o[:8, ::2] == v3 + v2).all()
    assert (o[:8, 1::2] == v0 + v2).all()
    assert (o[8:, ::2] == v1).all()
    assert (o[8:, 1::2] == v2).all()
