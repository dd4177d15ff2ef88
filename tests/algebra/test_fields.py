"""Arithmetic in the two fields, beside Python's integers."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fragir.algebra import fields
from fragir.algebra.fields import P, Q

ELEMENTS = st.lists(st.integers(0, P - 1), min_size=1, max_size=8)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def is_prime(n: int) -> bool:
    return n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1))


def test_the_moduli_are_what_the_page_says():
    assert is_prime(P)
    assert is_prime(Q)
    assert P == 2 * Q + 1
    assert P % 8 == 7
    assert pow(2, Q, P) == 1  # and Q is prime: 2 has the order Q


def u64(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


@given(ELEMENTS, st.integers(0, 2**40))
def test_power(values: list[int], exponent: int):
    found = fields.power(u64(values), exponent, P)
    assert found.tolist() == [pow(v, exponent, P) for v in values]


@given(ELEMENTS)
def test_inverse(values: list[int]):
    found = fields.inverse(u64(values), P)
    assert [a * b % P for a, b in zip(values, found.tolist(), strict=True)] == [
        int(v != 0) for v in values
    ]


@given(ELEMENTS)
def test_root(values: list[int]):
    found, square = fields.root(u64(values))
    for value, root, is_square in zip(values, found.tolist(), square.tolist(), strict=True):
        assert is_square == (value == 0 or pow(value, (P - 1) // 2, P) == 1)
        assert root * root % P == (value if is_square else P - value)


@given(st.lists(st.integers(0, Q - 1), min_size=1, max_size=8))
def test_power_of_two(exponents: list[int]):
    assert fields.power_of_two(u64(exponents)).tolist() == [pow(2, e, P) for e in exponents]


@given(FLOATS, st.sampled_from((P, Q)))
def test_floats_are_dyadic_fractions(value: float, modulus: int):
    assert int(fields.elements(np.array(value), modulus)) == fields.as_element(value, modulus)


def test_what_is_no_number_is_zero():
    found = fields.elements(np.array([np.inf, -np.inf, np.nan]), P)
    assert not found.any()
