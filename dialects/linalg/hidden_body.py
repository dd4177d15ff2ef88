"""The body that xDSL gives a named linalg operation: no text, no place, ill-typed at times."""

from __future__ import annotations

from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fragir.dialects.linalg import generic_text


def maps_of(op: LinalgStructuredOperation) -> list[AffineMap]:
    """The indexing maps, one an operand."""
    return [attribute.data for attribute in op.get_indexing_maps()]


def dims_of(map_: AffineMap) -> list[int] | None:
    """The loops that index each dimension; None where one is indexed by anything else."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    return dims if len(dims) == len(map_.results) else None


def mixed(op: ops.MatmulOp) -> str:
    """What to write where the types of a linalg.matmul differ."""
    a, b, c = (argument.type for argument in op.body.block.args)
    first, second, out = (dims_of(map_) or [] for map_ in maps_of(op))
    transposed = first[-1:] == out[:1], second[:1] == out[1:]
    return (
        f"linalg.matmul of {a} and {b} into {c} cannot say how the elements are extended; "
        + generic_text.instead(a, b, transposed)
    )


def hidden_error(culprit: Operation) -> tuple[Operation, str] | None:
    """Operation and words for an error in the body that xDSL gives a linalg.matmul.

    The body is not in the text, has no place, and is ill-typed where element types differ.
    """
    owner = culprit.parent_op()
    if isinstance(owner, ops.MatmulOp) and len(owner.inputs) == 2 and len(owner.outputs) == 1:
        return owner, mixed(owner)
    return None
