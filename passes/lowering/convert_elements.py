"""Conversions that no plan knows: every element through padded shared memory, whatever the layouts.

Rows are padded by as many chunks of 16 bytes as bring the fewest bank conflicts: what lies in one
column then lies in different banks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.layout import Layout
from fragir.layout.modes import WARP
from fragir.passes.lowering.access import TileAccess
from fragir.passes.lowering.memory import stacked
from fragir.passes.lowering.scratch import WHOLE
from fragir.passes.lowering.shared import SharedMatrix
from fragir.passes.lowering.state import LoweringState

CHUNK = 16  # bytes: the widest access, which padding keeps aligned
BANKS = 32
SAMPLES = 4  # elements of which the lanes' banks are looked at


def by_elements(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Store, barrier, load: right for every pair of layouts."""
    *leading, rows, cols = (1, *source.shape) if len(source.shape) == 1 else source.shape
    bits = ptx.bits(source.element_type)
    pitch = _pitch(source.resolve(), target.resolve(), cols, bits)
    matrix = SharedMatrix(rows, pitch, bits, 0)
    memory = stacked(state.ar, state.scratch.pointer, leading, matrix, source.element_type)

    def access(tile: frag.TileType) -> TileAccess:
        first = [0] * len(memory.shape)
        return TileAccess(
            state.ar,
            state.hardware,
            tile,
            memory,
            first,
            transposed=False,
            masked=False,
            target=state.target,
        )

    with state.scratch.passage(prod(leading) * matrix.bytes, WHOLE):
        access(source).store(fragments)
        state.ar.insert(WHOLE.barrier())
        return access(target).load()


@lru_cache(maxsize=256)
def _pitch(source: Layout, target: Layout, cols: int, bits: int) -> int:
    """Elements from one row to the next, with the padding that brings the fewest conflicts."""
    per = CHUNK * 8 // bits
    whole = -(-cols // per) * per
    places = [places for layout in (source, target) for places in _places(layout)]

    def cost(pad: int) -> int:
        return sum(_passes(where, whole + pad * per, bits) for where in places)

    return whole + min(range(8), key=cost) * per


def _places(layout: Layout) -> list[list[tuple[int, int]]]:
    """(row, column) of some elements in the lanes of the first warp."""
    zeros = {axis.name: 0 for axis in layout.axes}
    found: list[list[tuple[int, int]]] = []
    for element in range(min(SAMPLES, layout.size("element"))):
        points = [
            layout(**{**zeros, "lane": lane, "element": element})
            for lane in range(min(WARP, layout.size("lane")))
        ]
        found.append([((0, *point)[-2], point[-1]) for point in points if point is not None])
    return found


def _passes(places: Sequence[tuple[int, int]], pitch: int, bits: int) -> int:
    """How often the busiest bank is met by an access of every lane."""
    words = {(row * pitch + col) * bits // 32 for row, col in places}
    banks = Counter(word % BANKS for word in words)
    return max(banks.values(), default=0)
