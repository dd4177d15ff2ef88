"""Where the elements of a matrix lie in swizzled shared memory, as numbers and as index values.

A matrix of R x C elements with a swizzle of W bytes is cut into panels of W bytes of columns; a
panel is R rows of W bytes, R rounded up so that a panel is a multiple of 1024 bytes. Within a
panel the byte offset x = row * W + column bytes is replaced by x ^ (((x >> 7) & (W/16 - 1)) << 4)
(PTX ISA 9.2, section 5.5.7: swizzle modes). Since panels and whole matrices are multiples of 1024
bytes, only the low ten bits are ever permuted.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from fragir.dialects import frag, ptx
from fragir.errors import FragirError
from fragir.passes.lowering.arithmetic import Arithmetic, Value

ATOM = 1024  # bytes after which every swizzle repeats


class SharedMatrix(NamedTuple):
    """The last two dimensions of a memref in shared memory."""

    rows: int
    cols: int
    bits: int
    swizzle: int  # bytes; 0 for none

    @staticmethod
    def of(memory: MemRefType[Attribute]) -> SharedMatrix:
        """The geometry that a memref's type describes."""
        space = memory.memory_space
        assert isinstance(space, frag.SharedAttr)
        rows, cols = memory.get_shape()[-2:]
        bits = ptx.bits(memory.element_type)
        if cols * bits % 8:
            raise FragirError(f"a row of {memory} does not end at a whole byte")
        return SharedMatrix(rows, cols, bits, space.swizzle.data)

    @property
    def width(self) -> int:
        """Bytes of one row of a panel."""
        return self.swizzle or self.cols * self.bits // 8

    @property
    def panel_cols(self) -> int:
        """Elements of one row of a panel."""
        return self.width * 8 // self.bits

    @property
    def panels(self) -> int:
        return -(-self.cols // self.panel_cols)

    @property
    def panel_bytes(self) -> int:
        """Bytes from one panel to the next."""
        size = self.rows * self.width
        return -(-size // ATOM) * ATOM if self.swizzle else -(-size // 16) * 16

    @property
    def bytes(self) -> int:
        """Bytes of the whole matrix."""
        return self.panels * self.panel_bytes

    @property
    def xor_mask(self) -> int:
        """Which of the three row bits 7..9 are XORed into bits 4..6."""
        return self.swizzle // 16 - 1 if self.swizzle else 0

    def permute(self, offset: int) -> int:
        """The swizzle of a byte offset."""
        return offset ^ ((offset >> 7 & self.xor_mask) << 4)

    def byte(self, row: int, col: int) -> int:
        """The byte offset of an element."""
        panel, inside = divmod(col, self.panel_cols)
        offset = row * self.width + inside * self.bits // 8
        return panel * self.panel_bytes + self.permute(offset)


class LaneOffset(NamedTuple):
    """Part of a coordinate that comes from lane, warp or thread: a value and its possible bits.

    `mask` has every bit that may be set; None where sums may carry, so that nothing is known.
    """

    value: Value
    mask: int | None


def shared_offset(
    ar: Arithmetic, matrix: SharedMatrix, row: LaneOffset, col: LaneOffset, at: tuple[Value, Value]
) -> tuple[Value, int]:
    """The byte offset of element (row + at[0], col + at[1]) as (value, constant to add)."""
    fast = _by_bits(ar, matrix, row, col, at)
    if fast is not None:
        return fast
    r, c = ar.add(row.value, at[0]), ar.add(col.value, at[1])
    inside = ar.rem(c, matrix.panel_cols) if matrix.panels > 1 else c
    offset = _permuted(ar, matrix, _linear(ar, matrix, r, inside))
    if matrix.panels > 1:
        panel = ar.div(c, matrix.panel_cols)
        offset = ar.add(offset, ar.mul(panel, matrix.panel_bytes))
    return (0, offset) if isinstance(offset, int) else (offset, 0)


def _linear(ar: Arithmetic, matrix: SharedMatrix, row: Value, col: Value) -> Value:
    if matrix.bits < 8:
        raise FragirError("elements of less than a byte are not placed in shared memory")
    return ar.add(ar.mul(row, matrix.width), ar.mul(col, matrix.bits // 8))


def _permuted(ar: Arithmetic, matrix: SharedMatrix, offset: Value) -> Value:
    if isinstance(offset, int):
        return matrix.permute(offset)
    if not matrix.xor_mask:
        return offset
    bits = ar.and_(ar.div(offset, 8), matrix.xor_mask << 4)
    return ar.xor(offset, bits)


def _by_bits(
    ar: Arithmetic, matrix: SharedMatrix, row: LaneOffset, col: LaneOffset, at: tuple[Value, Value]
) -> tuple[Value, int] | None:
    """The offset where the constant's bits and the lanes' bits never meet, so that no sum carries.

    Then the swizzle, which is linear over XOR, can be taken of both parts apart, and all but a few
    bits of the constant's part become an immediate.
    """
    r, c = at
    if not isinstance(r, int) or not isinstance(c, int):
        return None
    if row.mask is None or col.mask is None:
        return None
    columns = matrix.panel_cols
    if matrix.panels > 1 and (columns & (columns - 1) or col.mask & c):
        return None
    size = matrix.bits // 8
    split = matrix.panels > 1
    panel, inside = divmod(c, columns) if split else (0, c)
    inside_mask = col.mask & (columns - 1) if split else col.mask
    lanes_low = _bits_of(row.mask, matrix.width) | _bits_of(inside_mask, size)
    constant = r * matrix.width + inside * size
    if matrix.xor_mask:
        if matrix.width & (matrix.width - 1) or lanes_low & constant & (ATOM - 1):
            return None
    lane_col = ar.rem(col.value, columns) if split else col.value
    value = _permuted(ar, matrix, _linear(ar, matrix, row.value, lane_col))
    low = matrix.permute(constant & (ATOM - 1))
    touched = lanes_low | ((lanes_low >> 7 & matrix.xor_mask) << 4) if matrix.xor_mask else 0
    value = ar.xor(value, low & touched)
    immediate = (low & ~touched) + (constant & ~(ATOM - 1)) + panel * matrix.panel_bytes
    if split and col.mask & ~(columns - 1):
        lane_panel = ar.div(col.value, columns)
        value = ar.add(value, ar.mul(lane_panel, matrix.panel_bytes))
    return value, immediate


def _bits_of(mask: int, factor: int) -> int:
    """Bits that factor * x may set for x with bits in `mask`; factor is a power of two here."""
    return mask * factor if factor & (factor - 1) == 0 else (1 << (mask * factor).bit_length()) - 1
