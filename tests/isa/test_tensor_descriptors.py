"""Descriptors of tcgen05 against the ISA's formulas and tables, written out here once more."""

from __future__ import annotations

from itertools import product
from math import prod
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fragir.errors import FragirError
from fragir.isa.canonical import CanonicalLayout, Major, canonical
from fragir.isa.descriptors import (
    KINDS,
    decode,
    decode_instruction,
    describe,
    instruction_descriptor,
    instruction_faults,
    instruction_notes,
)
from fragir.isa.model import BITS
from fragir.isa.operand_tiles import MODES, majors, parse_tile, recognise, tensor_tiles
from fragir.isa.tensor_products import SHAPES, check_shape, depths
from fragir.layout import swizzled

TARGET = "sm_100a"

# -- shared memory ---------------------------------------------------------------------------------

# The worked examples of the ISA (9.7.16.10.? "Canonical Layouts"): element, major, swizzle, the
# exact layout in elements, LBO and SBO in elements. The second one's K runs on beyond the width of
# the swizzle in the ISA's text; what is within is compared.
EXAMPLES: list[tuple[str, Major, int, Any, int, int]] = [
    ("tf32", "k", 0, (((8, 2), (4, 4)), ((4, 32), (1, 64))), 64, 32),
    ("tf32", "k", 32, (((8, 2), (4, 2)), ((8, 64), (1, 4))), 0, 64),
    ("bf16", "mn", 0, (((8, 1, 2), (8, 2)), ((1, 8, 64), (8, 128))), 128, 64),
    ("bf16", "mn", 32, (((8, 2, 2), (8, 2)), ((1, 8, 128), (16, 256))), 128, 256),
    ("bf16", "mn", 64, (((8, 4, 2), (8, 2)), ((1, 8, 256), (32, 512))), 256, 512),
]


def cute(coordinate: int, sizes: tuple[int, ...], strides: tuple[int, ...]) -> int:
    total = 0
    for size, stride in zip(sizes, strides, strict=True):
        total += coordinate % size * stride
        coordinate //= size
    return total


@pytest.mark.parametrize(("element", "major", "swizzle", "exact", "lbo", "sbo"), EXAMPLES)
def test_the_worked_examples(
    element: str, major: Major, swizzle: int, exact: Any, lbo: int, sbo: int
) -> None:
    size = 4 if element == "tf32" else 2
    code = {0: 0, 32: 6, 64: 4}[swizzle]
    word = (lbo * size >> 4) << 16 | (sbo * size >> 4) << 32 | 1 << 46 | code << 61
    found = decode(word, TARGET).canonical(element, major)
    (rows, cols), (row_steps, col_steps) = exact
    for mn, k in product(range(prod(rows)), range(prod(cols))):
        wanted = size * (cute(mn, rows, row_steps) + cute(k, cols, col_steps))
        assert found.linear(mn, k) == wanted


def address(fields: dict[str, int], major: str, mn: int, k: int, size: int) -> int:
    """Where the byte of element (mn, k) is, by sections 9.7.16.4.1 and 9.7.16.5: absolute."""
    bits, atom, low = {
        0: (0, 16, 3),
        1: (2, 32, 2),
        2: (3, 16, 3),
        4: (2, 16, 3),
        6: (1, 16, 3),
    }[fields["swizzle"]]
    line = atom << bits
    if major == "k":
        byte = k * size
        along = byte if bits else byte // 16 * fields["leading"] + byte % 16
        place = mn % 8 * line + mn // 8 * fields["stride"] + along
    else:
        q, side = (4 if atom == 32 else 8), line // size
        over, down = ("leading", "stride") if bits else ("stride", "leading")
        place = mn % side * size + mn // side * fields[over]
        place += k % q * line + k // q * fields[down]
    place += fields["start"]
    place_of_atom = atom.bit_length() - 1
    return place ^ (place >> place_of_atom + low & (1 << bits) - 1) << place_of_atom


CASES = [
    (element, major, mode)
    for element in ("bf16", "e4m3", "s8", "tf32")
    for mode, (_, atom) in MODES.items()
    for major in majors(element, tcgen05=True, atom=atom)
]


def test_which_types_may_be_mn_major() -> None:
    turned = {(e, m) for e, major, m in CASES if major == "mn"}
    plain = ("0", "32", "64", "128")
    assert turned == {("tf32", "128/32"), *product(("bf16", "e4m3", "s8"), plain)}
    for element in ("e2m1", "e3m2", "e2m3", "e2m1x2"):
        assert majors(element, tcgen05=True) == ("k",)


UNITS = st.integers(0, (1 << 14) - 1)


@pytest.mark.parametrize(("element", "major", "mode"), CASES)
@settings(max_examples=20, deadline=None)
@given(start=UNITS, leading=UNITS, stride=UNITS)
def test_places_are_the_isas(
    start: int, leading: int, stride: int, element: str, major: Major, mode: str
) -> None:
    size = {"bf16": 2, "tf32": 4}.get(element, 1)
    code = {"0": 0, "128/32": 1, "128": 2, "64": 4, "32": 6}[mode]
    word = start | leading << 16 | stride << 32 | 1 << 46 | code << 61
    fields = {"start": 16 * start, "leading": 16 * leading, "stride": 16 * stride, "swizzle": code}
    found = decode(word, TARGET)
    mn, k = 160 if major == "k" else 256, 32 // size
    places = found.places(element, major, mn, k)
    form = found.canonical(element, major)
    for x, y in product((0, 1, 7, 8, 63, 64, 77, mn - 1), {0, 1, 3, k // 2, k - 1}):
        wanted = address(fields, major, x, y, size)
        assert places[x, y] == form.offset(x, y, fields["start"]) == wanted


@pytest.mark.parametrize(("element", "major", "mode"), CASES)
def test_the_map_of_a_descriptor_is_a_layout(element: str, major: Major, mode: str) -> None:
    """Packed tiles: the layout with exclusive or is `places`, and every byte is taken once."""
    size = {"bf16": 2, "tf32": 4}.get(element, 1)
    width = max(16, MODES[mode][0]) // size
    mn, k = (2 * width, 32) if major == "mn" else (64, width)
    tile = parse_tile(f"{element}:{major}:{mode}:{mn}x{k}", tcgen05=True)
    found = describe(tile.shared, 2048, TARGET)
    assert decode(found.word, TARGET) == found
    places = found.places(element, major, mn, k)
    shared = found.layout(element, major, mn, k)
    assert (shared.as_layout().array()[..., 0] == places).all()
    assert sorted(places.ravel()) == list(range(2048, 2048 + size * mn * k, size))


def test_128_bytes_are_what_tma_writes() -> None:
    """K-major with 128 bytes: rows as a tensor copy with that swizzle puts them."""
    tile = canonical("bf16", "k", 128, 64, 64)
    wanted = swizzled((64, 64), 16, 128).array()[..., 0]
    assert (describe(tile, 1024, TARGET).places("bf16", "k", 64, 64) == 1024 + wanted).all()


def test_a_start_within_the_swizzle_is_the_next_step() -> None:
    whole = describe(canonical("bf16", "k", 128, 64, 64), 4096, TARGET)
    for step in range(4):
        later = whole._replace(start=4096 + 32 * step)
        all_places = whole.places("bf16", "k", 64, 64)
        shown = later.layout("bf16", "k", 64, 16).as_layout().array()[..., 0]
        assert (shown == all_places[:, 16 * step : 16 * step + 16]).all()


def test_a_base_offset_moves_the_pattern() -> None:
    """A pattern that begins at a line of 128 bytes: turned as if it began at a multiple of 1024."""
    at_zero = describe(canonical("bf16", "k", 128, 8, 64), 0, TARGET).places("bf16", "k", 8, 64)
    moved = describe(canonical("bf16", "k", 128, 8, 64), 384, TARGET)._replace(base_offset=3)
    assert (moved.places("bf16", "k", 8, 64) == 384 + at_zero).all()
    with pytest.raises(FragirError, match="base offset 3"):
        moved.layout("bf16", "k", 8, 64)


@pytest.mark.parametrize("mode", ["0", "32", "64", "128"])
@pytest.mark.parametrize("element", ["e2m1", "e2m3", "e3m2", "e2m1x2"])
def test_elements_below_a_byte(element: str, mode: str) -> None:
    """Section 9.7.16.10.4: 16 elements begin at every 16 bytes, low bits first; of mxf4* 32 do."""
    bits = 6 if element in ("e2m3", "e3m2") else 4
    chunk = 32 if element == "e2m1x2" else 16
    k = chunk * max(int(mode), 32) // 16
    if mode == "0":
        k = 4 * chunk
    tile = parse_tile(f"{element}:k:{mode}:32x{k}", tcgen05=True)
    places = tile.shared.places(32, k, 4096)
    assert tile.shared.unit == "bit"
    assert (tile.shared.shared(32, k, 4096).as_layout().array()[..., 0] == places).all()
    byte = canonical("b8", "k", int(mode), 32, 16 * k // chunk).places(32, 16 * k // chunk, 4096)
    for row, col in product((0, 3, 9, 31), range(k)):
        assert places[row, col] == 8 * byte[row, col // chunk * 16] + col % chunk * bits
    lists = tensor_tiles(element, 32, k, padded=element != "e2m1x2")
    assert {t.mode for t in lists} == set(MODES)
    assert {t.shared.major for t in lists} == {"k"}


@pytest.mark.parametrize(("element", "major", "mode"), CASES)
def test_layouts_are_recognised(element: str, major: Major, mode: str) -> None:
    width = max(16, MODES[mode][0]) * 8 // BITS[element]
    for mn, k in ((2 * width, 32), (4 * width, 64)) if major == "mn" else ((64, width),):
        tile = parse_tile(f"{element}:{major}:{mode}:{mn}x{k}", tcgen05=True)
        again = recognise(tile.text, element, tcgen05=True)
        wanted = tile.shared.places(tile.mn, tile.k)
        assert (again.shared.places(tile.mn, tile.k) == wanted).all()
        assert (again.shared.major, again.mode) == (tile.shared.major, tile.mode)


@pytest.mark.parametrize(
    ("text", "tcgen05", "words"),
    [
        ("tf32:mn:128:64x8", True, "cannot be mn-major with the swizzle 128 .*tf32 with 128/32"),
        ("bf16:mn:128/32:64x8", True, "cannot be mn-major with the swizzle 128/32"),
        ("e2m1:mn:0:64x32", True, "cannot be mn-major"),
        ("e4m3:mn:0:64x32", False, "cannot be mn-major .only 16-bit types can"),
        ("bf16:k:128/32:64x64", False, "wgmma has no swizzle mode 128/32"),
        ("e2m1x2:k:128:64x256", False, "no type of whole bytes"),
        ("bf16:k:16:64x64", True, "no swizzle of 16 bytes"),
        ("bf16:k:x:64x64", True, "names no tile"),
    ],
)
def test_refused_tiles(text: str, tcgen05: bool, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        parse_tile(text, tcgen05=tcgen05)


def test_descriptors_that_mean_nothing() -> None:
    for word, words in (
        (0, "version .bits 48:46. is 0"),
        (1 << 46 | 3 << 61, "swizzle mode 3 means nothing"),
        (1 << 46 | 1 << 55, "reserved bits are set"),
        (1 << 46 | 1 << 52, "leading offset of this descriptor is an absolute address"),
    ):
        with pytest.raises(FragirError, match=words):
            decode(word, TARGET).canonical("bf16")
    with pytest.raises(FragirError, match="cannot be mn-major"):
        decode(1 << 46 | 2 << 61, TARGET).canonical("tf32", "mn")
    with pytest.raises(FragirError, match="have no swizzle mode 128/32"):
        describe(canonical("tf32", "mn", 128, 64, 8, atom=32), 0, "sm_90a")
    with pytest.raises(FragirError, match="atoms of 32 bytes"):
        canonical("tf32", "mn", 64, 64, 8, atom=32)
    assert isinstance(decode(1 << 46, TARGET).canonical("bf16"), CanonicalLayout)


# -- instructions ----------------------------------------------------------------------------------

# Section 9.7.16.2.1, by (kinds, CTAs, .ws): M, N dense, N sparse.
_STEP8, _STEP16, _STEP32 = range(8, 257, 8), range(16, 257, 16), range(32, 257, 32)
TABLE: dict[tuple[str, int, bool], tuple[dict[int, set[int]], ...]] = {}
for _kind in ("f16", "tf32", "f8f6f4"):
    TABLE[_kind, 1, False] = ({m: set(_STEP8) for m in (64, 128)},) * 2
    TABLE[_kind, 2, False] = ({m: set(_STEP16) for m in (128, 256)},) * 2
TABLE["i8", 1, False] = ({m: {8, 24} | set(_STEP16) for m in (64, 128)},) * 2
TABLE["i8", 2, False] = ({m: set(_STEP32) for m in (128, 256)},) * 2
TABLE["ti16", 1, False] = ({64: set(_STEP8), 128: set(_STEP16)},) * 2
TABLE["ti16", 2, False] = TABLE["i8", 2, False]
for _kind in ("f16", "tf32", "f8f6f4", "i8", "ti16"):
    TABLE[_kind, 1, True] = (
        {m: {64, 128, 256} for m in (32, 64, 128)},
        {m: {64, 128} for m in (32, 64, 128)},
    )
for _kind in ("mxf8f6f4", "mxf4", "mxf4nvf4"):
    TABLE[_kind, 1, False] = ({128: set(_STEP8)},) * 2
    TABLE[_kind, 2, False] = ({m: set(_STEP16) for m in (128, 256)}, {256: set(_STEP16)})


def test_shapes_are_the_isas() -> None:
    for kind, group, ws, sparse in product(KINDS, (1, 2), (False, True), (False, True)):
        legal = TABLE.get((kind, group, ws), ({}, {}))[sparse]
        for m, n in product((0, 16, 32, 48, 64, 96, 128, 192, 256), range(0, 265, 4)):
            wanted = n in legal.get(m, ())
            try:
                check_shape(kind, m, n, group=group, ws=ws, sparse=sparse)
                found = True
            except FragirError:
                found = False
            assert found == wanted, (kind, group, ws, sparse, m, n)
    assert {kind: depths(kind) for kind in KINDS} == {
        **{
            "f16": (16,),
            "tf32": (8,),
            "f8f6f4": (32,),
            "i8": (32,),
            "ti16": (16,),
            "mxf8f6f4": (32,),
        },
        **{"mxf4": (64, 96), "mxf4nvf4": (64, 96)},
    }
    assert depths("f16", sparse=True) == (32,)
    assert depths("mxf4", sparse=True) == (128,)


# Where the ISA's tables of the descriptor (9.7.16.4.2) put a field: (low bit, unit).
PLACES = {"m": (24, 16), "n": (17, 8), "d": (4, 1), "a": (7, 1), "b": (10, 1), "scale": (23, 1)}
CODES = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "i8": {"u8": 0, "s8": 1},
    "ti16": {"s1z4m11": 3},
    "mxf4": {"e2m1": 1},
    "mxf4nvf4": {"e2m1": 1},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
}
CODES["mxf8f6f4"] = CODES["f8f6f4"]


@settings(deadline=None)
@given(data=st.data())
def test_instruction_descriptors_are_the_isas(data: st.DataObject) -> None:
    rule = data.draw(st.sampled_from(SHAPES))
    kind = data.draw(st.sampled_from(rule.kinds))
    m, n = data.draw(st.sampled_from(rule.m)), data.draw(st.sampled_from(rule.n))
    a, b = (data.draw(st.sampled_from(sorted(CODES[kind]))) for _ in "ab")
    scaled = kind.startswith("mx")
    half = kind == "f8f6f4" or (a, b) == ("f16", "f16")
    d = {"i8": "s32", "ti16": "s32"}.get(kind) or (
        "f16" if half and data.draw(st.booleans()) else "f32"
    )
    sparse = data.draw(st.sampled_from(rule.sparse))
    flags: dict[str, Any] = {"sparse": int(sparse)}
    word = int(sparse) << 2 | m // 16 << 24 | n // 8 << 17
    word |= CODES[kind][a] << 7 | CODES[kind][b] << 10
    scale = ""
    if scaled:
        scale = "ue8m0" if kind != "mxf4nvf4" else data.draw(st.sampled_from(("ue8m0", "ue4m3")))
        ids = (0,) if scale == "ue4m3" else (0, 1, 2, 3) if kind == "mxf8f6f4" else (0, 2)
        flags["sfa_id"], flags["sfb_id"] = (data.draw(st.sampled_from(ids)) for _ in "ab")
        word |= flags["sfa_id"] << 29 | flags["sfb_id"] << 4 | (scale == "ue8m0") << 23
    else:
        word |= {"f16": 0, "f32": 1, "s32": 2}[d] << 4
    if kind != "i8":
        flags["negate_a"], flags["negate_b"] = (data.draw(st.integers(0, 1)) for _ in "ab")
        word |= flags["negate_a"] << 13 | flags["negate_b"] << 14
    if kind == "i8":
        flags["saturate"] = data.draw(st.integers(0, 1))
        word |= flags["saturate"] << 3
    made = instruction_descriptor(
        kind, m=m, n=n, a=a, b=b, d=d, scale=scale, cta_group=rule.group, ws=rule.ws, **flags
    )
    assert made == word
    fields = decode_instruction(word, kind)
    assert (fields["m"], fields["n"], fields["a"], fields["b"]) == (m, n, a, b)
    assert all(fields[name] == value for name, value in flags.items())
    assert not list(instruction_faults(word, kind, cta_group=rule.group, ws=rule.ws))


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("f16", {"m": 48}, "no M = 48"),
    ("f16", {"n": 0}, "no N = 0"),
    ("f16", {"a": "bf16", "d": "f16"}, "D of bf16 is f32"),
    ("f16", {"b": "bf16", "d": "f16"}, "D of bf16 is f32"),
    ("f16", {"m": 256, "cta_group": 1}, "no M = 256"),
    ("f16", {"m": 64, "cta_group": 2}, "no M = 64"),
    ("f16", {"m": 32, "ws": False}, "no M = 32"),
    ("f16", {"n": 24, "ws": True}, "no N = 24"),
    ("f16", {"n": 256, "ws": True, "sparse": 1}, "no N = 256"),
    ("f16", {"saturate": 1}, "only integers saturate"),
    ("f16", {"selector": 1}, "selector is of sparse"),
    ("f16", {"n": 24, "max_shift": 1}, "shift is of .ws"),
    ("f16", {"scale": "ue8m0"}, "no block scales"),
    ("tf32", {"a": "tf32", "d": "f16"}, "D of kind tf32"),
    ("i8", {"a": "s8", "n": 40}, "no N = 40"),
    ("i8", {"a": "s8", "negate_a": 1}, "integers are not negated"),
    ("i8", {"a": "s8", "target": "sm_103a"}, "sm_103a has no tcgen05.mma of kind::i8"),
    ("i8", {"a": "s8", "n": 24, "mn_major_b": 1}, "multiple of 16, not 24"),
    ("f8f6f4", {"a": "e4m3", "b": "e2m1", "mn_major_b": 1}, "B of e2m1 cannot be MN-major"),
    ("mxf8f6f4", {"a": "e4m3", "scale": "ue4m3"}, "are ue8m0, not ue4m3"),
    ("mxf4", {"a": "e2m1", "scale": "ue8m0", "sfb_id": 1}, "sfb_id is one of 0, 2, not 1"),
    ("mxf4", {"a": "e2m1", "scale": "ue8m0", "mn_major_a": 1}, "has no field mn_major_a"),
    ("mxf4", {"a": "e2m1", "scale": "ue8m0", "k96": 1, "sparse": 1}, "of dense products alone"),
    ("mxf4", {"a": "e2m1", "scale": "ue8m0", "k96": 1, "target": "sm_100a"}, "no K = 96"),
    ("mxf4nvf4", {"a": "e2m1", "scale": "ue4m3", "sfa_id": 2}, "sfa_id is one of 0, not 2"),
]


@pytest.mark.parametrize(("kind", "values", "words"), REFUSED)
def test_what_the_instruction_has_not(kind: str, values: dict[str, Any], words: str) -> None:
    given: dict[str, Any] = {"m": 128, "n": 64, "a": "f16", **values}
    with pytest.raises(FragirError, match=words):
        instruction_descriptor(kind, **given)


def test_words_that_mean_nothing() -> None:
    good = instruction_descriptor("f16", m=128, n=64, a="f16")
    for bit, words in ((6, "reserved"), (23, "reserved"), (29, "reserved"), (8, "type of A")):
        assert any(words in fault for fault in instruction_faults(good | 1 << bit, "f16"))
    mx = instruction_descriptor("mxf8f6f4", m=128, n=64, a="e4m3", scale="ue8m0")
    for bit in (0, 1, 3, 24, 25, 26, 31):
        assert any("reserved" in fault for fault in instruction_faults(mx | 1 << bit, "mxf8f6f4"))


def test_what_others_refuse_gets_a_word() -> None:
    wide = describe(canonical("bf16", "k", 128, 64, 64, atom=32), 0, TARGET)
    assert "CuTe refuses it" in wide.notes("k")[0]
    assert not wide.notes("mn")
    odd = instruction_descriptor("f16", m=128, n=24, a="f16")
    assert "CuTe refuses" in instruction_notes(odd, "f16")[0]
    assert not list(instruction_faults(odd, "f16"))
    mixed = instruction_descriptor("f16", m=64, n=24, a="f16", b="bf16")
    assert "different types" in instruction_notes(mixed, "f16")[0]
    assert not instruction_notes(instruction_descriptor("f16", m=64, n=24, a="f16"), "f16")
