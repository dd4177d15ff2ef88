"""The loops of an operation: how far they run, and which of them tiles lie along."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fragir.dialects.linalg.hidden_body import dims_of, maps_of
from fragir.dialects.narrow import is_memref, memref_type
from fragir.passes.contraction.views import size_of
from fragir.passes.generics.axes import NoKernelError
from fragir.passes.points.tile_values import Size, ValueBuilder

MOST = 1 << 31
Structured = LinalgStructuredOperation


def written(op: Structured, number: int) -> list[int]:
    """The loops along which an output lies, one a dimension, by the output's number."""
    map_ = maps_of(op)[len(op.inputs) + number]
    dims = dims_of(map_)
    if dims is None or len(set(dims)) < len(dims):
        raise NoKernelError(op, f"{op.name} writes at {_shown(map_)}, where elements may meet")
    return dims


def _shown(map_: AffineMap) -> str:
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
) -> TileLoops:
    """Which loops of a result, as memory has them, make rows and columns of tiles.

    Loops are taken together where the same inputs depend on them (`reads`), and types say how far
    they run. Of a product, rows and columns each have an input of their own; what all inputs depend
    on lies around.
    """
    found = set(reads.values())
    every = frozenset[int]().union(*found) if found else frozenset[int]()
    factors = {one for one in found if one and one != every}
    left = list(loops)
    outer: list[int] = []
    if len(factors) > 1:
        outer = [loop for loop in left if reads[loop] == every]
        left = [loop for loop in left if loop not in outer]
    columns = _group(left, static, reads)
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
