"""What a launch on a GPU passes: copies of arrays, structs, tensor maps, addresses."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, cast

from fragir.errors import FragirError, pass_on
from fragir.toolchain.arguments import pack, size_of
from fragir.toolchain.tensor_maps import SIZE, TiledArray, encode, is_tensor_map

if TYPE_CHECKING:
    import numpy as np

    from fragir.emulator.launch.parameters import Packer

    Array = np.ndarray[Any, np.dtype[Any]]

INSTALL = "install them with `pip install 'fragir[gpu]'`, or run on the emulator"
_LEGACY_STREAM = 1  # how DLPack and the CUDA array interface call the default stream


class Buffers:
    """Copies of numpy arrays on the GPU, for the time of one launch: one for each storage."""

    def __init__(self, cuda: Any, stream: int, do: Callable[..., Any]) -> None:
        self.cuda = cuda
        self.stream = stream
        self.do = do
        self.arrays: list[Array] = []
        self._pointers: list[Any] = []
        self._addresses: dict[tuple[int, int], int] = {}
        self.constants: list[tuple[Any, ctypes.Array[ctypes.c_char]]] = []
        self._placed: dict[int, int] = {}

    def take(self, named: Iterable[tuple[str, Array]]) -> None:
        """Allocates for all arrays of a launch, and queues the copies of their bytes."""
        from fragir.emulator.launch.storage import storages, unfit

        for place, array in named:
            if reason := unfit(array):
                raise FragirError(f"{place}: {reason[0]}", hint=reason[1])
            self.arrays.append(array)
        for storage in storages(self.arrays):
            pointer = self.do(self.cuda.cuMemAlloc, max(1, storage.size))
            self._pointers.append(pointer)
            for index in storage.arrays:
                host = self.arrays[index].ctypes.data
                key = host, self.arrays[index].nbytes
                self._addresses[key] = int(pointer) + host - storage.start
            if storage.size:
                self.do(
                    self.cuda.cuMemcpyHtoDAsync, pointer, storage.start, storage.size, self.stream
                )

    def pointer(self, array: Array) -> int:
        """The address on the GPU of an array that was taken."""
        return self._addresses[array.ctypes.data, array.nbytes]

    def placed(self, data: bytes, key: int) -> int:
        """As `constant`; the same key is the same address."""
        if key not in self._placed:
            self._placed[key] = self.constant(data)
        return self._placed[key]

    def constant(self, data: bytes) -> int:
        """The address on the GPU of bytes that the kernel only reads."""
        pointer = self.do(self.cuda.cuMemAlloc, len(data))
        # the copy is asynchronous: its source lives as long as the launch
        source = ctypes.create_string_buffer(data, len(data))
        self.constants.append((pointer, source))
        host = ctypes.addressof(source)
        self.do(self.cuda.cuMemcpyHtoDAsync, pointer, host, len(data), self.stream)
        return int(pointer)

    def copy_back(self, entry: str) -> None:
        """Queues the copies back into the arrays that can be written."""
        for array in self.arrays:
            if array.nbytes and array.flags.writeable:
                self.do(
                    self.cuda.cuMemcpyDtoHAsync,
                    array.ctypes.data,
                    self.pointer(array),
                    array.nbytes,
                    self.stream,
                    entry=entry,
                )

    def free(self) -> None:
        for pointer in self._pointers:
            self.cuda.cuMemFree(pointer)
        for pointer, _ in self.constants:
            self.cuda.cuMemFree(pointer)
        self.arrays.clear()
        self._pointers.clear()
        self.constants.clear()


def value_of(buffers: Buffers, argument: object, kind: str, place: str, stream: int) -> bytes:
    """The bytes of one parameter: an address, a scalar or a struct."""
    from fragir.emulator.launch.parameters import needs_packer

    if is_tensor_map(argument):
        return _tensor_map(buffers, argument, kind, place, stream)
    if needs_packer(argument):
        data = _packer(buffers, stream).pack(argument, place, size_of(kind))
        if len(data) != size_of(kind):
            raise FragirError(f"{place} has {len(data)} bytes, the parameter `{kind}` another size")
        return data
    array = as_array(argument)
    if array is not None and array.ndim:
        address = buffers.pointer(array)
    elif _is_on_gpu(argument):
        address = _in_place(argument, place, stream)
    else:
        return pack(argument, kind, place)
    if size_of(kind) != 8:
        raise FragirError(f"{place} is an array, the parameter has the type `{kind}`")
    return address.to_bytes(8, "little")


def _packer(buffers: Buffers, stream: int) -> Packer:
    """Packs what structs and pointers hold."""
    from fragir.emulator.launch.parameters import Packer

    return Packer(
        lambda array, place: (
            _in_place(array, place, stream) if _is_on_gpu(array) else buffers.pointer(array)
        ),
        lambda tiles, place: encode(
            buffers.cuda, tiles, buffers.pointer(tiles.array), buffers.do, place
        ),
        lambda data, key, _: buffers.placed(data, key),
    )


def _is_on_gpu(argument: object) -> bool:
    return as_array(argument) is None and (
        hasattr(argument, "__cuda_array_interface__") or hasattr(argument, "__dlpack__")
    )


def _tensor_map(buffers: Buffers, tiles: TiledArray, kind: str, place: str, stream: int) -> bytes:
    """A tensor map as a parameter: its own bytes, or the address of a copy."""
    size = size_of(kind)
    if size not in (8, SIZE):
        raise FragirError(f"{place} is a tensor map, the parameter has the type `{kind}`")
    array = tiles.array
    address = _in_place(array, place, stream) if _is_on_gpu(array) else buffers.pointer(array)
    encoded = encode(buffers.cuda, tiles, address, buffers.do, place)
    return encoded if size == SIZE else buffers.placed(encoded, id(tiles)).to_bytes(8, "little")


def as_array(argument: object) -> Array | None:
    import numpy as np

    return cast("Array", argument) if isinstance(argument, np.ndarray) else None


def _in_place(argument: object, place: str, stream: int) -> int:
    """The address of an array that already lives on the GPU."""
    try:
        utilities = importlib.import_module("cuda.core.utils")
    except ImportError:
        try:
            utilities = importlib.import_module("cuda.core.experimental.utils")
        except ImportError as error:
            raise FragirError("NVIDIA's cuda-core is not installed", hint=INSTALL) from error
    try:
        view_class = utilities.StridedMemoryView
        look = getattr(view_class, "from_any_interface", view_class)  # older ones: the class itself
        view = look(argument, stream_ptr=stream or _LEGACY_STREAM)
    except Exception as error:  # whatever the other package raises for its types
        pass_on(error)
        raise FragirError(f"{place} cannot be used on the GPU: {error}") from error
    if not view.is_device_accessible:
        raise FragirError(f"{place} lives in host memory", hint="pass a numpy array")
    return int(view.ptr)
