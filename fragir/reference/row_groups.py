"""Products of groups of rows, each with a matrix of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fragir.dialects import frag
from fragir.errors import FragirError
from fragir.reference.bounded import Bounded
from fragir.reference.run import Run

Finish = Callable[[Bounded, Bounded, Sequence[Bounded]], Bounded]


def grouped_product(
    run: Run,
    op: frag.MatmulOp,
    a: Bounded,
    b: Bounded,
    multiply: Callable[[Bounded, Bounded, int, slice], Bounded],
    finish: Finish,
) -> None:
    """Writes the rows of each group. `multiply` is given the group and which rows it has, too;
    `finish` is what follows a sum, given old rows and extras.
    """
    assert op.ends is not None
    ends = run.memory(op.ends)
    if ends.bound.any():
        raise FragirError("where groups of rows end is not known here")
    c, rows = run.memory(op.c), len(a.value)
    if len(ends.value) != len(b.value):
        raise FragirError(f"{len(ends.value)} groups of rows for {len(b.value)} matrices of B")
    start = 0
    for group, end in enumerate(map(int, ends.value)):
        if not start <= end <= rows:
            raise FragirError(f"group {group} of {rows} rows begins at {start} and ends at {end}")
        if end > start:
            own = slice(start, end)
            matrix = Bounded(b.value[group], b.bound[group])
            total = multiply(_rows(a, own), matrix, group, own)
            old = Bounded(c.value[own].copy(), c.bound[own].copy())
            extra = [_of_rows(run[value], own, rows) for value in op.extra]
            result = finish(total, old, extra)
            c.value[own], c.bound[own] = result.value, result.bound
        start = end


def _rows(x: Bounded, own: slice) -> Bounded:
    return Bounded(x.value[own], x.bound[own])


def _of_rows(x: Bounded, own: slice, rows: int) -> Bounded:
    """Some rows of what is broadcast to all."""
    has_rows = x.value.ndim == 2 and len(x.value) == rows and rows != 1
    return _rows(x, own) if has_rows else x
