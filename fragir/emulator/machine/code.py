"""Decoded code: steps, terminators, and straight pieces of them that run as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fragir.emulator.machine.lanes import Mask, Step, is_slice
from fragir.emulator.machine.straight import StraightRun

#: A terminator ends a block: the next position if it is one for all lanes, or None where it has
#: written `key` itself.
Terminator = Callable[[Any, Mask], int | None]


@dataclass(slots=True)
class DecodedCode:
    """The decoded program. `steps` has None where a step was fused into an earlier one."""

    steps: list[Step | None]
    terminators: dict[int, Terminator]
    leaders: set[int]
    #: position -> lanes that must be there, as bits per warp (None: all that are alive)
    collectives: dict[int, Callable[[Any, Mask], Any] | None]
    #: positions where the four warps of a warpgroup must come together
    warpgroups: set[int]


@dataclass(slots=True)
class BasicBlock:
    """Straight-line code from one position on: [start, end), then a terminator or falling on."""

    pairs: list[tuple[int, Step]]
    end: int
    terminator: Terminator | None
    collective: bool
    warpgroup: bool
    size: int  # instructions, the terminator among them
    start: int
    #: What is called for `pairs`: the same, or runs of them.
    parts: list[tuple[int, Step]]
    runs: int = 0
    visits: int = 0
    whole: StraightRun | None = None  # all of it as one run


def whole_warpgroups(sel: Any) -> bool:
    """Whether a selection is made of whole, aligned warpgroups (for certain)."""
    return is_slice(sel) and sel.start % 4 == 0 and sel.stop % 4 == 0


def contiguous(warps: Any) -> Any:
    """Warp indices as a slice where they are neighbours: slices are views, indices are copies."""
    if len(warps) and int(warps[-1]) - int(warps[0]) + 1 == len(warps):
        return slice(int(warps[0]), int(warps[-1]) + 1)
    return warps
