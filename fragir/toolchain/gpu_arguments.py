"""What a launch on a GPU passes: copies of arrays, structs, tensor maps, addresses."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, cast

from fragir.errors import FragirError, pass_on
from fragir.toolchain.arguments import pack, size_of

if TYPE_CHECKING:
    from fragir.emulator.launch.arguments import Packer
    from fragir.emulator.numbers.types import Array


# -- tensor maps -----------------------------------------------------------------------------------
# Tensor maps as the driver encodes them (CUDA driver API, `cuTensorMapEncodeTiled`).

SIZE = 128
"""Bytes of an encoded map, whose contents are the driver's own."""

_LARGEST_BOX = 256  # elements along one dimension
_UNIT = 16  # bytes: addresses, strides and the inner side of a box are multiples of it

# numpy's and ml_dtypes' names, then those of tensormap.replace (PTX ISA 9.2, section 9.7.9.28) for
# what numpy has no name for; anything else is copied as unsigned numbers of its size
_TYPES = {
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "int32": "INT32",
    "int64": "INT64",
    "f32.ftz": "FLOAT32_FTZ",
    "tf32": "TFLOAT32",
    "tf32.ftz": "TFLOAT32_FTZ",
    "b4x16": "16U4_ALIGN8B",
    "b4x16_p64": "16U4_ALIGN16B",
    "b6x16_p32": "16U6_ALIGN16B",
    **{"u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64"},
    **{"s64": "INT64", "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64"},
}
_PACKED_BITS = {"b4x16": 4, "b4x16_p64": 4, "b6x16_p32": 6}
_ATOMS = {16: "", 32: "_ATOM_32B", 64: "_ATOM_64B"}
_BY_SIZE = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_PROMOTIONS = {0: "NONE", 64: "L2_64B", 128: "L2_128B", 256: "L2_256B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


class TiledArray(Protocol):
    """Which tiles of an array are copied, as `fragir.emulator.TensorMap` says it.

    Dimensions go outermost first; `strides` and `swizzle` count bytes.
    """

    @property
    def array(self) -> Array: ...
    @property
    def box(self) -> tuple[int, ...]: ...
    @property
    def swizzle(self) -> int: ...
    @property
    def strides(self) -> tuple[int, ...] | None: ...
    @property
    def element_strides(self) -> tuple[int, ...] | None: ...
    @property
    def fill(self) -> str: ...
    @property
    def kind(self) -> str | None: ...
    @property
    def atom(self) -> int: ...
    @property
    def im2col(self) -> object: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...
    @property
    def promotion(self) -> int: ...


def encode(cuda: ModuleType, tiles: TiledArray, address: int, do: Call, place: str) -> bytes:
    """The 128 bytes of a map over an array that lies at `address` on the GPU.

    `do` calls the driver and raises what it reports; `place` is what errors call the argument.
    """
    array = tiles.array
    strides = (tiles.strides or array.strides)[:-1]
    sizes = list(array.shape if tiles.shape is None else tiles.shape)
    steps = tiles.element_strides or (1,) * len(sizes)
    if address % _UNIT:
        raise FragirError(
            f"{place} begins at an address that is no multiple of {_UNIT} bytes",
            hint="pass a copy",
        )
    if any(stride % _UNIT for stride in strides):
        raise FragirError(
            f"the strides of {place} are {', '.join(map(str, strides))} bytes,"
            f" a tensor map needs multiples of {_UNIT}"
        )
    if any(not 1 <= side <= _LARGEST_BOX for side in tiles.box):
        raise FragirError(f"the box of {place} is {tiles.box}; its sides are 1 to {_LARGEST_BOX}")
    if tiles.im2col is not None:
        raise FragirError(
            f"{place} is an im2col tensor map, which the GPU is not given here",
            hint="run it on the emulator",
        )
    if tiles.kind in _PACKED_BITS and tiles.shape is None:
        sizes[-1] = sizes[-1] * 8 // _PACKED_BITS[tiles.kind]  # the array has bytes
    kind = _TYPES.get(tiles.kind or array.dtype.name) or _BY_SIZE[array.itemsize]
    swizzle = _SWIZZLES[tiles.swizzle] + _ATOMS[tiles.atom]
    encoded = do(
        cuda.cuTensorMapEncodeTiled,
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        len(sizes),
        address,
        [cuda.cuuint64_t(size) for size in reversed(sizes)],
        [cuda.cuuint64_t(stride) for stride in reversed(strides)],
        [cuda.cuuint32_t(side) for side in reversed(tiles.box)],
        [cuda.cuuint32_t(step) for step in reversed(steps)],
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        getattr(
            cuda.CUtensorMapL2promotion,
            f"CU_TENSOR_MAP_L2_PROMOTION_{_PROMOTIONS[tiles.promotion]}",
        ),
        getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[tiles.fill]}"),
    )
    return ctypes.string_at(encoded.getPtr(), SIZE)


Call: TypeAlias = Callable[..., Any]
"""Calls the driver with a function of it; its result, or what it reports is raised."""
INSTALL = "install them with `pip install 'fragir[gpu]'`, or run on the emulator"
_LEGACY_STREAM = 1  # how DLPack and the CUDA array interface call the default stream


class Buffers:
    """Copies of numpy arrays on the GPU, for the time of one launch: one for each storage."""

    def __init__(self, cuda: ModuleType, stream: int, do: Call) -> None:
        self.cuda = cuda
        self.stream = stream
        self.do = do
        self.arrays: list[Array] = []
        self._pointers: list[object] = []
        self._addresses: dict[tuple[int, int], int] = {}
        self.constants: list[tuple[object, ctypes.Array[ctypes.c_char]]] = []
        self._placed: dict[int, int] = {}

    def take(self, named: Iterable[tuple[str, Array]]) -> None:
        """Allocates for all arrays of a launch, and queues the copies of their bytes."""
        from fragir.emulator.launch.arguments import storages, unfit

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

    def place(self, data: bytes, key: int) -> int:
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
    from fragir.emulator.launch.arguments import is_tensor_map, needs_packer

    if is_tensor_map(argument):
        return _tensor_map(buffers, cast("TiledArray", argument), kind, place, stream)
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
    from fragir.emulator.launch.arguments import Packer

    return Packer(
        lambda array, place: (
            _in_place(array, place, stream) if _is_on_gpu(array) else buffers.pointer(array)
        ),
        lambda tiles, place: encode(
            buffers.cuda, tiles, buffers.pointer(tiles.array), buffers.do, place
        ),
        lambda data, key, _: buffers.place(data, key),
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
    return encoded if size == SIZE else buffers.place(encoded, id(tiles)).to_bytes(8, "little")


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
