"""The meaning of operations that count elements otherwise: those of numpy, and exact."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from fragir.dialects import frag
from fragir.reference.bounded import Bounded
from fragir.reference.formats import Array
from fragir.reference.run import Run


def _counted(
    run: Run, result: SSAValue, source: SSAValue, function: Callable[[Array], Array]
) -> None:
    """A result's values and bounds, which are the source's."""
    x = run[source]
    run[result] = Bounded(function(x.value), function(x.bound))


def _together(
    run: Run,
    result: SSAValue,
    sources: tuple[SSAValue, SSAValue],
    function: Callable[[list[Any]], Array],
) -> None:
    """The same of two sources."""
    first, second = (run[source] for source in sources)
    value = function([first.value, second.value])
    run[result] = Bounded(value, function([first.bound, second.bound]))


def transpose(run: Run, op: frag.TransposeOp) -> None:
    _counted(run, op.result, op.source, lambda x: np.transpose(x, op.order))


def reshape(run: Run, op: frag.ReshapeOp) -> None:
    shape = op.result.type.shape
    _counted(run, op.result, op.source, lambda x: np.reshape(x, shape))


def slice_(run: Run, op: frag.SliceTileOp) -> None:
    parts = tuple(slice(c.start, c.start + c.length * c.step, c.step) for c in op.cutouts)
    _counted(run, op.result, op.source, lambda x: x[parts])


def concat(run: Run, op: frag.ConcatenateOp) -> None:
    dim = op.along
    _together(run, op.result, (op.first, op.second), lambda parts: np.concatenate(parts, dim))


def split(run: Run, op: frag.SplitOp) -> None:
    _counted(run, op.first, op.source, lambda x: x[..., 0])
    _counted(run, op.second, op.source, lambda x: x[..., 1])


def join(run: Run, op: frag.JoinOp) -> None:
    _together(run, op.result, (op.first, op.second), lambda parts: np.stack(parts, -1))
