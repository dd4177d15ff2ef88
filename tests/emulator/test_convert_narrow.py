"""cvt to and from narrow formats, against a search among all values of the format.

Every 16-bit source, and single-precision ones around every value and every midpoint of the target.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from .batch import evaluate_all

F64 = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint64]

TYPES: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "e4m3": 0x7F, "e5m2": 0x7F}
WIDTH = {"f16": 16, "bf16": 16, "e2m1": 4}  # in a register; the others 8
NARROW = ["e4m3", "e5m2", "e3m2", "e2m3", "e2m1"]


def codes_of(name: str) -> int:
    """How many codes there are without the sign."""
    return {"f16": 1 << 15, "bf16": 1 << 15, "e2m1": 8, "e3m2": 32, "e2m3": 32}.get(name, 128)


def sign_bit(name: str) -> int:
    return codes_of(name)


def value_of(name: str, codes: npt.NDArray[Any]) -> F64:
    stored = np.uint16 if name in ("f16", "bf16") else np.uint8
    with np.errstate(invalid="ignore"):
        return codes.astype(stored).view(TYPES[name]).astype(np.float64)


def magnitudes(name: str) -> F64:
    """The finite values without sign, by code: ascending."""
    values = value_of(name, np.arange(codes_of(name)))
    return values[np.isfinite(values)]


def singles(name: str, seed: int = 1) -> F64:
    """f32 values at, between and beside all values of a format, huge and tiny ones, specials."""
    own = magnitudes(name)
    if len(own) > 1 << 10:
        some = np.random.default_rng(seed).integers(0, len(own) - 1, 1 << 9)
        own = own[np.unique(np.concatenate([some, some + 1, [0, 1, 2, len(own) - 1]]))]
    middle = (own[1:] + own[:-1]) / 2
    near = np.concatenate([own, middle, own * 1.25, [own[-1] * 1.0625, 2.0**-149, 2.0**-127]])
    with np.errstate(over="ignore"):
        exact = near.astype(np.float32)
    beside = np.concatenate(
        [exact, np.nextafter(exact, np.float32(np.inf)), np.nextafter(exact, np.float32(0))]
    )
    beside = np.concatenate([beside, np.array([np.inf, 3e38, 1e-40, 0], np.float32)])
    both = np.concatenate([beside, -beside, np.array([np.nan], np.float32)])
    return both.astype(np.float64)


def nearest(name: str, x: F64, mode: str, words: str, random: Any = None, bits: int = 0) -> Codes:
    """The code that rounding gives. Ties to even codes; `random`: with that many random bits."""
    values = magnitudes(name)
    size = np.abs(np.where(np.isfinite(x), x, 0.0))
    low = np.minimum(np.searchsorted(values, size, side="right") - 1, len(values) - 1)
    spacing = np.append(np.diff(values), values[-1] - values[-2])[low]
    above = (size - values[low]) / spacing  # exact: the spacing is a power of two
    if mode == "rs":
        up = np.floor(above * 2.0**bits) + random >= 2.0**bits
    else:
        up = {
            "rn": (above > 0.5) | ((above == 0.5) & (low % 2 == 1)),
            "rz": np.zeros(len(x), np.bool_),
            "rm": (above > 0) & (x < 0),
            "rp": (above > 0) & (x > 0),
        }[mode]
    code = low + np.where(above < 1, up, 1)  # at least one step beyond the largest: past the end
    largest = len(values) - 1
    infinite = "satfinite" not in words and name in ("f16", "bf16")
    over = code > largest
    if infinite and mode in ("rz", "rm", "rp"):
        over &= (mode == "rp") & (x > 0) | (mode == "rm") & (x < 0)
    code = np.where(over, largest + 1 if infinite else largest, np.minimum(code, largest))
    end = largest + 1 if infinite else largest
    code = np.where(np.isinf(x), end, code)
    code = np.where(np.signbit(x), code | sign_bit(name), code)
    if "relu" in words:
        code = np.where(np.signbit(x), 0, code)
    return np.where(np.isnan(x), NAN.get(name, largest), code).astype(np.uint64)


def f32_bits(x: F64) -> npt.NDArray[np.uint32]:
    return x.astype(np.float32).view(np.uint32)


def pack(high: Codes, low: Codes, name: str) -> Codes:
    return high << np.uint64(WIDTH.get(name, 8)) | low


def check(got: npt.NDArray[Any], wanted: npt.NDArray[Any], sources: npt.NDArray[Any]) -> None:
    wrong = np.flatnonzero(got != wanted)
    assert not len(wrong), (
        f"{len(wrong)} wrong; {sources[wrong[0]]!r} gives {int(got[wrong[0]]):#x}, "
        f"not {int(wanted[wrong[0]]):#x}"
    )


@pytest.mark.parametrize("name", TYPES)
def test_pairs_of_singles(name: str) -> None:
    x = singles(name)
    y = np.roll(x, 7)
    words = ["rn.satfinite", "rn.satfinite.relu"]
    if name in ("f16", "bf16"):
        words = [
            f"{m}{s}{r}" for m in ("rn", "rz") for s in ("", ".satfinite") for r in ("", ".relu")
        ]
    d = {"f16": "r", "bf16": "r", "e2m1": "c"}.get(name, "h")
    got = evaluate_all(
        [f"cvt.{w}.{name}x2.f32 %{d}0, %r1, %r2" for w in words],
        {"r1": f32_bits(x), "r2": f32_bits(y)},
    )
    for w, result in zip(words, got, strict=True):
        mode = w[:2]
        check(result, pack(nearest(name, x, mode, w), nearest(name, y, mode, w), name), x)


@pytest.mark.parametrize("source", ["f16", "bf16"])
def test_pairs_of_halves(source: str) -> None:
    """All 65536 codes."""
    codes = np.arange(1 << 16, dtype=np.uint64)
    other = codes[::-1].copy()
    x, y = value_of(source, codes), value_of(source, other)
    words = ["rn.satfinite", "rn.satfinite.relu"]
    lines = [
        f"cvt.{w}.{name}x2.{source}x2 %{'c' if name == 'e2m1' else 'h'}0, %r1"
        for name in NARROW
        for w in words
    ]
    got = evaluate_all(lines, {"r1": codes << np.uint64(16) | other})
    for line, result in zip(lines, got, strict=True):
        name, w = line.split(".")[-2][:-2], line.split(" ")[0]
        check(result, pack(nearest(name, x, "rn", w), nearest(name, y, "rn", w), name), x)


@pytest.mark.parametrize("name", NARROW)
def test_from_pairs(name: str) -> None:
    """Every code beside every other one's neighbour; bf16 also with scales and clamped."""
    width = WIDTH.get(name, 8)
    many = 2 * codes_of(name)
    high, low = np.divmod(np.arange(many * many, dtype=np.uint64)[:: 1 if many < 256 else 5], many)
    source = "c" if name == "e2m1" else "h"
    scales = np.resize(np.array([0x7F7F, 0x807E, 0x00FE, 0xFF01, 0x9040], np.uint64), len(high))
    lines = [
        f"cvt.rn{r}.{t}x2.{name}x2 %r0, %{source}1" for t in ("f16", "bf16") for r in ("", ".relu")
    ]
    scaled = [f"cvt.rn{r}.scaled::n2::ue8m0.bf16x2.{name}x2 %r0, %{source}1, %h2"
              for r in ("", ".satfinite", ".satfinite.relu")]  # fmt: skip
    got = evaluate_all(
        [*lines, *scaled], {f"{source}1": high << np.uint64(width) | low, "h2": scales}
    )
    for line, result in zip([*lines, *scaled], got, strict=True):
        parts: list[Codes] = []
        for codes, scale in ((high, scales >> np.uint64(8)), (low, scales & np.uint64(255))):
            x = value_of(name, codes)
            if "scaled" in line:
                x = x * np.where(scale == 255, np.nan, 2.0 ** (scale.astype(float) - 127))
            kind = "f16" if "f16x2" in line.replace("bf16", "") else "bf16"
            parts.append(nearest(kind, x, "rn", line))
        check(result, pack(parts[0], parts[1], "f16"), high)


def test_powers_of_two() -> None:
    """ue8m0 as NVIDIA's header cuda_fp8.hpp has it: magnitudes; 2^-127 is the least."""
    x = np.concatenate([2.0 ** np.arange(-149, 128), 1.5 * 2.0 ** np.arange(-148, 128)])
    x = np.concatenate([x, -x, [0, np.inf, -np.inf, np.nan, 3.4e38]])
    lines = [
        f"cvt.{m}{s}.ue8m0x2.f32 %h0, %r1, %r2" for m in ("rz", "rp") for s in ("", ".satfinite")
    ]
    got = evaluate_all(lines, {"r1": f32_bits(x), "r2": f32_bits(x[::-1].copy())})

    def model(value: float, line: str) -> int:
        if np.isnan(value):
            return 0xFF
        size = abs(value)
        code = 0
        while code < 255 and 2.0 ** (code + 1 - 127) <= size:
            code += 1  # the largest power of two that is not above
        if ".rp" in line and np.isfinite(size) and size > 2.0 ** (code - 127):
            code += 1
        return min(code, 0xFE) if "satfinite" in line else code

    for line, result in zip(lines, got, strict=True):
        one = np.array([model(float(np.float32(v)), line) for v in x], np.uint64)
        check(result, one << np.uint64(8) | one[::-1], x)
    codes = np.arange(256, dtype=np.uint64)
    halves = x.astype(ml_dtypes.bfloat16)
    (back,) = evaluate_all(
        ["cvt.rn.bf16x2.ue8m0x2 %r0, %h1"], {"h1": codes << np.uint64(8) | codes[::-1]}
    )
    wanted = np.array([0x40, *(c << 7 for c in range(1, 255)), 0x7FFF], np.uint64)
    check(back, wanted << np.uint64(16) | wanted[::-1], codes)
    bits = halves.view(np.uint16).astype(np.uint64)
    lines = [line.replace("f32 %h0, %r1, %r2", "bf16x2 %h0, %r1") for line in lines]
    got = evaluate_all(lines, {"r1": bits << np.uint64(16) | bits[::-1]})
    for line, result in zip(lines, got, strict=True):
        one = np.array([model(float(v), line) for v in halves], np.uint64)
        check(result, one << np.uint64(8) | one[::-1], halves)


def test_fixed_point() -> None:
    """s2f6: two's complement with six bits behind the point, within +-127/64."""
    grid = np.arange(-300, 300) / 128
    x = np.concatenate([grid, grid + 1e-5, [np.inf, -np.inf, np.nan, 1e30, -1e30, 2.0, -2.0]])
    x = x.astype(np.float32).astype(np.float64)
    scale = np.resize(np.array([0x7F7F, 0x7E80, 0x8290], np.uint64), len(x))

    def model(value: float, by: int, line: str) -> int:
        if "scaled" in line:
            value = value / 2.0 ** (by - 127)
        if np.isnan(value):
            return 127
        part = 127.0 if value > 2 else -127.0 if value < -2 else round(value * 64)
        part = max(-127, min(127, int(part)))
        return (max(part, 0) if "relu" in line else part) & 0xFF

    words = [f"cvt.rn.satfinite{r}{s}" for r in ("", ".relu") for s in ("", ".scaled::n2::ue8m0")]
    lines = [f"{w}.s2f6x2.f32 %h0, %r1, %r2" + ", %h2" * ("scaled" in w) for w in words]
    y = np.roll(x, 3)
    got = evaluate_all(lines, {"r1": f32_bits(x), "r2": f32_bits(y), "h2": scale})
    for line, result in zip(lines, got, strict=True):
        high, low = (
            np.array(
                [
                    model(float(v), int(s) >> shift & 255, line)
                    for v, s in zip(z, scale, strict=True)
                ]
            )
            for z, shift in ((x, 8), (y, 0))
        )
        check(result, (high << 8 | low).astype(np.uint64), x)
    codes = np.arange(1 << 16, dtype=np.uint64)
    (back,) = evaluate_all(["cvt.rn.bf16x2.s2f6x2 %r0, %h1"], {"h1": codes})
    numbers = codes.astype(np.uint16).view(np.uint8).view(np.int8).astype(np.float32) / 64
    halves = numbers.astype(ml_dtypes.bfloat16).view(np.uint32)
    check(back, halves.astype(np.uint64), codes)


def reverse(byte: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return np.array([int(f"{n:08b}"[::-1], 2) for n in range(256)])[byte.astype(int)]


def test_random_rounding_of_pairs() -> None:
    """Away from zero where random bits and the cut ones carry; f16 takes 13 bits, bf16 16."""
    for name, bits in (("f16", 13), ("bf16", 16)):
        x = singles(name)
        y = np.roll(x, 5)
        random = np.random.default_rng(3).integers(0, 1 << 32, len(x), dtype=np.uint64)
        words = ["rs", "rs.relu", "rs.satfinite", "rs.satfinite.relu"]
        got = evaluate_all(
            [f"cvt.{w}.{name}x2.f32 %r0, %r1, %r2, %r3" for w in words],
            {"r1": f32_bits(x), "r2": f32_bits(y), "r3": random},
        )
        mask = np.uint64((1 << bits) - 1)
        for w, result in zip(words, got, strict=True):
            high = nearest(name, x, "rs", w, random >> np.uint64(16) & mask, bits)
            low = nearest(name, y, "rs", w, random & mask, bits)
            check(result, pack(high, low, name), x)


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", NARROW)
def test_random_rounding_of_four(name: str, target: str) -> None:
    """8 random bits each; which byte of the operand depends on the machine."""
    x = singles(name)
    values = [np.roll(x, n) for n in range(4)]  # a, b, e, f
    random = np.random.default_rng(4).integers(0, 1 << 32, len(x), dtype=np.uint64)
    d = "h" if name == "e2m1" else "r"
    words = ["rs.satfinite", "rs.satfinite.relu"]
    got = evaluate_all(
        [f"cvt.{w}.{name}x4.f32 %{d}0, {{%r1, %r2, %r3, %r4}}, %r5" for w in words],
        {**{f"r{i + 1}": f32_bits(v) for i, v in enumerate(values)}, "r5": random},
        target,
    )
    share = [random >> np.uint64(8 * i) & np.uint64(255) for i in range(4)]
    # For the results f, e, b, a, from the lowest place up.
    order = (
        ((0, 2, 1, 3) if name == "e2m1" else (0, 1, 2, 3))
        if target == "sm_100a"
        else ((2, 0, 3, 1) if name == "e2m1" else (1, 0, 3, 2))
    )
    width = np.uint64(WIDTH.get(name, 8))
    for w, result in zip(words, got, strict=True):
        wanted = np.zeros(len(x), np.uint64)
        for place, byte in enumerate(order):
            r = reverse(share[byte]) if target == "sm_103a" and place % 2 else share[byte]
            code = nearest(name, values[3 - place], "rs", w, r.astype(np.float64), 8)
            wanted |= code << np.uint64(place) * width
        check(result, wanted, x)
