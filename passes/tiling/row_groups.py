"""Which tiles groups of rows have: where they end, memory says when the kernel runs."""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, SSAValue

from fragir.passes.tiling.indices import INDEX, Indices, Number


class RowGroups:
    """The groups of a loop over tiles, each of them cut into bands of so many rows."""

    def __init__(self, at: Indices, ends: SSAValue, rows: int):
        self._ends, self._rows = ends, rows
        self._first, self._one = at.value(0), at.value(1)
        self._count = at.insert(memref.DimOp(ends, self._first), "groups")

    def _bands(self, at: Indices, group: SSAValue, start: SSAValue) -> tuple[SSAValue, Number]:
        """Where a group ends that begins at `start`, and how many bands it has."""
        given = at.insert(memref.LoadOp.get(self._ends, [group]))
        end = at.insert(arith.IndexCastOp(given, INDEX), "end")
        size = at.insert(arith.MaxSIOp(at.insert(arith.SubiOp(end, start)), at.value(0)))
        return end, at.ceil(size, self._rows)

    def bands(self, at: Indices) -> SSAValue:
        """How many there are of all groups."""
        body = Block(arg_types=[INDEX, INDEX, INDEX])
        group, bands, start = body.args
        inside = Indices.at_end(body, at)
        end, count = self._bands(inside, group, start)
        inside.insert_op(scf.YieldOp(inside.value(inside.add(bands, count)), end))
        zero = self._first
        loop = scf.ForOp(zero, self._count, self._one, [zero, zero], body)
        at.insert_op(loop)
        loop.results[0].name_hint = "bands"
        return loop.results[0]

    def place(self, at: Indices, band: Number) -> tuple[SSAValue, SSAValue, SSAValue]:
        """The first row of the n-th band, its group, and where that ends."""
        body = Block(arg_types=[INDEX] * 6)
        each, before, start, row, group, end = body.args
        inside = Indices.at_end(body, at)
        own_end, count = self._bands(inside, each, start)
        number = inside.value(inside.sub(band, before))  # beyond all bands if it is negative
        here = inside.below(number, count)
        own_row = inside.add(start, inside.mul(number, self._rows))
        inside.insert_op(
            scf.YieldOp(
                inside.value(inside.add(before, count)),
                own_end,
                inside.select(here, own_row, row),
                inside.select(here, each, group),
                inside.select(here, own_end, end),
            )
        )
        zero = self._first
        loop = scf.ForOp(zero, self._count, self._one, [zero] * 5, body)
        at.insert_op(loop)
        _, _, row, group, end = loop.results
        for value, name in ((row, "row"), (group, "group"), (end, "end")):
            value.name_hint = name
        return row, group, end
