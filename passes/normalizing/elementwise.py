"""`arith` and `math` on whole tensors as generics, which compute with their elements."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from fragir.passes.normalizing.building import TensorBuilder


def is_elementwise(op: Operation) -> bool:
    """Whether an operation of arith or math works on tensors; constants are no such."""
    return (
        op.name.startswith(("arith.", "math."))
        and not isinstance(op, arith.ConstantOp)
        and len(op.results) == 1
        and isinstance(op.results[0].type, TensorType)
    )


def expand_elementwise(function: func.FuncOp) -> None:
    """Replaces them; what is no tensor is the same for all elements."""
    for op in list(function.walk()):
        if is_elementwise(op):
            _expand(op)


def _expand(op: Operation) -> None:
    at = TensorBuilder(op)
    type_ = at.tensor(op.results[0].type)
    inputs = list(dict.fromkeys(x for x in op.operands if isinstance(x.type, TensorType)))
    sizes = (at.size(inputs[0], dim) for dim in range(len(type_.get_shape())))
    into = at.empty(type_, [size for size in sizes if isinstance(size, SSAValue)])

    def body(build: Builder, elements: Sequence[SSAValue]) -> SSAValue:
        known: dict[SSAValue, SSAValue] = dict(zip(inputs, elements, strict=False))
        made = type(op).create(
            operands=[known.get(value, value) for value in op.operands],
            result_types=[type_.element_type],
            properties=op.properties,
            attributes=op.attributes,
        )
        return build.insert(made).results[0]

    at.replace(at.elementwise(inputs, into, body))
