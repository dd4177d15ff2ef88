"""Kernel arguments as bytes: Python and numpy values by the types of PTX parameters."""

from __future__ import annotations

import math
import re
import struct
from typing import Any, SupportsFloat

from fragir.errors import FragirError

_FLOATS = {"f32": "<f", "f64": "<d"}
_TYPE = re.compile(r"\.?([usbf]|bf)(8|16|32|64)(?:\[(\d+)\])?")


def size_of(kind: str) -> int:
    """The bytes of a PTX parameter type: `u64`, `.f32`, or `b8[128]` for a struct by value."""
    match = _TYPE.fullmatch(kind)
    if match is None:
        raise FragirError(f"`{kind}` is no type of a PTX parameter")
    return int(match[2]) // 8 * int(match[3] or 1)


def pack(value: object, kind: str, place: str) -> bytes:
    """One scalar or struct as the little-endian bytes of a parameter.

    * `None` is a null pointer.
    * `bytes` are raw bits and must have the parameter's size.
    * `int` fits any type; negative and unsigned values of an integer type both may be given.
    * `float` fits the floating-point types; NaN and infinities too.
    * a numpy scalar is taken by value, for `b8` to `b64` by its bits where the size agrees.

    `place` is what errors call the argument. Raises FragirError where the value does not fit.
    """
    size = size_of(kind)
    kind = kind.removeprefix(".")
    raw = value if isinstance(value, bytes) else None
    if raw is None and kind.startswith("b") and not kind.startswith("bf"):
        raw = _bits(value, size)
    if raw is not None:
        if len(raw) != size:
            raise FragirError(f"{place} has {len(raw)} bytes, the parameter `{kind}` has {size}")
        return raw
    if "[" in kind:
        raise FragirError(f"{place} is {_name(value)}, the parameter `{kind}` needs bytes")
    if value is None:
        return bytes(size)
    if hasattr(value, "item") and hasattr(value, "dtype"):
        value = _item(value, place)
    if isinstance(value, bool):
        value = int(value)
    if kind.startswith(("f", "bf")):
        if not isinstance(value, int | float):
            raise FragirError(f"{place} is {_name(value)}, the parameter `{kind}` needs a number")
        try:
            number = float(value)
        except OverflowError:
            raise FragirError(f"{place} is a whole number larger than any {kind}") from None
        return _float(number, kind, place)
    if not isinstance(value, int):
        raise FragirError(f"{place} is {_name(value)}, the parameter `{kind}` needs an integer")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise FragirError(f"{place} is {value}, which does not fit the parameter `{kind}`")
    return (value % (1 << (8 * size))).to_bytes(size, "little")


def _name(value: object) -> str:
    return f"a {type(value).__name__}"


def _bits(value: object, size: int) -> bytes | None:
    """The bytes of a numpy scalar of that size; None for any other value."""
    scalar: Any = value
    if not hasattr(value, "tobytes") or getattr(value, "shape", None) != ():
        return None
    if not getattr(scalar.dtype, "isnative", True):  # a structure, or an array of one number
        scalar = scalar.astype(scalar.dtype.newbyteorder("="))
    data: bytes = scalar.tobytes()
    return data if len(data) == size else None


def _item(value: object, place: str) -> int | float:
    """A numpy or ml_dtypes scalar as a Python number."""
    if getattr(value, "shape", ()) != ():
        raise FragirError(f"{place} is an array, the parameter needs a scalar")
    item: object = value.item()  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType]
    if isinstance(item, int | float):
        return item
    if isinstance(value, SupportsFloat) and not isinstance(item, complex):
        return float(value)
    raise FragirError(f"{place} is {_name(value)}, the parameter needs a number")


def _float(value: float, kind: str, place: str) -> bytes:
    if kind == "f16":
        return _half(value, place)
    if kind == "bf16":
        return _bfloat(value, place)
    if kind not in _FLOATS:
        raise FragirError(f"{place}: no floating-point number has the type `{kind}`")
    try:
        return struct.pack(_FLOATS[kind], value)
    except OverflowError:
        raise FragirError(f"{place} is {value}, which does not fit `{kind}`") from None


def _half(value: float, place: str) -> bytes:
    try:
        return struct.pack("<e", value)
    except OverflowError:
        raise FragirError(f"{place} is {value}, which does not fit `f16`") from None


def _bfloat(value: float, place: str) -> bytes:
    """The upper half of the f32, rounded to nearest, ties to even."""
    if math.isnan(value):
        return b"\xc0\x7f"
    (bits,) = struct.unpack("<I", _float(value, "f32", place))
    if not math.isinf(value):
        bits += 0x7FFF + (bits >> 16 & 1)
    if bits >> 16 & 0x7FFF == 0x7F80 and not math.isinf(value):
        raise FragirError(f"{place} is {value}, which does not fit `bf16`")
    return struct.pack("<H", bits >> 16)
