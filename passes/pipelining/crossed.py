"""Products whose B wgmma cannot read as memory holds it, so that a transposed copy is made."""

from __future__ import annotations

from xdsl.dialects import scf

from fragir.dialects import frag, ptx
from fragir.passes.pipelining.chains import chains_of
from fragir.passes.placing.placement import set_layout
from fragir.passes.tiling.operand_layouts import in_pairs, instruction_of


def lies_across(product: frag.MmaOp) -> bool:
    """Whether B lies across K in memory, and has elements other than of 16 bits: wgmma reads these
    K-major only.
    """
    load = product.b.owner
    turned = isinstance(load, frag.LoadOp) and load.transposed is not None
    return ptx.bits(frag.tile_of(product.b).element_type) != 16 and not turned


def order_sums(loop: scf.ForOp, warps: tuple[int, int], target: str) -> None:
    """Counts rows and columns of sums as their operands have them, which are copied in pairs.

    Values are replaced by others of the same place.
    """
    for chain in chains_of(loop):
        crossed = next((p for p in chain.products if lies_across(p)), None)
        if crossed is None:
            continue
        name = instruction_of(crossed, warps, True, target)
        orders = (("m", in_pairs("m")), ("n", in_pairs("n")))
        layout = frag.MmaLayoutAttr(frag.MmaFragment(name, "c", warps, orders))
        set_layout(chain.start, layout)
        set_layout(loop.body.block.args[1 + chain.position], layout)
        for product in chain.products:
            set_layout(product.d, layout)
        set_layout(loop.results[chain.position], layout)
