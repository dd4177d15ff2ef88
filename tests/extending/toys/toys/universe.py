"""What xDSL's and fragir's tools find here."""

from xdsl.ir import Dialect
from xdsl.universe import Universe


def toy() -> Dialect:
    from .dialect import TOY

    return TOY


UNIVERSE = Universe(all_dialects={"toy": toy})
