"""An operand of wgmma that is transposed in shared memory, on its way from global memory.

wgmma reads elements other than of 16 bits K-major, and one operand only from registers. Where both
A and B lie across K, the other one is read from its slot by all warps, as fragments whose rows are
written K-major to a second place, from which wgmma reads. Bytes are read as pairs by `ldmatrix` and
taken apart by `prmt`, tf32 two at a time; both are written by `stmatrix`. Lanes hold every second
row, so rows lie in that order in the second place, eight that are written together beside each
other, and the accumulators' columns are counted so.
"""

from __future__ import annotations

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name
from fragir.dialects.frag.row_orders import row_order, stored
from fragir.passes.tiling.operand_layouts import in_pairs, swizzle_for

FRAGMENTS = {8: "m16n8k32", 32: "m16n8k8"}  # whose A is read and written, by bits of an element


class TransposedCopy:
    """The second place of an operand, of the size of one slot: `rows` along M or N, and K."""

    def __init__(self, element: Attribute, tile: tuple[int, int], warps: int):
        rows, k = tile
        bits = ptx.bits(element)
        space = frag.SharedAttr(swizzle_for(k * bits // 8))
        order = in_pairs("m")
        name = f"{FRAGMENTS[bits]}.{element_name(element)}"
        fragment = frag.MmaFragment(name, "a", (warps, 1), (("m", order),))
        self._tile = frag.TileType(tile, element, frag.MmaLayoutAttr(fragment))
        plain = MemRefType(element, tile, memory_space=space)
        self.alloc = memref.AllocOp([], [], stored(plain, row_order(order, rows)))
        self.memory: SSAValue = self.alloc.memref
        self.memory.name_hint = "k_major"

    def fill(self, slot: SSAValue, met: bool) -> tuple[Operation, ...]:
        """What transposes a slot's part; a barrier, after which all threads see it, comes last.

        Unless threads have `met` since the last turn's product, they wait for those that still
        read the second place.
        """
        load = frag.LoadOp(slot, [0, 0], self._tile, transposed=True)
        store = frag.StoreOp(load.tile, self.memory, [0, 0])
        before = () if met else (frag.BarrierOp(),)
        return load, *before, store, frag.BarrierOp()
