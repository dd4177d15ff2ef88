"""Tensor maps as a launch gives them (PTX ISA 9.2, section 5.5; cuTensorMapEncodeTiled)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from fragir.emulator.machine.tensor_map_fields import (
    ELEMENTS,
    NUMBERS,
    SWIZZLES,
    Im2col,
    MapElement,
    MapFields,
    padded,
)
from fragir.emulator.report import EmulationError
from fragir.errors import kind_of, one_of, whole_number

_BY_DTYPE = {
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "bfloat16": "bf16",
    "int32": "s32",
    "int64": "s64",
}


@dataclass(frozen=True, eq=False)
class TensorMap:
    """What `cuTensorMapEncodeTiled` makes: how tiles of `array` are copied.

    Dimensions go outermost first, as in numpy. `box`: the tile. `swizzle`: width of the pattern in
    bytes, 0 for none; `atom`: bytes that it keeps together (16, 32 or 64). `strides`: bytes, for
    all dimensions (default: the array's own). `element_strides`: every how many elements one is
    taken. `fill`: what elements outside the array read as; NaN needs a floating-point type.
    `kind`: the element type as tensormap.replace calls it (default: by dtype); of `b4x16`,
    `b4x16_p64` and `b6x16_p32` the array holds the packed bytes, and the box counts elements.
    `im2col`: as `cuTensorMapEncodeIm2col` (then `box` counts for nothing). `shape`: elements along
    each dimension, where `array` is the memory from the first of them on, in any shape; with it,
    `strides` and `kind` are given. `promotion`: bytes that the L2 cache fetches at least, of which
    the emulator knows nothing.
    """

    array: npt.NDArray[Any]
    box: tuple[int, ...]
    swizzle: Literal[0, 32, 64, 128] = 0
    strides: tuple[int, ...] | None = None
    element_strides: tuple[int, ...] | None = None
    fill: Literal["zero", "nan"] = "zero"
    kind: str | None = None
    atom: Literal[16, 32, 64] = 16
    im2col: Im2col | None = None
    shape: tuple[int, ...] | None = None
    promotion: Literal[0, 64, 128, 256] = 0

    def __repr__(self) -> str:
        size, box = ("x".join(map(str, each)) for each in (self.extents, self.box))
        pattern = f", swizzle {self.swizzle}" if self.swizzle else ""
        return f"<tensor map of {size} {self.kind or self.array.dtype}, box {box}{pattern}>"

    def __post_init__(self) -> None:
        self._check_kinds()
        rank = len(self.extents)
        if not 1 <= rank <= 5 or len(self.box) != rank:
            raise EmulationError(
                f"a tensor map has 1 to 5 dimensions and a box of as many, not {rank} and "
                f"{len(self.box)}"
            )
        if any(not 1 <= b <= 256 for b in self.box):
            raise EmulationError(f"the sides of a box are 1 to 256, not {self.box}")
        if self.kind is not None and self.kind not in NUMBERS:
            raise EmulationError(
                f"{self.kind!r} is no element type of tensor maps", hint=", ".join(NUMBERS)
            )
        element = self.element
        if self.array.itemsize * max(element.count // 2, 1) > max(element.bytes, 1):
            raise EmulationError(f"the array's elements are no .{element.name}")
        if self.atom != 16 and self.swizzle != 128:
            raise EmulationError("atoms of 32 and 64 bytes need swizzle 128")
        if self.im2col is not None:
            self._check_im2col(self.im2col)
            return
        inner = self.box[-1] * element.room // element.count
        if inner % 16 or self.box[-1] % element.count:
            raise EmulationError(f"the inner side of a box is a multiple of 16 bytes, not {inner}")
        if element.count == 16 and (self.box[-1] != 128 or self.swizzle not in (0, 128)):
            raise EmulationError(f"a box of .{element.name} is 128 wide, with swizzle 0 or 128")
        if self.swizzle and inner > self.swizzle:
            raise EmulationError(
                f"the inner side of the box has {inner} bytes, more than swizzle {self.swizzle}"
            )

    def _check_kinds(self) -> None:
        """That everything is of the type it should have."""
        if not isinstance(cast("object", self.array), np.ndarray):
            raise EmulationError(f"a tensor map is of a numpy array, not of {kind_of(self.array)}")
        for name, numbers in (
            ("box", self.box),
            ("strides", self.strides),
            ("element_strides", self.element_strides),
            ("shape", self.shape),
        ):
            if numbers is None and name != "box":
                continue
            if not isinstance(cast("object", numbers), tuple | list):
                raise EmulationError(f"{name} is a tuple of numbers, not {kind_of(numbers)}")
            for number in cast("tuple[object, ...]", numbers):
                whole_number(number, f"a number of {name}")
        for name, word in (("fill", self.fill), ("kind", self.kind)):
            if word is not None and not isinstance(cast("object", word), str):
                raise EmulationError(f"{name} is a str, not {kind_of(word)}")
        one_of(self.fill, ("zero", "nan"), "fill")
        one_of(str(whole_number(self.swizzle, "swizzle")), ("0", "32", "64", "128"), "swizzle")
        one_of(
            str(whole_number(self.promotion, "promotion")), ("0", "64", "128", "256"), "promotion"
        )
        if self.shape is not None and (self.strides is None or self.kind is None):
            raise EmulationError("with a shape, strides and kind are given")
        if len({len(self.extents), len(self.pitches), len(self.steps)}) != 1:
            raise EmulationError("there are a size, a stride and a step for each dimension")
        one_of(str(whole_number(self.atom, "atom")), ("16", "32", "64"), "atom")
        if self.im2col is not None and not isinstance(cast("object", self.im2col), Im2col):
            raise EmulationError(f"im2col is an Im2col, not {type(self.im2col).__name__}")

    def _check_im2col(self, how: Im2col) -> None:
        rank = len(self.extents)
        if not 3 <= rank <= 5 or len(how.lower) != rank - 2 or len(how.upper) != rank - 2:
            raise EmulationError(
                "an im2col map has 3 to 5 dimensions and corners of two fewer, not "
                f"{rank}, {len(how.lower)} and {len(how.upper)}"
            )
        if not 1 <= how.channels <= 256 or not 1 <= how.pixels <= 1024:
            raise EmulationError("an im2col map moves 1 to 256 channels of 1 to 1024 pixels")
        inner = how.channels * self.element.bytes // self.element.count
        if inner % 16 or (self.swizzle and inner > self.swizzle):
            raise EmulationError(
                f"the channels of a pixel are a multiple of 16 bytes, at most the swizzle: {inner}"
            )

    @property
    def element(self) -> MapElement:
        if self.kind is not None:
            return ELEMENTS[NUMBERS[self.kind]]
        name = _BY_DTYPE.get(self.array.dtype.name, f"u{8 * self.array.itemsize}")
        if name not in NUMBERS:
            raise EmulationError(f"a tensor map has no elements of numpy's {self.array.dtype}")
        return ELEMENTS[NUMBERS[name]]

    @property
    def steps(self) -> tuple[int, ...]:
        return self.element_strides or (1,) * len(self.extents)

    @property
    def extents(self) -> tuple[int, ...]:
        return self.array.shape if self.shape is None else self.shape

    @property
    def pitches(self) -> tuple[int, ...]:
        return self.strides or self.array.strides

    def fields(self, address: int) -> MapFields:
        """What the map holds where the array lies at a generic address."""
        element = self.element
        sizes = [*reversed(self.extents)]
        if self.shape is None:
            sizes[0] = sizes[0] * self.array.itemsize * element.count // element.bytes
        return MapFields(
            address=address,
            element=NUMBERS[element.name],
            rank=len(self.extents),
            sizes=padded(sizes, 5, 1),
            strides=padded([*reversed(self.pitches)][1:], 4, 0),
            box=padded([*reversed(self.box)], 5, 1),
            steps=padded([*reversed(self.steps)], 5, 1),
            swizzle=SWIZZLES.index(self.swizzle),
            atom={16: 0, 32: 1, 64: 3}[self.atom],
            fill=int(self.fill == "nan"),
            im2col=None
            if self.im2col is None
            else Im2col(
                tuple(reversed(self.im2col.lower)),
                tuple(reversed(self.im2col.upper)),
                self.im2col.channels,
                self.im2col.pixels,
            ),
        )
