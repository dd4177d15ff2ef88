"""Whether every value is defined before it is used.

xDSL checks this only between the blocks of a region, not inside of one.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Block, Operation, Region, SSAValue


def used_too_early(module: Operation) -> tuple[Operation, SSAValue] | None:
    """The first operation in a function that uses a value not defined before it, and the value."""
    for op in module.walk():
        if isinstance(op, func.FuncOp) or op.name == "ptx.function":
            found = _in_region(op.regions[0], set())
            if found is not None:
                return found
    return None


def _in_region(region: Region, visible: set[SSAValue]) -> tuple[Operation, SSAValue] | None:
    """`visible` are the values that the region may use from outside; it is the same afterwards."""
    if len(region.blocks) == 1:
        return _in_block(region.block, visible)
    # a block may use what any of the others defines: xDSL's verifier knows their order
    others = {value for block in region.blocks for value in _defined(block)}
    for block in region.blocks:
        found = _in_block(block, (visible | others).difference(_defined(block)))
        if found is not None:
            return found
    return None


def _defined(block: Block) -> list[SSAValue]:
    return [*block.args, *(result for op in block.ops for result in op.results)]


def _in_block(block: Block, visible: set[SSAValue]) -> tuple[Operation, SSAValue] | None:
    added: list[SSAValue] = []
    for value in block.args:
        visible.add(value)
        added.append(value)
    for op in block.ops:
        for operand in op.operands:
            if operand not in visible:
                return op, operand
        for region in op.regions:
            found = _in_region(region, visible)
            if found is not None:
                return found
        visible.update(op.results)
        added += op.results
    visible.difference_update(added)
    return None
