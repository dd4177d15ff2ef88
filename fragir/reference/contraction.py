"""Structured linalg operations: contractions of two operands, and elementwise ones."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.attrs import IteratorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from fragir.dialects.frag.combinations import COMBINATIONS
from fragir.dialects.interfaces import MEANINGS
from fragir.errors import FragirError
from fragir.reference import elementwise
from fragir.reference.bounded import Bounded, apart, bounded, rounded
from fragir.reference.element_types import type_name
from fragir.reference.formats import FLOATS, INTEGERS
from fragir.reference.memory import BoundedMemory
from fragir.reference.reductions import one_by_one, total
from fragir.reference.reductions import product as times
from fragir.reference.run import Run
from fragir.reference.tensor_cores import chains, dot


@MEANINGS.attach(LinalgStructuredOperation)
def structured(run: Run, op: LinalgStructuredOperation) -> None:
    """Evaluates one operation and writes its outputs, or binds its tensors."""
    if len(op.outputs) != 1:
        raise FragirError(f"the reference knows {op.name} with one output only")
    kinds = [attribute.data for attribute in op.get_iterator_types()]
    if all(kind == IteratorType.PARALLEL for kind in kinds):
        result = _elementwise(run, op)
    else:
        result = _contract(run, op)
    output = op.outputs[0]
    if isinstance(output.type, TensorType):
        run[op.res[0]] = result
        if output in run.homes:
            run.homes[op.res[0]] = run.homes[output]
        return
    home = run.values[output]
    assert isinstance(home, BoundedMemory)
    home.write(result)


def _maps(op: LinalgStructuredOperation) -> list[AffineMap]:
    return [attribute.data for attribute in op.get_indexing_maps()]


def _dims(map_: AffineMap) -> list[int]:
    """The loops that index an operand's dimensions."""
    dims: list[int] = []
    for expression in map_.results:
        if not isinstance(expression, AffineDimExpr):
            raise FragirError(f"the reference does not know the indexing map {map_}")
        dims.append(expression.position)
    return dims


# Elementwise -------------------------------------------------------------------------------------


def _elementwise(run: Run, op: LinalgStructuredOperation) -> Bounded:
    maps = _maps(op)
    operands = [run[value] for value in (*op.inputs, *op.outputs)]
    loops = maps[0].num_dims
    extents = [1] * loops
    for map_, operand in zip(maps, operands, strict=True):
        for expression, size in zip(map_.results, operand.value.shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = size
    spread = [_spread(x, map_, loops) for x, map_ in zip(operands, maps, strict=True)]
    result = run.region(op.body.block, spread, extents)[0]
    order = _dims(maps[-1])
    if sorted(order) != list(range(loops)):
        raise FragirError(f"{op.name}: the output's indexing map must name every loop once")
    return Bounded(result.value.transpose(order), result.bound.transpose(order))


def _spread(x: Bounded, map_: AffineMap, loops: int) -> Bounded:
    """An operand with one dimension a loop, of size 1 where it does not depend on the loop."""
    if not map_.results and x.value.ndim == 0:
        return x
    index: list[int | slice] = []
    dims: list[int] = []
    for expression in map_.results:
        if isinstance(expression, AffineConstantExpr):
            index.append(expression.value)
        elif isinstance(expression, AffineDimExpr):
            index.append(slice(None))
            dims.append(expression.position)
        else:
            raise FragirError(f"the reference does not know the indexing map {map_}")
    order = np.argsort(dims).tolist()
    missing = tuple(loop for loop in range(loops) if loop not in dims)
    value = x.value[tuple(index)].transpose(order)
    bound = x.bound[tuple(index)].transpose(order)
    return Bounded(np.expand_dims(value, missing), np.expand_dims(bound, missing))


# Contractions ------------------------------------------------------------------------------------


def _contract(run: Run, op: LinalgStructuredOperation) -> Bounded:
    block = op.body.block
    unsigned = _factors(block) if len(op.inputs) == 2 else None
    if unsigned is None:
        return _reduce(run, op)
    first, second, out = (_dims(map_) for map_ in _maps(op))
    batch = [d for d in first if d in second and d in out]
    rows = [d for d in first if d in out and d not in batch]
    columns = [d for d in second if d in out and d not in batch]
    inner = [d for d in first if d in second and d not in out]
    if {*first, *second} != {*batch, *rows, *columns, *inner}:
        raise FragirError(f"{op.name}: every loop must index the output or both inputs")
    names = [type_name(value.type) for value in op.inputs]
    factors = [run[value] for value in op.inputs]
    for i, without_sign in enumerate(unsigned):
        if without_sign and names[i][0] == "s":
            names[i] = f"u{names[i][1:]}"
            factors[i] = Bounded(INTEGERS[names[i]].wrapped(factors[i].value), factors[i].bound)
    a = _arranged(factors[0], first, batch, rows, inner)
    b = _arranged(factors[1], second, batch, inner, columns)
    old = run[op.outputs[0]]
    c = _arranged(old, out, batch, rows, columns)
    types = names[0], names[1], type_name(op.outputs[0].type)
    result = product(a, b, c, types, run.target)
    order = [*batch, *rows, *columns]
    shape = [old.value.shape[out.index(d)] for d in order]
    back = [order.index(d) for d in out]
    return Bounded(
        result.value.reshape(shape).transpose(back), result.bound.reshape(shape).transpose(back)
    )


# Reductions --------------------------------------------------------------------------------------


def _reduce(run: Run, op: LinalgStructuredOperation) -> Bounded:
    """The output combined with a function of the inputs, in any order."""
    block, maps = op.body.block, _maps(op)
    end, old = block.last_op, block.args[-1]
    combine = _maker(end.operands[0]) if end is not None and len(end.operands) == 1 else None
    words = {name: word for word, names in COMBINATIONS.items() for name in names[:2] if name}
    if combine is None or combine.name not in words or old not in combine.operands:
        raise FragirError(
            f"the reference knows no such reduction in {op.name}",
            hint="its body combines the output with a function of the inputs, by arith.addf say",
        )
    x = combine.operands[1 if combine.operands[0] is old else 0]
    kept, loops = _dims(maps[-1]), maps[0].num_dims
    gone = [loop for loop in range(loops) if loop not in kept]
    extents = [1] * loops
    for map_, value in zip(maps, op.operands, strict=True):
        shape = run[value].value.shape
        for expression, size in zip(map_.results, shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = size
    before = run[op.outputs[0]]
    inputs = [_spread(run[v], m, loops) for v, m in zip(op.inputs, maps, strict=False)]
    run.region(block, [*inputs, _spread(before, maps[-1], loops)], extents)
    values = Bounded(np.broadcast_to(run[x].value, extents), np.broadcast_to(run[x].bound, extents))
    order = [*gone, *kept]
    count = int(np.prod([extents[loop] for loop in gone], dtype=int))
    shape = [count, *(extents[loop] for loop in kept)]
    rows = [array.transpose(order).reshape(shape) for array in (values.value, values.bound)]
    # the old one is one element more, which comes in at any time
    every = Bounded(
        np.concatenate([before.value[None], rows[0]]), np.concatenate([before.bound[None], rows[1]])
    )
    word, element = words[combine.name], type_name(x.type)
    if word == "add" and element in FLOATS:
        return total(every, FLOATS[element])
    if word == "mul" and element in FLOATS:
        return times(every, FLOATS[element])
    return one_by_one(every, word, element)


def _arranged(x: Bounded, dims: list[int], *groups: list[int]) -> Bounded:
    """An operand as a stack of matrices: one dimension for each group of loops."""
    order = [dims.index(d) for group in groups for d in group]
    shape = [int(np.prod([x.value.shape[dims.index(d)] for d in g], dtype=int)) for g in groups]
    return Bounded(x.value.transpose(order).reshape(shape), x.bound.transpose(order).reshape(shape))


def _factors(block: Block) -> tuple[bool, bool] | None:
    """Of a region that yields `out + x y`: whether x and y are integers extended without a sign.

    x and y are its first two arguments, extended or not. None for any other region.
    """
    last = block.last_op
    if last is None or len(last.operands) != 1 or len(block.args) != 3:
        return None
    total = _maker(last.operands[0])
    if not isinstance(total, arith.AddfOp | arith.AddiOp):
        return None
    others = [value for value in (total.lhs, total.rhs) if value is not block.args[2]]
    scaled = _maker(others[0]) if len(others) == 1 else None
    if not isinstance(scaled, arith.MulfOp | arith.MuliOp):
        return None
    sources = dict(_source(value) for value in (scaled.lhs, scaled.rhs))
    if sources.keys() != set(block.args[:2]):
        return None
    return sources[block.args[0]], sources[block.args[1]]


def _maker(value: SSAValue) -> Operation | None:
    owner = value.owner
    return owner if isinstance(owner, Operation) else None


def _source(value: SSAValue) -> tuple[SSAValue, bool]:
    """Where a factor comes from, through extensions, and whether the first has no sign."""
    unsigned = False
    while isinstance(op := _maker(value), arith.ExtFOp | arith.ExtSIOp | arith.ExtUIOp):
        value, unsigned = op.input, isinstance(op, arith.ExtUIOp)
    return value, unsigned


def product(
    a: Bounded, b: Bounded, c: Bounded, types: tuple[str, str, str], target: str
) -> Bounded:
    """`c + a b` where the program leaves open how it is summed.

    The sum may start from c or from 0, with c added last. A result that no instruction
    accumulates in (bf16) is rounded from f32; f16 may be either.
    """
    if types[2] in INTEGERS:
        return dot(a, b, c, types, ())
    wide = "f64" if types[0] == "f64" else "f32"
    result = _either_start(a, b, c, (types[0], types[1], wide), target)
    if types[2] == wide:
        return result
    result = rounded(result, FLOATS[types[2]], correct=False)
    if types[2] == "f16" and types[0] in ("f16", "e4m3", "e5m2"):
        result = either(result, _either_start(a, b, c, types, target))
    return result


def _either_start(
    a: Bounded, b: Bounded, c: Bounded, types: tuple[str, str, str], target: str
) -> Bounded:
    try:
        ways = chains(target, types[0], types[2])
    except KeyError:
        raise FragirError(
            f"no instruction multiplies {types[0]} and adds {types[2]}",
            hint="truncate the inputs to tf32, f16 or bf16",
        ) from None
    alone = dot(a, b, None, types, ways)
    if (c.magnitude == 0).all():
        return alone
    added = elementwise.add(alone, c, FLOATS[types[2]])
    return either(dot(a, b, c, types, ways), added)


def either(x: Bounded, y: Bounded) -> Bounded:
    """One of two results, nobody knows which."""
    return bounded(x.value, np.maximum(x.bound, y.bound + apart(x.value, y.value)))
