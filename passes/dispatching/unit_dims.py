"""Dimensions of one element that operations write at a constant place, taken away.

A row's number is kept in memory of shape (rows, 1) by those who broadcast it later, and written at
(d0, 0). Memory of shape (rows), written at (d0), is the same; operations behind it lose the loops
of one turn that only ran along such a dimension. So a norm that is written this way becomes one
kernel like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.builder import Builder
from xdsl.dialects import memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    i64,
)
from xdsl.dialects.linalg import ops
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.linalg.generic_text import maps_of
from fragir.dialects.memory_types import collapsed_type
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.passes.bufferizing.parts import Size, collapse, expansion
from fragir.passes.normalizing.building import index_in
from fragir.passes.settling import rounds

Dims = frozenset[int]


def drop_unit_dims(block: Block) -> None:
    """Narrows the memory of a function on memory, and the generics that use it."""
    generics = [op for op in block.ops if isinstance(op, ops.GenericOp)]
    dropped = _dropped_dims(generics)
    if not dropped:
        return
    loops = {op: _unit_loops(op, dropped) for op in generics}
    narrow = {memory: _narrow_memory(memory, dims, block) for memory, dims in dropped.items()}
    for op in generics:
        if any(value in dropped for value in op.operands):
            _rewrite(op, loops[op], dropped, narrow)
    for fill in [op for op in block.ops if isinstance(op, ops.FillOp)]:
        fill.operands = [narrow.get(value, value) for value in fill.operands]
    for memory, new in narrow.items():
        _replace_rest(memory, new, dropped[memory])


# --- what can go ----------------------------------------------------------------------------------


def _dropped_dims(generics: Sequence[ops.GenericOp]) -> dict[SSAValue, Dims]:
    """The dimensions of memory that go: those that an operation writes at a constant place, and
    those that others run along with a loop that goes for them.
    """
    found: dict[SSAValue, set[int]] = {}
    for op in generics:
        for value, map_ in list(_operands(op))[len(op.inputs) :]:
            for dim in _units(value):
                if isinstance(map_.results[dim], AffineConstantExpr):
                    found.setdefault(value, set()).add(dim)
    before = -1
    for _ in rounds("dimensions of one element"):
        if before == (before := sum(map(len, found.values()))):
            break
        for op in generics:
            loops = _unit_loops(op, found)
            for value, map_ in _operands(op):
                for dim in _units(value):
                    expression = map_.results[dim]
                    if isinstance(expression, AffineDimExpr) and expression.position in loops:
                        found.setdefault(value, set()).add(dim)
    for op in generics:
        for value, map_ in _operands(op):
            if any(
                not isinstance(map_.results[dim], AffineDimExpr | AffineConstantExpr)
                for dim in found.get(value, ())
            ):
                return {}  # a window of one element: left as it is
    return {value: frozenset(dims) for value, dims in found.items()}


def _operands(op: ops.GenericOp) -> Iterator[tuple[SSAValue, AffineMap]]:
    return (
        (value, map_)
        for value, map_ in zip(op.operands, maps_of(op), strict=True)
        if is_memref(value.type)
    )


def _units(value: SSAValue) -> list[int]:
    type_ = memref_type(value.type)
    if not isinstance(type_.layout, NoneAttr | StridedLayoutAttr):
        return []
    return [dim for dim, size in enumerate(type_.get_shape()) if size == 1]


def _unit_loops(
    op: ops.GenericOp, dropped: dict[SSAValue, Dims] | dict[SSAValue, set[int]]
) -> set[int]:
    """The loops of an operation that run along dimensions that go: they have one turn."""
    loops: set[int] = set()
    for value, map_ in _operands(op):
        for dim in dropped.get(value, ()):
            expression = map_.results[dim]
            if isinstance(expression, AffineDimExpr):
                loops.add(expression.position)
    return loops


# --- memory ---------------------------------------------------------------------------------------


def _narrow_memory(memory: SSAValue, dims: Dims, block: Block) -> SSAValue:
    """Memory without these dimensions: another allocation, or a view."""
    type_, owner = memref_type(memory.type), memory.owner
    groups = _groups(len(type_.get_shape()), dims)
    made: Operation
    if isinstance(owner, memref.AllocOp):
        shape = [size for dim, size in enumerate(type_.get_shape()) if dim not in dims]
        new = MemRefType(type_.element_type, shape, type_.layout, type_.memory_space)
        made = memref.AllocOp(owner.dynamic_sizes, (), new)
    elif isinstance(owner, memref.ExpandShapeOp) and list(_lists(owner.reassociation)) == groups:
        return owner.src
    else:
        kept = collapsed_type(type_, groups)
        assert kept is not None  # a dimension of one element lies behind any other
        made = collapse(memory, _attribute(groups), kept)
    if isinstance(owner, Operation):
        made.location = owner.location
        Rewriter.insert_op(made, InsertPoint.after(owner))
    else:
        first = block.first_op
        assert first is not None
        made.location = first.location
        Rewriter.insert_op(made, InsertPoint.before(first))
    made.results[0].name_hint = memory.name_hint
    return made.results[0]


def _replace_rest(memory: SSAValue, new: SSAValue, dims: Dims) -> None:
    """Where memory was an allocation, other uses see the new one in the old shape."""
    if not isinstance(memory.owner, memref.AllocOp):
        return
    for use in list(memory.uses):
        if isinstance(use.operation, memref.DeallocOp):
            use.operation.operands[use.index] = new
    if memory.uses:
        type_ = memref_type(memory.type)
        shape = type_.get_shape()
        at = InsertPoint.after(new.owner) if isinstance(new.owner, Operation) else None
        assert at is not None
        given = iter(memory.owner.dynamic_sizes)
        sizes: list[Size] = [size if size >= 0 else next(given) for size in shape]
        wide = expansion(new, _attribute(_groups(len(shape), dims)), sizes, type_)
        wide.location = memory.owner.location
        Rewriter.insert_op(wide, at)
        wide.result.name_hint = memory.name_hint
        memory.replace_all_uses_with(wide.result)
    Rewriter.erase_op(memory.owner)


def _groups(rank: int, dims: Dims) -> list[list[int]]:
    """The old dimensions of each new one: those that go lie beside the one ahead of them."""
    groups: list[list[int]] = []
    waiting: list[int] = []
    for dim in range(rank):
        if dim in dims and groups:
            groups[-1].append(dim)
        elif dim in dims:
            waiting.append(dim)
        else:
            groups.append([*waiting, dim])
            waiting = []
    return groups


def _lists(groups: ArrayAttr[ArrayAttr[IntegerAttr]]) -> Iterator[list[int]]:
    return ([entry.value.data for entry in group] for group in groups)


def _attribute(groups: Sequence[Sequence[int]]) -> ArrayAttr[ArrayAttr[IntegerAttr]]:
    return ArrayAttr([ArrayAttr([IntegerAttr(dim, i64) for dim in group]) for group in groups])


# --- operations -----------------------------------------------------------------------------------


def _rewrite(
    op: ops.GenericOp,
    gone: set[int],
    dropped: dict[SSAValue, Dims],
    narrow: dict[SSAValue, SSAValue],
) -> None:
    """Lets an operation work on narrow memory, without the loops that go."""
    iterators = list(op.iterator_types)
    kept = [loop for loop in range(len(iterators)) if loop not in gone]
    number = {loop: at for at, loop in enumerate(kept)}
    loops: list[AffineExpr] = [
        AffineExpr.dimension(number[loop]) if loop in number else AffineExpr.constant(0)
        for loop in range(len(iterators))
    ]
    maps = [
        AffineMap(
            len(kept),
            0,
            tuple(
                expression.replace_dims_and_symbols(loops, [])
                for dim, expression in enumerate(map_.results)
                if dim not in dropped.get(value, ())
            ),
        )
        for value, map_ in zip(op.operands, maps_of(op), strict=True)
    ]
    op.operands = [narrow.get(value, value) for value in op.operands]
    op.properties["indexing_maps"] = ArrayAttr(map(AffineMapAttr, maps))
    op.properties["iterator_types"] = ArrayAttr([iterators[loop] for loop in kept])
    for inner in [x for x in op.body.walk() if isinstance(x, ops.IndexOp)]:
        loop = inner.dim.value.data
        if loop in number:
            inner.properties["dim"] = IntegerAttr(number[loop], inner.dim.type)
        else:
            zero = index_in(Builder(InsertPoint.before(inner)), 0)
            Rewriter.replace_op(inner, [], [zero])
