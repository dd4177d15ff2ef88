"""Tensor maps that a launch passes: made of the arrays that the kernel is called with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fragir.arguments import ArrayView
from fragir.errors import FragirError

if TYPE_CHECKING:
    from fragir.dialects.ptx.tensor_maps import TensorMapRecord

UNIT = 16
"""Bytes: the strides of a tensor map, and its address, are multiples (PTX ISA 9.2, 5.5.1)."""

# how tensormap.replace calls the types that it has (PTX ISA 9.2, section 9.7.9.28)
_KINDS = {"tf32": "f32"} | {name: name for name in ("f16", "bf16", "f32", "f64", "s32", "s64")}
_BY_BITS = {8: "u8", 16: "u16", 32: "u32", 64: "u64"}


@dataclass(frozen=True, eq=False)
class GpuTensorMap:
    """A tensor map of an array that lies on the GPU; as `fragir.emulator.TensorMap`."""

    array: Any
    box: tuple[int, ...]
    swizzle: int
    strides: tuple[int, ...]
    shape: tuple[int, ...]
    kind: str
    promotion: int = 0
    element_strides: None = None
    fill: str = "zero"
    atom: int = 16
    im2col: None = None


def tensor_map(
    record: TensorMapRecord, view: ArrayView, memory: object, bits: int, name: str
) -> object:
    """The tensor map of a record, of an array that lies in `memory` as a launcher is given it.

    FragirError, with a way out, for strides that no tensor map has. Of an array without elements
    it is one of zeros: what the kernel reads there is zero, what it writes there is nobody's.
    """
    size = bits // 8
    shape, strides = view.shape, tuple(stride * size for stride in view.strides)
    if record.turned:
        shape, strides = _turned(shape), _turned(strides)
    kind = _KINDS.get(record.element, _BY_BITS[bits])
    if 0 in shape:
        import numpy as np

        memory, shape = np.zeros(UNIT, np.uint8), (1,) * len(shape)
    # the stride of a dimension of one element is nobody's
    row = -(-shape[-1] * size // UNIT) * UNIT
    strides = tuple(
        row if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)
    )
    for dim, stride in enumerate(strides[:-1]):
        if stride % UNIT:
            raise FragirError(
                f"{name} has a stride of {stride} bytes in dimension "
                f"{len(shape) - 1 if record.turned and dim == len(shape) - 2 else dim}; the kernel "
                f"copies it by TMA, which takes multiples of {UNIT}",
                hint="pad its rows, or compile with copies by `frag.copy async`",
            )
    strides = (*strides[:-1], size)
    if view.on_gpu and 0 not in view.shape:
        return GpuTensorMap(
            memory, record.box, record.swizzle, strides, shape, kind, record.promotion
        )
    from fragir.emulator import TensorMap

    given: Any = memory
    swizzle: Any = record.swizzle
    promotion: Any = record.promotion
    return TensorMap(
        given,
        record.box,
        swizzle,
        strides=strides,
        shape=shape,
        kind=kind,
        promotion=promotion,
    )


def _turned(numbers: Sequence[int]) -> tuple[int, ...]:
    *leading, first, second = numbers
    return (*leading, second, first)
