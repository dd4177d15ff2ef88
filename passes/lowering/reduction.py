"""Combines the elements along a dimension: within lanes, between lanes, between warps.

What one lane has of all rows is one vector for every step along the dimension, so that 16-bit
elements are combined two at a time. Warps tell each other their parts by a conversion
(`fragir.passes.lowering.convert`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import element_name, is_predicate
from fragir.dialects.frag.combinations import COMBINATIONS, FLOATS, PLACES
from fragir.dialects.frag.types import tile_of
from fragir.layout.reduction import by_warps, gathered, spread
from fragir.passes.lowering.access import split
from fragir.passes.lowering.elementwise import cast_op
from fragir.passes.lowering.lane_builder import REGISTER, Lanes

#: For each row that a lane has: its elements, or elements and places, one vector each.
Part: TypeAlias = tuple[SSAValue, ...]

_OPERATIONS: dict[str, Any] = {op.name: op for op in arith.Arith.operations}


class Reduction:
    """One `frag.reduce`, as one lane does it."""

    def __init__(self, lanes: Lanes, op: frag.ReduceOp):
        self.lanes, self.op = lanes, op
        self.ar = lanes.arithmetic
        self.tile = tile_of(op.source)
        self.kind = op.kind.data
        self.element = element_name(self.tile.element_type)
        self.places = self.kind in PLACES

    def run(self) -> list[SSAValue]:
        """The values of the rows that this lane holds, in the order of the reduced layout."""
        tile, elements = self.tile, self.lanes.elements(self.op.source)
        layout = tile.resolve()
        name = layout.dims[self.op.along]
        held = spread(layout, name)
        if held is None:  # every lane gets whole rows
            whole = tile.with_layout(frag.ExplicitLayoutAttr(gathered(layout, name)))
            elements = self.lanes.convert(tile, whole, elements)
            tile, layout = whole, whole.resolve()
            held = spread(layout, name)
            assert held is not None
        part = self._tree(self._parts(tile, elements), in_order=True)
        for mask in held.masks:
            part = self._combined(part, tuple(self._exchanged(x, mask) for x in part))
        if held.warps > 1:
            part = self._tree(self._of_warps(tile, part, held.warps))
        return split(self.ar, part[-1], 1)

    # --- parts --------------------------------------------------------------------------------

    def _parts(self, tile: frag.TileType, elements: Sequence[SSAValue]) -> list[Part]:
        """What this lane has of every row, in the order of the dimension."""
        along = self.op.along
        columns: list[Sequence[SSAValue]] = [elements]
        if self.places:
            columns.append(self.lanes.places(tile, along))
        rows: dict[tuple[int, ...], list[tuple[int, int]]] = {}
        for number, point in enumerate(self.lanes.points_of(tile)):
            row = point[:along] + point[along + 1 :]
            rows.setdefault(row, []).append((point[along], number))
        ordered = [[number for _, number in sorted(row)] for row in rows.values()]
        return [
            tuple(self._vector([column[row[step]] for row in ordered]) for column in columns)
            for step in range(len(ordered[0]))
        ]

    def _of_warps(self, tile: frag.TileType, part: Part, count: int) -> list[Part]:
        """The parts that warps have of this lane's rows."""
        layout = tile.resolve()
        along = self.op.along
        shape = (count, *tile.shape[:along], *tile.shape[along + 1 :])
        own, every = map(frag.ExplicitLayoutAttr, by_warps(layout, layout.dims[along]))
        columns: list[list[SSAValue]] = []
        for vector in part:
            element = ptx.scalar_type(vector.type)
            mine, all_ = (frag.TileType(shape, element, attribute) for attribute in (own, every))
            columns.append(self.lanes.convert(mine, all_, split(self.ar, vector, 1)))
        rows = len(columns[0]) // count
        return [
            tuple(self._vector(column[first : first + rows]) for column in columns)
            for first in range(0, rows * count, rows)
        ]

    def _vector(self, scalars: Sequence[SSAValue]) -> SSAValue:
        return self.lanes.insert(ptx.PackOp(scalars)).result

    # --- combining ----------------------------------------------------------------------------

    def _tree(self, parts: Sequence[Part], *, in_order: bool = False) -> Part:
        """All of them combined, neighbours first."""
        level = list(parts)
        while len(level) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            rest = level[-1:] if len(level) % 2 else []
            level = [self._combined(*pair, in_order=in_order) for pair in pairs] + rest
        return level[0]

    def _combined(self, first: Part, second: Part, *, in_order: bool = False) -> Part:
        """Two of them; `in_order` says that the places of the first are before the second's."""
        if self.places:
            return self._better(first, second, in_order)
        name = COMBINATIONS[self.kind].operation(self.element)
        assert name is not None
        (x,), (y,) = first, second
        return (self.lanes.insert(_OPERATIONS[name](x, y)).results[0],)

    def _better(self, first: Part, second: Part, in_order: bool) -> Part:
        """The larger or smaller of two elements and its place; of equals that of the first."""
        (x, at), (y, there) = first, second
        way = "gt" if self.kind == "argmax" else "lt"
        if self.element in FLOATS:
            # a NaN is better than any number
            number = self._compare("ord", x, x)
            better = self._both(self._compare(f"u{way}", y, x), number)
            equal = self._compare("ueq", y, x)
            if not in_order:
                # unordered are equal if both are NaN: x is a number, and better was right, or not
                equal = self._both(equal, self._same(number, self._compare("ord", y, y)))
        else:
            better = self._compare(("u" if self.element == "u32" else "s") + way, y, x)
            equal = self._compare("eq", y, x)
        if not in_order:
            earlier = self._both(equal, self._compare("slt", there, at))
            better = self.lanes.insert(arith.OrIOp(better, earlier)).result
        chosen = (
            self.lanes.insert(ptx.SelectOp(better, theirs, ours)).result
            for theirs, ours in zip(second, first, strict=True)
        )
        return tuple(chosen)

    def _compare(self, how: str, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.lanes.insert(ptx.CompareOp(how, x, y)).result

    def _both(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.lanes.insert(arith.AndIOp(x, y)).result

    def _same(self, x: SSAValue, y: SSAValue) -> SSAValue:
        """Where both hold, or neither."""
        differ = self.lanes.insert(arith.XOrIOp(x, y)).result
        every = self.ar.splat(self._true(), ptx.length(x.type))
        return self.lanes.insert(arith.XOrIOp(differ, every)).result

    def _true(self) -> SSAValue:
        return self.ar.pure(("true",), (), lambda: arith.ConstantOp.from_int_and_width(1, 1))

    def _exchanged(self, vector: SSAValue, mask: int) -> SSAValue:
        """The vector that another lane has."""
        lanes, type_ = self.lanes, ptx.scalar_type(vector.type)
        if is_predicate(type_):  # as numbers
            moved = lanes.shuffle_xor(cast_op(self.ar, vector, type_, i32), mask)
            return self._compare("ne", moved, self.ar.zero(moved.type))
        width, count = ptx.bits(type_), ptx.length(vector.type)
        if count * width % REGISTER == 0:
            return lanes.shuffle_xor(vector, mask)
        scalars = split(self.ar, vector, 1)
        filled = self._vector([*scalars, scalars[-1]])
        moved = split(self.ar, lanes.shuffle_xor(filled, mask), 1)
        return self._vector(moved[:count])
