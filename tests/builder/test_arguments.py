"""What a compiled kernel takes: arrays of several packages, strided ones, numbers."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

import fragir
from fragir import FragirError, Kernel, bf16, e4m3, f16, f32, f64, index, s8, s32, s64, tf32, u8
from fragir.emulator import EmulationError

Array = npt.NDArray[Any]


@cache
def doubling(element: str, strided: bool = False) -> Kernel:
    """b = a for 32 x 16 of any type."""
    type_ = getattr(fragir, element)
    with fragir.kernel("copy") as k:
        a = k.memory("a", type_, ("m", "n"), strides=(None, None) if strided else None)
        b = k.memory("b", type_, ("m", "n"), strides=(None, 1) if strided else None)
        k.store(k.load(a, (0, 0), shape=(32, 16), masked=True), b, (0, 0), masked=True)
    return k.compile()


ELEMENTS: dict[str, Any] = {
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "tf32": np.float32,
    "f32": np.float32,
    "f64": np.float64,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "s8": np.int8,
    "u8": np.uint8,
    "s32": np.int32,
}


@pytest.mark.parametrize("element", ELEMENTS)
def test_elements(element: str) -> None:
    a = (np.arange(32 * 16).reshape(32, 16) % 50).astype(ELEMENTS[element])
    b = np.zeros_like(a)
    doubling(element)(a, b, on="emulator")
    assert np.array_equal(a, b)


@pytest.mark.parametrize("element", ["bf16", "e4m3"])
def test_raw_bits(element: str) -> None:
    """Types that numpy lacks may come as bits: unsigned integers, or what numpy.load gives."""
    bits = np.uint16 if element == "bf16" else np.uint8
    a = np.arange(32 * 16).reshape(32, 16).astype(bits)
    for raw in (a, a.view(f"V{a.itemsize}")):
        b = np.zeros_like(raw)
        doubling(element)(raw, b, on="emulator")
        assert np.array_equal(raw, b)


@pytest.mark.parametrize(
    ("element", "given", "words"),
    [
        ("f16", np.int16, "a holds int16, the kernel takes float16"),
        ("f32", np.float64, "a holds float64, the kernel takes float32"),
        ("s8", np.uint8, "a holds uint8, the kernel takes int8"),
        ("s32", np.uint32, "a holds uint32, the kernel takes int32"),
        ("bf16", np.float16, "a holds float16, the kernel takes bfloat16"),
        ("e4m3", ml_dtypes.float8_e5m2, "a holds float8_e5m2, the kernel takes float8_e4m3fn"),
        ("tf32", np.float64, "a holds float64, the kernel takes float32"),
        ("f32", ">f4", "a has the other byte order"),
        ("f32", object, "a holds object, the kernel takes float32"),
    ],
)
def test_wrong_elements(element: str, given: Any, words: str) -> None:
    a, b = np.zeros((32, 16), given), np.zeros((32, 16), ELEMENTS[element])
    with pytest.raises(FragirError) as caught:
        doubling(element)(a, b, on="emulator")
    assert caught.value.message == words


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([[1.0]], np.zeros((1, 1), np.float32), "a must be an array, not list (numpy.asarray make"),
        (None, np.zeros((1, 1), np.float32), "a must be an array, not None"),
        (3.0, np.zeros((1, 1), np.float32), "a must be an array, not float"),
        (np.zeros(4, np.float32), np.zeros((1, 1), np.float32), "a has 1 dimensions, the kernel "),
        (
            np.zeros((4, 4), np.float32),
            np.zeros((4, 3), np.float32),
            "b has shape (4, 3); copy takes (m, n) with n = 4",
        ),
        (
            np.zeros((4, 4), np.float32).T[:, 1:],
            np.zeros((4, 3), np.float32),
            "a has strides (1, 4) (elements), the kernel takes (3, 1) (pass a contiguous copy, or",
        ),
    ],
)
def test_wrong_arrays(a: object, b: object, words: str) -> None:
    with pytest.raises(FragirError) as caught:
        doubling("f32")(a, b, on="emulator")
    assert caught.value.sentence.startswith(words)


def test_wrong_count() -> None:
    with pytest.raises(FragirError) as caught:
        doubling("f32")(np.zeros((1, 1), np.float32), on="emulator")
    assert str(caught.value) == "copy takes 2 arguments (a, b), not 1"


VIEWS: list[tuple[str, Callable[[Array], Array], Callable[[Array], Array]]] = [
    ("whole", lambda x: x, lambda x: x),
    ("columns", lambda x: x[:, 3:10], lambda x: x[:, 8:15]),
    ("rows", lambda x: x[::3], lambda x: x[1:12]),
    ("turned", lambda x: x[:16].T, lambda x: x[:16]),
    ("steps", lambda x: x[5:, ::2], lambda x: x[:27, 8:]),
    ("broadcast", lambda x: np.broadcast_to(x[0, :8], (4, 8)), lambda x: x[4:8, :8]),
    ("one", lambda x: x[3:4, ::2], lambda x: x[9:10, 0:8]),
]


@pytest.mark.parametrize(("read", "write"), [v[1:] for v in VIEWS], ids=[v[0] for v in VIEWS])
def test_strides(read: Callable[[Array], Array], write: Callable[[Array], Array]) -> None:
    """Views with gaps, also into one array: only the elements of the view are written."""
    source = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    target = -source
    expected = target.copy()
    write(expected)[...] = read(source)
    doubling("f32", True)(read(source), write(target), on="emulator")
    assert np.array_equal(target, expected)


def test_views_of_one_array() -> None:
    """Neighbouring columns of one array, read and written by one launch."""
    both = np.arange(32 * 16, dtype=np.float32).reshape(32, 16)
    expected = both.copy()
    expected[:, 8:] = expected[:, :8]
    doubling("f32", True)(both[:, :8], both[:, 8:], on="emulator")
    assert np.array_equal(both, expected)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dlpack", [False, True])
def test_overlapping_views(strided: bool, dlpack: bool) -> None:
    """Rows 1 to 4 are overwritten by rows 0 to 3 while these are loaded: one load, one store."""
    both = np.arange(5 * 16, dtype=np.float32).reshape(5, 16)
    a, b = both[:4], both[1:]
    if strided:
        a, b = a[:, :8], b[:, :8]
    expected = both.copy()
    expected[1:, : b.shape[1]] = both[:4, : b.shape[1]]
    arguments = [Exporter(a), Exporter(b)] if dlpack else [a, b]
    doubling("f32", strided)(*arguments, on="emulator")
    assert np.array_equal(both, expected)


def test_views_in_gaps_of_each_other() -> None:
    """A view with gaps over memory that another argument has whole: both see one memory."""
    with fragir.kernel("both") as k:
        a = k.memory("a", f32, ("m", "n"), strides=(None, 1))
        b = k.memory("b", f32, ("p", "q"))
        c = k.memory("c", f32, ("m", "n"), strides=(None, 1))
        k.store(k.load(a, (0, 0), shape=(8, 8), masked=True), c, (0, 0), masked=True)
        k.store(k.load(c, (0, 0), shape=(8, 8), masked=True), b, (0, 0), masked=True)
    base = np.arange(8 * 24, dtype=np.float32).reshape(8, 24)
    expected = base.copy()
    expected[:, 8:16] = base[:, 16:]
    expected[:8, :8] = expected[:, 8:16]  # b is all of base
    k.compile()(base[:, 16:], base, base[:, 8:16], on="emulator")
    assert np.array_equal(base, expected)


def test_distance_of_overlapping_views() -> None:
    base = np.zeros(8 * 16 + 1, np.float32)
    a, b = base[:-1].reshape(8, 16), base[1:].reshape(8, 16)
    words = "b overlaps a and begins 4 bytes behind it, no multiple of 16"
    with pytest.raises(FragirError, match=words):
        doubling("f32")(a, b, on="emulator")


def test_refused_strides() -> None:
    source, target = np.zeros((4, 4), np.float32), np.zeros((4, 4), np.float32)
    records = np.zeros((4, 4), np.dtype([("x", np.float32), ("y", np.int16)]))
    for view, words in (
        (source[::-1], "a has a negative stride"),
        (records["x"], "a has strides of parts of elements"),
    ):
        with pytest.raises(FragirError) as caught:
            doubling("f32", True)(view, target, on="emulator")
        assert caught.value.message == words


def test_read_only() -> None:
    a, b = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32)
    a.flags.writeable = False
    doubling("f32")(a, b, on="emulator")
    assert np.array_equal(a, b)
    wide = np.zeros((8, 32), np.float32)
    for strided, c in ((False, np.zeros((8, 16), np.float32)), (True, wide[:, :16])):
        c.flags.writeable = False
        with pytest.raises(FragirError, match="read-only"):
            doubling("f32", strided)(a, c, on="emulator")


class Exporter:
    """An array of another package, which speaks DLPack alone."""

    def __init__(self, array: Array):
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


class Tensor:
    """A tensor in host memory with PyTorch's methods; numpy cannot look at its bfloat16."""

    def __init__(self, array: Array, dtype: str):
        self._array, self.dtype = array, f"torch.{dtype}"

    def numpy(self) -> Array:
        if self.dtype == "torch.bfloat16":
            raise TypeError("Got unsupported ScalarType BFloat16")
        return self._array

    def view(self, dtype: str) -> Tensor:
        return Tensor(self._array.view(dtype), dtype)

    def element_size(self) -> int:
        return self._array.itemsize

    def __dlpack__(self, **options: Any) -> object:
        raise TypeError("BFloat16 is not supported")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


Tensor.__module__ = "torch"


class OnGpu:
    """An array that shows the CUDA array interface; its memory is nowhere."""

    def __init__(self, shape: tuple[int, ...], typestr: str = "<f4", address: int = 4096):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


class TensorOnGpu:
    """A tensor on a GPU that speaks DLPack, as PyTorch's do."""

    dtype = "torch.float32"
    shape = (8, 16)

    def stride(self) -> tuple[int, int]:
        return 16, 1

    def __dlpack__(self) -> object:
        raise AssertionError("looked at on the host")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_call_takes_the_options_of_the_emulator(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one of them `auto` is the emulator, whether there is a GPU or not."""
    monkeypatch.setattr("fragir.toolchain.driver.available", lambda: None)
    a, b = np.ones((32, 16), np.float32), np.zeros((32, 16), np.float32)
    report = doubling("f32")(a, b, check=True)
    assert report.findings == []
    assert np.array_equal(a, b)
    with pytest.raises(EmulationError, match="instructions"):
        doubling("f32")(a, b, limit=1)
    with pytest.raises(FragirError, match="a GPU knows no check"):
        doubling("f32")(a, b, check=True, on="gpu")


def test_other_byte_order_on_a_gpu() -> None:
    with pytest.raises(FragirError, match="a has the other byte order"):
        doubling("f32")(OnGpu((8, 16), ">f4"), OnGpu((8, 16)), on="gpu")


def test_dlpack() -> None:
    a, b = np.ones((8, 16), np.float32), np.zeros((8, 16), np.float32)
    doubling("f32")(Exporter(a), Exporter(b), on="emulator")
    assert np.array_equal(a, b)
    with pytest.raises(FragirError, match="a holds float32, the kernel takes float16"):
        doubling("f16")(Exporter(a), Exporter(b), on="emulator")


@pytest.mark.parametrize("element", ["bf16", "f32"])
def test_torch(element: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = ModuleType("torch")
    monkeypatch.setattr(torch, "int16", "int16", raising=False)
    monkeypatch.setattr(torch, "uint8", "uint8", raising=False)
    monkeypatch.setitem(sys.modules, "torch", torch)
    a = np.arange(8 * 16).reshape(8, 16).astype(ELEMENTS[element])
    b = np.zeros_like(a)
    name = "bfloat16" if element == "bf16" else "float32"
    doubling(element)(Tensor(a, name), Tensor(b, name), on="emulator")
    assert np.array_equal(a, b)


@pytest.mark.parametrize("array", [OnGpu((8, 16)), TensorOnGpu()], ids=["cuda", "dlpack"])
def test_on_gpu(array: object) -> None:
    kernel, b = doubling("f32"), np.zeros((8, 16), np.float32)
    with pytest.raises(FragirError, match="a lies on a GPU, the emulator runs on the host"):
        kernel(array, b, on="emulator")
    assert kernel.parameters([array, b])[:3] == [array, 8, 16]
    assert kernel.sizes([array, b]) == {"m": 8, "n": 16}


class BytesOnGpu(TensorOnGpu):
    """A tensor of bytes that speaks DLPack."""

    dtype = "torch.uint8"


def test_packed_elements_on_gpu() -> None:
    """Bytes of two elements each count as on the host: twice as many columns."""
    with fragir.kernel("unpacked", target="sm_80") as k:
        x = k.memory("x", fragir.s4, ("m", "n"))
        y = k.memory("y", f16, ("m", "n"))
        k.divisible(n=32)
        k.store(k.load(x, (0, 0), shape=(16, 32), masked=True).cast(f16), y, (0, 0), masked=True)
    y = OnGpu((8, 32), "<f2")
    for x in (np.zeros((8, 16), np.uint8), OnGpu((8, 16), "|u1"), BytesOnGpu()):
        assert k.compile().sizes([x, y]) == {"m": 8, "n": 32}


def test_refused_on_gpu() -> None:
    kernel, b = doubling("f32"), np.zeros((8, 16), np.float32)
    for array, words in (
        (OnGpu((8, 16), "<f8"), "a holds float64, the kernel takes float32"),
        (OnGpu((8, 16), address=4), "a begins at an address that is no multiple of 16 bytes"),
    ):
        with pytest.raises(FragirError) as caught:
            kernel.parameters([array, b])
        assert caught.value.message == words


SCALARS: list[tuple[Any, object, bytes]] = [
    (f32, 1.5, np.float32(1.5).tobytes()),
    (f32, 3, np.float32(3).tobytes()),
    (f32, np.float64(0.1), np.float32(0.1).tobytes()),
    (f32, np.array(2.0), np.float32(2).tobytes()),
    (f32, float("inf"), np.float32(np.inf).tobytes()),
    (f64, np.float32(0.5), np.float64(0.5).tobytes()),
    (f16, 0.1, np.float16(0.1).tobytes()),
    (bf16, 0.1, np.array(0.1, ml_dtypes.bfloat16).tobytes()),
    (bf16, ml_dtypes.bfloat16(2.5), np.array(2.5, ml_dtypes.bfloat16).tobytes()),
    (tf32, 1.25, np.float32(1.25).tobytes()),
    (e4m3, ml_dtypes.float8_e4m3fn(1.5), np.array(1.5, ml_dtypes.float8_e4m3fn).tobytes()),
    (index, 7, np.int32(7).tobytes()),
    (index, np.int64(7), np.int32(7).tobytes()),
    (index, True, np.int32(1).tobytes()),
    (s32, -7, np.int32(-7).tobytes()),
    (s64, -(2**40), np.int64(-(2**40)).tobytes()),
    (s8, -128, np.int8(-128).tobytes()),
    (u8, np.array(255), np.uint8(255).tobytes()),
]


@cache
def taking(type_: Any) -> Kernel:
    with fragir.kernel("taking") as k:
        k.scalar("x", type_)
    return k.compile()


@pytest.mark.parametrize(("type_", "value", "expected"), SCALARS)
def test_scalars(type_: Any, value: object, expected: bytes) -> None:
    assert taking(type_).parameters([value]) == [expected]


@pytest.mark.parametrize(
    ("type_", "value", "words"),
    [
        (index, 2.5, "x is 2.5, the kernel takes index (pass a whole number, an int)"),
        (index, 2.0, "x is 2.0, the kernel takes index (pass a whole number, an int)"),
        (s32, np.float32(2), "x is 2.0, the kernel takes s32 (pass a whole number, an int)"),
        (s32, 2**31 + 2**31, "x is 4294967296, which does not fit the parameter `s32`"),
        (s8, 1000, "x is 1000, which does not fit the parameter `s8`"),
        (f32, "1.0", "x must be a number (f32), not str"),
        (f32, None, "x must be a number (f32), not None"),
        (f32, 1j, "x must be a number (f32), not complex"),
        (f32, np.complex64(1), "x must be a number (f32), not complex64"),
        (f32, np.ones(3), "x is a number (f32), not an array"),
        (f16, 1e6, "x is 1000000.0, which does not fit `f16`"),
        (f32, 1e300, "x is 1e+300, which does not fit `f32`"),
        (e4m3, 1.5, "x must be a number of ml_dtypes of the type e4m3"),
    ],
)
def test_wrong_scalars(type_: Any, value: object, words: str) -> None:
    with pytest.raises(FragirError) as caught:
        taking(type_).parameters([value])
    assert str(caught.value) == words
