"""Tiles whose columns are no power of two: which are looked at, what they gain, in how many boxes
they come and leave, and that they are right and do not spill."""

from __future__ import annotations

import re
from math import ceil

import numpy as np
import pytest

import fragir
from fragir.scheduling.candidates import (
    FRAG_TILE,
    SPECIALISED,
    Configuration,
    GemmProblem,
    shapes_of,
)
from fragir.scheduling.choice import choose
from fragir.scheduling.cost import estimate
from fragir.scheduling.devices import device_for
from fragir.toolchain.ptxas import assemble

LOADS = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.shared")
STORES = re.compile(r"cp\.async\.bulk\.tensor\.\dd\.global")
TYPES = {
    "f16": ("f16", np.float16, np.float16, 64),
    "si8": ("i32", np.int8, np.int32, 128),
    "tf32": ("f32", np.float32, np.float32, 32),
}
"""Of C, in numpy's words, and as much of K as 128 bytes hold."""


def problem(
    sizes: tuple[int, int, int],
    element: str = "f16",
    b_transposed: bool = True,
    target: str = "sm_90a",
) -> GemmProblem:
    sums, result = {"f16": ("f32", "f16"), "s8": ("s32", "s32")}[element]
    device = device_for(target)
    return GemmProblem(*sizes, element, sums, result, False, b_transposed, target, device)


def program(
    sizes: tuple[int, int, int], words: str, element: str = "f16", b_transposed: bool = True
) -> str:
    m, n, k = sizes
    a, c = f"memref<{m}x{k}x{element}>", f"memref<{m}x{n}x{TYPES[element][0]}>"
    b = f"memref<{n}x{k}x{element}>" if b_transposed else f"memref<{k}x{n}x{element}>"
    turned = " transposed" if b_transposed else ""
    return f"""func.func @f(%a: {a}, %b: {b}, %c: {c}) {{
      frag.matmul %a, %b{turned} into %c {{{words}}} : {a}, {b} into {c}
      func.return
    }}"""


def schedule(tile: tuple[int, int, int], warps: tuple[int, int], more: str = "") -> str:
    numbers = (", ".join(map(str, each)) for each in (tile, warps))
    tile_words, warp_words = numbers
    return f"tile = array<i64: {tile_words}>, warps = array<i64: {warp_words}>, roles{more}"


@pytest.mark.parametrize(
    ("element", "b_transposed", "target", "step"),
    [
        ("f16", True, "sm_90a", 16),
        ("f16", False, "sm_90a", 32),  # rows of boxes have 64 bytes
        ("s8", True, "sm_90a", 16),
        ("f16", True, "sm_80", 32),
    ],
)
def test_columns_between_powers_of_two(
    element: str, b_transposed: bool, target: str, step: int
) -> None:
    """Of those that cut the matrix into as many tiles the smallest one."""
    for n in (576, 1536, 2112, 24576):
        given = problem((4096, n, 4096), element, b_transposed, target)
        found = {shape.tile[1] for shape in shapes_of(given)}
        plain = {shape.tile[1] for shape in shapes_of(given, between=False)}
        assert plain == {32, 64, 128, 256}
        every = range(96, 256, step)
        counts = {ceil(n / size) for size in every}
        expected = {min(s for s in every if ceil(n / s) == count) for count in counts}
        least = {s for s in expected if ceil(n / (s - step)) > ceil(n / s)}
        assert {s for s in found - plain if s >= 96} == least - plain


@pytest.mark.parametrize(
    ("sizes", "gain"),
    [
        ((1536, 1536, 4096), 1.5),
        ((4096, 576, 7168), 1.5),
        ((4096, 2112, 7168), 1.34),
        ((3072, 3072, 3072), 1.25),
        ((8192, 8192, 8192), 1.0),
    ],
)
def test_waves_are_filled_better(sizes: tuple[int, int, int], gain: float) -> None:
    given = problem(sizes)
    usual = Configuration((128, 256, 64), (2, 1), 3, True)

    def best(between: bool) -> float:
        spaces = [space._replace(between=between) for space in (FRAG_TILE, SPECIALISED)]
        return min(estimate(given, choose(given, usual, space=space)).cycles for space in spaces)

    assert best(False) / best(True) >= gain


def test_a_little_is_not_enough() -> None:
    """240 columns would be 2 % cheaper: less than the model sees of narrower boxes."""
    given = problem((4096, 24576, 1536))
    usual = Configuration((128, 256, 64), (2, 1), 3, True)
    assert choose(given, usual, space=SPECIALISED).tile == (128, 256, 64)
    powers = SPECIALISED._replace(between=False)
    assert choose(given, usual, space=SPECIALISED) == choose(given, usual, space=powers)


@pytest.mark.parametrize("columns", [96, 224])
def test_boxes_of_a_slot_and_of_c(columns: int) -> None:
    """A and B come in a box each, in half of one where a cluster shares B; C leaves in boxes of 64
    columns and one of the rest; nothing spills."""
    for cluster in (1, 2):
        words = schedule((128, columns, 64), (2, 1), f", cluster = {cluster} : i64")
        kernel = fragir.compile(program((4096, 10 * columns, 512), words), target="sm_90a")
        assert len(LOADS.findall(kernel.ptx)) == 2
        wide = columns % 32 == 0  # of 64 bytes a row
        boxes = columns // (64 if columns % 64 == 0 else 32) if wide else ceil(columns / 64)
        assert len(STORES.findall(kernel.ptx)) == boxes
        ((_, info),) = assemble(kernel.ptx, "sm_90a").entries.items()
        assert info.spill_stores == info.spill_loads == 0


@pytest.mark.parametrize("columns", [112, 208])
def test_narrow_rests_of_c(columns: int) -> None:
    words = schedule((128, columns, 64), (2, 1))
    kernel = fragir.compile(program((4096, 10 * columns, 512), words), target="sm_90a")
    # 64 columns a box, and of the rest, 16 or 48 columns, boxes of 16
    rest = columns % 64
    assert len(STORES.findall(kernel.ptx)) == columns // 64 + rest // 16
    assert kernel.notes == []


CASES = [
    ((136, 216, 72), "f16", True, ((128, 208, 64), (2, 1)), ", cluster = 2 : i64"),
    ((72, 296, 128), "f16", True, ((64, 144, 64), (1, 1)), ", consumers = 2 : i64"),
    ((136, 232, 136), "f16", False, ((128, 160, 64), (2, 1)), ""),
    ((72, 120, 272), "si8", True, ((128, 112, 128), (2, 1)), ""),
    ((224, 136, 80), "tf32", False, ((208, 128, 32), (1, 2)), ""),
]


@pytest.mark.parametrize(("sizes", "element", "b_transposed", "tile", "more"), CASES, ids=str)
def test_they_are_right(
    sizes: tuple[int, int, int],
    element: str,
    b_transposed: bool,
    tile: tuple[tuple[int, int, int], tuple[int, int]],
    more: str,
) -> None:
    m, n, k = sizes
    text = program(sizes, schedule(*tile, f", stages = 2 : i64{more}"), element, b_transposed)
    kernel = fragir.compile(text, target="sm_90a")
    rng = np.random.default_rng(3)
    _, operand, result, _ = TYPES[element]
    a, b = rng.integers(-4, 5, (m, k)), rng.integers(-4, 5, (k, n))
    c = np.zeros((m, n), result)
    given = (b.T if b_transposed else b).astype(operand)
    report = kernel(a.astype(operand), np.ascontiguousarray(given), c, on="emulator", check=True)
    assert not report.findings
    assert (c == (a @ b).astype(result)).all()


@pytest.mark.parametrize("element", ["si8", "tf32"])
def test_a_transposed_operand_costs_one_barrier_a_step(element: str) -> None:
    """A and B across K, by roles: one place is read while the other is written; so threads meet
    once a step."""
    m, n, depth = 80, 144, TYPES[element][3]
    c, operand, result, _ = TYPES[element]
    for steps in (2, 3):
        k = steps * depth - 16
        text = f"""func.func @f(%a: memref<{k}x{m}x{element}>, %b: memref<{k}x{n}x{element}>,
                          %c: memref<{m}x{n}x{c}>) {{
          frag.matmul %a transposed, %b into %c
              {{{schedule((64, 128, depth), (1, 2), ", stages = 2 : i64")}}}
              : memref<{k}x{m}x{element}>, memref<{k}x{n}x{element}> into memref<{m}x{n}x{c}>
          func.return
        }}"""
        kernel = fragir.compile(text, target="sm_90a")
        lines = [line.strip() for line in kernel.ptx.splitlines()]
        start = next(i for i, line in enumerate(lines) if line.startswith("wgmma.mma_async"))
        heads = [i for i, line in enumerate(lines[:start]) if line.startswith("$loop")]
        turns = [
            (head, i)
            for head in heads
            for i in range(start, len(lines))
            if lines[i].endswith(f"bra {lines[head].removesuffix(':')};")
        ]
        loop, end = max(turns)  # the innermost
        assert sum(line.startswith("bar.sync") for line in lines[loop:end]) == 1
        rng = np.random.default_rng(k)
        a, b = rng.integers(-4, 5, (k, m)), rng.integers(-4, 5, (k, n))
        out = np.zeros((m, n), result)
        given = (a.astype(operand), b.astype(operand), out)
        report = kernel(*given, on="emulator", resident=1, check=True)
        assert not report.findings
        assert (out == (a.T @ b).astype(result)).all()
