"""Values of lanes as bytes, and whether each byte is known for certain.

What looks at bits instead of numbers (`prmt`, `lop3`, other types for the same registers) is exact
where its operands are, and unknown elsewhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fragir.reference.bounded import Bounded
from fragir.reference.formats import PER_BYTE, Array, decode, encode, storage


class Bytes(NamedTuple):
    """[threads, bytes] of a value, lowest first, and where they are certain."""

    value: Array
    known: Array


def bytes_of(x: Bounded, name: str) -> Bytes:
    """The bytes of a value of each thread; the bits of a NaN are not known."""
    value, bound = (a.reshape(len(a), -1) for a in (x.value, x.bound))
    sure = (bound == 0) & ~np.isnan(value.astype(np.float64))
    per = PER_BYTE.get(name)
    if per is not None:
        sure = sure.reshape(len(sure), -1, per).all(axis=-1)
    stored = np.ascontiguousarray(encode(value, name))
    raw = stored.view(np.uint8).reshape(len(value), -1)
    return Bytes(raw, np.repeat(sure, raw.shape[1] // sure.shape[1], axis=1))


def value_of(x: Bytes, name: str, shape: tuple[int, ...]) -> Bounded:
    """Bytes read as numbers of a type; unknown where any byte of one is."""
    raw = np.ascontiguousarray(x.value.astype(np.uint8))
    value = decode(raw.view(storage(name)), name).reshape(shape)
    each = np.asarray(x.known).reshape(len(raw), -1, storage(name).itemsize).all(axis=-1)
    if name in PER_BYTE:
        each = np.repeat(each, PER_BYTE[name], axis=1)
    return Bounded(value, np.where(each.reshape(shape), 0.0, np.inf))


def words_of(x: Bounded, name: str) -> tuple[Array, Array]:
    """The same as 32-bit numbers without a sign: [threads, registers], and which are certain."""
    raw, known = bytes_of(x, name)
    missing = -raw.shape[1] % 4
    raw = np.pad(raw, ((0, 0), (0, missing)))
    known = np.pad(known, ((0, 0), (0, missing)), constant_values=not missing)
    words = np.ascontiguousarray(raw).view(np.uint32).astype(np.int64)
    return words, np.asarray(known.reshape(len(raw), -1, 4).all(axis=-1))


def from_words(words: Array, known: Array, name: str, shape: tuple[int, ...]) -> Bounded:
    """32-bit numbers read as a type."""
    raw = np.ascontiguousarray(words.astype(np.uint32)).view(np.uint8)
    size = int(np.prod(shape[1:], dtype=np.int64)) * storage(name).itemsize // PER_BYTE.get(name, 1)
    sure = np.repeat(known, 4, axis=1)
    return value_of(Bytes(raw[:, :size], sure[:, :size]), name, shape)
