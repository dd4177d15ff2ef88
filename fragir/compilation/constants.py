"""The arrays of a compiled program's constants, which its calls fill in: on the host, and on a GPU.

A constant of more elements than are written out is a parameter of the PTX like an array
(`Argument.constant`), but no caller gives it. Its elements are copied to a GPU with the first
launch there and stay as long as the program lives.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fragir.compilation.signature import Argument
from fragir.dialects.elements import element_name
from fragir.dialects.shorthands import memref_type

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array


@dataclass(frozen=True)
class GpuArray:
    """Memory on a GPU, by the CUDA array interface (version 3)."""

    address: int
    shape: tuple[int, ...]
    typestr: str

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "shape": self.shape,
            "typestr": self.typestr,
            "data": (self.address, False),
            "version": 3,
        }


class HeldConstants:
    """The constants among the arguments of a signature."""

    def __init__(self, signature: Sequence[Argument]):
        self._signature = tuple(signature)
        self._on_gpu: dict[int, GpuArray] = {}

    @cached_property
    def arrays(self) -> dict[int, Array]:
        """On the host, read only, by the number of the argument; made when first asked for."""
        every = enumerate(self._signature)
        return {at: _array_of(one) for at, one in every if one.constant is not None}

    @property
    def is_empty(self) -> bool:
        return all(one.constant is None for one in self._signature)

    def fill(self, arguments: Sequence[object]) -> list[object]:
        """All arguments, from those of a caller."""
        given = iter(arguments)
        return [
            self.arrays[at] if one.constant is not None else next(given)
            for at, one in enumerate(self._signature)
        ]

    def on_gpu(self, arguments: Sequence[object]) -> list[object]:
        """The arguments, where the constants lie on the GPU."""
        if self.is_empty:
            return list(arguments)
        return [
            self._copied(at, value) if value is self.arrays.get(at) else value
            for at, value in enumerate(arguments)
        ]

    def _copied(self, at: int, array: Any) -> GpuArray:
        from fragir.toolchain import driver

        if at not in self._on_gpu:
            address = int(driver.call("cuMemAlloc", array.nbytes))
            weakref.finalize(self, driver.call, "cuMemFree", address).atexit = False
            driver.call("cuMemcpyHtoDAsync", address, array.ctypes.data, array.nbytes, 0)
            driver.call("cuStreamSynchronize", 0)
            self._on_gpu[at] = GpuArray(address, array.shape, array.dtype.str)
        return self._on_gpu[at]


def _array_of(argument: Argument) -> Array:
    """The elements of a constant as the kernel takes them."""
    import numpy as np

    from fragir.reference.formats import INTEGERS, PER_BYTE, encode, storage

    assert argument.constant is not None
    memory, constant = memref_type(argument.type), argument.constant
    name = element_name(memory.element_type)
    size = constant.type.element_type.compile_time_size
    codes = np.frombuffer(constant.data.data, np.dtype(f"i{size}"))
    shaped = codes.reshape(memory.get_shape())
    if name in PER_BYTE:
        array = encode(INTEGERS[name].wrap(shaped.astype(np.int64)), name)
    elif size == storage(name).itemsize:
        array = shaped.view(storage(name))
    else:  # index has 64 bits there and 32 here
        array = shaped.astype(storage(name))
    array.flags.writeable = False
    return array
