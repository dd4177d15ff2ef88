"""Tiles of elements smaller than a byte: loaded and stored as tiles of bytes.

Two s4 or eight b1 that lie side by side in memory, the first one lowest, are one byte. Where they
are also neighbours in the fragment, as in the operands of every mma along K, the fragment of bytes
is the same registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects.builtin import IntegerType, Signedness, VectorType
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.errors import FragirError
from fragir.layout import Axis, Layout, Mode
from fragir.passes.lowering.access import TileAccess
from fragir.passes.lowering.arithmetic import Arithmetic, Value
from fragir.passes.lowering.lanes import Hardware
from fragir.passes.lowering.memory import Memory

_BYTE = IntegerType(8, Signedness.UNSIGNED)


class PackedAccess:
    """A tile of sub-byte elements in memory; like `TileAccess`."""

    def __init__(
        self,
        ar: Arithmetic,
        hardware: Hardware,
        tile: frag.TileType,
        memory: Memory,
        indices: Sequence[Value],
        *,
        transposed: bool,
        masked: bool,
        target: str,
        broadcast: bool = False,
    ):
        per = 8 // memory.bits
        along = memory.contiguous()
        rank = len(memory.shape)
        leading = rank - len(tile.shape)
        if broadcast or along is None or leading > along or (leading and len(tile.shape) != 2):
            raise FragirError(
                f"a tile of {tile.element_type} is loaded from and stored to memory whose last "
                "dimensions are the tile's, one of them contiguous"
            )
        dim = along - leading  # of the tile
        if transposed:
            dim = 1 - dim
        self._ar, self._element, self._per = ar, tile.element_type, per
        placement = tile.placement
        assert placement is not None
        self._chunk = placement.chunk
        coarse = _coarse(tile.resolve(), dim, per, tile)
        bytes_ = in_bytes(ar, memory, along)
        shape = tuple(n // per if d == dim else n for d, n in enumerate(tile.shape))
        self._inner = TileAccess(
            ar,
            hardware,
            frag.TileType(shape, _BYTE, frag.ExplicitLayoutAttr(coarse)),
            bytes_,
            divided(ar, tuple(indices), along, per, "an index"),
            transposed=transposed,
            masked=masked,
            target=target,
            chunk=self._chunk // per,
        )

    def load(self) -> list[SSAValue]:
        """The tile as one vector a chunk."""
        type_ = VectorType(self._element, [self._chunk])
        loaded = self._inner.load()
        return [self._ar.insert(ptx.BitcastOp(part, type_)).result for part in loaded]

    def store(self, fragments: Sequence[SSAValue]) -> None:
        """Writes the tile, one vector a chunk."""
        type_ = VectorType(_BYTE, [self._chunk // self._per])
        cast = [self._ar.insert(ptx.BitcastOp(part, type_)).result for part in fragments]
        self._inner.store(cast)


def _coarse(layout: Layout, dim: int, per: int, tile: frag.TileType) -> Layout:
    """The layout of the bytes: `per` elements along `dim` of the tile are one."""
    layout = layout.simplified()
    unit = tuple(int(d == dim) for d in range(layout.rank))
    first = next(iter(layout.axis("element").modes), None)
    if first is None or first.stride != unit or first.size % per:
        raise FragirError(
            f"the elements of {tile} that share a register do not share a byte in memory",
            hint="let K run along the contiguous dimension: load B from a memref<NxK> with "
            "`transposed`, or give its memref strided<[1, K]>",
        )
    axes: list[Axis] = []
    for axis in layout.axes:
        modes = list(axis.modes)
        if axis.name == "element":
            # the digit within the byte goes, what is left of the mode counts bytes
            modes[0] = Mode(first.size // per, tuple(per * x for x in unit))
        if any(mode.stride[dim] % per for mode in modes) or layout.origin[dim] % per:
            raise FragirError(f"the lanes' elements of {tile} do not begin at whole bytes")
        axes.append(
            Axis(
                axis.name,
                tuple(
                    Mode(m.size, tuple(x // per if d == dim else x for d, x in enumerate(m.stride)))
                    for m in modes
                    if m.size > 1
                ),
            )
        )
    offset = tuple(x // per if d == dim else x for d, x in enumerate(layout.origin))
    return Layout(tuple(axes), layout.dims, offset, layout.where)


def in_bytes(ar: Arithmetic, memory: Memory, along: int) -> Memory:
    """Memory of elements smaller than a byte, contiguous in dimension `along`, as bytes."""
    per = 8 // memory.bits
    matrix = memory.matrix
    shape = divided(ar, memory.shape, along, per, "the extent")
    if matrix is not None:  # in shared memory leading strides are bytes already
        matrix = replace(matrix, cols=matrix.cols // per, bits=8)
        strides = (*memory.strides[:-2], matrix.panel_cols, 1)
    else:
        strides = tuple(
            stride if d == along else _quotient(ar, stride, per, "a stride")
            for d, stride in enumerate(memory.strides)
        )
    return replace(memory, element=_BYTE, shape=shape, strides=strides, matrix=matrix)


def divided(
    ar: Arithmetic, values: Sequence[Value], at: int, per: int, what: str
) -> tuple[Value, ...]:
    """Numbers of elements of which the one at position `at` becomes one of bytes."""
    return tuple(_quotient(ar, v, per, what) if d == at else v for d, v in enumerate(values))


def _quotient(ar: Arithmetic, value: Value, per: int, what: str) -> Value:
    """A number of elements as one of bytes; FragirError where it is not known to be whole."""
    if value % per if isinstance(value, int) else ar.divisor(value) % per:
        shown = f"{value} elements" if isinstance(value, int) else "known at run time only"
        raise FragirError(
            f"{what} along the bytes is {shown}",
            hint=f"elements smaller than a byte are read {per} at a time; make it a static "
            f"multiple of {per}",
        )
    return ar.div(value, per)
