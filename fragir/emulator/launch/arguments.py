"""Kernel arguments: numpy arrays become buffers, scalars bytes of the declared type."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np

from fragir.emulator.launch.parameters import (
    POINTER,
    TENSOR_MAP,
    Packer,
    arrays_of,
    is_tensor_map,
    needs_packer,
)
from fragir.emulator.launch.storage import (
    Array,
    Storage,
    address_of,
    are_equal,
    bytes_of,
    copy_back,
    copy_into_zeros,
    storages,
    unfit,
)
from fragir.emulator.machine.memory import Buffer, DeviceMemory
from fragir.emulator.program.entities import Symbol
from fragir.emulator.program.program import Program
from fragir.emulator.report import EmulationError
from fragir.errors import FragirError, kind_of

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

    def refuse_read_only(self) -> None:
        """EmulationError where a read-only array is no longer what it was; call after `store`."""
        for index, part in self._parts():
            array = self.arrays[index]
            if not array.flags.writeable and not are_equal(bytes_of(array), part):
                raise EmulationError(
                    f"the kernel wrote to {self._names[index]}, an array that is read-only"
                )

    def _parts(self) -> Iterable[tuple[int, Any]]:
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
        named = [pair for a, what in zip(arguments, whats) for pair in arrays_of(a, what)]
        self.arrays = HostArrays(memory, named)
        self._placed: dict[int, tuple[Buffer, bytes]] = {}
        self._packer = Packer(
            self.arrays.address,
            lambda tiles, what: tiles.fields(self.arrays.address(tiles.array, what)).pack(),
            self._place,
        )
        self.images = [
            self._image(*each) for each in zip(whats, parameters, arguments, strict=True)
        ]

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
            return self._packed(what, parameter, value)
        if value is None:
            return bytes(parameter.size)
        if isinstance(given, bytes | bytearray | memoryview):
            if len(value) != parameter.size:
                raise EmulationError(
                    f"{what}: {len(value)} bytes given, the parameter has {parameter.size}"
                )
            return bytes(value)
        return self._scalar(what, parameter, value)

    def _packed(self, what: str, parameter: Symbol, value: object) -> bytes:
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

    def refuse_read_only(self) -> None:
        """EmulationError where the kernel wrote to an array that is read-only."""
        self.arrays.refuse_read_only()
