"""Lane-level code from Python: the method `lanes` of a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from fragir.builder.tiles import Placement, TileOperations
from fragir.builder.values import Tile

Result: TypeAlias = tuple[Sequence[int], Placement]


class LaneOperations(TileOperations):
    """Tiles as the registers of lanes."""

    def lanes(
        self,
        function: Callable[..., Any],
        /,
        *tiles: Tile,
        layouts: Placement | Sequence[Placement | None] | None = None,
        results: Result | Sequence[Result] | None = None,
    ) -> Any:
        """Code that every lane runs on its elements of tiles: `k.lanes(function, x, y, ...)`.

            def rotated(lane, x):
                return lane.shuffle(x, (lane.lane + 1) % 32)

            y = k.lanes(rotated, x, layouts=fragir.fragment("m16n8k16.f16", "c"))

        The function is called once, with the `Lane` and the registers of each tile. It returns this
        lane's elements of the new tile, in the order of its layout: registers, or a list of
        scalars; a tuple of such for several tiles, None for none. `layouts` are those in which the
        tiles are held, one for all or one each (None: the one that the tile was made in). The new
        tiles have shape and layout of the first one, unless `results` says `(shape, layout)`, or
        several.
        """
        from fragir.builder.lane_code import lane_code  # few kernels need it

        return lane_code(self.trace, function, tiles, layouts, results)
