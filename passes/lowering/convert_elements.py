"""Conversions of any layouts: every element through shared memory, with padded rows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.layout.planning.padding import PaddedRows
from fragir.layout.swizzled import swizzled_elements
from fragir.passes.lowering.access import TileAccess
from fragir.passes.lowering.memory import shared_bytes, shared_memory
from fragir.passes.lowering.state import LoweringState


def by_elements(
    state: LoweringState,
    source: frag.TileType,
    target: frag.TileType,
    padded: PaddedRows,
    fragments: Sequence[SSAValue],
) -> list[SSAValue]:
    """Store, barrier, load: right for every pair of layouts."""
    shape = (1, *source.shape) if len(source.shape) == 1 else source.shape
    bits = ptx.bits(source.element_type)
    layout = swizzled_elements((*shape[:-1], padded.pitch), bits, 0)
    memory = shared_memory(state.scratch.pointer, layout, shape, source.element_type)

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

    with state.scratch.passage(shared_bytes(layout, bits), state.scratch.whole):
        access(source).store(fragments)
        state.ar.insert(state.scratch.whole.barrier())
        return access(target).load()
