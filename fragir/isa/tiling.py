"""The layout of a whole tile: one instruction's fragment, repeated over registers and warps."""

from __future__ import annotations

from fragir.errors import FragirError
from fragir.isa.model import Instruction
from fragir.layout import Axis, Layout, Mode
from fragir.layout.distribution import Distribution
from fragir.layout.modes import WARP

# Which of the instruction's dimensions an operand's rows and columns are.
_DIMENSIONS = {"a": "mk", "b": "kn", "c": "mn", "d": "mn", "e": "mk"}


def tile_layout(
    instruction: Instruction,
    operand: str,
    shape: tuple[int, ...],
    warps: tuple[int, int] = (1, 1),
) -> Layout:
    """The layout of an operand's tile of `shape` (rows, columns) over `warps` = (wm, wn).

    Operand is a, b, c, d or e; rows and columns are those of the operand itself (B is k x n). Axes
    are warp, lane (32) and element. Each warp owns a contiguous block of M / wm rows and N / wn
    columns of C; A is replicated over the wn warps beside each other, B over the wm warps below
    each other. Warp id = warp_m + wm * warp_n. A lane's elements are the instruction's own, then
    repeats down the rows, then repeats along the columns.

    For wgmma `warps` counts warpgroups: axis warp has 4 * wm * wn warps, those of a warpgroup
    fastest. For the m8n8k4 of f16, four products at once, the tile is (rows, columns, 4), exactly
    one instruction by one warp.

    Of metadata (e) every lane holds what those that selector 0 names must.

    Errors where the shape is no multiple of what the warps' instructions cover.
    """
    held = instruction.operand(operand)
    if operand not in _DIMENSIONS or held.layout is None:
        raise FragirError(
            f"operand {operand!r} of {instruction.mnemonic} has no layout in registers to tile",
            hint="a, b, c, d or e, where it stands in registers",
        )
    if len(held.shape) != 2:
        return _products(instruction, held.layout, held.shape, shape, warps)
    if len(shape) != 2:
        raise FragirError(f"a tile of {instruction.mnemonic} is (rows, columns), not {shape}")
    wm, wn = warps
    rows, cols = shape
    over = {"m": wm, "n": wn, "k": 1}
    over_rows, over_cols = (over[dimension] for dimension in _DIMENSIONS[operand])
    block_rows = _share(instruction, operand, "rows", rows, over_rows, held.shape[0])
    block_cols = _share(instruction, operand, "columns", cols, over_cols, held.shape[1])
    lane, in_group = _split_lanes(held.layout.axis("lane").modes)
    modes = {"warp": in_group, "lane": lane, "element": held.layout.axis("element").modes}
    tile = Distribution(held.shape, modes)
    tile.spread("element", block_rows // held.shape[0], 0)
    tile.spread("element", block_cols // held.shape[1], 1)
    for dimension, count in zip("mn", warps, strict=True):
        dim = _DIMENSIONS[operand].find(dimension)
        if dim < 0:
            tile.copies("warp", count)
        else:
            tile.spread("warp", count, dim)
    return tile.layout(held.layout.dims)


def _split_lanes(modes: tuple[Mode, ...]) -> tuple[tuple[Mode, ...], tuple[Mode, ...]]:
    """The modes of the 32 lanes of one warp, and those of the warps of a warpgroup."""
    size, inner = 1, 0
    while size < WARP:
        size *= modes[inner].size
        inner += 1
    return modes[:inner], modes[inner:]


def _share(
    instruction: Instruction, operand: str, what: str, size: int, over: int, step: int
) -> int:
    """What one warp owns of `size` rows or columns; an error where it does not come out even."""
    if size <= 0 or over <= 0 or size % (over * step):
        each = f"{over} x {step}" if over != 1 else f"{step}"
        raise FragirError(
            f"{size} {what} of operand {operand} are no multiple of {each}, "
            f"what {instruction.mnemonic} covers",
            hint="pad the tile, or take fewer warps or another instruction",
        )
    return size // over


def _products(
    instruction: Instruction,
    layout: Layout,
    whole: tuple[int, ...],
    shape: tuple[int, ...],
    warps: tuple[int, int],
) -> Layout:
    if tuple(shape) != whole or warps != (1, 1):
        raise FragirError(
            f"{instruction.mnemonic} computes four products at once: its tile is {whole} "
            f"in one warp, not {tuple(shape)} in {warps}"
        )
    return Layout((Axis("warp", ()), *layout.axes), layout.dims)
