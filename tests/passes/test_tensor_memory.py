"""Products in tensor memory: by frag.tcgen05_mma, and frag.matmul for machines that have it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.ir import Attribute

import fragir
from fragir import Kernel
from fragir.compilation.program import parse
from fragir.errors import FragirError
from fragir.passes.tiling.explained import explain_schedules

EXAMPLE = (Path(__file__).parents[2] / "examples" / "tcgen05_ring.mlir").read_text("utf-8")

MATMUL = """\
func.func @product(%a: {A}, %b: {B}, %c: {C}) {{
  frag.matmul %a{at}, %b{bt} into %c {attributes}: {A}, {B} into {C}
  func.return
}}
"""
NUMPY: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "si8": np.int8,
    "ui8": np.uint8,
    "f32": np.float32,
    "i32": np.int32,
}
Shape = tuple[int, int, int]


def program(
    element: str, shape: Shape, turned: tuple[bool, bool], c: str, attributes: str = ""
) -> str:
    m, n, k = shape
    return MATMUL.format(
        A=f"memref<{k}x{m}x{element}>" if turned[0] else f"memref<{m}x{k}x{element}>",
        B=f"memref<{n}x{k}x{element}>" if turned[1] else f"memref<{k}x{n}x{element}>",
        C=f"memref<{m}x{n}x{c}>",
        at=" transposed" if turned[0] else "",
        bt=" transposed" if turned[1] else "",
        attributes=attributes,
    )


def numbers(element: str, shape: tuple[int, int], seed: int) -> Any:
    low = 0 if element.startswith("u") else -3
    return np.random.default_rng(seed).integers(low, 4, shape).astype(NUMPY[element])


def check(text: str, element: str, shape: Shape, turned: tuple[bool, bool], c: str) -> Kernel:
    """The product of small whole numbers, which is exact, with every check on."""
    m, n, k = shape
    a, b = numbers(element, (m, k), 1), numbers(element, (k, n), 2)
    kernel = fragir.compile(text, target="sm_100a")
    assert "tcgen05.mma.cta_group::" in kernel.ptx
    result = np.full((m, n), 7, NUMPY[c])
    operands = (a.T.copy() if turned[0] else a), (b.T.copy() if turned[1] else b)
    report = kernel(*operands, result, on="emulator", check=True)
    assert report.findings == []
    assert report.schedules.every
    assert np.array_equal(result.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
    return kernel


FORMS: dict[str, tuple[str, Shape, tuple[bool, bool], str, str]] = {
    "edges": ("f16", (200, 136, 104), (False, True), "f32", ""),
    "turned": ("bf16", (136, 72, 80), (True, False), "f32", ""),
    "half": ("f16", (130, 264, 72), (False, True), "f16", ""),
    "sums of f16": ("f16", (136, 72, 80), (False, True), "f16", "{accumulate = f16} "),
    "fp8 in f16": ("f8E4M3FN", (130, 264, 64), (False, True), "f32", "{accumulate = f16} "),
    "tf32": ("tf32", (64, 64, 68), (False, True), "f32", ""),
    "e4m3": ("f8E4M3FN", (128, 80, 160), (True, False), "f32", ""),
    "e5m2": ("f8E5M2", (128, 64, 48), (False, True), "f32", ""),
    "s8": ("si8", (144, 160, 96), (True, False), "i32", ""),
    "u8": ("ui8", (8, 16, 32), (False, True), "i32", ""),
    "columns": ("f16", (128, 96, 64), (False, True), "f32", "{tile = array<i64: 128, 96, 32>} "),
    "two groups": (
        "f16",
        (128, 128, 64),
        (False, True),
        "f32",
        "{tile = array<i64: 128, 128, 64>, warps = array<i64: 1, 2>} ",
    ),
    "nothing": ("f16", (16, 16, 0), (False, True), "f32", ""),
}


@pytest.mark.parametrize("name", FORMS)
def test_matmul(name: str) -> None:
    element, shape, turned, c, attributes = FORMS[name]
    text = program(element, shape, turned, c, attributes)
    kernel = check(text, element, shape, turned, c)
    (entry,) = kernel.assembled.entries.values()
    assert (entry.spill_loads, entry.spill_stores) == (0, 0)


def test_sizes_of_a_launch() -> None:
    """Rows that are multiples of 16 bytes go through tensor memory; without K all is zero."""
    text = program("f16", (0, 0, 0), (False, True), "f32").replace("0x0x", "?x?x")
    kernel = fragir.compile(text, target="sm_100a")
    for m, n, k in ((130, 136, 72), (130, 131, 77), (9, 16, 0)):
        a, b = numbers("f16", (m, k), 1), numbers("f16", (k, n), 2)
        c = np.full((m, n), 7, np.float32)
        kernel(a, b.T.copy(), c, on="emulator")
        assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))
        entry = kernel.entry_for({"m": m, "n": n, "k": k})
        assert ("tcgen05" in entry.ptx) == (k % 8 == 0)


@pytest.mark.parametrize(
    ("target", "element", "attributes", "why"),
    [
        ("sm_103a", "si8", "", "sm_103a has no tcgen05.mma of s8 and s8"),
        ("sm_100a", "f16", "{tile = array<i64: 64, 64, 64>} ", "a tile of 64x64"),
        ("sm_100a", "f16", "{tile = array<i64: 128, 64, 64>, stages = 40 : i64} ", "40 stages"),
    ],
)
def test_what_goes_to_mma_is_told(target: str, element: str, attributes: str, why: str) -> None:
    c = "i32" if element == "si8" else "f32"
    text = program(element, (128, 64, 64), (False, True), c, attributes)
    if "40 stages" in why:
        with pytest.raises(FragirError, match="40 stages"):
            fragir.compile(text, target=target)
        return
    kernel = fragir.compile(text, target=target)
    assert "mma.sync" in kernel.ptx
    (told,) = [note for note in kernel.notes if "goes to mma.sync" in note]
    assert why in told


def test_the_schedule_is_explained() -> None:
    text = program("f16", (256, 256, 128), (False, True), "f32")
    (found,) = explain_schedules(parse(text), "sm_100a")
    head, _, *rows, last = str(found).split("\n")
    assert head.endswith("f16 in f32, sm_100a (B200, 148 SMs); thousands of cycles")
    assert [row.split()[0].rjust(10) for row in rows][1:] == ["128x128x64", "128x256x64"]
    assert last.startswith("chosen: 128x64x64, 1x1 warpgroups, 4 stages, in tensor memory")
    assert "times as fast as the usual 128x256x64" in last
    assert found.chosen == found.ranking[0].candidate


def test_a_tile_that_is_said_is_taken() -> None:
    text = program(
        "f16", (256, 256, 128), (False, True), "f32", "{tile = array<i64: 128, 256, 64>} "
    )
    (found,) = explain_schedules(parse(text), "sm_100a")
    assert len(found.ranking) == 1
    assert found.why == "tile of the product says so"
    assert str(found).count("128x256x64") == 2


@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        ((8192, 8192, 8192), 256),
        ((1024, 1024, 4096), 64),
        ((2048, 4096, 64), 256),
        ((8, 72, 64), 64),
    ],
)
def test_tiles_are_cut_for_the_machine(shape: Shape, columns: int) -> None:
    """Wide ones read least, where there are enough for all multiprocessors."""
    (found,) = explain_schedules(parse(program("f16", shape, (False, True), "f32")), "sm_100a")
    assert found.chosen.tile == (128, columns, 64)
    assert found.chosen.tensor
    least = found.ranking[0].estimate
    for one in found.ranking:
        assert one.estimate.resident * 2 * one.candidate.tile[1] <= 512
        assert one.estimate.cycles >= max(least.cycles, one.estimate.tensor)


# -- by hand ---------------------------------------------------------------------------------------


def test_the_example() -> None:
    kernel = fragir.compile(EXAMPLE, target="sm_100a")
    a, b = numbers("bf16", (200, 104), 1), numbers("bf16", (136, 104), 2)
    c = np.zeros((200, 136), np.float32)
    report = kernel(a, b, c, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


def test_what_is_waited_for() -> None:
    """One commit gives operands back, one the sums; one warp allocates and frees."""
    ptx = fragir.compile(EXAMPLE, target="sm_100a").ptx
    count = {word: len(re.findall(rf"tcgen05\.{word}\b", ptx)) for word in COUNTED}
    assert count == COUNTED
    role = ptx[: ptx.index("tcgen05.mma")].rindex("$loop")
    assert "wait" not in ptx[ptx.index("tcgen05.mma") : ptx.rindex("tcgen05.commit")]
    assert role > 0


COUNTED = {"alloc": 1, "relinquish_alloc_permit": 1, "dealloc": 1, "mma": 4, "commit": 2, "ld": 1}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "<memref<128x64xf32, #frag.tensor>>",
            "<memref<128x64xf32, #frag.tensor>, memref<128x64xf32, #frag.shared>>",
            "take two rings",
        ),
        ("!sum = memref<128x64xf32", "!sum = memref<128x64xf16", "f32"),
        ("%sa, %sb transposed into", "%sa transposed, %sb into", "write `transposed`"),
        ("!frag.tile<128x64xf32>", "!frag.tile<64x64xf32>", "gives no"),
        ("%d : !sum ->", "%d from 8 : !sum ->", "from column 8 on"),
        ("frag.tcgen05_load %d : !sum", "frag.load %d[%c0, %c0] : !sum", "tensor memory"),
    ],
)
def test_refused(old: str, new: str, message: str) -> None:
    assert old in EXAMPLE
    with pytest.raises(FragirError, match=message):
        fragir.compile(EXAMPLE.replace(old, new), target="sm_100a")


def test_other_machines_have_none() -> None:
    with pytest.raises(FragirError, match="sm_90a has no tensor memory"):
        fragir.compile(EXAMPLE, target="sm_90a")


def test_more_columns_than_there_are() -> None:
    with pytest.raises(FragirError, match="take 576 columns of tensor memory, which has 512"):
        fragir.compile(
            EXAMPLE.replace("frag.ring 2 : !sums", "frag.ring 9 : !sums"), target="sm_100a"
        )


def test_packed_roles_move_no_registers() -> None:
    text = EXAMPLE.replace('"load" warps [1, 1] {', '"load" warps [1, 1] registers 40 {')
    with pytest.raises(FragirError, match="packed roles share warpgroups"):
        fragir.compile(text, target="sm_100a")


def test_that_sums_spill_is_told_beside_it() -> None:
    text = program(
        "f16", (256, 256, 64), (False, True), "f32", "{tile = array<i64: 256, 256, 32>} "
    )
    notes = " ".join(fragir.compile(text, target="sm_100a").notes)
    assert "goes to mma.sync" in notes
    assert "they spill with any `warps`" in notes


def by_hand(sums: Attribute, shape: tuple[int, int], pieces: Sequence[tuple[int, int]]) -> Kernel:
    """One product of f16 and K = 64, loaded in pieces of columns."""
    m, n = shape
    with fragir.kernel("one", target="sm_100a") as k:
        a, b = k.memory("a", fragir.f16, (m, 64)), k.memory("b", fragir.f16, (n, 64))
        c = k.memory("c", sums, shape)
        ring = k.ring(1, [k.part((rows, 64), fragir.f16, swizzle=128) for rows in shape])
        held = k.ring(1, [k.tensor_part(shape, sums)])
        with k.role("load", warps=(1, 1), packed=True):
            slot = ring.acquire()
            for memory, part in zip((a, b), slot.parts, strict=True):
                k.copy(memory, (0, 0), part, tma=True)
            slot.publish()
        with k.role("multiply", warps=(1, 1), packed=True):
            (d,), (left, right) = (free := held.acquire()).parts, (slot := ring.wait()).parts
            k.tcgen05_mma(left, right, d, accumulate=False, transposed_b=True)
            slot.release()
            free.publish()
        with k.role("store", warpgroups=(1, 1), packed=True):
            (d,) = (full := held.wait()).parts
            tiles = [k.tcgen05_load(d, column=at, columns=width) for at, width in pieces]
            full.release()
            for tile, (at, _) in zip(tiles, pieces, strict=True):
                k.store(tile, c, (0, at))
    return k.compile()


@pytest.mark.parametrize("sums", [fragir.f32, fragir.f16], ids=["f32", "f16"])
@pytest.mark.parametrize(
    ("shape", "pieces"),
    [((128, 112), [(0, 50), (50, 62)]), ((256, 96), [(0, 96)]), ((256, 48), [(16, 32), (0, 16)])],
)
def test_pieces_of_any_columns(
    sums: Attribute, shape: tuple[int, int], pieces: Sequence[tuple[int, int]]
) -> None:
    """Rows from 128 on lie in the columns behind; an f16 has a column of its own."""
    m, n = shape
    a, b = numbers("f16", (m, 64), 1), numbers("f16", (n, 64), 2)
    c = np.zeros(shape, np.float32 if sums == fragir.f32 else np.float16)
    kernel = by_hand(sums, shape, pieces)
    report = kernel.launch((1, 1, 1), None, a, b, c, on="emulator", check=True)
    assert report.findings == []
    assert np.array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64).T)
    assert all(not entry.spill_loads for entry in kernel.assembled.entries.values())


def test_sums_of_f16_round_once_an_instruction() -> None:
    """To the nearest, of a sum that the tensor cores keep whole."""
    rng = np.random.default_rng(3)
    a, b = (rng.integers(-20, 21, (rows, 64)).astype(np.float16) for rows in (128, 64))
    c = np.zeros((128, 64), np.float16)
    by_hand(fragir.f16, (128, 64), [(0, 64)]).launch((1, 1, 1), None, a, b, c, on="emulator")
    total = np.zeros((128, 64))
    for k in range(0, 64, 16):  # exact, then one rounding
        left, right = (x[:, k : k + 16].astype(np.float64) for x in (a, b))
        total = (total + left @ right.T).astype(np.float16).astype(np.float64)
    assert np.array_equal(c.astype(np.float64), total)
