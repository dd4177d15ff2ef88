"""Layouts that products dictate: each operand's fragments, spread over warps or warpgroups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.ir import SSAValue

from fragir.dialects.frag.attributes import ExplicitLayoutAttr, MmaFragment, MmaLayoutAttr
from fragir.dialects.frag.lane_selected import selected_tile
from fragir.dialects.frag.types import TileType
from fragir.dialects.interfaces import LayoutDemand
from fragir.isa import Instruction

Warps = tuple[int, int]


def fragments(
    operands: Iterable[tuple[SSAValue, str, str]], words: Iterable[str], warps: Warps
) -> Iterator[LayoutDemand]:
    """(value, short name of the instruction, its operand) as demands; `words` name the values."""
    for (value, name, operand), word in zip(operands, words, strict=True):
        layout = MmaLayoutAttr(MmaFragment(name, operand, warps))
        yield LayoutDemand(value, layout, f"operand {word}")


def selected(instruction: Instruction, operand: str, value: SSAValue, warps: Warps) -> LayoutDemand:
    """The demand for a tile of metadata (e) or scales (sfa, sfb)."""
    tile = value.type
    assert isinstance(tile, TileType)
    layout = selected_tile(instruction, operand, (tile.rows, tile.cols), warps)
    word = "metadata" if operand == "e" else operand
    return LayoutDemand(value, ExplicitLayoutAttr(layout), f"operand {word}")


def scales(
    instruction: Instruction, values: Sequence[SSAValue], warps: Warps
) -> Iterator[LayoutDemand]:
    """The demands for the scales of A and B; none without scales."""
    for name, value in zip(("sfa", "sfb"), values, strict=False):
        yield selected(instruction, name, value, warps)
