"""Structured linalg operations: contractions of two operands, and elementwise ones."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import affine, arith
from xdsl.dialects.builtin import ShapedType, TensorType
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.dialects.linalg.ops import IndexOp
from xdsl.dialects.math import FmaOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fragir.dialects.frag.reductions import COMBINATIONS
from fragir.dialects.interfaces import MEANINGS
from fragir.dialects.linalg.generic_text import maps_of
from fragir.dialects.linalg.shaped import SoftmaxOp
from fragir.errors import FragirError
from fragir.reference import algebra, elementwise
from fragir.reference.bounded import Bounded, bounded, distance_between, exactly, rounded
from fragir.reference.formats import FLOATS, INTEGERS, Array, half_spacing, type_name
from fragir.reference.memory import BoundedMemory
from fragir.reference.reductions import in_any_order, one_by_one, total
from fragir.reference.reductions import product as times
from fragir.reference.run import Run
from fragir.reference.tensor_cores import Chain, chains, dot

# -- loops -----------------------------------------------------------------------------------------
# The loops of structured operations, as dimensions of arrays.

_COORDINATES = "coordinates along loops"
_KINDS: dict[AffineBinaryOpKind, Callable[[Array, Array], Array]] = {
    AffineBinaryOpKind.Add: operator.add,
    AffineBinaryOpKind.Mul: operator.mul,
    AffineBinaryOpKind.Mod: operator.mod,
    AffineBinaryOpKind.FloorDiv: lambda x, y: x // y,
    AffineBinaryOpKind.CeilDiv: lambda x, y: -(-x // y),
}


def extents_of(run: Run, op: LinalgStructuredOperation) -> list[int]:
    """How far each loop runs, as the shapes of operands say; 1 where none does."""
    maps = maps_of(op)
    extents = [1] * maps[0].num_dims
    for map_, operand in zip(maps, op.operands, strict=True):
        for expression, size in zip(map_.results, run[operand].value.shape, strict=True):
            if isinstance(expression, AffineDimExpr):
                extents[expression.position] = size
    return extents


def grid(extents: Sequence[int]) -> list[object]:
    """Where along each loop every place is: arrays with one dimension a loop, of its size."""
    return list(np.ogrid[tuple(slice(size) for size in extents)])


def spread(x: Bounded, map_: AffineMap, places: Sequence[Any]) -> Bounded:
    """An operand at places along loops, with one dimension a loop where it depends on any."""
    if not map_.results:
        return x
    index = np.broadcast_arrays(*(place_at(e, places) for e in map_.results))
    for dim, (at, size) in enumerate(zip(index, x.value.shape, strict=True)):
        if at.size and not 0 <= at.min() <= at.max() < size:
            raise FragirError(
                f"the loops go from {at.min()} to {at.max()} along dimension {dim} of an operand, "
                f"which has {size}; sizes have to go with each other"
            )
    return Bounded(x.value[tuple(index)], x.bound[tuple(index)])


def place_at(expression: AffineExpr, places: Sequence[Array]) -> Array:
    """An affine expression of numbers for its dimensions."""
    if isinstance(expression, AffineDimExpr):
        return places[expression.position]
    if isinstance(expression, AffineConstantExpr):
        return np.asarray(expression.value)
    if not isinstance(expression, AffineBinaryOpExpr):
        raise FragirError(f"the reference does not know the place {expression}")
    x, y = (place_at(part, places) for part in (expression.lhs, expression.rhs))
    return _KINDS[expression.kind](x, y)


def body(
    run: Run,
    op: LinalgStructuredOperation,
    arguments: Sequence[Bounded],
    places: Sequence[object],
    shape: Sequence[int],
) -> list[Bounded]:
    """What an operation's body gives at places along its loops."""
    outer = run.kept.get(_COORDINATES)
    run.kept[_COORDINATES] = places
    try:
        return run.region(op.body.block, arguments, shape)
    finally:
        run.kept[_COORDINATES] = outer


def index(run: Run, op: IndexOp) -> None:
    """Where along a loop an element is."""
    run[op.result] = exactly(np.asarray(run.kept[_COORDINATES][op.dim.value.data], np.int64))


# -- affine values ---------------------------------------------------------------------------------
# The meaning of `affine.apply` and `affine.min`.


def apply(run: Run, op: affine.ApplyOp | affine.MinOp) -> None:
    """The least of the map's results: of one, that."""
    map_ = op.map.data
    values = [run[value].value for value in op.operands]
    dims = [AffineExpr.dimension(at) for at in range(map_.num_dims)]
    symbols = [AffineExpr.dimension(map_.num_dims + at) for at in range(map_.num_symbols)]
    found = [place_at(e.replace_dims_and_symbols(dims, symbols), values) for e in map_.results]
    run[op.results[0]] = exactly(reduce(np.minimum, found))


# -- several outputs -------------------------------------------------------------------------------
# Structured operations of which some outputs are reduced and others have all loops.

Alone = Callable[[ops.GenericOp], list[Bounded]]


def by_loops(op: LinalgStructuredOperation) -> list[list[int]]:
    """The outputs that lie along the same loops."""
    found: dict[frozenset[int], list[int]] = {}
    for number, map_ in enumerate(maps_of(op)[len(op.inputs) :]):
        found.setdefault(frozenset(map_.used_dims()), []).append(number)
    return list(found.values())


def each_alone(op: LinalgStructuredOperation, evaluate: Alone) -> list[Bounded]:
    """Outputs along different loops: what computes one must not need what another holds by then."""
    found: dict[int, Bounded] = {}
    for numbers in by_loops(op):
        alone = _single_outputs(op, numbers)
        try:
            found.update(zip(numbers, evaluate(alone), strict=True))
        finally:
            alone.drop_all_references()
    return [found[number] for number in range(len(op.outputs))]


def _single_outputs(op: LinalgStructuredOperation, numbers: Sequence[int]) -> ops.GenericOp:
    """The operation with some of its outputs only, in no block."""
    first, block = len(op.inputs), op.body.block
    end = block.last_op
    assert end is not None
    needed = _needed_values([end.operands[number] for number in numbers], block)
    maps, every = list(op.get_indexing_maps()), set(range(len(op.get_iterator_types())))
    others = [
        at
        for at, value in enumerate(block.args)
        if at >= first and at - first not in numbers and value in needed
    ]
    if any(maps[at].data.used_dims() != every for at in others):
        raise FragirError(f"{op.name}: outputs along different loops depend on each other")
    # an element that one turn alone writes is read as it was
    held = [*range(first), *others, *(first + number for number in numbers)]
    made = Block(arg_types=[block.args[at].type for at in held])
    known: dict[SSAValue, SSAValue] = {
        block.args[at]: argument for at, argument in zip(held, made.args, strict=True)
    }
    for inner in block.ops:
        if inner is not end and any(result in needed for result in inner.results):
            made.add_op(inner.clone(known))
    made.add_op(ops.YieldOp(*(known.get(end.operands[n], end.operands[n]) for n in numbers)))
    outputs = [op.outputs[number] for number in numbers]
    return ops.GenericOp(
        [op.operands[at] for at in held[: -len(numbers)]],
        outputs,
        Region(made),
        [maps[at] for at in held],
        list(op.get_iterator_types()),
        [output.type for output in outputs],
    )


def _needed_values(values: Sequence[SSAValue], block: Block) -> set[SSAValue]:
    """Those of a block that values are computed from."""
    left, found = list(values), set[SSAValue]()
    while left:
        value = left.pop()
        inside = value.owner is block or getattr(value.owner, "parent", None) is block
        if inside and value not in found:
            found.add(value)
            if not isinstance(value.owner, Block):
                left += [x for inner in value.owner.walk() for x in inner.operands]
    return found


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
    return _reduce(run, op)


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


def _reduce(run: Run, op: LinalgStructuredOperation) -> list[Bounded]:
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
            factors[i] = Bounded(INTEGERS[names[i]].wrap(factors[i].value), factors[i].bound)
    places = grid(extents)
    groups = ((batch, rows, inner), (batch, inner, columns), (batch, rows, columns))
    a, b, c = (
        _arrange(spread(x, map_, places), extents, *group)
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
    fused = fused and not algebra.is_followed()
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


def _arrange(x: Bounded, extents: Sequence[int], *groups: list[int]) -> Bounded:
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
    if algebra.is_followed():
        return algebra.dot(a, b, c, types[2])
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
    return bounded(x.value, np.maximum(x.bound, y.bound + distance_between(x.value, y.value)))


# -- softmax ---------------------------------------------------------------------------------------
# The meaning of `linalg.softmax`.


def softmax(run: Run, op: SoftmaxOp) -> None:
    """exp(x - max(x)), divided by its sum."""
    along, source = op.dimension.value.data, run[op.input]
    x = Bounded(np.moveaxis(source.value, along, 0), np.moveaxis(source.bound, along, 0))
    found = x
    if x.value.size:
        form = FLOATS[type_name(op.input.type)]
        binary = elementwise.BINARY
        most = one_by_one(x, "max", form.name)
        powers = elementwise.APPROXIMATED["math.exp"](binary["arith.subf"](x, most, form), form)
        found = binary["arith.divf"](powers, total(powers, form), form)
    result = Bounded(np.moveaxis(found.value, 0, along), np.moveaxis(found.bound, 0, along))
    if isinstance(op.output.type, TensorType):
        run[op.result[0]] = result
        return
    home = run.values[op.output]
    assert isinstance(home, BoundedMemory)
    home.write(result)
