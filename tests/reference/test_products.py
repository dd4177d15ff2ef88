"""The reference's small formats, sparse products, clamped sums and signs, against plain numpy."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects import func

from fragir import compiler
from fragir.errors import FragirError
from fragir.reference import Bounded, evaluate
from fragir.reference.bounded import exactly
from fragir.reference.contraction import product
from fragir.reference.formats import FLOATS, decode, encode
from fragir.reference.inputs import generate, slots
from fragir.reference.products import kept_columns
from fragir.reference.tensor_cores import chains

SMALL: dict[str, tuple[Any, int]] = {
    "e3m2": (ml_dtypes.float6_e3m2fn, 6),
    "e2m3": (ml_dtypes.float6_e2m3fn, 6),
    "e2m1": (ml_dtypes.float4_e2m1fn, 4),
}
PACKED = {"s4": (2, -8, 8), "u4": (2, 0, 16), "b1": (8, 0, 2)}


@pytest.mark.parametrize("name", SMALL)
def test_every_code(name: str) -> None:
    dtype, bits = SMALL[name]
    codes = np.arange(1 << bits, dtype=np.uint8)
    values = decode(codes, name)
    np.testing.assert_array_equal(values, codes.view(dtype).astype(np.float64))
    np.testing.assert_array_equal(encode(values, name), codes)
    # what is above the element in its byte does not count
    np.testing.assert_array_equal(decode(codes | np.uint8(0xFF << bits & 0xFF), name), values)


@pytest.mark.parametrize("name", SMALL)
@given(value=st.floats(-40, 40))
def test_rounding(name: str, value: float) -> None:
    wanted = np.array([value]).astype(SMALL[name][0])
    np.testing.assert_array_equal(encode(np.array([value]), name), wanted.view(np.uint8))


def test_powers_of_two() -> None:
    codes = np.arange(256, dtype=np.uint8)
    values = decode(codes, "ue8m0")
    np.testing.assert_array_equal(values, codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64))
    np.testing.assert_array_equal(encode(values, "ue8m0"), codes)
    np.testing.assert_array_equal(encode(np.array([0.0, 2.0**-140]), "ue8m0"), [0, 0])


@pytest.mark.parametrize("name", PACKED)
def test_packed_integers(name: str) -> None:
    per, low, high = PACKED[name]
    values = np.random.default_rng(0).integers(low, high, (3, 5 * per))
    array = encode(values, name)
    assert array.shape == (3, 5)
    assert array.dtype == np.uint8
    np.testing.assert_array_equal(decode(array, name), values)
    # the first element is the lowest; along the dimension that is contiguous
    first = array[0, 0] & ((1 << 8 // per) - 1)
    assert first == values[0, 0] % (1 << 8 // per)
    np.testing.assert_array_equal(decode(array.T, name), values.T)


def test_packed_floats() -> None:
    values = np.array([[0.5, -6.0, 0.0, 1.5]])
    np.testing.assert_array_equal(encode(values, "e2m1x2"), [[0xF1, 0x30]])
    np.testing.assert_array_equal(decode(encode(values, "e2m1x2"), "e2m1x2"), values)
    assert FLOATS["e2m1x2"].largest == 6


def test_what_metadata_keep() -> None:
    metadata = exactly(np.array([[0b0100, 0b1110], [0b1001, 0b1100]]))
    np.testing.assert_array_equal(kept_columns(metadata, 4, True), [[0, 1, 6, 7], [1, 2, 4, 7]])
    pairs = kept_columns(metadata, 8, True)
    np.testing.assert_array_equal(pairs[0], [0, 1, 2, 3, 12, 13, 14, 15])
    np.testing.assert_array_equal(pairs[1], [2, 3, 4, 5, 8, 9, 14, 15])
    halves = exactly(np.array([[0b0100, 0b1110, 0b0100]]))
    np.testing.assert_array_equal(kept_columns(halves, 2, True), [[0, 3, 4]])
    falling = exactly(np.array([[0b0001]]))
    np.testing.assert_array_equal(kept_columns(falling, 4, False), [[1, 0]])


@pytest.mark.parametrize(
    ("nibble", "chunk", "ordered"),
    [
        (0b0001, 4, True),
        (0b0101, 4, True),
        (0b0101, 4, False),
        (0b1111, 8, True),
        (0b1001, 2, True),
    ],
)
def test_undefined_metadata(nibble: int, chunk: int, ordered: bool) -> None:
    metadata = exactly(np.array([[0b0100, 0b0100], [0b0100, nibble]]))
    with pytest.raises(FragirError, match=f"row 1, chunk 1, are {nibble:#06b}, which names no two"):
        kept_columns(metadata, chunk, ordered)


def test_metadata_that_depend_on_rounding() -> None:
    with pytest.raises(FragirError, match="depend on rounding"):
        kept_columns(Bounded(np.array([[4]]), np.array([[1.0]])), 4, True)


def function(text: str) -> func.FuncOp:
    return next(op for op in compiler.parse(text).ops if isinstance(op, func.FuncOp))


@pytest.mark.parametrize(("sign", "end"), [(1, 2**31 - 1), (-1, -(2**31))])
def test_every_instruction_clamps(sign: int, end: int) -> None:
    """C is clamped after the first half of K, so that the second half counts from there."""
    f = function("""
func.func @f(%a: memref<16x64xi8>, %b: memref<64x8xi8>, %c: memref<16x8xi32>) {
  %ta = frag.load %a[0, 0] : memref<16x64xi8> -> !frag.tile<16x64xi8>
  %tb = frag.load %b[0, 0] : memref<64x8xi8> -> !frag.tile<64x8xi8>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %r = frag.mma %ta, %tb, %tc satfinite
    : !frag.tile<16x64xi8>, !frag.tile<64x8xi8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %r, %c[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}""")
    a = np.full((16, 64), sign, np.int8)
    a[:, 32:] = -sign
    b, c = np.full((64, 8), 100, np.int8), np.full((16, 8), end - 5 * sign, np.int32)
    (*_, result) = evaluate(f, [a, b, c])
    assert result is not None
    assert result.exact
    assert (result.value == end - 3200 * sign).all()


@pytest.mark.parametrize("word", ["xor", "and"])
def test_bits(word: str) -> None:
    """As many as differ, or as are set in both (PTX ISA 9.7.14.5: .xor.popc, .and.popc)."""
    f = function(f"""
func.func @f(%a: memref<16x128xui1>, %b: memref<128x8xui1>, %c: memref<16x8xi32>) {{
  %ta = frag.load %a[0, 0] : memref<16x128xui1> -> !frag.tile<16x128xui1>
  %tb = frag.load %b[0, 0] : memref<128x8xui1> -> !frag.tile<128x8xui1>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %r = frag.mma %ta, %tb, %tc bitop "{word}"
    : !frag.tile<16x128xui1>, !frag.tile<128x8xui1>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %r, %c[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}}""")
    generator = np.random.default_rng(3)
    a, b = (generator.integers(0, 2, shape, np.uint8) for shape in ((16, 128), (8, 128)))
    c = generator.integers(-9, 9, (16, 8)).astype(np.int32)
    # rows of A and columns of B lie along K, eight elements to a byte
    packed = [np.packbits(x, axis=-1, bitorder="little") for x in (a, b)]
    (*_, result) = evaluate(f, [packed[0], packed[1].T, c])
    together = np.bitwise_xor if word == "xor" else np.bitwise_and
    wanted = together(a[:, None, :], b[None, :, :]).sum(-1, dtype=np.int64) + c
    assert result is not None
    assert result.exact
    assert (result.value == wanted).all()


def test_clamped_sums_carry_the_bounds_of_every_part() -> None:
    """exp(ln 2) may be a hair below 2, and is cut off to 1 then: in the second half of K."""
    f = function("""
func.func @f(%x: memref<16x64xf32>, %b: memref<64x8xi8>, %c: memref<16x8xi32>) {
  %tx = frag.load %x[0, 0] : memref<16x64xf32> -> !frag.tile<16x64xf32>
  %ta = frag.map %tx : !frag.tile<16x64xf32> -> !frag.tile<16x64xi8> {
  ^bb0(%e: f32):
    %0 = math.exp %e : f32
    %1 = arith.fptosi %0 : f32 to i8
    frag.yield %1 : i8
  }
  %tb = frag.load %b[0, 0] : memref<64x8xi8> -> !frag.tile<64x8xi8>
  %tc = frag.load %c[0, 0] : memref<16x8xi32> -> !frag.tile<16x8xi32>
  %r = frag.mma %ta, %tb, %tc satfinite
    : !frag.tile<16x64xi8>, !frag.tile<64x8xi8>, !frag.tile<16x8xi32> -> !frag.tile<16x8xi32>
  frag.store %r, %c[0, 0] : !frag.tile<16x8xi32>, memref<16x8xi32>
  func.return
}""")
    x = np.zeros((16, 64), np.float32)
    x[:, 63] = np.log(2)
    b, c = np.full((64, 8), 100, np.int8), np.zeros((16, 8), np.int32)
    (*_, result) = evaluate(f, [x, b, c])
    assert result is not None
    for last in (1, 2):
        assert (np.abs(result.value - 100 * (63 + last)) <= result.bound).all()


def test_a_subnormal_b_is_aligned_as_a_normal_number() -> None:
    """sm_80 cuts off 24 bits below 2^-14, the exponent of a subnormal f16: 2^-40 is lost."""
    f = function("""
func.func @f(%a: memref<16x16xf16>, %b: memref<16x8xf16>, %c: memref<16x8xf32>) {
  %ta = frag.load %a[0, 0] : memref<16x16xf16> -> !frag.tile<16x16xf16>
  %tb = frag.load %b[0, 0] : memref<16x8xf16> -> !frag.tile<16x8xf16>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %r = frag.mma %ta, %tb, %tc
    : !frag.tile<16x16xf16>, !frag.tile<16x8xf16>, !frag.tile<16x8xf32> -> !frag.tile<16x8xf32>
  frag.store %r, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}""")
    a, b = np.zeros((16, 16), np.float16), np.full((16, 8), 2.0**-24, np.float16)
    a[:, 0] = 1
    (*_, result) = evaluate(f, [a, b, np.full((16, 8), 2.0**-40, np.float32)], target="sm_80")
    assert result is not None
    assert (np.abs(result.value - 2.0**-24) <= result.bound).all()


def test_a_product_that_is_added_to_ones() -> None:
    ones, twos = np.ones((2, 2)), np.full((2, 2), 2.0)
    result = product(exactly(twos), exactly(twos), exactly(ones), ("f16", "f16", "f32"), "sm_80")
    assert result.value.tolist() == [[9.0, 9.0], [9.0, 9.0]]


def test_floats_become_integers_without_a_sign() -> None:
    f = function("""
func.func @f(%x: memref<8x8xf32>, %y: memref<8x8xi8>) {
  %tx = frag.load %x[0, 0] : memref<8x8xf32> -> !frag.tile<8x8xf32>
  %ty = frag.map %tx : !frag.tile<8x8xf32> -> !frag.tile<8x8xi8> {
  ^bb0(%e: f32):
    %0 = arith.fptoui %e : f32 to i8
    frag.yield %0 : i8
  }
  frag.store %ty, %y[0, 0] : !frag.tile<8x8xi8>, memref<8x8xi8>
  func.return
}""")
    (*_, result) = evaluate(f, [np.full((8, 8), 200.7, np.float32), np.zeros((8, 8), np.int8)])
    assert result is not None
    assert (result.value.astype(np.int64) & 255 == 200).all()


def test_inputs_of_a_sparse_product() -> None:
    """Metadata are legal, scales powers of two, whatever else is asked for."""
    f = function("""
func.func @f(%a: memref<16x32xf8E4M3FN>, %b: memref<64x8xf8E4M3FN>, %c: memref<16x8xf32>,
    %e: memref<16x16xui4>, %x: memref<16x1xf8E8M0FNU>, %y: memref<1x8xf8E8M0FNU>) {
  %ta = frag.load %a[0, 0] : memref<16x32xf8E4M3FN> -> !frag.tile<16x32xf8E4M3FN>
  %tb = frag.load %b[0, 0] : memref<64x8xf8E4M3FN> -> !frag.tile<64x8xf8E4M3FN>
  %tc = frag.load %c[0, 0] : memref<16x8xf32> -> !frag.tile<16x8xf32>
  %te = frag.load %e[0, 0] : memref<16x16xui4> -> !frag.tile<16x16xui4>
  %tx = frag.load %x[0, 0] : memref<16x1xf8E8M0FNU> -> !frag.tile<16x1xf8E8M0FNU>
  %ty = frag.load %y[0, 0] : memref<1x8xf8E8M0FNU> -> !frag.tile<1x8xf8E8M0FNU>
  %r = frag.mma_sparse %ta, %tb, %tc, %te scaled %tx, %ty
    : !frag.tile<16x32xf8E4M3FN>, !frag.tile<64x8xf8E4M3FN>, !frag.tile<16x8xf32>,
      !frag.tile<16x16xui4>, !frag.tile<16x1xf8E8M0FNU>, !frag.tile<1x8xf8E8M0FNU>
      -> !frag.tile<16x8xf32>
  frag.store %r, %c[0, 0] : !frag.tile<16x8xf32>, memref<16x8xf32>
  func.return
}""")
    arguments = slots(f)
    assert [slot.names[0] for slot in arguments] == ["m", "k", "m", "m", "m", "y_d0"]
    sizes = {
        name: size or 0
        for slot in arguments
        for name, size in zip(slot.names, slot.shape or (), strict=True)
    }
    for kind in ("normal", "onehot", "integers", "zeros"):
        arrays = generate(f, arguments, sizes, {}, kind, 0)
        kept_columns(exactly(decode(arrays[3], "u4")), 4, True)
        assert (decode(arrays[4], "ue8m0") >= 0.25).all()
        (_, _, result, *_) = evaluate(f, arrays, target="sm_120a")
        assert result is not None
        assert np.isfinite(result.value).all()


def test_directed_rounding_is_a_whole_unit() -> None:
    ((nearest,), (down,)) = (
        chains("sm_90", "f64", "f64", "m8n8k4.f64", rounding=mode) for mode in ("rn", "rm")
    )
    assert down.rounding.relative == 2 * nearest.rounding.relative
