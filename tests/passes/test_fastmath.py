"""What fastmath flags allow: other instructions, within bounds that know of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir import f32
from fragir.errors import FragirError
from fragir.reference import elementwise
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.elementwise import BINARY, UNARY
from fragir.reference.formats import FLOATS
from fragir.toolchain.sass import disassemble, opcodes
from tests.passes.test_functions import executed, numbers, program, wide, within
from tests.properties.judge import judge

F32 = FLOATS["f32"]
INSTRUCTIONS = {
    "math.exp2 %v0 fastmath<afn>": "ex2.approx.ftz.f32",
    "math.exp %v0 fastmath<afn>": "ex2.approx.ftz.f32",
    "math.log2 %v0 fastmath<afn>": "lg2.approx.ftz.f32",
    "math.log %v0 fastmath<fast>": "lg2.approx.ftz.f32",
    "math.log10 %v0 fastmath<afn>": "lg2.approx.ftz.f32",
    "math.rsqrt %v0 fastmath<afn>": "rsqrt.approx.ftz.f32",
    "math.sqrt %v0 fastmath<afn>": "sqrt.approx.ftz.f32",
    "math.sin %v0 fastmath<afn>": "sin.approx.ftz.f32",
    "math.cos %v0 fastmath<afn>": "cos.approx.ftz.f32",
    "arith.divf %v0, %v1 fastmath<afn>": "div.full.f32",
    "arith.divf %v0, %v1 fastmath<arcp>": "rcp.approx.ftz.f32",
    "arith.divf %v0, %v1 fastmath<arcp,afn>": "rcp.approx.ftz.f32",
}


@pytest.mark.parametrize("operation", INSTRUCTIONS)
def test_the_instruction_and_its_error(operation: str) -> None:
    text = program(f"%r0 = {operation} : f32", ["f32", "f32"], ["f32"])
    assert INSTRUCTIONS[operation] in fragir.compile(text, target="sm_80").ptx
    x, y = numbers(1, 2048), numbers(2, 2048)
    (found,) = executed(text, [x, y], ["f4"])
    name, _, flags = re.sub(r" %v\d,?", "", operation).replace(" ", " _ ", 1).partition(" _ ")
    with np.errstate(all="ignore"):
        operands = [exactly(wide(v)) for v in (x, y)]
        words = frozenset(flags[9:-1].split(","))
        words = frozenset({"afn", "arcp", "contract"}) if "fast" in words else words
        expected = elementwise.apply(name, words, operands, "f32")
    assert expected is not None
    within(found, "f32", expected)
    usual = np.isfinite(x) & (np.abs(x) < 80) & (np.abs(x) > 1e-30) & np.isfinite(found)
    usual &= np.isfinite(y) & (np.abs(y) > 1e-30) & (np.abs(y) < 1e30) & (np.abs(found) < 1e37)
    close = expected.bound[usual] <= 2.0**-14 * np.maximum(np.abs(expected.value[usual]), 1)
    assert close.all()


@pytest.mark.parametrize("type_", ["f16", "bf16"])
def test_halves(type_: str) -> None:
    judge(f"""
    func.func @k(%x: memref<128x{type_}>, %y: memref<128x{type_}>) {{
      %a = frag.load %x[0] : memref<128x{type_}> -> !frag.tile<128x{type_}>
      %b = frag.map %a : !frag.tile<128x{type_}> -> !frag.tile<128x{type_}> {{
      ^bb0(%v: {type_}):
        %1 = math.exp2 %v fastmath<afn> : {type_}
        %2 = arith.mulf %v, %1 fastmath<contract> : {type_}
        %3 = arith.addf %2, %v fastmath<contract> : {type_}
        %4 = arith.divf %3, %1 fastmath<arcp> : {type_}
        frag.yield %4 : {type_}
      }}
      frag.store %b, %y[0] : !frag.tile<128x{type_}>, memref<128x{type_}>
      func.return
    }}""", "sm_80")  # fmt: skip


SUMS: dict[str, Callable[[Any, Any], Any]] = {
    "%r0 = arith.addf %p, %v1 fastmath<contract> : f32": lambda p, y: p + y,
    "%r0 = arith.addf %v1, %p fastmath<contract> : f32": lambda p, y: p + y,
    "%r0 = arith.subf %p, %v1 fastmath<contract> : f32": lambda p, y: p - y,
    "%r0 = arith.subf %v1, %p fastmath<contract> : f32": lambda p, y: y - p,
    """%s = arith.mulf %v1, %v1 fastmath<contract> : f32
       %r0 = arith.addf %p, %s fastmath<contract> : f32""": lambda p, y: p + np.float32(y * y),
}


@pytest.mark.parametrize("operation", SUMS)
def test_products_join_sums(operation: str) -> None:
    product = "%p = arith.mulf %v0, %v1 fastmath<contract> : f32\n"
    text = program(product + operation, ["f32", "f32"], ["f32"])
    ptx = fragir.compile(text, target="sm_80").ptx
    assert ptx.count("fma.rn.f32") == 4
    assert ptx.count("mul.rn.f32") == 4 * operation.count("mulf")
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal(256).astype(np.float32) for _ in range(2))
    (found,) = executed(text, [x, y], ["f4"])
    exact = SUMS[operation](wide(x) * wide(y), wide(y))
    assert (found == exact.astype(np.float32)).mean() > 0.99  # rounded once, but for ties
    judge(text.replace("?", "128").replace("%at]", "0]"), "sm_80")


@pytest.mark.parametrize(
    ("first", "second", "uses"),
    [("", "contract", 1), ("contract", "", 1), ("contract", "contract", 2)],
)
def test_products_that_do_not(first: str, second: str, uses: int) -> None:
    flags = [f"fastmath<{flag}>" if flag else "" for flag in (first, second)]
    more = "%r0 = arith.maximumf %s, %p : f32" if uses == 2 else "%r0 = arith.negf %s : f32"
    text = program(
        f"""%p = arith.mulf %v0, %v1 {flags[0]} : f32
        %s = arith.addf %p, %v1 {flags[1]} : f32
        {more}""",
        ["f32", "f32"],
        ["f32"],
    )
    assert "fma" not in fragir.compile(text, target="sm_80").ptx


def test_either_rounding_is_within_the_bound() -> None:
    rng = np.random.default_rng(2)
    x, y, z = (rng.standard_normal(1000).astype(np.float32) for _ in range(3))
    z = (-x * y * (1 + z * np.float32(1e-6))).astype(np.float32)
    factors = [exactly(wide(x)), exactly(wide(y))]
    product = elementwise.apply("arith.mulf", frozenset({"contract"}), factors, "f32")
    assert product is not None
    total = BINARY["arith.addf"](product, exactly(wide(z)), F32)
    once = (wide(x) * wide(y) + wide(z)).astype(np.float32)
    twice = (x * y) + z
    for found in (once, twice):
        assert (np.abs(found - total.value) <= total.bound).all()
    assert (total.bound <= 2.0**-22 * np.abs(x * y) + 1e-30).all()
    # what is exact stays so
    two = exactly(np.array([2.0, 3.0]))
    assert BINARY["arith.mulf"](two, two, F32).exact
    kept = elementwise.apply("arith.mulf", frozenset({"contract"}), [two, two], "f32")
    assert kept is not None
    assert kept.exact


def test_what_may_be_flushed() -> None:
    def bound(name: str, *operands: float) -> float:
        given = [exactly(np.array(x)) for x in operands]
        with np.errstate(all="ignore"):
            found = elementwise.apply(name, frozenset({"afn", "arcp"}), given, "f32")
        assert found is not None
        return float(found.bound)

    assert 2.0**-127 <= bound("math.exp2", -127.0) <= 2.0**-126
    assert bound("math.exp2", -125.0) < 2.0**-140
    assert bound("math.log2", 1e-40) == np.inf
    assert bound("math.rsqrt", 1e-40) == np.inf
    assert 1e-20 < bound("math.sqrt", 1e-40) < 2e-19
    assert bound("arith.divf", 1.0, 1e-40) == np.inf
    assert 1.0 <= bound("arith.divf", 1.5e38, 1.5e38) < 1.01
    assert bound("arith.divf", np.inf, 1.5e38) == np.inf
    assert bound("arith.divf", 0.0, 2.0) == bound("arith.divf", 1.0, np.inf) == 0
    unknown = Bounded(np.array(1.0), np.array(np.inf))
    for name in ("math.exp2", "math.sqrt", "math.log2"):
        with np.errstate(all="ignore"):
            found = elementwise.apply(name, frozenset({"afn"}), [unknown], "f32")
        assert found is not None
        assert np.isinf(found.bound)
    assert np.isfinite(UNARY["math.log2"](exactly(np.array(1e-40)), F32).bound)


def softmax(k: Any, x: Any, *flags: str) -> Any:
    with k.fastmath(*flags):
        return k.exp2(x * 2 + 1) / (x * x + 1)


def test_from_python() -> None:
    with fragir.kernel("soft") as k:
        x = k.memory("x", f32, (128,))
        y = k.memory("y", f32, (128,))
        t = k.load(x, (0,), shape=(128,))
        outside = k.exp2(t)
        k.store(softmax(k, t, "fast") + outside, y, (0,))
    assert k.compile("sm_80").ptx.count("ex2.approx.ftz.f32") == 4
    ptx = k.compile("sm_80").ptx
    assert ptx.count("ex2.approx.f32") == ptx.count("rcp.approx.ftz.f32") == 4
    assert ptx.count("fma.rn.f32") == 8
    a: npt.NDArray[np.float32] = np.linspace(-3, 3, 128, dtype=np.float32)
    b = np.zeros_like(a)
    k.compile("sm_80")(a, b)
    assert np.allclose(b, np.exp2(2 * a + 1) / (a * a + 1) + np.exp2(a), rtol=1e-5)
    with pytest.raises(FragirError, match="no fastmath flag 'affn'"), fragir.kernel("bad") as k:
        softmax(k, None, "affn")


def test_what_it_saves_in_sass() -> None:
    """Scaling of subnormal results and arguments: a comparison and two products each."""
    counts: list[int] = []
    for flags in ("", "fastmath<afn>"):
        text = program(f"%r0 = math.exp2 %v0 {flags} : f32", ["f32"], ["f32"])
        found = opcodes(disassemble(fragir.compile(text, target="sm_80").cubin))
        counts.append(found["FMUL"] + found["FSETP"])
    assert counts[0] > counts[1] == 0
