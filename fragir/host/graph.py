"""The launches of a program as a CUDA graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fragir.errors import FragirError
from fragir.host.memory import GpuArena
from fragir.toolchain import driver
from fragir.toolchain.launch_config import stream_handle


class Graph:
    """What `record(stream)` launches, instantiated: a launch of all costs the host one call.

    It works on the arrays that it was made for, as long as they live; `close` frees its memory.
    """

    def __init__(self, memory: GpuArena, record: Callable[[int], None]):
        self._memory = memory
        self._stream = driver.call("cuStreamCreate", 1)  # CU_STREAM_NON_BLOCKING
        driver.call("cuStreamBeginCapture", self._stream, driver.capture_mode())
        try:
            record(int(self._stream))
        finally:
            graph = driver.call("cuStreamEndCapture", self._stream)
        self._graph: Any = driver.call("cuGraphInstantiate", graph, 0)
        driver.call("cuGraphDestroy", graph)

    def launch(self, stream: object = None) -> None:
        """Starts all launches on a stream, and waits for them where none is given."""
        if self._graph is None:
            raise FragirError("the graph is closed", hint="make another with program.graph(...)")
        handle = stream_handle(stream)
        driver.call("cuGraphLaunch", self._graph, handle)
        if stream is None:
            driver.call("cuStreamSynchronize", handle)

    def close(self) -> None:
        """Frees the graph and its temporaries."""
        if self._graph is not None:
            driver.call("cuGraphExecDestroy", self._graph)
            driver.call("cuStreamDestroy", self._stream)
            self._graph = None
            self._memory.free()
