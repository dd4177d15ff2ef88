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
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects.linalg.generic_text import maps_of
from fragir.dialects.memory_types import root_of
from fragir.dialects.shorthands import is_memref
from fragir.passes.structured.bodies import KernelProblem, has_product
from fragir.passes.structured.memory import NoPlaceError, is_part, places_through
from fragir.passes.structured.products import is_reduction
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


def touched_memory(op: Operation) -> Touched:
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
    facts = {op: touched_memory(op) for op in work}
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
        group, joined = _grow(first, rest, write)
        if group.kernel is None and len(first.operations) > 1:
            apart, first = _fills_apart(first, write)
            groups += apart
            if apart:
                group, joined = _grow(first, rest, write)
        groups.append(group)
        left = [unit for unit in rest if unit not in joined]
    return groups


def _grow(first: Unit, rest: Sequence[Unit], write: Writer) -> tuple[KernelGroup, list[Unit]]:
    """The longest group that a kernel is written for, from a unit on, and what joined it."""
    joining = _joining(first, rest)
    able = len(_able(first, [unit for more in joining for unit in more]))
    while sum(map(len, joining)) > able:
        joining.pop()
    while True:
        joined = [unit for more in joining for unit in more]
        operations = _operations([first, *joined])
        found = write(operations)
        if isinstance(found, WrittenKernel) or not joining:
            return KernelGroup(operations, _kernel(found)), joined
        most = len(operations) - 1 if found.most is None else found.most
        joining.pop()
        while joining and len(_operations([first, *(x for more in joining for x in more)])) > most:
            joining.pop()


def _fills_apart(unit: Unit, write: Writer) -> tuple[list[KernelGroup], Unit]:
    """The fills of a unit that need kernels of their own: those of what the operation only reads,
    or all; what is left of it.
    """
    *fills, op = unit.operations
    others = [
        fill for fill in fills if _written_values([fill]).isdisjoint(touched_memory(op).writes)
    ]
    for apart in (others, fills):
        kept = [one for one in unit.operations if one not in apart]
        if apart and isinstance(write(kept), WrittenKernel):
            fact, begun = touched_memory(op), _written_values(kept[:-1])
            memory = Touched(fact.reads - begun, fact.writes | begun)
            groups = [KernelGroup([fill], _kernel(write([fill]))) for fill in apart]
            return groups, Unit((*kept,), memory)
    return [], unit


def _kernel(found: WrittenKernel | KernelProblem) -> WrittenKernel | None:
    return found if isinstance(found, WrittenKernel) else None


def _written_values(operations: Sequence[Operation]) -> frozenset[SSAValue]:
    return frozenset(memory for op in operations for memory in touched_memory(op).writes)


def _able(first: Unit, rest: Sequence[Unit]) -> list[Unit]:
    """Those ahead of what no kernel has: a second product, a sum of what another one sums to
    along loops that the second one reduces, or elements that would be computed again and again.
    """
    products, found, sums, reads = 0, list[Unit](), Sums(), dict[SSAValue, int]()
    for unit in (first, *rest):
        for op in unit.operations:
            if isinstance(op, LinalgStructuredOperation):
                products += has_product(op)
                if products > 1 or not _follow(op, sums) or not _count_reads(op, reads):
                    return found[1:]
        found.append(unit)
    return found[1:]


MOST_READS = 64
"""Of memory for one element: a stage of a Fourier transform reads four elements of the one before,
each of which would be computed where it is read."""


def _count_reads(op: LinalgStructuredOperation, known: dict[SSAValue, int]) -> bool:
    """Notes how many elements of memory an operation's element is computed of, those that a body
    reads at places of its own each anew. Whether these are few enough for one kernel.
    """
    operands = [root_of(value) for value in op.operands if is_memref(value.type)]
    loads = [root_of(x.memref) for x in op.body.walk() if isinstance(x, memref.LoadOp)]
    total = max((known.get(root, 1) for root in operands), default=1)
    total += sum(known.get(root, 1) for root in loads)
    known.update((root_of(value), total) for value in op.outputs)
    return total <= MOST_READS or known.keys().isdisjoint(loads)


Sums = dict[SSAValue, tuple[SSAValue, frozenset[int]]]
"""Of memory by its root: the view that was written, and along which of its dimensions others' sums
lie."""


def _follow(op: LinalgStructuredOperation, sums: Sums) -> bool:
    """Notes where others' sums lie in what an operation writes, by what it reads. Whether a kernel
    may have all: it neither reduces them, nor reads a part of them, nor at places of its body's.
    """
    maps, first = maps_of(op), len(op.inputs)
    along: set[int] = set()
    for value, map_, argument in zip(op.operands, maps, op.body.block.args, strict=True):
        if not argument.uses or not is_memref(value.type):
            continue
        dims = _sums_in(value, sums)
        if dims is None:
            return False
        along.update(*(map_.results[dim].used_dims() for dim in dims))
    for inner in op.body.block.ops:
        if isinstance(inner, memref.LoadOp) and is_memref(inner.memref.type):
            dims = _sums_in(inner.memref, sums)
            loops = [x.owner for x in inner.indices]
            if dims is None or (dims and not all(isinstance(x, ops.IndexOp) for x in loops)):
                return False
            along.update(x.dim.value.data for x in loops if dims and isinstance(x, ops.IndexOp))
    kept = set[int]().union(*(map_.used_dims() for map_ in maps[first:]))
    if along - kept:
        return False
    reduces = len(kept) < maps[0].num_dims
    for value, map_ in zip(op.outputs, maps[first:], strict=True):
        dims = enumerate(map_.results)
        found = frozenset(d for d, e in dims if reduces or e.used_dims() & along)
        sums[root_of(value)] = value, found
    return True


def _sums_in(value: SSAValue, sums: Sums) -> set[int] | None:
    """Along which dimensions of a view others' sums lie; None of a view that no kernel reads."""
    written, dims = sums.get(root_of(value), (value, frozenset[int]()))
    if written is value or not dims:
        return set(dims)
    try:
        places = places_through(value, written)
    except NoPlaceError:
        return None
    if is_part(value) and not all(isinstance(places[dim], AffineDimExpr) for dim in dims):
        return None
    return set[int]().union(*(places[dim].used_dims() for dim in dims))


def _operations(units: Sequence[Unit]) -> list[Operation]:
    return [op for unit in units for op in unit.operations]


def _joining(first: Unit, rest: Sequence[Unit]) -> list[tuple[Unit, ...]]:
    """What may run right behind an operation and reads of what is computed there, in order: each
    with those of the operations ahead of it that it needs, too, if they are elementwise.
    """
    made, joining, passed = set(first.memory.writes), list[tuple[Unit, ...]](), list[Unit]()
    for unit in rest:
        needed = _needed_units(unit, passed) if not unit.memory.reads.isdisjoint(made) else None
        if needed is None:
            passed.append(unit)
            continue
        joining.append((*needed, unit))
        made.update(*(one.memory.writes for one in joining[-1]))
        passed = [one for one in passed if one not in needed]
    return joining


def _needed_units(unit: Unit, passed: Sequence[Unit]) -> list[Unit] | None:
    """Those of the units passed that have to run ahead of one; None where others than elementwise
    ones do.
    """
    needed = list[Unit]()
    for other in reversed(passed):
        if any(other.memory.meets(one.memory) for one in (unit, *needed)):
            if not all(map(_is_elementwise, other.operations)):
                return None
            needed.insert(0, other)
    works = [op for op in unit.operations if isinstance(op, LinalgStructuredOperation)]
    if needed and any(map(has_product, works)):
        return needed if all(map(_is_copy, _operations(needed))) else None
    return needed


def _is_elementwise(op: Operation) -> bool:
    return isinstance(op, memref.CopyOp) or (
        isinstance(op, LinalgStructuredOperation) and not is_reduction(op)
    )


def _is_copy(op: Operation) -> bool:
    """Whether an operation only puts elements elsewhere."""
    if not isinstance(op, LinalgStructuredOperation):
        return True
    end = op.body.block.last_op
    return end is not None and all(isinstance(x.owner, Block | memref.LoadOp) for x in end.operands)
