"""The dialect `toy`."""

from xdsl.ir import Dialect

from . import attached as attached  # what toy.negated means
from .mistakes import WrongOp
from .others import NegatedOp
from .right import (
    ApplyOp,
    BrevOp,
    DoubleOp,
    ReversedOp,
    RowSumOp,
    ScribbleOp,
    SettledOp,
    SwappedOp,
    ThreadsOp,
    TransposeOp,
)

TOY = Dialect(
    "toy",
    [
        ApplyOp,
        BrevOp,
        DoubleOp,
        NegatedOp,
        ReversedOp,
        RowSumOp,
        ScribbleOp,
        SettledOp,
        SwappedOp,
        ThreadsOp,
        TransposeOp,
        WrongOp,
    ],
)
