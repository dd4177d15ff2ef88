"""Which operations of linalg one kernel computes.

Front to back, an operation that belongs to no group yet opens one. Behind it the operations that
read what the group computes, and need nothing that is computed outside of it in between, may join;
they then run earlier than they stood, so they must not meet the memory of those that they pass.
Whether a kernel can compute a group is not decided by rules here but asked of those who write
kernels: of the ways to cut the row of candidates the longest that they take is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue

from fragir.dialects.narrow import is_memref
from fragir.passes.contraction.views import root_of
from fragir.passes.generics.combining import has_product

Accepts = Callable[[Sequence[Operation]], bool]


class Touched(NamedTuple):
    """The memories that an operation reads and writes, by their roots."""

    reads: frozenset[SSAValue]
    writes: frozenset[SSAValue]

    def meets(self, other: Touched) -> bool:
        """Whether the two must run in the order in which they stand."""
        return not (
            self.writes.isdisjoint(other.reads | other.writes)
            and self.reads.isdisjoint(other.writes)
        )


def touched(op: Operation) -> Touched:
    """What an operation of linalg, or a copy, reads and writes."""
    if isinstance(op, memref.CopyOp):
        return Touched(frozenset((root_of(op.source),)), frozenset((root_of(op.destination),)))
    assert isinstance(op, LinalgStructuredOperation)
    inputs = [value for value in op.inputs if is_memref(value.type)]
    arguments = op.body.block.args[len(op.inputs) :]
    inputs += [x for x, argument in zip(op.outputs, arguments, strict=True) if argument.uses]
    inputs += [inner.memref for inner in op.body.walk() if isinstance(inner, memref.LoadOp)]
    return Touched(frozenset(map(root_of, inputs)), frozenset(map(root_of, op.outputs)))


def is_computed(op: Operation) -> bool:
    """Whether an operation is one that kernels compute."""
    return isinstance(op, LinalgStructuredOperation | memref.CopyOp)


class Unit(NamedTuple):
    """An operation with the fills that it begins from, and the memory that they touch."""

    operations: tuple[Operation, ...]
    memory: Touched


def units_of(block: Block) -> list[Unit]:
    """A block's operations. A `linalg.fill` stands with the operation that uses its memory next:
    nothing in between sees it.
    """
    work = [op for op in block.ops if is_computed(op)]
    facts = {op: touched(op) for op in work}
    filled: dict[SSAValue, Operation] = {}
    units: list[Unit] = []
    for op in work:
        fact = facts[op]
        begun = [m for m in filled if m in fact.reads | fact.writes]
        fills = [filled.pop(memory) for memory in begun]
        if isinstance(op, ops.FillOp):
            units += [Unit((fill,), facts[fill]) for fill in fills]
            filled[root_of(op.outputs[0])] = op
            continue
        memory = Touched(fact.reads - set(begun), fact.writes | set(begun))
        units.append(Unit((*fills, op), memory))
    return units + [Unit((op,), facts[op]) for op in filled.values()]


def groups_of(units: Sequence[Unit], accepts: Accepts) -> list[list[Operation]]:
    """The groups of a function's operations, in the order of their first ones."""
    left, groups = list(units), list[list[Operation]]()
    while left:
        first, *rest = left
        apart = _fills_apart(first, accepts)
        if apart:
            groups += [[fill] for fill in apart]
            *kept, op = (one for one in first.operations if one not in apart)
            fact, begun = touched(op), _written(kept)
            memory = Touched(fact.reads - begun, fact.writes | begun)
            first = Unit((*kept, op), memory)
        joining = _with_one_product(first, _joining(first, rest))
        while joining and not accepts(_operations([first, *joining])):
            joining.pop()
        groups.append(_operations([first, *joining]))
        left = [unit for unit in rest if unit not in joining]
    return groups


def _fills_apart(unit: Unit, accepts: Accepts) -> list[Operation]:
    """The fills of a unit that need kernels of their own: none, those of what the operation only
    reads, or all.
    """
    *fills, op = unit.operations
    if not fills or accepts(unit.operations):
        return []
    others = [fill for fill in fills if _written([fill]).isdisjoint(touched(op).writes)]
    for apart in (others, fills):
        if apart and accepts([one for one in unit.operations if one not in apart]):
            return apart
    return []


def _written(operations: Sequence[Operation]) -> frozenset[SSAValue]:
    return frozenset(memory for op in operations for memory in touched(op).writes)


def _with_one_product(first: Unit, joining: Sequence[Unit]) -> list[Unit]:
    """Those ahead of a second product: no kernel has two."""
    products, found = sum(map(has_product, _structured([first]))), list[Unit]()
    for unit in joining:
        products += sum(map(has_product, _structured([unit])))
        if products > 1:
            break
        found.append(unit)
    return found


def _structured(units: Sequence[Unit]) -> list[LinalgStructuredOperation]:
    return [op for op in _operations(units) if isinstance(op, LinalgStructuredOperation)]


def _operations(units: Sequence[Unit]) -> list[Operation]:
    return [op for unit in units for op in unit.operations]


def _joining(first: Unit, rest: Sequence[Unit]) -> list[Unit]:
    """What may run right behind an operation and reads of what is computed there, in order."""
    made, joining, passed = set(first.memory.writes), list[Unit](), list[Unit]()
    for unit in rest:
        free = not any(unit.memory.meets(other.memory) for other in passed)
        if free and not unit.memory.reads.isdisjoint(made):
            joining.append(unit)
            made |= unit.memory.writes
        else:
            passed.append(unit)
    return joining
