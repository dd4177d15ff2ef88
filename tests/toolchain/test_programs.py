"""Programs of several kernels on a stand-in of the driver: copies, memory, graphs."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fragir
from fragir.dialects.shorthands import memref_type
from fragir.host import Program
from fragir.host.memory import GpuArena
from fragir.toolchain import driver

BYTES = "memref<256xi8>"
TEXT = f"""
func.func @main(%x: {BYTES}, %y: {BYTES}) attributes {{frag.host}} {{
  %t = memref.alloc() : {BYTES}
  frag.launch @add(%x, %t) : {BYTES}, {BYTES}
  frag.launch @add(%t, %y) : {BYTES}, {BYTES}
  func.return
}}
func.func @add(%x: {BYTES}, %y: {BYTES}) {{
  %a = frag.load %x[0] : {BYTES} -> !frag.tile<256xi8>
  frag.store %a, %y[0] : !frag.tile<256xi8>, {BYTES}
  func.return
}}"""


class View:
    """As cuda-core sees an array on a GPU."""

    is_device_accessible = True

    def __init__(self, exporter: Any) -> None:
        self.ptr = exporter.__cuda_array_interface__["data"][0]

    @classmethod
    def from_any_interface(cls, exporter: Any, stream_ptr: int) -> View:
        return cls(exporter)


@pytest.fixture(autouse=True)
def seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuda.core.utils.StridedMemoryView", View)


@pytest.fixture
def program() -> Program:
    made = fragir.compile(TEXT)
    assert isinstance(made, Program)
    assert made.assembled
    return made


def test_arrays_of_the_host(make: Callable[..., Any], program: Program) -> None:
    """Copied there and back once; the stand-in's kernel adds one to all that it is given."""
    fake = make(8, 8)
    x, y = np.arange(256).astype(np.int8), np.full(256, 5, np.int8)
    first, second = x.copy(), y.copy()
    first.flags.writeable = False
    assert program(first, second, on="gpu") is None
    # the arrays are one piece of memory, which the first launch gets a pointer to
    assert np.array_equal(first, x)  # it cannot be written
    assert np.array_equal(second, y + 1)
    assert not fake.memory
    assert len(fake.synchronized) >= 3


def test_a_graph(make: Callable[..., Any], program: Program) -> None:
    fake = make(8, 8)
    memory = [GpuArena(256), GpuArena(256)]
    element = memref_type(program.signature[0].type).element_type
    x, y = (one.piece(0, (256,), element).value for one in memory)
    graph = program.graph(x, y)
    found = np.empty(256, np.int8)
    memory[1].read(0, found)
    assert not found.any()  # recorded, not run
    for times in (1, 2):
        graph.launch()
        memory[1].read(0, found)
        assert np.array_equal(found, np.full(256, times, np.int8))
    graph.close()
    graph.close()
    with pytest.raises(fragir.FragirError, match="the graph is closed"):
        graph.launch()
    for one in memory:
        one.free()
    assert not fake.memory
    assert driver.available() is None


def test_a_graph_works_on_a_gpu(make: Callable[..., Any], program: Program) -> None:
    make(8, 8)
    x = np.zeros(256, np.int8)
    with pytest.raises(fragir.FragirError, match=r"x lies on the host; a graph works on arrays on"):
        program.graph(x, x)


def test_constants_lie_on_the_gpu_once(make: Callable[..., Any]) -> None:
    """Copied there with the first launch, for all launches and graphs."""
    fake = make(8, 8)
    held = bytes(range(1, 255)) + bytes(2)
    constant = f'{{frag.constant = dense<"0x{held.hex()}"> : tensor<256xi8>}}'
    text = TEXT.replace("@main(%x", f"@main(%c: {BYTES} {constant}, %x").replace(
        "@add(%t, %y)", "@add(%c, %y)"
    )
    program = fragir.compile(text)
    assert isinstance(program, Program)
    assert repr(program) == "<main(x, y) for sm_80: 2 launches>"
    x, y = np.zeros(256, np.int8), np.zeros(256, np.int8)
    for times in (1, 2):
        program(x, y, on="gpu")
        ((address, kept),) = fake.memory.items()
        # the stand-in's kernel adds one to all that it is given, constants too
        assert bytes(kept) == bytes((byte + times) % 256 for byte in held)
    memory = [GpuArena(256), GpuArena(256)]
    element = memref_type(program.signature[0].type).element_type
    graph = program.graph(*(one.piece(0, (256,), element).value for one in memory))
    graph.launch()
    graph.close()
    assert bytes(fake.memory[address]) == bytes((byte + 3) % 256 for byte in held)
    for one in memory:
        one.free()
    assert list(fake.memory) == [address]
    assert program(x, y, on="emulator").findings == []
    assert y.tobytes() == held
    del program, graph
    gc.collect()
    assert not fake.memory
