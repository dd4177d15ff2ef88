"""Sums of products in a field, and elements by their rows, by the compiled library."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fragir.emulator.native.library import library
from fragir.emulator.native.straight import address_of

_POINTER, _INT, _LONG = ctypes.c_void_p, ctypes.c_int32, ctypes.c_int64
#: What functions take; those that give something give a number.
_TAKES: dict[str, tuple[Any, ...]] = {
    "fragir_field_products": (*[_POINTER] * 4, *[_LONG] * 4, _INT, ctypes.c_uint32),
    "fragir_element_rows": (_POINTER, *[_INT] * 4, _POINTER, _LONG, *[_POINTER] * 2),
    "fragir_element_values": (*[_POINTER] * 3, _LONG, _POINTER, _LONG, *[_POINTER] * 4),
    "fragir_element_mark": (_POINTER, _LONG, _POINTER),
    "fragir_element_move": (_POINTER, _LONG, _POINTER),
}
_GIVES = frozenset(("fragir_element_rows", "fragir_element_values"))


def _function(name: str) -> Any:
    """A function of the library; None where that is not in use."""
    found = library()
    function: Any = None if found is None else getattr(found, name, None)
    if function is not None and function.argtypes is None:
        function.argtypes = _TAKES[name]
        function.restype = _LONG if name in _GIVES else None
    return function


def field_products(
    a: npt.NDArray[np.uint64],
    b: npt.NDArray[np.uint64],
    c: npt.NDArray[np.uint64],
    modulus: int,
) -> npt.NDArray[np.uint64] | None:
    """`c + a b`: `[k, m, W]`, `[k, n, W]`, `[m, n, W]`; None where the library is not in use."""
    function = _function("fragir_field_products")
    if function is None:
        return None
    bits = modulus.bit_length()
    given = [np.ascontiguousarray(x, np.uint32) for x in (a, b, c)]
    result = np.empty(c.shape, np.uint32)
    arrays = [address_of(x) for x in (*given, result)]
    function(*arrays, len(a), a.shape[1], b.shape[1], a.shape[2], bits, (1 << bits) - modulus)
    return result.astype(np.uint64)


def element_rows(
    words: Sequence[npt.NDArray[Any]], size: int, part: int, form: int, flags: npt.NDArray[np.uint8]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_] | None] | None:
    """Which rows words of every plane name, and where they name none though there are numbers.

    None where the library is not in use.
    """
    function = _function("fragir_element_rows")
    if function is None:
        return None
    given = [np.ascontiguousarray(word) for word in words]
    planes = (ctypes.c_void_p * len(given))(*map(address_of, given))
    shape, item = given[0].shape, given[0].dtype.itemsize
    rows, broken = np.empty(shape, np.int64), np.empty(shape, np.bool_)
    bad = function(
        planes,
        item,
        size,
        part,
        form,
        address_of(flags),
        rows.size,
        *map(address_of, (rows, broken)),
    )
    return rows, broken if bad else None


def element_values(
    table: tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint8]],
    rows: npt.NDArray[np.int64],
) -> tuple[Any, Any, Any, Any, bool] | None:
    """(p, q, doubt, data, whether some are of row 0) of rows; None as above."""
    function = _function("fragir_element_values")
    if function is None:
        return None
    table_p, table_q, flags = table
    rounds = table_p.shape[1]
    rows = np.ascontiguousarray(rows)
    shape = (*rows.shape, rounds)
    p, q, doubt = np.empty(shape, np.uint64), np.empty(shape, np.uint64), np.empty(shape, np.bool_)
    data = np.empty(rows.shape, np.bool_)
    tables = [address_of(x) for x in (table_p, table_q, flags)]
    results = [address_of(x) for x in (p, q, doubt, data)]
    none = function(*tables, rounds, address_of(rows), rows.size, *results)
    return p, q, doubt, data, none > 0


def mark_rows(pieces: Sequence[npt.NDArray[np.uint8]], alive: npt.NDArray[np.bool_]) -> bool:
    """Marks the rows that bytes of the planes name; False where the library is not in use."""
    return _over_bytes("fragir_element_mark", pieces, alive)


def move_rows(pieces: Sequence[npt.NDArray[np.uint8]], places: npt.NDArray[np.int64]) -> bool:
    """Renames rows to the places where they are now."""
    return _over_bytes("fragir_element_move", pieces, places)


def _over_bytes(
    name: str, pieces: Sequence[npt.NDArray[np.uint8]], array: npt.NDArray[Any]
) -> bool:
    function = _function(name)
    if function is None:
        return False
    planes = (ctypes.c_void_p * len(pieces))(*map(address_of, pieces))
    function(planes, pieces[0].size, address_of(array))
    return True
