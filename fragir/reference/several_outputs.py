"""Structured operations of which some outputs are reduced and others have all loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Region, SSAValue

from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.loops import maps_of

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
        alone = _alone(op, numbers)
        try:
            found.update(zip(numbers, evaluate(alone), strict=True))
        finally:
            alone.drop_all_references()
    return [found[number] for number in range(len(op.outputs))]


def _alone(op: LinalgStructuredOperation, numbers: Sequence[int]) -> ops.GenericOp:
    """The operation with some of its outputs only, in no block."""
    first, block = len(op.inputs), op.body.block
    end = block.last_op
    assert end is not None
    needed = _needed([end.operands[number] for number in numbers], block)
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


def _needed(values: Sequence[SSAValue], block: Block) -> set[SSAValue]:
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
