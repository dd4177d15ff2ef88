"""A stand-in for `cuda.bindings.driver` with memory of its own and one kernel.

It keeps what the driver is told, so that tests see the packing of parameters, the copies and the
launch configuration without a GPU. Its kernel adds 1 to every byte of the buffers that the
parameters point to.
"""

from __future__ import annotations

import ctypes
import importlib
from enum import Enum
from typing import Any

REAL: Any = importlib.import_module("cuda.bindings.driver")


class Code(Enum):
    """The error codes that the tests make."""

    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_INVALID_IMAGE = 200
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209
    CUDA_ERROR_NOT_FOUND = 500
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


OK = (Code.CUDA_SUCCESS,)


class FakeCuda:
    """Functions and types by the names of `cuda.bindings.driver`."""

    CUresult = Code
    CUdevice_attribute: Any = REAL.CUdevice_attribute
    CUfunction_attribute: Any = REAL.CUfunction_attribute
    CUlaunchAttributeID: Any = REAL.CUlaunchAttributeID
    CUlaunchConfig: Any = REAL.CUlaunchConfig
    CUlaunchAttribute: Any = REAL.CUlaunchAttribute
    CUstreamCaptureMode: Any = REAL.CUstreamCaptureMode
    CUtensorMapDataType: Any = REAL.CUtensorMapDataType
    CUtensorMapInterleave: Any = REAL.CUtensorMapInterleave
    CUtensorMapSwizzle: Any = REAL.CUtensorMapSwizzle
    CUtensorMapL2promotion: Any = REAL.CUtensorMapL2promotion
    CUtensorMapFloatOOBfill: Any = REAL.CUtensorMapFloatOOBfill
    cuuint32_t: Any = REAL.cuuint32_t
    cuuint64_t: Any = REAL.cuuint64_t

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self.sizes = sizes
        self.devices = 1
        self.init = Code.CUDA_SUCCESS
        self.image = Code.CUDA_SUCCESS
        self.kernel = Code.CUDA_SUCCESS
        self.current = 0
        self.memory: dict[int, ctypes.Array[ctypes.c_char]] = {}
        self.freed = 0
        self.parameters: list[bytes] = []
        self.config: Any = None
        self.attributes: list[tuple[Any, int]] = []
        self.loaded = 0
        self.synchronized: list[int] = []
        self.recording: list[list[bytes]] | None = None
        #: How many bytes the kernel takes of what a pointer inside of a buffer points to.
        self.lengths: dict[int, int] = {}
        self.maps: list[tuple[Any, ...]] = []
        #: Variables of the module by name; the kernel adds 1 to their bytes too.
        self.variables: dict[bytes, ctypes.Array[ctypes.c_char]] = {}

    def cuInit(self, flags: int) -> tuple[Any, ...]:
        return (self.init,)

    def cuGetErrorString(self, code: Code) -> tuple[Any, ...]:
        return (*OK, code.name.removeprefix("CUDA_ERROR_").lower().replace("_", " ").encode())

    def cuDriverGetVersion(self) -> tuple[Any, ...]:
        return (*OK, 13000)

    def cuDeviceGetCount(self) -> tuple[Any, ...]:
        return (*OK, self.devices)

    def cuDeviceGet(self, ordinal: int) -> tuple[Any, ...]:
        return (*OK, ordinal)

    def cuDeviceGetName(self, length: int, device: int) -> tuple[Any, ...]:
        return (*OK, b"A GPU\0\0")

    def cuDeviceTotalMem(self, device: int) -> tuple[Any, ...]:
        return (*OK, 1 << 36)

    def cuDeviceGetAttribute(self, attribute: Any, device: int) -> tuple[Any, ...]:
        names = self.CUdevice_attribute
        values = {
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: 9,
            names.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: 0,
            names.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 232448,
            names.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: 132,
        }
        return (*OK, values[attribute])

    def cuDevicePrimaryCtxRetain(self, device: int) -> tuple[Any, ...]:
        return (*OK, 77)

    def cuCtxGetCurrent(self) -> tuple[Any, ...]:
        return (*OK, self.current)

    def cuCtxSetCurrent(self, context: int) -> tuple[Any, ...]:
        self.current = context
        return OK

    def cuCtxGetDevice(self) -> tuple[Any, ...]:
        return (*OK, 0)

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        self.loaded += 1
        return (self.image, 5)

    def cuModuleUnload(self, module: int) -> tuple[Any, ...]:
        return OK

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[Any, ...]:
        return (*OK, 6) if name == b"add" else (Code.CUDA_ERROR_NOT_FOUND, None)

    def cuModuleGetGlobal(self, module: int, name: bytes) -> tuple[Any, ...]:
        if name not in self.variables:
            return Code.CUDA_ERROR_NOT_FOUND, None, 0
        block = self.variables[name]
        return (*OK, ctypes.addressof(block), len(block))

    def cuFuncGetParamInfo(self, function: int, index: int) -> tuple[Any, ...]:
        if index >= len(self.sizes):
            return Code.CUDA_ERROR_INVALID_VALUE, 0, 0
        return (*OK, 8 * index, self.sizes[index])

    def cuFuncGetAttribute(self, attribute: Any, function: int) -> tuple[Any, ...]:
        return (*OK, 1024)

    def cuFuncSetAttribute(self, function: int, attribute: Any, value: int) -> tuple[Any, ...]:
        self.attributes.append((attribute, value))
        return OK

    def cuOccupancyMaxActiveBlocksPerMultiprocessor(
        self, function: int, threads: int, shared: int
    ) -> tuple[Any, ...]:
        return (*OK, 2048 // threads if shared < 1 << 16 else 1)

    def cuOccupancyMaxActiveClusters(self, function: int, config: Any) -> tuple[Any, ...]:
        self.config = config
        return (*OK, 60)

    def cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        if size > 1 << 30:
            return Code.CUDA_ERROR_OUT_OF_MEMORY, None
        block = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(block)] = block
        return (*OK, ctypes.addressof(block))

    def cuMemFree(self, pointer: int) -> tuple[Any, ...]:
        self.freed += 1
        del self.memory[pointer]
        return OK

    def cuMemcpyHtoDAsync(self, to: int, host: int, size: int, stream: int) -> tuple[Any, ...]:
        ctypes.memmove(to, host, size)
        return OK

    def cuMemcpyDtoHAsync(self, host: int, origin: int, size: int, stream: int) -> tuple[Any, ...]:
        ctypes.memmove(host, origin, size)
        return OK

    def cuLaunchKernelEx(
        self, config: Any, function: int, parameters: int, extra: int
    ) -> tuple[Any, ...]:
        self.config = config
        if self.kernel is Code.CUDA_SUCCESS:
            pointers = (ctypes.c_void_p * len(self.sizes)).from_address(parameters)
            self.parameters = [
                ctypes.string_at(pointer or 0, size)
                for pointer, size in zip(pointers, self.sizes, strict=True)
            ]
            if self.recording is not None:
                self.recording.append(list(self.parameters))
            else:
                self._run(self.parameters)
            for block in self.variables.values():
                block.raw = bytes((byte + 1) % 256 for byte in block.raw)
        return (self.kernel,)

    def _run(self, parameters: list[bytes]) -> None:
        """The kernel: of buffers all bytes, of what lies in one as many as `lengths` says."""
        for value in parameters:
            pointer = int.from_bytes(value, "little")
            block = self.memory.get(pointer)
            count = self.lengths.get(pointer, len(block) if block is not None else 0)
            held = ctypes.string_at(pointer, count) if count else b""
            if held:
                ctypes.memmove(pointer, bytes((byte + 1) % 256 for byte in held), count)

    # graphs: what a stream records is run when the graph is launched

    def cuStreamCreate(self, flags: int) -> tuple[Any, ...]:
        return (*OK, 7)

    def cuStreamDestroy(self, stream: int) -> tuple[Any, ...]:
        return OK

    def cuStreamBeginCapture(self, stream: int, mode: Any) -> tuple[Any, ...]:
        self.recording = []
        return OK

    def cuStreamEndCapture(self, stream: int) -> tuple[Any, ...]:
        recorded, self.recording = self.recording, None
        return (*OK, recorded)

    def cuGraphInstantiate(self, graph: Any, flags: int) -> tuple[Any, ...]:
        return (*OK, graph)

    def cuGraphDestroy(self, graph: Any) -> tuple[Any, ...]:
        return OK

    def cuGraphExecDestroy(self, graph: Any) -> tuple[Any, ...]:
        return OK

    def cuGraphLaunch(self, graph: Any, stream: int) -> tuple[Any, ...]:
        for parameters in graph:
            self._run(parameters)
        return OK

    def cuStreamSynchronize(self, stream: int) -> tuple[Any, ...]:
        self.synchronized.append(stream)
        return OK

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> tuple[Any, ...]:
        """Keeps the arguments; the map is 128 bytes of its number."""
        self.maps.append(arguments)
        encoded = REAL.CUtensorMap()
        ctypes.memset(encoded.getPtr(), len(self.maps), 128)
        return (*OK, encoded)
