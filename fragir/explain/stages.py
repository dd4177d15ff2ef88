"""Takes a program down after every pass: its text, where each line comes from, what differs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from fragir.compilation.layout_choices import Explanation, explaining
from fragir.dialects import frag
from fragir.explain.drawn import Gallery, conversion_number, layout_types, shown_type
from fragir.explain.report import ConversionShown, StageShown, TileShown, TypeShown
from fragir.explain.texts import PrintedModule, Traces, differences, place_in, print_module
from fragir.passes.frag_place import FragPlacePass
from fragir.passes.frag_tile import FragTilePass
from fragir.passes.placing.explanation import ConversionExplained
from fragir.passes.placing.placement import owner_of

PLACED = "<before frag-place>"
"""What places are called that count in the program as `frag-place` gets it."""
_AT = re.compile(r" \((\d+):\d+\)")


class Unplaced(NamedTuple):
    """What `frag-place` is given, for an error that names the source."""

    module: ModuleOp
    target: str


class StageRecorder:
    """Goes with a module through its passes."""

    def __init__(
        self, module: ModuleOp, file: str | None, times: dict[str, float], gallery: Gallery
    ) -> None:
        self.stages: list[StageShown] = []
        self.types: dict[str, TypeShown] = {}
        self.tiles: list[TileShown] = []
        self.conversions: list[ConversionShown] = []
        self.applied: list[ModulePass] = []
        self.doing = ""
        """The pass that has begun and not ended."""
        self.unplaced: Unplaced | None = None
        self.last: PrintedModule = PrintedModule((), ())
        self._module, self._file, self._times = module, file, times
        self._gallery, self._traces = gallery, Traces()
        self._told: list[Explanation] = []

    def begin(self, ms: float) -> None:
        """Takes down the program as it was read."""
        self._take("parse", ms, ())

    def steps(self, passes: Iterable[ModulePass]) -> Iterator[ModulePass]:
        """The same passes; the module is taken down after each."""
        for one in passes:
            self.doing, notes = one.name, list[str]()
            if isinstance(one, FragTilePass):
                notes = self._schedules(one.target)
            before = self._times.get(one.name, 0.0)
            if type(one) is FragPlacePass:
                self.unplaced = Unplaced(self._module.clone(), one.target)
                self._traces.relocate(self.last, PLACED)
                yield next(explaining([one], self._told))
            else:
                yield one
            ms = self._times.get(one.name, 0.0) - before
            told = (words for one in self._told for words in _totals(one))
            self._take(one.name, ms, (*notes, *told))
            self.applied.append(one)
            self.doing, self.unplaced, self._told = "", None, []

    def _take(self, name: str, ms: float, notes: tuple[str, ...]) -> None:
        now = print_module(self._module)
        count = len(now.lines)
        came_from, source = [0] * count, [0] * count
        known: dict[Operation | None, int] = {}
        for op, line, _ in now.places:
            around = op.parent_op()
            inherited = 0 if isinstance(around, func.FuncOp | ModuleOp) else known.get(around, 0)
            # what a pass makes without a place, as the end of a loop, is of what stands around it
            known[op] = self._traces.line(op) or inherited
            came_from[line - 1] = came_from[line - 1] or known[op]
        self._explain(now)
        self._traces.restore(self._module)
        earlier = self.stages[-1].source if self.stages else ()
        for op, line, _ in now.first_of_lines():
            came = came_from[line - 1]
            source[line - 1] = place_in(op, self._file) or (earlier[came - 1] if came else 0)
        found = differences(self.last.lines, now.lines) if self.stages else ()
        for type_ in layout_types(self._module):
            text = str(type_)
            if text not in self.types:
                self.types[text] = shown_type(type_, self._gallery)
        self.stages.append(
            StageShown(name, ms, now.lines, tuple(came_from), tuple(source), found, notes)
        )
        self.last = now
        self._traces.mark(now)

    def _schedules(self, target: str) -> list[str]:
        """What `frag-tile` will do with each product."""
        from fragir.errors import FragirError
        from fragir.passes.tiling.explained import explain_schedules

        try:
            return [str(one) for one in explain_schedules(self._module, target)]
        except FragirError:  # the pass itself will say so
            return []

    # --- layouts --------------------------------------------------------------------------------

    def _explain(self, now: PrintedModule) -> None:
        """Tiles and conversions of what `frag-place` told, at their lines of this stage."""
        if not self._told:
            return
        lines: dict[int, list[int]] = {}
        converted: list[tuple[int, frag.ConvertOp]] = []
        for op, line, _ in now.places:
            if (came := self._traces.line(op)) and not isinstance(op, frag.ConvertOp):
                lines.setdefault(came, []).append(line)
            if isinstance(op, frag.ConvertOp):
                converted.append((line, op))
        stage = len(self.stages)
        for told in self._told:
            for tile in told.tiles:
                at = _lines_in(f" ({tile.place})")
                line = lines.get(at[0], [0])[0] if at else 0
                asked, where = _asker(tile.asked_by)
                self.tiles.append(TileShown(tile.name, stage, line, tile.layout, asked, where))
        prices = [one for told in self._told for one in told.conversions]
        for line, op in converted:
            self.conversions.append(self._conversion(stage, line, op, prices))

    def _conversion(
        self, stage: int, line: int, op: frag.ConvertOp, prices: list[ConversionExplained]
    ) -> ConversionShown:
        source, target = op.source.type, op.result.type
        assert isinstance(source, frag.TileType)
        assert isinstance(target, frag.TileType)
        layouts = str(source.placement), str(target.placement)
        name = f"%{op.source.name_hint}" if op.source.name_hint else f"a {source}"
        made = str(self._traces.line(owner_of(op.source)))
        alike = [one for one in prices if (one.source, one.target) == layouts]
        own = [one for one in alike if one.place.partition(":")[0] == made] or alike
        price = own[0] if own else None
        asked, where = _asker(price.asked_by) if price else ("", ())
        return ConversionShown(
            stage,
            line,
            price.name if price else name,
            *layouts,
            price.cost if price else 0.0,
            price.trips if price else 1.0,
            price.steps if price else "",
            asked,
            where,
            price.total_without if price else None,
            conversion_number(source, target, self._gallery),
        )


def _totals(told: Explanation) -> Iterator[str]:
    """What all layouts cost together; memory of which rows are wanted in another order."""
    proof = "" if told.least else ", not proved to be the least"
    count = len(told.conversions)
    kinds = f"{count} conversion{'' if count == 1 else 's'}"
    yield (
        f"{told.function}: {len(told.tiles)} tiles, {kinds}; all layouts together cost "
        f"{told.total:g} half cycles a warp{proof}"
    )
    for memory in told.memories:
        lies = f"rows as they are: {memory.kept}" if memory.kept else "in this order"
        asked = _AT.sub(r" (line \1)", memory.asked_by)
        yield f"{memory.name}: rows in the order {memory.rows} for {asked}; it lies {lies}"


def _asker(words: str) -> tuple[str, tuple[int, ...]]:
    """Who asked, without places, and the lines of the stage before that the places are."""
    return _AT.sub("", words), _lines_in(words)


def _lines_in(words: str) -> tuple[int, ...]:
    return tuple(int(found[1]) for found in _AT.finditer(words))
