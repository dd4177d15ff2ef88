"""The loops that elementwise operations of a kernel have in common, and how memory lies along them.

Loops of operations are one where both index the same dimension of a buffer. Loops that lie behind
each other in every operand are taken as one, so that tiles are as long as memory allows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import FileLineColLoc, NoneAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fragir.dialects.linalg.hidden_body import maps_of
from fragir.dialects.narrow import is_memref, memref_type

Axis = tuple[int, ...]
"""Loops, in the order in which memory has them, that are counted as one."""


class KernelProblem(NamedTuple):
    """Why a kernel cannot be written, and where."""

    op: Operation
    words: str


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


class CommonLoops:
    """Loops by numbers, alike for all operations: those along which results lie, then those that
    are reduced. Each operation has all of them, or the first ones.
    """

    def __init__(self, work: Sequence[LinalgStructuredOperation]):
        self._work = work
        self._parents: dict[tuple[int, int], tuple[int, int]] = {}
        self._join()
        widest = max(range(len(work)), key=lambda at: (_loops(work[at]), not _reduced(work[at])))
        reduced = {self._root((at, loop)) for at, op in enumerate(work) for loop in _reduced(op)}
        order = [self._root((widest, loop)) for loop in _in_order(work[widest])]
        order.sort(key=lambda node: node in reduced)
        self._numbers = {node: number for number, node in enumerate(order)}
        self.count = len(self._numbers)
        self.reduced = tuple(n for node, n in self._numbers.items() if node in reduced)
        """Those that are reduced, the last ones."""
        self.of_operand: dict[SSAValue, tuple[int, ...]] = {}
        """The loop of each dimension of memory."""
        self.whole: dict[LinalgStructuredOperation, bool] = {}
        """Whether an operation has all loops."""
        if not self.count:
            raise NoKernelError(work[-1], f"{work[-1].name} has no loops; compute with numbers")
        if not reduced <= self._numbers.keys():
            raise NoKernelError(work[widest], f"{work[widest].name} has no loop that is reduced")
        self._place()

    def _root(self, node: tuple[int, int]) -> tuple[int, int]:
        while (parent := self._parents.get(node, node)) != node:
            node = parent
        return node

    def _join(self) -> None:
        first: dict[tuple[SSAValue, int], tuple[int, int]] = {}
        for at, op in enumerate(self._work):
            for value, map_ in zip(op.operands, maps_of(op), strict=True):
                for dim, expression in enumerate(map_.results):
                    if not isinstance(expression, AffineDimExpr):
                        raise NoKernelError(
                            op,
                            f"{op.name} reads or writes at {expression}, which is no loop",
                        )
                    node = self._root((at, expression.position))
                    other = self._root(first.setdefault((value, dim), node))
                    if other != node:
                        self._parents[node] = other

    def _place(self) -> None:
        kept = self.count - len(self.reduced)
        for at, op in enumerate(self._work):
            found = [self._numbers.get(self._root((at, d))) for d in range(_loops(op))]
            numbers = {number for number in found if number is not None}
            self.whole[op] = len(numbers) == self.count
            alike = len(numbers) == len(found) and numbers in (
                set(range(self.count)),
                set(range(kept)),
            )
            if not alike:
                raise NoKernelError(
                    op,
                    f"{op.name} has other loops than {self._work[-1].name}, which ends the kernel: "
                    "one writes elements that the other has at other places",
                )
            gone = {found[loop] for loop in _reduced(op)}
            if gone and gone != set(self.reduced):
                raise NoKernelError(op, f"{op.name} reduces other loops than those before it")
            for value, map_ in zip(op.operands, maps_of(op), strict=True):
                dims = [e.position for e in map_.results if isinstance(e, AffineDimExpr)]
                loops = tuple(number for d in dims if (number := found[d]) is not None)
                if len(set(loops)) < len(loops):
                    raise NoKernelError(op, f"{op.name} reads a diagonal")
                if is_memref(value.type) and self.of_operand.setdefault(value, loops) != loops:
                    raise NoKernelError(op, f"{op.name} reads a buffer in another order, too")
            for value in op.outputs:
                wanted = kept if gone or not self.whole[op] else self.count
                if sorted(self.of_operand[value]) != list(range(wanted)):
                    raise NoKernelError(
                        op, f"{op.name} does not write all of its loops, each at its own place"
                    )

    def axes(self, memories: Sequence[SSAValue]) -> list[Axis]:
        """The loops, those taken together that lie behind each other in all of these memories."""
        found: list[list[int]] = []
        for loop in range(self.count):
            together = (
                found
                and (loop in self.reduced) == (found[-1][-1] in self.reduced)
                and all(self._follows(memory, found[-1][-1], loop) for memory in memories)
            )
            if together:
                found[-1].append(loop)
            else:
                found.append([loop])
        return [tuple(axis) for axis in found]

    def _follows(self, memory: SSAValue, first: int, second: int) -> bool:
        """Whether memory has a loop right behind another, or neither of them."""
        loops = self.of_operand[memory]
        if first not in loops and second not in loops:
            return True
        if first not in loops or second not in loops:
            return False
        plain = isinstance(memref_type(memory.type).layout, NoneAttr)
        return plain and loops.index(second) == loops.index(first) + 1


def _loops(op: LinalgStructuredOperation) -> int:
    return maps_of(op)[0].num_dims


def _reduced(op: LinalgStructuredOperation) -> list[int]:
    """The loops that an output does not have."""
    kept = {e.position for e in maps_of(op)[-1].results if isinstance(e, AffineDimExpr)}
    return [loop for loop in range(_loops(op)) if loop not in kept]


def _in_order(op: LinalgStructuredOperation) -> list[int]:
    """Its loops as its output has them, or the first input that has all; then the others."""
    maps = maps_of(op)
    found = [[e.position for e in m.results if isinstance(e, AffineDimExpr)] for m in maps]
    whole = next((dims for dims in (found[-1], *found) if len(dims) == _loops(op)), found[-1])
    return list(dict.fromkeys([*whole, *range(_loops(op))]))
