"""`--arg KIND:VALUE`: kernel arguments on the command line.

in:FILE.npy out:FILE.npy inout:FILE.npy     a buffer: an existing array, of which only the
                                            bytes count (row-major and little-endian, whatever
                                            the file says); `out` and `inout` are written back
s8..s64: u8..u64: b8..b64:HEX               an integer; b takes the bits in hexadecimal
f16: bf16: f32: f64:                        a floating-point number
bytes:HEX bytes:@FILE                       a struct by value
null                                        a null pointer
tma:FILE.npy,box=64x64[,...]                a tensor map over an array (`Tensor`)
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

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


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor map: `fragir.emulator.TensorMap` over the array in a file.

    Dimensions go outermost first, as in numpy. `kind`: the type of the elements, where it is not
    the array's own; `written` as in `Buffer`.
    """

    path: str
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128] = 0
    strides: tuple[int, ...] | None = None
    element_strides: tuple[int, ...] | None = None
    fill: Literal["zero", "nan"] = "zero"
    kind: str | None = None
    atom: Literal[16, 32, 64] = 16
    written: bool = False


Argument: TypeAlias = Buffer | Struct | Tensor | bytes | None
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
    if kind == "tma" and value:
        return _tensor(text, value)
    if kind not in KINDS or not colon:
        kinds = " ".join(f"{kind}:" for kind in (*KINDS, "tma"))
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


#: `type=` of a tensor map -> numpy dtype; bf16 is found in ml_dtypes.
TYPES = {
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"s{n}": f"int{n}" for n in (32, 64)},
    **{f"f{n}": f"float{n}" for n in (16, 32, 64)},
    "bf16": "bfloat16",
    # those that numpy has no name for; TensorMap calls them so
    **dict.fromkeys(("tf32", "tf32.ftz", "f32.ftz"), "float32"),
    **dict.fromkeys(("b4x16", "b4x16_p64", "b6x16_p32"), "uint8"),
}


def _tensor(text: str, value: str) -> Tensor:
    """`FILE.npy,box=64x64[,swizzle=128][,strides=BYTES:...][,fill=nan][,type=bf16][,out]`."""
    path, *options = value.split(",")
    given: dict[str, Any] = {}
    for option in options:
        key, _, content = option.partition("=")
        try:
            name, read = _TENSOR[key]
            given[name] = read(content)
        except (KeyError, ValueError):
            raise FragirError(
                f"`{option}` is no option of a tensor map (in `{text}`)",
                hint="box=64x64 swizzle=none|32|64|128 atom=16|32|64 strides=BYTES:..."
                f" elementstrides=1:... fill=zero|nan type={'|'.join(TYPES)} out",
            ) from None
    if "box" not in given:
        raise FragirError(f"`{text}` has no box", hint="add box=ROWSxCOLUMNS, say box=64x64")
    return Tensor(path, **given)


def _chosen(*words: str) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words:
            raise ValueError(word)
        return word

    return read


def _numbers(separator: str) -> Callable[[str], tuple[int, ...]]:
    return lambda word: tuple(int(part) for part in word.split(separator))


_TENSOR: dict[str, tuple[str, Callable[[str], Any]]] = {
    "box": ("box", _numbers("x")),
    "swizzle": ("swizzle", lambda w: int(_chosen("0", "32", "64", "128")(w.replace("none", "0")))),
    "atom": ("atom", lambda w: int(_chosen("16", "32", "64")(w))),
    "strides": ("strides", _numbers(":")),
    "elementstrides": ("element_strides", _numbers(":")),
    "fill": ("fill", _chosen("zero", "nan")),
    "type": ("kind", _chosen(*TYPES)),
    "out": ("written", lambda word: not _chosen("")(word)),
}


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
        self._arguments: list[tuple[str, bool] | Tensor | bytes | None] = []
        self._arrays: dict[str, Array] = {}
        self._names: dict[str, str] = {}
        for argument in arguments:
            if isinstance(argument, Buffer | Tensor):
                path = os.path.realpath(argument.path)
                if path not in self._arrays:
                    self._arrays[path] = read_array(argument.path)
                if isinstance(argument, Tensor):
                    self._arguments.append(replace(argument, path=path))
                else:
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
        return [
            copies[a[0]]
            if isinstance(a, tuple)
            else tensor_map(a, copies[a.path])
            if isinstance(a, Tensor)
            else a
            for a in self._arguments
        ]

    def results(self, values: Sequence[Any]) -> dict[str, bytes]:
        """File name to content of every file that takes a result, after a run with `values`."""
        contents: dict[str, bytes] = {}
        for argument, value in zip(self._arguments, values, strict=True):
            if isinstance(argument, tuple) and argument[0] in self._names:
                contents[self._names[argument[0]]] = array_bytes(value)
            elif isinstance(argument, Tensor) and argument.path in self._names:
                array = value.array.view(self._arrays[argument.path].dtype)
                contents[self._names[argument.path]] = array_bytes(array)
        return contents


def tensor_map(argument: Tensor, array: Array) -> Any:
    """The `TensorMap` that an argument asks for. Raises FragirError where there is none."""
    from fragir.emulator import TensorMap
    from fragir.emulator.tensor_map import NUMBERS

    if argument.kind is not None:
        dtype: Any = TYPES[argument.kind]
        if dtype == "bfloat16":
            import ml_dtypes

            dtype = ml_dtypes.bfloat16
        try:
            array = array.view(dtype)
        except (TypeError, ValueError) as error:
            raise FragirError(f"its elements cannot be .{argument.kind}", argument.path) from error
    strides = argument.strides
    if strides is not None and len(strides) == array.ndim - 1:
        strides = (*strides, array.itemsize)
    for name, values in (("strides", strides), ("elementstrides", argument.element_strides)):
        if values is not None and (len(values) != array.ndim or min(values) < 1):
            raise FragirError(f"{name} needs {array.ndim} positive numbers", argument.path)
    try:
        return TensorMap(
            array,
            argument.box,
            argument.swizzle,
            strides,
            argument.element_strides,
            argument.fill,
            kind=argument.kind if argument.kind in NUMBERS else None,
            atom=argument.atom,
        )
    except FragirError as error:
        raise FragirError(error.message, argument.path, hint=error.hint) from error


def read_array(path: str) -> Array:
    """The array of a `.npy` file, C-contiguous, its numbers in this machine's byte order.

    Raises FragirError where it is none, or more than one.
    """
    import io

    import numpy as np

    from fragir.cli.files import read_bytes

    data = io.BytesIO(read_bytes(path))
    try:
        array: Array = np.lib.format.read_array(data, allow_pickle=False)
    except Exception as error:  # a damaged header raises errors of many types
        words = " ".join(str(error).split())
        raise FragirError(f"this is no .npy array: {words}", path) from error
    if rest := len(data.getvalue()) - data.tell():
        raise FragirError(f"{rest} bytes follow the array in this file", path)
    if array.dtype.itemsize == 0:
        raise FragirError("the elements of this array have no bytes", path)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return np.ascontiguousarray(array) if array.ndim else array


def array_bytes(array: Array) -> bytes:
    """The content of a `.npy` file."""
    import io

    import numpy as np

    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=False)
    return file.getvalue()
