"""Structured linalg operations: contractions of two operands, and elementwise ones."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from math import prod

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import ShapedType, TensorType
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.math import FmaOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineMap

from fragir.dialects.frag.reductions import COMBINATIONS
from fragir.dialects.interfaces import MEANINGS
from fragir.errors import FragirError
from fragir.reference import elementwise
from fragir.reference.bounded import Bounded, apart, bounded, rounded
from fragir.reference.element_types import type_name
from fragir.reference.formats import FLOATS, INTEGERS, Array, half_spacing
from fragir.reference.loops import body, extents_of, grid, maps_of, spread
from fragir.reference.memory import BoundedMemory
from fragir.reference.reductions import in_any_order, one_by_one, total
from fragir.reference.reductions import product as times
from fragir.reference.run import Run
from fragir.reference.several_outputs import by_loops, each_alone
from fragir.reference.tensor_cores import Chain, chains, dot


@MEANINGS.attach(LinalgStructuredOperation)
def structured(run: Run, op: LinalgStructuredOperation) -> None:
    """Evaluates one operation and writes its outputs, or binds its tensors."""
    alone = len(by_loops(op)) > 1
    results = each_alone(op, partial(_results, run)) if alone else _results(run, op)
    for number, (output, found) in enumerate(zip(op.outputs, results, strict=True)):
        result = _with_units(op, output, maps_of(op)[len(op.inputs) + number], found)
        if isinstance(output.type, TensorType):
            run[op.res[number]] = result
            continue
        home = run.values[output]
        assert isinstance(home, BoundedMemory)
        home.write(result)


def _results(run: Run, op: LinalgStructuredOperation) -> list[Bounded]:
    """Of outputs along the same loops."""
    every = set(range(len(op.get_iterator_types())))
    if all(every <= map_.used_dims() for map_ in maps_of(op)[len(op.inputs) :]):
        return _elementwise(run, op)
    return _reduced(run, op)


def _dims(op: LinalgStructuredOperation, map_: AffineMap) -> list[int]:
    """The loops that index an output's dimensions, but those of one element, at 0."""
    dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
    if len(set(dims)) + len(_units(map_)) < len(map_.results):
        raise FragirError(f"{op.name}: the output's indexing map must name loops, each once")
    return dims


def _units(map_: AffineMap) -> list[int]:
    """The dimensions that are always at 0."""
    return [dim for dim, x in enumerate(map_.results) if x == AffineConstantExpr(0)]


def _with_units(
    op: LinalgStructuredOperation, output: SSAValue, map_: AffineMap, result: Bounded
) -> Bounded:
    """A result by its loops in the output's shape."""
    units = _units(map_)
    shape = output.type.get_shape() if isinstance(output.type, ShapedType) else ()
    if any(shape[dim] != 1 for dim in units):
        raise FragirError(f"{op.name}: the output's indexing map leaves elements out")
    return Bounded(np.expand_dims(result.value, units), np.expand_dims(result.bound, units))


# Elementwise -------------------------------------------------------------------------------------


def _elementwise(run: Run, op: LinalgStructuredOperation) -> list[Bounded]:
    maps, extents = maps_of(op), extents_of(run, op)
    places = grid(extents)
    operands = [spread(run[v], m, places) for v, m in zip(op.operands, maps, strict=True)]
    found = body(run, op, operands, places, extents)
    orders = [_dims(op, map_) for map_ in maps[len(op.inputs) :]]
    return [
        Bounded(x.value.transpose(order), x.bound.transpose(order))
        for x, order in zip(found, orders, strict=True)
    ]


# Contractions ------------------------------------------------------------------------------------


def _reduced(run: Run, op: LinalgStructuredOperation) -> list[Bounded]:
    """What an operation reduces to: by products, by combining in any order, or in order."""
    if len(op.outputs) > 1:
        return _in_order(run, op)
    block = op.body.block
    unsigned = _factors(block) if len(op.inputs) == 2 else None
    if unsigned is not None:
        try:
            return [_contract(run, op, unsigned)]
        except NoProductError:
            pass
    combining = _combining(block)
    return _in_order(run, op) if combining is None else [_combine(run, op, *combining)]


class NoProductError(FragirError):
    """No instruction of tensor cores takes these types."""


def _contract(run: Run, op: LinalgStructuredOperation, unsigned: tuple[bool, bool]) -> Bounded:
    maps, extents = maps_of(op), extents_of(run, op)
    used = [map_.used_dims() for map_ in maps]
    out = _dims(op, maps[2])
    batch = [d for d in out if (d in used[0]) == (d in used[1])]
    rows = [d for d in out if d in used[0] and d not in batch]
    columns = [d for d in out if d in used[1] and d not in batch]
    inner = [d for d in range(len(extents)) if d not in out]
    names = [type_name(value.type) for value in op.inputs]
    factors = [run[value] for value in op.inputs]
    for i, without_sign in enumerate(unsigned):
        if without_sign and names[i][0] == "s":
            names[i] = f"u{names[i][1:]}"
            factors[i] = Bounded(INTEGERS[names[i]].wrapped(factors[i].value), factors[i].bound)
    places = grid(extents)
    groups = ((batch, rows, inner), (batch, inner, columns), (batch, rows, columns))
    a, b, c = (
        _arranged(spread(x, map_, places), extents, *group)
        for x, map_, group in zip((*factors, run[op.outputs[0]]), maps, groups, strict=True)
    )
    types = names[0], names[1], type_name(op.outputs[0].type)
    result = product(a, b, c, types, run.target)
    order = [*batch, *rows, *columns]
    shape = [extents[d] for d in order]
    back = [order.index(d) for d in out]
    return Bounded(
        result.value.reshape(shape).transpose(back), result.bound.reshape(shape).transpose(back)
    )


# Reductions --------------------------------------------------------------------------------------


def _combining(block: Block) -> tuple[Operation, SSAValue] | None:
    """The operation that combines the output with a value, and that value."""
    end, old = block.last_op, block.args[-1]
    combine = _maker(end.operands[0]) if end is not None and len(end.operands) == 1 else None
    if isinstance(combine, FmaOp) and combine.c is old:
        return combine, combine.a
    if combine is None or combine.name not in _WORDS or list(combine.operands).count(old) != 1:
        return None
    x = combine.operands[1 if combine.operands[0] is old else 0]
    return (combine, x) if old.uses.get_length() == 1 else None


_WORDS = {name: word for word, names in COMBINATIONS.items() for name in names[:2] if name}


def _combine(run: Run, op: LinalgStructuredOperation, combine: Operation, x: SSAValue) -> Bounded:
    """The output combined with a function of the inputs, in any order."""
    maps, extents = maps_of(op), extents_of(run, op)
    kept, places = _dims(op, maps[-1]), grid(extents)
    gone = [loop for loop in range(len(extents)) if loop not in kept]
    old = run[op.outputs[0]]
    units = tuple(_units(maps[-1]))
    before = Bounded(np.squeeze(old.value, units), np.squeeze(old.bound, units))
    operands = [spread(run[v], m, places) for v, m in zip(op.operands, maps, strict=True)]
    body(run, op, operands, places, extents)
    element = type_name(combine.results[0].type)
    values = Bounded(np.broadcast_to(run[x].value, extents), np.broadcast_to(run[x].bound, extents))
    if isinstance(combine, FmaOp):
        other = run[combine.b]
        factor = Bounded(*(np.broadcast_to(y, extents) for y in (other.value, other.bound)))
        values = elementwise.BINARY["arith.mulf"](values, factor, FLOATS[element])
    fused = isinstance(combine, FmaOp) or isinstance(_maker(x), arith.MulfOp)
    if fused and element in FLOATS and combine.name != "arith.mulf":
        # a product may be rounded, or added as it is
        finite = np.where(np.isfinite(values.value), np.abs(values.value), 0)
        values = Bounded(values.value, values.bound + half_spacing(finite, FLOATS[element]))
    order = [*gone, *kept]
    count = int(np.prod([extents[loop] for loop in gone], dtype=int))
    shape = [count, *(extents[loop] for loop in kept)]
    rows = [array.transpose(order).reshape(shape) for array in (values.value, values.bound)]
    # the old one is one element more, which comes in at any time
    every = Bounded(
        np.concatenate([before.value[None], rows[0]]), np.concatenate([before.bound[None], rows[1]])
    )
    word = "add" if isinstance(combine, FmaOp) else _WORDS[combine.name]
    if word == "add" and element in FLOATS:
        return total(every, FLOATS[element], in_any_order(count + 1))
    if word == "mul" and element in FLOATS:
        return times(every, FLOATS[element])
    return one_by_one(every, word, element)


def _in_order(run: Run, op: LinalgStructuredOperation) -> list[Bounded]:
    """The body's results again and again, along what is reduced."""
    maps, extents = maps_of(op), extents_of(run, op)
    orders = [_dims(op, map_) for map_ in maps[len(op.inputs) :]]
    gone = [loop for loop in range(len(extents)) if loop not in orders[0]]
    inside = [1 if loop in gone else size for loop, size in enumerate(extents)]
    places = grid(inside)
    first = len(op.inputs)
    held = [spread(run[v], m, places) for v, m in zip(op.outputs, maps[first:], strict=True)]
    for at in np.ndindex(*(extents[loop] for loop in gone)):
        for loop, number in zip(gone, at, strict=True):
            places[loop] = np.full([1] * len(extents), number)
        inputs = [spread(run[v], m, places) for v, m in zip(op.inputs, maps, strict=False)]
        held = body(run, op, [*inputs, *held], places, inside)
    found: list[Bounded] = []
    for x, order in zip(held, orders, strict=True):
        index = [0 if loop in gone else slice(None) for loop in range(len(extents))]
        ranks = np.argsort(np.argsort(order)).tolist()
        kept = [
            np.broadcast_to(y, inside)[tuple(index)].transpose(ranks) for y in (x.value, x.bound)
        ]
        found.append(Bounded(*kept))
    return found


def _arranged(x: Bounded, extents: Sequence[int], *groups: list[int]) -> Bounded:
    """An operand with a dimension a loop as a stack of matrices: one for each group of loops.

    What depends on no loop of a group is the same all along it.
    """
    order = [d for group in groups for d in group]
    order += [d for d in range(len(extents)) if d not in order]
    sizes = [[extents[d] for d in group] for group in groups]
    rest = len(order) - sum(map(len, groups))
    shape = [size for group in sizes for size in group]
    found: list[Array] = []
    for array in (x.value, x.bound):
        wide = np.asarray(array)
        if wide.ndim < len(extents):
            wide = wide.reshape([1] * len(extents))
        wide = wide.transpose(order)
        wide = wide.reshape(wide.shape[: len(shape)]) if rest else wide
        found.append(np.broadcast_to(wide, shape).reshape([prod(group) for group in sizes]))
    return Bounded(*found)


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
    ways: tuple[Chain, ...] = ()
    with suppress(KeyError):
        ways = chains(target, types[0], types[2])
    if not ways:
        raise NoProductError(
            f"no instruction multiplies {types[0]} and adds {types[2]}",
            hint="truncate the inputs to tf32, f16 or bf16",
        )
    alone = dot(a, b, None, types, ways)
    if (c.magnitude == 0).all():
        return alone
    added = elementwise.add(alone, c, FLOATS[types[2]])
    return either(dot(a, b, c, types, ways), added)


def either(x: Bounded, y: Bounded) -> Bounded:
    """One of two results, nobody knows which."""
    return bounded(x.value, np.maximum(x.bound, y.bound + apart(x.value, y.value)))
