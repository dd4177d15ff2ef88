"""The meaning of `linalg.softmax`."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import TensorType

from fragir.dialects.linalg.softmax import SoftmaxOp
from fragir.reference import approximated, elementwise
from fragir.reference.bounded import Bounded
from fragir.reference.element_types import type_name
from fragir.reference.formats import FLOATS
from fragir.reference.memory import BoundedMemory
from fragir.reference.reductions import one_by_one, total
from fragir.reference.run import Run


def softmax(run: Run, op: SoftmaxOp) -> None:
    """exp(x - max(x)), divided by its sum."""
    along, source = op.dimension.value.data, run[op.input]
    x = Bounded(np.moveaxis(source.value, along, 0), np.moveaxis(source.bound, along, 0))
    found = x
    if x.value.size:
        form = FLOATS[type_name(op.input.type)]
        binary = elementwise.BINARY
        most = one_by_one(x, "max", form.name)
        powers = approximated.APPROXIMATED["math.exp"](binary["arith.subf"](x, most, form), form)
        found = binary["arith.divf"](powers, total(powers, form), form)
    result = Bounded(np.moveaxis(found.value, 0, along), np.moveaxis(found.bound, 0, along))
    if isinstance(op.output.type, TensorType):
        run[op.result[0]] = result
        return
    home = run.values[op.output]
    assert isinstance(home, BoundedMemory)
    home.write(result)
