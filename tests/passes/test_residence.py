"""How many blocks a multiprocessor is to hold: what ptxas is told, and what it makes of it."""

from __future__ import annotations

import re

import pytest

import fragir
from benchmarks.sweeps.pipelines import Config, text_of

PLAIN = """func.func @f(%c: memref<64xf32>) attributes {{{}}} {{
  %x = arith.constant 1.0 : f32
  %t = frag.fill %x : !frag.tile<64xf32>
  frag.store %t, %c[0] : !frag.tile<64xf32>, memref<64xf32>
  func.return
}}"""


def resident(kernel: fragir.Kernel) -> list[str]:
    return re.findall(r"^\.minnctapersm (\d+)$", kernel.ptx, re.M)


def test_as_the_function_says() -> None:
    assert resident(fragir.compile(PLAIN.format(""))) == []
    kernel = fragir.compile(PLAIN.format("frag.blocks_per_sm = 4 : i64"))
    assert resident(kernel) == ["4"]
    assert kernel.assembled.entries["f"].spill_stores == 0


@pytest.mark.parametrize("words", ["0 : i64", "33 : i64", "[2]"])
def test_what_is_no_number_of_blocks(words: str) -> None:
    with pytest.raises(fragir.FragirError, match=r"is no number of blocks from 1 to 32 "):
        fragir.compile(PLAIN.format(f"frag.blocks_per_sm = {words}"))


def test_in_python() -> None:
    with fragir.kernel("f", target="sm_80") as k:
        c = k.memory("c", fragir.f32, (64,))
        k.blocks_per_sm(3)
        k.store(k.fill(1.0, (64,), fragir.f32), c, (0,))
    assert resident(k.compile()) == ["3"]
    with pytest.raises(fragir.FragirError, match="holds 1 to 32 blocks"), fragir.kernel("f") as k:
        k.blocks_per_sm(33)


@pytest.mark.parametrize(("warps", "blocks"), [("2, 2", "2"), ("4, 2", "1"), ("1, 1", "8")])
def test_products_take_the_registers_of_all_threads(warps: str, blocks: str) -> None:
    """Of a multiprocessor's 65,536 as many blocks as leave each thread 255."""
    kernel = fragir.compile(
        f"""func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {{
  frag.matmul %a, %b into %c {{tile = array<i64: 64, 64, 32>, warps = array<i64: {warps}>}}
    : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}}""",
        target="sm_80",
    )
    assert resident(kernel) == [blocks]


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_f64_does_not_spill_for_more_blocks(order: tuple[bool, bool]) -> None:
    config = Config("sm_90a", "", "f64", order, "old", (64, 272, 48), True)
    kernel = fragir.compile(text_of(config), target="sm_90a")
    (info,) = kernel.assembled.entries.values()
    assert info.spill_stores == 0


def test_roles_with_registers_of_their_own_fill_a_multiprocessor() -> None:
    program = """func.func @f(%x: memref<128x64xf16>, %y: memref<128x64xf16>)
    attributes {frag.blocks_per_sm = 2 : i64} {
  frag.roles "idle" warps [1, 1] {
  }, "copies" warpgroups [2, 1] registers 216 {
    %t = frag.load %x[0, 0] : memref<128x64xf16> -> !frag.tile<128x64xf16>
    frag.store %t, %y[0, 0] : !frag.tile<128x64xf16>, memref<128x64xf16>
  }
  func.return
}"""
    with pytest.raises(fragir.FragirError, match=r"holds one block then \(leave frag.bl"):
        fragir.compile(program, target="sm_90a")
