"""`frag.convert ... assert_free`: conversions that must take no instruction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fragir.diagnostics import fail
from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.passes.placing.placement import named

if TYPE_CHECKING:
    from fragir.passes.placing.inference import Inference


def check_free(op: frag.ConvertOp, target: str, inference: Inference | None) -> None:
    """Fails where a conversion is not free, with what it costs and which memory might help."""
    from fragir.isa.features import features_of
    from fragir.passes.placing.prices import Prices

    source, wanted = frag.tile_of(op.source), frag.tile_of(op.result)
    try:
        have, want = source.resolve(), wanted.resolve()
    except FragirError as error:
        fail(op, f"frag.convert: {error}")
    prices = Prices(features_of(target))
    prices.settle(have, want, source.element_type)
    price = prices.price(have, want, source.element_type)
    if price.cost:
        fail(
            op,
            f"frag.convert is asserted to be free, but takes {price.words} a thread: "
            f"{price.cost:g} half cycles a warp, from {source.layout} to {wanted.layout}"
            f"{_kept(inference)}",
        )


def _kept(inference: Inference | None) -> str:
    """Memory that might lie otherwise for it, and why it does not."""
    asked = [] if inference is None else [a for c in inference.chosen for a in c.component.rows]
    kept = {site.matrix.root: site.matrix.fixed_by for site, *_ in asked if site.matrix.fixed_by}
    told = (f"the rows of {named(root)} stay in order, as {why}" for root, why in kept.items())
    return "".join(f"; {one}" for one in told)
