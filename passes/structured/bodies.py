"""The bodies of structured operations: what they combine, and tiles of what they compute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

from xdsl.dialects import arith, cf, math, memref
from xdsl.dialects.builtin import AnyFloat, FileLineColLoc, FloatAttr, IntegerAttr, IntegerType
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue, TypedAttribute
from xdsl.rewriter import InsertPoint, Rewriter

from fragir.dialects import frag
from fragir.dialects.elements import element_bits
from fragir.dialects.frag.reductions import COMBINATIONS
from fragir.dialects.shorthands import is_memref
from fragir.passes.structured.memory import is_scalar
from fragir.passes.structured.products import is_reduction
from fragir.passes.structured.values import (
    I32,
    INDEX,
    Axes,
    Insert,
    Place,
    TileValue,
    ValueBuilder,
    union,
)


class KernelProblem(NamedTuple):
    """Why a kernel cannot be written, and where."""

    op: Operation
    words: str
    most: int | None = None
    """How many of the operations of linalg, from the first on, may still be one; None: any."""


class NoKernelError(Exception):
    """Ends the analysis of a function with a problem."""

    def __init__(self, op: Operation, words: str):
        super().__init__(words)
        self.problem = KernelProblem(op, words)


_INSTEAD = {
    "memref.store": "what it stores is an output, of `outs`, that it yields",
    "scf.if": "arith.select chooses between two values",
}


def foreign_to_bodies(op: Operation, inner: Operation) -> NoKernelError:
    """The problem of a body that does more than compute an element."""
    place = inner.location
    line = f", in line {place.line.data}" if isinstance(place, FileLineColLoc) else ""
    way = _INSTEAD.get(inner.name, "it holds arith and math, linalg.index and memref.load")
    return NoKernelError(op, f"{inner.name} in the body of {op.name}{line}: {way}")


KINDS = {
    name: kind
    for kind in ("add", "mul", "max", "min", "and", "or", "xor")
    for name in (COMBINATIONS[kind].floats, COMBINATIONS[kind].integers)
    if name is not None
}
"""How `frag.reduce` calls an operation on two elements."""


class RowCombining(NamedTuple):
    """`old combined with x`, as a body yields it."""

    op: Operation
    kind: str
    x: SSAValue


def combining_of(op: LinalgStructuredOperation) -> RowCombining | None:
    """How a reduction combines; None where its body does something else."""
    block = op.body.block
    end, old = block.last_op, block.args[-1]
    if len(op.outputs) != 1 or not isinstance(end, ops.YieldOp) or old.uses.get_length() != 1:
        return None
    made = end.operands[0].owner
    if not isinstance(made, Operation) or made.name not in KINDS or old not in made.operands:
        return None
    if made.results[0].uses.get_length() != 1:
        return None
    x = made.operands[1 if made.operands[0] is old else 0]
    return RowCombining(made, KINDS[made.name], x)


class BestChoice(NamedTuple):
    """A reduction to the largest or smallest number and something of where it is, the first of
    several that are alike."""

    condition: arith.CmpfOp | arith.CmpiOp
    """Whether an element is better than the best so far."""
    value: int
    """The number of the output that has the best one; the other one has what goes with it."""
    companion: SSAValue
    """What goes with an element."""
    best: Operation
    """What gives the best number so far: a selection by the condition, or a maximum or minimum."""
    kind: str
    """"max" or "min"."""


STRICT = {
    "arith.cmpf": {2: "ogt", 4: "olt"},
    "arith.cmpi": {2: "slt", 4: "sgt", 6: "ult", 8: "ugt"},
}
"""Comparisons that are false for equal numbers, by the numbers of MLIR, with their names."""


def choice_of(op: LinalgStructuredOperation) -> BestChoice | None:
    """How a reduction chooses; None where its body does something else."""
    block, first = op.body.block, len(op.inputs)
    end = block.last_op
    if len(op.outputs) != 2 or not isinstance(end, ops.YieldOp):
        return None
    for value in range(2):
        old, other = block.args[first + value], block.args[first + 1 - value]
        best, chosen = end.operands[value].owner, end.operands[1 - value].owner
        if not isinstance(chosen, arith.SelectOp) or chosen.rhs is not other:
            continue
        if not isinstance(best, Operation):
            continue
        condition = chosen.cond.owner
        if not isinstance(condition, arith.CmpfOp | arith.CmpiOp) or condition.rhs is not old:
            continue
        relation = STRICT[condition.name].get(condition.predicate.value.data)
        if relation is None or other.uses.get_length() != 1:
            continue
        x = condition.lhs
        if isinstance(best, arith.SelectOp):
            alike = best.cond is condition.result and best.lhs is x and best.rhs is old
        else:
            kinds = {"max": "gt", "min": "lt"}
            name = KINDS.get(best.name, "")
            alike = relation.endswith(kinds.get(name, "-")) and set(best.operands) == {x, old}
        if alike and not _depends(chosen.lhs, {old, other}):
            kind = "max" if relation.endswith("gt") else "min"
            return BestChoice(condition, value, chosen.lhs, best, kind)
    return None


def _depends(value: SSAValue, on: set[SSAValue]) -> bool:
    """Whether a value of a body is computed from some of its arguments."""
    if value in on:
        return True
    return isinstance(value.owner, Operation) and any(
        _depends(operand, on) for operand in value.owner.operands
    )


def neutral(kind: str, type_: Attribute) -> TypedAttribute | None:
    """The number that combined with another one gives that; None where there is none."""
    if type_.name == IntegerType.name:
        bits = element_bits(type_)
        lowest, highest = -(1 << bits - 1), (1 << bits - 1) - 1
        numbers = {"add": 0, "mul": 1, "max": lowest, "min": highest, "and": -1, "or": 0, "xor": 0}
        return IntegerAttr(numbers[kind], IntegerType(bits))
    floats = {"add": 0.0, "mul": 1.0, "max": -inf, "min": inf}
    if kind not in floats or not isinstance(type_, AnyFloat):
        return None
    return FloatAttr(floats[kind], type_)


def only_inside(length: int, element: Attribute, other: FloatAttr) -> Region:
    """Of an element and its place in a row: itself, or another number behind the row's end."""
    i32 = IntegerType(32)
    block = Block(arg_types=[element, i32])
    end = arith.ConstantOp(IntegerAttr(length, i32))
    inside = arith.CmpiOp(block.args[1], end, "slt")
    number = arith.ConstantOp(other)
    chosen = arith.SelectOp(inside, block.args[0], number)
    block.add_ops([end, inside, number, chosen, frag.YieldOp(chosen)])
    return Region(block)


def has_product(op: LinalgStructuredOperation) -> bool:
    """Whether an operation sums products of two inputs: a matrix product, or what is like one."""
    found = combining_of(op) if is_reduction(op) else None
    if found is None:
        return is_reduction(op)
    x = found.x.owner
    return len(op.inputs) == 2 and isinstance(x, arith.MulfOp | arith.MuliOp)


Read = Callable[[SSAValue, Sequence[Place]], TileValue]
"""Reads memory at places."""


def check_body(op: LinalgStructuredOperation, block: Block) -> None:
    """NoKernelError where a body holds what is not computed element by element."""
    known: tuple[type[Operation], ...] = (ops.YieldOp, ops.IndexOp, memref.LoadOp)
    if not is_reduction(op):
        known = (*known, cf.AssertOp)
    for inner in block.ops:
        if not (is_scalar(inner) or isinstance(inner, known)):
            raise foreign_to_bodies(op, inner)
        if isinstance(inner, memref.LoadOp) and inner.memref.owner is block:
            raise NoKernelError(op, f"{inner.name} of an element in the body of {op.name}")


def repeat(
    operations: Iterable[Operation],
    names: dict[SSAValue, SSAValue],
    insert: Callable[[Operation], object],
    place: Operation | None = None,
) -> list[Operation]:
    """Writes operations of a body once more, with other values as `names` says, to which theirs are
    added. They stand where they stood, or where another operation does.
    """
    made: list[Operation] = []
    for op in operations:
        copy = op.clone(names)
        insert(copy)
        copy.location = (place or op).location
        made.append(copy)
    return made


class BodyWriter:
    """One body at one tile of places.

    `known`: its arguments, and what else is known; `loops`: where along each loop the elements are;
    `accumulator`: the argument whose sum with a product is one instruction.
    """

    def __init__(
        self,
        build: ValueBuilder,
        block: Block,
        known: Mapping[SSAValue, TileValue],
        loops: Sequence[Place],
        read: Read,
        accumulator: SSAValue | None = None,
    ):
        self._build, self._block, self._known = build, block, dict(known)
        self._loops, self._read, self._accumulator = loops, read, accumulator

    def value(self, wanted: SSAValue, order: Axes, name: str | None = None) -> TileValue:
        """What the body computes, along those axes of `order` on which it depends."""
        if wanted in self._known:
            return self._known[wanted]
        if wanted.type == INDEX:
            found = self._map(wanted, order, name, as_i32=True)
        else:
            found = self._map(wanted, order, name)
        self._known[wanted] = found
        return found

    def _slice(self, wanted: SSAValue, order: Axes) -> list[Operation]:
        """The operations of the body that compute a value, front to back; memory is read."""
        found: set[Operation] = set()
        pending = [wanted]
        while pending:
            value = pending.pop()
            op = value.owner
            if value in self._known or not isinstance(op, Operation) or op in found:
                continue
            if op.parent is not self._block:
                continue
            if isinstance(op, memref.LoadOp):
                places = [self._index(index, order) for index in op.indices]
                self._known[value] = self._read(op.memref, places)
                continue
            found.add(op)
            pending += op.operands
        return [op for op in self._block.ops if op in found]

    def _index(self, index: SSAValue, order: Axes) -> Place:
        """An index that the body computes, as a place."""
        owner = index.owner
        if isinstance(owner, ops.IndexOp) and owner.parent is self._block:
            return self._loops[owner.dim.value.data]
        return self.value(index, order)

    def _map(
        self, wanted: SSAValue, order: Axes, name: str | None, as_i32: bool = False
    ) -> TileValue:
        work = self._slice(wanted, order)
        used = dict.fromkeys(value for op in work for value in op.operands)
        if wanted in self._known:
            return self._known[wanted]
        places = {
            op.result: self._loops[op.dim.value.data] for op in work if isinstance(op, ops.IndexOp)
        }
        tiles = {v: self._known[v] for v in used if v in self._known and self._known[v].axes}
        tiles |= {v: p for v, p in places.items() if isinstance(p, TileValue) and p.axes}
        names = {v: self._known[v].value for v in used if v in self._known and v not in tiles}
        for value, place in places.items():
            if value not in tiles:
                names[value] = self._build.index(place)
        axes = union([tile.axes for tile in tiles.values()], order)

        def body(insert: Insert, elements: Sequence[SSAValue]) -> SSAValue:
            here = dict(names)
            for value, element in zip(tiles, elements, strict=True):
                is_place = value.type == INDEX and element.type != INDEX
                here[value] = insert(arith.IndexCastOp(element, INDEX)) if is_place else element
            body = [op for op in work if not isinstance(op, ops.IndexOp)]
            made = repeat(body, here, insert)
            result = here.get(wanted, wanted)
            if self._accumulator is not None:
                result = _contract(made, result, here.get(self._accumulator))
            return insert(arith.IndexCastOp(result, I32)) if as_i32 and axes else result

        if not axes:
            return TileValue(body(self._build.put, []))
        element = I32 if as_i32 else wanted.type
        return self._build.map(list(tiles.values()), axes, element, body, name or wanted.name_hint)


def _contract(
    made: Sequence[Operation], result: SSAValue, accumulator: SSAValue | None
) -> SSAValue:
    """A sum of the accumulator and a product as one instruction, rounded once."""
    total = result.owner
    if not isinstance(total, arith.AddfOp) or not isinstance(result.type, AnyFloat):
        return result
    for old, term in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        product = term.owner
        alone = isinstance(product, arith.MulfOp) and product in made
        if old is accumulator and alone and term.uses.get_length() == 1:
            assert isinstance(product, arith.MulfOp)
            fused = math.FmaOp(product.lhs, product.rhs, old)
            fused.location = total.location
            Rewriter.insert_op(fused, InsertPoint.before(total))
            result.replace_all_uses_with(fused.result)
            Rewriter.erase_op(total)
            Rewriter.erase_op(product)
            return fused.result
    return result


def memories_in(block: Block) -> list[SSAValue]:
    """Memory that a body reads at places of its own."""
    return [
        op.memref for op in block.ops if isinstance(op, memref.LoadOp) and is_memref(op.memref.type)
    ]
