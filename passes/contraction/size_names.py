"""Names of sizes that only a launch knows: one for those that operations have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, MemRefType, StringAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects import frag
from fragir.dialects.constants import constant_of
from fragir.dialects.linalg.hidden_body import maps_of
from fragir.dialects.narrow import is_memref, memref_type

Dimension = tuple[SSAValue, int]


def name_sizes(function: func.FuncOp) -> None:
    """Names the dimensions of arguments that have no names, alike where a loop of an operation runs
    along them, or memory is allocated with a size of other memory.
    """
    parents: dict[Dimension, Dimension] = {}

    def root(node: Dimension) -> Dimension:
        while (parent := parents.get(node, node)) != node:
            node = parent
        return node

    for op in function.body.block.ops:
        for one, other in _alike(op):
            parents[root(other)] = root(one)
    _name(function, root)


def _alike(op: Operation) -> Iterator[tuple[Dimension, Dimension]]:
    """Dimensions that an operation says to be of one size."""
    if isinstance(op, LinalgStructuredOperation):
        first: dict[int, Dimension] = {}
        for value, map_ in zip(op.operands, maps_of(op), strict=True):
            for dim, expression in enumerate(map_.results if is_memref(value.type) else ()):
                if isinstance(expression, AffineDimExpr):
                    node = value, dim
                    yield first.setdefault(expression.position, node), node
    elif isinstance(op, memref.AllocOp):
        given = iter(op.dynamic_sizes)
        for dim, size in enumerate(op.memref.type.get_shape()):
            known = next(given).owner if size < 0 else None
            at = constant_of(known.index) if isinstance(known, memref.DimOp) else None
            if isinstance(known, memref.DimOp) and at is not None:
                yield (known.source, at), (op.memref, dim)
    elif isinstance(op, memref.CastOp) and is_memref(op.source.type) and is_memref(op.dest.type):
        for dim in range(len(op.source.type.get_shape())):
            yield (op.source, dim), (op.dest, dim)
    elif isinstance(op, memref.CollapseShapeOp):
        yield from _regrouped(op.src, op.result, op.reassociation)
    elif isinstance(op, memref.ExpandShapeOp):
        yield from _regrouped(op.result, op.src, op.reassociation)


def _regrouped(
    wide: SSAValue, narrow: SSAValue, groups: ArrayAttr[ArrayAttr[IntegerAttr]]
) -> Iterator[tuple[Dimension, Dimension]]:
    """A dimension of several is the only one among them that has more than one element."""
    shape = memref_type(wide.type).get_shape()
    for dim, group in enumerate(groups):
        long = [entry.value.data for entry in group if shape[entry.value.data] != 1]
        if len(long) == 1:
            yield (wide, long[0]), (narrow, dim)


def _name(function: func.FuncOp, root: Callable[[Dimension], Dimension]) -> None:
    arguments, given = function.body.block.args, function.arg_attrs
    entries = list(given.data) if given is not None else [DictionaryAttr({}) for _ in arguments]
    names: dict[Dimension, str] = {}
    for argument, entry in zip(arguments, entries, strict=True):
        for dim, name in enumerate(frag.sizes_of(entry.data.get("frag.sizes"))):
            names[root((argument, dim))] = name
    taken = {*names.values(), *(x.name_hint for x in arguments)}
    fresh = (name for at in count() if (name := f"n{at}") not in taken)
    changed = False
    for at, argument in enumerate(arguments):
        type_ = argument.type
        if not isinstance(type_, MemRefType) or "frag.sizes" in entries[at].data:
            continue
        nodes = [root((argument, dim)) for dim in range(len(type_.get_shape()))]
        if min(type_.get_shape(), default=0) >= 0:
            continue
        for node in nodes:
            if node not in names:
                names[node] = next(fresh)
        said = ArrayAttr([StringAttr(names[node]) for node in nodes])
        entries[at] = DictionaryAttr({**entries[at].data, "frag.sizes": said})
        changed = True
    if changed:
        function.arg_attrs = ArrayAttr(entries)
