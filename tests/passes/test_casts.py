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
LARGEST = {"e4m3": 448.0, "e5m2": 57344.0, "e3m2": 28.0, "e2m3": 7.5, "e2m1": 6.0}
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
        ("sm_100a", ["si4", "f8E4M3FN", "f8E5M2", "f6E3M2FN", "f6E2M3FN", "f4E2M1FN"]),
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
        ("f32", "f8E8M0FNU", "sm_100a", "f32 is not converted to ue8m0"),
        ("f32", PACKED, "sm_100a", "f32 is not converted to e2m1x2"),
        ("ui1", "f32", "sm_80", "b1 is not converted to f32"),
        ("f32", "f4E2M1FN", "sm_90a", "f32 is converted to e2m1 from sm_100a on, not on sm_90a"),
        ("f64", "tf32", "sm_80", "no single rounding from f64 to tf32"),
        ("f32", "f8E4M3FN", "sm_80", "f32 is converted to e4m3 from sm_89 on, not on sm_80"),
    ],
)
def test_what_is_refused(first: str, second: str, target: str, words: str) -> None:
    with pytest.raises(FragirError, match=re.escape(words)):
        fragir.compile(kernel([(first, second)], 512), target=target)
