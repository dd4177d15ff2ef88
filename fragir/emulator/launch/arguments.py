"""Kernel arguments: numpy arrays become buffers, scalars bytes of the declared type."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from fragir.emulator.machine.memory import ArrayContents, Buffer, DeviceMemory
from fragir.emulator.numbers.types import U8, Array, address_of, bytes_of
from fragir.emulator.program.entities import Symbol
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.errors import FragirError, kind_of

# -- parameters ------------------------------------------------------------------------------------
# Arguments that hold pointers: structs by value, and what lies behind a pointer.
#
# The emulator and the GPU runner both take them; where the arrays lie they each say themselves.

POINTER = 8  # bytes
TENSOR_MAP = 128  # bytes, at a multiple of 64 (PTX ISA 9.2, section 5.5)
_MAP_ALIGNMENT = 64


@dataclass(frozen=True, eq=False)
class Struct:
    """A struct by value: `fields` by their offsets in bytes, zeros between them.

    A field is an array or None (a pointer of 8 bytes), a `TensorMap` (its 128 bytes), a `Pointer`,
    a numpy scalar or bytes (as many as they are). `size`: bytes of the struct, where nothing else
    says it (behind a pointer; default: up to the end of the last field).
    """

    fields: Mapping[int, object]
    size: int | None = None

    def __repr__(self) -> str:
        return f"<struct of {len(self.fields)} fields>"


@dataclass(frozen=True, eq=False)
class Pointer:
    """The address of a copy of `to` in global memory: a `TensorMap`, a `Struct` or bytes.

    The same `Pointer` twice is one address. What a kernel writes there is not given back.
    """

    to: object

    def __repr__(self) -> str:
        return f"<pointer to {self.to!r}>"


def pointers(*arrays: Array | None) -> Pointer:
    """An array of pointers in global memory, as grouped products take it; None is null."""
    return Pointer(Struct({POINTER * i: array for i, array in enumerate(arrays)}))


def is_tensor_map(value: object) -> bool:
    """Whether an argument describes tiles of an array."""
    return all(hasattr(value, name) for name in ("array", "box", "swizzle", "im2col"))


def arrays_of(value: object, what: str) -> Iterator[tuple[str, Array]]:
    """The numpy arrays that an argument points to, each with its name in messages."""
    if isinstance(value, np.ndarray):
        if value.ndim:
            yield what, cast("Array", value)
    elif isinstance(value, Struct):
        for offset, field in value.fields.items():
            yield from arrays_of(field, f"{what} at offset {offset}")
    elif isinstance(value, Pointer):
        yield from arrays_of(value.to, what)
    elif is_tensor_map(value):
        yield from arrays_of(cast("Any", value).array, what)


@dataclass(frozen=True)
class Packer:
    """How a machine packs what an argument is made of: each gets the value and its name.

    `place`: the address of a copy of bytes in global memory; the key tells the same from another.
    """

    array: Callable[[Any, str], int]
    tensor_map: Callable[[Any, str], bytes]
    place: Callable[[bytes, int, str], int]

    def pack(self, value: object, what: str, size: int | None = None) -> bytes:
        """The bytes of an argument or field of these kinds, `size` bytes where that is known.

        Raises FragirError for anything else, and for fields that do not fit.
        """
        import numpy as np

        if isinstance(value, Struct):
            return self._struct(value, what, size)
        if isinstance(value, Pointer):
            if not isinstance(value.to, Struct | bytes) and not is_tensor_map(value.to):
                raise FragirError(
                    f"{what}: a Pointer is to a TensorMap, a Struct or bytes, not to a"
                    f" {type(value.to).__name__}",
                    hint="an array is a pointer already",
                )
            data = self.pack(value.to, what)
            return self.place(data, id(value), what).to_bytes(POINTER, "little")
        if value is None:
            return bytes(POINTER)
        if is_tensor_map(value):
            return self.tensor_map(value, what)
        if isinstance(value, np.ndarray) and value.ndim:
            return self.array(value, what).to_bytes(POINTER, "little")
        if isinstance(value, bytes | bytearray):
            return bytes(value)
        if isinstance(value, np.generic | np.ndarray):
            scalar = cast("Any", value)
            return bytes(scalar.astype(scalar.dtype.newbyteorder("=")).tobytes())
        if hasattr(value, "__cuda_array_interface__") or hasattr(value, "__dlpack__"):
            return self.array(value, what).to_bytes(POINTER, "little")
        raise FragirError(
            f"{what}: a {type(value).__name__} does not say how many bytes it has",
            hint="pass a numpy scalar, say np.int32(5)",
        )

    def _struct(self, struct: Struct, what: str, size: int | None) -> bytes:
        if size is not None and struct.size not in (None, size):
            raise FragirError(f"{what}: the struct has {struct.size} bytes, the parameter {size}")
        size = struct.size if size is None else size
        data = bytearray() if size is None else bytearray(size)
        taken: list[tuple[int, int]] = []
        for offset in sorted(struct.fields):
            field = struct.fields[offset]
            place = f"{what} at offset {offset}"
            if offset < 0:
                raise FragirError(f"{place}: there is nothing before a struct")
            piece = self.pack(field, place)
            end = offset + len(piece)
            if size is None:
                data.extend(bytes(max(end - len(data), 0)))
            elif end > size:
                raise FragirError(f"{place}: it ends at {end}, the struct has {size} bytes")
            if taken and taken[-1][1] > offset:
                raise FragirError(f"{place}: the field at {taken[-1][0]} ends at {taken[-1][1]}")
            if is_tensor_map(field) and offset % _MAP_ALIGNMENT:
                raise FragirError(f"{place}: a tensor map lies at a multiple of {_MAP_ALIGNMENT}")
            taken.append((offset, end))
            data[offset:end] = piece
        return bytes(data)


def needs_packer(value: object) -> bool:
    """Whether an argument is one of the kinds of this module."""
    return isinstance(value, Struct | Pointer)


# -- storage ---------------------------------------------------------------------------------------
# Which arrays of a launch lie in the same host memory: these share one buffer on the device.


@dataclass(slots=True)
class Storage:
    """Host memory [start, end) that arrays of one launch share; `arrays` count from 0."""

    start: int
    end: int
    arrays: list[int]

    @property
    def size(self) -> int:
        return self.end - self.start


_PIECE = 1 << 24  # bytes looked at together
_LARGE = 1 << 28  # bytes from which on it pays to look: untouched pages take no memory


def copy_into_zeros(source: U8, target: U8) -> None:
    """Copy bytes over zeros. Of much memory only what is not zero: the rest stays untouched."""
    if source.size < _LARGE:
        target[...] = source
        return
    for piece in _pieces(source):
        if _has_any(source[piece]):
            target[piece] = source[piece]


def copy_back(source: U8, target: U8) -> None:
    """Copy bytes. Of much memory only where one of both is not zero."""
    if source.size < _LARGE:
        target[...] = source
        return
    for piece in _pieces(source):
        if _has_any(source[piece]) or _has_any(target[piece]):
            target[piece] = source[piece]


def are_equal(one: U8, other: U8) -> bool:
    """Whether bytes are the same, in little memory."""
    return all(np.array_equal(one[piece], other[piece]) for piece in _pieces(one))


def _has_any(array: U8) -> bool:
    return bool(array.view(np.bool_).any())  # of bytes as truth values it ends at the first


def _pieces(array: U8) -> Iterator[slice]:
    for first in range(0, array.size, _PIECE):
        yield slice(first, first + _PIECE)


NATIVE = "array.astype(array.dtype.newbyteorder('=')) has the right one"
"""What to do about an array of the other byte order."""


def unfit(array: Array) -> tuple[str, str | None] | None:
    """Why an array's bytes cannot go to a device, and what helps; None where they can."""
    if not array.flags.c_contiguous:
        return "the array must be C-contiguous", "numpy.ascontiguousarray makes one"
    if array.dtype.hasobject or not array.dtype.itemsize:
        return f"an array of {array.dtype} has no bytes to pass", None
    if not array.dtype.isnative:
        return f"the array has the other byte order ({array.dtype})", NATIVE
    return None


def storages(arrays: Sequence[Array]) -> list[Storage]:
    """The storages of C-contiguous arrays, in the order of the first array of each.

    Arrays that overlap share one, so that what a kernel writes through one is read through the
    other. Those that are all read-only share one where they are the same bytes only: nothing can
    tell the difference, and each is aligned as if it were alone. Empty arrays share nothing.
    """
    spans = [(address_of(a), address_of(a) + a.nbytes) for a in arrays]
    found: list[Storage] = []
    together: list[Storage] = []  # those that touch, the lowest first
    written = False

    def close() -> None:
        if written:
            members = sorted(i for one in together for i in one.arrays)
            found.append(Storage(together[0].start, max(s.end for s in together), members))
        else:
            found.extend(together)
        together.clear()

    for index in sorted(range(len(arrays)), key=lambda i: spans[i]):
        start, end = spans[index]
        if start == end:
            found.append(Storage(start, end, [index]))
            continue
        if together and start >= max(s.end for s in together):
            close()
            written = False
        same = next((s for s in together if (s.start, s.end) == (start, end)), None)
        if same is None:
            together.append(Storage(start, end, [index]))
        else:
            same.arrays.append(index)
        written = written or bool(arrays[index].flags.writeable)
    close()
    return sorted(found, key=lambda s: s.arrays[0])


_STRUCT = {"f32": "<f", "f64": "<d", "f16": "<e"}


def _is_numpy(value: object) -> bool:
    return isinstance(value, np.ndarray)


def _span(array: Array) -> tuple[int, int]:
    return address_of(array), array.nbytes


class HostArrays:
    """The caller's arrays, each in a buffer of global memory: one for each storage."""

    def __init__(self, memory: DeviceMemory, named: Iterable[tuple[str, Array]]) -> None:
        self.memory = memory
        named = list(named)
        for name, array in named:
            if reason := unfit(array):
                raise EmulationError(f"{name}: {reason[0]}", hint=reason[1])
        self.arrays = [array for _, array in named]
        self._names = [name for name, _ in named]
        self._storages: list[tuple[Storage, Buffer]] = []
        self._where: dict[tuple[int, int], tuple[Storage, Buffer]] = {}
        for storage in storages(self.arrays):
            buffer = memory.allocate(self._name(storage), storage.size)
            self._storages.append((storage, buffer))
            for index in storage.arrays:
                self._where.setdefault(_span(self.arrays[index]), (storage, buffer))

    def _name(self, storage: Storage) -> str:
        """The names of its arrays; of those that are the same bytes, the first."""
        names: dict[tuple[int, int], str] = {}
        for index in storage.arrays:
            names.setdefault(_span(self.arrays[index]), self._names[index])
        return " and ".join(dict.fromkeys(names.values()))

    def places(self) -> Iterator[tuple[Buffer, list[int]]]:
        """Every buffer, and the numbers of the arrays that lie in it."""
        for storage, buffer in self._storages:
            yield buffer, storage.arrays

    def homes(self) -> dict[int, int]:
        """By `Buffer.start` where its bytes lie on the host."""
        return {buffer.start: storage.start for storage, buffer in self._storages}

    def address(self, array: Any, what: str) -> int:
        """The generic address of an array's first element."""
        if not _is_numpy(array):
            raise EmulationError(
                f"{what}: the emulator takes numpy arrays, not a {type(array).__name__}"
            )
        storage, buffer = self._where[_span(array)]
        return buffer.address + address_of(array) - storage.start

    def load(self) -> None:
        """Copy everything in; the memory must be committed, and holds zeros."""
        for index, part in self._parts():
            copy_into_zeros(bytes_of(self.arrays[index]), part)

    def store(self) -> None:
        """Copy what the kernel has written back into the arrays that can be written."""
        for index, part in self._parts():
            if self.arrays[index].flags.writeable:
                copy_back(part, bytes_of(self.arrays[index]))

    def check_read_only(self) -> None:
        """EmulationError where a read-only array is no longer what it was; call after `store`."""
        for index, part in self._parts():
            array = self.arrays[index]
            if not array.flags.writeable and not are_equal(bytes_of(array), part):
                raise EmulationError(
                    f"the kernel wrote to {self._names[index]}, an array that is read-only"
                )

    def _parts(self) -> Iterable[tuple[int, Array]]:
        """Every array and its bytes on the device."""
        for storage, buffer in self._storages:
            all_bytes = self.memory.bytes_of(buffer)
            for index in storage.arrays:
                start = address_of(self.arrays[index]) - storage.start
                yield index, all_bytes[start : start + self.arrays[index].nbytes]


class Arguments:
    """Places the arguments of one launch in device memory and brings results back."""

    def __init__(self, program: Program, memory: DeviceMemory, arguments: Sequence[object]) -> None:
        self.program, self.memory = program, memory
        self.arguments = arguments
        if not isinstance(cast("object", arguments), Sequence) or isinstance(arguments, str):
            raise EmulationError(f"arguments are a list, not {kind_of(arguments)}")
        parameters = [p for p in program.main.parameters if isinstance(p, Symbol)]
        if len(arguments) != len(parameters):
            names = ", ".join(p.name for p in parameters)
            raise EmulationError(
                f"{program.entry} takes {len(parameters)} arguments, {len(arguments)} were given",
                hint=f"its parameters are: {names}" if names else None,
            )
        self.parameters = parameters
        end = 0
        for parameter in parameters:
            align = max(parameter.align, 1)
            end = (end + align - 1) // align * align
            parameter.offset = end
            end += parameter.size
        self.block = memory.allocate("the parameters", max(end, 1))
        memory.windowed = len(memory.buffers)
        for parameter in parameters:
            parameter.offset += self.block.start
        whats = [f"argument {index} ({p.name})" for index, p in enumerate(parameters)]
        named = [list(arrays_of(a, what)) for a, what in zip(arguments, whats, strict=True)]
        self._owners = [p.name for p, some in zip(parameters, named, strict=True) for _ in some]
        self.arrays = HostArrays(memory, [pair for some in named for pair in some])
        self._placed: dict[int, tuple[Buffer, bytes]] = {}
        self._packer = Packer(
            self.arrays.address,
            lambda tiles, what: tiles.fields(self.arrays.address(tiles.array, what)).pack(),
            self._place,
        )
        self.images: list[bytes] = []
        #: Parameters of which something lies behind a pointer that is no array: addresses.
        self.pointing: list[str] = []
        for what, parameter, given in zip(whats, parameters, arguments, strict=True):
            before = len(self._placed)
            self.images.append(self._image(what, parameter, given))
            if len(self._placed) > before:
                self.pointing.append(parameter.name)

    def _place(self, data: bytes, key: int, what: str) -> int:
        """The address of bytes that a pointer among the arguments points to."""
        if key not in self._placed:
            buffer = self.memory.allocate(f"what {what} points to", len(data))
            self._placed[key] = buffer, data
        return self._placed[key][0].address

    def _image(self, what: str, parameter: Symbol, given: object) -> bytes:
        """The bytes of one parameter."""
        value: Any = given
        is_array = isinstance(given, np.ndarray)
        if is_array and value.ndim == 0:
            value, is_array = value[()], False
        if is_array:
            if parameter.size != POINTER:
                raise EmulationError(
                    f"{what}: an array is passed as a 64-bit pointer, "
                    f"the parameter has {parameter.size} bytes"
                )
            return struct.pack("<Q", self.arrays.address(value, what))
        if needs_packer(value) or is_tensor_map(value):
            return self._pack(what, parameter, value)
        if value is None:
            return bytes(parameter.size)
        if isinstance(given, bytes | bytearray | memoryview):
            if len(value) != parameter.size:
                raise EmulationError(
                    f"{what}: {len(value)} bytes given, the parameter has {parameter.size}"
                )
            return bytes(value)
        return self._scalar(what, parameter, value)

    def _pack(self, what: str, parameter: Symbol, value: object) -> bytes:
        """A tensor map, a struct, or the address of such."""
        size = parameter.size
        try:
            data = self._packer.pack(value, what, size)
            if is_tensor_map(value) and size == POINTER:
                data = self._place(data, id(value), what).to_bytes(POINTER, "little")
        except FragirError as error:
            raise EmulationError(error.message, hint=error.hint) from error
        if len(data) != size:
            kind = f"a tensor map has {TENSOR_MAP}" if is_tensor_map(value) else "a pointer has 8"
            raise EmulationError(f"{what}: {kind} bytes, the parameter {size}")
        return data

    @staticmethod
    def _scalar(what: str, parameter: Symbol, value: object) -> bytes:
        assert parameter.declaration is not None
        kind = parameter.declaration.type
        size = parameter.size
        number: Any = value
        if isinstance(value, np.generic) and number.dtype.kind in "Vfc" and kind[0] in "bus":
            raw: bytes = number.astype(number.dtype.newbyteorder("=")).tobytes()
            if len(raw) == size:
                return raw
        if kind in _STRUCT and isinstance(value, int | float | np.generic):
            try:
                return struct.pack(_STRUCT[kind], float(number))
            except (OverflowError, TypeError, struct.error) as problem:
                raise EmulationError(f"{what}: {value} is no .{kind}") from problem
        if isinstance(value, float) and kind in ("b32", "b64"):
            return struct.pack("<f" if kind == "b32" else "<d", value)
        if isinstance(value, int | np.integer | np.bool_):
            number = int(number)
            bits = 8 * size
            if not -(1 << (bits - 1)) <= number < 1 << bits:
                raise EmulationError(f"{what}: {number} does not fit .{kind}")
            return (number & ((1 << bits) - 1)).to_bytes(size, "little")
        raise EmulationError(
            f"{what}: a {type(number).__name__} cannot be passed as .{kind}",
            hint="pass a numpy array, a number, bytes or None",
        )

    def contents(self, structure: Collection[str]) -> Iterator[ArrayContents]:
        """The data in the arrays, but for those of the parameters named."""
        for buffer, arrays in self.arrays.places():
            names = dict.fromkeys(self._owners[i] for i in arrays)
            names = [name for name in names if name not in structure]
            if names and buffer.size:
                yield ArrayContents(" and ".join(names), buffer.start, buffer.size)

    def load(self) -> None:
        """Copy everything in; the memory must be committed."""
        images = [(p.offset, i) for p, i in zip(self.parameters, self.images, strict=True)]
        images += [(buffer.start, data) for buffer, data in self._placed.values()]
        for start, image in images:
            self.memory.globals.bytes[start : start + len(image)] = np.frombuffer(image, np.uint8)
        self.arrays.load()

    def store(self) -> None:
        """Copy what has changed back into the caller's arrays."""
        self.arrays.store()

    def check_read_only(self) -> None:
        """EmulationError where the kernel wrote to an array that is read-only."""
        self.arrays.check_read_only()
