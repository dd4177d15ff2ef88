"""Every value of every type of a byte and less, to and from wider types, as `frag.cast` has it.

The other judge is ml_dtypes, which has its own tables.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir.errors import FragirError
from fragir.reference import scalars
from fragir.reference.bounded import exactly
from fragir.reference.formats import decode
from tests.properties.judge import judge

Array = npt.NDArray[Any]
PACKED = "!frag.packed<f4E2M1FN>"
#: Type -> ml_dtypes' type, elements a byte, the name of its format.
SMALL: dict[str, tuple[Any, int, str]] = {
    "si4": (ml_dtypes.int4, 2, "s4"),
    "ui4": (ml_dtypes.uint4, 2, "u4"),
    "si8": (np.int8, 1, "s8"),
    "ui8": (np.uint8, 1, "u8"),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 1, "e4m3"),
    "f8E5M2": (ml_dtypes.float8_e5m2, 1, "e5m2"),
    "f6E3M2FN": (ml_dtypes.float6_e3m2fn, 1, "e3m2"),
    "f6E2M3FN": (ml_dtypes.float6_e2m3fn, 1, "e2m3"),
    "f4E2M1FN": (ml_dtypes.float4_e2m1fn, 1, "e2m1"),
    PACKED: (ml_dtypes.float4_e2m1fn, 2, "e2m1x2"),
    "f8E8M0FNU": (ml_dtypes.float8_e8m0fnu, 1, "ue8m0"),
}
WIDE: dict[str, Any] = {
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "tf32": np.float32,
}  # fmt: skip
LARGEST = {
    "e4m3": 448.0, "e5m2": 57344.0, "e3m2": 28.0, "e2m3": 7.5, "e2m1": 6.0, "e2m1x2": 6.0,
}  # fmt: skip
TARGETS = ("sm_80", "sm_89", "sm_90a", "sm_100a")


def kernel(pairs: Sequence[tuple[str, str]], count: int) -> str:
    """Casts of whole arrays: %x{i} of the first type to %y{i} of the second."""
    memory = [f"%{v}{i}: memref<{count}x{t}>" for i, p in enumerate(pairs) for v, t in zip("xy", p)]
    lines = [f"func.func @k({', '.join(memory)}) {{"]
    for i, (first, second) in enumerate(pairs):
        a, b = (f"!frag.tile<{count}x{t}>" for t in (first, second))
        lines += [f"%a{i} = frag.load %x{i}[0] : memref<{count}x{first}> -> {a}"]
        lines += [f"%b{i} = frag.cast %a{i} : {a} -> {b}"]
        lines += [f"frag.store %b{i}, %y{i}[0] : {b}, memref<{count}x{second}>"]
    return "\n".join([*lines, "func.return }"])


def codes(type_: str) -> tuple[Array, Array]:
    """512 elements in their storage, all bytes that there are among them, and their values."""
    dtype, per, _ = SMALL[type_]
    if type_ == "si8":
        raw = np.arange(512).astype(np.int8)
        return raw, raw.astype(np.float64)
    raw = np.arange(512 // per, dtype=np.int64).astype(np.uint8)
    if type_ in ("f6E3M2FN", "f6E2M3FN", "f4E2M1FN"):
        raw &= 0x0F if type_ == "f4E2M1FN" else 0x3F
    if per == 2:
        elements = np.stack([raw & 15, raw >> 4], -1).reshape(-1)
        if type_ == "si4":
            return raw, (elements.astype(np.int8) ^ 8) - 8.0
        values = elements if type_ == "ui4" else elements.view(dtype)
        return raw, values.astype(np.float64)
    return raw, raw.view(dtype).astype(np.float64)


@pytest.mark.parametrize("target", TARGETS)
def test_every_value_of_what_is_small(target: str) -> None:
    pairs = [(a, b) for a in SMALL for b in WIDE]
    pairs += [(a, "i32") for a in ("si4", "ui4", "si8", "ui8", "f8E5M2", "f6E3M2FN", PACKED)]
    built = fragir.compile(kernel(pairs, 512), target=target)
    assert built.assembled.warnings == []
    arrays: list[Array] = []
    for first, second in pairs:
        arrays += [codes(first)[0], np.full(512, 7).astype(WIDE.get(second, np.int32))]
    built.launch((1,), (32,), *arrays, on="emulator")
    for i, (first, second) in enumerate(pairs):
        values, found = codes(first)[1], arrays[2 * i + 1]
        with np.errstate(all="ignore"):
            if second == "i32":
                whole = np.clip(np.trunc(np.nan_to_num(values)), -(2.0**31), 2.0**31 - 1)
                wanted = whole.astype(np.int64).astype(np.int32)
            else:
                wanted = values.astype(WIDE[second])
        if second == "tf32":  # ue8m0 0 has one bit that tf32 has too
            wanted = values.astype(np.float32)
        same = (found == wanted) | ((found != found) & (wanted != wanted))
        assert same.all(), (first, second, values[~same][:4], found[~same][:4])
        if first not in ("si4", "ui4", "si8", "ui8") and second != "i32":
            zeros = values == 0
            assert (np.signbit(found) == np.signbit(values))[zeros].all(), (first, second)
        # the reference means the same
        with np.errstate(all="ignore"):
            name = {"i32": "s32"}.get(second, second)
            meant = scalars.cast(
                exactly(decode(codes(first)[0], SMALL[first][2])), SMALL[first][2], name
            )
            got = found.astype(np.float64)
        equal = (meant.value == got) | (np.isnan(meant.value.astype(float)) & np.isnan(got))
        assert (equal & (meant.bound == 0)).all(), (first, second)


def numbers() -> Array:
    """f32 around everything that small types have, ties, NaN and infinities among them."""
    rng = np.random.default_rng(1)
    small = np.concatenate([rng.standard_normal(200) * 8, rng.standard_normal(150) * 300])
    ties = np.arange(-40, 40) / 8
    rest = [0.0, -0.0, np.inf, -np.inf, np.nan, 448, 449, 464, 465, -500, 57344, 61440, 1e9, -1e9]
    values = np.concatenate([rest, ties, small, rng.standard_normal(512)])[:512]
    return values.astype(np.float32)


@pytest.mark.parametrize(
    ("target", "types"),
    [
        ("sm_80", ["si4", "ui4", "si8", "ui8"]),
        ("sm_89", ["f8E4M3FN", "f8E5M2"]),
        ("sm_100a", ["si4", "f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN", PACKED]),
    ],
)
def test_rounding_to_what_is_small(target: str, types: list[str]) -> None:
    """To nearest even and clamped; to integers towards zero and clamped."""
    sources = {"f32": numbers(), "f16": numbers().clip(-6e4, 6e4).astype(np.float16)}
    pairs = [(source, t) for source in sources for t in types]
    built = fragir.compile(kernel(pairs, 512), target=target)
    assert built.assembled.warnings == []
    arrays: list[Array] = []
    for source, t in pairs:
        arrays += [
            sources[source],
            np.zeros(512 // SMALL[t][1], np.int8 if t == "si8" else np.uint8),
        ]
    report = built.launch((1,), (32,), *arrays, on="emulator", check=True)
    assert report.findings == []
    for i, (source, t) in enumerate(pairs):
        dtype, _, name = SMALL[t]
        raw, x = arrays[2 * i + 1], sources[source].astype(np.float64)
        found = decode(raw, name).astype(np.float64)
        with np.errstate(all="ignore"):
            if name[0] in "su":
                low, high = {"s4": (-8, 7), "u4": (0, 15), "s8": (-128, 127), "u8": (0, 255)}[name]
                wanted = np.clip(np.trunc(np.nan_to_num(x)), low, high)
            else:
                most = LARGEST[name]
                wanted = np.clip(x, -most, most).astype(dtype).astype(np.float64)
                if name not in ("e4m3", "e5m2"):  # which have no NaN: the largest number
                    wanted = np.where(np.isnan(x), most, wanted)
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        assert same.all(), (source, t, x[~same][:4], found[~same][:4], wanted[~same][:4])


@pytest.mark.parametrize("first", ["si4", "ui4", "f8E4M3FN", "si8", "f4E2M1FN", PACKED])
def test_weights_of_a_product(first: str) -> None:
    """Loaded small, unpacked in registers and multiplied in f16: every judge."""
    judge(
        f"""
    func.func @k(%x: memref<32x32xf16>, %w: memref<16x32x{first}>, %y: memref<32x16xf32>) {{
      %a = frag.load %x[0, 0] : memref<32x32xf16> -> !frag.tile<32x32xf16>
      %b = frag.load %w[0, 0] transposed : memref<16x32x{first}> -> !frag.tile<32x16x{first}>
      %h = frag.cast %b : !frag.tile<32x16x{first}> -> !frag.tile<32x16xf16>
      %zero = arith.constant 0.0 : f32
      %c = frag.fill %zero : !frag.tile<32x16xf32>
      %d = frag.mma %a, %h, %c
        : !frag.tile<32x32xf16>, !frag.tile<32x16xf16>, !frag.tile<32x16xf32>
        -> !frag.tile<32x16xf32>
      frag.store %d, %y[0, 0] : !frag.tile<32x16xf32>, memref<32x16xf32>
      func.return
    }}""",
        "sm_80",
    )


def test_integers_to_four_bits_keep_the_low_ones() -> None:
    pairs = [("i32", "si4"), ("i32", "ui4"), ("si8", "si4"), ("si4", "si8"), ("ui4", "si8")]
    built = fragir.compile(kernel(pairs, 512), target="sm_80")
    x = np.random.default_rng(2).integers(-(2**31), 2**31, 512).astype(np.int32)
    bytes_, nibbles = x.astype(np.int8), np.arange(256, dtype=np.uint8)
    half = [np.zeros(256, np.uint8) for _ in range(3)]
    whole = [np.zeros(512, np.int8) for _ in range(2)]
    built.launch(
        (1,), (32,), x, half[0], x, half[1], bytes_, half[2], nibbles, whole[0], nibbles, whole[1],
        on="emulator", check=True,
    )  # fmt: skip
    for found, of in zip(half, (x, x, bytes_), strict=True):
        assert (np.stack([found & 15, found >> 4], -1).reshape(-1) == (of & 15)).all()
    assert (whole[0] == codes("si4")[1]).all()
    assert (whole[1] == codes("ui4")[1]).all()


#: Type -> numpy's, bits of fraction, lowest exponent, largest number.
NARROWER: dict[str, tuple[Any, int, int, float]] = {
    "f16": (np.float16, 10, -14, 65504.0),
    "bf16": (ml_dtypes.bfloat16, 7, -126, 2.0**127 * (2 - 2.0**-7)),
    "tf32": (np.float32, 10, -126, 2.0**127 * (2 - 2.0**-10)),
    "f8E4M3FN": (ml_dtypes.float8_e4m3fn, 3, -6, 448.0),
    "f8E5M2": (ml_dtypes.float8_e5m2, 2, -14, 57344.0),
}


def beside_ties(bits: int) -> Array:
    """512 f64 that lie by less than f32 sees beside the middle of two numbers; edges."""
    rng = np.random.default_rng(bits)
    whole = rng.integers(0, 1 << bits, 496) + 0.5
    near = (1 + whole * 2.0**-bits) * (1 + rng.choice([-1, 0, 1], 496) * 2.0**-45)
    x = near * 2.0 ** rng.integers(-4, 5, 496) * rng.choice([-1, 1], 496)
    edges = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e300, -1e300, 65519.99, 65520, 3.3e38, 2.0**-134]
    return np.concatenate([x, edges, [1e-300, -1e-300, 2.0**-133 * 1.5, 447.9, 449]])


def nearest(x: Array, type_: str) -> Array:
    _, bits, lowest, most = NARROWER[type_]
    step = 2.0 ** (np.maximum(np.frexp(x)[1] - 1, lowest) - bits)
    scaled = x / step
    away = np.copysign(np.floor(np.abs(scaled) + 0.5), scaled)
    y = np.where(type_ == "tf32", away, np.rint(scaled)) * step
    limit = most if type_[:2] == "f8" else np.inf
    return np.where(np.abs(y) > most, np.copysign(limit, y), y)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_f64_is_rounded_once(target: str) -> None:
    types = [t for t in NARROWER if target != "sm_80" or t[:2] != "f8"]
    built = fragir.compile(kernel([("f64", t) for t in types], 512), target=target)
    assert built.assembled.warnings == []
    arrays: list[Array] = []
    for t in types:
        arrays += [beside_ties(NARROWER[t][1]), np.zeros(512, NARROWER[t][0])]
    built.launch((1,), (32,), *arrays, on="emulator")
    for t, x, result in zip(types, arrays[::2], arrays[1::2], strict=True):
        found = result.astype(np.float64)
        with np.errstate(all="ignore"):
            wanted = nearest(x, t)
        if t == "tf32":
            found = np.where(np.abs(x) < 2.0**-126, wanted, found)  # its subnormals keep more
        same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
        assert same.all(), (t, x[~same][:4], found[~same][:4], wanted[~same][:4])


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_integers_are_rounded_once_to_bf16(target: str) -> None:
    built = fragir.compile(kernel([("i32", "bf16"), ("i64", "bf16")], 512), target=target)
    assert built.assembled.warnings == []
    rng = np.random.default_rng(3)
    whole = (rng.integers(128, 256, 512) * 2 + 1) << 22  # ties, moved by one
    x = (whole + rng.integers(-1, 2, 512)).astype(np.int32)
    wide = (whole << 31) + rng.integers(-1, 2, 512)
    x[:3], wide[:3] = (0, -(2**31), 2**31 - 1), (2**63 - 1, -(2**63), -1)
    found = [np.zeros(512, ml_dtypes.bfloat16) for _ in range(2)]
    built.launch((1,), (32,), x, found[0], wide, found[1], on="emulator", check=True)
    for given, got in zip((x, wide), found, strict=True):
        for number, one in zip(given.tolist(), got.astype(np.float64), strict=True):
            # the nearest of the neighbours, in whole numbers; ties to the even one
            bits = max(abs(number).bit_length() - 8, 0)
            low = abs(number) >> bits
            rest = abs(number) - (low << bits)
            up = 2 * rest > 1 << bits or (bits and 2 * rest == 1 << bits and low & 1)
            assert abs(int(one)) == (low + bool(up)) << bits, (number, one)


def test_powers_of_two_are_the_nearest() -> None:
    """Of f32 as ue8m0, as ml_dtypes has it; of numbers that it calls NaN the nearest one too."""
    x = np.abs(numbers())
    x[:8] = 2.0**-127, 1.49 * 2.0**-127, 1.5 * 2.0**-127, 2.0**-126, 1.5, 1.499, 3.0, 3e38
    x[8:12] = 0.0, np.nan, np.inf, -2.0
    for target in ("sm_80", "sm_120a"):
        built = fragir.compile(
            kernel([("f32", "f8E8M0FNU"), ("f16", "f8E8M0FNU")], 512), target=target
        )
        assert built.assembled.warnings == []
        half = np.where(x < 60000, x, 1).astype(np.float16)
        found = [np.zeros(512, np.uint8) for _ in range(2)]
        built.launch((1,), (32,), x, found[0], half, found[1], on="emulator", check=True)
        for given, got in zip((x, half), found, strict=True):
            wide = given.astype(np.float32)
            with np.errstate(all="ignore"):
                powers = wide.astype(ml_dtypes.float8_e8m0fnu).view(np.uint8)
            wanted = np.where(wide <= 0, 0, np.where(wide > 2.9e38, 254, powers))
            wanted[:4] = (0, 0, 1, 1) if given is x else 0  # ml_dtypes rounds subnormals up
            assert (got == wanted).all()


#: What two elements cost, in instructions of PTX, conversions of constants aside.
COSTS = [
    ("si4", "f16", "sm_80", {"prmt": 1, "lop3": 1, "fma": 1}),
    ("ui4", "f16", "sm_80", {"prmt": 1, "lop3": 1, "fma": 1}),
    ("si4", "bf16", "sm_80", {"prmt": 1, "lop3": 1, "fma": 1, "shr": 0.25}),
    ("ui8", "f16", "sm_80", {"prmt": 1, "sub": 1}),
    ("si8", "f16", "sm_80", {"prmt": 1, "sub": 1, "xor": 0.5}),
    ("f8E5M2", "f16", "sm_80", {"prmt": 1}),
    ("f8E4M3FN", "f16", "sm_89", {"cvt": 1}),
    ("f8E4M3FN", "f16", "sm_80",
     {"prmt": 1, "shr": 2, "and": 3, "lop3": 1, "mul": 1, "add": 1, "sub": 1, "or": 1}),
    ("f6E3M2FN", "f16", "sm_80", {"prmt": 1, "and": 1, "shl": 1, "lop3": 1, "mul": 1}),
    (PACKED, "f16", "sm_80", {"prmt": 1, "shl": 0.25, "shr": 1, "and": 1, "lop3": 1, "mul": 1}),
]  # fmt: skip
CONVERTING = {"prmt", "lop3", "fma", "sub", "xor", "cvt", "shr", "shl", "and", "mul", "add", "or"}


@pytest.mark.parametrize(("first", "second", "target", "wanted"), COSTS)
def test_what_it_costs(first: str, second: str, target: str, wanted: dict[str, float]) -> None:
    def count(elements: int) -> Counter[str]:
        ptx = fragir.compile(kernel([(first, second)], elements), target=target).ptx
        return Counter(re.findall(r"^    (\w+)\.", ptx, re.MULTILINE))

    found = count(1024) - count(512)  # of 16 elements of a lane
    costs = {name: n / 8 for name, n in found.items() if name in CONVERTING}
    assert costs == wanted


@pytest.mark.parametrize(
    ("first", "second", "target", "words"),
    [
        ("f32", PACKED, "sm_90a", "f32 is converted to e2m1x2 from sm_100a on, not on sm_90a"),
        ("ui1", "f32", "sm_80", "b1 is not converted to f32"),
        ("f32", "f4E2M1FN", "sm_90a", "f32 is converted to e2m1 from sm_100a on, not on sm_90a"),
        ("f32", "f8E4M3FN", "sm_80", "f32 is converted to e4m3 from sm_89 on, not on sm_80"),
    ],
)
def test_what_is_refused(first: str, second: str, target: str, words: str) -> None:
    with pytest.raises(FragirError, match=re.escape(words)):
        fragir.compile(kernel([(first, second)], 512), target=target)
