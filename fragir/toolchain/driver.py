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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from fragir.errors import FragirError, pass_on
from fragir.ptx import machines
from fragir.toolchain.arguments import size_of
from fragir.toolchain.gpu_arguments import INSTALL, Buffers, as_array, value_of

if TYPE_CHECKING:
    from fragir.emulator.numbers.types import Array


# -- launch config ---------------------------------------------------------------------------------
# How a launch is told to the driver: blocks, threads, clusters, the stream.

Extent = tuple[int, ...]


def launch_config(
    cuda: ModuleType,
    grid: Extent,
    block: Extent,
    cluster: Extent,
    shared: int,
    stream: int,
    cooperative: bool,
) -> object:
    """A `CUlaunchConfig` of blocks, threads and blocks of a cluster."""
    config = cuda.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = grid
    config.blockDimX, config.blockDimY, config.blockDimZ = block
    config.sharedMemBytes = shared
    config.hStream = stream
    attributes: list[object] = []
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


def full_extent(extent: Extent) -> Extent:
    """An extent in all three dimensions."""
    full = (*extent, 1, 1, 1)[:3]
    if not 1 <= len(extent) <= 3 or min(full) < 1:
        raise FragirError(f"{extent} is no size of a grid, a block or a cluster")
    return full


def stream_handle(stream: object) -> int:
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
    variables: Mapping[str, object] | None = None,
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
    blocks are on the GPU together, as grids need that synchronise. `variables`: numpy arrays for
    variables in global and constant memory, by name and of their size, copied in before the kernel
    runs and, where they can be written, back. `fragir.emulator.Struct`, `Pointer` and `pointers`
    are arguments that hold pointers.

    Raises FragirError in one line: no GPU, a wrong argument, or what the driver reports.
    """
    cuda = _context()
    grid, block, cluster = (full_extent(e) for e in (grid, block, cluster))
    problem = machines.launch_problem(
        gpu().target, grid=grid, block=block, cluster=cluster, shared=shared
    )
    if problem is not None:
        raise FragirError(f"`{entry}` cannot be launched so: {problem[0]}", hint=problem[1])
    function = _function(cuda, cubin, entry)
    handle = stream_handle(stream)
    types = _types(cuda, function, entry, arguments, parameters)
    _allow(cuda, function, entry, shared, math.prod(block), math.prod(cluster))
    buffers = Buffers(cuda, handle, _do)
    try:
        from fragir.emulator.launch.arguments import arrays_of

        places = [f"argument {index}" for index in range(len(arguments))]
        buffers.take(pair for a, place in zip(arguments, places) for pair in arrays_of(a, place))
        values = [
            value_of(buffers, argument, kind, place, handle)
            for place, argument, kind in zip(places, arguments, types, strict=True)
        ]
        storage = [ctypes.create_string_buffer(value, len(value)) for value in values]
        pointers = (ctypes.c_void_p * max(1, len(storage)))(*map(ctypes.addressof, storage))
        kept = [
            _variable(cuda, _module(cuda, cubin), name, value, handle)
            for name, value in (variables or {}).items()
        ]
        config = launch_config(cuda, grid, block, cluster, shared, handle, cooperative)
        _do(cuda.cuLaunchKernelEx, config, function, ctypes.addressof(pointers), 0, entry=entry)
        buffers.copy_back(entry)
        for array, pointer in kept:
            if array.flags.writeable:
                host = array.ctypes.data
                _do(cuda.cuMemcpyDtoHAsync, host, pointer, array.nbytes, handle, entry=entry)
        if stream is None or kept or buffers.arrays or buffers.constants:
            _do(cuda.cuStreamSynchronize, handle, entry=entry)
    finally:
        buffers.free()


def prepare(
    cubin: bytes,
    entry: str,
    *,
    grid: Extent,
    block: Extent,
    arguments: Sequence[object] = (),
    shared: int = 0,
    cluster: Extent = (1, 1, 1),
    stream: object = None,
) -> Callable[[], None]:
    """A kernel that is started as often as the result is called, with as little as can be.

    What can be done beforehand is done here, as for measuring. `arguments` as of `launch`, but
    arrays lie on the GPU, or are given by their addresses, and stay where they are as long as this
    is used. A call does not wait for the kernel.
    """
    cuda = _context()
    grid, block, cluster = (full_extent(e) for e in (grid, block, cluster))
    function = _function(cuda, cubin, entry)
    handle = stream_handle(stream)
    types = _types(cuda, function, entry, arguments, None)
    _allow(cuda, function, entry, shared, math.prod(block), math.prod(cluster))
    buffers = Buffers(cuda, handle, _do)
    for place, argument in enumerate(arguments):
        if as_array(argument) is not None:
            raise FragirError(f"argument {place} lies on the host", hint="copy it to the GPU")
    storage = [
        ctypes.create_string_buffer(value, len(value))
        for value in (
            value_of(buffers, argument, kind, f"argument {place}", handle)
            for place, (argument, kind) in enumerate(zip(arguments, types, strict=True))
        )
    ]
    pointers = (ctypes.c_void_p * max(1, len(storage)))(*map(ctypes.addressof, storage))
    config = launch_config(cuda, grid, block, cluster, shared, handle, False)

    def start() -> None:
        kept = storage, buffers  # what `pointers` points to
        _do(cuda.cuLaunchKernelEx, config, function, ctypes.addressof(pointers), 0, entry=entry)
        del kept

    return start


def call(name: str, *arguments: object) -> Any:
    """Calls a function of the driver by its name; its results, or FragirError with its words."""
    return _do(getattr(_context(), name), *arguments)


def capture_mode() -> object:
    """How a stream records a graph: what other threads do does not disturb it."""
    return _context().CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL


def resident_blocks(
    cubin: bytes, entry: str, *, block: Extent, shared: int = 0, cluster: int = 1
) -> int:
    """How many blocks of a kernel the GPU runs at once, as the driver's occupancy calculator says.

    `block` counts threads, `shared` bytes of dynamic shared memory, `cluster` blocks along x. At
    least one cluster: a launch says what is wrong where not one fits.
    """
    cuda = _context()
    block = full_extent(block)
    function = _function(cuda, cubin, entry)
    _allow(cuda, function, entry, shared, math.prod(block), cluster)
    if cluster > 1:
        config = launch_config(cuda, (cluster, 1, 1), block, (cluster, 1, 1), shared, 0, False)
        return cluster * max(1, _do(cuda.cuOccupancyMaxActiveClusters, function, config))
    count = _do(
        cuda.cuDeviceGetAttribute,
        cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
        _do(cuda.cuCtxGetDevice),
    )
    each = _do(cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor, function, math.prod(block), shared)
    return count * max(1, each)


# The driver and its errors ----------------------------------------------------------------------


def _bindings() -> ModuleType:
    """The module `cuda.bindings.driver`."""
    try:
        return importlib.import_module("cuda.bindings.driver")
    except ImportError as error:
        raise FragirError("NVIDIA's CUDA packages are not installed", hint=INSTALL) from error


@functools.cache
def _device(cuda: ModuleType) -> object:
    """The primary context of the first GPU."""
    try:
        (code, *_) = cuda.cuInit(0)
    except Exception as error:  # the packages raise their own types where no driver is found
        pass_on(error)
        raise FragirError("no NVIDIA driver was found", hint="run on the emulator") from error
    if code != cuda.CUresult.CUDA_SUCCESS:
        raise FragirError(
            f"the NVIDIA driver cannot be used: {_driver_text(cuda, code)}",
            hint="run on the emulator",
        )
    if _do(cuda.cuDeviceGetCount) == 0:
        raise FragirError("no NVIDIA GPU was found", hint="run on the emulator")
    return _do(cuda.cuDevicePrimaryCtxRetain, _do(cuda.cuDeviceGet, 0))


def _context() -> ModuleType:
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
        pass_on(error)
        raise FragirError(f"the CUDA driver cannot do {function.__name__}: {error}") from error
    if code.value != 0:
        what = f"running `{entry}`" if entry else function.__name__
        hint = None
        if entry and code.name not in ("CUDA_ERROR_INVALID_VALUE", "CUDA_ERROR_OUT_OF_MEMORY"):
            hint = "`fragir emulate --check` finds the instruction; restart before using the GPU"
        raise FragirError(f"the GPU failed at {what}: {_driver_text(_bindings(), code)}", hint=hint)
    return results[0] if len(results) == 1 else tuple(results)


def _driver_text(cuda: ModuleType, code: Any) -> str:
    """The driver's own words for an error."""
    failed, text = cuda.cuGetErrorString(code)
    words = text.decode() if failed.value == 0 and text else "unknown error"
    return f"{code.name} ({words})"


# Functions and their parameters ------------------------------------------------------------------

_KEPT_MODULES = 32
_modules: OrderedDict[tuple[int, bytes], object] = OrderedDict()


def _function(cuda: ModuleType, cubin: bytes, entry: str) -> object:
    """The function of a cubin."""
    code, function = cuda.cuModuleGetFunction(_module(cuda, cubin), entry.encode())
    if code.value != 0:
        raise FragirError(f"the cubin has no entry `{entry}`")
    return function


def _variable(
    cuda: ModuleType, module: object, name: str, value: object, stream: int
) -> tuple[Array, object]:
    """Queues the copy of an array into a variable of a module; the array and where that lies."""
    array = as_array(value)
    if array is None or not array.flags.c_contiguous:
        raise FragirError(f"the variable {name} takes a C-contiguous numpy array")
    code, pointer, size = cuda.cuModuleGetGlobal(module, name.encode())
    if code.value != 0:
        raise FragirError(f"the cubin has no variable {name}")
    if size != array.nbytes:
        raise FragirError(f"the variable {name} has {size} bytes, its array {array.nbytes}")
    _do(cuda.cuMemcpyHtoDAsync, pointer, array.ctypes.data, size, stream)
    return array, pointer


def _module(cuda: ModuleType, cubin: bytes) -> object:
    """The module of a cubin; modules stay loaded, those used last."""
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
    return module


def _types(
    cuda: ModuleType,
    function: object,
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


def _sizes(cuda: ModuleType, function: object) -> list[int]:
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


def _allow(
    cuda: ModuleType, function: object, entry: str, shared: int, threads: int, cluster: int
) -> None:
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
