"""What instructions mean in lane-level code, against the emulator; each in a program of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import fragir
from fragir.compiler import parse
from fragir.reference import compare, evaluate

THREADS = '#frag.layout<"warp [2:(32)] lane [32:(1)] element []">'
WORD, TRUTH, FLOAT = "i32", "i1", "f32"

# Statements of 32-bit numbers x, y, z, the predicate p (an odd lane) and floats f, g.
WORDS = {
    "and.b32 $0, $1, $2": "xy",
    "lop3.b32 $0, $1, $2, $3, 0xCA": "xyz",
    "lop3.b32 $0, $1, $2, $3, 0x96": "xyz",
    "not.b32 $0, $1": "x",
    "cnot.b32 $0, $1": "z",
    "shl.b32 $0, $1, $2": "xy",
    "shr.u32 $0, $1, $2": "xz",
    "shr.s32 $0, $1, $2": "xz",
    "popc.b32 $0, $1": "x",
    "clz.b32 $0, $1": "x",
    "brev.b32 $0, $1": "x",
    "bfind.u32 $0, $1": "z",
    "bfe.u32 $0, $1, 5, 7": "x",
    "bfe.u32 $0, $1, 0, 32": "x",
    "shf.l.wrap.b32 $0, $1, $2, $3": "xyz",
    "shf.r.wrap.b32 $0, $1, $2, 9": "xy",
    "mad.lo.s32 $0, $1, $2, $3": "xyz",
    "mul.lo.u32 $0, $1, $2": "xx",
    "min.s32 $0, $1, $2": "xy",
    "max.u32 $0, $1, $2": "xy",
    "abs.s32 $0, $1": "x",
    "mov.u32 $0, %lanemask_ge": "",
    "mov.u32 $0, %lanemask_lt": "",
    "prmt.b32 $0, $1, $2, 0x5410": "xy",
    "prmt.b32 $0, $1, $2, 0xBA98": "xy",
    "prmt.b32 $0, $1, $2, $3": "xyx",
    "selp.b32 $0, $1, $2, $3": "xyp",
    "shfl.sync.idx.b32 $0, $1, $2, 31, -1": "xy",
    "shfl.sync.up.b32 $0, $1, 3, 0, -1": "x",
    "shfl.sync.down.b32 $0, $1, 5, 31, -1": "x",
    "shfl.sync.bfly.b32 $0, $1, 7, 31, -1": "x",
    "shfl.sync.down.b32 $0, $1, 3, 0x181F, -1": "x",
    "shfl.sync.idx.b32 $0, $1, 1, 0x1C1F, -1": "x",
    "redux.sync.add.u32 $0, $1, -1": "x",
    "redux.sync.min.s32 $0, $1, -1": "x",
    "redux.sync.max.u32 $0, $1, -1": "x",
    "redux.sync.xor.b32 $0, $1, -1": "x",
    "vote.sync.ballot.b32 $0, $1, -1": "p",
    "vote.sync.ballot.b32 $0, !$1, -1": "p",
    "match.sync.any.b32 $0, $1, -1": "z",
    "match.sync.all.b32 $0, $1, -1": "z",
    "activemask.b32 $0": "",
}
TRUTHS = {
    "vote.sync.all.pred $0, $1, -1": "p",
    "vote.sync.any.pred $0, $1, -1": "p",
    "vote.sync.uni.pred $0, $1, -1": "p",
}
FLOATS = {
    "add.rn.f32 $0, $1, $2": "fg",
    "sub.rn.f32 $0, $1, $2": "fg",
    "fma.rn.f32 $0, $1, $2, $2": "fg",
    "max.NaN.f32 $0, $1, $2": "fg",
    "min.f32 $0, $1, $2": "fg",
    "neg.f32 $0, $1": "f",
    "ex2.approx.f32 $0, $1": "f",
    "sin.approx.f32 $0, $1": "f",
    "shfl.sync.bfly.b32 $0, $1, 1, 31, -1": "f",
    "selp.f32 $0, $1, $2, $3": "fgp",
}
TYPES = {**dict.fromkeys("xyz", WORD), "p": TRUTH, **dict.fromkeys("fg", FLOAT)}


def program(statements: Mapping[str, str], type_: str) -> str:
    """Each statement's result as a row of the output."""
    held = {WORD: WORD, FLOAT: FLOAT, TRUTH: WORD}[type_]
    lines: list[str] = []
    for number, (text, reads) in enumerate(statements.items()):
        inputs = ", ".join(f"%{name}" for name in reads)
        types = ", ".join(TYPES[name] for name in reads)
        lines.append(f'    %r{number} = ptx.op "{text}" ({inputs}) : ({types}) -> {type_}')
        if type_ == TRUTH:
            lines.append(f"    %e{number} = arith.extui %r{number} : i1 to i32")
        kept = f"%e{number}" if type_ == TRUTH else f"%r{number}"
        lines.append(f"    %v{number} = ptx.pack {kept} : {held} -> vector<1x{held}>")
    names = [f"%v{number}" for number in range(len(statements))]
    outputs = [f"!frag.tile<64x{held}> in {THREADS}"] * len(names)
    memory = f"memref<{len(names)}x64x{held}>"
    stores = [
        f"  frag.store %all#{number}, %o[{number}, 0] : !frag.tile<64x{held}>, {memory}"
        for number in range(len(names))
    ]
    body, after = "\n".join(lines), "\n".join(stores)
    return f"""
func.func @k(%a: memref<3x64xi32>, %b: memref<2x64xf32>, %o: {memory})
    attributes {{frag.warps = array<i64: 2, 1>}} {{
  %all:{len(names)} = frag.lanes -> {", ".join(outputs)} {{
  ^bb0(%lane: index, %warp: index):
    %c32 = arith.constant 32 : index
    %first = arith.muli %warp, %c32 : index
    %at = arith.addi %first, %lane : index
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %two = arith.constant 2 : index
    %x = memref.load %a[%zero, %at] : memref<3x64xi32>
    %y = memref.load %a[%one, %at] : memref<3x64xi32>
    %z = memref.load %a[%two, %at] : memref<3x64xi32>
    %f = memref.load %b[%zero, %at] : memref<2x64xf32>
    %g = memref.load %b[%one, %at] : memref<2x64xf32>
    %bit = arith.remui %lane, %two : index
    %p = arith.cmpi eq, %bit, %one : index
{body}
    frag.yield {", ".join(names)} : {", ".join([f"vector<1x{held}>"] * len(names))}
  }}
{after}
  func.return
}}
"""


def arrays(rows: int, kind: Any) -> list[Any]:
    rng = np.random.default_rng(5)
    a = rng.integers(-(2**31), 2**31, (3, 64)).astype(np.int32)
    a[1] = rng.integers(0, 40, 64)
    a[2] = rng.integers(0, 4, 64)
    a[2, 32:] = 3  # one value in the whole of a warp
    b = rng.standard_normal((2, 64)).astype(np.float32)
    b[0, 7], b[1, 9] = np.nan, np.inf
    return [a, b, np.zeros((rows, 64), kind)]


@pytest.mark.parametrize(
    ("statements", "type_"),
    [(WORDS, WORD), (TRUTHS, TRUTH), (FLOATS, FLOAT)],
    ids=[WORD, TRUTH, FLOAT],
)
def test_they_mean_what_the_emulator_does(statements: Mapping[str, str], type_: str) -> None:
    text = program(statements, type_)
    module = parse(text)
    function = next(op for op in module.ops if isinstance(op, func.FuncOp))
    kind, element = (np.float32, "f32") if type_ == FLOAT else (np.int32, "s32")
    given = arrays(len(statements), kind)
    unknown: list[str] = []
    expected = evaluate(function, given, unknown=lambda op: unknown.append(str(op)))[2]
    assert unknown == []
    assert expected is not None
    kernel = fragir.compile(module, target="sm_80")
    report = kernel.launch((1, 1, 1), None, *given, on="emulator", check=True)
    assert report.findings == []
    for row, name in enumerate(statements):
        own = type(expected)(expected.value[row], expected.bound[row])
        found = compare(own, np.ascontiguousarray(given[2][row]), element)
        assert found.passed, (name, found)
        if type_ != FLOAT:
            assert own.exact, name


UNKNOWN = f"""
func.func @k(%a: memref<32xi32>, %m: memref<32xi32>, %o: memref<2x32xi32>) {{
  %t = frag.load %a[0] : memref<32xi32> -> !frag.tile<32xi32>
  %r, %s = frag.lanes %t in {THREADS.replace("[2:", "[1:")} : !frag.tile<32xi32>
      -> !frag.tile<32xi32> like %t, !frag.tile<32xi32> like %t {{
  ^bb0(%lane: index, %warp: index, %v: vector<1xi32>):
    %p = frag.pointer %m[%lane] : memref<32xi32> -> !ptx.ptr<global>
    %x = ptx.unpack %v : vector<1xi32> -> i32
    %odd = ptx.op "elect.sync _|$0, -1" () : () -> i1
    %y = scf.if %odd -> (i32) {{
      ptx.store %x, %p[0] : i32, !ptx.ptr<global>
      scf.yield %x : i32
    }} else {{
      %z = arith.addi %x, %x : i32
      scf.yield %z : i32
    }}
    %w = ptx.pack %y : i32 -> vector<1xi32>
    frag.yield %w, %v : vector<1xi32>, vector<1xi32>
  }}
  frag.store %r, %o[0, 0] : !frag.tile<32xi32>, memref<2x32xi32>
  frag.store %s, %o[1, 0] : !frag.tile<32xi32>, memref<2x32xi32>
  func.return
}}
"""


def test_what_has_no_meaning_may_give_anything() -> None:
    """So does what it steers; the rest is known."""
    function = next(op for op in parse(UNKNOWN).ops if isinstance(op, func.FuncOp))
    given = [np.arange(32, dtype=np.int32), np.zeros(32, np.int32), np.zeros((2, 32), np.int32)]
    told: list[str] = []
    _, memory, result = evaluate(function, given, unknown=lambda op: told.append(op.name))
    assert memory is not None
    assert result is not None
    assert told == ["ptx.op", "scf.if"]
    assert np.isinf(memory.bound).all()
    assert np.isinf(result.bound[0]).all()
    assert (result.bound[1] == 0).all()
    assert (result.value[1] == given[0]).all()


def test_a_point_that_lanes_hold_differently() -> None:
    """Any of them may be stored: the bound holds them all."""
    text = """
func.func @k(%o: memref<8xf32>) {
  %t = frag.lanes -> !frag.tile<8xf32> in #frag.layout<"lane [8:(1) 4:(0)] element []"> {
  ^bb0(%lane: index, %warp: index):
    %n = arith.index_cast %lane : index to i32
    %x = arith.sitofp %n : i32 to f32
    %v = ptx.pack %x : f32 -> vector<1xf32>
    frag.yield %v : vector<1xf32>
  }
  frag.store %t, %o[0] : !frag.tile<8xf32>, memref<8xf32>
  func.return
}
"""
    function = next(op for op in parse(text).ops if isinstance(op, func.FuncOp))
    (result,) = evaluate(function, [np.zeros(8, np.float32)])
    assert result is not None
    low, high = result.value - result.bound, result.value + result.bound
    for lane in range(32):
        assert low[lane % 8] <= lane <= high[lane % 8]
    assert (result.bound <= 25).all()
