"""Kernel arguments: numpy arrays become buffers, scalars bytes of the declared type."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from fragir.emulator.common import EmulationError
from fragir.emulator.memory import Buffer, Memory
from fragir.emulator.program import Program, Symbol
from fragir.emulator.tensor_map import SIZE, TensorMap

_STRUCT = {"f32": "<f", "f64": "<d", "f16": "<e"}


class Arguments:
    """Places the arguments of one launch in device memory and brings results back."""

    def __init__(self, program: Program, memory: Memory, arguments: Sequence[object]) -> None:
        self.program, self.memory = program, memory
        self.arguments = arguments
        parameters = [p for p in program.main.parameters if isinstance(p, Symbol)]
        if len(arguments) != len(parameters):
            names = ", ".join(p.name for p in parameters)
            raise EmulationError(
                f"{program.entry} takes {len(parameters)} arguments, {len(arguments)} were given",
                hint=f"its parameters are: {names}" if names else None,
            )
        self.parameters = parameters
        self._arrays: list[tuple[int, Any, Buffer]] = []
        self._known: dict[tuple[int, int], Buffer] = {}
        end = 0
        for parameter in parameters:
            align = max(parameter.align, 1)
            end = (end + align - 1) // align * align
            parameter.offset = end
            end += parameter.size
        self.block = memory.allocate("the parameters", max(end, 1))
        for parameter in parameters:
            parameter.offset += self.block.start
        self.images = [
            self._image(i, p, a) for i, (p, a) in enumerate(zip(parameters, arguments, strict=True))
        ]

    def _image(self, index: int, parameter: Symbol, given: object) -> bytes:
        """The bytes of one parameter."""
        value: Any = given
        what = f"argument {index} ({parameter.name})"
        is_array = isinstance(given, np.ndarray)
        if is_array and value.ndim == 0:
            value, is_array = value[()], False
        if is_array:
            if parameter.size != 8:
                raise EmulationError(
                    f"{what}: an array is passed as a 64-bit pointer, "
                    f"the parameter has {parameter.size} bytes"
                )
            return struct.pack("<Q", self._buffer(what, value).address)
        if isinstance(value, TensorMap):
            if parameter.size != SIZE:
                raise EmulationError(
                    f"{what}: a tensor map has {SIZE} bytes, the parameter {parameter.size}"
                )
            return value.fields(self._buffer(what, value.array).address).pack()
        if value is None:
            return bytes(parameter.size)
        if isinstance(given, bytes | bytearray | memoryview):
            if len(value) != parameter.size:
                raise EmulationError(
                    f"{what}: {len(value)} bytes given, the parameter has {parameter.size}"
                )
            return bytes(value)
        return self._scalar(what, parameter, value)

    def _buffer(self, what: str, array: Any) -> Buffer:
        if not array.flags.c_contiguous:
            raise EmulationError(f"{what}: the array must be C-contiguous")
        key = (array.__array_interface__["data"][0], array.nbytes)
        found = self._known.get(key) if array.nbytes else None
        if found is None:
            found = self.memory.allocate(what, array.nbytes)
            self._known[key] = found
            self._arrays.append((len(self._arrays), array, found))
        return found

    @staticmethod
    def _scalar(what: str, parameter: Symbol, value: object) -> bytes:
        assert parameter.declaration is not None
        kind = parameter.declaration.type
        size = parameter.size
        number: Any = value
        if isinstance(value, np.generic) and number.dtype.kind in "Vfc" and kind[0] in "bus":
            raw: bytes = number.tobytes()
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
        for parameter, image in zip(self.parameters, self.images, strict=True):
            start = parameter.offset
            self.memory.globals.bytes[start : start + len(image)] = np.frombuffer(image, np.uint8)
        for _, array, buffer in self._arrays:
            self.memory.bytes_of(buffer)[...] = array.reshape(-1).view(np.uint8)

    def store(self) -> None:
        """Copy what has changed back into the caller's arrays."""
        for index, array, buffer in self._arrays:
            now = self.memory.bytes_of(buffer)
            flat = array.reshape(-1).view(np.uint8)
            if array.flags.writeable:
                flat[...] = now
            elif not np.array_equal(flat, now):
                raise EmulationError(f"the kernel wrote to array {index}, which is read-only")
