"""The meaning of a `frag.matmul`'s scales, and of partial sums that are promoted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from fragir.dialects import frag
from fragir.dialects.frag.matmul_sums import BlockScales, Scaling
from fragir.errors import FragirError
from fragir.reference import algebra, elementwise, reductions
from fragir.reference.bounded import Bounded, bounded, exactly
from fragir.reference.formats import FLOATS, Array, Floats, overflow
from fragir.reference.products import in_rows, with_scales
from fragir.reference.reductions import half_unit
from fragir.reference.run import Run

F32 = FLOATS["f32"]


Scales = Sequence[tuple[Scaling, Bounded]]
"""The scales of A and B, and what they are."""
Multiply = Callable[[Bounded, Bounded], Bounded]


def scales_of(run: Run, op: frag.MatmulOp) -> Scales:
    """The scales that a product is given."""
    return [(each, run[each.scale]) for each in op.scalings()]


def with_block_scales(
    run: Run, scales: BlockScales, a: Bounded, b: Bounded
) -> tuple[Bounded, Bounded, tuple[Floats, Floats] | None]:
    """A and B with scales that tensor cores multiply in, as `with_scales` has them."""
    found: list[Bounded] = []
    for each, size in ((scales.a, a.value.shape[-2]), (scales.b, b.value.shape[-1])):
        x = run[each.scale]
        if each.chunked:
            x = Bounded(in_rows(x.value), in_rows(x.bound))
        if each.k_first:
            x = Bounded(*(np.swapaxes(part, -1, -2) for part in (x.value, x.bound)))
        if x.value.shape[-2] < size:
            raise FragirError(
                f"{each.name} has scales for {x.value.shape[-2]} of {each.side.upper()} = {size}"
            )
        x = Bounded(x.value[..., :size, :], x.bound[..., :size, :])
        if each.name == "B":
            x = Bounded(*(np.swapaxes(part, -1, -2) for part in (x.value, x.bound)))
        found.append(x)
    of_a, of_b = found
    return with_scales(a, b, of_a, of_b, scales.block)


def of_group(scales: Scales, group: int, rows: slice) -> Scales:
    """Those of a group of rows and its matrix of B."""
    found: list[tuple[Scaling, Bounded]] = []
    for each, x in scales:
        if each.leads:
            at = 0 if each.leads[0] is None else group
            if len(x.value) <= at:
                raise FragirError(f"{each.name} has scales for {len(x.value)} groups of rows")
            x = Bounded(x.value[at], x.bound[at])
        elif each.name == "A" and each.outer is not None:
            own = (..., rows) if each.depth is None or each.k_first else (rows,)
            x = Bounded(x.value[own], x.bound[own])
        found.append((each._replace(leads=()), x))
    return found


def scaled_sum(
    op: frag.MatmulOp,
    scales: Scales,
    a: Bounded,
    b: Bounded,
    multiplied: Multiply,
    parts: int = 1,
    old: Bounded | None = None,
) -> Bounded:
    """A B with scales, of matrices ... x M x K and ... x K x N; `multiplied` is what tensor cores
    sum. `parts`: how many the sum has at most, `old`: what they are added to.

    A factor is the rounded product of A's scale and B's. Partial sums are added by fma, the factor
    of those scales that do not change along K is multiplied into the whole sum, or into each part.
    """
    behind = [(each, x) for each, x in scales if each.depth is None]
    shape = _shape(a, b, scales)
    factor = _factor(behind, shape, 0)
    if op.in_parts:
        terms = [_times(*term) for term in _terms(op, scales, shape, a, b, multiplied)]
        magnitude = (
            None if op.promotion() is not None else _finite_magnitudes(a) @ _finite_magnitudes(b)
        )
        return _added_up(terms, magnitude, factor, parts, old)
    if op.promotion() is None:
        total = multiplied(a, b)
    else:
        total = exactly(np.zeros(shape))
        for partial, within in _terms(op, scales, shape, a, b, multiplied):
            if within is None:
                total = elementwise.add(total, partial, F32)
            else:
                total = elementwise.fma(partial, within, total, F32)
    return total if factor is None else elementwise.mul(total, factor, F32)


def _terms(
    op: frag.MatmulOp,
    scales: Scales,
    shape: tuple[int, ...],
    a: Bounded,
    b: Bounded,
    multiplied: Multiply,
) -> Iterator[tuple[Bounded, Bounded | None]]:
    """The partial sums, or the one that is not cut, and what each is multiplied by."""
    k, promote = a.value.shape[-1], op.promotion()
    if promote is None:
        yield multiplied(a, b), None
        return
    within = [(each, x) for each, x in scales if each.depth is not None]
    for start in range(0, k, promote):
        of = slice(start, start + promote)
        partial = multiplied(
            Bounded(a.value[..., of], a.bound[..., of]),
            Bounded(b.value[..., of, :], b.bound[..., of, :]),
        )
        yield _widen(partial, shape), _factor(within, shape, start)


def _shape(a: Bounded, b: Bounded, scales: Scales) -> tuple[int, ...]:
    """That of all products."""
    leads = [a.value.shape[:-2], b.value.shape[:-2]]
    leads += [x.value.shape[: len(each.leads)] for each, x in scales]
    try:
        several = np.broadcast_shapes(*leads)
    except ValueError:
        raise FragirError("the scales of A and B are not those of so many matrices") from None
    return (*several, a.value.shape[-2], b.value.shape[-1])


def _widen(x: Bounded, shape: tuple[int, ...]) -> Bounded:
    return Bounded(np.broadcast_to(x.value, shape), np.broadcast_to(x.bound, shape))


def _times(x: Bounded, factor: Bounded | None) -> Bounded:
    """A product that is rounded, or part of a sum that is."""
    return x if factor is None else elementwise.contracted_product(x, factor, F32)


def _added_up(
    terms: Sequence[Bounded],
    magnitude: Floats | None,
    factor: Bounded | None,
    parts: int,
    old: Bounded | None,
) -> Bounded:
    """Terms that are added in f32 to so many parts, each of which is multiplied by a factor; then
    all parts, and what was there before, in any order.

    `magnitude` is that of a single term which is itself a sum of parts, cut anywhere.
    """
    if algebra.is_followed():
        terms = [_times(term, factor) for term in terms]
        return algebra.summed(_stack([*terms, *(() if old is None else (old,))]), "f32")
    if not terms:
        terms = [exactly(np.zeros(() if old is None else old.value.shape))]
    fold = reductions.whole_fold(len(terms))._replace(roundings=len(terms) + parts + 1)
    unscaled = reductions.total(_stack(terms), F32, fold)
    if factor is not None:
        terms = [_times(term, factor) for term in terms]
        magnitude = None if magnitude is None else magnitude * factor.magnitude
    if old is not None:
        terms = [*terms, old]
        magnitude = None if magnitude is None else magnitude + old.magnitude
    found = reductions.total(_stack(terms), F32, fold._replace(count=len(terms)))
    bound: Array = found.bound
    # an empty part times an infinity is NaN, and a part may overflow before it is scaled
    loose = unscaled.unknown
    if factor is not None:
        loose = loose | ~np.isfinite(factor.value)
    if magnitude is not None:
        more = 1.01 * fold.roundings * half_unit(F32) * magnitude + parts * F32.smallest
        bound = np.where(np.isfinite(found.value), bound + more, bound)
        loose = loose | ~(magnitude * 1.01 < overflow(F32))
    return bounded(found.value, np.where(loose & ~found.nan, np.inf, bound))


def _finite_magnitudes(x: Bounded) -> Floats:
    """Magnitudes; 0 of what is infinite or no number."""
    return np.where(np.isfinite(x.magnitude), x.magnitude, 0.0)


def _stack(terms: Sequence[Bounded]) -> Bounded:
    shape = np.broadcast_shapes(*(term.value.shape for term in terms))
    wide = [_widen(term, shape) for term in terms]
    return Bounded(np.stack([x.value for x in wide]), np.stack([x.bound for x in wide]))


def _factor(scales: Scales, shape: tuple[int, ...], k: int) -> Bounded | None:
    """What a sum from k on is multiplied by: one for each element of the products; None without
    scales.
    """
    found: Bounded | None = None
    for each, x in scales:
        one = _of_lines(each, x, shape[-2 if each.name == "A" else -1], k)
        axis = -1 if each.name == "A" else -2
        one = Bounded(np.expand_dims(one.value, axis), np.expand_dims(one.bound, axis))
        one = _widen(one, shape)
        found = one if found is None else elementwise.mul(found, one, F32)
    return found


def _of_lines(each: Scaling, x: Bounded, size: int, k: int) -> Bounded:
    """The scales of an operand's rows or columns, from k on."""
    if each.outer is None:
        return x if x.value.ndim else Bounded(x.value.reshape(1), x.bound.reshape(1))
    blocks = -(-size // each.outer)
    if each.depth is not None:
        group, axis = k // each.depth, -2 if each.k_first else -1
        if x.value.shape[axis] <= group:
            raise FragirError(
                f"{each.name} has scales for {x.value.shape[axis] * each.depth} of K, it needs more"
            )
        own = (..., group, slice(None)) if each.k_first else (..., group)
        x = Bounded(x.value[own], x.bound[own])
    if x.value.shape[-1] < blocks:
        raise FragirError(
            f"{each.name} has scales for {x.value.shape[-1] * each.outer} of "
            f"{each.side.upper()} = {size}"
        )
    of = np.arange(size) // each.outer
    return Bounded(x.value[..., of], x.bound[..., of])
