"""How a product's operands lie in shared memory, and in which layouts they are loaded from there.

Registers of bytes hold four along K. Where memory runs along M or N they are read as pairs of bytes
by ldmatrix, if a lane has neighbours of that dimension: so it is counted as "8:2 2:1", of which the
instruction's first eight are every second one (`passes/lowering/ldmatrix.py`). The columns of
C that a lane has are then four in a row, which are stored together. tf32 is read by pairs, too.

ldmatrix reads 16 bytes of eight rows at a time, which the swizzles of wgmma and TMA spread over the
banks. Plain loads of 4 and 8 bytes read 32 bytes of four rows at a time (of 8 bytes by half warps),
and want these apart: rows that differ in their two lowest bits flip bits 5 and 6 of a place instead
of 4 and 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.product_layouts import choose, wgmma_n
from fragir.dialects.frag.row_orders import row_order, type_in_row_order
from fragir.isa.products import wgmma_k
from fragir.layout import Layout, Mode, XorMode
from fragir.layout.modes import Axis
from fragir.layout.shared import swizzle_for

LINE = 128  # bytes of all banks
PAIRED = 16  # rows or columns that are counted two by two


def in_pairs(dimension: str) -> Layout:
    """A dimension counted as 0, 2, 4, ..., 14, 1, 3, ..., 15."""
    return Layout((Axis(dimension, (Mode(8, (2,)), Mode(2, (1,)))),), (dimension,))


def is_across(is_a: bool, transposed: bool) -> bool:
    """Whether memory runs along M or N, not along K."""
    return is_a == transposed


def loaded_as(
    tile: frag.TileType, instruction: str, operand: str, warps: tuple[int, int], transposed: bool
) -> frag.TileType:
    """The type in which a tile of A or B is loaded from shared memory; the same where any does."""
    is_a = operand == "a"
    extent, parts = (tile.rows, warps[0]) if is_a else (tile.cols, warps[1])
    # two of a row are registers side by side of A, but of two instructions' B
    pairs = (8, 32) if is_a else (8,)
    paired = extent % (PAIRED * parts) == 0 and ptx.bits(tile.element_type) in pairs
    if not paired or not is_across(is_a, transposed):
        return tile
    dimension = "m" if is_a else "n"
    orders = ((dimension, in_pairs(dimension)),)
    layout = frag.MmaLayoutAttr(frag.MmaFragment(instruction, operand, warps, orders))
    return frag.TileType(tile.shape, tile.element_type, layout)


def shared_type(
    element: Attribute, stack: Sequence[int], shape: tuple[int, int], by_words: bool
) -> MemRefType[Attribute]:
    """Shared memory for a stack of matrices of this shape, that matrices are read from; with
    `by_words` for loads of 4 and 8 bytes."""
    bits = ptx.bits(element)
    width = swizzle_for(shape[1] * bits // 8)
    if not by_words or shape[0] % 8 or not width:
        return MemRefType(element, [*stack, *shape], memory_space=frag.SharedAttr(width))
    layout = spread_rows((*stack, *shape), bits, width)
    return MemRefType(
        element, [*stack, *shape], frag.ExplicitLayoutAttr(layout), memory_space=frag.SharedAttr()
    )


def spread_rows(shape: tuple[int, ...], bits: int, width: int) -> Layout:
    """Panels of `width` bytes, as of a swizzle, of which 32 bytes of four rows in a row are in
    different banks, and 16 bytes of eight."""
    *stack, rows, cols = shape
    size = bits // 8
    held = width // size  # columns of a panel
    # rows that lie in other banks anyway need no flip: of 64 bytes two, of 32 bytes four
    apart = LINE // width
    flips = [flip for flip in (32, 64, 16) if flip < width]
    steps = [held << bit for bit in range(3)]
    first = apart.bit_length() - 1
    for number, flip in enumerate(flips):
        steps[first + number] ^= flip // size
    row = [XorMode(2, (step,)) for step in steps]
    axes = [Axis("row", (*row, Mode(rows // 8, (8 * held,))))]
    axes.append(Axis("col", (Mode(held, (1,)), Mode(cols // held, (rows * held,)))))
    if stack:
        axes.insert(0, Axis("matrix", (Mode(stack[0], (rows * cols,)),)))
    return Layout(tuple(axes), ("index",)).simplified()


def fits(rows: int, warps: int) -> bool:
    """Whether so many rows of an operand are handed out to warps."""
    return rows % (PAIRED * warps) == 0


def instruction_of(product: frag.MmaOp, warps: tuple[int, int], wgmma: bool, target: str) -> str:
    """The instruction of a product of tiles that have no layouts yet, short as in `#frag.mma`."""
    a, b, c, d = (frag.tile_of(v) for v in (product.a, product.b, product.c, product.d))
    if not wgmma:
        a, b, c, d = (tile.with_layout(None) for tile in (a, b, c, d))
        return choose(a, b, c, d, None, target)
    element = element_name(a.element_type)
    n = wgmma_n(frag.TileType((c.rows, c.cols // warps[1]), c.element_type), element)
    return f"m64n{n}k{wgmma_k(element)}.{element}"


# -- transposed copy -------------------------------------------------------------------------------
# An operand of wgmma that is transposed in shared memory, on its way from global memory.
#
# wgmma reads elements other than of 16 bits K-major, and one operand only from registers. Where
# both A and B lie across K, the other one is read from its slot by all warps, as fragments whose
# rows are written K-major to a second place, from which wgmma reads. Bytes are read as pairs by
# `ldmatrix` and taken apart by `prmt`, tf32 two at a time; both are written by `stmatrix`. Lanes
# hold every second row, so rows lie in that order in the second place, eight that are written
# together beside each other, and the accumulators' columns are counted so.

FRAGMENTS = {8: "m16n8k32", 32: "m16n8k8"}  # whose A is read and written, by bits of an element


class TransposedCopy:
    """The second place of an operand, of the size of one slot: `rows` along M or N, and K; or
    `places` of them, which turns take one after the other."""

    def __init__(self, element: Attribute, tile: tuple[int, int], warps: int, places: int = 1):
        rows, k = tile
        bits = ptx.bits(element)
        space = frag.SharedAttr(swizzle_for(k * bits // 8))
        order = in_pairs("m")
        name = f"{FRAGMENTS[bits]}.{element_name(element)}"
        fragment = frag.MmaFragment(name, "a", (warps, 1), (("m", order),))
        self._tile = frag.TileType(tile, element, frag.MmaLayoutAttr(fragment))
        stack = [places] if places > 1 else []
        plain = MemRefType(element, [*stack, *tile], memory_space=space)
        self.alloc = memref.AllocOp([], [], type_in_row_order(plain, row_order(order, rows)))
        self.memory: SSAValue = self.alloc.memref
        self.memory.name_hint = "k_major"

    def fill(
        self, slot: SSAValue, place: SSAValue | None, met: bool
    ) -> tuple[SSAValue, tuple[Operation, ...]]:
        """The second place of a turn, one of several where `place` counts turns, and what
        transposes a slot's part into it; a barrier, after which all threads see it, comes last.

        Into one place: unless threads have `met` since the last turn's product, they wait for those
        that still read it. Of two, the other one is read meanwhile.
        """
        load = frag.LoadOp(slot, [0, 0], self._tile, transposed=True)
        view = () if place is None else (frag.ViewOp(self.memory, [place]),)
        memory = view[0].matrix if view else self.memory
        store = frag.StoreOp(load.tile, memory, [0, 0])
        before = () if met or view else (frag.BarrierOp(),)
        return memory, (load, *view, *before, store, frag.BarrierOp())
