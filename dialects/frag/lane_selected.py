"""Tiles of what instructions select from a quad's lanes: sparse metadata and scales of blocks.

An instruction reads such an operand from some lanes of each quad, or some bytes of a register,
that immediates name: the sparsity selector of metadata, the byte and thread selectors of scales
(PTX ISA 9.2, sections 9.7.14.6 and 9.7.14.3). So a register holds what several instructions need:
the lanes that one does not read have the part of another. Metadata take turns along K, scales of
A down the rows and those of B along the columns; the bytes of a register of scales are
neighbours along K.
"""

from __future__ import annotations

from math import gcd

from fragir import isa
from fragir.errors import FragirError
from fragir.isa.tiling import tile_layout
from fragir.layout import Axis, Condition, Layout, Mode

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
    over = {"m": warps[0], "n": warps[1], "k": 1}[letter]
    unit = instruction.operands[operand].shape[dim]
    if shape[dim] % (unit * over):
        raise FragirError(
            f"{shape[dim]} {'columns' if dim else 'rows'} of {operand} are no multiple of "
            f"{unit * over}, what {instruction.mnemonic} covers"
        )
    own = shape[dim] // over
    ways = turns(instruction, operand, own // unit)
    step = tuple(unit * (d == dim) for d in range(2))
    if operand == "e":
        return _metadata(instruction, shape, warps, ways, step)
    held = instruction.operands[operand].layout
    assert held is not None
    block = tuple(own * (d == dim) for d in range(2))
    along_k = tuple(int(d != dim) for d in range(2))
    shares = [Mode(count, (0, 0)) for count in warps]
    shares[dim] = Mode(over, block)
    element = (
        Mode(shape[1 - dim], along_k),
        Mode(own // (unit * ways), tuple(ways * x for x in step)),
    )
    return Layout(
        (
            _axis("warp", *shares),
            _shared_lanes(instruction, operand, held.axis("lane"), ways, step),
            _axis("element", *element),
        )
    )


def _metadata(
    instruction: isa.Instruction,
    shape: tuple[int, int],
    warps: tuple[int, int],
    ways: int,
    step: tuple[int, ...],
) -> Layout:
    tile = tile_layout(instruction, "e", (shape[0], shape[1] // ways), warps)
    if ways == 1:
        return tile
    lane = _shared_lanes(instruction, "e", tile.axis("lane"), ways, step)
    # what the tile repeats along K now lies `ways` instructions apart
    modes = list(tile.axis("element").modes)
    if modes[-1].stride == step:
        modes[-1] = Mode(modes[-1].size, tuple(ways * x for x in step))
    return Layout((tile.axis("warp"), lane, Axis("element", tuple(modes))), tile.dims)


def _shared_lanes(
    instruction: isa.Instruction, operand: str, lane: Axis, ways: int, step: tuple[int, ...]
) -> Axis:
    """The lanes, those that an instruction does not read with the part of its neighbours."""
    condition = _condition(instruction, operand)
    if condition is None or ways == 1:
        return lane
    modes: list[Mode] = []
    weight = 1
    for mode in lane.modes:
        if weight == condition.divisor:
            modes += [Mode(ways, step), Mode(mode.size // ways, mode.stride)]
        else:
            modes.append(mode)
        weight *= mode.size
    return _axis("lane", *modes)


def _condition(instruction: isa.Instruction, operand: str) -> Condition | None:
    """Which lanes the instruction reads with selectors of 0; None: all."""
    layout = instruction.operands[operand].layout
    assert layout is not None
    return next((c for c in layout.where if c.axis == "lane"), None)


def _axis(name: str, *modes: Mode) -> Axis:
    return Axis(name, tuple(mode for mode in modes if mode.size != 1))
