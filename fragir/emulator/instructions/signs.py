"""Minimum, maximum, signs and properties of floating-point bits (PTX ISA 9.2, section 9.7.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fragir.emulator.instructions.alu import Function
from fragir.emulator.numbers.formats import FORMATS
from fragir.emulator.numbers.rounding import decode
from fragir.emulator.numbers.types import where

Array = Any


def extreme(
    form: str, largest: bool, nan: bool, xorsign: bool, magnitude: bool = False
) -> Function:
    """min and max: -0 < +0; a number wins over NaN unless `.NaN`.

    `xorsign`: of two magnitudes, with the product's sign; `magnitude` (`.abs` alone): of any.
    """
    shape = FORMATS[form]

    def function(*operands: Array) -> Array:
        if magnitude:
            operands = tuple(absolute(x) for x in operands)
        result, *rest = operands
        for other in rest:
            result = pair(result, other)
        return result

    def pair(a: Array, b: Array) -> Array:
        of = a.dtype.type
        sign = of(1 << (a.dtype.itemsize * 8 - 1))
        flip = (a ^ b) & sign if xorsign else None
        if xorsign:
            a, b = a & ~sign, b & ~sign
        x, y = decode(a, shape), decode(b, shape)
        take_a = x > y if largest else x < y
        result = where(take_a, a, b)
        result = where(x == y, a & b if largest else a | b, result)
        x_nan, y_nan = np.isnan(x), np.isnan(y)
        if nan:
            bad = x_nan | y_nan
        else:
            result = where(x_nan, b, where(y_nan, a, result))
            bad = x_nan & y_nan
        if flip is not None:
            result = result | flip
        assert shape.nan is not None
        return where(bad, of(shape.nan), result).astype(a.dtype)

    return function


def negate(a: Array) -> Array:
    return a ^ a.dtype.type(1 << (a.dtype.itemsize * 8 - 1))


def absolute(a: Array) -> Array:
    return a & a.dtype.type((1 << (a.dtype.itemsize * 8 - 1)) - 1)


def copy_sign(a: Array, b: Array) -> Array:
    sign = a.dtype.type(1 << (a.dtype.itemsize * 8 - 1))
    return (b & ~sign) | (a & sign)


#: What testp asks of a value, given its magnitude and the smallest normal number.
PROPERTIES: dict[str, Callable[[Array, Array, float], Array]] = {
    "finite": lambda value, magnitude, smallest: np.isfinite(value),
    "infinite": lambda value, magnitude, smallest: np.isinf(value),
    "number": lambda value, magnitude, smallest: ~np.isnan(value),
    "notanumber": lambda value, magnitude, smallest: np.isnan(value),
    "normal": lambda value, magnitude, smallest: np.isfinite(value) & (magnitude >= smallest),
    "subnormal": lambda value, magnitude, smallest: (magnitude < smallest) & (magnitude > 0),
}


def has_property(word: str, form: str) -> Function:
    """testp: a property of one value."""
    shape, asked = FORMATS[form], PROPERTIES[word]
    smallest = 2.0**shape.lowest

    def function(a: Array) -> Array:
        value = decode(a, shape)
        return asked(value, np.abs(value), smallest)

    return function
