"""Shared layouts and descriptors (PTX ISA 9.2, sections 9.7.15.5.1 and 9.7.16.4)."""

from __future__ import annotations

from itertools import product

import pytest

from fragir.errors import FragirError
from fragir.isa.canonical import SWIZZLES, Major, canonical, swizzled
from fragir.isa.descriptors import (
    KINDS,
    MatrixDescriptor,
    decode,
    decode_instruction,
    describe,
    instruction_descriptor,
)
from fragir.isa.model import BITS

CASES: list[tuple[str, Major, int]] = [
    *(("bf16", major, swizzle) for major in ("k", "mn") for swizzle in SWIZZLES),
    *(("tf32", "k", swizzle) for swizzle in SWIZZLES),
    *(("e4m3", "k", swizzle) for swizzle in SWIZZLES),
]


def cute(shape: list[list[int]], stride: list[list[int]], mn: int, k: int) -> int:
    """A CuTe layout ((..), (..)):((..), (..)) evaluated at (mn, k), leftmost mode fastest."""
    total = 0
    for coordinate, sizes, strides in zip((mn, k), shape, stride, strict=True):
        for size, step in zip(sizes, strides, strict=True):
            total += coordinate % size * step
            coordinate //= size
    return total


@pytest.mark.parametrize(("element", "major", "swizzle"), CASES)
def test_offsets_are_cutlass_canonical_layouts(element: str, major: Major, swizzle: int) -> None:
    """CUTLASS, include/cute/arch/mma_sm90_desc.hpp, evaluated in elements."""
    s, w = BITS[element] // 8, max(1, swizzle // 16)
    t = 16 // s
    mn = 2 * w * t if major == "mn" else 32
    k = (2 if swizzle == 0 else w) * t if major == "k" else 32
    found = canonical(element, major, swizzle, mn, k)
    lbo, sbo = found.leading // s, found.stride // s
    many = 1 << 20
    if major == "k" and swizzle == 0:
        shape, stride = [[8, many], [t, many]], [[t, sbo], [1, lbo]]
    elif major == "k":
        shape, stride = [[8, many], [t, many]], [[w * t, sbo], [1, t]]
    elif swizzle == 0:
        shape, stride = [[t, 1, many], [8, many]], [[1, t, sbo], [t, lbo]]
    else:
        shape, stride = [[t, w, many], [8, many]], [[1, t, lbo], [w * t, sbo]]
    layout = found.layout(mn, k)
    seen: set[int] = set()
    for x, y in product(range(mn), range(k)):
        expected = s * cute(shape, stride, x, y)
        assert found.linear(x, y) == expected
        assert layout(mn=x, k=y) == (expected,)
        seen.add(found.offset(x, y, start=4096) - 4096)
    assert seen == set(range(0, mn * k * s, s)), "packed: every element of the block once"


@pytest.mark.parametrize("swizzle", SWIZZLES)
def test_swizzle_permutes_chunks_of_a_line(swizzle: int) -> None:
    """Chunk c of the 128-byte line r goes to c ^ (r % W)."""
    chunks = max(1, swizzle // 16)
    for line, chunk, byte in product(range(16), range(8), (0, 15)):
        moved = swizzled(128 * line + 16 * chunk + byte, swizzle)
        assert moved == 128 * line + 16 * (chunk ^ (line % chunks)) + byte


@pytest.mark.parametrize(
    ("element", "major", "swizzle"),
    # with 32 bytes, K-major, one step already fills the swizzle width
    [case for case in CASES if case[1:] != ("k", 32)],
)
def test_advance_is_the_offset_of_the_next_step(element: str, major: Major, swizzle: int) -> None:
    step = 32 * 8 // BITS[element]
    mn, k = (128, 2 * step)
    found = canonical(element, major, swizzle, mn, k)
    for x, y in product((0, 5, 63), (0, 1, step - 1)):
        assert found.linear(x, y + step) == found.linear(x, y) + found.advance()


def test_the_well_known_hopper_descriptor() -> None:
    """128-byte swizzle, K-major, dense: LBO field 1, SBO field 64, mode 1."""
    layout = canonical("bf16", "k", 128, 64, 64)
    descriptor = describe(layout, 0, "sm_90a")
    assert descriptor.word == 0x4000004000010000
    assert describe(layout, 0x1400, "sm_90a").word == 0x4000004000010140
    again = decode(0x4000004000010140, "sm_90a")
    assert (again.start, again.leading, again.stride) == (0x1400, 16, 1024)
    assert again.swizzle_bytes == 128
    assert again.advanced(layout, 3).word == 0x4000004000010146
    with pytest.raises(FragirError, match="leave the 128-byte swizzle width"):
        again.advanced(layout, 4)


def test_the_blackwell_descriptor() -> None:
    """As written by hand: start | SBO << 32 | 1 << 46 | mode 2 << 61."""
    descriptor = describe(canonical("bf16", "k", 128, 64, 64), 0x400, "sm_100a")
    assert descriptor.word == (0x400 >> 4) | (1 << 16) | (1024 >> 4) << 32 | 1 << 46 | 2 << 61


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_103f"])
def test_decode_and_build_are_inverse(target: str) -> None:
    for word in (0, 0x4000004000010000, 0xFFFF_FFFF_FFFF_FFFF, 0x1234_5678_9ABC_DEF0):
        assert decode(word, target).word == word


def test_explain_names_every_field() -> None:
    text = decode(0x4000004000010000, "sm_90a").explain()
    assert text.splitlines()[0] == "0x4000004000010000 on sm_90a"
    assert "45:32 stride = 1024 bytes" in text
    assert "63:62 swizzle = 1" in text
    assert "reserved" not in text
    assert "reserved bits are set" in decode(1 << 14, "sm_90a").explain()


def test_bad_descriptors() -> None:
    with pytest.raises(FragirError, match="no matrix descriptors"):
        decode(0, "sm_80")
    with pytest.raises(FragirError, match="multiple of 16 bytes"):
        _ = MatrixDescriptor("sm_90a", 8, 16, 1024, 1).word
    with pytest.raises(FragirError, match="no swizzle of 16 bytes"):
        canonical("bf16", "k", 16, 64, 64)


def test_instruction_descriptors() -> None:
    word = instruction_descriptor("f16", m=128, n=256, a="bf16")
    assert word == 1 << 4 | 1 << 7 | 1 << 10 | 256 >> 3 << 17 | 128 >> 4 << 24
    fields = decode_instruction(word, "f16")
    assert (fields["m"], fields["n"], fields["a"], fields["d"]) == (128, 256, "bf16", "f32")
    scaled = instruction_descriptor("mxf4", m=128, n=64, a="e2m1", scale="ue8m0", sfa_id=2)
    assert scaled == 1 << 7 | 1 << 10 | 64 >> 3 << 17 | 1 << 23 | 128 >> 7 << 27 | 2 << 29
    i8 = instruction_descriptor("i8", m=64, n=32, a="s8", b="u8", d="s32", saturate=1)
    assert i8 == 1 << 3 | 2 << 4 | 1 << 7 | 32 >> 3 << 17 | 64 >> 4 << 24


@pytest.mark.parametrize("kind", KINDS)
def test_instruction_fields_do_not_overlap(kind: str) -> None:
    taken = 0
    for field in KINDS[kind][0]:
        bits = (1 << field.high - field.low + 1) - 1 << field.low
        assert taken & bits == 0, field.name
        taken |= bits
    for a, b in product(KINDS[kind][1], repeat=2):
        scale = "ue8m0" if kind.startswith("mx") else ""
        word = instruction_descriptor(
            kind, m=128, n=64, a=a, b=b, d=KINDS[kind][2][-1], scale=scale
        )
        fields = decode_instruction(word, kind)
        assert (fields["a"], fields["b"], fields["m"], fields["n"]) == (a, b, 128, 64)


def test_bad_instruction_descriptors() -> None:
    with pytest.raises(FragirError, match="A of kind tf32"):
        instruction_descriptor("tf32", m=128, n=64, a="f16")
    with pytest.raises(FragirError, match="no field saturation"):
        instruction_descriptor("f16", m=128, n=64, a="f16", saturation=1)
    with pytest.raises(FragirError, match="no kind f64"):
        decode_instruction(0, "f64")
