"""What fragir must know of an operation that cannot inherit its interfaces."""

from collections.abc import Iterator
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fragir.dialects.interfaces import LAYOUTS, LOWERINGS, MEANINGS, Layouts

from .others import NegatedOp


@LAYOUTS.attach(NegatedOp)
class NegatedLayouts(Layouts):
    def __init__(self, op: NegatedOp):
        self.op = op

    def same_layout(self) -> Iterator[tuple[SSAValue, SSAValue]]:
        yield self.op.source, self.op.result


@LOWERINGS.attach(NegatedOp)
def lower(lanes: Any, op: NegatedOp) -> None:
    elements = lanes.elements(op.source)
    lanes.bind(op.result, [lanes.insert(arith.NegfOp(x)).result for x in elements])


@MEANINGS.attach(NegatedOp)
def evaluate(run: Any, op: NegatedOp) -> None:
    from fragir.reference import Bounded

    x = run[op.source]
    run[op.result] = Bounded(-x.value, x.bound)
