"""cuBLASLt's best: all the algorithms that its heuristic offers for a product, each timed.

Numbers and layouts are of the headers of CUDA 13.0, cublasLt.h and, where it says so, cublas_api.h
and library_types.h. Matrices are column-major there: C^T = B^T A^T is computed, whose memory is
that of the row-major C = A B.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu.contest import Contender
from benchmarks.gpu.device import DeviceArray, measured, median
from fragir.errors import FragirError
from fragir.toolchain import driver

_NAME = "libcublasLt.so.13"
_TYPES = {"f32": 0, "tf32": 0, "f16": 2, "bf16": 14, "f8E4M3FN": 28}
"""CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_8F_E4M3 (cudaDataType_t in library_types.h)."""
_COMPUTE, _COMPUTE_TF32 = 68, 77
"""CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32 (cublasComputeType_t in cublas_api.h)."""
_TRANSPOSED = 1
"""CUBLAS_OP_T (cublasOperation_t in cublas_api.h)."""
_TRANSPOSE_A, _FAST = 3, 25
"""CUBLASLT_MATMUL_DESC_TRANSA, an int32_t; CUBLASLT_MATMUL_DESC_FAST_ACCUM, an int8_t
(cublasLtMatmulDescAttributes_t). Factors of fp8 operands are 1 unless others are given."""
_MOST_WORKSPACE = 1
"""CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, a uint64_t (cublasLtMatmulPreferenceAttributes_t)."""
WORKSPACE = 32 << 20
"""Bytes, as PyTorch gives cuBLAS on Hopper."""
OFFERS = 16


class Offer(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t, 96 bytes; the first 64 are a cublasLtMatmulAlgo_t."""

    _fields_ = (
        ("algorithm", ctypes.c_uint64 * 8),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


def _places() -> Iterator[str]:
    """Where the library may be: NVIDIA's package, PyTorch's folder, where the loader looks."""
    for package, folder in (("nvidia", "cu13/lib"), ("nvidia", "cublas/lib"), ("torch", "lib")):
        found = importlib.util.find_spec(package)
        for place in (found and found.submodule_search_locations) or ():
            path = Path(place, folder, _NAME)
            if path.exists():
                yield str(path)
    yield _NAME


@functools.cache
def _library() -> Any:
    """The library; FragirError where it is not there."""
    for place in _places():
        with contextlib.suppress(OSError):
            library = ctypes.CDLL(place)
            library.cublasLtGetStatusName.restype = ctypes.c_char_p
            library.cublasLtGetVersion.restype = ctypes.c_size_t
            return library
    raise FragirError(f"{_NAME} is not there")


def _do(name: str, *arguments: Any) -> None:
    """Calls a function; FragirError with the name of the status that it returns."""
    library = _library()
    if status := getattr(library, name)(*arguments):
        words: bytes = library.cublasLtGetStatusName(status)
        raise FragirError(f"{name} says {words.decode()}")


def _made(name: str, *arguments: Any) -> ctypes.c_void_p:
    """What a function creates; it lives as long as the process."""
    found = ctypes.c_void_p()
    _do(name, ctypes.byref(found), *arguments)
    return found


@functools.cache
def _handle() -> ctypes.c_void_p:
    return _made("cublasLtCreate")


def _layout(type: str, rows: int, columns: int) -> ctypes.c_void_p:
    """A column-major matrix without gaps."""
    sizes = ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows)
    return _made("cublasLtMatrixLayoutCreate", _TYPES[type], *sizes)


def _set(what: str, place: ctypes.c_void_p, attribute: int, value: Any) -> None:
    size = ctypes.c_size_t(ctypes.sizeof(value))
    _do(f"cublasLtMatmul{what}SetAttribute", place, attribute, ctypes.byref(value), size)


def offers(
    sizes: tuple[int, int, int], element: str, result: str, *, turned: bool
) -> tuple[list[Offer], tuple[Any, ...]]:
    """What the heuristic offers for M, N, K, and the descriptors: of the product, B, A and C."""
    m, n, k = sizes
    compute = _COMPUTE_TF32 if element == "tf32" else _COMPUTE
    product = _made("cublasLtMatmulDescCreate", compute, _TYPES["f32"])
    if turned:
        _set("Desc", product, _TRANSPOSE_A, ctypes.c_int32(_TRANSPOSED))
    if element == "f8E4M3FN":
        _set("Desc", product, _FAST, ctypes.c_int8(1))
    right = _layout(element, k, n) if turned else _layout(element, n, k)
    layouts = right, _layout(element, k, m), _layout(result, n, m)
    preference = _made("cublasLtMatmulPreferenceCreate")
    _set("Preference", preference, _MOST_WORKSPACE, ctypes.c_uint64(WORKSPACE))
    results, count = (Offer * OFFERS)(), ctypes.c_int()
    places = ctypes.byref(results), ctypes.byref(count)
    _do(
        "cublasLtMatmulAlgoGetHeuristic",
        *(_handle(), product, *layouts, layouts[-1], preference, OFFERS, *places),
    )
    return [one for one in results[: count.value] if one.state == 0], (product, *layouts)


def best(
    a: DeviceArray, b: DeviceArray, c: DeviceArray, element: str, result: str, *,
    turned: bool, rounds: int = 5,
) -> Contender:  # fmt: skip
    """C = A B by the fastest of the algorithms offered; B is N x K where it is `turned`.

    fp8 sums stay in the tensor cores, as ours do. FragirError where none works.
    """
    sizes = (*c.shape, a.shape[1])
    found, (product, *layouts) = offers(sizes, element, result, turned=turned)
    workspace = DeviceArray(np.empty(WORKSPACE, np.uint8))
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    right, left, out, room = (ctypes.c_void_p(x.address) for x in (b, a, c, workspace))

    def starter(offer: Offer) -> Callable[[], None]:
        operands = ctypes.byref(one), right, layouts[0], left, layouts[1], ctypes.byref(zero)
        results = out, layouts[2], out, layouts[2], ctypes.byref(offer)
        memory = room, ctypes.c_size_t(WORKSPACE), ctypes.c_void_p(0)  # of stream 0
        arguments = (_handle(), product, *operands, *results, *memory)
        return lambda: _do("cublasLtMatmul", *arguments)

    starts: dict[str, Callable[[], None]] = {}
    problem = "the heuristic offers nothing"
    for index, offer in enumerate(found):
        try:
            start = starter(offer)
            start()
            driver.call("cuStreamSynchronize", 0)
            starts[str(index)] = start
        except FragirError as error:
            problem = str(error)
    if not starts:
        workspace.free()
        raise FragirError(f"cuBLASLt: {problem}")
    times = {name: median(runs).median for name, runs in measured(starts, rounds).items()}
    chosen = min(times, key=times.__getitem__)
    facts = {
        "cublaslt": _library().cublasLtGetVersion(),
        "tried": len(times),
        "offer": int(chosen),  # 0 is what the heuristic puts first
        "workspace": found[int(chosen)].workspace,
    }
    return Contender(starts[chosen], facts, (workspace,))
