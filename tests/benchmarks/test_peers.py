"""Contenders of products on a GPU: fragir's schedules, cuBLASLt, PyTorch's and Triton's kernels."""

from __future__ import annotations

import base64
import ctypes
import importlib
import sys
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from benchmarks.gemm_cases import TYPES, Case, normal, wrong
from benchmarks.gpu import cublaslt, gemm, loops, peers
from fragir import emulator
from fragir.errors import FragirError

# fragir and Triton's tiles ------------------------------------------------------------------------


def test_six_schedules_of_different_kinds() -> None:
    case = gemm.CASES[2]
    found = gemm.schedules(case, "sm_90a", gemm.MOST)
    assert len(found) == 6
    assert found["fragir"] == ""
    assert len({gemm.compiled(case, "sm_90a", one).ptx for one in found.values()}) == 6
    words = ("roles", "cluster = 2", "_k = 2")
    assert all(any(word in one for one in found.values()) for word in words)
    older = gemm.schedules(case, "sm_80", loops.MOST)
    assert len(older) == 3
    assert not any("roles" in one for one in older.values())


def test_tflops_are_of_times() -> None:
    case = Case("square", "bf16", 1000, 1000, 1000)
    assert gemm.tflops(case, [2.0, 1.0, 4.0]) == pytest.approx([1.0, 0.5, 2.0])


@pytest.mark.parametrize("step", [gemm, loops])
def test_tiles_divide_sizes(step: Any) -> None:
    for cases, tilings in ((step.CASES, step.TILINGS), (step.SMALL, step.SMALL_TILINGS)):
        names = {tiling.name(case) for case in cases for tiling in tilings}
        assert len(names) == len(cases) * len(tilings)
        for case in cases:
            for tiling in tilings:
                constants = tiling.request(case)["constants"]
                assert all(constants[n] % constants[f"T{n}"] == 0 for n in "MNK")
                tiles = constants["M"] * constants["N"] / constants["TM"] / constants["TN"]
                assert tiling.programs(case) == min(tiles, constants.get("PROGRAMS", tiles))


# cuBLASLt -----------------------------------------------------------------------------------------


class Library:
    """The functions of cuBLASLt that are called, as its header describes them, in numpy."""

    def __init__(self) -> None:
        self.made: list[Any] = [None]
        self.ran: list[int] = []

    def _new(self, place: Any, value: Any) -> int:
        self.made.append(value)
        place._obj.value = len(self.made) - 1
        return 0

    def cublasLtMatmulDescCreate(self, place: Any, compute: int, scale: int) -> int:
        return self._new(place, {"types": (compute, scale)})

    def cublasLtMatmulPreferenceCreate(self, place: Any) -> int:
        return self._new(place, {})

    def cublasLtMatrixLayoutCreate(self, place: Any, type: int, *sizes: Any) -> int:
        return self._new(place, ({0: np.float32, 2: np.float16}[type], *(x.value for x in sizes)))

    def cublasLtMatmulDescSetAttribute(self, what: Any, key: int, value: Any, size: Any) -> int:
        assert ctypes.sizeof(value._obj) == size.value
        self.made[what.value][key] = value._obj.value
        return 0

    cublasLtMatmulPreferenceSetAttribute = cublasLtMatmulDescSetAttribute

    def cublasLtMatmulAlgoGetHeuristic(self, *arguments: Any) -> int:
        *_, preference, most, results, count = arguments
        assert self.made[preference.value] == {1: 32 << 20}
        assert most == len(results._obj) == 16
        for index, state in enumerate((0, 15, 0, 0)):  # 15: not supported
            results._obj[index].state = state
            results._obj[index].algorithm[0] = index
        count._obj.value = 4
        return 0

    def cublasLtMatmul(
        self, _: Any, product: Any, alpha: Any, a: Any, a_layout: Any, b: Any, b_layout: Any,
        beta: Any, c: Any, c_layout: Any, d: Any, d_layout: Any, algorithm: Any, *memory: Any,
    ) -> int:  # fmt: skip
        if (number := algorithm._obj.algorithm[0]) == 2:
            return 15
        assert (alpha._obj.value, beta._obj.value, c.value) == (1, 0, d.value)
        assert [x.value for x in memory[1:]] == [32 << 20, None]
        x, y = self._matrix(a, a_layout), self._matrix(b, b_layout)
        if self.made[product.value].get(3):
            x = x.T
        self._matrix(d, d_layout)[:] = x.astype(np.float64) @ y
        self.ran.append(number)
        return 0

    def _matrix(self, address: Any, layout: Any) -> Any:
        type, rows, columns, step = self.made[layout.value]
        size = step * columns * np.dtype(type).itemsize
        held = np.frombuffer((ctypes.c_uint8 * size).from_address(address.value), type)
        return held.reshape(columns, step)[:, :rows].T

    def cublasLtGetStatusName(self, status: int) -> bytes:
        return b"CUBLAS_STATUS_NOT_SUPPORTED"

    def cublasLtGetVersion(self) -> int:
        return 130100


def on_host(array: Any) -> Any:
    return SimpleNamespace(address=array.ctypes.data, shape=array.shape, kept=array)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    """The stand-in in cuBLASLt's place; the later an algorithm is offered the faster it is."""
    found = Library()

    def timed(starts: dict[str, Callable[[], None]], rounds: int) -> dict[str, list[float]]:
        return {name: [1 / (1 + int(name))] * rounds for name in starts}

    def nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(cublaslt, "_library", lambda: found)
    monkeypatch.setattr(cublaslt, "_handle", lambda: ctypes.c_void_p(1))
    monkeypatch.setattr(cublaslt, "DeviceArray", on_host)
    monkeypatch.setattr(cublaslt, "measured", timed)
    monkeypatch.setattr(cublaslt.driver, "call", nothing)
    return found


@pytest.mark.parametrize(("type", "compute"), [("f16", 68), ("tf32", 77)])
def test_cublaslt_computes_the_product_by_the_fastest(
    library: Library, type: str, compute: int
) -> None:
    case = Case("odd", type, 24, 40, 16)
    kind = TYPES[type]
    a = normal((24, 16), kind.element, 0)
    b = normal((40, 16) if kind.turned else (16, 40), kind.element, 1)
    c = np.full((24, 40), np.nan, np.float16 if type == "f16" else np.float32)
    x, y, z = (on_host(one) for one in (a, b, c))
    found = cublaslt.best(x, y, z, kind.element, kind.result, turned=kind.turned)
    assert library.made[1]["types"] == (compute, 0)
    assert library.ran == [0, 3]  # 1 is not offered, 2 fails
    assert [found.facts[key] for key in ("tried", "offer")] == [2, 2]
    c[:] = np.nan
    found.start()
    assert library.ran == [0, 3, 3]
    assert wrong(case, a, b, c) == ""


def test_results_lie_as_the_header_says() -> None:
    """Sizes and offsets as gcc has them for cublasLtMatmulHeuristicResult_t of CUDA 13.0."""
    assert ctypes.sizeof(cublaslt.Offer) == 96
    assert [cublaslt.Offer.workspace.offset, cublaslt.Offer.state.offset] == [64, 72]


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cublaslt, "_places", lambda: ["libnosuch.so.13"])
    cublaslt._library.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(FragirError, match=r"libcublasLt\.so\.13 is not there"):
        cublaslt.offers((8, 8, 8), "f16", "f16", turned=False)


# PyTorch ------------------------------------------------------------------------------------------


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(FragirError, match="torch is not installed"):
        peers.softmax(None, None, "f32")


@pytest.mark.parametrize("type", list(TYPES))
def test_pytorch_multiplies(type: str) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    case, kind = Case("odd", type, 64, 96, 128), TYPES[type]
    a = normal((64, 128), kind.element, 0)
    b = normal((96, 128) if kind.turned else (128, 96), kind.element, 1)
    c = np.zeros((64, 96), normal((1, 1), kind.result, 0).dtype)
    types = kind.element, kind.result
    peers.matmul(a, b, c, *types, turned=kind.turned, device="cpu").start()
    assert wrong(case, a, b, c) == ""


def test_pytorch_of_rows() -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    draw = np.random.default_rng(0)
    x = draw.standard_normal((8, 300)).astype(np.float32)
    gamma, beta = draw.standard_normal((2, 300)).astype(np.float32)
    targets = draw.integers(0, 300, 8).astype(np.int32)
    y, turned, losses = np.zeros_like(x), np.zeros((300, 8), np.float32), np.zeros(8, np.float32)
    d = x - x.mean(1, keepdims=True)
    sums = np.exp(x).sum(1, keepdims=True)
    squares = (x * x).mean(1, keepdims=True)
    wanted = (
        (peers.softmax(x, y, "f32", "cpu"), y, np.exp(x) / sums),
        (
            peers.layer_norm(x, gamma, beta, y, 1e-5, "f32", "cpu"),
            y,
            d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * gamma + beta,
        ),
        (peers.rms_norm(x, gamma, y, 1e-5, "f32", "cpu"), y, x / np.sqrt(squares + 1e-5) * gamma),
        (
            peers.cross_entropy(x, targets, losses, -100, "f32", "cpu"),
            losses,
            np.log(sums)[:, 0] - x[range(8), targets],
        ),
        (peers.transpose(x, turned, "f32", "cpu"), turned, x.T),
        (peers.copy(x, y, "f32", "cpu"), y, x),
    )
    for contender, out, exact in wanted:
        out[:] = np.nan
        contender.start()
        np.testing.assert_allclose(out, exact, rtol=1e-5, atol=1e-5)


# Triton -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def triton() -> Iterator[Any]:
    from benchmarks.gpu import neighbour  # which finds `neighbours`

    neighbours: Any = importlib.import_module("neighbours")
    if not (neighbours.TRITON.home / "installed").exists():
        pytest.skip("Triton is not installed: `make gpu-kit` does it")
    with neighbour.triton(True) as found:
        yield found


def run(answer: dict[str, Any], grid: tuple[int, ...], *arguments: Any) -> None:
    """A kernel on the emulator, with nothing where Triton's own memory would be."""
    emulator.run(
        base64.b64decode(answer["ptx"]).decode(),
        answer["entry"],
        grid=grid,
        block=(32 * answer["warps"],),
        arguments=[*arguments, *[0] * answer["scratch"]],
        shared=answer["shared"],
    )


@pytest.mark.parametrize("tiling", gemm.SMALL_TILINGS, ids=lambda one: one.way)
def test_triton_multiplies(triton: Any, tiling: gemm.Tiling) -> None:
    case = gemm.SMALL[1]
    a, b = (normal((128, 128), "f8E4M3FN", seed) for seed in range(2))
    c = np.zeros((128, 128), np.uint16)
    answer = triton.ask(tiling.request(case))
    assert base64.b64decode(answer["cubin"]).startswith(b"\x7fELF")
    given: list[Any] = [a, b, c]
    if answer["maps"]:
        given = []
        for array, map, kind in zip((a, b, c), answer["maps"], ("u8", "u8", "u16"), strict=True):
            tiles = emulator.TensorMap(array, tuple(map["box"]), map["swizzle"], kind=kind)
            given += [tiles, 128, 128, 128, 1]
    run(answer, (tiling.programs(case),), *given)
    assert wrong(case, a, b, c) == ""


@pytest.mark.parametrize("tile", [512, 128])
def test_triton_has_rows(triton: Any, tile: int) -> None:
    x = np.random.default_rng(0).standard_normal((3, 300)).astype(np.float32)
    common = {"constants": {"COLUMNS": 300, "TILE": tile}, "warps": 4, "stages": 2, "target": 90}
    pair = {"x": "*fp32:16", "y": "*fp32:16"}
    y, loss, logsums = np.zeros_like(x), np.zeros(3, np.float32), np.zeros(3, np.float32)
    run(triton.ask({"kernel": "softmax", "signature": pair, **common}), (3,), x, y)
    sums = np.exp(x).sum(1, keepdims=True)
    np.testing.assert_allclose(y, np.exp(x) / sums, rtol=1e-5)
    signature = {"x": "*fp32:16", "targets": "*i32:16", "losses": "*fp32:16"}
    signature |= {"logsums": "*fp32:16", "ignored": "i32"}
    answer = triton.ask({"kernel": "cross_entropy", "signature": signature, **common})
    targets = np.array([7, -100, 299], np.int32)
    run(answer, (3,), x, targets, loss, logsums, -100 % 2**32)
    exact = np.log(sums[:, 0])
    np.testing.assert_allclose(logsums, exact, rtol=1e-5)
    wanted = [exact[0] - x[0, 7], 0, exact[2] - x[2, 299]]
    np.testing.assert_allclose(loss, wanted, rtol=1e-5)


def test_triton_says_why_not(triton: Any) -> None:
    request = gemm.SMALL_TILINGS[0].request(gemm.SMALL[0])
    assert "neither types nor constants" in triton.ask({**request, "signature": {}})["error"]
    assert "error" in triton.ask({"ttgir": "module {", "target": 90})
