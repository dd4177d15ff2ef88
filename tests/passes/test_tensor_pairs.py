"""Products in tensor memory by two blocks: pairs (cta_group::2), and clusters that share B."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import fragir
from benchmarks.sweeps import tensor_gemms
from fragir.compilation.program import parse
from fragir.errors import FragirError
from fragir.passes.tiling.explained import explain_schedules
from fragir.scheduling import described
from fragir.sweeps import Task
from tests.passes.test_tensor_memory import NUMPY, Shape, check, numbers, program

EXAMPLE = (Path(__file__).parents[2] / "examples" / "tcgen05_pair.mlir").read_text("utf-8")

FORMS: dict[str, tuple[str, Shape, tuple[bool, bool], str, str]] = {
    "edges": ("f16", (200, 136, 104), (False, True), "f32", "pair"),
    "turned": ("bf16", (296, 264, 80), (True, False), "f32", "pair"),
    "half": ("f16", (130, 264, 72), (False, True), "f16", "pair"),
    "tf32": ("tf32", (64, 64, 68), (False, True), "f32", "pair"),
    "e4m3": ("f8E4M3FN", (128, 80, 160), (True, False), "f32", "pair"),
    "s8": ("si8", (144, 160, 96), (True, False), "i32", "pair"),
    "narrow": ("f16", (300, 40, 64), (False, True), "f32", "pair, tile = array<i64: 128, 16, 64>"),
    "odd": ("f16", (300, 96, 64), (False, False), "f32", "pair, tile = array<i64: 128, 96, 32>"),
    "two groups": (
        "f16",
        (300, 128, 64),
        (False, True),
        "f32",
        "pair, tile = array<i64: 128, 128, 64>, warps = array<i64: 1, 2>",
    ),
    "nothing": ("f16", (16, 16, 0), (False, True), "f32", "pair"),
    "one": ("f16", (1, 8, 8), (False, True), "f32", "pair"),
    "cluster": ("f16", (520, 128, 72), (False, False), "f32", "cluster = 4 : i64"),
}


@pytest.mark.parametrize("name", FORMS)
def test_matmul(name: str) -> None:
    element, shape, turned, c, attributes = FORMS[name]
    kernel = check(
        program(element, shape, turned, c, f"{{{attributes}}} "), element, shape, turned, c
    )
    assert set(re.findall(r"cta_group::(\d)", kernel.ptx)) == {"2" if "pair" in attributes else "1"}
    (entry,) = kernel.assembled.entries.values()
    assert (entry.spill_loads, entry.spill_stores) == (0, 0)


def test_sizes_of_a_launch() -> None:
    text = program("f16", (0, 0, 0), (False, True), "f32", "{pair} ").replace("0x0x", "?x?x")
    kernel = fragir.compile(text, target="sm_103a")
    for m, n, k in ((130, 136, 72), (9, 16, 0), (0, 16, 8)):
        a, b = numbers("f16", (m, k), 1), numbers("f16", (k, n), 2)
        c = np.full((m, n), 7, np.float32)
        kernel(a, b.T.copy(), c, on="emulator")
        assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        assert "cta_group::2" in kernel.entry_for({"m": m, "n": n, "k": k}).ptx


def test_old_values() -> None:
    """An epilogue reads what each block's own tile had."""
    text = program("f16", (200, 72, 64), (False, True), "f32", "{pair} ").replace(
        "memref<200x72xf32>\n",
        "memref<200x72xf32> epilogue {\n  ^bb0(%s: f32, %o: f32):\n"
        "    %r = arith.addf %s, %o : f32\n    frag.yield %r : f32\n  }\n",
    )
    a, b = numbers("f16", (200, 64), 1), numbers("f16", (72, 64), 2)
    c = numbers("f32", (200, 72), 3)
    wanted = c + a.astype(np.float32) @ b.astype(np.float32).T
    report = fragir.compile(text, target="sm_100a")(a, b, c, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(c, wanted)


@pytest.mark.parametrize(
    ("shape", "attributes", "words"),
    [
        ((4096, 4096, 64), "", "128x256x64, 6 stages, in tensor memory, in pairs of blocks"),
        ((4096, 4096, 64), "{cluster = 1 : i64} ", "128x256x64, 4 stages, in tensor memory"),
        (
            (4096, 4096, 64),
            "{cluster = 2 : i64} ",
            "128x256x64, 4 stages, in tensor memory, clusters of 2",
        ),
        ((1024, 1024, 64), "", "128x64x64, 4 stages, in tensor memory"),
        ((4224, 4096, 64), "", "128x256x64, 4 stages, in tensor memory"),
        ((256, 64, 64), "{pair} ", "128x64x64, 6 stages, in tensor memory, in pairs of blocks"),
    ],
)
def test_which_products_are_of_pairs(shape: Shape, attributes: str, words: str) -> None:
    """Tiles enough for every multiprocessor, and rows of tiles for both blocks."""
    text = program("f16", shape, (False, True), "f32", attributes)
    (found,) = explain_schedules(parse(text), "sm_100a")
    chosen = described(found.chosen).replace(" 1x1 warpgroups,", "").split(", persistent")[0]
    assert chosen == words


@pytest.mark.parametrize(
    ("element", "shape", "attributes", "why"),
    [
        ("si8", (128, 48, 64), "{pair, tile = array<i64: 128, 48, 64>} ", "has no N = 48"),
        ("f8E4M3FN", (128, 96, 64), "{pair, tile = array<i64: 128, 96, 64>} ", "half a row of B"),
        ("f16", (128, 240, 64), "{pair, tile = array<i64: 128, 240, 64>} ", "half a row of B"),
    ],
)
def test_what_a_pair_does_not_multiply(
    element: str, shape: Shape, attributes: str, why: str
) -> None:
    c = "i32" if element == "si8" else "f32"
    text = program(element, shape, (False, False), c, attributes)
    kernel = fragir.compile(text, target="sm_100a")
    assert any("goes to mma.sync" in note and why in note for note in kernel.notes)


def test_other_machines_have_no_pairs() -> None:
    text = program("f16", (64, 64, 64), (False, True), "f32", "{pair} ")
    kernel = fragir.compile(text, target="sm_90a")
    assert any("sm_90a has no tensor memory" in note for note in kernel.notes)


def test_a_pair_is_a_cluster_of_two() -> None:
    text = program("f16", (64, 64, 64), (False, True), "f32", "{pair, cluster = 4 : i64} ")
    with pytest.raises(FragirError, match="a pair is a cluster of 2"):
        fragir.compile(text, target="sm_100a")


@pytest.mark.parametrize("seed", range(2))
def test_any_product(seed: int) -> None:
    """A sample of the sweep `tensor-gemms`."""
    found = tensor_gemms.run(Task(6 + seed))
    assert found["findings"] == []
    assert found["pairs"] == 1


# -- by hand ---------------------------------------------------------------------------------------


def test_the_example() -> None:
    kernel = fragir.compile(EXAMPLE, target="sm_100a")
    a, b = numbers("bf16", (200, 104), 1), numbers("bf16", (136, 104), 2)
    c = np.zeros((200, 136), NUMPY["f32"])
    report = kernel(a, b, c, on="emulator", check=True)
    assert report.findings == []
    assert report.schedules.every
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_what_the_pair_tells() -> None:
    """Copies count at the leader's barriers; commits arrive at those of both blocks; the columns
    are allocated once both have been launched, and freed once both are done."""
    ptx = fragir.compile(EXAMPLE, target="sm_100a").ptx
    leaders = re.findall(r"mapa\.shared::cluster\.u32 (%\w+), %mbarriers\w+, 0;", ptx)
    copies = re.findall(r"complete_tx::bytes\.cta_group::2 .*\[(%\w+)\];", ptx)
    assert len(copies) == 2
    (address,) = set(copies)
    found = re.search(rf"mad\.lo\.s32 {address}, %\w+, 8, (%\w+);", ptx)
    assert found is not None
    assert found[1] in leaders
    assert len(re.findall(r"tcgen05\.commit\.cta_group::2\S*\.multicast::cluster\.b64", ptx)) == 2
    assert "cta_group::1" not in ptx
    meetings = [found.start() for found in re.finditer(r"barrier\.cluster\.wait", ptx)]
    assert meetings[0] < ptx.index("tcgen05.alloc")
    assert ptx.index("tcgen05.mma") < meetings[1] < ptx.index("tcgen05.dealloc")


CLUSTER = " attributes {frag.cluster = array<i64: 2, 1, 1>}"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (CLUSTER, "", "two blocks of a cluster"),
        (CLUSTER, CLUSTER.replace("2, 1", "4, 1"), "two blocks of a cluster"),
        (
            "        frag.release %slot : !slot\n",
            "        frag.release %slot : !slot\n        frag.barrier\n",
            "frag.barrier stands in the role that multiplies",
        ),
        ("frag.copy tma %b[%col, %k0]", "frag.copy async %b[%col, %k0]", "is a pair's"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(FragirError, match=message):
        fragir.compile(EXAMPLE.replace(old, new), target="sm_100a")


def test_of_one_and_of_two() -> None:
    """A kernel's products are all of pairs, or none."""
    line = next(line for line in EXAMPLE.split("\n") if "frag.tcgen05_mma pair" in line)
    text = EXAMPLE.replace(
        line, f"{line}\n        frag.tcgen05_mma %sa, %sa transposed into %d2 : !a, !a into !sum2"
    ).replace(
        "      scf.for %k0 = %c0 to %k step %c64 {\n        %later",
        "      %d2 = frag.part %free[1] : !held\n"
        "      scf.for %k0 = %c0 to %k step %c64 {\n        %later",
    )
    both = "memref<128x64xf32, #frag.tensor>, memref<128x128xf32, #frag.tensor>"
    text = text.replace(
        "!sums = !frag.ring<memref<128x64xf32, #frag.tensor>>", f"!sums = !frag.ring<{both}>"
    )
    text = text.replace(
        "!held = !frag.slot<memref<128x64xf32, #frag.tensor>>", f"!held = !frag.slot<{both}>"
    )
    text = text.replace("!sum = ", "!sum2 = memref<128x128xf32, #frag.tensor>\n!sum = ")
    with pytest.raises(FragirError, match="same cta_group"):
        fragir.compile(text, target="sm_100a")
