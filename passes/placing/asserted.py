"""`frag.convert ... assert_free`: conversions that must take no instruction."""

from __future__ import annotations

from xdsl.dialects import func

from fragir.diagnostics import fail
from fragir.dialects import frag
from fragir.errors import FragirError


def check_free(function: func.FuncOp, target: str) -> None:
    """Fails at a conversion that is asserted to be free and is not, with what it costs."""
    for op in function.walk():
        if isinstance(op, frag.ConvertOp) and op.assert_free is not None:
            _check(op, target)


def _check(op: frag.ConvertOp, target: str) -> None:
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
