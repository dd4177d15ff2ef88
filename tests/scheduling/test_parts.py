"""Into how many parts a product's sums are cut where it gives memory for them and no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fragir
from fragir.compiler import parse
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.tiling.choosing import choice_for
from fragir.passes.tiling.explained import explain_schedules
from fragir.passes.tiling.gemm_schedule import configuration_of, problem_of
from fragir.scheduling.candidates import FRAG_TILE, Configuration, configurations, in_parts
from fragir.scheduling.cost import at_least, estimate

Sizes = tuple[int, int, int]


def product(sizes: Sizes, words: str = "", most: str = "?", out: str = "f16") -> str:
    """C = A B with memory for parts."""
    m, n, k = sizes
    a, b, c = f"memref<{m}x{k}xf16>", f"memref<{k}x{n}xf16>", f"memref<{m}x{n}x{out}>"
    partial, counts = f"memref<{most}x{m}x{n}xf32>", "memref<?x?xi32>"
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}, %partial: {partial}, %counts: {counts}) {{
      frag.matmul %a, %b into %c through %partial, %counts {words}
          : {a}, {b} into {c} through {partial}, {counts}
      func.return
    }}"""


def whole(sizes: Sizes, out: str = "f16", epilogue: str = "") -> str:
    """C = A B without memory for parts."""
    m, n, k = sizes
    a, b, c = f"memref<{m}x{k}xf16>", f"memref<{k}x{n}xf16>", f"memref<{m}x{n}x{out}>"
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
      frag.matmul %a, %b into %c : {a}, {b} into {c} {epilogue}
      func.return
    }}"""


def matmul(text: str) -> frag.MatmulOp:
    return next(op for op in parse(text).walk() if isinstance(op, frag.MatmulOp))


def parts_of(text: str, target: str) -> tuple[int, bool] | None:
    return choice_for(matmul(text), target).schedule.parts


# few tiles and a long K; a wave and a bit; enough tiles; too little work to hand it over
TABLE = [
    ((512, 512, 16384), "sm_90a", (4, False)),
    ((64, 4096, 14336), "sm_90a", (4, False)),  # decoding 64 sequences: an MLP's way down
    ((64, 4096, 14336), "sm_80", (6, False)),
    ((1152, 1152, 16384), "sm_90a", (4, True)),  # 54 tiles of 128 x 192 for 132 SMs
    ((1536, 1536, 8192), "sm_90a", None),  # 120 tiles of 128 x 160
    ((64, 14336, 4096), "sm_90a", None),  # its way up: memory is what both wait for
    ((2048, 2048, 2048), "sm_90a", None),
    ((8192, 8192, 8192), "sm_90a", None),
    ((65536, 1024, 1024), "sm_80", None),
    ((1024, 65536, 1024), "sm_90a", None),
    ((8, 512, 512), "sm_90a", None),
]


@pytest.mark.parametrize(("sizes", "target", "parts"), TABLE, ids=str)
def test_sums_are_cut_where_few_tiles_have_much_to_add(
    sizes: Sizes, target: str, parts: tuple[int, bool] | None
) -> None:
    assert parts_of(product(sizes), target) == parts
    assert parts_of(whole(sizes), target) is None
    if parts is not None:
        found = choice_for(matmul(product(sizes)), target).schedule
        before = choice_for(matmul(whole(sizes)), target).schedule
        problem = problem_of(matmul(product(sizes)), sizes, target)
        costs = [estimate(problem, configuration_of(one)).cycles for one in (before, found)]
        assert costs[0] > 1.1 * costs[1]


def test_there_are_no_more_parts_than_memory_for_them() -> None:
    sizes = (512, 512, 16384)
    assert parts_of(product(sizes, most="2"), "sm_90a") == (2, False)
    assert parts_of(product(sizes, most="1"), "sm_90a") is None


def test_what_the_program_says_is_done() -> None:
    sizes = (512, 512, 16384)
    tile = "tile = array<i64: 128, 128, 64>, stages = 3 : i64"
    only_parts = choice_for(matmul(product(sizes, f"{{{tile}}}")), "sm_90a").schedule
    assert only_parts.tile == (128, 128, 64)
    assert only_parts.stages == 3
    assert only_parts.parts is not None
    said = choice_for(matmul(product(sizes, "{split_k = 2 : i64}")), "sm_90a").schedule
    assert said.parts == (2, False)
    roles = choice_for(matmul(product(sizes, "{roles}")), "sm_90a").schedule
    assert roles.roles
    assert roles.parts is not None
    assert parts_of(product(sizes).replace("512x512xf16", "?x?xf16"), "sm_90a") is not None


def test_sizes_of_the_launch_leave_sums_whole() -> None:
    text = product((1, 1, 1)).replace("1x1x", "?x?x")
    assert parts_of(text, "sm_90a") is None


@settings(max_examples=25, deadline=None)
@given(
    st.tuples(st.integers(1, 3000), st.integers(1, 3000), st.integers(1, 40_000)),
    st.sampled_from(("sm_80", "sm_90a", "sm_120a")),
    st.integers(2, 16),
)
def test_costs_of_parts(sizes: Sizes, target: str, most: int) -> None:
    """All that is enumerated fits, costs more than nothing, and never less than its bound; parts
    multiply no less than the product has."""
    problem = problem_of(matmul(whole((64, 64, 64))), sizes, target)
    space = FRAG_TILE._replace(parts=in_parts(most))
    every = list(configurations(problem, space))
    for one in every[:: 1 + len(every) // 10]:
        assert one.problem(problem) is None
        assert 2 <= one.parts <= most
        assert one.persistent == one.even
        low, cost = at_least(problem, one), estimate(problem, one)
        assert 0 < low.cycles <= cost.cycles
        alone = estimate(problem, one._replace(parts=1, even=False, persistent=False))
        assert cost.tensor >= alone.tensor / one.parts / (1 + one.even) * 0.999
        assert cost.dram >= 0.999 * alone.dram or one.parts > 1


def test_whole_tiles_a_block_need_no_parts() -> None:
    """Even shares that are whole tiles cost what tiles do, apart from where K is begun."""
    problem = problem_of(matmul(whole((64, 64, 64))), (4096, 132 * 128, 4096), "sm_90a")
    one = Configuration((128, 256, 64), (2, 1), 3, True)
    even = one._replace(parts=4, even=True, persistent=True)
    assert estimate(problem, even).tensor == estimate(problem, one).tensor
    assert estimate(problem, even).cycles <= estimate(problem, one).cycles


# --- what the launch is told ----------------------------------------------------------------------


def test_a_launch_is_told_and_checked() -> None:
    text = product((96, 80, 2048), "{tile = array<i64: 64, 64, 64>, split_k = 3 : i64}")
    kernel = fragir.compile(text, target="sm_80")
    assert kernel.least_shapes({}) == {"partial": (3, 96, 80), "counts": (2, 2)}
    a, b, c = (np.zeros(s, np.float16) for s in ((96, 2048), (2048, 80), (96, 80)))
    partial, counts = np.zeros((3, 96, 80), np.float32), np.zeros((2, 2), np.int32)
    for on in ("emulator", "gpu"):
        with pytest.raises(FragirError, match=r"partial has shape \(2, 96, 80\), f needs \(3, 96"):
            kernel(a, b, c, partial[:2], counts, on=on)
        with pytest.raises(FragirError, match=r"counts has shape \(2, 1\), f needs \(2, 2\) or mo"):
            kernel(a, b, c, partial, np.zeros((2, 1), np.int32), on=on)
    larger = np.zeros((4, 96, 80), np.float32), np.zeros((5, 7), np.int32)
    assert not kernel(a, b, c, *larger, on="emulator", check=True).findings


def test_sizes_of_a_launch_say_how_much_memory() -> None:
    text = product((1, 1, 1), "{split_k = 3 : i64, tile = array<i64: 64, 32, 32>}")
    kernel = fragir.compile(text.replace("1x1x", "?x?x"), target="sm_80")
    shapes = kernel.least_shapes({"m": 65, "n": 64, "k": 9})
    assert shapes == {"partial": (3, 65, 64), "counts": (2, 2)}
    with pytest.raises(FragirError, match="what partial needs depends on the size m"):
        kernel.least_shapes({"k": 9})
    arrays = [np.zeros(shape, np.float16) for shape in ((65, 9), (9, 64), (65, 64))]
    few = np.zeros((1, 2), np.int32)
    with pytest.raises(FragirError, match=r"needs \(2, 2\) or more \(ceil\(m / 64\) x ceil\(n / "):
        kernel(*arrays, np.zeros((3, 65, 64), np.float32), few, on="emulator")


@pytest.mark.parametrize(
    ("sizes", "target", "words"),
    [
        ((64, 48, 4096), "sm_80", ""),
        ((40, 72, 4096), "sm_90a", ""),
        ((64, 64, 4096), "sm_90a", "{roles}"),
        ((130, 70, 2048), "sm_120a", ""),
    ],
)
def test_chosen_parts_are_right(sizes: Sizes, target: str, words: str) -> None:
    """Exact on the emulator, silent in its checks, nothing that ptxas says; counts are zeros."""
    m, n, k = sizes
    kernel = fragir.compile(product(sizes, words), target=target)
    shapes = kernel.least_shapes({})
    assert shapes["partial"][0] > 1
    rng = np.random.default_rng(1)
    a = rng.integers(-2, 3, (m, k)).astype(np.float16)
    b = rng.integers(-2, 3, (k, n)).astype(np.float16)
    c = np.zeros((m, n), np.float16)
    memory: list[Any] = [
        np.full(shapes["partial"], np.nan, np.float32),
        np.zeros(shapes["counts"], np.int32),
    ]
    report = kernel(a, b, c, *memory, on="emulator", check=True)
    assert not report.findings
    assert (c == (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16)).all()
    assert not memory[1].any()
    assert kernel.notes == []


@pytest.mark.parametrize(("sizes", "target", "parts"), TABLE[:4], ids=str)
def test_what_is_chosen_neither_spills_nor_waits(
    sizes: Sizes, target: str, parts: tuple[int, bool]
) -> None:
    kernel = fragir.compile(product(sizes), target=target)
    assert kernel.assembled.warnings == []
    assert [*kernel.remarks, *kernel.schedule_notes()] == []


# --- what is said of it ---------------------------------------------------------------------------

OLD = """epilogue {
  ^bb0(%sum: f32, %old: f32):
    %r = arith.addf %sum, %old : f32
    frag.yield %r : f32
  }"""
MEMORY = (
    "remark: 128x64x64, 2x1 warpgroups, 4 stages, 4 parts would be 1.31 times as fast: write "
    "`through %partial, %counts`, of memref<?x512x512xf32> and memref<?x?xi32>; "
    "Kernel.least_shapes tells how large"
)
ATOMICS = (
    "remark: or without that memory, by {split_k = 4 : i64}OLD: parts are then added to C in any "
    "order, and its last bits differ from launch to launch"
)


def explained(text: str) -> list[str]:
    (found,) = explain_schedules(parse(text), "sm_90a")
    return str(found).splitlines()


def test_what_parts_would_gain_is_said() -> None:
    sizes = (512, 512, 16384)
    lines = explained(whole(sizes, "f32"))
    assert lines[-3].startswith("chosen: 64x32x64")
    assert lines[-2:] == [
        MEMORY,
        ATOMICS.replace("OLD", ", the epilogue `sum + old` and a C of zeros"),
    ]
    assert explained(whole(sizes, "f32", OLD))[-1] == ATOMICS.replace("OLD", "")
    assert "remark" in explained(whole(sizes))[-1]  # f16 takes no atomics of f32
    assert "in any order" not in explained(whole(sizes))[-1]
    assert explained(whole((2048, 2048, 2048)))[-1].startswith("chosen")


def test_chosen_parts_are_explained() -> None:
    lines = explained(product((1152, 1152, 16384)))
    (chosen,) = (line for line in lines if line.startswith("> "))
    assert "128x192x64 (persistent, even shares of 4 parts at most)" in chosen
    assert lines[-1] == (
        "chosen: 128x192x64, 2x1 warpgroups, 3 stages, persistent, even shares of 4 parts at most: "
        "2.32 times as fast as the usual 128x256x64, 2x1 warpgroups, 3 stages"
    )
    said = explained(product((1536, 1536, 8192), "{split_k = 2 : i64}"))
    assert any(line.startswith("> ") and "2 parts" in line for line in said)


def test_fragir_run_judges_what_parts_become(
    tmp_path: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """Counts begin with zeros, the memory for parts is nobody's afterwards, and too little of it is
    refused before anything is computed."""
    from fragir.cli.main import main

    path = tmp_path / "f.mlir"
    named = '%counts: memref<?x?xi32> {frag.sizes = ["rows", "columns"]}'
    path.write_text(product((64, 64, 2048)).replace("%counts: memref<?x?xi32>", named))
    words = ["run", str(path), "--target", "sm_90a", "--on", "emulator", "--size"]
    assert main([*words, "partial_d0=4,rows=1,columns=2"]) == 0
    out = capfd.readouterr().out
    assert "largest error in c " in out
    assert "largest error in counts" in out
    assert "error in partial" not in out
    assert main([*words, "partial_d0=4,rows=1,columns=1"]) != 0
    assert "counts has shape (1, 1), f needs (1, 2) or more" in capfd.readouterr().err


def test_even_shares_have_more_blocks_than_tiles() -> None:
    """As many as run at once, up to the number of parts: 54 tiles would keep 54 of 132 SMs busy."""
    sizes = (1152, 1152, 16384)
    kernel = fragir.compile(product(sizes), target="sm_90a")
    assert kernel.grid({"parts": 4}, resident=132) == (132, 1, 1)
    assert kernel.grid({"parts": 4}) == (4 * 9 * 6, 1, 1)
