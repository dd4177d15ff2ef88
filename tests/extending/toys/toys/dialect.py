"""The dialect `toy`."""

from xdsl.ir import Dialect

from . import attached as attached  # what toy.negated means
from .mistakes import WrongOp
from .others import NegatedOp
from .right import ApplyOp, DoubleOp, RowSumOp, ScribbleOp, SettledOp, ThreadsOp, TransposeOp

TOY = Dialect(
    "toy",
    [
        ApplyOp,
        DoubleOp,
        NegatedOp,
        RowSumOp,
        ScribbleOp,
        SettledOp,
        ThreadsOp,
        TransposeOp,
        WrongOp,
    ],
)
