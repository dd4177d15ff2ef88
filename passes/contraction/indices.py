"""How the operands of elementwise operations after a product are indexed."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import NoneAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from fragir.diagnostics import fail
from fragir.dialects.elements import is_element
from fragir.dialects.linalg.hidden_body import maps_of
from fragir.dialects.narrow import is_memref, memref_type
from fragir.passes.contraction.operands import name_of

ROW, COLUMN = "row", "column"
ElementIndex = tuple[str | int, ...]
"""How an operand is indexed: by the row, by the column, or by a number."""
WHOLE: ElementIndex = (ROW, COLUMN)


def whole_of(rank: int) -> ElementIndex:
    """How the result is indexed, a matrix or a batch of them."""
    return (*(f"batch {dim}" for dim in range(rank - 2)), ROW, COLUMN)


def indices_of(op: LinalgStructuredOperation) -> list[ElementIndex]:
    """How the operands are indexed; the loops are named by the output's map."""
    maps = maps_of(op)
    loops = [e.position for e in maps[-1].results if isinstance(e, AffineDimExpr)]
    rank = len(op.get_iterator_types())
    if rank < 2 or sorted(loops) != list(range(rank)):
        fail(
            op,
            f"{op.name} with the output at {maps[-1]}; an elementwise operation after a matrix "
            "product has two parallel loops, which index the output, a matrix, or one more for "
            "each dimension of a batch",
        )
    names = dict(zip(loops, map(str, whole_of(rank)), strict=True))
    return [
        _index(op, operand, map_, names) for operand, map_ in zip(op.operands, maps, strict=True)
    ]


def _index(
    op: Operation,
    operand: SSAValue,
    map_: AffineMap,
    names: Mapping[int, str],
) -> ElementIndex:
    place: list[str | int] = []
    for expression in map_.results:
        if isinstance(expression, AffineDimExpr):
            place.append(names[expression.position])
        elif isinstance(expression, AffineConstantExpr):
            place.append(expression.value)
        else:
            fail(op, f"{op.name} reads {name_of(operand)} at {expression}, which is no loop")
    return tuple(place)


def check_broadcast(op: Operation, memory: SSAValue, place: ElementIndex, rank: int) -> None:
    """An error unless memory that is not the result, of so many dimensions, is read as numpy
    broadcasts: by the last of its indices, or at 0 where the size is 1. A vector may be one value a
    row.
    """
    if place == ():
        fail(op, f"{op.name} reads {memory.type}; pass the number itself as an argument")
    sizes = memref_type(memory.type).get_shape()
    wanted = whole_of(rank)[-len(place) :]
    legal = [(at, 0) for at in wanted]
    if len(place) == 1 and rank == 2:
        legal = [(ROW, COLUMN, 0)]
    if len(place) > rank or any(
        at not in ways or (at == 0 and size != 1)
        for at, size, ways in zip(place, sizes, legal, strict=True)
    ):
        fail(
            op,
            f"{op.name} reads {name_of(memory)} at {shown(place)}; what follows a product is "
            "read at (row, column), (column) or (row), or at 0 where the size is 1",
        )


def check_buffer(op: Operation, value: SSAValue) -> None:
    """An error unless an operand is a matrix in global memory."""
    type_ = value.type
    if not is_memref(type_):
        fail(op, f"{op.name} has an operand of type {type_}; run frag-bufferize before")
    if not is_element(type_.element_type):
        fail(op, f"{op.name}: a tile cannot hold elements of {type_.element_type}")
    if not isinstance(type_.memory_space, NoneAttr):
        fail(op, f"{op.name} works on {type_}; linalg is compiled for global memory only")


def shown(place: ElementIndex) -> str:
    """A place as messages print it."""
    return f"({', '.join(map(str, place))})"
