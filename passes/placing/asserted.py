"""`frag.convert ... assert_free`: conversions that must take no instruction."""

from __future__ import annotations

from fragir.diagnostics import fail
from fragir.dialects import frag
from fragir.errors import FragirError


def check_free(op: frag.ConvertOp, target: str) -> None:
    """Fails where a conversion is not free, with what it costs."""
    from fragir.isa.features import features_of
    from fragir.passes.placing.prices import Prices

    source, wanted = op.source.type, op.result.type
    assert isinstance(source, frag.TileType)
    assert isinstance(wanted, frag.TileType)
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
            f"{price.cost:g} half cycles a warp, from {source.layout} to {wanted.layout}",
        )
