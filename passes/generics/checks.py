"""Which functions of generics a kernel can be written for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import NoneAttr
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block

from fragir.dialects.elements import is_element
from fragir.dialects.frag.reductions import problem as combination_problem
from fragir.dialects.narrow import is_memref, memref_type
from fragir.passes.contraction.scalars import is_scalar
from fragir.passes.contraction.views import VIEWS, root_of
from fragir.passes.generics.axes import Axis, CommonLoops, NoKernelError, foreign_to_bodies
from fragir.passes.generics.combining import RowCombining, combining_of, neutral
from fragir.passes.generics.views import check_views

LONGEST = 8192
"""Elements of a row that is held in registers."""


def check_operations(block: Block, work: Sequence[LinalgStructuredOperation]) -> None:
    """NoKernelError where something else stands there, or works on something else."""
    for op in block.ops:
        plain = memref.AllocOp | memref.DeallocOp | memref.DimOp | func.ReturnOp
        if not (isinstance(op, (plain, *VIEWS)) or is_scalar(op) or op in work):
            raise NoKernelError(op, f"{op.name} stands beside elementwise operations")
    for op in work:
        for inner in op.body.block.ops:
            if not isinstance(inner, ops.YieldOp) and not is_scalar(inner):
                raise foreign_to_bodies(op, inner)
        for value in op.operands:
            if not is_memref(value.type):
                continue
            type_ = memref_type(value.type)
            if not is_element(type_.element_type) or not isinstance(type_.memory_space, NoneAttr):
                raise NoKernelError(op, f"{op.name} works on {type_}")
            if not isinstance(root_of(value).owner, Block | memref.AllocOp):
                raise NoKernelError(op, f"{op.name} works on {type_}")
    check_views(work)


def combined(
    op: LinalgStructuredOperation, work: Sequence[LinalgStructuredOperation]
) -> RowCombining:
    """How a reduction among others combines; NoKernelError where no kernel does so."""
    found = combining_of(op)
    element = op.body.block.args[-1].type
    start = op.outputs[0]
    filled = any(
        isinstance(x, ops.FillOp) and x.outputs[0] is start for x in work[: work.index(op)]
    )
    if not filled:
        # several threads hold a row's number, and would change it
        words = "add to what memory holds; begin with a linalg.fill"
        raise NoKernelError(op, f"{op.name} reduces along rows, which cannot {words}")
    if found is None:
        words = "is no `output combined with a function of the inputs` of one output"
        raise NoKernelError(op, f"the body of {op.name} {words}, by add, mul, max, min, and, or")
    wrong = combination_problem(found.kind, element)
    if wrong is not None or neutral(found.kind, element) is None:
        raise NoKernelError(op, f"{op.name}: {wrong or f'{element} is not reduced'}")
    return found


def check_rows(
    loops: CommonLoops,
    axes: Sequence[Axis],
    reductions: Mapping[LinalgStructuredOperation, RowCombining],
) -> None:
    """What is reduced must be rows that registers hold."""
    op = next(iter(reductions))
    if len(axes[-1]) != len(loops.reduced):
        raise NoKernelError(op, f"{op.name} reduces loops that do not lie behind each other")
    if len(axes) < 2:
        raise NoKernelError(op, f"{op.name} reduces to one number, which no kernel does yet")
    sizes = [
        memref_type(memory.type).get_shape()[own.index(loop)]
        for loop in axes[-1]
        for memory, own in loops.of_operand.items()
        if loop in own
    ]
    if min(sizes) < 0 or prod(sizes[:: max(1, len(sizes) // len(axes[-1]))]) > LONGEST:
        raise NoKernelError(
            op, f"{op.name} reduces rows of more than {LONGEST} elements, or of unknown length"
        )
