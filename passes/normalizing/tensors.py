"""Operations on whole tensors as structured ones: padding, tables of elements, joined tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import cast

from xdsl.builder import Builder
from xdsl.dialects import arith, func, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.diagnostics import fail
from fragir.dialects.slices import mixed

MOST_ELEMENTS = 64
"""Of a table that is written out: a choice an element."""
Size = SSAValue | int
Tensor = TensorType[Attribute]


def expand_tensors(function: func.FuncOp) -> None:
    """Replaces what frag-bufferize does not know by fills, generics and insertions."""
    for op in list(function.walk()):
        if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, TensorType):
            _constant(op)
        elif op.parent is function.body.blocks.first:
            _expand(op)
    for op in list(function.body.ops if function.body.blocks else ()):
        if isinstance(op, tensor.ExtractOp):
            _sink(op)


def _expand(op: Operation) -> None:
    at = _Place(op)
    if isinstance(op, tensor.SplatOp):
        at.replace(at.filled(op.input, op.result.type, list(op.dynamicSizes)))
    elif isinstance(op, tensor.FromElementsOp):
        at.replace(at.table(list(op.elements), op.result.type))
    elif isinstance(op, tensor.InsertOp):
        _insert(op, at)
    elif isinstance(op, tensor.ConcatOp):
        _concat(op, at)
    elif isinstance(op, tensor.PadOp):
        _pad(op, at)


class _Place:
    """Builds ahead of an operation, which is replaced."""

    def __init__(self, op: Operation):
        self.op = op

    def put(self, made: Operation) -> SSAValue:
        for inner in made.walk():
            inner.location = self.op.location
        Rewriter.insert_op(made, InsertPoint.before(self.op))
        return made.results[0]

    def replace(self, value: SSAValue) -> None:
        value.name_hint = self.op.results[0].name_hint
        Rewriter.replace_op(self.op, [], [value])

    def number(self, number: int) -> SSAValue:
        return self.put(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def size(self, value: SSAValue, dim: int) -> Size:
        known = _tensor(self.op, value.type).get_shape()[dim]
        return known if known >= 0 else self.put(tensor.DimOp(value, self.number(dim)))

    def sum(self, sizes: Sequence[Size]) -> Size:
        known = sum(size for size in sizes if isinstance(size, int))
        found: Size = known
        for size in sizes:
            if isinstance(size, int):
                continue
            first = found if isinstance(found, SSAValue) else self.number(found) if found else None
            found = size if first is None else self.put(arith.AddiOp(first, size))
        return found

    def empty(self, type_: Attribute, sizes: Sequence[SSAValue] = ()) -> SSAValue:
        return self.put(tensor.EmptyOp(sizes, _tensor(self.op, type_)))

    def filled(self, value: SSAValue, type_: Attribute, sizes: Sequence[SSAValue] = ()) -> SSAValue:
        return self.put(ops.FillOp([value], [self.empty(type_, sizes)], [type_]))

    def table(self, elements: Sequence[SSAValue], type_: Attribute) -> SSAValue:
        """A tensor of these elements in row-major order."""
        kind = _tensor(self.op, type_)
        if len(elements) > MOST_ELEMENTS:
            fail(
                self.op,
                f"a table of {len(elements)} elements is not written out; pass it as an argument, "
                f"or give at most {MOST_ELEMENTS}",
            )
        if not elements:
            return self.empty(type_)
        if len(set(elements)) == 1:
            return self.filled(elements[0], type_)
        shape = kind.get_shape()

        def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
            at: SSAValue | None = None
            for dim, place in enumerate(places):
                step = prod(shape[dim + 1 :])
                scaled = place if step == 1 else build.insert(
                    arith.MuliOp(place, _index(build, step))
                ).result  # fmt: skip
                at = scaled if at is None else build.insert(arith.AddiOp(at, scaled)).result
            assert at is not None
            found = elements[-1]
            for number, element in enumerate(elements[:-1]):
                here = build.insert(arith.CmpiOp(at, _index(build, number), "eq")).result
                found = build.insert(arith.SelectOp(here, element, found)).result
            return found

        return self.generic(self.empty(type_), body)

    def generic(
        self, into: SSAValue, body: Callable[[Builder, Sequence[SSAValue]], SSAValue]
    ) -> SSAValue:
        """Every element of a tensor from its place. The old element is the body's argument."""
        type_ = _tensor(self.op, into.type)
        rank = len(type_.get_shape())
        block = Block(arg_types=[type_.element_type])
        build = Builder(InsertPoint.at_end(block))
        places = [build.insert(ops.IndexOp(dim)).result for dim in range(rank)]
        build.insert(ops.YieldOp(body(build, places)))
        parallel = attrs.IteratorTypeAttr(attrs.IteratorType.PARALLEL)
        identity = AffineMapAttr(AffineMap.identity(rank))
        return self.put(
            ops.GenericOp([], [into], Region(block), [identity], [parallel] * rank, [type_])
        )


def _constant(op: arith.ConstantOp) -> None:
    """A table; one number is a fill."""
    at, type_ = _Place(op), _tensor(op, op.result.type)
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr):
        fail(op, f"{value} is not supported; write dense<...>, or pass an argument")
    numbers = list(value.iter_attrs())
    if value.is_splat():
        numbers = numbers[:1] * prod(type_.get_shape())
    if len(set(numbers)) > 1 and len(numbers) > MOST_ELEMENTS:
        fail(
            op,
            f"a table of {len(numbers)} elements is not written out; pass it as an argument, or "
            f"give at most {MOST_ELEMENTS}",
        )
    made = {number: at.put(arith.ConstantOp(number)) for number in dict.fromkeys(numbers)}
    if len(made) == 1:
        at.replace(at.filled(made[numbers[0]], type_))
    else:
        at.replace(at.table([made[number] for number in numbers], type_))


def _insert(op: tensor.InsertOp, at: _Place) -> None:
    """One element: the others stay."""

    def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        here: SSAValue | None = None
        for place, index in zip(places, op.indices, strict=True):
            same = build.insert(arith.CmpiOp(place, index, "eq")).result
            here = same if here is None else build.insert(arith.AndIOp(here, same)).result
        old = build.insertion_point.block.args[0]
        return op.scalar if here is None else build.insert(
            arith.SelectOp(here, op.scalar, old)
        ).result  # fmt: skip

    at.replace(at.generic(op.dest, body))


def _concat(op: tensor.ConcatOp, at: _Place) -> None:
    """Each input is a part of the result."""
    dim, type_ = op.dim.value.data, _tensor(op, op.result.type)
    rank = len(type_.get_shape())
    lengths = [at.size(value, dim) for value in op.inputs]
    whole = [at.sum(lengths) if d == dim else at.size(op.inputs[0], d) for d in range(rank)]
    found = at.empty(type_, _dynamic(at, whole, type_))
    for number, value in enumerate(op.inputs):
        offsets: list[Size] = [at.sum(lengths[:number]) if d == dim else 0 for d in range(rank)]
        sizes = [at.size(value, d) for d in range(rank)]
        found = _put_part(at, value, found, offsets, sizes)
    at.replace(found)


def _pad(op: tensor.PadOp, at: _Place) -> None:
    """Of known size every element knows whether it is one of the source's; else the source is a
    part of what its surroundings fill.
    """
    source, type_ = op.source, _tensor(op, op.result.type)
    rank = len(type_.get_shape())
    low, high = mixed(op.static_low, op.low), mixed(op.static_high, op.high)
    if any(isinstance(size, int) and size < 0 for size in (*low, *high)):
        fail(op, "tensor.pad takes elements away; take a part by tensor.extract_slice")
    inner = [at.size(source, dim) for dim in range(rank)]
    whole = [at.sum([a, n, b]) for a, n, b in zip(low, inner, high, strict=True)]
    empty = at.empty(type_, _dynamic(at, whole, type_))

    def around(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        """What the region gives at places."""
        block = op.region.block
        known: dict[SSAValue, SSAValue] = dict(zip(block.args, places, strict=True))
        for inner_op in block.ops:
            if isinstance(inner_op, tensor.YieldOp):
                return known.get(inner_op.operands[0], inner_op.operands[0])
            build.insert(inner_op.clone(known))
        fail(op, "the region of tensor.pad yields nothing")

    if any(isinstance(size, SSAValue) or size == 0 for size in inner):
        at.replace(_put_part(at, source, at.generic(empty, around), low, inner))
        return

    def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        inside: SSAValue | None = None
        indices: list[SSAValue] = []
        for dim, place in enumerate(places):
            before, size, after = low[dim], inner[dim], high[dim]
            if before == 0 and after == 0:
                indices.append(place)
                continue
            assert isinstance(size, int)
            first = _index(build, before) if isinstance(before, int) else before
            moved = place if before == 0 else build.insert(arith.SubiOp(place, first)).result
            least = build.insert(arith.MaxSIOp(moved, _index(build, 0))).result
            index = build.insert(arith.MinSIOp(least, _index(build, size - 1))).result
            same = build.insert(arith.CmpiOp(moved, index, "eq")).result
            inside = same if inside is None else build.insert(arith.AndIOp(inside, same)).result
            indices.append(index)
        value = build.insert(tensor.ExtractOp(source, indices, type_.element_type)).result
        if inside is None:
            return value
        return build.insert(arith.SelectOp(inside, value, around(build, places))).result

    at.replace(at.generic(empty, body))


def _put_part(
    at: _Place, part: SSAValue, whole: SSAValue, offsets: Sequence[Size], sizes: Sequence[Size]
) -> SSAValue:
    static = [[x if isinstance(x, int) else DYNAMIC_INDEX for x in y] for y in (offsets, sizes)]
    values = [[x for x in y if isinstance(x, SSAValue)] for y in (offsets, sizes)]
    ones = [1] * len(sizes)
    return at.put(
        tensor.InsertSliceOp.get(part, whole, static[1], static[0], ones, values[0], values[1])
    )


def _dynamic(at: _Place, sizes: Sequence[Size], type_: Tensor) -> list[SSAValue]:
    """The sizes that a type leaves open, as values."""
    pairs = zip(sizes, type_.get_shape(), strict=True)
    return [
        at.number(size) if isinstance(size, int) else size
        for size, known in pairs
        if known == DYNAMIC_INDEX
    ]


def _sink(op: tensor.ExtractOp) -> None:
    """One element that bodies use is read where they use it."""
    for use in list(op.result.uses):
        user = use.operation
        if isinstance(user, ops.FillOp):
            at = _Place(user)
            if user.res:
                at.replace(at.generic(user.outputs[0], lambda build, _: op.result))
    for use in list(op.result.uses):
        user = use.operation
        block = user.parent_block()
        if block is None or not isinstance(block.parent_op(), LinalgStructuredOperation):
            continue
        copy = op.clone()
        copy.location = op.location
        Rewriter.insert_op(copy, InsertPoint.before(user))
        user.operands[use.index] = copy.result
    if not op.result.uses:
        Rewriter.erase_op(op)


def _index(build: Builder, number: int) -> SSAValue:
    return build.insert(arith.ConstantOp(IntegerAttr(number, IndexType()))).result


def _tensor(op: Operation, type_: Attribute) -> Tensor:
    if not isinstance(type_, TensorType):
        fail(op, f"{op.name} on {type_} is not supported; take a tensor of known rank")
    return cast("Tensor", type_)
