"""Products that are too small for their warps: what is said of them."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.ir import Operation

from fragir.dialects import frag
from fragir.isa.tiling import sharing

PRODUCTS = ("frag.mma", "frag.mma_sparse", "frag.wgmma")


def idle_warps(operations: Iterable[Operation]) -> list[str]:
    """Placed products that are too small for their warps."""
    return [words for op in operations if op.name in PRODUCTS for words in _idle(op)]


def _idle(op: Operation) -> list[str]:
    tile = frag.tile_of(op.results[-1])
    placement = tile.placement
    if not isinstance(placement, frag.MmaLayoutAttr) or tile.products > 1:
        return []
    fragment = placement.data
    m, n, _ = fragment.mnk
    (over_m, over_n), unit = fragment.warps, "warpgroups" if fragment.is_wgmma else "warps"
    busy = sharing(over_m, tile.rows // m) * sharing(over_n, tile.cols // n)
    if busy == over_m * over_n:
        return []
    return [
        f"{op.name} of {tile.rows}x{tile.cols} is shared by {busy} of {over_m * over_n} {unit}, "
        "the others compute the same; a larger tile, or fewer of them, costs less"
    ]
