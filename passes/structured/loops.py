"""The loops of operations: those they have in common, how far they run, which tiles lie along.

Loops of operations are one where both index the same dimension of a buffer. Loops that lie behind
each other in every operand are taken as one, so that tiles are as long as memory allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import NoneAttr
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fragir.dialects.linalg.generic_text import dims_of, maps_of
from fragir.dialects.shorthands import is_memref, memref_type
from fragir.passes.structured.bodies import NoKernelError
from fragir.passes.structured.memory import size_of
from fragir.passes.structured.values import Size, ValueBuilder

Structured = LinalgStructuredOperation
Axis = tuple[int, ...]
"""Loops, in the order in which memory has them, that are counted as one."""


class CommonLoops:
    """Loops by numbers, alike for all operations: those along which results lie, then those that
    are reduced. Each operation has all of them, or the first ones.
    """

    def __init__(self, work: Sequence[Structured]):
        self._work = work
        self._parents: dict[tuple[int, int], tuple[int, int]] = {}
        self._join()
        widest = max(
            range(len(work)), key=lambda at: (_loops(work[at]), not _reduced_loops(work[at]))
        )
        reduced = {
            self._root((at, loop)) for at, op in enumerate(work) for loop in _reduced_loops(op)
        }
        order = [self._root((widest, loop)) for loop in _in_order(work[widest])]
        order.sort(key=lambda node: node in reduced)
        self._numbers = {node: number for number, node in enumerate(order)}
        self.count = len(self._numbers)
        self.reduced = tuple(n for node, n in self._numbers.items() if node in reduced)
        """Those that are reduced, the last ones."""
        self.of_operand: dict[SSAValue, tuple[int, ...]] = {}
        """The loop of each dimension of memory."""
        self.whole: dict[Structured, bool] = {}
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
            gone = {found[loop] for loop in _reduced_loops(op)}
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


def _loops(op: Structured) -> int:
    return maps_of(op)[0].num_dims


def _reduced_loops(op: Structured) -> list[int]:
    """The loops that an output does not have."""
    kept = {e.position for e in maps_of(op)[-1].results if isinstance(e, AffineDimExpr)}
    return [loop for loop in range(_loops(op)) if loop not in kept]


def _in_order(op: Structured) -> list[int]:
    """Its loops as its output has them, or the first input that has all; then the others."""
    maps = maps_of(op)
    found = [[e.position for e in m.results if isinstance(e, AffineDimExpr)] for m in maps]
    whole = next((dims for dims in (found[-1], *found) if len(dims) == _loops(op)), found[-1])
    return list(dict.fromkeys([*whole, *range(_loops(op))]))


MOST = 1 << 31


def require_output_loops(op: Structured, number: int) -> list[int]:
    """The loops along which an output lies, one a dimension, by the output's number."""
    map_ = maps_of(op)[len(op.inputs) + number]
    dims = dims_of(map_)
    if dims is None or len(set(dims)) < len(dims):
        raise NoKernelError(op, f"{op.name} writes at {_map_text(map_)}, where elements may meet")
    return dims


def _map_text(map_: AffineMap) -> str:
    return f"({', '.join(map(str, map_.results))})"


class LoopExtents:
    """How far the loops of an operation run, as its operands' sizes say."""

    def __init__(self, op: Structured):
        self._op = op
        self._told: dict[int, list[tuple[SSAValue, int]]] = {}
        for value, map_ in zip(op.operands, maps_of(op), strict=True):
            if not is_memref(value.type):
                continue
            for dim, expression in enumerate(map_.results):
                if isinstance(expression, AffineDimExpr):
                    self._told.setdefault(expression.position, []).append((value, dim))

    def static(self, loop: int) -> int | None:
        """A size that a type says."""
        sizes = [memref_type(m.type).get_shape()[dim] for m, dim in self._told.get(loop, ())]
        return next((size for size in sizes if size >= 0), None)

    def size(self, loop: int, build: ValueBuilder) -> Size:
        """A number, or a size of memory, rather of an argument's."""
        found = self.static(loop)
        if found is not None:
            return found
        told = self._told.get(loop)
        if not told:
            raise NoKernelError(
                self._op, f"{self._op.name}: no operand says how far its loop d{loop} runs"
            )
        for memory, dim in told:
            if isinstance(memory, BlockArgument):
                return build.dim(memory, dim)
        memory, dim = told[0]
        return size_of(memory, dim, build.put)


class TileLoops(NamedTuple):
    """The loops of a result: those that tiles lie along, and those around them."""

    outer: tuple[int, ...]
    rows: tuple[int, ...]
    columns: tuple[int, ...]


Reads = frozenset[int]


def tile_loops(
    loops: Sequence[int],
    static: Mapping[int, int | None],
    reads: Mapping[int, Reads],
    columns_only: bool = False,
    most: int | None = None,
) -> TileLoops:
    """Which loops of a result, as memory has them, make rows and columns of tiles.

    Loops are taken together where the same inputs depend on them (`reads`), and types say how far
    they run, `most` of them for columns. Of a product, rows and columns each have an input of their
    own; what all inputs depend on lies around.
    """
    found = set(reads.values())
    every = frozenset[int]().union(*found) if found else frozenset[int]()
    factors = {one for one in found if one and one != every}
    left = list(loops)
    outer: list[int] = []
    if len(factors) > 1:
        outer = [loop for loop in left if reads[loop] == every]
        left = [loop for loop in left if loop not in outer]
    columns = _group(left if most is None else left[len(left) - most :], static, reads)
    left = left[: len(left) - len(columns)]
    able = left
    if len(factors) > 1:
        while able and reads[able[-1]] == reads[columns[0]]:
            able = able[:-1]
    rows = () if columns_only else _group(able, static, reads)
    left = [loop for loop in left if loop not in rows]
    order = [loop for loop in loops if loop in (*outer, *left)]
    return TileLoops(tuple(order), rows, columns)


def _group(
    loops: Sequence[int], static: Mapping[int, int | None], reads: Mapping[int, Reads]
) -> tuple[int, ...]:
    """The last loops that can be taken together."""
    group: list[int] = []
    total = 1
    for loop in reversed(loops):
        size = static[loop]
        if group and (size is None or reads[loop] != reads[group[-1]] or total * size >= MOST):
            break
        group.append(loop)
        if size is None:
            break
        total *= size
    return tuple(reversed(group))


def tile_size(total: Size, most: int, least: int = 1) -> int:
    """A power of two for an axis."""
    if not isinstance(total, int):
        return most
    return max(least, min(most, 1 << max(0, total - 1).bit_length()))
