"""Sums in parts that no word asks for, through memory that the launcher allocates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fragir
from fragir.compiler import parse
from fragir.dialects import frag
from fragir.dialects.frag.kernels import kernels_of
from fragir.passes.tiling.choosing import choice_for
from fragir.passes.tiling.gemm_schedule import configuration_of, problem_of
from fragir.passes.tiling.parts_memory import GAIN, LAUNCH
from fragir.scheduling.candidates import FRAG_TILE, SPECIALISED
from fragir.scheduling.choice import rank
from fragir.scheduling.cost import estimate

Array = np.ndarray[Any, Any]


def product(m: int, n: int, k: int, words: str = "", out: str = "f16", more: str = "") -> str:
    """C = A B^T."""
    a, b, c = f"memref<{m}x{k}xf16>", f"memref<{n}x{k}xf16>", f"memref<{m}x{n}x{out}>"
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
  frag.matmul %a, %b transposed into %c {words} : {a}, {b} into {c} {more}
  func.return
}}
"""


def matmul(text: str) -> frag.MatmulOp:
    return next(op for op in parse(text).walk() if isinstance(op, frag.MatmulOp))


# few tiles and a long K; one token's; enough tiles, or bound by memory as it is; too little of all
TABLE = [
    ((64, 1024, 4096), "sm_90a", True),
    ((64, 1024, 4096), "sm_80", True),
    ((256, 256, 16384), "sm_90a", True),
    ((512, 512, 16384), "sm_80", True),
    ((64, 4096, 14336), "sm_80", True),
    ((16, 4096, 4096), "sm_90a", False),
    ((64, 14336, 4096), "sm_90a", False),
    ((32, 2048, 2048), "sm_90a", False),
    ((4096, 4096, 4096), "sm_90a", False),
    ((128, 128, 256), "sm_80", False),
]


@pytest.mark.parametrize(("sizes", "target", "cut"), TABLE)
def test_which_products(sizes: tuple[int, int, int], target: str, cut: bool) -> None:
    """As the cost model says, the launch that sets counts to zero included."""
    op = matmul(product(*sizes))
    choice = choice_for(op, target, allocates=True)
    assert (choice.schedule.parts is not None) == cut
    if not cut:
        return
    problem = problem_of(op, sizes, target)
    found = configuration_of(choice.schedule)
    assert found.problem(problem) is None
    whole = [one for space in (FRAG_TILE, SPECIALISED) for one in rank(problem, space=space)[:1]]
    least = min(one.estimate.cycles for one in whole)
    assert GAIN * (estimate(problem, found).cycles + LAUNCH) < least


@pytest.mark.parametrize(
    "words",
    [
        "{tile = array<i64: 64, 64, 64>}",
        "{stages = 2 : i64}",
        "{roles}",
        "{cluster = 2 : i64}",
        "accumulate f16",
    ],
)
def test_what_a_program_says_stays(words: str) -> None:
    op = matmul(product(64, 1024, 4096, words))
    assert choice_for(op, "sm_90a", allocates=True).schedule.parts is None


def test_what_others_launch_is_one_kernel() -> None:
    """The command line's PTX, and passes that are listed, ask for no memory."""
    text = product(8, 8, 4096)
    assert fragir.compile(text).is_program
    assert not fragir.compile(text, alone=True).is_program
    (one,) = kernels_of(fragir.lower(fragir.parse(text)))
    assert len(one.body.block.args) == 3


def arrays(m: int, n: int, k: int) -> tuple[Array, Array]:
    random = np.random.default_rng(m + n + k)
    a, b = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k)))
    return a, b


@pytest.mark.parametrize(
    ("sizes", "target"),
    [((33, 12, 4104), "sm_80"), ((5, 40, 4200), "sm_90a"), ((1, 9, 4099), "sm_80")],
)
def test_it_is_right_and_the_same_each_time(sizes: tuple[int, int, int], target: str) -> None:
    m, n, _ = sizes
    program = fragir.compile(product(*sizes), target=target)
    assert program.is_program
    a, b = arrays(*sizes)
    found: list[Array] = []
    for schedule in (None, 3):
        c = np.full((m, n), 99, np.float16)
        program(a, b, c, on="emulator", schedule=schedule)
        found.append(c)
    assert found[0].tobytes() == found[1].tobytes()
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    np.testing.assert_allclose(found[0], exact, rtol=2e-3, atol=0.1)


def test_checks_are_silent() -> None:
    a, b = arrays(8, 8, 4096)
    c = np.zeros((8, 8), np.float16)
    report = fragir.compile(product(8, 8, 4096))(a, b, c, on="emulator", check=True)
    assert not report.findings


def test_an_epilogue_is_of_the_whole_sum() -> None:
    old = """epilogue {
  ^bb0(%sum: f32, %old: f32):
    %two = arith.constant 2.0 : f32
    %x = arith.mulf %two, %sum : f32
    %y = arith.addf %x, %old : f32
    frag.yield %y : f32
  }"""
    program = fragir.compile(product(8, 24, 4096, out="f32", more=old))
    assert program.is_program
    a, b = (np.sign(x) for x in arrays(8, 24, 4096))
    c = np.arange(8 * 24, dtype=np.float32).reshape(8, 24)
    expected = 2 * (a.astype(np.float32) @ b.astype(np.float32).T) + c
    program(a, b, c, on="emulator")
    np.testing.assert_array_equal(c, expected)


HOST = f"""
func.func @twice(%a: memref<8x4096xf16>, %b: memref<16x4096xf16>, %c: memref<8x16xf32>,
                 %d: memref<8x16xf32>) attributes {{frag.host}} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {{
    frag.launch @f(%a, %b, %c) : memref<8x4096xf16>, memref<16x4096xf16>, memref<8x16xf32>
  }}
  frag.launch @f(%a, %b, %d) : memref<8x4096xf16>, memref<16x4096xf16>, memref<8x16xf32>
  func.return
}}
{product(8, 16, 4096, out="f32")}
"""


def test_a_program_that_launches_it_thrice() -> None:
    """Each launch has counts that are zero."""
    program = fragir.compile(HOST, entry="twice")
    a, b = (np.sign(x) for x in arrays(8, 16, 4096))
    c, d = np.zeros((8, 16), np.float32), np.zeros((8, 16), np.float32)
    report = program(a, b, c, d, on="emulator", check=True)
    assert not report.findings
    expected = a.astype(np.float32) @ b.astype(np.float32).T
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(d, expected)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_linalg(target: str) -> None:
    program = fragir.compile(
        """
func.func @f(%a: tensor<8x4096xbf16>, %b: tensor<4096x24xbf16>, %c: tensor<8x24xbf16>)
    -> tensor<8x24xbf16> {
  %d = linalg.matmul ins(%a, %b : tensor<8x4096xbf16>, tensor<4096x24xbf16>)
      outs(%c : tensor<8x24xbf16>) -> tensor<8x24xbf16>
  func.return %d : tensor<8x24xbf16>
}
""",
        target=target,
    )
    assert program.is_program
    assert any("parts" in words for words in program.remarks)


def test_from_python() -> None:
    f16, f32 = fragir.f16, fragir.f32
    with fragir.kernel("gemm") as k:
        a, b = k.memory("a", f16, (8, 4096)), k.memory("b", f16, (4096, 8))
        k.matmul(a, b, into=k.memory("c", f32, (8, 8)))
    program = k.compile()
    x, y = (np.sign(each) for each in arrays(8, 8, 4096))
    z = np.zeros((8, 8), np.float32)
    program(x, np.ascontiguousarray(y.T), z, on="emulator")
    np.testing.assert_array_equal(z, x.astype(np.float32) @ y.astype(np.float32).T)
