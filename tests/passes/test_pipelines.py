"""Products through frag-pipeline, frag-specialize and frag-prefetch."""

from __future__ import annotations

import pytest

import fragir
from benchmarks.sweeps.pipelines import Config, check, grid, text_of
from fragir.compilation.pipeline import parse, run
from fragir.compilation.program import parse as parse_program
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.toolchain.ptxas import assemble

CLUSTER = "roles, cluster = 2 : i64"
CASES = [
    Config("sm_90a", "roles", "f16", (False, False), "none", (200, 136, 80), False),
    Config("sm_90a", CLUSTER, "bf16", (True, True), "old", (136, 272, 80), False),
    Config("sm_90a", "roles", "si8", (False, True), "bias", (64, 272, 48), True),
    Config("sm_90a", "roles", "tf32", (True, False), "none", (128, 128, 128), False),
    Config("sm_90a", "", "f8E4M3FN", (False, True), "old", (200, 136, 80), False),
    Config("sm_80", "", "tf32", (True, False), "bias", (64, 272, 48), True),
    Config("sm_120a", "", "f16", (False, True), "old", (130, 250, 0), False),
]


@pytest.mark.parametrize("config", CASES, ids=lambda c: f"{c.target} {c.schedule} {c.element}")
def test_products(config: Config) -> None:
    """Exact, silent in every check under three schedules, and nothing that ptxas says."""
    assert check(config) == []


def test_the_grid_has_every_product_once() -> None:
    configs = list(grid())
    assert len(set(configs)) == len(configs) > 3000


def test_the_target_kernel() -> None:
    """Four products a turn, a wait for all but the newest, TMA by one warp, registers moved."""
    text = text_of(Config("sm_90a", CLUSTER, "f16", (False, False), "none", (200, 136, 80), False))
    kernel = fragir.compile(text, target="sm_90a")
    body = kernel.ptx
    assert body.count("wgmma.wait_group.sync.aligned 1;") == 1
    assert body.count("wgmma.mma_async") == 4
    assert body.count("multicast::cluster") >= 1
    assert ".reqnctapercluster 2, 1, 1" in body
    assert body.count("setmaxnreg") == 2
    assert "cp.async.cg" not in body
    (entry,) = kernel.assembled.entries.values()
    assert entry.registers <= 168


@pytest.mark.parametrize(("rows", "masked"), [(128, True), (256, False), (384, True)])
def test_blocks_of_a_cluster_beyond_the_last_row(rows: int, masked: bool) -> None:
    config = Config("sm_90a", CLUSTER, "f16", (False, False), "none", (rows, 256, 64), True)
    text = text_of(config).replace("{roles", "{tile = array<i64: 128, 256, 64>, roles")
    passes = parse("frag-tile{target=sm_90a}")
    module = parse_program(text)
    run(passes, module)
    (store,) = [op for op in module.walk() if isinstance(op, frag.StoreOp)]
    assert (store.masked is not None) == masked


@pytest.mark.parametrize("words", ["roles", CLUSTER, "roles, consumers = 2 : i64"])
def test_rows_that_no_tensor_map_can_say(words: str) -> None:
    """One role copies and multiplies then, and a note says why."""
    config = Config("sm_90a", words, "f16", (False, False), "none", (64, 64, 20), True)
    kernel = fragir.compile(text_of(config), target="sm_90a")
    assert any("without roles: " in note and "40 bytes" in note for note in kernel.notes)
    assert "setmaxnreg" not in kernel.ptx
    assert kernel.cluster == (1, 1, 1)
    assert check(config) == []


@pytest.mark.parametrize(("words", "turned"), [("roles", False), ("roles", True), ("", True)])
def test_groups_that_begin_where_no_box_does(words: str, turned: bool) -> None:
    """Rows that lie side by side are copied by threads: a group begins at any of them."""
    config = Config("sm_90a", words, "f16", (turned, False), "none", (80, 64, 64), False)
    config = config._replace(groups=True)
    kernel = fragir.compile(text_of(config), target="sm_90a")
    assert any("A is not copied by TMA" in note for note in kernel.notes) == bool(turned and words)
    assert check(config) == []


def test_a_machine_without_tensor_maps() -> None:
    config = Config(
        "sm_80", "roles, consumers = 2 : i64", "f16", (False, False), "none", (64, 64, 32), True
    )
    kernel = fragir.compile(text_of(config), target="sm_80")
    assert kernel.notes == ["sm_80 has no tensor memory accelerator, so the product has no roles"]
    assert check(config) == []


def test_a_loop_without_products() -> None:
    text = """
func.func @copy(%a: memref<64x64xf32>, %c: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c16 {
    %t = frag.load %a[%i, 0] : memref<64x64xf32> -> !frag.tile<16x64xf32>
    frag.store %t, %c[%i, 0] : !frag.tile<16x64xf32>, memref<64x64xf32>
  } {frag.stages = 3 : i64}
  func.return
}
"""
    with pytest.raises(FragirError, match="no product of this loop takes a tile from global"):
        fragir.compile(text)


@pytest.mark.parametrize(("target", "tile"), [("sm_90a", "128, 256, 64"), ("sm_80", "64, 64, 32")])
def test_a_loop_of_known_length_is_not_unrolled(target: str, tile: str) -> None:
    """ptxas copies the bodies of such loops unless it is told not to."""
    memory = "memref<512x512xf16>"
    text = f"""
func.func @gemm(%a: {memory}, %b: {memory}, %c: {memory}) {{
  frag.matmul %a, %b into %c {{tile = array<i64: {tile}>}} : {memory}, {memory} into {memory}
  func.return
}}
"""
    kernel = fragir.compile(text, target=target)
    again = kernel.ptx.replace('.pragma "nounroll";', "")
    assert kernel.ptx.count('.pragma "nounroll";') == 1
    sizes = [len(assemble(ptx, target).cubin) for ptx in (kernel.ptx, again)]
    assert sizes[0] < 0.7 * sizes[1]
