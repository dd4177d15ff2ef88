"""The emulator in place of a driver, so that a kit can be rehearsed without a GPU.

`hook` puts it before `fragir.toolchain.driver` in every process of a rehearsal. A cubin is looked
up by its hash among the PTX of the kit (or what the rehearsal's ptxas has noted), and the emulator
runs that text. FRAGIR_STAND_IN is a JSON document:

    {"ptx": [FOLDER, ...], "refuse": false, "alter": [KERNEL, ...], "raise": [...], "hang": [...]}

A kernel is `ENTRY@HASH`, the first 16 digits of its PTX's SHA-256. `alter` changes a bit of what it
writes, `raise` ends the context, `hang` never comes back, `refuse` loads no carried cubin.
"""

from __future__ import annotations

import bisect
import ctypes
import hashlib
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from fragir import emulator
from tests.toolchain.fake_cuda import OK, Code, FakeCuda

MACHINE = "sm_90a"
_LARGE = 1 << 24
"""Bytes that are cleared only to push other ones out of a cache."""
_TYPES = {
    **{"BFLOAT16": ("bf16", 2), "FLOAT16": ("f16", 2), "FLOAT32": ("f32", 4)},
    **{"UINT8": ("u8", 1), "UINT16": ("u16", 2), "UINT32": ("u32", 4), "TFLOAT32": ("tf32", 4)},
    **{"INT32": ("s32", 4), "FLOAT64": ("f64", 8)},
}
"""Elements as a map's type calls them and as the emulator does, with their bytes."""


class StandIn(FakeCuda):
    """The driver's functions; kernels of any cubin whose PTX is known, run by the emulator."""

    def __init__(self, options: dict[str, Any]) -> None:
        FakeCuda.__init__(self, ())
        self.options = options
        self.folders = [Path(folder) for folder in options.get("ptx", ())]
        self.modules: list[dict[str, str]] = []
        self.functions: list[tuple[str, str]] = []
        self.broken = False
        self.starts: list[int] = []
        self.ran: set[tuple[int, tuple[bytes, ...]]] = set()

    # memory: what a pointer points into

    def cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        found = super().cuMemAlloc(size)
        self.starts = sorted(self.memory)
        self.ran.clear()
        return found

    def cuMemFree(self, pointer: int) -> tuple[Any, ...]:
        found = super().cuMemFree(int(pointer))
        self.starts = sorted(self.memory)
        return found

    def cuMemcpyHtoDAsync(self, to: int, host: int, size: int, stream: int) -> tuple[Any, ...]:
        self.ran.clear()
        return super().cuMemcpyHtoDAsync(int(to), host, size, stream)

    def cuMemcpyDtoHAsync(self, host: int, origin: int, size: int, stream: int) -> tuple[Any, ...]:
        return super().cuMemcpyDtoHAsync(host, int(origin), size, stream)

    def cuMemsetD8Async(self, to: int, value: int, size: int, stream: int) -> tuple[Any, ...]:
        if size < _LARGE:
            self.ran.clear()
            ctypes.memset(int(to), value, size)
        return OK

    def _held(self, address: int) -> np.ndarray[Any, Any] | None:
        """The bytes from an address on to the end of its allocation; None where there is none."""
        at = bisect.bisect_right(self.starts, address) - 1
        if at < 0:
            return None
        start = self.starts[at]
        block = self.memory[start]
        if address >= start + len(block):
            return None
        return np.frombuffer(memoryview(block), np.uint8)[address - start :]

    # time

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        return (*OK, [0.0])

    def cuEventRecord(self, event: list[float], stream: int) -> tuple[Any, ...]:
        event[0] = time.perf_counter()
        return OK

    def cuEventElapsedTime(self, before: list[float], after: list[float]) -> tuple[Any, ...]:
        return (*OK, max(1e-3, (after[0] - before[0]) * 1e3))

    def cuEventSynchronize(self, event: list[float]) -> tuple[Any, ...]:
        return OK

    def cuEventDestroy(self, event: list[float]) -> tuple[Any, ...]:
        return OK

    def cuStreamSynchronize(self, stream: int) -> tuple[Any, ...]:
        return (Code.CUDA_ERROR_ILLEGAL_ADDRESS,) if self.broken else OK

    def cuCtxSynchronize(self) -> tuple[Any, ...]:
        return self.cuStreamSynchronize(0)

    # modules and functions

    def cuModuleLoadData(self, image: bytes) -> tuple[Any, ...]:
        name = hashlib.sha256(image).hexdigest()
        for number, folder in enumerate(self.folders):
            path = folder / f"{name}.ptx"
            if path.exists() and not (number == 0 and self.options.get("refuse")):
                self.modules.append(entries(path.read_text("utf-8")))
                return (*OK, len(self.modules) - 1)
        return Code.CUDA_ERROR_NO_BINARY_FOR_GPU, None

    def cuModuleGetFunction(self, module: int, name: bytes) -> tuple[Any, ...]:
        text = self.modules[module].get(name.decode())
        if text is None:
            return Code.CUDA_ERROR_NOT_FOUND, None
        self.functions.append((name.decode(), text))
        return (*OK, len(self.functions) - 1)

    def cuFuncGetAttribute(self, attribute: Any, function: int) -> tuple[Any, ...]:
        shared = "SHARED_SIZE" in attribute.name
        return (*OK, 0 if shared else 1024)

    def _sizes(self, function: int) -> list[int]:
        """Bytes of each parameter."""
        name, text = self.functions[function]
        head = text[re.search(rf"\.entry\s+{re.escape(name)}\b", text).end() :].partition("{")[0]  # type: ignore[union-attr]
        head = head.partition(")")[0]
        found = re.findall(
            r"\.param\s+(?:\.align\s+\d+\s+)?\.[a-z](\d+)[^,\n[]*(?:\[(\d+)\])?", head
        )
        return [int(bits) // 8 * int(count or 1) for bits, count in found]

    def cuFuncGetParamInfo(self, function: int, index: int) -> tuple[Any, ...]:
        sizes = self._sizes(function)
        if index >= len(sizes):
            return Code.CUDA_ERROR_INVALID_VALUE, 0, 0
        return (*OK, 8 * index, sizes[index])

    # launches

    def cuLaunchKernelEx(
        self, config: Any, function: int, parameters: int, extra: int
    ) -> tuple[Any, ...]:
        if self.broken:
            return (Code.CUDA_ERROR_ILLEGAL_ADDRESS,)
        sizes = self._sizes(function)
        pointers = (ctypes.c_void_p * max(1, len(sizes))).from_address(parameters)
        values = tuple(
            ctypes.string_at(pointer or 0, size)
            for pointer, size in zip(pointers, sizes, strict=False)
        )
        call = (function, values, _extents(config), config.sharedMemBytes, _cluster(config))
        if self.recording is not None:
            self.recording.append(call)  # type: ignore[arg-type]
            return OK
        return self._launch(*call)

    def cuGraphLaunch(self, graph: Any, stream: int) -> tuple[Any, ...]:
        for call in graph:
            (code,) = self._launch(*call)
            if code is not Code.CUDA_SUCCESS:
                return (code,)
        return OK

    def _launch(
        self,
        function: int,
        values: tuple[bytes, ...],
        extents: tuple[tuple[int, int, int], tuple[int, int, int]],
        shared: int,
        cluster: tuple[int, int, int],
    ) -> tuple[Any, ...]:
        entry, text = self.functions[function]
        if (function, values) in self.ran:  # the same on the same arrays: only its time is asked
            return OK
        self.ran.add((function, values))
        kernel = f"{entry}@{hash_of(text)}"
        if kernel in self.options.get("raise", ()):
            self.broken = True
            return (Code.CUDA_ERROR_ILLEGAL_ADDRESS,)
        if kernel in self.options.get("hang", ()):
            time.sleep(1e6)
        arrays: list[np.ndarray[Any, Any]] = []
        given: list[object] = []
        for value in values:
            number = int.from_bytes(value, "little")
            held = self._held(number) if len(value) == 8 else None
            if len(value) == 128:
                given.append(self._tensor_map(number & 0xFFFF))
            elif held is not None:
                arrays.append(held)
                given.append(held)
            else:
                given.append(value)
        grid, block = extents
        emulator.run(
            text,
            entry,
            grid=grid,
            block=block,
            arguments=given,
            shared=shared,
            cluster=cluster,
            target=MACHINE,
        )
        if kernel in self.options.get("alter", ()):
            for held in arrays:  # which of them it writes only its text knows
                held[5] ^= 4
        return OK

    def cuTensorMapEncodeTiled(self, *arguments: Any) -> tuple[Any, ...]:
        """Keeps the arguments; the map begins with its number."""
        code, encoded = super().cuTensorMapEncodeTiled(*arguments)
        number = len(self.maps).to_bytes(2, "little")
        ctypes.memmove(encoded.getPtr(), number + bytes(126), 128)
        return code, encoded

    def _tensor_map(self, number: int) -> emulator.TensorMap:
        """The n-th map that was encoded, over memory of the stand-in."""
        kind, _, address, extents, steps, box, _, _, swizzle, *_ = self.maps[number - 1]
        element, size = _TYPES[kind.name.removeprefix("CU_TENSOR_MAP_DATA_TYPE_")]
        width: Any = int(re.sub(r"\D", "", swizzle.name) or 0)
        held = self._held(int(address))
        assert held is not None
        return emulator.TensorMap(
            held,
            tuple(int(one) for one in reversed(box)),
            width,
            strides=(*(int(one) for one in reversed(steps)), size),
            shape=tuple(int(one) for one in reversed(extents)),
            kind=element,
        )


def _extents(config: Any) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    return (
        (config.gridDimX, config.gridDimY, config.gridDimZ),
        (config.blockDimX, config.blockDimY, config.blockDimZ),
    )


def _cluster(config: Any) -> tuple[int, int, int]:
    """The blocks of a cluster that a launch asks for."""
    for attribute in config.attrs[: config.numAttrs]:
        if attribute.id.name == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION":
            size = attribute.value.clusterDim
            return size.x, size.y, size.z
    return 1, 1, 1


def entries(ptx: str) -> dict[str, str]:
    """Each entry of a module as a text of its own, with all that is no other entry."""
    marks = [m for m in re.finditer(r"(?m)^\s*(?:\.visible\s+)?\.entry\s+([\w$]+)", ptx)]
    if len(marks) < 2:
        return {mark[1]: ptx for mark in marks}
    ends = [_end(ptx, mark.end()) for mark in marks]
    spans = [(mark.start(), end) for mark, end in zip(marks, ends, strict=True)]
    starts, stops = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(ptx)]
    between = [ptx[start:stop] for start, stop in zip(starts, stops, strict=True)]
    return {
        mark[1]: "".join([*between[: at + 1], ptx[slice(*spans[at])], *between[at + 1 :]])
        for at, mark in enumerate(marks)
    }


def _end(ptx: str, start: int) -> int:
    """Where the body that begins behind `start` ends."""
    depth, at = 0, ptx.index("{", start)
    for found in re.compile(r"[{}]").finditer(ptx, at):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return found.end()
    return len(ptx)


def hash_of(ptx: str) -> str:
    """What names the text of an entry."""
    return hashlib.sha256(ptx.encode()).hexdigest()[:16]


# In the driver's place ---------------------------------------------------------------------------


def place_of(array: Any, *_: object) -> int:
    """Where an array of `device` lies."""
    return int(array.address)


def replace(driver: Any, options: dict[str, Any]) -> StandIn:
    """Puts a stand-in before a driver module that is loaded."""
    from fragir.toolchain import gpu_arguments

    stand_in = StandIn(options)
    driver._bindings = lambda: stand_in
    # cuda-core, which knows where an array of another package lies, needs a GPU
    gpu_arguments._in_place = place_of  # pyright: ignore[reportPrivateUsage]
    return stand_in
