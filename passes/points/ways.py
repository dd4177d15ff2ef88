"""How a kernel computes: which way it reduces, and how large its tiles are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineDimExpr
from xdsl.utils.exceptions import PassFailedException

from fragir.diagnostics import trial
from fragir.dialects.elements import element_bits, element_name
from fragir.dialects.frag.reductions import problem as combination_problem
from fragir.dialects.linalg.hidden_body import maps_of
from fragir.errors import FragirError
from fragir.isa.elements import FLOAT8
from fragir.passes.contraction.product import Body, accumulator
from fragir.passes.generics.combining import combining_of, neutral
from fragir.passes.points.space import LoopExtents, Reads, tile_size
from fragir.passes.points.tile_values import Size

ROWS, COLUMNS, DEPTH = 0, 1, 2
ELEMENTS = 2048
"""Of a tile that others are added to, in registers: sixteen a lane of four warps."""
BLOCKS = 128
"""Tiles become smaller where there are fewer, down to two elements a thread."""
LEAST = 256
DEEPEST = 1024
"""How much of what is reduced a tile has, at most."""
Structured = LinalgStructuredOperation


class SumWay(Enum):
    """How an operation reduces."""

    NONE = "it does not"
    SERIAL = "element after element"
    DEEP = "tiles of elements, and what they sum to at the end"
    TENSOR_CORES = "tensor cores"


def reduced_loops(op: Structured) -> list[int]:
    """The loops that no output has."""
    kept = set[int]().union(*(m.used_dims() for m in maps_of(op)[len(op.inputs) :]))
    return [loop for loop in range(maps_of(op)[0].num_dims) if loop not in kept]


def is_product(reads: Mapping[int, Reads]) -> bool:
    """Whether results lie along loops of one input, and along those of another one."""
    every = frozenset[int]().union(*reads.values())
    return len({one for one in reads.values() if one and one != every}) > 1


def way_of(op: Structured | None, reads: Mapping[int, Reads], target: str) -> SumWay:
    """The way of an operation whose results lie along loops that these inputs depend on."""
    if op is None:
        return SumWay.NONE
    if is_product(reads):
        return SumWay.TENSOR_CORES if multiplied(op, target) is not None else SumWay.SERIAL
    return SumWay.DEEP if can_be_deep(op) and _lies_along(op) else SumWay.SERIAL


def can_be_deep(op: Structured) -> bool:
    """Whether parts of what is reduced can be combined, and there is a number to start from."""
    found = combining_of(op)
    if found is None:
        return False
    element = op.body.block.args[-1].type
    return combination_problem(found.kind, element) is None and (
        neutral(found.kind, element) is not None
    )


def _lies_along(op: Structured) -> bool:
    """Whether neighbours in an input's memory are reduced to one."""
    reduced = set(reduced_loops(op))
    last = [m.results[-1] for m in maps_of(op)[: len(op.inputs)] if m.results]
    return any(
        {e.position for e in x.dfs() if isinstance(e, AffineDimExpr)} & reduced for x in last
    )


def multiplied(op: Structured, target: str) -> tuple[Attribute, Attribute] | None:
    """The element types of a sum of products that tensor cores know; else None."""
    if len(op.inputs) != 2 or len(op.outputs) != 1:
        return None
    try:
        with trial():
            body = Body(op)
            x, y, _ = op.body.block.args
            elements = body.element(x), body.element(y)
            if accumulator(op, body, list(elements)) != body.total:
                return None
    except (FragirError, PassFailedException):
        return None
    narrow = element_name(x.type) in FLOAT8 and int("".join(filter(str.isdigit, target))) < 89
    return None if narrow or elements != (x.type, y.type) else elements


def shape_tiles(
    way: SumWay, op: Structured | None, totals: Mapping[int, Size], depth: Size
) -> dict[int, int]:
    """How many places a tile has along each axis."""
    rows, columns = totals.get(ROWS), totals[COLUMNS]
    if way is SumWay.TENSOR_CORES:
        assert op is not None
        assert rows is not None
        deep = _deep(op)
        return {
            ROWS: tile_size(rows, 64, 32),
            COLUMNS: tile_size(columns, 64, 16),
            DEPTH: tile_size(depth, deep, deep // 2),
        }
    if way is SumWay.DEEP:
        across = tile_size(depth, DEEPEST, 32) if isinstance(depth, int) else 256
        if columns == 1:
            across = tile_size(depth, 2 * ELEMENTS, 128)
        return {COLUMNS: tile_size(columns, max(1, ELEMENTS // across)), DEPTH: across}
    if rows is None:
        return {COLUMNS: _enough(tile_size(columns, ELEMENTS // 2, 32), columns, 128)}
    most = 2 * ELEMENTS if way is SumWay.SERIAL else ELEMENTS
    wide = tile_size(columns, 64)
    high = tile_size(rows, min(256, most // wide))
    wide = tile_size(columns, min(256, most // high))
    while wide * high > LEAST and _tiles(rows, high) * _tiles(columns, wide) < BLOCKS:
        wide, high = (wide // 2, high) if wide > high else (wide, high // 2)
    return {ROWS: high, COLUMNS: wide}


def _deep(op: Structured) -> int:
    """How many products of tensor cores a step of a loop adds."""
    return 512 // max(element_bits(argument.type) for argument in op.body.block.args[:2])


def _enough(tile: int, total: Size, least: int) -> int:
    while tile > least and _tiles(total, tile) < BLOCKS:
        tile //= 2
    return tile


def _tiles(total: Size, tile: int) -> int:
    return -(-total // tile) if isinstance(total, int) else BLOCKS


def deep_loops(op: Structured, way: SumWay) -> int:
    """How many of the last loops that are reduced a tile lies along."""
    extents = LoopExtents(op)
    static = [extents.static(loop) for loop in reduced_loops(op)]
    return together(static, DEEPEST if way is SumWay.DEEP else _deep(op))


def together(static: Sequence[int | None], wanted: int) -> int:
    """How many of the last loops a tile lies along: enough of those of known size, one in any case.

    `static`: how far they run.
    """
    total, count = 1, 0
    for size in reversed(static):
        if count and (size is None or total >= wanted):
            break
        count += 1
        if size is None:
            break
        total *= size
    return count
