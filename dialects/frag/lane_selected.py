"""Tiles of what instructions select from a quad's lanes: sparse metadata and scales of blocks.

An instruction reads such an operand from some lanes of each quad, or some bytes of a register,
that immediates name: the sparsity selector of metadata, the byte and thread selectors of scales
(PTX ISA 9.2, sections 9.7.14.6 and 9.7.14.3). So a register holds what several instructions need:
the lanes that one does not read have the part of another. Metadata take turns along K, scales of
A down the rows and those of B along the columns; the bytes of a register of scales are
neighbours along K.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.tiling import sharing, tile_layout
from fragir.layout import Axis, Condition, Layout, Mode
from fragir.layout.distribution import Distribution

# Operand -> (dimension in which instructions take turns, whether it is M, N or K).
_TURNS = {"e": (1, "k"), "sfa": (0, "m"), "sfb": (1, "n")}


def turns(instruction: isa.Instruction, operand: str, steps: int) -> int:
    """How many of a warp's `steps` instructions along its dimension one register serves."""
    condition = _condition(instruction, operand)
    return 1 if condition is None else gcd(condition.modulus, steps)


def selected_tile(
    instruction: isa.Instruction, operand: str, shape: tuple[int, int], warps: tuple[int, int]
) -> Layout:
    """The layout of a tile of metadata (e) or scales (sfa, sfb); axes as in `tile_layout`.

    A lane's elements: of metadata those of one register, then repeats down the rows, then along K;
    of scales all blocks along K, then repeats.
    """
    dim, letter = _TURNS[operand]
    covered = instruction.operands[operand].shape[dim]
    if shape[dim] % covered:
        raise FragirError(
            f"{shape[dim]} {'columns' if dim else 'rows'} of {operand} are no multiple of "
            f"{covered}, what {instruction.mnemonic} covers"
        )
    over = sharing({"m": warps[0], "n": warps[1], "k": 1}[letter], shape[dim] // covered)
    ways = turns(instruction, operand, shape[dim] // (covered * over))
    held = instruction.operands[operand]
    assert held.layout is not None
    lane = _shared_lanes(instruction, operand, held.layout.axis("lane"), ways, dim)
    if operand == "e":
        fragment = Layout((lane, held.layout.axis("element")))
        several = replace(held, shape=(held.shape[0], covered * ways), layout=fragment)
        return tile_layout(instruction.with_operands(several), operand, shape, warps)
    extent = (covered * ways, 1) if dim == 0 else (1, covered * ways)
    tile = Distribution(extent, {"warp": (), "lane": lane.modes, "element": ()})
    tile.spread("element", shape[1 - dim], 1 - dim)
    tile.spread("element", shape[dim] // (extent[dim] * over), dim)
    for number, count in enumerate(warps):
        share = over if number == dim else 1
        tile.spread("warp", share, dim)
        tile.copies("warp", count // share)
    return tile.layout(held.layout.dims)


def _shared_lanes(
    instruction: isa.Instruction, operand: str, lane: Axis, ways: int, dim: int
) -> Axis:
    """The lanes, those that an instruction does not read with the part of its neighbours."""
    condition = _condition(instruction, operand)
    if condition is None or ways == 1:
        return lane
    from fragir.layout.combine import cut  # few programs need it
    from fragir.layout.digits import unit

    below, above = cut(lane.modes, condition.divisor, "lane")
    copies, above = cut(above, ways, "lane")
    assert not any(any(mode.stride) for mode in copies)
    step = unit(dim, 2, instruction.operands[operand].shape[dim])
    return Axis("lane", (*below, Mode(ways, step), *above))


def _condition(instruction: isa.Instruction, operand: str) -> Condition | None:
    """Which lanes the instruction reads with selectors of 0; None: all."""
    layout = instruction.operands[operand].layout
    assert layout is not None
    return next((c for c in layout.where if c.axis == "lane"), None)
