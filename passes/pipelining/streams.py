"""What a loop fetches from global memory for its products, turn by turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Block, SSAValue
from xdsl.traits import is_side_effect_free

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.interfaces import accesses_of, root_of
from fragir.dialects.shorthands import is_memref, memref_type


@dataclass(eq=False)
class Group:
    """Loads that the same products use, and so arrive together: one slot of a ring a turn."""

    loads: list[frag.LoadOp]
    products: list[frag.MmaOp]
    """In the order of the loop's body."""


def groups_of(loop: scf.ForOp, least_bits: int = 8) -> list[Group]:
    """The loads of a loop's body that can run ahead, by the products that use them.

    A load can where nothing but products of the same body takes its tile, where all of its indices
    are computed from the loop's counter and from what stands before the loop, and where the loop
    writes no memory that it reads. `least_bits`: what an element has at least.
    """
    body = loop.body.block
    written = list(_written_memory(body))
    groups: list[Group] = []
    for op in body.ops:
        if not isinstance(op, frag.LoadOp) or not _can_stream(op, body, written, least_bits):
            continue
        products = _products(op.tile, body)
        if not products:
            continue
        shared = [group for group in groups if set(group.products) & set(products)]
        merged = Group([op], products)
        for group in shared:
            groups.remove(group)
            merged = Group(
                [*group.loads, *merged.loads],
                [*group.products, *(p for p in merged.products if p not in group.products)],
            )
        groups.append(merged)
    order = {op: at for at, op in enumerate(body.ops)}
    for group in groups:
        group.products.sort(key=order.__getitem__)
        group.loads.sort(key=order.__getitem__)
    return groups


def _written_memory(body: Block) -> Iterator[SSAValue]:
    """The memory that operations of a body write, or of which it is not known that they do not."""
    for op in body.walk():
        model = accesses_of(op)
        if model is not None:
            yield from map(root_of, model.writes())
        elif op.name == "memref.store":
            yield root_of(op.operands[1])
        elif not is_side_effect_free(op) and op.name not in _READ:
            yield from (root_of(value) for value in op.operands if is_memref(value.type))


_READ = ("memref.load", "memref.dim")


def _can_stream(load: frag.LoadOp, body: Block, written: list[SSAValue], least_bits: int) -> bool:
    """Whether a load of a body may run ahead of it."""
    memory = memref_type(load.memory.type)
    return (
        not frag.is_shared(memory)
        and root_of(load.memory) not in written
        and _is_outside(load.memory, body)
        and load.other is None
        and load.broadcast is None
        and len(frag.tile_of(load.tile).shape) == 2
        and element_bits(memory.element_type) >= least_bits
        and memory.element_type == frag.tile_of(load.tile).element_type
        and all(_is_ahead(index, body) for index in load.indices)
    )


def _is_outside(value: SSAValue, body: Block) -> bool:
    """Whether a value is there before the loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and block is not body:
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return block is None


def _is_ahead(value: SSAValue, body: Block) -> bool:
    """Whether a turn's value is known before the turns ahead of it: from the counter alone."""
    owner = value.owner
    if isinstance(owner, Block):
        return owner is not body or value is body.args[0]
    if owner.parent is not body:
        return _is_outside(value, body)
    return (
        not owner.regions
        and is_side_effect_free(owner)
        and all(_is_ahead(operand, body) for operand in owner.operands)
    )


def _products(tile: SSAValue, body: Block) -> list[frag.MmaOp]:
    """The products that take a tile as A or B; none where anything else takes it."""
    found: list[frag.MmaOp] = []
    for use in tile.uses:
        op = use.operation
        if not isinstance(op, frag.MmaOp) or op.parent is not body or use.index > 1:
            return []
        if op not in found:
            found.append(op)
    return found


# -- tma -------------------------------------------------------------------------------------------
# Which loads the tensor memory accelerator can make, and which of them a cluster shares.


def shared_tiles(loop: scf.ForOp) -> frozenset[SSAValue]:
    """The memories of which all blocks of a cluster load the same tile in every turn of a loop.

    The blocks of a cluster have tiles below each other (`frag.for_tiles`), so theirs are the loads
    whose place does not depend on the row.
    """
    around = loop.parent_op()
    while around is not None and not isinstance(around, frag.ForTilesOp):
        around = around.parent_op()
    if around is None or around.blocks == 1:
        return frozenset()
    row = around.places[-2]
    loads = [op for op in loop.body.block.ops if isinstance(op, frag.LoadOp)]
    dependent = {
        load.memory for load in loads if any(_is_computed_from(i, row) for i in load.indices)
    }
    return frozenset(load.memory for load in loads) - dependent


def _is_computed_from(value: SSAValue, other: SSAValue) -> bool:
    """Whether a value is computed from another one."""
    if value is other:
        return True
    owner = value.owner
    if isinstance(owner, Block):
        return False
    return any(_is_computed_from(operand, other) for operand in owner.operands)
