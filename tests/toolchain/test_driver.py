"""The CUDA driver, on a stand-in; on a GPU too where there is one (`pytest -m gpu`)."""

from __future__ import annotations

import ctypes
import importlib
import inspect
import re
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fragir.emulator import Struct, pointers
from fragir.errors import FragirError
from fragir.toolchain import driver, gpu_arguments
from fragir.toolchain.ptxas import assemble

Make = Callable[..., Any]
REAL: Any = importlib.import_module("cuda.bindings.driver")


def add(*arguments: object, **options: Any) -> None:
    options = {"grid": (1,), "block": (32,)} | options
    driver.launch(b"cubin", "add", arguments=arguments, **options)


def test_arrays_travel_both_ways(make: Make) -> None:
    fake = make(8, 8, 4)
    first, second = np.arange(6, dtype=np.uint8).reshape(2, 3), np.zeros(3, np.uint8)
    add(first, second, 7, parameters=("u64", "u64", "u32"))
    assert first.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert second.tolist() == [1, 1, 1]
    assert fake.parameters[2] == b"\7\0\0\0"
    assert fake.synchronized == [0]
    assert (fake.memory, fake.freed) == ({}, 2)


def test_prepared_once_and_started_often(make: Make) -> None:
    fake = make(8, 4)
    block = fake.cuMemAlloc(16)[1]
    start = driver.prepare(b"cubin", "add", grid=(3,), block=(32,), arguments=[block, 7], shared=64)
    assert fake.parameters == []
    for _ in range(3):
        start()
    assert fake.memory[block].raw == bytes([3] * 16)
    assert fake.parameters == [block.to_bytes(8, "little"), b"\7\0\0\0"]
    assert (fake.config.gridDimX, fake.config.sharedMemBytes) == (3, 64)
    assert (fake.loaded, fake.synchronized) == (1, [])
    with pytest.raises(FragirError, match="argument 0 lies on the host"):
        driver.prepare(b"cubin", "add", grid=(1,), block=(32,), arguments=[np.zeros(4), 7])


def test_same_array_is_one_buffer(make: Make) -> None:
    fake = make(8, 8)
    array = np.zeros(4, np.uint8)
    add(array, array)
    assert fake.parameters[0] == fake.parameters[1]
    assert array.tolist() == [2, 2, 2, 2]
    assert fake.freed == 1


def test_read_only_array_is_not_copied_back(make: Make) -> None:
    make(8)
    array = np.zeros(4, np.uint8)
    array.flags.writeable = False
    add(array)
    assert array.tolist() == [0, 0, 0, 0]


def test_empty_array(make: Make) -> None:
    fake = make(8)
    add(np.zeros(0, np.float32))
    assert fake.freed == 1


def test_scalars_by_declared_types(make: Make) -> None:
    fake = make(4, 8, 2, 16, 8)
    add(1, 2.0, 1.5, bytes(range(16)), None, parameters=("f32", "f64", "bf16", "b8[16]", ".u64"))
    assert fake.parameters == [
        struct.pack("<f", 1),
        struct.pack("<d", 2),
        b"\xc0\x3f",
        bytes(range(16)),
        bytes(8),
    ]


def test_scalars_by_size(make: Make) -> None:
    fake = make(4, 4, 8, 3)
    add(-1, 1.5, np.float64(2), b"abc")
    assert fake.parameters == [
        b"\xff" * 4,
        struct.pack("<f", 1.5),
        struct.pack("<d", 2),
        b"abc",
    ]


def test_configuration(make: Make) -> None:
    fake = make()
    add(grid=(4, 2), block=(128,), cluster=(2, 1), shared=100_000)
    config = fake.config
    assert (config.gridDimX, config.gridDimY, config.gridDimZ) == (4, 2, 1)
    assert (config.blockDimX, config.blockDimY, config.blockDimZ) == (128, 1, 1)
    assert config.sharedMemBytes == 100_000
    assert config.numAttrs == 1
    attribute = config.attrs[0]
    assert attribute.id.name == "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION"
    cluster = attribute.value.clusterDim
    assert (cluster.x, cluster.y, cluster.z) == (2, 1, 1)
    assert [(a.name, value) for a, value in fake.attributes] == [
        ("CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES", 100_000)
    ]


def test_plain_configuration(make: Make) -> None:
    fake = make()
    add()
    assert fake.config.numAttrs == 0
    assert fake.attributes == []


@pytest.mark.parametrize("cluster", [(1, 1, 1), (2, 1, 1)])
def test_cooperative_launch(make: Make, cluster: tuple[int, int, int]) -> None:
    fake = make()
    add(cooperative=True, cluster=cluster, grid=(2,))
    found = [a for a in fake.config.attrs if "COOPERATIVE" in a.id.name]
    assert [a.value.cooperative for a in found] == [1]
    assert fake.config.numAttrs == (1 if cluster == (1, 1, 1) else 2)


def test_large_cluster_is_asked_for(make: Make) -> None:
    fake = make()
    add(grid=(16,), cluster=(16,))
    assert [a.name for a, _ in fake.attributes] == [
        "CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED"
    ]


class Stream:
    """A stream of another package."""

    def __cuda_stream__(self) -> tuple[int, int]:
        return 0, 99


def test_stream(make: Make) -> None:
    fake = make(8)
    add(np.zeros(1), stream=Stream())
    assert fake.synchronized == [99]
    assert int(fake.config.hStream) == 99
    add(None, stream=99)
    assert fake.synchronized == [99]  # nothing to copy back: the caller waits
    with pytest.raises(FragirError, match="a str is no CUDA stream"):
        add(None, stream="main")


class OnGpu:
    """An array of another package that lives on the GPU."""

    __cuda_array_interface__ = {  # noqa: RUF012 - the protocol wants an attribute
        "shape": (4,),
        "typestr": "<f4",
        "data": (0x7F0000001000, False),
        "version": 3,
        "strides": None,
    }


def test_array_on_the_gpu_is_used_in_place(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = make(8)

    class View:
        is_device_accessible = True

        def __init__(self, exporter: Any) -> None:
            self.ptr = exporter.__cuda_array_interface__["data"][0]

        @classmethod
        def from_any_interface(cls, exporter: Any, stream_ptr: int) -> View:
            assert stream_ptr == 1
            return cls(exporter)

    monkeypatch.setattr("cuda.core.utils.StridedMemoryView", View)
    add(OnGpu())
    assert fake.parameters == [(0x7F0000001000).to_bytes(8, "little")]
    assert fake.freed == 0


class OnHost:
    """An array of another package in host memory."""

    def __init__(self) -> None:
        self.array = np.zeros(4, np.float32)

    def __dlpack__(self, **options: Any) -> Any:
        options.pop("stream", None)
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_array_in_host_memory_is_refused(make: Make) -> None:
    fake = make(8, 8)
    with pytest.raises(FragirError, match=r"argument 1 lives in host memory"):
        add(np.zeros(1), OnHost())
    assert fake.memory == {}


@pytest.mark.parametrize(
    ("arguments", "options", "words"),
    [
        ((1,), {}, r"has 2 parameters, 1 arguments"),
        ((1, 2), {"parameters": ("u64",)}, r"has 1 parameters, 2 arguments"),
        ((1, 2), {"parameters": ("u64", "u64")}, r"\[8, 4\] bytes in the cubin, not \[8, 8\]"),
        ((1, 2), {"parameters": ("i64", "u32")}, r"`i64` is no type"),
        ((1, 2**32), {}, r"argument 1 is 4294967296"),
        ((1, np.zeros(2)), {}, r"argument 1 is an array, the parameter has the type `b32`"),
        ((np.zeros((4, 4)).T[1:], 1), {}, r"argument 0: the array must be C-contiguous"),
        ((np.zeros(4, ">f4"), 1), {}, r"argument 0: the array has the other byte order"),
        ((np.zeros(4, object), 1), {}, r"argument 0: an array of object has no bytes"),
        ((1, 2), {"grid": (0,)}, r"\(0,\) is no size"),
        ((1, 2), {"block": (1, 1, 1, 1)}, r"is no size"),
        ((1, 2), {"shared": 232448}, r"1024 bytes of static and 232448 of dynamic"),
        ((np.zeros(1 << 28), 2), {}, r"cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"),
    ],
)
def test_refused(
    make: Make, arguments: tuple[object, ...], options: dict[str, Any], words: str
) -> None:
    fake = make(8, 4)
    with pytest.raises(FragirError, match=words) as caught:
        add(*arguments, **options)
    assert "\n" not in str(caught.value)
    assert fake.memory == {}


def test_overlapping_arrays_are_one_buffer(make: Make) -> None:
    fake = make(8, 8, 8)
    array = np.arange(8, dtype=np.uint8)
    apart = np.zeros(2, np.uint8)
    add(array[2:], array[:6], apart)
    addresses = [int.from_bytes(value, "little") for value in fake.parameters]
    assert addresses[0] - addresses[1] == 2
    # the kernel adds 1 to the buffer of every pointer that is the start of one
    assert array.tolist() == list(range(1, 9))
    assert (apart.tolist(), fake.freed, fake.memory) == ([1, 1], 2, {})


def test_variables(make: Make) -> None:
    fake = make()
    fake.variables = {
        b"count": ctypes.create_string_buffer(4),
        b"table": ctypes.create_string_buffer(3),
    }
    count, table = np.array([5, 6, 7, 8], np.uint8), np.array([1, 2, 3], np.uint8)
    table.flags.writeable = False
    add(variables={"count": count, "table": table})
    assert (count.tolist(), table.tolist()) == ([6, 7, 8, 9], [1, 2, 3])
    assert fake.variables[b"table"].raw == bytes([2, 3, 4])
    for given, words in (
        ({"none": count}, "the cubin has no variable none"),
        ({"table": count}, "the variable table has 3 bytes, its array 4"),
        ({"count": [1]}, "the variable count takes a C-contiguous numpy array"),
    ):
        with pytest.raises(FragirError, match=words):
            add(variables=given)


def test_structs_with_pointers(make: Make) -> None:
    fake = make(32, 8)
    a, b = np.zeros(4, np.uint8), np.zeros(2, np.uint8)
    table = pointers(b, None, a)
    add(Struct({0: a, 8: np.int32(-3), 16: table, 24: np.float32(1.5)}), table, shared=0)
    struct, pointer = fake.parameters
    assert struct[8:16] == b"\xfd\xff\xff\xff\0\0\0\0"
    assert struct[16:24] == pointer
    assert struct[24:] == b"\0\0\xc0\x3f\0\0\0\0"
    assert (fake.memory, fake.freed) == ({}, 3)  # two arrays, one table
    with pytest.raises(FragirError, match="argument 0 has 8 bytes"):
        add(table, table)


def test_blocks_that_run_at_once(make: Make) -> None:
    fake = make(8)
    assert driver.resident_blocks(b"cubin", "add", block=(256, 1, 1)) == 132 * 8
    assert driver.resident_blocks(b"cubin", "add", block=(256, 1, 1), shared=200 << 10) == 132
    names = fake.CUfunction_attribute
    assert (names.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 << 10) in fake.attributes
    assert driver.resident_blocks(b"cubin", "add", block=(256, 1, 1), cluster=2) == 120
    assert fake.config.gridDimX == 2


def test_unknown_entry(make: Make) -> None:
    make()
    with pytest.raises(FragirError, match="has no entry `sub`"):
        driver.launch(b"cubin", "sub", grid=(1,), block=(1,))


def test_module_is_loaded_once(make: Make) -> None:
    fake = make()
    add()
    add()
    assert fake.loaded == 1


def test_cubin_for_another_gpu(make: Make) -> None:
    fake = make()
    fake.image = fake.CUresult.CUDA_ERROR_NO_BINARY_FOR_GPU
    with pytest.raises(FragirError, match=r"cannot be loaded: .*NO_BINARY.*sm_90"):
        add()


def test_kernel_that_faults(make: Make) -> None:
    fake = make(8)
    fake.kernel = fake.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
    array = np.zeros(4, np.uint8)
    with pytest.raises(FragirError, match=r"running `add`: .*ILLEGAL_ADDRESS.*emulate --check"):
        add(array)
    assert fake.memory == {}
    assert not array.any()


def test_no_device(make: Make) -> None:
    fake = make()
    fake.devices = 0
    assert driver.available() == "no NVIDIA GPU was found (run on the emulator)"
    with pytest.raises(FragirError, match="no NVIDIA GPU"):
        add()


def test_driver_that_fails(make: Make) -> None:
    fake = make()
    fake.init = fake.CUresult.CUDA_ERROR_NO_DEVICE
    reason = driver.available()
    assert reason is not None
    assert re.fullmatch(r"the NVIDIA driver cannot be used: .*NO_DEVICE.*", reason)


def test_device(make: Make) -> None:
    make()
    assert driver.available() is None
    assert driver.gpu() == driver.Gpu("A GPU", "sm_90", "13.0", 1 << 36)


def test_current_context_is_used(make: Make) -> None:
    fake = make()
    fake.current = 5
    add()
    assert fake.current == 5


def test_absent_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", None)
    reason = driver.available()
    assert reason is not None
    assert "pip install 'fragir[gpu]'" in reason
    assert "\n" not in reason


def test_every_name_exists_in_the_real_package() -> None:
    """The stand-in must not hide a misspelt function: the names in the source are NVIDIA's."""
    names = set(
        re.findall(r"\bcuda\.(\w+)", inspect.getsource(driver) + inspect.getsource(gpu_arguments))
    ) - {"bindings", "core"}
    assert "cuLaunchKernelEx" in names
    assert [name for name in names if not hasattr(REAL, name)] == []
    attributes = re.findall(r"attribute\w*\.(CU_\w+)", inspect.getsource(driver))
    kinds = (REAL.CUdevice_attribute, REAL.CUfunction_attribute)
    assert attributes
    assert [a for a in attributes if not any(hasattr(kind, a) for kind in kinds)] == []


REASON = driver.available()


def test_reason_is_one_line() -> None:
    """Whatever this machine has: a GPU, or one line that says why not."""
    assert REASON is None or "\n" not in REASON


STORE = """\
.version 7.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 room[];
.visible .entry store(.param .u64 out, .param .u32 value)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<4>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [value];
    mov.u32 %r2, %tid.x;
    mad.wide.u32 %rd3, %r2, 4, %rd1;
    add.u32 %r1, %r1, %r2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""


@pytest.mark.gpu
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("shared", [0, 100_000])
def test_launch_on_the_gpu(shared: int) -> None:
    cubin = assemble(STORE, driver.gpu().target).cubin
    out = np.zeros(64, np.uint32)
    for parameters in (None, ("u64", "u32")):
        out[:] = 0
        driver.launch(
            cubin,
            "store",
            grid=(1,),
            block=(64,),
            arguments=(out, 5),
            parameters=parameters,
            shared=shared,
        )
        assert out.tolist() == list(range(5, 69))
