"""Tensor maps for the driver: what it is told, on a stand-in; a copy by one on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fragir
from fragir.compilation.arrays import GpuTensorMap
from fragir.emulator import TensorMap, run
from fragir.emulator.machine.tensor_map import Im2col
from fragir.errors import FragirError
from fragir.toolchain import driver
from fragir.toolchain.ptxas import assemble

Make = Callable[..., Any]
NAMES = ("rank", "address", "dims", "strides", "box", "steps")


def add(*arguments: object, **options: Any) -> None:
    driver.launch(b"cubin", "add", grid=(1,), block=(32,), arguments=arguments, **options)


def told(arguments: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments of cuTensorMapEncodeTiled by name, numbers as Python's."""
    found: dict[str, Any] = dict(zip(NAMES, arguments[1:7], strict=True))
    for name in NAMES[2:]:
        found[name] = [int(value) for value in found[name]]
    names = ("type", *("interleave", "swizzle", "promotion", "fill"))
    kinds = (arguments[0], *arguments[7:])
    return found | {name: kind.name for name, kind in zip(names, kinds, strict=True)}


def test_map_by_value(make: Make) -> None:
    """Dimensions go innermost first to the driver; its stride is not told (driver API)."""
    fake = make(128, 8)
    array = np.zeros((40, 24), np.float16)
    add(TensorMap(array, (16, 8), element_strides=(2, 1), fill="nan"), array)
    what = told(fake.maps[0])
    buffer = int.from_bytes(fake.parameters[1], "little")
    assert (what["rank"], what["address"], what["dims"]) == (2, buffer, [24, 40])
    assert (what["strides"], what["box"], what["steps"]) == ([48], [8, 16], [1, 2])
    assert what["type"] == "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"
    assert what["swizzle"] == "CU_TENSOR_MAP_SWIZZLE_NONE"
    assert what["interleave"] == "CU_TENSOR_MAP_INTERLEAVE_NONE"
    assert what["fill"] == "CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA"
    assert fake.parameters[0] == b"\1" * 128
    assert (fake.memory, fake.freed) == ({}, 1)


@pytest.mark.parametrize("swizzle", [32, 64, 128])
@pytest.mark.parametrize(
    ("dtype", "kind"),
    [
        (np.uint8, "UINT8"),
        (ml_dtypes.float8_e4m3fn, "UINT8"),
        (np.int16, "UINT16"),
        (ml_dtypes.bfloat16, "BFLOAT16"),
        (np.int32, "INT32"),
        (np.float32, "FLOAT32"),
        (np.float64, "FLOAT64"),
    ],
)
def test_types_and_swizzles(make: Make, dtype: Any, kind: str, swizzle: Any) -> None:
    fake = make(128)
    array = np.zeros((8, 256), dtype)
    add(TensorMap(array, (8, swizzle // array.itemsize), swizzle))
    what = told(fake.maps[0])
    assert what["type"] == f"CU_TENSOR_MAP_DATA_TYPE_{kind}"
    assert what["swizzle"] == f"CU_TENSOR_MAP_SWIZZLE_{swizzle}B"
    assert what["fill"] == "CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE"


def test_types_without_a_dtype(make: Make) -> None:
    """Two 4-bit elements to a byte: sizes and box count elements, strides bytes."""
    fake = make(128, 128)
    packed = TensorMap(np.zeros((4, 64), np.uint8), (4, 128), 128, kind="b4x16")
    rounded = TensorMap(np.zeros((4, 64), np.float32), (4, 32), 128, kind="tf32", atom=64)
    add(packed, rounded)
    first, second = map(told, fake.maps)
    assert first["type"] == "CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B"
    assert (first["dims"], first["strides"], first["box"]) == ([128, 4], [64], [128, 4])
    assert second["type"] == "CU_TENSOR_MAP_DATA_TYPE_TFLOAT32"
    assert second["swizzle"] == "CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B"


def test_map_behind_a_pointer(make: Make) -> None:
    fake = make(8)
    array = np.zeros(64, np.float32)
    add(TensorMap(array, (32,)))
    assert fake.freed == 2  # the map and the array
    assert fake.synchronized == [0]
    assert len(told(fake.maps[0])["strides"]) == 0


def test_memory_of_another_shape(make: Make) -> None:
    """As of an array with gaps, of which all that it spans is given."""
    fake = make(128)
    memory = np.zeros(2048, np.uint8)
    add(TensorMap(memory, (8, 16), strides=(64, 2), shape=(30, 24), kind="f16", promotion=128))
    what = told(fake.maps[0])
    assert (what["rank"], what["dims"], what["strides"]) == (2, [24, 30], [64])
    assert what["type"] == "CU_TENSOR_MAP_DATA_TYPE_FLOAT16"
    assert what["promotion"] == "CU_TENSOR_MAP_L2_PROMOTION_L2_128B"


class OnGpu:
    """An array of another package that lives on the GPU."""

    def __init__(self, address: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (30, 24),
            "typestr": "<f2",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


class View:
    """A stand-in for cuda.core's."""

    is_device_accessible = True

    def __init__(self, exporter: OnGpu) -> None:
        self.ptr = exporter.__cuda_array_interface__["data"][0]

    @classmethod
    def from_any_interface(cls, exporter: OnGpu, stream_ptr: int) -> View:
        return cls(exporter)


def test_an_array_on_the_gpu_is_used_in_place(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = make(128)
    monkeypatch.setattr("cuda.core.utils.StridedMemoryView", View)
    tiles = GpuTensorMap(OnGpu(0x7F0000001000), (8, 16), 32, (48, 2), (30, 24), "f16", 256)
    add(tiles)
    what = told(fake.maps[0])
    assert (what["address"], what["dims"], what["strides"]) == (0x7F0000001000, [24, 30], [48])
    assert what["promotion"] == "CU_TENSOR_MAP_L2_PROMOTION_L2_256B"
    assert fake.freed == 0
    with pytest.raises(FragirError, match="argument 0 begins at an address that is no multiple"):
        add(GpuTensorMap(OnGpu(0x7F0000001008), (8, 16), 32, (48, 2), (30, 24), "f16"))


def test_a_kernel_makes_its_maps_of_what_lies_on_the_gpu(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both are told alike, an array on the host by the address of its copy."""
    text = """
    func.func @add(%a: memref<?x24xf16>, %c: memref<?x24xf16>) {
      %s = memref.alloc() : memref<16x16xf16, #frag.shared<swizzle = 32>>
      frag.copy tma %a[0, 0] to %s[] : memref<?x24xf16> to memref<16x16xf16, #frag.shared<swizzle = 32>>
      frag.copy tma %s[] to %c[0, 0] : memref<16x16xf16, #frag.shared<swizzle = 32>> to memref<?x24xf16>
      func.return
    }"""  # noqa: E501
    kernel = fragir.compile(text, target="sm_90")
    fake = make(8, 4, 8, 4, 128, 128)
    monkeypatch.setattr("cuda.core.utils.StridedMemoryView", View)
    given = kernel.parameters([OnGpu(0x7F0000001000), np.zeros((30, 24), np.float16)])
    add(*given)
    first, second = map(told, fake.maps)
    assert first.pop("address") == 0x7F0000001000
    assert second.pop("address") == int.from_bytes(fake.parameters[2], "little")
    assert first == second
    assert first["promotion"] == "CU_TENSOR_MAP_L2_PROMOTION_L2_128B"
    assert fake.parameters[4:] == [b"\1" * 128, b"\2" * 128]


def test_refused(make: Make) -> None:
    fake = make(128, 4)
    array = np.zeros((4, 12), np.float16)
    with pytest.raises(FragirError, match="strides of argument 0 are 24 bytes"):
        add(TensorMap(array, (4, 8)), 1)
    how = Im2col((0,), (0,), 16, 8)
    pixels = TensorMap(np.zeros((2, 8, 16), np.float16), (1, 1, 8), im2col=how)
    with pytest.raises(FragirError, match="argument 0 is an im2col tensor map"):
        add(pixels, 1)
    square = TensorMap(np.zeros((8, 8), np.float16), (8, 8))
    with pytest.raises(FragirError, match="argument 1 is a tensor map, the parameter has the type"):
        add(square, square)
    assert fake.memory == {}


# A tile by a tensor map to shared memory, from there to global memory as it lies.
COPY = """\
.version 8.0
.target sm_90a
.address_size 64
.visible .entry copy(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 x, .param .u32 y)
{
    .reg .b64 %rd<4>;
    .reg .b32 %r<8>;
    .reg .pred %p<3>;
    .shared .align 1024 .b8 tile[8192];
    .shared .align 8 .b64 bar;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p1, %r1, 0;
    mov.u32 %r2, tile;
    mov.u32 %r3, bar;
    mov.b64 %rd1, map;
    cvta.param.u64 %rd1, %rd1;
    ld.param.u32 %r4, [x];
    ld.param.u32 %r5, [y];
    @!%p1 mbarrier.init.shared::cta.b64 [%r3], 1;
    @!%p1 fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @%p1 bra wait;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 8192;
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
        [%r2], [%rd1, {%r4, %r5}], [%r3];
wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;
    @!%p2 bra wait;
    ld.param.u64 %rd2, [out];
    mov.u32 %r6, %r1;
each:
    shl.b32 %r7, %r6, 2;
    cvt.u64.u32 %rd3, %r7;
    add.s64 %rd3, %rd2, %rd3;
    add.u32 %r7, %r2, %r7;
    ld.shared.b32 %r7, [%r7];
    st.global.b32 [%rd3], %r7;
    add.u32 %r6, %r6, 128;
    setp.lt.u32 %p2, %r6, 2048;
    @%p2 bra each;
    ret;
}
"""


def tile(swizzle: int, corner: tuple[int, int], launch: Callable[..., Any]) -> list[int]:
    """What one copy of a 64-row tile of f16 leaves in shared memory."""
    rng = np.random.default_rng(0)
    array = rng.integers(0, 1 << 16, (100, 200)).astype(np.uint16)
    out = np.zeros(4096, np.uint16)
    launch((TensorMap(array, (64, 64), 128 if swizzle else 0), out, *corner))
    return out.tolist()


def emulated(arguments: tuple[object, ...]) -> None:
    run(COPY, "copy", block=(128,), arguments=arguments)


@pytest.mark.parametrize("swizzle", [0, 128])
def test_copy_on_the_emulator(swizzle: int) -> None:
    """The kernel that the GPU runs below: row r begins at 128 r, its 16-byte chunks XOR r % 8."""
    rng = np.random.default_rng(0)
    array = rng.integers(0, 1 << 16, (100, 200)).astype(np.uint16)
    inside = np.zeros((64, 64), np.uint16)
    inside[:44, :32] = array[56:, 168:]
    chunks = inside.reshape(64, 8, 8)
    if swizzle:
        chunks = np.array([[row[c ^ r % 8] for c in range(8)] for r, row in enumerate(chunks)])
    assert tile(swizzle, (168, 56), emulated) == chunks.reshape(-1).tolist()


REASON = driver.available()


@pytest.mark.gpu
@pytest.mark.skipif(REASON is not None, reason=str(REASON))
@pytest.mark.parametrize("corner", [(0, 0), (168, 56), (-5, -3)])
@pytest.mark.parametrize("swizzle", [0, 128])
def test_copy_on_the_gpu(swizzle: int, corner: tuple[int, int]) -> None:
    if driver.gpu().target != "sm_90":
        pytest.skip("the kernel is for sm_90a")
    cubin = assemble(COPY, "sm_90a").cubin
    types = ("b8[128]", "u64", "s32", "s32")

    def launch(arguments: tuple[object, ...]) -> None:
        driver.launch(cubin, "copy", grid=(1,), block=(128,), arguments=arguments, parameters=types)

    assert tile(swizzle, corner, launch) == tile(swizzle, corner, emulated)
