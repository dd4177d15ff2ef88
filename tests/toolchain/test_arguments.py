"""Kernel arguments as bytes."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fragir.errors import FragirError
from fragir.toolchain.arguments import pack, size_of


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (1, "u64", "0100000000000000"),
        (-1, "s32", "ffffffff"),
        (-1, ".u32", "ffffffff"),
        (2**32 - 1, "s32", "ffffffff"),
        (True, "u8", "01"),
        (1.0, "f16", "003c"),
        (1.0, "bf16", "803f"),
        (1.0, "f32", "0000803f"),
        (1.0, "f64", "000000000000f03f"),
        (2, "f32", "00000040"),
        (float("nan"), "bf16", "c07f"),
        (float("-inf"), "bf16", "80ff"),
        (float("-inf"), "f16", "00fc"),
        (None, "u64", "0000000000000000"),
        (b"\x01\x02\x03\x04", "u32", "01020304"),
        (b"\x01\x02\x03", "b8[3]", "010203"),
        (np.float32(1), "b32", "0000803f"),
        (np.float32(1), "f64", "000000000000f03f"),
        (np.int8(-1), "s64", "ffffffffffffffff"),
        (np.uint64(2**63), "u64", "0000000000000080"),
        (np.float16(1), "b16", "003c"),
        (np.array(1, ">f4"), "b32", "0000803f"),
        (np.array(1, ">i4"), "s32", "01000000"),
        (np.array((1, 2), dtype=[("a", ">u2"), ("b", "<u2")])[()], "b32", "01000200"),
        (ml_dtypes.bfloat16(1), "bf16", "803f"),
        (ml_dtypes.bfloat16(1), "b16", "803f"),
        (ml_dtypes.bfloat16(1), "f32", "0000803f"),
    ],
)
def test_pack(value: Any, kind: str, expected: str) -> None:
    assert pack(value, kind, "argument 0").hex() == expected
    assert size_of(kind) == len(expected) // 2


@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (2**32, "u32", "does not fit"),
        (-(2**31) - 1, "s32", "does not fit"),
        (1.5, "u32", "needs an integer"),
        ("1", "u32", "needs an integer"),
        ("1", "f32", "needs a number"),
        (1e40, "f32", "does not fit"),
        (70000.0, "f16", "does not fit"),
        (3.4e38 * 2, "bf16", "does not fit"),
        (b"\0", "u32", "has 1 bytes"),
        (1, "b8[16]", "needs bytes"),
        (np.complex64(1), "f32", "needs a number"),
        (1, "i32", "no type"),
        (1, "u32[", "no type"),
        (1.0, "f8", "no floating-point number"),
    ],
)
def test_refused(value: Any, kind: str, words: str) -> None:
    with pytest.raises(FragirError, match=words):
        pack(value, kind, "argument 0")


@given(st.floats(width=32, allow_nan=False))
def test_bf16_rounds_as_ml_dtypes(value: float) -> None:
    with np.errstate(over="ignore"):
        rounded = np.float32(value).astype(ml_dtypes.bfloat16)
    if np.isinf(rounded) and not np.isinf(value):
        with pytest.raises(FragirError, match="does not fit"):
            pack(value, "bf16", "argument 0")
    else:
        assert pack(value, "bf16", "argument 0") == rounded.tobytes()


@given(st.integers(-(2**63), 2**64 - 1))
def test_integers_wrap(value: int) -> None:
    assert pack(value, "u64", "argument 0") == struct.pack("<Q", value % 2**64)
