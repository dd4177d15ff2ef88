"""`--arg KIND:VALUE`: kernel arguments on the command line.

in:FILE.npy out:FILE.npy inout:FILE.npy     a buffer: an existing array, of which only the
                                            bytes count; `out` and `inout` are written back
s8..s64: u8..u64: b8..b64:HEX               an integer; b takes the bits in hexadecimal
f16: bf16: f32: f64:                        a floating-point number
bytes:HEX bytes:@FILE                       a struct by value
null                                        a null pointer
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from fragir.errors import FragirError
from fragir.toolchain.arguments import pack

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MODES = ("in", "out", "inout")
KINDS = (
    *MODES,
    *(f"{sign}{width}" for sign in "sub" for width in (8, 16, 32, 64)),
    *("f16", "bf16", "f32", "f64", "bytes"),
)


@dataclass(frozen=True, slots=True)
class Buffer:
    """An array in a file; `written` where the file is to take the kernel's result."""

    path: str
    written: bool


@dataclass(frozen=True, slots=True)
class Struct:
    """The bytes of a file, passed by value."""

    path: str


Argument: TypeAlias = Buffer | Struct | bytes | None
"""Scalars are bytes already, of the size that their kind says."""


def read_arguments(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[Argument, ...]:
    """A callback for `--arg`: what does not read is wrong usage."""
    try:
        return tuple(parse(value) for value in values)
    except FragirError as error:
        raise click.BadParameter(str(error)) from error


def parse(text: str) -> Argument:
    """An argument as written on the command line. Raises FragirError where it is wrong."""
    if text == "null":
        return None
    kind, colon, value = text.partition(":")
    if kind not in KINDS or not colon:
        kinds = " ".join(f"{kind}:" for kind in KINDS)
        raise FragirError(f"`{text}` is no argument", hint=f"one of null {kinds}")
    if not value:
        raise FragirError(f"`{text}` has nothing behind the colon")
    if kind in MODES:
        return Buffer(value, written=kind != "in")
    if kind == "bytes":
        return Struct(value[1:]) if value.startswith("@") else _hexadecimal(value)
    place = f"`{text}`"
    if kind.startswith(("f", "bf")):
        try:
            return pack(float(value), kind, place)
        except ValueError:
            raise FragirError(f"{place} is no number") from None
    try:
        number = int(value, 16 if kind.startswith("b") else 0)
    except ValueError:
        raise FragirError(f"{place} is no integer") from None
    low, high = _range(kind)
    if not low <= number <= high:
        raise FragirError(f"{place} is out of range: {kind} is {low} to {high}")
    return pack(number, kind, place)


def _range(kind: str) -> tuple[int, int]:
    width = int(kind[1:])
    if kind.startswith("s"):
        return -(1 << (width - 1)), (1 << (width - 1)) - 1
    return 0, (1 << width) - 1


def _hexadecimal(text: str) -> bytes:
    digits = text.removeprefix("0x").replace("_", "")
    if len(digits) % 2 or not re.fullmatch(r"[0-9a-fA-F]+", digits):
        raise FragirError(f"`{text}` is no hexadecimal bytes: two digits a byte")
    return bytes.fromhex(digits)


class Loaded:
    """The arguments with their files read; the same file twice is one buffer."""

    def __init__(self, arguments: Sequence[Argument]) -> None:
        self._arguments: list[tuple[str, bool] | bytes | None] = []
        self._arrays: dict[str, Array] = {}
        self._names: dict[str, str] = {}
        for argument in arguments:
            if isinstance(argument, Buffer):
                path = os.path.realpath(argument.path)
                if path not in self._arrays:
                    self._arrays[path] = read_array(argument.path)
                self._arguments.append((path, argument.written))
                if argument.written:
                    self._names[path] = argument.path
            elif isinstance(argument, Struct):
                from fragir.cli.files import read_bytes

                self._arguments.append(read_bytes(argument.path))
            else:
                self._arguments.append(argument)

    def values(self) -> list[Any]:
        """Fresh arguments for one run: copies of the arrays, bytes, None."""
        copies = {path: array.copy() for path, array in self._arrays.items()}
        return [copies[a[0]] if isinstance(a, tuple) else a for a in self._arguments]

    def results(self, values: Sequence[Any]) -> dict[str, bytes]:
        """File name to content of every file that takes a result, after a run with `values`."""
        contents: dict[str, bytes] = {}
        for argument, value in zip(self._arguments, values, strict=True):
            if isinstance(argument, tuple) and argument[0] in self._names:
                contents[self._names[argument[0]]] = array_bytes(value)
        return contents


def read_array(path: str) -> Array:
    """The array of a `.npy` file, C-contiguous. Raises FragirError where it is none."""
    import io

    import numpy as np

    from fragir.cli.files import read_bytes

    data = io.BytesIO(read_bytes(path))
    try:
        array: Array = np.lib.format.read_array(data, allow_pickle=False)
    except Exception as error:  # a damaged header raises errors of many types
        words = " ".join(str(error).split())
        raise FragirError(f"this is no .npy array: {words}", path) from error
    return np.ascontiguousarray(array) if array.ndim else array


def array_bytes(array: Array) -> bytes:
    """The content of a `.npy` file."""
    import io

    import numpy as np

    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()
