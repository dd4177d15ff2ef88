"""Reductions to few numbers, cut into parts so that all SMs of a GPU take one.

A sum of sixteen million numbers is one block's work where results alone make blocks. Its first
loops become loops of a reduction to partial results; a second one combines these. As with
`linalg.split_reduction` of MLIR, each is an operation of linalg like others.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    i64,
)
from xdsl.dialects.linalg import attrs, ops
from xdsl.ir import Block, Operation, Region, SSAValue, TypedAttribute
from xdsl.ir.affine import AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import ptx
from fragir.dialects.linalg.generic_text import dims_of, maps_of
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.passes.bufferizing.parts import expansion
from fragir.passes.structured.bodies import choice_of, combining_of, neutral
from fragir.passes.structured.products import is_reduction
from fragir.passes.structured.sums import PIECE, SECTOR, can_be_deep, lies_across, reduced_loops
from fragir.scheduling.devices import Device, device_for

PARALLEL, REDUCTION = attrs.IteratorTypeAttr.parallel(), attrs.IteratorTypeAttr.reduction()
ALONE = 24
"""Bytes a cycle that a block reads: 16 KiB on their way, 700 cycles until they are there."""
ANOTHER = 6000
"""Cycles that another launch takes, and a trip through memory."""
GAIN = 1.5
"""By how much it must be faster."""
EACH = 4096
"""Elements of a part at least: a few for every thread of a block."""
BLOCKS = 4
"""Parts for each SM, so that enough bytes are on their way."""


class Cut(NamedTuple):
    """How a reduction is cut: a part for each turn of these loops, and for each piece of another
    one, `split`, of which there are `pieces`; of equal length where they are `even`."""

    loops: tuple[int, ...]
    split: int | None = None
    pieces: int = 1
    even: bool = True


def split_sums(block: Block, target: str) -> None:
    """Cuts the reductions of a function that would have few blocks and much to read."""
    for op in list(block.ops):
        if isinstance(op, ops.GenericOp) and is_reduction(op):
            cut = _cut(op, device_for(target))
            if cut is not None:
                _split(op, cut)


def _cut(op: ops.GenericOp, device: Device) -> Cut | None:
    """How to cut a reduction; None where that gains nothing, or cannot be."""
    extents = _extents(op)
    if extents is None or not can_be_deep(op):
        return None
    maps = maps_of(op)[: len(op.inputs)]
    dims = [dims_of(map_) for map_ in maps]
    longest = max((each or [] for each in dims), key=len, default=list[int]())
    reduced = [loop for loop in longest if loop in set(reduced_loops(op))]
    kept = prod(size for loop, size in enumerate(extents) if loop not in reduced)
    if sorted(reduced) != sorted(reduced_loops(op)) or _is_product(op, dims):
        return None
    if min((size for loop, size in enumerate(extents) if loop not in reduced), default=0) < 0:
        return None
    blocks = _blocks(op, extents, kept)
    wanted = BLOCKS * device.sms // blocks
    if min(extents) >= 0:
        wanted = min(wanted, kept and prod(extents) // EACH // blocks)
        types = [memref_type(value.type) for value in op.inputs if is_memref(value.type)]
        read = sum(ptx.bits(type_.element_type) * prod(type_.get_shape()) for type_ in types) / 8
        then = read / (device.dram_bytes * device.sms) + ANOTHER
        if read / (blocks * ALONE) < GAIN * then:
            return None
    counted = any(isinstance(inner, ops.IndexOp) for inner in op.body.walk())
    loops = list[int]()
    for loop in reduced:
        size = extents[loop]
        is_first = loop == min(set(reduced) - set(loops))
        if 0 <= size <= wanted:
            loops.append(loop)
            wanted //= max(1, size)
        elif wanted < 2:
            break
        elif counted or min(extents) < 0:
            wanted = wanted if size >= 0 else min(wanted, device.sms)
            return Cut((*loops,), loop, wanted, even=False) if is_first else None
        else:
            even = next(pieces for pieces in range(wanted, 0, -1) if size % pieces == 0)
            pieces = wanted if even <= wanted // 2 and is_first else even
            return Cut((*loops,), loop, pieces, pieces == even) if pieces > 1 else None
    return Cut((*loops,)) if loops and len(loops) < len(reduced) else None


def _is_product(op: ops.GenericOp, dims: Sequence[list[int] | None]) -> bool:
    """Whether it is a product of matrices, which tiles read many times."""
    kept = set(range(maps_of(op)[0].num_dims)) - set(reduced_loops(op))
    own = [kept & set(each or ()) for each in dims]
    return any(one and other and one != other for one in own for other in own)


def _blocks(op: ops.GenericOp, extents: Sequence[int], kept: int) -> int:
    """The blocks that it would have."""
    across = lies_across(op)
    if not across:
        return max(1, kept)
    last = dims_of(maps_of(op)[len(op.inputs)]) or []
    beside = prod(extents[loop] for loop in last[len(last) - across :])
    narrow = SECTOR // ptx.bits(op.body.block.args[0].type)
    return max(1, kept // beside * -(-beside // narrow))


def _extents(op: ops.GenericOp) -> list[int] | None:
    """How far the loops run, -1 where only the launch knows; None where memory is not plain."""
    found: dict[int, int] = {}
    for value, map_ in zip(op.operands, maps_of(op), strict=True):
        if not is_memref(value.type):
            continue
        type_, dims = memref_type(value.type), dims_of(map_)
        if dims is None or 0 in type_.get_shape():
            return None
        if value in op.inputs and not isinstance(type_.layout, NoneAttr):
            return None
        for loop, size in zip(dims, type_.get_shape(), strict=True):
            found[loop] = max(size, found.get(loop, -1))
    count = maps_of(op)[0].num_dims
    return [found[loop] for loop in range(count)] if len(found) == count else None


def _split(op: ops.GenericOp, cut: Cut) -> None:
    """Puts a reduction to parts, and one of the parts, in the place of a reduction."""
    extents = _extents(op)
    assert extents is not None
    maps, split = maps_of(op), cut.split
    shape = [extents[loop] for loop in cut.loops] + ([cut.pieces] if split is not None else [])
    loops = len(extents) + (split is not None)
    # of equal pieces the loop counts these, and another one goes through each of them
    counting = [*cut.loops, *([] if split is None else [split if cut.even else loops - 1])]
    kept = dims_of(maps[-1])
    assert kept is not None
    before = InsertPoint.before(op)

    def insert(made: Operation) -> SSAValue:
        made.location = op.location
        Rewriter.insert_op(made, before)
        return made.results[0]

    starts = _starts(op)
    parts: list[SSAValue] = []
    for start, argument in zip(starts, op.body.block.args[len(op.inputs) :], strict=True):
        type_ = MemRefType(argument.type, [*shape, *(extents[loop] for loop in kept)])
        parts.append(insert(memref.AllocOp([], [], type_)))
        fill = ops.FillOp([insert(arith.ConstantOp(cast("FloatAttr", start)))], parts[-1:], [])
        fill.location = op.location
        Rewriter.insert_op(fill, before)

    inputs: list[SSAValue] = []
    own: list[AffineMap] = []
    for value, map_ in zip(op.inputs, maps, strict=False):
        dims = dims_of(map_) or []
        if split is not None and cut.even and split in dims:
            at = dims.index(split)
            value = insert(_expanded(value, at, cut.pieces))
            dims = [*dims[: at + 1], loops - 1, *dims[at + 1 :]]
        inputs.append(value)
        own.append(_map(loops, dims))
    own += [_map(loops, [*counting, *kept])] * len(parts)
    kinds = [PARALLEL if loop in counting or loop in kept else REDUCTION for loop in range(loops)]
    first = _insert_generic(op, inputs, parts, own, kinds, op.body.clone())
    if split is not None and not cut.even:
        first.attributes[PIECE] = DenseArrayBase.from_list(i64, [loops - 1, split])

    count = len(counting)
    order = [*range(count), *range(count, count + len(kept))]
    whole, result = _map(len(order), order), _map(len(order), order[count:])
    _insert_generic(
        op,
        parts,
        op.outputs,
        [*[whole] * len(parts), *[result] * len(parts)],
        [*[REDUCTION] * count, *[PARALLEL] * len(kept)],
        _of_parts(op),
    )
    Rewriter.erase_op(op)


def _starts(op: ops.GenericOp) -> list[TypedAttribute]:
    """What the parts begin from: numbers that change nothing."""
    first = len(op.inputs)
    types = [argument.type for argument in op.body.block.args[first:]]
    combining, choice = combining_of(op), choice_of(op)
    if choice is None:
        assert combining is not None
        found = [neutral(combining.kind, types[0])]
    else:
        found = [neutral(choice.kind, types[choice.value])]
        found.insert(1 - choice.value, neutral("or", types[1 - choice.value]))
    return [start for start in found if start is not None]


def _of_parts(op: ops.GenericOp) -> Region:
    """The body of a reduction of what the parts of another one gave."""
    combining, choice = combining_of(op), choice_of(op)
    types = [argument.type for argument in op.body.block.args[len(op.inputs) :]]
    body = Block(arg_types=[*types, *types])
    if choice is None:
        assert combining is not None
        both = combining.op.clone()
        both.operands = [body.args[1], body.args[0]]
        body.add_ops([both, ops.YieldOp(both.results[0])])
        return Region(body)
    value = choice.value
    x, old = body.args[value], body.args[2 + value]
    condition, best = choice.condition.clone(), choice.best.clone()
    condition.operands = [x, old]
    chosen = isinstance(best, arith.SelectOp)
    best.operands = [*([condition.results[0]] if chosen else []), x, old]
    there = arith.SelectOp(condition.results[0], body.args[1 - value], body.args[3 - value])
    found = [best.results[0], there.result]
    end = ops.YieldOp(*(found if value == 0 else found[::-1]))
    body.add_ops([condition, best, there, end])
    return Region(body)


def _insert_generic(
    op: ops.GenericOp,
    inputs: Sequence[SSAValue],
    outputs: Sequence[SSAValue],
    maps: Sequence[AffineMap],
    kinds: Sequence[attrs.IteratorTypeAttr],
    body: Region,
) -> ops.GenericOp:
    made = ops.GenericOp(
        inputs, list(outputs), body, [AffineMapAttr(map_) for map_ in maps], list(kinds), []
    )
    for inner in made.walk():
        inner.location = op.location
    Rewriter.insert_op(made, InsertPoint.before(op))
    return made


def _expanded(value: SSAValue, dim: int, pieces: int) -> Operation:
    """Memory with two dimensions in the place of one: pieces, and what each has."""
    type_ = memref_type(value.type)
    shape = list(type_.get_shape())
    sizes = [*shape[:dim], pieces, shape[dim] // pieces, *shape[dim + 1 :]]
    numbers = iter(range(len(sizes)))
    groups = ArrayAttr(
        [
            ArrayAttr([IntegerAttr(next(numbers), i64) for _ in range(1 + (at == dim))])
            for at in range(len(shape))
        ]
    )
    return expansion(value, groups, [*sizes], MemRefType(type_.element_type, sizes))


def _map(loops: int, dims: Sequence[int]) -> AffineMap:
    results: list[AffineExpr] = [AffineDimExpr(dim) for dim in dims]
    return AffineMap(loops, 0, tuple(results))
