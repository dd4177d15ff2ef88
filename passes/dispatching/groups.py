"""Which operations of linalg one kernel computes.

Front to back, an operation that belongs to no group yet opens one. Behind it the operations that
read what the group computes, and need nothing that is computed outside of it in between, may join;
they then run earlier than they stood, so they must not meet the memory of those that they pass.
Whether a kernel can compute a group is asked of those who write kernels: of the ways to cut the row
of candidates the longest that they take is taken. What no kernel ever does is not asked: two
products, and sums that are summed once more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.linalg import ops
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Block, Operation, SSAValue

from fragir.dialects.linalg.hidden_body import maps_of
from fragir.dialects.narrow import is_memref
from fragir.passes.structured.bodies import KernelProblem, has_product
from fragir.passes.structured.memory import root_of
from fragir.passes.structured.writing import WrittenKernel, is_computed

Writer = Callable[[Sequence[Operation]], WrittenKernel | KernelProblem]


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


class KernelGroup(NamedTuple):
    """Operations that one kernel computes, and the kernel, if one could be written."""

    operations: list[Operation]
    kernel: WrittenKernel | None


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


def may_be_one(units: Sequence[Unit]) -> bool:
    """Whether all of them may be one kernel."""
    first, *rest = units
    return len(_able(first, rest)) == len(rest)


def groups_of(units: Sequence[Unit], write: Writer) -> list[KernelGroup]:
    """The groups of a function's operations, in the order of their first ones."""
    left, groups = list(units), list[KernelGroup]()
    while left:
        first, *rest = left
        group, joined = _grown(first, rest, write)
        if group.kernel is None and len(first.operations) > 1:
            apart, first = _fills_apart(first, write)
            groups += apart
            if apart:
                group, joined = _grown(first, rest, write)
        groups.append(group)
        left = [unit for unit in rest if unit not in joined]
    return groups


def _grown(first: Unit, rest: Sequence[Unit], write: Writer) -> tuple[KernelGroup, list[Unit]]:
    """The longest group that a kernel is written for, from a unit on, and what joined it."""
    joining = _able(first, _joining(first, rest))
    while True:
        operations = _operations([first, *joining])
        found = write(operations)
        if isinstance(found, WrittenKernel) or not joining:
            return KernelGroup(
                operations, found if isinstance(found, WrittenKernel) else None
            ), joining
        most = len(operations) - 1 if found.most is None else found.most
        joining.pop()
        while joining and len(_operations([first, *joining])) > most:
            joining.pop()


def _fills_apart(unit: Unit, write: Writer) -> tuple[list[KernelGroup], Unit]:
    """The fills of a unit that need kernels of their own: those of what the operation only reads,
    or all; what is left of it.
    """
    *fills, op = unit.operations
    others = [fill for fill in fills if _written([fill]).isdisjoint(touched(op).writes)]
    for apart in (others, fills):
        kept = [one for one in unit.operations if one not in apart]
        if apart and isinstance(write(kept), WrittenKernel):
            fact, begun = touched(op), _written(kept[:-1])
            memory = Touched(fact.reads - begun, fact.writes | begun)
            groups = [KernelGroup([fill], _kernel(write([fill]))) for fill in apart]
            return groups, Unit((*kept,), memory)
    return [], unit


def _kernel(found: WrittenKernel | KernelProblem) -> WrittenKernel | None:
    return found if isinstance(found, WrittenKernel) else None


def _written(operations: Sequence[Operation]) -> frozenset[SSAValue]:
    return frozenset(memory for op in operations for memory in touched(op).writes)


def _able(first: Unit, rest: Sequence[Unit]) -> list[Unit]:
    """Those ahead of what no kernel has: a second product, or a sum of what another one sums to
    along loops that the second one reduces.
    """
    products, found, sums = 0, list[Unit](), dict[SSAValue, frozenset[int]]()
    for unit in (first, *rest):
        for op in unit.operations:
            if isinstance(op, LinalgStructuredOperation):
                products += has_product(op)
                if products > 1 or not _follow(op, sums):
                    return found[1:]
        found.append(unit)
    return found[1:]


def _follow(op: LinalgStructuredOperation, sums: dict[SSAValue, frozenset[int]]) -> bool:
    """Notes along which dimensions of memory others' sums lie, by what an operation reads; whether
    it reduces none of these.
    """
    maps, first = maps_of(op), len(op.inputs)
    along: set[int] = set()
    for value, map_, argument in zip(op.operands, maps, op.body.block.args, strict=True):
        if argument.uses:
            for dim in sums.get(value, ()):
                along |= map_.results[dim].used_dims()
    kept = set[int]().union(*(map_.used_dims() for map_ in maps[first:]))
    if along - kept:
        return False
    reduces = len(kept) < maps[0].num_dims
    for value, map_ in zip(op.outputs, maps[first:], strict=True):
        dims = enumerate(map_.results)
        sums[value] = frozenset(d for d, e in dims if reduces or e.used_dims() & along)
    return True


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
