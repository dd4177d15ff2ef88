"""Print and assert: a printf of the device for each element, by one of those who hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FileLineColLoc, IntegerAttr, f32, f64, i1, i32
from xdsl.ir import Attribute, Block, Region, SSAValue

from fragir.dialects import frag, ptx
from fragir.dialects.elements import is_predicate
from fragir.dialects.frag.reporting import FORMATS, Reporting, kind_of
from fragir.errors import FragirError
from fragir.layout import Layout
from fragir.layout.modes import LayoutError
from fragir.layout.replicas import Holders, single_holders
from fragir.passes.lowering.arithmetic import INDEX, Predicate, Value
from fragir.passes.lowering.elementwise import cast_op
from fragir.passes.lowering.lane_builder import Lanes
from fragir.passes.lowering.tile_access import split


def print_(lanes: Lanes, op: frag.PrintOp) -> None:
    lines = Lines(lanes, op, op.text.data)
    for element in range(lines.count):
        lines.tell(element, lines.spoken_for(element))


def assert_(lanes: Lanes, op: frag.AssertOp) -> None:
    """One branch around all that is printed, and the end: what holds takes a few predicates."""
    ar, file, number = lanes.state.ar, *_place(op)
    lines = Lines(lanes, op, op.text.data)
    holds = ar.literal(IntegerAttr(1, i1))
    failing: list[tuple[int, SSAValue]] = []
    for element, condition in enumerate(lines.elements(op.condition)):
        spoken = lines.spoken_for(element)
        if spoken is False:
            continue
        fails = ar.insert(arith.XOrIOp(condition, holds)).result
        failing.append((element, fails if spoken is True else _and(lanes, fails, spoken)))
    if not failing:
        return
    _, any_fails = failing[0]
    for _, fails in failing[1:]:
        any_fails = ar.insert(arith.OrIOp(any_fails, fails)).result
    block = Block()
    with ar.inside(block):
        for element, fails in failing:
            lines.tell(element, fails)
        ar.insert(ptx.AssertFailOp(op.text.data, file, number))
        ar.insert(scf.YieldOp())
    ar.insert(scf.IfOp(any_fails, [], Region(block)))


def _and(lanes: Lanes, p: SSAValue, q: SSAValue) -> SSAValue:
    return lanes.state.ar.insert(arith.AndIOp(p, q)).result


def _place(op: frag.AssertOp) -> tuple[str, int]:
    """Where the operation stands in the user's program."""
    place = op.location
    if isinstance(place, FileLineColLoc):
        return place.filename.data, place.line.data
    return "<unknown>", 0


class Lines:
    """What an operation prints of each element that a lane holds."""

    def __init__(self, lanes: Lanes, op: Reporting, text: str):
        self.lanes, self.ar, self.hardware = lanes, lanes.state.ar, lanes.state.hardware
        tiles = op.tiles()
        self.layout: Layout | None = frag.tile_of(tiles[0]).resolve() if tiles else None
        self.holders = Holders() if self.layout is None else _holders(self.layout, lanes.threads)
        self.reported = op.reported()
        parts = [text.replace("%", "%%")]
        if self.layout is not None:
            parts.append(f"[{', '.join(['%d'] * len(self.layout.dims))}]")
        if self.reported:
            kinds = [FORMATS[kind_of(value.type)] for value in self.reported]
            parts.append(f" = {', '.join(kinds)}")
        self.format = "".join((*parts, " (block %d, %d, %d)\n"))

    @cached_property
    def values(self) -> list[Sequence[SSAValue]]:
        """What is printed, as printf takes it; made where the first line is printed."""
        return [self._printable(value) for value in self.reported]

    @property
    def count(self) -> int:
        """Elements that a lane holds; one where there is no tile."""
        return 1 if self.layout is None else self.layout.size("element")

    def elements(self, value: SSAValue) -> list[SSAValue]:
        """This lane's elements of a tile, or a scalar."""
        if not isinstance(value.type, frag.TileType):
            return [self.lanes.scalar(value)]
        return [x for part in self.lanes.fragments(value) for x in split(self.ar, part, 1)]

    def spoken_for(self, element: int) -> Predicate:
        """Whether this lane speaks for an element: who else holds it is silent."""
        if self.layout is None:
            return self.ar.compare("eq", self.hardware.thread, 0)
        held = self.hardware.holds(self.layout.where, element)
        return self.ar.both(held, self.hardware.speaks(self.holders, element))

    def tell(self, element: int, condition: Predicate) -> None:
        """Prints the line of an element where a condition holds."""
        if condition is False:
            return
        blocks = [self.hardware.special(f"ctaid.{axis}", "block") for axis in "xyz"]
        values = [v[element] if len(v) > 1 else v[0] for v in self.values]
        operands = [*self._coordinates(element), *values, *blocks]
        self.ar.insert(ptx.PrintfOp(self.format, operands, self.ar.predicate(condition)))

    def _coordinates(self, element: int) -> list[SSAValue]:
        """Where an element stands; computed here, not where a program pays that prints nothing."""
        if self.layout is None:
            return []
        everywhere = replace(self.layout, where=())
        zeros = {axis.name: 0 for axis in everywhere.axes}
        point = everywhere(**{**zeros, "element": element})
        assert point is not None
        found: list[SSAValue] = []
        for dim in range(len(everywhere.dims)):
            offset, constant = self.hardware.place(everywhere, dim, element)
            if not everywhere.exclusive:
                constant = point[dim]
            found.append(self._sum(offset.value, constant))
        return found

    def _sum(self, offset: Value, constant: int) -> SSAValue:
        ar = self.ar
        if isinstance(offset, int) or not constant:
            return ar.value(ar.add(offset, constant))
        number = ar.constant(constant)
        return ar.insert(arith.AddiOp(offset, number)).result

    def _printable(self, value: SSAValue) -> Sequence[SSAValue]:
        """Its elements as printf takes them: f64, or integers of 32 or 64 bits."""
        kind, ar = kind_of(value.type), self.ar
        tile = value.type if isinstance(value.type, frag.TileType) else None
        if tile is not None and not is_predicate(tile.element_type):
            element = tile.element_type
            parts = list(self.lanes.fragments(value))
            for wider in _wider(kind):
                parts = [cast_op(ar, part, element, wider) for part in parts]
                element = wider
            return [x for part in parts for x in split(ar, part, 1)]
        scalars = self.elements(value)
        if kind == "pred":
            return [ar.insert(arith.ExtUIOp(x, i32)).result for x in scalars]
        for wider in _wider(kind):
            scalars = [
                x if x.type in (wider, INDEX) else ar.insert(ptx.CvtOp(x, wider)).result
                for x in scalars
            ]
        return scalars


def _wider(kind: str) -> list[Attribute]:
    """The types by which an element becomes what printf takes."""
    if kind in ("f16", "bf16", "tf32"):
        return [f32, f64]
    if kind in ("f32", "f64"):
        return [f64]
    return [] if kind == "s64" else [i32]


def _holders(layout: Layout, threads: int) -> Holders:
    try:
        return single_holders(layout, threads)
    except LayoutError as error:
        raise FragirError(error.message, hint="convert the tile before") from error
