"""Arithmetic on arrays in Z/P and Z/Q, where P = 2 Q + 1 and both are prime.

P = 7 mod 8, so 2 has the order Q modulo P: `2 ** x` with x in Z/Q is an element of Z/P, and
2 ** (x + y) = 2 ** x * 2 ** y. P = 3 mod 4, so x ** ((P + 1) / 4) is a square root of every square,
and the roots of a product are the product of the roots.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

U64: TypeAlias = npt.NDArray[np.uint64]
Array: TypeAlias = npt.NDArray[Any]

Q = 1073740571
P = 2 * Q + 1

#: Exponents of two that floats of up to 64 bits, and products of two of them, are made of.
_LEAST, _MOST = -2300, 2300
_DIGIT = 10  # bits of an exponent that one table has


def as_element(value: float | int, modulus: int) -> int:
    """A finite number as an element: every float is m * 2^e."""
    numerator, denominator = float(value).as_integer_ratio()
    return numerator * pow(denominator, -1, modulus) % modulus


@cache
def _powers_of_two(modulus: int) -> U64:
    half = pow(2, -1, modulus)
    powers = [
        pow(2, e, modulus) if e >= 0 else pow(half, -e, modulus) for e in range(_LEAST, _MOST)
    ]
    return np.array(powers, np.uint64)


def elements(real: Array, modulus: int) -> U64:
    """Finite floats as elements; infinities and NaN are 0."""
    finite = np.where(np.isfinite(real), real, 0).astype(np.float64)
    fraction, exponent = np.frexp(finite)
    whole = np.ldexp(np.abs(fraction), 53).astype(np.uint64) % np.uint64(modulus)
    value = whole * _powers_of_two(modulus)[exponent - 53 - _LEAST] % np.uint64(modulus)
    return np.where(fraction < 0, negative(value, modulus), value)


def negative(x: U64, modulus: int) -> U64:
    return np.where(x == 0, x, np.uint64(modulus) - x)


def power(x: U64, exponent: int, modulus: int) -> U64:
    """`x ** exponent`, an exponent that is not negative."""
    m = np.uint64(modulus)
    result: U64 = np.ones_like(x)
    base = x % m
    while exponent:
        if exponent & 1:
            result = result * base % m
        exponent >>= 1
        if exponent:
            base = base * base % m
    return result


def inverse(x: U64, modulus: int) -> U64:
    """`1 / x`; of 0 it is 0."""
    return power(x, modulus - 2, modulus)


@cache
def _tables_of_two() -> list[U64]:
    """2 to the exponents of a digit each."""
    return [
        np.array([pow(2, d << shift, P) for d in range(1 << _DIGIT)], np.uint64)
        for shift in range(0, Q.bit_length(), _DIGIT)
    ]


def power_of_two(exponent: U64) -> U64:
    """`2 ** x` in Z/P for x in Z/Q."""
    low = np.uint64((1 << _DIGIT) - 1)
    result: U64 | None = None
    for number, table in enumerate(_tables_of_two()):
        digit = table[exponent >> np.uint64(number * _DIGIT) & low]
        result = digit if result is None else result * digit % np.uint64(P)
    assert result is not None
    return result


def root(x: U64) -> tuple[U64, npt.NDArray[np.bool_]]:
    """The principal square root in Z/P, and whether x is a square.

    Of what is none it is a root of -x: still a function of x, and of a product the product.
    """
    found = power(x, (P + 1) // 4, P)
    return found, found * found % np.uint64(P) == x


def hashed(name: str, x: U64) -> U64:
    """A function of which nothing is known but that it is one: the same of the same."""
    seed = np.uint64(sum(ord(c) << 8 * i for i, c in enumerate(name[:7])))
    y = (x + seed) * np.uint64(0x9E3779B97F4A7C15)
    y = (y ^ y >> np.uint64(29)) * np.uint64(0xBF58476D1CE4E5B9)
    return (y ^ y >> np.uint64(32)) % np.uint64(P)
