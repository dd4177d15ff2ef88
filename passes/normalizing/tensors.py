"""Operations on whole tensors as structured ones: padding, tables of elements, joined tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, cast

from xdsl.builder import Builder
from xdsl.dialects import arith, func, memref, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IndexType,
    IntegerAttr,
    TensorType,
    i64,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects.linalg.constants import hold_constant
from fragir.dialects.linalg.destinations import PACKING
from fragir.dialects.memory_types import mixed_numbers
from fragir.dialects.shorthands import integers
from fragir.dialects.tensors.packing import Packing, PacksInTiles, TensorReshapeOp
from fragir.mlir.diagnostics import fail
from fragir.passes.normalizing.building import Size, Tensor, TensorBuilder, index_in

MOST_WRITTEN = 16
"""Of a constant that is a choice by place; one of more elements is held in memory."""
MOST_JOINED = 4
"""Of joined tensors that are a choice by place: each element reads all of them."""


def expand_tensors(function: func.FuncOp) -> None:
    """Replaces what frag-bufferize does not know by fills, generics and insertions."""
    for op in list(function.walk()):
        if isinstance(op, TensorReshapeOp):
            _reshape(op, TensorBuilder(op))
    for op in list(function.walk()):
        if isinstance(op, tensor.InsertSliceOp) and _is_insertion(op.result):
            continue  # a part of what the last one of a chain makes
        if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, TensorType):
            _constant(op, function)
        elif op.parent is function.body.blocks.first:
            _expand(op)
    for op in list(function.body.ops if function.body.blocks else ()):
        if isinstance(op, tensor.ExtractOp):
            _sink(op)


def _expand(op: Operation) -> None:
    at = TensorBuilder(op)
    if isinstance(op, tensor.SplatOp):
        at.replace(at.fill(op.input, op.result.type, list(op.dynamicSizes)))
    elif isinstance(op, tensor.FromElementsOp):
        at.replace(at.table(list(op.elements), op.result.type))
    elif isinstance(op, tensor.InsertOp):
        _insert(op, at)
    elif isinstance(op, tensor.ConcatOp):
        _concat(op, at)
    elif isinstance(op, tensor.InsertSliceOp):
        if isinstance(op.dest.owner, ops.FillOp):
            _insert_into_filled(op, op.dest.owner)
        else:
            _insert_parts(op)
    elif isinstance(op, tensor.PadOp):
        _pad(op, at)
    elif op.name == "tensor.generate":
        sizes, block = list(op.operands), op.regions[0].block
        empty = at.empty(op.results[0].type, sizes)
        at.replace(
            at.generic(empty, lambda build, places: _yielded_value(op, block, build, places))
        )
    elif op.name in PACKING:
        from fragir.dialects.tensors.packing import Packing

        assert isinstance(op, Packing)
        expand_packing(op)


def _yielded_value(
    op: Operation, block: Block, build: Builder, places: Sequence[SSAValue]
) -> SSAValue:
    """What a region gives at places."""
    known: dict[SSAValue, SSAValue] = dict(zip(block.args, places, strict=True))
    for inner in block.ops:
        if isinstance(inner, tensor.YieldOp):
            return known.get(inner.operands[0], inner.operands[0])
        build.insert(inner.clone(known))
    fail(op, f"the region of {op.name} yields nothing")


def _constant(op: arith.ConstantOp, function: func.FuncOp) -> None:
    """A table, written out or held; one number is a fill."""
    at = TensorBuilder(op)
    type_ = at.require_tensor(op.result.type)
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr):
        fail(op, f"the text has no {value}; print it with its resources, or pass an argument")
    data, size = value.data.data, len(value.data.data) // max(1, len(value))
    if data and data == data[:size] * (len(data) // size):
        at.replace(at.fill(at.put(arith.ConstantOp(next(value.iter_attrs()))), type_))
        return
    if len(value) > MOST_WRITTEN:
        Rewriter.replace_op(op, [], [hold_constant(function, op.result, value)])
        return
    numbers = list(value.iter_attrs())
    made = {number: at.put(arith.ConstantOp(number)) for number in dict.fromkeys(numbers)}
    at.replace(at.table([made[number] for number in numbers], type_))


def _reshape(op: TensorReshapeOp, at: TensorBuilder) -> None:
    """All dimensions as one, and that one as those of the result."""
    source, result = at.require_tensor(op.source.type), at.require_tensor(op.result.type)
    before, after = list(source.get_shape()), list(result.get_shape())
    element, value = result.element_type, op.source
    whole = prod(before) if min(before, default=0) >= 0 else DYNAMIC_INDEX
    if not before:
        value = at.put(_expanded(value, [], [1], TensorType(element, [1])))
        whole = 1
    elif len(before) > 1:
        groups = _groups([list(range(len(before)))])
        flat = TensorType(element, [whole])
        value = at.put(
            tensor.CollapseShapeOp.build(
                operands=[value], properties={"reassociation": groups}, result_types=[flat]
            )
        )
    wanted = prod(after) if min(after, default=0) >= 0 else DYNAMIC_INDEX
    if whole != wanted:  # one of them is open
        value = at.put(tensor.CastOp(value, TensorType(element, [wanted])))
    if not after:
        value = at.put(
            tensor.CollapseShapeOp.build(
                operands=[value], properties={"reassociation": _groups([])}, result_types=[result]
            )
        )
    elif len(after) > 1:
        sizes = _said_sizes(op, at, after)
        value = at.put(_expanded(value, [list(range(len(after)))], sizes, result))
    elif wanted != after[0]:
        value = at.put(tensor.CastOp(value, result))
    said = op.shape.owner
    at.replace(value)
    if isinstance(said, tensor.FromElementsOp) and not said.result.uses:
        Rewriter.erase_op(said)


def _said_sizes(op: TensorReshapeOp, at: TensorBuilder, shape: Sequence[int]) -> list[Size]:
    """The sizes of the result: those of its type, and else those that are in its shape."""
    made = op.shape.owner
    sizes: list[Size] = list(shape)
    if min(shape) >= 0:
        return sizes
    if isinstance(made, arith.ConstantOp) and isinstance(made.value, DenseIntOrFPElementsAttr):
        numbers = [int(cast("Any", number)) for number in made.value.get_values()]
        numbers = numbers * (len(shape) // len(numbers))
        return [known if known >= 0 else numbers[dim] for dim, known in enumerate(shape)]
    if not isinstance(made, tensor.FromElementsOp):
        fail(
            op,
            "tensor.reshape by sizes that are computed in a tensor is not supported; make its "
            "shape by tensor.from_elements",
        )
    for dim, known in enumerate(shape):
        if known == DYNAMIC_INDEX:
            size = made.elements[dim]
            is_index = isinstance(size.type, IndexType)
            sizes[dim] = size if is_index else at.put(arith.IndexCastOp(size, IndexType()))
    return sizes


def _groups(groups: Sequence[Sequence[int]]) -> Attribute:
    return ArrayAttr(ArrayAttr(IntegerAttr(dim, i64) for dim in group) for group in groups)


def _expanded(
    value: SSAValue, groups: Sequence[Sequence[int]], sizes: Sequence[Size], type_: Attribute
) -> Operation:
    static = [size if isinstance(size, int) else DYNAMIC_INDEX for size in sizes]
    return tensor.ExpandShapeOp.build(
        operands=[value, [size for size in sizes if isinstance(size, SSAValue)]],
        properties={
            "reassociation": _groups(groups),
            "static_output_shape": DenseArrayBase.from_list(i64, static),
        },
        result_types=[type_],
    )


def _insert(op: tensor.InsertOp, at: TensorBuilder) -> None:
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


def _concat(op: tensor.ConcatOp, at: TensorBuilder) -> None:
    """Each input is a part of the result; next to what computes, a choice by place."""
    dim, type_ = op.dim.value.data, at.require_tensor(op.result.type)
    if _is_chosen(list(op.inputs), op.result):
        at.replace(_choose_part(at, list(op.inputs), type_, dim))
        return
    rank = len(type_.get_shape())
    lengths = [at.size(value, dim) for value in op.inputs]
    whole = [at.sum(lengths) if d == dim else at.size(op.inputs[0], d) for d in range(rank)]
    found = at.empty(type_, _dynamic(at, whole, type_))
    for number, value in enumerate(op.inputs):
        offsets: list[Size] = [at.sum(lengths[:number]) if d == dim else 0 for d in range(rank)]
        sizes = [at.size(value, d) for d in range(rank)]
        found = _put_part(at, value, found, offsets, sizes)
    at.replace(found)


def _insert_parts(op: tensor.InsertSliceOp) -> None:
    """Parts that make up an empty tensor, put in one after the other, are joined tensors."""
    parts, whole = list[tuple[int, ...]](), _shape_of(op.result)
    inputs, chain = list[SSAValue](), list[Operation]()
    made: Operation | Block = op
    while isinstance(made, tensor.InsertSliceOp) and (made is op or _has_one_use(made.result)):
        values = (*made.offsets, *made.sizes, *made.strides)
        if values or set(integers(made.static_strides)) != {1}:
            return
        if tuple(integers(made.static_sizes)) != _shape_of(made.source):
            return
        parts.append(tuple(integers(made.static_offsets)))
        inputs.append(made.source)
        chain.append(made)
        made = made.dest.owner
    dims = [dim for dim in range(len(whole)) if any(part[dim] for part in parts)]
    if not isinstance(made, tensor.EmptyOp) or len(dims) != 1:
        return
    (dim,) = dims
    order = sorted(range(len(parts)), key=lambda number: parts[number][dim])
    inputs = [inputs[number] for number in order]
    shapes = [_shape_of(value) for value in inputs]
    ends = [sum(shape[dim] for shape in shapes[:number]) for number in range(len(shapes) + 1)]
    if [parts[number][dim] for number in order] != ends[:-1] or ends[-1] != whole[dim]:
        return
    if any(n != m for shape in shapes for d, (n, m) in enumerate(zip(shape, whole)) if d != dim):
        return
    if _is_chosen(inputs, op.result):
        at = TensorBuilder(op)
        at.replace(_choose_part(at, inputs, at.require_tensor(op.result.type), dim))
        for other in chain[1:]:
            Rewriter.erase_op(other)


def _insert_into_filled(op: tensor.InsertSliceOp, fill: ops.FillOp) -> None:
    """A part of what is filled, its elements perhaps set apart: each knows whether it is one."""
    if op.offsets or op.sizes or op.strides or min(_shape_of(op.result), default=-1) <= 0:
        return
    first, steps = integers(op.static_offsets), integers(op.static_strides)
    sizes, at = _shape_of(op.source), TensorBuilder(op)
    readers = (use.operation for use in op.result.uses)
    if tuple(integers(op.static_sizes)) != sizes or 0 in sizes:
        return
    if not any(isinstance(reader, LinalgStructuredOperation) for reader in readers):
        return

    def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        inside: SSAValue | None = None
        indices: list[SSAValue] = []
        for dim, place in enumerate(places):
            if (first[dim], steps[dim], sizes[dim]) == (0, 1, _shape_of(op.result)[dim]):
                indices.append(place)
                continue
            moved = build.insert(arith.SubiOp(place, index_in(build, first[dim]))).result
            least = build.insert(arith.MaxSIOp(moved, index_in(build, 0))).result
            step = index_in(build, steps[dim])
            number = build.insert(arith.DivUIOp(least, step)).result if steps[dim] > 1 else least
            held = build.insert(arith.MinSIOp(number, index_in(build, sizes[dim] - 1))).result
            there = build.insert(arith.MuliOp(held, step)).result if steps[dim] > 1 else held
            same = build.insert(arith.CmpiOp(moved, there, "eq")).result
            inside = same if inside is None else build.insert(arith.AndIOp(inside, same)).result
            indices.append(held)
        element = at.require_tensor(op.result.type).element_type
        value = build.insert(tensor.ExtractOp(op.source, indices, element)).result
        if inside is None:
            return value
        return build.insert(arith.SelectOp(inside, value, fill.inputs[0])).result

    at.replace(at.generic(at.empty(op.result.type), body))


def _shape_of(value: SSAValue) -> tuple[int, ...]:
    """The shape of a tensor, -1 where it is open."""
    return cast("Tensor", value.type).get_shape()


def _is_insertion(value: SSAValue) -> bool:
    """Whether a tensor is only put into by another insertion."""
    uses = [use for use in value.uses if use.index == 1]
    return _has_one_use(value) and any(isinstance(x.operation, tensor.InsertSliceOp) for x in uses)


def _has_one_use(value: SSAValue) -> bool:
    return value.uses.get_length() == 1


def _is_chosen(inputs: Sequence[SSAValue], result: SSAValue) -> bool:
    """Whether joined tensors are computed where they are read, or read where they are computed:
    few ones of known sizes.
    """
    known = all(min(_shape_of(value), default=1) > 0 for value in inputs)
    readers = [use.operation for use in result.uses]
    next_to = [*readers, *(value.owner for value in inputs)]
    return (
        1 < len(inputs) <= MOST_JOINED
        and known
        and any(isinstance(one, LinalgStructuredOperation) for one in next_to)
    )


def _choose_part(
    at: TensorBuilder, inputs: Sequence[SSAValue], type_: Tensor, dim: int
) -> SSAValue:
    """Joined tensors: each element knows which of them it is one of."""

    def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        found: SSAValue | None = None
        first = type_.get_shape()[dim]
        for number, value in reversed(list(enumerate(inputs))):
            end, size = first, at.require_tensor(value.type).get_shape()[dim]
            first -= size
            place = places[dim]
            if number:
                moved = build.insert(arith.SubiOp(place, index_in(build, first))).result
                place = build.insert(arith.MaxSIOp(moved, index_in(build, 0))).result
            if found is not None:
                place = build.insert(arith.MinSIOp(place, index_in(build, size - 1))).result
            indices = [*places[:dim], place, *places[dim + 1 :]]
            element = build.insert(tensor.ExtractOp(value, indices, type_.element_type)).result
            if found is not None:
                here = build.insert(arith.CmpiOp(places[dim], index_in(build, end), "slt")).result
                element = build.insert(arith.SelectOp(here, element, found)).result
            found = element
        assert found is not None
        return found

    return at.generic(at.empty(type_), body)


def _pad(op: tensor.PadOp, at: TensorBuilder) -> None:
    """Of known size every element knows whether it is one of the source's; else the source is a
    part of what its surroundings fill.
    """
    source, type_ = op.source, at.require_tensor(op.result.type)
    rank = len(type_.get_shape())
    low, high = mixed_numbers(op.static_low, op.low), mixed_numbers(op.static_high, op.high)
    if any(isinstance(size, int) and size < 0 for size in (*low, *high)):
        fail(op, "tensor.pad takes elements away; take a part by tensor.extract_slice")
    inner = [at.size(source, dim) for dim in range(rank)]
    whole = [at.sum([a, n, b]) for a, n, b in zip(low, inner, high, strict=True)]
    empty = at.empty(type_, _dynamic(at, whole, type_))

    def around(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        return _yielded_value(op, op.region.block, build, places)

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
            first = index_in(build, before) if isinstance(before, int) else before
            moved = place if before == 0 else build.insert(arith.SubiOp(place, first)).result
            least = build.insert(arith.MaxSIOp(moved, index_in(build, 0))).result
            index = build.insert(arith.MinSIOp(least, index_in(build, size - 1))).result
            same = build.insert(arith.CmpiOp(moved, index, "eq")).result
            inside = same if inside is None else build.insert(arith.AndIOp(inside, same)).result
            indices.append(index)
        value = build.insert(tensor.ExtractOp(source, indices, type_.element_type)).result
        if inside is None:
            return value
        return build.insert(arith.SelectOp(inside, value, around(build, places))).result

    at.replace(at.generic(empty, body))


def _put_part(
    at: TensorBuilder,
    part: SSAValue,
    whole: SSAValue,
    offsets: Sequence[Size],
    sizes: Sequence[Size],
) -> SSAValue:
    static = [[x if isinstance(x, int) else DYNAMIC_INDEX for x in y] for y in (offsets, sizes)]
    values = [[x for x in y if isinstance(x, SSAValue)] for y in (offsets, sizes)]
    ones = [1] * len(sizes)
    return at.put(
        tensor.InsertSliceOp.get(part, whole, static[1], static[0], ones, values[0], values[1])
    )


def _dynamic(at: TensorBuilder, sizes: Sequence[Size], type_: Tensor) -> list[SSAValue]:
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
            at = TensorBuilder(user)
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


# -- packing ---------------------------------------------------------------------------------------
# `linalg.pack` and `linalg.unpack` as generics: which element of a tile is which of a tensor.


def expand_packing(op: Packing) -> None:
    """Replaces either."""
    at = TensorBuilder(op)
    if not isinstance(op, PacksInTiles):
        at.replace(_moved_element(at, op, _of_tiles(op)))
    elif op.padding_value is not None:
        at.replace(_padded_element(op, at))
    else:
        at.replace(_moved_element(at, op, _in_tiles(op)))


def _in_tiles(op: Packing) -> list[AffineExpr]:
    """Where the element of a tile lies in the tensor: tile number times its size, and within it."""
    rank = len(op.order)
    outer = {dim: AffineExpr.dimension(at) for at, dim in enumerate(op.order)}
    inner = {dim: AffineExpr.dimension(rank + at) for at, dim in enumerate(op.positions)}
    return [
        outer[dim] * (op.tile_of(dim) or 1) + inner[dim] if dim in inner else outer[dim]
        for dim in range(rank)
    ]


def _of_tiles(op: Packing) -> list[AffineExpr]:
    """Where the element of a tensor lies: which tile, and where in it."""
    places = [AffineExpr.dimension(dim) for dim in range(len(op.order))]
    outer = [places[dim] // (op.tile_of(dim) or 1) for dim in op.order]
    inner = [places[dim] % (op.tile_of(dim) or 1) for dim in op.positions]
    return [*outer, *inner]


def _moved_element(at: TensorBuilder, op: Packing, where: Sequence[AffineExpr]) -> SSAValue | None:
    type_ = at.require_shaped(op.into.type)
    rank = len(type_.get_shape())
    block = Block(arg_types=[type_.element_type, type_.element_type])
    block.add_op(ops.YieldOp(block.args[0]))
    maps = (AffineMap(rank, 0, tuple(where)), AffineMap.identity(rank))
    parallel = attrs.IteratorTypeAttr(attrs.IteratorType.PARALLEL)
    return at.put_optional(
        ops.GenericOp(
            [op.operand_of],
            [op.into],
            Region(block),
            [AffineMapAttr(one) for one in maps],
            [parallel] * rank,
            [value.type for value in op.result],
        )
    )


def _padded_element(op: PacksInTiles, at: TensorBuilder) -> SSAValue | None:
    """What lies behind the tensor is the padding."""
    source, padding = op.source, op.padding_value
    assert padding is not None
    rank = len(op.order)
    sizes = [at.size(source, dim) for dim in range(rank)]
    divided = dict(zip(op.positions, range(rank, rank + len(op.positions)), strict=True))
    element = at.require_shaped(source.type).element_type

    def body(build: Builder, places: Sequence[SSAValue]) -> SSAValue:
        inside: SSAValue | None = None
        indices: list[SSAValue] = []
        for dim, size in enumerate(sizes):
            place = places[op.order.index(dim)]
            if dim in divided:
                step = index_in(build, op.tile_of(dim) or 1)
                first = build.insert(arith.MuliOp(place, step)).result
                place = build.insert(arith.AddiOp(first, places[divided[dim]])).result
                end = index_in(build, size) if isinstance(size, int) else size
                last = build.insert(arith.SubiOp(end, index_in(build, 1))).result
                held = build.insert(arith.MinSIOp(place, last)).result
                same = build.insert(arith.CmpiOp(place, held, "eq")).result
                inside = same if inside is None else build.insert(
                    arith.AndIOp(inside, same)
                ).result  # fmt: skip
                place = held
            indices.append(place)
        value = build.insert(
            tensor.ExtractOp(source, indices, element)
            if op.result
            else memref.LoadOp.get(source, indices)
        ).results[0]
        return value if inside is None else build.insert(
            arith.SelectOp(inside, value, padding)
        ).result  # fmt: skip

    return at.generic_optional(op.dest, body)
