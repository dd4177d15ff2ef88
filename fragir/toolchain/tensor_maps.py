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

# numpy's and ml_dtypes' names, then those of tensormap.replace (PTX ISA 9.2, section 9.7.9.28) for
# what numpy has no name for; anything else is copied as unsigned numbers of its size
_TYPES = {
    "float16": "FLOAT16",
    "bfloat16": "BFLOAT16",
    "float32": "FLOAT32",
    "float64": "FLOAT64",
    "int32": "INT32",
    "int64": "INT64",
    "f32.ftz": "FLOAT32_FTZ",
    "tf32": "TFLOAT32",
    "tf32.ftz": "TFLOAT32_FTZ",
    "b4x16": "16U4_ALIGN8B",
    "b4x16_p64": "16U4_ALIGN16B",
    "b6x16_p32": "16U6_ALIGN16B",
    **{"u8": "UINT8", "u16": "UINT16", "u32": "UINT32", "s32": "INT32", "u64": "UINT64"},
    **{"s64": "INT64", "f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "FLOAT32", "f64": "FLOAT64"},
}
_PACKED_BITS = {"b4x16": 4, "b4x16_p64": 4, "b6x16_p32": 6}
_ATOMS = {16: "", 32: "_ATOM_32B", 64: "_ATOM_64B"}
_BY_SIZE = {1: "UINT8", 2: "UINT16", 4: "UINT32", 8: "UINT64"}
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_PROMOTIONS = {0: "NONE", 64: "L2_64B", 128: "L2_128B", 256: "L2_256B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


class TiledArray(Protocol):
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
    @property
    def kind(self) -> str | None: ...
    @property
    def atom(self) -> int: ...
    @property
    def im2col(self) -> object: ...
    @property
    def shape(self) -> tuple[int, ...] | None: ...
    @property
    def promotion(self) -> int: ...


def is_tensor_map(value: object) -> TypeGuard[TiledArray]:
    """Whether an argument of a launch is a tensor map."""
    return all(hasattr(value, name) for name in ("array", "box", "swizzle", "im2col"))


def encode(cuda: Any, tiles: TiledArray, address: int, do: Callable[..., Any], place: str) -> bytes:
    """The 128 bytes of a map over an array that lies at `address` on the GPU.

    `do` calls the driver and raises what it reports; `place` is what errors call the argument.
    """
    array = tiles.array
    strides = (tiles.strides or array.strides)[:-1]
    sizes = list(array.shape if tiles.shape is None else tiles.shape)
    steps = tiles.element_strides or (1,) * len(sizes)
    if address % _UNIT:
        raise FragirError(
            f"{place} begins at an address that is no multiple of {_UNIT} bytes",
            hint="pass a copy",
        )
    if any(stride % _UNIT for stride in strides):
        raise FragirError(
            f"the strides of {place} are {', '.join(map(str, strides))} bytes,"
            f" a tensor map needs multiples of {_UNIT}"
        )
    if any(not 1 <= side <= _LARGEST_BOX for side in tiles.box):
        raise FragirError(f"the box of {place} is {tiles.box}; its sides are 1 to {_LARGEST_BOX}")
    if tiles.im2col is not None:
        raise FragirError(
            f"{place} is an im2col tensor map, which the GPU is not given here",
            hint="run it on the emulator",
        )
    if tiles.kind in _PACKED_BITS and tiles.shape is None:
        sizes[-1] = sizes[-1] * 8 // _PACKED_BITS[tiles.kind]  # the array has bytes
    kind = _TYPES.get(tiles.kind or array.dtype.name) or _BY_SIZE[array.itemsize]
    swizzle = _SWIZZLES[tiles.swizzle] + _ATOMS[tiles.atom]
    encoded = do(
        cuda.cuTensorMapEncodeTiled,
        getattr(cuda.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{kind}"),
        len(sizes),
        address,
        [cuda.cuuint64_t(size) for size in reversed(sizes)],
        [cuda.cuuint64_t(stride) for stride in reversed(strides)],
        [cuda.cuuint32_t(side) for side in reversed(tiles.box)],
        [cuda.cuuint32_t(step) for step in reversed(steps)],
        cuda.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
        getattr(cuda.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
        getattr(
            cuda.CUtensorMapL2promotion,
            f"CU_TENSOR_MAP_L2_PROMOTION_{_PROMOTIONS[tiles.promotion]}",
        ),
        getattr(cuda.CUtensorMapFloatOOBfill, f"CU_TENSOR_MAP_FLOAT_OOB_FILL_{_FILLS[tiles.fill]}"),
    )
    return ctypes.string_at(encoded.getPtr(), SIZE)
