"""Triton's encodings of registers and of shared memory, `#ttg.blocked<...>` and so on.

An encoding says how a tensor of any shape is spread, so the shape is needed too: as an argument, or
in the text as Triton's IR has it.

>>> mma = "#ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], " \\
...       "instrShape = [16, 8]}>"
>>> print(from_ttg(mma, (16, 32)))
lane [4:(0,2) 8:(1,0)] element [2:(0,1) 2:(8,0) 2:(0,16)] warp [2:(0,8)]
>>> print(from_ttg(f"tensor<16xf32, #ttg.slice<{{dim = 1, parent = {mma}}}>>"))
lane [4:0 8:1] element [2:8] warp [2:0]
>>> from_ttg(mma)
Traceback (most recent call last):
...
fragir.layout.modes.LayoutError: <layout>:1:1: #ttg.nvidia_mma is the layout of a tensor of any \
shape, which is not said (write tensor<64x32xf16, #ttg...>, or give the shape)
  #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
  ^

Threads are the axis `lane`, registers `element`, warps `warp`, blocks of a cluster `block`. Shared
memory is a layout from row and col to the number of the element (`index`).
"""

from __future__ import annotations

from fragir.layout.arguments import shape_of, text_of
from fragir.layout.chain import LayoutChain
from fragir.layout.layout import Layout
from fragir.layout.modes import Point
from fragir.layout.texts import distributed, shared
from fragir.layout.texts.encoding import Encoding, read_encoding


def from_ttg(text: str, shape: Point | None = None) -> Layout | LayoutChain:
    """The layout that an encoding of Triton's gives a tensor of this shape, of 1 to 4 dimensions.

    Raises LayoutError with the column, for a syntax error, a field that is missing or wrong, a
    shape that is missing or that the encoding cannot cover.
    """
    encoding, said = read_encoding(text_of(text, "a Triton encoding"))
    if shape is None:
        shape = said or _natural_shape(encoding)
    if shape is None:
        raise encoding.error(
            f"#ttg.{encoding.name} is the layout of a tensor of any shape, which is not said",
            hint="write tensor<64x32xf16, #ttg...>, or give the shape",
        )
    shape = shape_of(shape, "the shape")
    if encoding.name in distributed.SHARED:
        return shared.shared(encoding, shape)
    return distributed.distributed(encoding, shape)


def _natural_shape(encoding: Encoding) -> Point | None:
    if encoding.name in distributed.SHARED:
        return shared.natural_shape(encoding)
    return distributed.natural_shape(encoding)
