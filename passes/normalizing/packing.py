"""`linalg.pack` and `linalg.unpack` as generics: which element of a tile is which of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, memref, tensor
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fragir.dialects.tensors.packing import Packing, PacksInTiles
from fragir.passes.normalizing.building import TensorBuilder, index_in


def expand_packing(op: Packing) -> None:
    """Replaces either."""
    at = TensorBuilder(op)
    if not isinstance(op, PacksInTiles):
        at.replace(_moved(at, op, _of_tiles(op)))
    elif op.padding_value is not None:
        at.replace(_padded(op, at))
    else:
        at.replace(_moved(at, op, _in_tiles(op)))


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


def _moved(at: TensorBuilder, op: Packing, where: Sequence[AffineExpr]) -> SSAValue | None:
    type_ = at.shaped(op.into.type)
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


def _padded(op: PacksInTiles, at: TensorBuilder) -> SSAValue | None:
    """What lies behind the tensor is the padding."""
    source, padding = op.source, op.padding_value
    assert padding is not None
    rank = len(op.order)
    sizes = [at.size(source, dim) for dim in range(rank)]
    divided = dict(zip(op.positions, range(rank, rank + len(op.positions)), strict=True))
    element = at.shaped(source.type).element_type

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
