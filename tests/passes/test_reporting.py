"""What kernels print of tiles, and conditions that do not hold: places, types, every layout."""

from __future__ import annotations

import re
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
from fragir.emulator import EmulationError
from fragir.errors import FragirError
from fragir.reference import evaluate
from tests.properties.judge import examples

from .test_gather import memref, placements
from .test_ranks import tile

Array = npt.NDArray[Any]
LINE = re.compile(r"x\[([\d, ]*)\] = (.*) \(block 0, 0, 0\)\n")


@examples(8)
@given(st.data())
def test_every_element_once(data: st.DataObject) -> None:
    """Whatever lanes and warps hold it as well."""
    shape = data.draw(st.sampled_from([(32,), (7,), (4, 16), (2, 2, 8)]))
    warps, layout = data.draw(placements(shape))
    kind, zeros, memory = (
        tile(shape, "i32", layout),
        ", ".join("0" * len(shape)),
        memref(shape, "i32"),
    )
    kernel = fragir.compile(f"""
    func.func @k(%m: {memory}, %y: {memory}) attributes {{frag.warps = array<i64: {warps}, 1>}} {{
      %t = frag.load %m[{zeros}] : {memory} -> {kind}
      frag.print "x", %t : {kind}
      frag.store %t, %y[{zeros}] : {kind}, {memory}
      func.return
    }}""")
    x = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape) - 5
    report = kernel(x, x.copy(), on="emulator", check=True, schedule=1)
    assert report.findings == []
    found: dict[tuple[int, ...], int] = {}
    for line in report.printed:
        match = LINE.fullmatch(line)
        assert match, line
        place = tuple(map(int, match[1].split(", ")))
        assert place not in found
        found[place] = int(match[2])
    assert found == {place: x[place] for place in np.ndindex(*shape)}


def casts(type_: str, value: float) -> str:
    """What is printed of a value in a tile of a type."""
    with fragir.kernel("k") as k:
        x = k.memory("x", fragir.f32, (32,))
        t = k.load(x, (0,), shape=(32,))
        k.print("x", t.cast(getattr(fragir, type_)))
    report = k.compile()(np.full(32, value, np.float32), on="emulator", check=True)
    match = LINE.fullmatch(report.printed[0])
    assert match
    return match[2]


@pytest.mark.parametrize(
    ("type_", "value", "printed"),
    [
        ("f16", 0.1, "0.099976"),
        ("bf16", 3.140625, "3.1406"),
        ("f32", 0.1, "0.1"),
        ("f32", float("-inf"), "-inf"),
        ("tf32", 2.5, "2.5"),
        ("f64", 0.1, "0.1000000014901161"),
        ("s8", -7.9, "-7"),
        ("u8", 200.0, "200"),
        ("s32", -123456.0, "-123456"),
    ],
)
def test_types(type_: str, value: float, printed: str) -> None:
    assert casts(type_, value) == printed


def kernel() -> fragir.Kernel:
    """A line a block, conditions, numbers of other types, then what must hold of x and of n."""
    with fragir.kernel("k", warps=(2, 1)) as k:
        x = k.memory("x", fragir.f32, ("n",))
        y = k.memory("y", fragir.f32, ("n",))
        s = k.scalar("s", fragir.s64)
        k.grid("n / 32")
        start = k.block_id() * 32
        t = k.load(x, (start,), shape=(32,), masked=True)
        k.print("100% of", s, start)
        k.print("positive", t > 0)
        k.assert_(k.size("n") < 40, "few", k.size("n"))
        k.assert_(t < 9, "below nine", t, s)
        k.store(t * 2, y, (start,), masked=True)
    return k.compile()


def test_scalars_and_blocks() -> None:
    x = np.linspace(-1, 1, 36, dtype=np.float32)
    assert kernel().assembled.warnings == []
    report = kernel()(x, x.copy(), -(1 << 40), on="emulator", check=True)
    assert report.findings == []
    printed = report.printed
    assert (
        sum(line.startswith("100% of = -1099511627776, 32 (block 1, 0, 0)") for line in printed)
        == 1
    )
    assert sum(line.startswith("100% of") for line in printed) == 2
    assert printed.count("positive[17] = 0 (block 0, 0, 0)\n") == 1
    assert printed.count("positive[18] = 1 (block 0, 0, 0)\n") == 1
    assert len(printed) == 2 + 64


def test_failing_elements() -> None:
    x = np.zeros(36, np.float32)
    x[33] = 9.5
    with pytest.raises(EmulationError) as caught:
        kernel()(x, x.copy(), 3, on="emulator")
    here = Path(__file__).name
    assert re.search(
        rf"block \(1, 0, 0\) .*assertion failed: below nine, .*{here}:\d+, in k; it has printed: "
        r"below nine\[1\] = 9.5, 3 \(block 1, 0, 0\)",
        str(caught.value),
    )
    report = caught.value.report
    assert report is not None
    assert sum("below nine" in line for line in report.printed) == 1


def test_a_failing_scalar() -> None:
    with pytest.raises(EmulationError, match=r"assertion failed: few, .*few = 40 \(block 0"):
        kernel()(np.zeros(40, np.float32), np.zeros(40, np.float32), 3, on="emulator")


PROGRAM = """\
func.func @k(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %t = frag.load %x[0, 0] : memref<4x8xf32> -> !frag.tile<4x8xf32>
  %e = frag.map %t : !frag.tile<4x8xf32> -> !frag.tile<4x8xf32> {
  ^bb0(%v: f32):
    %r = math.exp %v : f32
    frag.yield %r : f32
  }
  %p = frag.map %e : !frag.tile<4x8xf32> -> !frag.tile<4x8xi1> {
  ^bb0(%v: f32):
    %one = arith.constant 1.0 : f32
    %q = arith.cmpf ole, %v, %one : f32
    frag.yield %q : i1
  }
  frag.print "e", %e : !frag.tile<4x8xf32>
  frag.assert %p, "at most one" : !frag.tile<4x8xi1>
  frag.store %e, %y[0, 0] : !frag.tile<4x8xf32>, memref<4x8xf32>
  func.return
}
"""


def test_the_reference() -> None:
    """It says what fails for certain; what may go either way it leaves alone."""
    function = next(op for op in parse(PROGRAM).walk() if isinstance(op, func.FuncOp))
    x = np.zeros((4, 8), np.float32)  # exp of 0 may be rounded up
    evaluate(function, [x, x.copy()], target="sm_80")
    x[2, 3] = x[3, 1] = 1
    with pytest.raises(FragirError, match=r"at most one: this does not hold at \[2, 3\] in block "
                       r"\(0, 0, 0\) \(and at 1 more\)") as caught:  # fmt: skip
        evaluate(function, [x, x.copy()], target="sm_80", source=PROGRAM)
    assert caught.value.line == 15


def test_errors() -> None:
    with fragir.kernel("k") as k:
        x = k.memory("x", fragir.f32, (32,))
        t = k.load(x, (0,), shape=(32,))
        with pytest.raises(FragirError, match=r"assert_ takes a condition.*compare"):
            k.assert_(t, "x")
        with pytest.raises(FragirError, match="is not printed"):
            k.print("t", "x")  # pyright: ignore[reportArgumentType]
        with pytest.raises(FragirError, match="the text is <"):
            k.print(t)  # pyright: ignore[reportArgumentType]
        with pytest.raises(FragirError, match="differ in shape"):
            k.print("t", t, t[0:16])


def test_what_holds_costs_a_branch() -> None:
    """Everything else of an assertion stands behind it, and other programs declare nothing."""
    with fragir.kernel("k") as k:
        x = k.memory("x", fragir.f32, (256,))
        t = k.load(x, (0,), shape=(256,))
        k.assert_(t < 5, "below five", t)
        k.store(t + 1, x, (0,))
    ptx = k.compile().ptx
    before = ptx[ptx.index("setp") : ptx.index("bra")]
    assert before.count("setp.lt") == 8
    assert "cvt" not in before
    assert "vprintf" not in before
    with fragir.kernel("k") as k:
        x = k.memory("x", fragir.f32, (256,))
        k.store(k.load(x, (0,), shape=(256,)) + 1, x, (0,))
    assert ".extern" not in k.compile().ptx
