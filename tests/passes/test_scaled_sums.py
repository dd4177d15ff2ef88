"""Products with scales, and partial sums that are promoted: roads, meaning, machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects import func

import fragir
from benchmarks.sweeps.pipelines import Config, check
from fragir.compilation.pipeline import parse as parse_passes
from fragir.compilation.pipeline import run
from fragir.compiler import parse
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.tiling.choosing import choice_for
from fragir.passes.tiling.scaled_sum import promoted_tile
from fragir.reference import evaluate
from fragir.reference.formats import decode, encode
from tests.properties.judge import judge

CLUSTER = "roles, cluster = 2 : i64"
PING_PONG = "roles, consumers = 2 : i64"
NT, NN, TN = (False, True), (False, False), (True, False)
CASES = [
    Config("sm_90a", CLUSTER, "f8E4M3FN", NT, "none", (200, 136, 80), False, "bf16", "blocks"),
    Config("sm_90a", PING_PONG, "f8E4M3FN", NT, "none", (64, 272, 48), True, "", "blocks across"),
    Config("sm_90a", "", "f8E4M3FN", TN, "none", (64, 272, 48), False, "", "lines"),
    Config("sm_90a", "", "bf16", NN, "old", (130, 250, 0), False, "", "blocks, columns"),
    Config("sm_89", "", "f8E4M3FN", NT, "bias", (200, 136, 80), False, "", "blocks"),
    Config("sm_120a", "roles", "f8E4M3FN", NT, "none", (128, 128, 128), True, "", "promoted"),
    Config("sm_80", "", "f16", NN, "none", (64, 272, 48), False, "", "rows"),
]
BLOCKS = """
func.func @gemm(%a: memref<{m}x{k}xf8E4M3FN>, %b: memref<{n}x{k}xf8E4M3FN>,
                %x: memref<{g}x{m}xf32>, %y: memref<{h}x{g}xf32>, %c: memref<{m}x{n}xf32>) {{
  frag.matmul %a scaled %x transposed by [1, 128],
      %b transposed scaled %y transposed by [128, 128] into %c {{{words}}}
      : memref<{m}x{k}xf8E4M3FN> scaled memref<{g}x{m}xf32>,
        memref<{n}x{k}xf8E4M3FN> scaled memref<{h}x{g}xf32> into memref<{m}x{n}xf32>
  func.return
}}
"""


def blocks(m: int, n: int, k: int, words: str = "") -> str:
    return BLOCKS.format(m=m, n=n, k=k, g=-(-k // 128), h=-(-n // 128), words=words)


@pytest.mark.parametrize("config", CASES, ids=lambda c: f"{c.target} {c.schedule} {c.scales}")
def test_products(config: Config) -> None:
    """Exact, silent in every check under three schedules, and nothing that ptxas says."""
    assert check(config) == []


@pytest.mark.parametrize("target", ["sm_90a", "sm_89"])
def test_sums_are_within_the_bound(target: str) -> None:
    """Of random numbers, and the IR survives printing at every level."""
    judge(blocks(70, 40, 300), target)


def test_the_meaning_is_numpys() -> None:
    """The reference multiplies every element of A and B by the scale of its block."""
    m, n, k = 33, 200, 300
    rng = np.random.default_rng(1)
    stored = [encode(rng.standard_normal(shape), "e4m3") for shape in ((m, k), (n, k))]
    x = rng.uniform(0.5, 2, (3, m)).astype(np.float32)
    y = rng.uniform(0.5, 2, (2, 3)).astype(np.float32)
    a, b = (decode(values, "e4m3").astype(float) for values in stored)
    a *= np.repeat(x, 128, 0)[:k].T
    b *= np.repeat(np.repeat(y, 128, 0)[:n], 128, 1)[:, :k]
    c = np.zeros((m, n), np.float32)
    (function,) = parse(blocks(m, n, k)).ops
    assert isinstance(function, func.FuncOp)
    found = evaluate(function, [*stored, x, y, c], target="sm_90a")[4]
    assert found is not None
    sizes = np.abs(a) @ np.abs(b).T
    assert np.all(np.abs(found.value - a @ b.T) <= 3 * 2.0**-24 * sizes)
    # four steps of 14 bits, each of which cuts 33 numbers off, whatever K is
    assert np.all(found.bound <= 4 * 34 * 2.0**-13 * sizes)


def test_promotion_keeps_what_14_bits_lose() -> None:
    """On sm_90a sums of bytes have 14 bits; those of 128 of K are added in f32."""
    k, errors = 2048, dict[str, float]()
    rng = np.random.default_rng(2)
    a, b = (encode(rng.uniform(0.5, 1, (16, k)), "e4m3") for _ in range(2))
    exact = decode(a, "e4m3").astype(float) @ decode(b, "e4m3").astype(float).T
    for words in ("", "promote = 128 : i64"):
        text = f"""
func.func @gemm(%a: memref<16x{k}xf8E4M3FN>, %b: memref<16x{k}xf8E4M3FN>, %c: memref<16x16xf32>) {{
  frag.matmul %a, %b transposed into %c {{{words}}}
      : memref<16x{k}xf8E4M3FN>, memref<16x{k}xf8E4M3FN> into memref<16x16xf32>
  func.return
}}
"""
        c = np.zeros((16, 16), np.float32)
        fragir.compile(text, target="sm_90a")(a, b, c, on="emulator")
        errors[words] = float(np.max(np.abs(c - exact) / exact))
    assert errors["promote = 128 : i64"] < errors[""] / 4


@pytest.mark.parametrize("words", ["", "roles"])
def test_a_turn_sets_its_sums_and_loads_scales_ahead(words: str) -> None:
    """The first product has `scale-d` 0, scales of the next turn are loaded behind the products."""
    kernel = fragir.compile(blocks(1024, 1024, 1024, words), target="sm_90a")
    assert kernel.assembled.verdicts == []
    lines = kernel.ptx.splitlines()
    products = [at for at, line in enumerate(lines) if "wgmma.mma_async" in line]
    assert len(products) == 4
    predicate = lines[products[0]].rpartition("}, ")[2].split(", ")[2]
    assert f"mov.pred {predicate}, 0;" in lines[products[0] - 1]
    turn = lines[
        products[0] : next(
            at for at, line in enumerate(lines) if at > products[-1] and "fma.rn.f32" in line
        )
    ]
    assert sum("ld.global" in line for line in turn) == 3
    # where the same warps copy, they do it while products run
    assert any("cp.async.cg" in line for line in turn) == (not words)
    assert "wgmma.wait_group.sync.aligned 0;" in turn[-1] or "mbarrier.arrive" in turn[-1]
    loop = lines[: products[0]][::-1]
    start = next(at for at, line in enumerate(loop) if line.startswith("$") and "loop" in line)
    assert not any("ld.global" in line for line in loop[:start])


def test_tiles_of_partial_sums() -> None:
    """A turn forms one partial sum, of a tile that leaves registers for it."""
    for words, shape in (("stages = 2 : i64", (128, 128)), (PING_PONG, (64, 128))):
        module = parse(blocks(1024, 1024, 1024, words))
        run(parse_passes("frag-tile{target=sm_90a}"), module)
        (product,) = [op for op in module.walk() if isinstance(op, frag.MmaOp)]
        assert frag.tile_of(product.d).shape == shape
        assert frag.tile_of(product.a).shape[1] == 128


@pytest.mark.parametrize(
    ("lines", "crowded", "single", "tile"),
    [
        (999, False, False, [128, 128, 128]),
        (999, False, True, [64, 128, 128]),
        (999, True, False, [64, 128, 128]),
        (192, False, False, [128, 64, 128]),
        (96, False, False, [64, 64, 128]),
    ],
)
def test_room_for_partial_sums(lines: int, crowded: bool, single: bool, tile: list[int]) -> None:
    assert promoted_tile([128, 256, 64], 128, None, lines, crowded, single) == tile


def test_the_choice_knows_partial_sums() -> None:
    """128x256 would be cheaper, of one sum; roles and clusters are chosen as for other products."""
    module = parse(blocks(8192, 8192, 8192))
    (product,) = [op for op in module.walk() if isinstance(op, frag.MatmulOp)]
    schedule = choice_for(product, "sm_90a").schedule
    assert (schedule.tile, schedule.roles, schedule.cluster) == ((128, 128, 128), True, 2)


def test_names_of_blocks() -> None:
    """A launch without names in the program knows the sizes, and that both have scales of K."""
    text = """
func.func @gemm(%a: memref<?x?xf8E4M3FN>, %b: memref<?x?xf8E4M3FN>,
                %x: memref<?x?xf32>, %y: memref<?x?xf32>, %c: memref<?x?xf32>) {
  frag.matmul %a scaled %x by [1, 128], %b transposed scaled %y transposed by [128, 128] into %c
      : memref<?x?xf8E4M3FN> scaled memref<?x?xf32>, memref<?x?xf8E4M3FN> scaled memref<?x?xf32>
      into memref<?x?xf32>
  func.return
}
"""
    kernel = fragir.compile(text, target="sm_90a")
    assert [argument.dims for argument in kernel.signature] == [
        ("m", "k"),
        ("n", "k"),
        ("m", "k_by_128"),
        ("n_by_128", "k_by_128"),
        ("m", "n"),
    ]
    shapes: list[Any] = [(16, 200), (16, 200), (16, 2), (1, 1), (16, 16)]
    arrays = [np.zeros(shape, np.uint8 if i < 2 else np.float32) for i, shape in enumerate(shapes)]
    with pytest.raises(FragirError, match="k_by_128"):
        kernel(*arrays, on="emulator")


def test_scales_that_the_reference_misses() -> None:
    text = blocks(16, 16, 200).replace("memref<2x16xf32>", "memref<?x16xf32>")
    (function,) = parse(text).ops
    assert isinstance(function, func.FuncOp)
    shapes = ((16, 200), (16, 200), (1, 16), (1, 2), (16, 16))
    arrays = [np.zeros(shape, np.uint8 if i < 2 else np.float32) for i, shape in enumerate(shapes)]
    with pytest.raises(FragirError, match="A has scales for 128 of K"):
        evaluate(function, arrays, target="sm_90a")
