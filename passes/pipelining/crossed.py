"""Products whose B wgmma cannot read as memory holds it, so that a transposed copy is made."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import SSAValue

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
    chained: list[frag.MmaOp] = []
    for chain in chains_of(loop):
        chained += chain.products
        crossed = next((p for p in chain.products if lies_across(p)), None)
        if crossed is None:
            continue
        layout = _layout(crossed, warps, target)
        set_layout(chain.start, layout)
        set_layout(loop.body.block.args[1 + chain.position], layout)
        for product in chain.products:
            set_layout(product.d, layout)
        set_layout(loop.results[chain.position], layout)
    for product in [op for op in loop.body.block.ops if isinstance(op, frag.MmaOp)]:
        if product not in chained and lies_across(product):
            layout = _layout(product, warps, target)
            for value in _alike(product, loop):
                set_layout(value, layout)


def _layout(crossed: frag.MmaOp, warps: tuple[int, int], target: str) -> frag.MmaLayoutAttr:
    name = instruction_of(crossed, warps, True, target)
    orders = (("m", in_pairs("m")), ("n", in_pairs("n")))
    return frag.MmaLayoutAttr(frag.MmaFragment(name, "c", warps, orders))


def _alike(product: frag.MmaOp, loop: scf.ForOp) -> list[SSAValue]:
    """The tiles of a product's sums, and those that must have one layout with them: of operations
    element by element, and what the loop carries of these.
    """
    found: list[SSAValue] = [product.c, product.d]
    body = loop.body.block
    for value in found:  # which grows
        more: list[SSAValue] = []
        for use in value.uses:
            op = use.operation
            if isinstance(op, frag.MapOp) and op.parent is body:
                more += [*op.tiles, op.result]
            elif op is body.last_op:
                more += _carried(loop, use.index)
        if value in loop.iter_args:
            more += _carried(loop, list(loop.iter_args).index(value))
        elif value in body.args:
            more += _carried(loop, body.args.index(value) - 1)
        found += [one for one in dict.fromkeys(more) if one not in found]
    return found


def _carried(loop: scf.ForOp, position: int) -> list[SSAValue]:
    """All values of what a loop carries."""
    body = loop.body.block
    assert body.last_op is not None
    return [
        loop.iter_args[position],
        body.args[1 + position],
        body.last_op.operands[position],
        loop.results[position],
    ]
