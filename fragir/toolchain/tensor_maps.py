"""Tensor maps as the driver encodes them (CUDA driver API, `cuTensorMapEncodeTiled`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from fragir.errors import FragirError

if TYPE_CHECKING:
    import numpy as np

SIZE = 128
"""Bytes of an encoded map, whose contents are the driver's own."""

_LARGEST_BOX = 256  # elements along one dimension
_UNIT = 16  # bytes: addresses, strides and the inner side of a box are multiples of it

# numpy's and ml_dtypes' names; what is not here is copied as unsigned numbers of its size
_TYPES = {
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "int32": "INT32",
    "int64": "INT64",
}
_BY_SIZE = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


class Tiles(Protocol):
    """Which tiles of an array are copied, as `fragir.emulator.TensorMap` says it.

    Dimensions go outermost first; `strides` and `swizzle` count bytes.
    """

    @property
    def array(self) -> np.ndarray[Any, np.dtype[Any]]: ...
    @property
    def box(self) -> tuple[int, ...]: ...
    @property
    def swizzle(self) -> int: ...
    @property
    def strides(self) -> tuple[int, ...] | None: ...
    @property
    def element_strides(self) -> tuple[int, ...] | None: ...
    @property
    def fill(self) -> str: ...


def is_tensor_map(value: object) -> TypeGuard[Tiles]:
    """Whether an argument of a launch is a tensor map."""
    return all(hasattr(value, name) for name in ("array", "box", "swizzle", "element_strides"))


def encode(cuda: Any, tiles: Tiles, address: int, do: Callable[..., Any], place: str) -> bytes:
    """The 128 bytes of a map over an array that lies at `address` on the GPU.

    `do` calls the driver and raises what it reports; `place` is what errors call the argument.
    """
    array = tiles.array
    strides = (tiles.strides or array.strides)[:-1]
    steps = tiles.element_strides or (1,) * array.ndim
    if any(stride % _UNIT for stride in strides):
        raise FragirError(
            f"the strides of {place} are {', '.join(map(str, strides))} bytes,"
            f" a tensor map needs multiples of {_UNIT}"
        )
    if any(not 1 <= side <= _LARGEST_BOX for side in tiles.box):
        raise FragirError(f"the box of {place} is {tiles.box}; its sides are 1 to {_LARGEST_BOX}")
    kind = _TYPES.get(array.dtype.name) or _BY_SIZE[array.itemsize]
    encoded = do(
        cuda.cuTensorMapEncodeTiled,
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        array.ndim,
        address,
        [cuda.cuuint64_t(size) for size in reversed(array.shape)],
        [cuda.cuuint64_t(stride) for stride in reversed(strides)],
        [cuda.cuuint32_t(side) for side in reversed(tiles.box)],
        [cuda.cuuint32_t(step) for step in reversed(steps)],
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{_SWIZZLES[tiles.swizzle]}"),
        cuda.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_NONE,
        getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[tiles.fill]}"),
    )
    return ctypes.string_at(encoded.getPtr(), SIZE)
