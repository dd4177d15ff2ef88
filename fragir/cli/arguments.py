"""`--arg KIND:VALUE`: kernel arguments on the command line.

in:FILE.npy out:FILE.npy inout:FILE.npy     a buffer: an existing array, of which only the
                                            bytes count (row-major and little-endian, whatever
                                            the file says); `out` and `inout` are written back
s8..s64: u8..u64: b8..b64:HEX               an integer; b takes the bits in hexadecimal
f16: bf16: f32: f64:                        a floating-point number
bytes:HEX bytes:@FILE                       a struct by value
null                                        a null pointer
tma:FILE.npy,box=64x64[,...]                a tensor map over an array (`Tensor`)
ptr:FILE.npy                                as inout:, but the file is left alone where the kernel
                                            has not changed the array
pointers:A.npy,B.npy                        an array of pointers in global memory; null, and the
                                            first three kinds before a name, also stand there
struct:OFFSET=ARG,OFFSET=ARG...             a struct by value, its fields by their offsets
tma-pointer:FILE.npy,box=64x64[,...]        a pointer to a tensor map in global memory
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

import click

from fragir.cli.argument_kinds import COMPOUND, KINDS, MODES
from fragir.errors import FragirError, pass_on

if TYPE_CHECKING:
    from fragir.emulator import TensorMap
    from fragir.emulator.numbers.types import Array


@dataclass(frozen=True, slots=True)
class ArrayArgument:
    """An array in a file; `written` where the file is to take the kernel's result.

    `if_changed`: only where there is another result than what was there.
    """

    path: str
    written: bool
    if_changed: bool = False


@dataclass(frozen=True, slots=True)
class StructArgument:
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


@dataclass(frozen=True, slots=True)
class Fields:
    """A struct by value: (offset, argument) of its fields."""

    fields: tuple[tuple[int, CommandArgument], ...]


@dataclass(frozen=True, slots=True)
class Behind:
    """A pointer to a tensor map or a struct in global memory."""

    to: Tensor | Fields


CommandArgument: TypeAlias = (
    ArrayArgument | StructArgument | Tensor | Fields | Behind | bytes | None
)
"""Scalars are bytes already, of the size that their kind says."""


def files_of(argument: CommandArgument) -> Iterator[ArrayArgument | Tensor]:
    """The arrays in files that an argument points to."""
    match argument:
        case ArrayArgument() | Tensor():
            yield argument
        case Fields():
            for _, field in argument.fields:
                yield from files_of(field)
        case Behind():
            yield from files_of(argument.to)
        case _:
            pass


def read_arguments(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[CommandArgument, ...]:
    """A callback for `--arg`: what does not read is wrong usage."""
    try:
        return tuple(parse(value) for value in values)
    except FragirError as error:
        raise click.BadParameter(str(error)) from error


def parse(text: str) -> CommandArgument:
    """An argument as written on the command line. Raises FragirError where it is wrong."""
    if text == "null":
        return None
    kind, colon, value = text.partition(":")
    if kind in _COMPOUND and value:
        return _COMPOUND[kind](text, value)
    if kind not in KINDS or not colon:
        kinds = " ".join(f"{kind}:" for kind in (*KINDS, *COMPOUND))
        raise FragirError(f"`{text}` is no argument", hint=f"one of null {kinds}")
    if not value:
        raise FragirError(f"`{text}` has nothing behind the colon")
    if kind in MODES:
        return ArrayArgument(value, written=kind != "in")
    if kind == "bytes":
        return StructArgument(value[1:]) if value.startswith("@") else _hexadecimal(value)
    from fragir.toolchain.arguments import pack  # imports numpy

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


def _pointers(text: str, value: str) -> Behind:
    """`A.npy,B.npy`, in the order of the pointers."""
    arrays: list[tuple[int, CommandArgument]] = []
    for index, item in enumerate(value.split(",")):
        kind, colon, _ = item.partition(":")
        if not item:
            raise FragirError(f"`{text}` has an empty name", hint="null is a null pointer")
        plain = item == "null" or (colon and kind in (*MODES, "ptr"))
        arrays.append((_POINTER * index, parse(item if plain else f"ptr:{item}")))
    return Behind(Fields(tuple(arrays)))


_FIELD = re.compile(r"(0x[0-9a-fA-F]+|\d+)=(.*)", re.DOTALL)


def _fields(text: str, value: str) -> Fields:
    """`OFFSET=ARG,OFFSET=ARG`; a comma before anything else than an offset is the field's own."""
    fields: list[tuple[int, CommandArgument]] = []
    for item in re.split(r",(?=(?:0x[0-9a-fA-F]+|\d+)=)", value):
        match = _FIELD.fullmatch(item)
        if match is None or not match[2]:
            raise FragirError(
                f"`{item}` is no field (in `{text}`)", hint="OFFSET=ARG, say 8=ptr:a.npy"
            )
        field = parse(match[2])
        if isinstance(field, Fields):
            raise FragirError(
                f"`{match[2]}` is a struct in a struct", hint="name its fields by their own offsets"
            )
        offset = int(match[1], 0)
        if any(offset == other for other, _ in fields):
            raise FragirError(f"`{text}` has two fields at {offset}")
        fields.append((offset, field))
    return Fields(tuple(fields))


_POINTER = 8  # bytes
_COMPOUND: dict[str, Callable[[str, str], CommandArgument]] = {
    "tma": lambda text, value: _tensor(text, value),
    "tma-pointer": lambda text, value: Behind(_tensor(text, value)),
    "ptr": lambda text, value: ArrayArgument(value, written=True, if_changed=True),
    "pointers": _pointers,
    "struct": _fields,
}

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


def _choice(*words: str) -> Callable[[str], str]:
    def read(word: str) -> str:
        if word not in words:
            raise ValueError(word)
        return word

    return read


def _numbers(separator: str) -> Callable[[str], tuple[int, ...]]:
    return lambda word: tuple(int(part) for part in word.split(separator))


_TENSOR: dict[str, tuple[str, Callable[[str], object]]] = {
    "box": ("box", _numbers("x")),
    "swizzle": ("swizzle", lambda w: int(_choice("0", "32", "64", "128")(w.replace("none", "0")))),
    "atom": ("atom", lambda w: int(_choice("16", "32", "64")(w))),
    "strides": ("strides", _numbers(":")),
    "elementstrides": ("element_strides", _numbers(":")),
    "fill": ("fill", _choice("zero", "nan")),
    "type": ("kind", _choice(*TYPES)),
    "out": ("written", lambda word: not _choice("")(word)),
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


def tensor_map(argument: Tensor, array: Array) -> TensorMap:
    """The `TensorMap` that an argument asks for. Raises FragirError where there is none."""
    from fragir.emulator import TensorMap
    from fragir.emulator.machine.tensor_map import NUMBERS

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
        pass_on(error)
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


# -- argument files --------------------------------------------------------------------------------
# The arguments and variables of a launch with their files read.


class LoadedArguments(list[Any]):
    """The arguments of one run; `arrays` by the files that they came from, `variables` by name."""

    def __init__(
        self, values: Iterable[Any], arrays: dict[str, Array], variables: dict[str, Array]
    ) -> None:
        super().__init__(values)
        self.arrays, self.variables = arrays, variables


class Loaded:
    """The arguments with their files read; the same file twice is one buffer."""

    def __init__(
        self,
        arguments: Sequence[CommandArgument],
        variables: Mapping[str, ArrayArgument] | None = None,
    ) -> None:
        self._arguments = arguments
        self._arrays: dict[str, Array] = {}
        self._keys: dict[str, str] = {}
        self._files: dict[tuple[int, int], str] = {}
        self._names: dict[str, str] = {}  # real path of what is written -> as it was called
        self._if_changed: set[str] = set()
        self._structs: dict[str, bytes] = {}
        for argument in arguments:
            for file in files_of(argument):
                self._read(file)
            self._read_structs(argument)
        self._variables = dict(variables or {})
        self._variable_arrays = {n: read_array(b.path) for n, b in self._variables.items()}
        self._variable_names: dict[str, str] = {}
        self._check_variables()

    def _read(self, file: ArrayArgument | Tensor) -> None:
        key = self._key(file.path)
        if key not in self._arrays:
            self._arrays[key] = read_array(file.path)
        if file.written:
            path = os.path.realpath(file.path)
            asked = not (isinstance(file, ArrayArgument) and file.if_changed)
            if asked:
                self._if_changed.discard(path)
            elif path not in self._names:
                self._if_changed.add(path)
            self._names[path] = file.path

    def _read_structs(self, argument: CommandArgument) -> None:
        from fragir.cli.files import read_bytes

        if isinstance(argument, StructArgument):
            self._structs[argument.path] = read_bytes(argument.path)
        elif isinstance(argument, Fields):
            for _, field in argument.fields:
                self._read_structs(field)

    def _key(self, path: str) -> str:
        """What tells files apart: of one file, its first name, whatever links lead to it."""
        if path not in self._keys:
            key = os.path.realpath(path)
            if path != "-" and os.path.isfile(path):
                status = os.stat(path)
                key = self._files.setdefault((status.st_dev, status.st_ino), key)
            self._keys[path] = key
        return self._keys[path]

    def _check_variables(self) -> None:
        """A file is written by one variable, or by arguments."""
        for name, buffer in self._variables.items():
            path = os.path.realpath(buffer.path)
            if not buffer.written:
                continue
            if path in self._names or path in self._variable_names:
                raise FragirError(
                    f"the variable {name} and something else write this file",
                    buffer.path,
                    hint="a variable has memory of its own: give it a file of its own",
                )
            self._variable_names[path] = name

    def values(self) -> LoadedArguments:
        """Fresh arguments for one run: copies of the arrays, bytes, None."""
        copies = {key: array.copy() for key, array in self._arrays.items()}
        variables = {name: array.copy() for name, array in self._variable_arrays.items()}
        return LoadedArguments([self._value(a, copies) for a in self._arguments], copies, variables)

    def _value(self, argument: CommandArgument, copies: Mapping[str, Array]) -> object:
        match argument:
            case ArrayArgument():
                array = copies[self._key(argument.path)]
                return array if array.ndim else array.reshape(1)
            case Tensor():
                return tensor_map(argument, copies[self._key(argument.path)])
            case Fields():
                from fragir.emulator import Struct as ByValue

                return ByValue({at: self._value(field, copies) for at, field in argument.fields})
            case Behind():
                from fragir.emulator import Pointer

                return Pointer(self._value(argument.to, copies))
            case StructArgument():
                return self._structs[argument.path]
            case _:
                return argument

    def results(self, values: LoadedArguments) -> dict[str, bytes]:
        """File name to content of every file that takes a result, after a run with `values`."""
        contents: dict[str, bytes] = {}
        for path, name in self._names.items():
            key = self._key(name)
            array = values.arrays[key]
            if path in self._if_changed and array.tobytes() == self._arrays[key].tobytes():
                continue
            contents[name] = array_bytes(array)
        for variable in self._variable_names.values():
            name = self._variables[variable].path
            contents[name] = array_bytes(values.variables[variable])
        return contents


# -- variables -------------------------------------------------------------------------------------
# `--variable NAME=in|out|inout:FILE.npy`: what global and constant variables hold.

F = TypeVar("F", bound=Callable[..., object])
_VARIABLE = re.compile(r"([a-zA-Z_$%][\w$]*)=([a-z]+):(.+)", re.ASCII | re.DOTALL)


def read_variables(
    _context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]
) -> dict[str, ArrayArgument]:
    """A callback for `--variable`."""
    found: dict[str, ArrayArgument] = {}
    for value in values:
        match = _VARIABLE.fullmatch(value)
        if match is None or match[2] not in MODES:
            raise click.BadParameter(f"`{value}` is not of the form NAME=in|out|inout:FILE.npy")
        if match[1] in found:
            raise click.BadParameter(f"{match[1]} is given twice")
        found[match[1]] = ArrayArgument(match[3], written=match[2] != "in")
    return found


def variable_option(function: F) -> F:
    """Adds `--variable`."""
    return click.option(
        "--variable",
        "variables",
        multiple=True,
        callback=read_variables,
        metavar="NAME=MODE:FILE.npy",
        help="What a .global or .const variable holds, by its name in the PTX: in:, out:, inout:.",
    )(function)
