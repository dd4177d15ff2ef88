"""Constants that a program holds in memory: arguments that no caller gives.

    func.func @f(%x: tensor<4x8xf32>, %w: tensor<8x8xf32> {frag.constant = dense<...> : ...})

A call fills them with the elements that the attribute has; nothing is computed in their place.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DenseIntOrFPElementsAttr, DictionaryAttr
from xdsl.ir import BlockArgument, SSAValue

CONSTANT = "frag.constant"
"""The attribute of such an argument: its elements."""


def constant_of_argument(function: func.FuncOp, index: int) -> DenseIntOrFPElementsAttr | None:
    """The elements of an argument that is a constant."""
    if function.arg_attrs is None:
        return None
    given = function.arg_attrs.data[index].data.get(CONSTANT)
    if isinstance(given, DenseIntOrFPElementsAttr):
        return cast("DenseIntOrFPElementsAttr", given)
    return None


def is_held(argument: BlockArgument) -> bool:
    """Whether an argument of a function is a constant."""
    function = argument.block.parent_op()
    if not isinstance(function, func.FuncOp) or argument.block.prev_block is not None:
        return False
    return constant_of_argument(function, argument.index) is not None


def hold_constant(
    function: func.FuncOp, value: SSAValue, elements: DenseIntOrFPElementsAttr
) -> BlockArgument:
    """The argument that holds a value's elements: one that does already, or a new last one."""
    block = function.body.block
    given = function.arg_attrs
    said = list(given.data) if given is not None else [DictionaryAttr({}) for _ in block.args]
    for argument, attributes in zip(block.args, said, strict=True):
        if attributes.data.get(CONSTANT) == elements and argument.type == value.type:
            return argument
    argument = block.insert_arg(value.type, len(block.args))
    taken = {other.name_hint for other in block.args}
    base = value.name_hint or "constant"
    names = (base, *(f"{base}{number}" for number in range(2, len(taken) + 3)))
    argument.name_hint = next(name for name in names if name not in taken)
    function.arg_attrs = ArrayAttr([*said, DictionaryAttr({CONSTANT: elements})])
    function.update_function_type()
    return argument
