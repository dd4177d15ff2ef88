"""Names of sizes that only a launch knows: one for those that operations have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, MemRefType, StringAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects import frag
from fragir.dialects.linalg.hidden_body import maps_of
from fragir.dialects.narrow import is_memref

Dimension = tuple[SSAValue, int]


def name_sizes(function: func.FuncOp, work: Sequence[LinalgStructuredOperation]) -> None:
    """Names the dimensions of arguments that have no names, alike where a loop runs along them."""
    parents: dict[Dimension, Dimension] = {}

    def root(node: Dimension) -> Dimension:
        while (parent := parents.get(node, node)) != node:
            node = parent
        return node

    for op in work:
        first: dict[int, Dimension] = {}
        for value, map_ in zip(op.operands, maps_of(op), strict=True):
            if not is_memref(value.type):
                continue
            for dim, expression in enumerate(map_.results):
                if isinstance(expression, AffineDimExpr):
                    one = root(first.setdefault(expression.position, (value, dim)))
                    parents[root((value, dim))] = one
    _name(function, root)


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
