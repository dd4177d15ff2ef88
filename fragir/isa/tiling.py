"""The layout of a whole tile: one instruction's fragment, repeated over registers and warps."""

from __future__ import annotations

from math import gcd

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
    repeats down the rows, then repeats along the columns. Where rows or columns are fewer
    instructions than warps, or no multiple, the largest divisor of the warps shares them, and the
    others hold copies.

    For wgmma `warps` counts warpgroups: axis warp has 4 * wm * wn warps, those of a warpgroup
    fastest. For the m8n8k4 of f16, four products at once, the tile is (rows, columns, 4), exactly
    one instruction by one warp.

    Of metadata (e) every lane holds what those that selector 0 names must.

    Errors where the shape is no multiple of the instruction's.
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
    steps = (
        _steps(instruction, operand, "rows", rows, held.shape[0]),
        _steps(instruction, operand, "columns", cols, held.shape[1]),
    )
    over = {"m": wm, "n": wn, "k": 1}
    shares = [
        sharing(over[dimension], count)
        for dimension, count in zip(_DIMENSIONS[operand], steps, strict=True)
    ]
    lane, in_group = _split_lanes(held.layout.axis("lane").modes)
    modes = {"warp": in_group, "lane": lane, "element": held.layout.axis("element").modes}
    tile = Distribution(held.shape, modes)
    for dim in (0, 1):
        tile.spread("element", steps[dim] // shares[dim], dim)
    for dimension, count in zip("mn", warps, strict=True):
        dim = _DIMENSIONS[operand].find(dimension)
        share = 1 if dim < 0 else shares[dim]
        tile.spread("warp", share, dim)
        tile.copies("warp", count // share)
    return tile.layout(held.layout.dims)


def sharing(warps: int, steps: int) -> int:
    """How many of the warps along a dimension share so many instructions; others hold copies.

    >>> sharing(4, 8), sharing(4, 1), sharing(4, 6)
    (4, 1, 2)
    """
    return gcd(warps, steps)


def fitted_warps(warps: tuple[int, int], steps: tuple[int, int]) -> tuple[int, int]:
    """The warps, along the rows and columns of so many instructions: as they are, or where those
    are no multiple as many in the way in which most of them share the work.

    >>> fitted_warps((4, 1), (4, 2)), fitted_warps((4, 1), (1, 8)), fitted_warps((2, 2), (1, 1))
    ((4, 1), (1, 4), (2, 2))
    """
    most = warps[0] * warps[1]
    ways = [(m, most // m) for m in range(1, most + 1) if most % m == 0]
    ways.sort(key=lambda way: way != warps)

    def at_work(way: tuple[int, int]) -> int:
        return sharing(way[0], steps[0]) * sharing(way[1], steps[1])

    return max(ways, key=at_work)


def _split_lanes(modes: tuple[Mode, ...]) -> tuple[tuple[Mode, ...], tuple[Mode, ...]]:
    """The modes of the 32 lanes of one warp, and those of the warps of a warpgroup."""
    size, inner = 1, 0
    while size < WARP:
        size *= modes[inner].size
        inner += 1
    return modes[:inner], modes[inner:]


def _steps(instruction: Instruction, operand: str, what: str, size: int, step: int) -> int:
    """How many instructions cover `size` rows or columns; an error where they do not evenly."""
    if size <= 0 or size % step:
        raise FragirError(
            f"{size} {what} of operand {operand} are no multiple of {step}, "
            f"what {instruction.mnemonic} covers",
            hint="pad the tile, or take another instruction",
        )
    return size // step


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
