"""The CUDA driver: runs a cubin on the GPU, through NVIDIA's own packages (`fragir[gpu]`).

`cuda.bindings.driver` is used for what it names; `cuda.core` for looking into the arrays of other
packages. Neither is imported before a function here is called.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from fragir.errors import FragirError
from fragir.ptx import machines
from fragir.toolchain.arguments import pack, size_of
from fragir.toolchain.tensor_maps import SIZE, Tiles, encode, is_tensor_map

if TYPE_CHECKING:
    import numpy as np

    from fragir.emulator.parameters import Packer

    Array = np.ndarray[Any, np.dtype[Any]]

Extent = tuple[int, ...]

_INSTALL = "install them with `pip install 'fragir[gpu]'`, or run on the emulator"
_LEGACY_STREAM = 1  # how DLPack and the CUDA array interface call the default stream


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPU that `launch` uses."""

    name: str
    target: str
    """As in `sm_90`."""
    driver: str
    """The newest CUDA that the driver knows, as in `13.0`."""
    memory: int
    """Bytes."""


def available() -> str | None:
    """None where a GPU can be used, else the reason in one line."""
    try:
        _context()
    except FragirError as error:
        return str(error)
    return None


def gpu() -> Gpu:
    """The GPU in use. Raises FragirError where there is none."""
    cuda = _context()
    device = _do(cuda.cuCtxGetDevice)
    attribute = cuda.CUdevice_attribute
    major = _do(
        cuda.cuDeviceGetAttribute,
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
        device,
    )
    minor = _do(
        cuda.cuDeviceGetAttribute,
        attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        device,
    )
    name: bytes = _do(cuda.cuDeviceGetName, 256, device)
    version: int = _do(cuda.cuDriverGetVersion)
    return Gpu(
        name=name.split(b"\0")[0].decode(),
        target=f"sm_{major}{minor}",
        driver=f"{version // 1000}.{version % 1000 // 10}",
        memory=_do(cuda.cuDeviceTotalMem, device),
    )


def launch(
    cubin: bytes,
    entry: str,
    *,
    grid: Extent,
    block: Extent,
    arguments: Sequence[object] = (),
    shared: int = 0,
    cluster: Extent = (1, 1, 1),
    parameters: Sequence[str] | None = None,
    stream: object = None,
    cooperative: bool = False,
) -> None:
    """Runs one kernel and waits for it.

    `arguments` in the order of the PTX parameters: a C-contiguous numpy array is copied to the
    GPU and back (overlapping ones are one buffer; a read-only one is not copied back), any
    object that speaks DLPack or `__cuda_array_interface__` and lives on the GPU is used in place,
    a `fragir.emulator.TensorMap` is encoded over the copy of its array, by value or behind a
    pointer as the parameter asks, `None` is a null pointer, and scalars and bytes are packed by
    `parameters`, the PTX types (`u64`, `f32`, `b8[128]`). Without `parameters` the cubin tells
    sizes only: an `int` fits any, a `float` is f32 or f64.

    `grid` and `block` count blocks and threads (x, y, z), `cluster` blocks, `shared` bytes of
    dynamic shared memory. `stream` is a handle, or an object with `__cuda_stream__`; where one is
    given and no numpy array is among the arguments, the call does not wait. `cooperative`: all
    blocks are on the GPU together, as grids need that synchronise.

    Raises FragirError in one line: no GPU, a wrong argument, or what the driver reports.
    """
    cuda = _context()
    grid, block, cluster = (_extent(e) for e in (grid, block, cluster))
    problem = machines.launch_problem(
        gpu().target, grid=grid, block=block, cluster=cluster, shared=shared
    )
    if problem is not None:
        raise FragirError(f"`{entry}` cannot be launched so: {problem[0]}", hint=problem[1])
    function = _function(cuda, cubin, entry)
    handle = _stream(stream)
    types = _types(cuda, function, entry, arguments, parameters)
    _allow(cuda, function, entry, shared, math.prod(block), math.prod(cluster))
    buffers = _Buffers(cuda, handle)
    try:
        from fragir.emulator.parameters import arrays_of

        places = [f"argument {index}" for index in range(len(arguments))]
        buffers.take(pair for a, place in zip(arguments, places) for pair in arrays_of(a, place))
        values = [
            _value(buffers, argument, kind, place, handle)
            for place, argument, kind in zip(places, arguments, types, strict=True)
        ]
        storage = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * max(1, len(storage)))(*map(ctypes.addressof, storage))
        config = _config(cuda, grid, block, cluster, shared, handle, cooperative)
        _do(cuda.cuLaunchKernelEx, config, function, ctypes.addressof(pointers), 0, entry=entry)
        buffers.copy_back(entry)
        if stream is None or buffers.arrays or buffers.constants:
            _do(cuda.cuStreamSynchronize, handle, entry=entry)
    finally:
        buffers.free()


# The driver and its errors ----------------------------------------------------------------------


def _bindings() -> Any:
    """The module `cuda.bindings.driver`."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise FragirError("NVIDIA's CUDA packages are not installed", hint=_INSTALL) from error


@functools.cache
def _device(cuda: Any) -> Any:
    """The primary context of the first GPU."""
    try:
        (code, *_) = cuda.cuInit(0)
    except Exception as error:  # the packages raise their own types where no driver is found
        raise FragirError("no NVIDIA driver was found", hint="run on the emulator") from error
    if code != cuda.CUresult.CUDA_SUCCESS:
        raise FragirError(
            f"the NVIDIA driver cannot be used: {_said(cuda, code)}", hint="run on the emulator"
        )
    if _do(cuda.cuDeviceGetCount) == 0:
        raise FragirError("no NVIDIA GPU was found", hint="run on the emulator")
    return _do(cuda.cuDevicePrimaryCtxRetain, _do(cuda.cuDeviceGet, 0))


def _context() -> Any:
    """The driver's module, with a context current: the caller's, or that of the first GPU."""
    cuda = _bindings()
    primary = _device(cuda)
    if int(_do(cuda.cuCtxGetCurrent)) == 0:
        _do(cuda.cuCtxSetCurrent, primary)
    return cuda


def _do(function: Callable[..., Any], *arguments: object, entry: str | None = None) -> Any:
    """Calls the driver; returns its result without the code, or raises FragirError."""
    try:
        code, *results = function(*arguments)
    except FragirError:
        raise
    except Exception as error:  # a function that this driver or package lacks
        raise FragirError(f"the CUDA driver cannot do {function.__name__}: {error}") from error
    if code.value != 0:
        what = f"running `{entry}`" if entry else function.__name__
        hint = None
        if entry and code.name not in ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_OUT_OF_MEMORY"):
            hint = "`fragir emulate --check` finds the instruction; restart before using the GPU"
        raise FragirError(f"the GPU failed at {what}: {_said(_bindings(), code)}", hint=hint)
    return results[0] if len(results) == 1 else tuple(results)


def _said(cuda: Any, code: Any) -> str:
    """The driver's own words for an error."""
    failed, text = cuda.cuGetErrorString(code)
    words = text.decode() if failed.value == 0 and text else "unknown error"
    return f"{code.name} ({words})"


# Functions and their parameters ------------------------------------------------------------------

_KEPT_MODULES = 32
_modules: OrderedDict[tuple[int, bytes], Any] = OrderedDict()


def _function(cuda: Any, cubin: bytes, entry: str) -> Any:
    """The function of a cubin; modules stay loaded, those used last."""
    context = int(_do(cuda.cuCtxGetCurrent))
    key = context, hashlib.sha256(cubin).digest()
    module = _modules.get(key)
    if module is None:
        try:
            module = _do(cuda.cuModuleLoadData, cubin)
        except FragirError as error:
            hint = f"the GPU is an {gpu().target}; assemble for it"
            raise FragirError(f"the cubin cannot be loaded: {error}", hint=hint) from error
        _modules[key] = module
        while len(_modules) > _KEPT_MODULES:
            _, oldest = _modules.popitem(last=False)
            cuda.cuModuleUnload(oldest)
    _modules.move_to_end(key)
    code, function = cuda.cuModuleGetFunction(module, entry.encode())
    if code.value != 0:
        raise FragirError(f"the cubin has no entry `{entry}`")
    return function


def _types(
    cuda: Any,
    function: Any,
    entry: str,
    arguments: Sequence[object],
    parameters: Sequence[str] | None,
) -> list[str]:
    """The types of the parameters, checked against the sizes that the cubin declares."""
    sizes = _sizes(cuda, function)
    count = len(sizes) if parameters is None else len(parameters)
    if len(arguments) != count:
        raise FragirError(f"`{entry}` has {count} parameters, {len(arguments)} arguments are given")
    if parameters is None:
        return [_guess(size, value) for size, value in zip(sizes, arguments, strict=True)]
    declared = [size_of(kind) for kind in parameters]
    if sizes and declared != sizes:
        raise FragirError(f"`{entry}` has parameters of {sizes} bytes in the cubin, not {declared}")
    return list(parameters)


def _sizes(cuda: Any, function: Any) -> list[int]:
    """Bytes of every parameter."""
    sizes: list[int] = []
    while True:
        code, _, size = cuda.cuFuncGetParamInfo(function, len(sizes))
        if code.value != 0:
            return sizes
        sizes.append(size)


def _guess(size: int, value: object) -> str:
    if isinstance(value, bytes) or size not in (1, 2, 4, 8):
        return f"b8[{size}]"
    if isinstance(value, float) and size in (2, 4, 8):
        return f"f{8 * size}"
    return f"b{8 * size}"


def _allow(cuda: Any, function: Any, entry: str, shared: int, threads: int, cluster: int) -> None:
    """Asks for more shared memory and larger clusters than every GPU has."""
    attribute = cuda.CUfunction_attribute
    # less than the machine's own where the kernel's registers do not suffice for more
    held = _do(cuda.cuFuncGetAttribute, attribute.CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function)
    if threads > held:
        raise FragirError(f"`{entry}` has too many registers for more than {held} threads a block")
    static = _do(cuda.cuFuncGetAttribute, attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function)
    most = _do(
        cuda.cuDeviceGetAttribute,
        cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        _do(cuda.cuCtxGetDevice),
    )
    if shared < 0 or static + shared > most:
        raise FragirError(
            f"`{entry}` needs {static} bytes of static and {shared} of dynamic shared memory,"
            f" the GPU has {most} a block"
        )
    if shared:
        name = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        _do(cuda.cuFuncSetAttribute, function, name, shared)
    if cluster > machines.PORTABLE_CLUSTER:
        name = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        _do(cuda.cuFuncSetAttribute, function, name, 1)


def _config(
    cuda: Any,
    grid: Extent,
    block: Extent,
    cluster: Extent,
    shared: int,
    stream: int,
    cooperative: bool,
) -> Any:
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared
    config.hStream = stream
    attributes: list[Any] = []
    names = cuda.CUlaunchAttributeID
    if cluster != (1, 1, 1):
        attribute = cuda.CUlaunchAttribute()
        attribute.id = names.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        dimension = attribute.value.clusterDim
        dimension.x, dimension.y, dimension.z = cluster
        attributes.append(attribute)
    if cooperative:
        attribute = cuda.CUlaunchAttribute()
        attribute.id = names.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attribute.value.cooperative = 1
        attributes.append(attribute)
    if attributes:
        config.attrs = attributes
        config.numAttrs = len(attributes)
    return config


def _extent(extent: Extent) -> Extent:
    full = (*extent, 1, 1, 1)[:3]
    if not 1 <= len(extent) <= 3 or min(full) < 1:
        raise FragirError(f"{extent} is no size of a grid, a block or a cluster")
    return full


def _stream(stream: object) -> int:
    """The handle of a stream; 0 is the default stream."""
    if stream is None:
        return 0
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        version_and_handle: Any = protocol() if callable(protocol) else protocol
        return int(version_and_handle[1])
    if isinstance(stream, int):
        return stream
    raise FragirError(f"a {type(stream).__name__} is no CUDA stream")


# Buffers -----------------------------------------------------------------------------------------


class _Buffers:
    """Copies of numpy arrays on the GPU, for the time of one launch: one for each storage."""

    def __init__(self, cuda: Any, stream: int) -> None:
        self.cuda = cuda
        self.stream = stream
        self.arrays: list[Array] = []
        self._pointers: list[Any] = []
        self._addresses: dict[tuple[int, int], int] = {}
        self.constants: list[tuple[Any, ctypes.Array[ctypes.c_char]]] = []
        self._placed: dict[int, int] = {}

    def take(self, named: Iterable[tuple[str, Array]]) -> None:
        """Allocates for all arrays of a launch, and queues the copies of their bytes."""
        from fragir.emulator.storage import storages, unfit

        for place, array in named:
            if reason := unfit(array):
                raise FragirError(f"{place}: {reason[0]}", hint=reason[1])
            self.arrays.append(array)
        for storage in storages(self.arrays):
            pointer = _do(self.cuda.cuMemAlloc, max(1, storage.size))
            self._pointers.append(pointer)
            for index in storage.arrays:
                host = self.arrays[index].ctypes.data
                key = host, self.arrays[index].nbytes
                self._addresses[key] = int(pointer) + host - storage.start
            if storage.size:
                _do(self.cuda.cuMemcpyHtoDAsync, pointer, storage.start, storage.size, self.stream)

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
        pointer = _do(self.cuda.cuMemAlloc, len(data))
        # the copy is asynchronous: its source lives as long as the launch
        source = ctypes.create_string_buffer(data, len(data))
        self.constants.append((pointer, source))
        host = ctypes.addressof(source)
        _do(self.cuda.cuMemcpyHtoDAsync, pointer, host, len(data), self.stream)
        return int(pointer)

    def copy_back(self, entry: str) -> None:
        """Queues the copies back into the arrays that can be written."""
        for array in self.arrays:
            if array.nbytes and array.flags.writeable:
                _do(
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


def _value(buffers: _Buffers, argument: object, kind: str, place: str, stream: int) -> bytes:
    """The bytes of one parameter: an address, a scalar or a struct."""
    from fragir.emulator.parameters import needs_packer

    if is_tensor_map(argument):
        return _tensor_map(buffers, argument, kind, place)
    if needs_packer(argument):
        data = _packer(buffers, stream).pack(argument, place, size_of(kind))
        if len(data) != size_of(kind):
            raise FragirError(f"{place} has {len(data)} bytes, the parameter `{kind}` another size")
        return data
    array = _as_array(argument)
    if array is not None and array.ndim:
        address = buffers.pointer(array)
    elif _is_on_gpu(argument):
        address = _in_place(argument, place, stream)
    else:
        return pack(argument, kind, place)
    if size_of(kind) != 8:
        raise FragirError(f"{place} is an array, the parameter has the type `{kind}`")
    return address.to_bytes(8, "little")


def _packer(buffers: _Buffers, stream: int) -> Packer:
    """Packs what structs and pointers hold."""
    from fragir.emulator.parameters import Packer

    return Packer(
        lambda array, place: (
            _in_place(array, place, stream) if _is_on_gpu(array) else buffers.pointer(array)
        ),
        lambda tiles, place: encode(buffers.cuda, tiles, buffers.pointer(tiles.array), _do, place),
        lambda data, key, _: buffers.placed(data, key),
    )


def _is_on_gpu(argument: object) -> bool:
    return _as_array(argument) is None and (
        hasattr(argument, "__cuda_array_interface__") or hasattr(argument, "__dlpack__")
    )


def _tensor_map(buffers: _Buffers, tiles: Tiles, kind: str, place: str) -> bytes:
    """A tensor map as a parameter: its own bytes, or the address of a copy."""
    size = size_of(kind)
    if size not in (8, SIZE):
        raise FragirError(f"{place} is a tensor map, the parameter has the type `{kind}`")
    encoded = encode(buffers.cuda, tiles, buffers.pointer(tiles.array), _do, place)
    return encoded if size == SIZE else buffers.placed(encoded, id(tiles)).to_bytes(8, "little")


def _as_array(argument: object) -> Array | None:
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
            raise FragirError("NVIDIA's cuda-core is not installed", hint=_INSTALL) from error
    try:
        view_class = utilities.StridedMemoryView
        look = getattr(view_class, "from_any_interface", view_class)  # older ones: the class itself
        view = look(argument, stream_ptr=stream or _LEGACY_STREAM)
    except Exception as error:  # whatever the other package raises for its types
        raise FragirError(f"{place} cannot be used on the GPU: {error}") from error
    if not view.is_device_accessible:
        raise FragirError(f"{place} lives in host memory", hint="pass a numpy array")
    return int(view.ptr)
