"""The meaning of a `frag.matmul`'s scales, and of partial sums that are promoted."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.scaled_sums import Scaling
from fragir.errors import FragirError
from fragir.reference import elementwise
from fragir.reference.bounded import Bounded, exactly
from fragir.reference.formats import FLOATS
from fragir.reference.run import Run

F32 = FLOATS["f32"]


def scaled_sum(
    run: Run,
    op: frag.MatmulOp,
    a: Bounded,
    b: Bounded,
    multiplied: Callable[[Bounded, Bounded], Bounded],
) -> Bounded:
    """A B with scales, of matrices M x K and K x N; `multiplied` is what tensor cores sum.

    A factor is the rounded product of A's scale and B's. Partial sums are added by fma, the factor
    of those scales that do not change along K is multiplied into the whole sum.
    """
    (m, k), n = a.value.shape, b.value.shape[1]
    scalings, promote = op.scalings(), op.promotion()
    if promote is None:
        total = multiplied(a, b)
    else:
        within = [each for each in scalings if each.depth is not None]
        total = exactly(np.zeros((m, n)))
        for start in range(0, k, promote):
            end = start + promote
            partial = multiplied(
                Bounded(a.value[:, start:end], a.bound[:, start:end]),
                Bounded(b.value[start:end], b.bound[start:end]),
            )
            factor = _factor(run, within, m, n, start)
            if factor is None:
                total = elementwise.add(total, partial, F32)
            else:
                total = elementwise.fma(partial, factor, total, F32)
    factor = _factor(run, [each for each in scalings if each.depth is None], m, n, 0)
    return total if factor is None else elementwise.mul(total, factor, F32)


def _factor(run: Run, scalings: Sequence[Scaling], m: int, n: int, k: int) -> Bounded | None:
    """What a sum from k on is multiplied by: M x N; None without scales."""
    found: Bounded | None = None
    for each in scalings:
        one = _scales(run, each, m if each.name == "A" else n, k)
        if each.name == "A":
            one = Bounded(one.value[:, None], one.bound[:, None])
        wide = Bounded(np.broadcast_to(one.value, (m, n)), np.broadcast_to(one.bound, (m, n)))
        found = wide if found is None else elementwise.mul(found, wide, F32)
    return found


def _scales(run: Run, each: Scaling, size: int, k: int) -> Bounded:
    """The scales of an operand's rows or columns, from k on."""
    x = run[each.scale]
    if each.outer is None:
        x = Bounded(x.value.reshape(1), x.bound.reshape(1))
        return Bounded(np.repeat(x.value, size), np.repeat(x.bound, size))
    blocks = -(-size // each.outer)
    if each.depth is not None:
        group = k // each.depth
        if each.k_first:
            x = Bounded(x.value.T, x.bound.T)
        if x.value.shape[1] <= group:
            raise FragirError(
                f"{each.name} has scales for {x.value.shape[1] * each.depth} of K, it needs more"
            )
        x = Bounded(x.value[:, group], x.bound[:, group])
    if x.value.shape[0] < blocks:
        raise FragirError(
            f"{each.name} has scales for {x.value.shape[0] * each.outer} of "
            f"{each.side.upper()} = {size}"
        )
    of = np.arange(size) // each.outer
    return Bounded(x.value[of], x.bound[of])
