"""Memory of a program as its launches get it: pieces of arrays, on the host or on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from fragir.compilation.arguments import row_major
from fragir.compilation.constants import GpuArray
from fragir.dialects.elements import element_bits, element_name
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array, DType


class ArrayPiece(NamedTuple):
    """An array of a shape, counted in elements, and what a kernel is given for it."""

    value: object
    shape: tuple[int, ...]
    element: Attribute

    @classmethod
    def of_shape(cls, shape: tuple[int, ...], type_: MemRefType[Attribute]) -> ArrayPiece:
        """One without memory, of which only the sizes are asked."""
        return cls(None, shape, type_.element_type)

    def reshaped(self, shape: Sequence[int]) -> ArrayPiece:
        """The same memory in another shape; FragirError where it has gaps that forbid it."""
        new = tuple(shape)
        if self.value is None:
            return self._replace(shape=new)
        stored = stored_shape(new, self.element)
        if hasattr(self.value, "__cuda_array_interface__"):
            return ArrayPiece(_on_gpu(self.value, stored), new, self.element)
        array = cast("Array", self.value)
        found = array.reshape(stored)
        if array.size and found.base is not array and found.base is not array.base:
            raise FragirError(
                f"an array of shape {self.shape} has gaps, so that it cannot be taken as {new}",
                hint="pass a contiguous copy",
            )
        return ArrayPiece(found, new, self.element)


def stored_shape(shape: Sequence[int], element: Attribute) -> tuple[int, ...]:
    """The shape of numpy's array: several elements of less than a byte are one of its."""
    bits = element_bits(element)
    if bits >= 8 or not shape:
        return tuple(shape)
    return (*shape[:-1], -(-shape[-1] * bits // 8))


def bytes_of(shape: Sequence[int], element: Attribute) -> int:
    """The bytes of an array."""
    import numpy as np

    count = 1
    for size in stored_shape(shape, element):
        count *= size
    return count * np.dtype(_storage(element)).itemsize


def _storage(element: Attribute) -> DType:
    from fragir.reference.formats import storage

    return storage(element_name(element))


class HostArena:
    """One piece of the host's memory."""

    def __init__(self, size: int):
        import numpy as np

        # allocated in pages, as numpy does for large arrays, or from an aligned byte on
        self._bytes = np.zeros(size + _PAGE, np.uint8)
        start = -self._bytes.ctypes.data % _PAGE
        self._bytes = self._bytes[start : start + size]

    def piece(self, offset: int, shape: tuple[int, ...], element: Attribute) -> ArrayPiece:
        """An array at an offset in bytes."""
        size = bytes_of(shape, element)
        flat = self._bytes[offset : offset + size].view(_storage(element))
        return ArrayPiece(flat.reshape(stored_shape(shape, element)), shape, element)


_PAGE = 256


class GpuArena:
    """One piece of a GPU's memory; `free` gives it back."""

    def __init__(self, size: int):
        from fragir.toolchain import driver

        self.size = size
        self.address = int(driver.call("cuMemAlloc", size)) if size else 0

    def piece(self, offset: int, shape: tuple[int, ...], element: Attribute) -> ArrayPiece:
        """An array at an offset in bytes."""
        stored = stored_shape(shape, element)
        array = GpuArray(self.address + offset, stored, _storage(element).str)
        return ArrayPiece(array, shape, element)

    def fill(self, offset: int, array: Array) -> None:
        """Copies an array of the host there, row after row."""
        import numpy as np

        from fragir.toolchain import driver

        source = np.ascontiguousarray(array)
        if source.nbytes:
            place = self.address + offset
            driver.call("cuMemcpyHtoDAsync", place, source.ctypes.data, source.nbytes, 0)
            driver.call("cuStreamSynchronize", 0)

    def read(self, offset: int, array: Array) -> None:
        """Copies what is there into an array of the host."""
        import numpy as np

        from fragir.toolchain import driver

        found = np.empty(array.shape, array.dtype)
        if found.nbytes:
            place = self.address + offset
            driver.call("cuMemcpyDtoHAsync", found.ctypes.data, place, found.nbytes, 0)
            driver.call("cuStreamSynchronize", 0)
        array[...] = found

    def free(self) -> None:
        from fragir.toolchain import driver

        if self.address:
            driver.call("cuMemFree", self.address)
            self.address = 0


def _on_gpu(value: object, stored: tuple[int, ...]) -> GpuArray:
    interface = cast("dict[str, Any]", getattr(value, "__cuda_array_interface__"))
    strides = interface.get("strides")
    shape = tuple(int(size) for size in interface["shape"])
    typestr = str(interface["typestr"])
    size = int(typestr[2:])
    if strides is not None and tuple(strides) != tuple(x * size for x in row_major(shape)):
        raise FragirError(
            f"an array of shape {shape} has gaps, so that it cannot be taken as {stored}",
            hint="pass a contiguous copy",
        )
    return GpuArray(int(interface["data"][0]), stored, typestr)
