"""What measures kernels on a GPU: arrays there, events, a flushed L2, clocks, rounds in turns.

Everything goes through the driver that `fragir.toolchain.driver` uses, so that a stand-in of it
rehearses all of this without a GPU.
"""

from __future__ import annotations

import math
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from fragir.toolchain import driver

_FLUSH = 256 << 20
"""Bytes written before each run: more than twice any L2 cache."""


class DeviceArray:
    """An array on the GPU, until `free`; other packages see it without a copy.

    `type` is how numpy calls an element: bf16 and fp8 go as unsigned numbers of their size.
    """

    def __init__(self, host: np.ndarray[Any, Any]) -> None:
        self.shape, self.dtype = host.shape, host.dtype
        self.bytes = host.nbytes
        self.address = int(driver.call("cuMemAlloc", max(1, host.nbytes)))
        self.put(host)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "strides": None,
            "version": 3,
        }

    def put(self, host: np.ndarray[Any, Any]) -> None:
        """Copies an array of the same size to the GPU, and waits."""
        host = np.ascontiguousarray(host)
        driver.call("cuMemcpyHtoDAsync", self.address, host.ctypes.data, self.bytes, 0)
        driver.call("cuStreamSynchronize", 0)

    def get(self) -> np.ndarray[Any, Any]:
        """The array, copied to the host."""
        host = np.empty(self.shape, self.dtype)
        driver.call("cuMemcpyDtoHAsync", host.ctypes.data, self.address, self.bytes, 0)
        driver.call("cuStreamSynchronize", 0)
        return host

    def free(self) -> None:
        driver.call("cuMemFree", self.address)


class Clocks(NamedTuple):
    """What nvidia-smi says: MHz, W, degrees; None where it is not there."""

    sm: int | None
    memory: int | None
    power: float | None
    temperature: int | None


def clocks() -> Clocks:
    """The clocks at this moment."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return Clocks(None, None, None, None)
    query = "--query-gpu=clocks.sm,clocks.mem,power.draw,temperature.gpu"
    command = [tool, query, "--format=csv,noheader,nounits", "-i", "0"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        sm, memory, power, temperature = (
            float(word) for word in done.stdout.splitlines()[0].split(",")
        )
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return Clocks(None, None, None, None)
    return Clocks(int(sm), int(memory), power, int(temperature))


def measured(
    contenders: Mapping[str, Callable[[], None]],
    rounds: int,
    *,
    seed: int = 0,
    warm: int = 3,
    flush: bool = True,
) -> dict[str, list[float]]:
    """Milliseconds of each run of each contender, which take turns in another order each round.

    Before each run the L2 cache is written over (not all of it without `flush`), which also gives
    the host time to queue the run between its two events.
    """
    size = _FLUSH if flush else _FLUSH >> 4
    junk = int(driver.call("cuMemAlloc", size))
    events = [driver.call("cuEventCreate", 0) for _ in range(2 * len(contenders))]
    times: dict[str, list[float]] = {name: [] for name in contenders}
    order, draw = list(contenders), random.Random(seed)
    try:
        for index in range(warm + rounds):
            draw.shuffle(order)
            for name, (before, after) in zip(order, zip(events[::2], events[1::2]), strict=True):
                driver.call("cuMemsetD8Async", junk, index % 256, size, 0)
                driver.call("cuEventRecord", before, 0)
                contenders[name]()
                driver.call("cuEventRecord", after, 0)
            driver.call("cuStreamSynchronize", 0)
            if index >= warm:
                for name, before, after in zip(order, events[::2], events[1::2], strict=True):
                    times[name].append(float(driver.call("cuEventElapsedTime", before, after)))
    finally:
        driver.call("cuMemFree", junk)
        for event in events:
            driver.call("cuEventDestroy", event)
    return times


class Median(NamedTuple):
    """The median of some runs and its 95 % interval, in the unit of the runs."""

    median: float
    low: float
    high: float


def median(values: Sequence[float]) -> Median:
    """The median, with the interval between two of the sorted values.

    The interval is free of assumptions: so many of n values lie below the median as coins show
    heads. Of fewer than six values it is their whole range, and holds less often.
    """
    ordered = sorted(values)
    count = len(ordered)
    tail, index = 0.0, 0
    while index < count // 2:
        tail += math.comb(count, index) / 2**count
        if tail > 0.025:
            break
        index += 1
    index = max(0, index - 1)
    return Median(statistics.median(ordered), ordered[index], ordered[count - 1 - index])
