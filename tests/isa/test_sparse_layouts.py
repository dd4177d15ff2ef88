"""Sparse operands and block scales against the PTX ISA (9.2, sections 9.7.14.6 and 9.7.14.3)."""

from __future__ import annotations

from itertools import product

import pytest

from fragir import isa
from fragir.errors import FragirError
from fragir.isa import Instruction
from fragir.isa.selection import selected_layout

SPARSE = [i for i in isa.instructions() if i.family.startswith("mma.sp")]

# Shape, type: which lanes (t of the quad) supply the metadata for each selector, and which rows
# and chunks nibble n of such a lane describes, as in the figures of section 9.7.14.6.
HALF, LONG, PAIR, ALL = "one lane", "two lanes", "row pair", "all lanes"
SPREAD = {
    ("m16n8k16", "f16"): HALF,
    ("m16n8k32", "f16"): LONG,
    ("m16n8k8", "tf32"): HALF,
    ("m16n8k16", "tf32"): LONG,
    ("m16n8k32", "s8"): PAIR,
    ("m16n8k64", "s8"): ALL,
    ("m16n8k64", "s4"): PAIR,
    ("m16n8k128", "s4"): ALL,
}


def as_documented(instruction: Instruction) -> str:
    a = instruction.types.a
    narrow = any(f.startswith("kind::mxf4") for f in instruction.form.flags)
    if a in ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "u8"):
        a = "s4" if narrow else "s8"
    a = {"bf16": "f16", "u4": "s4"}.get(a, a)
    return SPREAD[instruction.form.shape, a]


def nibble(spread: str, selector: int, lane: int, n: int) -> tuple[int, int] | None:
    """(row of A, chunk) that nibble n of a lane's metadata describes."""
    g, t = lane >> 2, lane & 3
    if spread == HALF:
        return (g + 8 * (n // 4), n % 4) if t == selector else None
    if spread == LONG:
        return (g + 8 * (n // 4), 4 * (t & 1) + n % 4) if t // 2 == selector else None
    if spread == PAIR:
        return (g + 8 * (t & 1), n) if t // 2 == selector else None
    return (g + 8 * (t & 1), 8 * (t // 2) + n)


@pytest.mark.parametrize("instruction", SPARSE, ids=lambda i: i.mnemonic)
def test_metadata_lanes(instruction: Instruction) -> None:
    spread = as_documented(instruction)
    assert (
        instruction.selectors == {HALF: (0, 1, 2, 3), LONG: (0, 1), PAIR: (0, 1), ALL: (0,)}[spread]
    )
    _, _, k = instruction.shape
    operand = instruction.operands["e"]
    chunks = k // operand.chunk
    assert operand.shape == (16, chunks)
    for selector in instruction.selectors:
        layout = selected_layout(instruction, "e", selector=selector)
        seen: list[tuple[int, ...]] = []
        for lane, n in product(range(32), range(8)):
            point = layout(lane=lane, element=n)
            assert point == nibble(spread, selector, lane, n)
            if point is not None:
                seen.append(point)
        assert sorted(seen) == sorted(product(range(16), range(chunks)))


@pytest.mark.parametrize(
    ("types", "shape", "chunk"),
    [
        ("f32.f16.f16.f32", "m16n8k32", 4),
        ("f32.tf32.tf32.f32", "m16n8k16", 2),
        ("s32.s8.s8.s32", "m16n8k64", 4),
        ("s32.s4.s4.s32", "m16n8k128", 8),
        ("f32.e4m3.e4m3.f32", "m16n8k64", 4),
    ],
)
def test_granularity(types: str, shape: str, chunk: int) -> None:
    """2:4 for 16 and 8 bits, 1:2 for tf32, pairs in 4:8 for 4 bits."""
    found = isa.lookup(f"mma.sp.sync.aligned.{shape}.row.col.{types}")
    assert found.operands["e"].chunk == chunk


@pytest.mark.parametrize("instruction", SPARSE, ids=lambda i: i.mnemonic)
def test_packed_a_and_full_b(instruction: Instruction) -> None:
    """A is the dense fragment of half the K, B covers all of K once."""
    _, n, k = instruction.shape
    g_t = [(lane >> 2, lane & 3) for lane in range(32)]
    for name, shape in (("a", (16, k // 2)), ("b", (k, n))):
        operand = instruction.operands[name]
        layout = operand.layout
        assert layout is not None
        per = layout.size("element") // operand.registers.count
        seen: set[tuple[int, ...] | None] = set()
        for lane, i in product(range(32), range(layout.size("element"))):
            g, t = g_t[lane]
            r, e = divmod(i, per)
            if name == "a":
                point = (g + 8 * (r % 2), per * t + e + 4 * per * (r // 2))
            else:
                point = (per * t + e + 4 * per * r, g)
            assert layout(lane=lane, element=i) == point
            seen.add(point)
        assert seen == set(product(*map(range, shape)))


def test_wgmma_metadata_is_that_of_its_warps() -> None:
    for instruction in isa.instructions(target="sm_90a"):
        if instruction.family != "wgmma.sp" or instruction.shape[1] != 8:
            continue
        spread = LONG if instruction.types.a in ("f16", "bf16", "tf32") else ALL
        assert instruction.selectors == ((0, 1) if spread == LONG else (0,))
        for selector in instruction.selectors:
            layout = selected_layout(instruction, "e", selector=selector)
            for thread, n in product(range(128), range(8)):
                point = nibble(spread, selector, thread % 32, n)
                if point is not None:
                    point = (point[0] + 16 * (thread // 32), point[1])
                assert layout(lane=thread, element=n) == point


SCALED = [i for i in isa.instructions() if i.family.startswith("mma") and "sfa" in i.operands]


@pytest.mark.parametrize("instruction", SCALED, ids=lambda i: i.mnemonic)
def test_scale_factors(instruction: Instruction) -> None:
    """SFA from the pair thread_id of a quad, rows g and g + 8; SFB from lane thread_id, column g.

    The factors of a row stand in consecutive bytes from byte_id on.
    """
    blocks = instruction.operands["sfa"].shape[1]
    sizes = {f"scale_vec::{n}X": n for n in (1, 2, 4)}
    assert [sizes[f] for f in instruction.form.flags if f in sizes] == [blocks]
    assert instruction.operands["sfa"].chunk * blocks == instruction.shape[2]
    for byte in range(0, 4, blocks):
        for thread in range(2):
            layout = selected_layout(instruction, "sfa", byte=byte, thread=thread)
            for lane, at in product(range(32), range(4)):
                t, inside = lane % 4, byte <= at < byte + blocks
                expected = (lane // 4 + 8 * (t % 2), at - byte)
                held = inside and t // 2 == thread
                assert layout(lane=lane, element=at) == (expected if held else None)
        for thread in range(4):
            layout = selected_layout(instruction, "sfb", byte=byte, thread=thread)
            for lane, at in product(range(32), range(4)):
                held = byte <= at < byte + blocks and lane % 4 == thread
                expected = (at - byte, lane // 4)
                assert layout(lane=lane, element=at) == (expected if held else None)


def test_selectors_out_of_range() -> None:
    sparse = isa.lookup("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32")
    with pytest.raises(FragirError, match="selector 2"):
        selected_layout(sparse, "e", selector=2)
    scaled = isa.find(
        "mma", shape="m16n8k64", a="e2m1", d="f32", kind="mxf4", scale="ue8m0", scale_vec="2X"
    )
    with pytest.raises(FragirError, match="out of range"):
        selected_layout(scaled, "sfa", byte=1)
