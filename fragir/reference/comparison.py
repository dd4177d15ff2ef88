"""Holds an execution against the reference, and against an answer from outside."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

import numpy as np

from fragir.errors import FragirError
from fragir.reference.bounded import Bounded, distance_between
from fragir.reference.formats import FLOATS, INTEGERS, Array, Floats, decode

Verdict = Literal["PASS", "FAIL", "UNJUDGED"]


@dataclass(frozen=True)
class Comparison:
    """An execution held against the reference."""

    mismatches: int
    """Elements beyond their bound, or their distance from the answer."""
    max_error: float
    """The largest error, of mismatches where there are any; infinite where an element is no
    number, or infinite, and must not be; NaN where no element is judged."""
    bound: float
    """The bound of the element with the largest error; the largest bound where none has any; NaN
    where no element is judged."""
    unbounded: int
    """Elements of which the reference can say nothing (an overflow that may or may not happen)."""
    worst: tuple[int, ...] | None
    """Where the worst mismatch is; None where all is well."""
    expected: float = 0.0
    found: float = 0.0
    unjudged: int = 0
    """Elements that have neither a finite bound nor an answer, and those of `nan`."""
    size: int = 0
    """Elements of the array."""
    allowed: float = 0.0
    """The share of elements that may be unjudged."""
    nan: int = 0
    """Elements that are unjudged, as they are NaN by the program and any mistake is."""

    def __repr__(self) -> str:
        told = [
            f"{self.size} elements",
            f"largest error {self.max_error:.3g}, its bound {self.bound:.3g}",
        ]
        told += [f"{self.mismatches} mismatches"] if self.mismatches else []
        told += [f"{self.unjudged} unjudged"] if self.unjudged else []
        return f"<{self.verdict}: {'; '.join(told)}>"

    @property
    def verdict(self) -> Verdict:
        """FAIL for a mismatch, UNJUDGED where more elements than allowed are, else PASS."""
        if self.mismatches:
            return "FAIL"
        share = self.unjudged / self.size if self.size else 0.0
        return "UNJUDGED" if share > self.allowed else "PASS"

    @property
    def passed(self) -> bool:
        return self.verdict == "PASS"


def compare(
    reference: Bounded,
    result: Array,
    element: str,
    *,
    answer: Array | None = None,
    rtol: float | None = None,
    allow_unjudged: float = 0.0,
    nan_given: bool | None = None,
) -> Comparison:
    """Holds an array in storage type against the reference.

    Infinite and NaN elements that are certain must be so. But NaN is what any mistake gives: where
    no answer says so, those are unjudged that no input explains. `nan_given` says whether inputs
    hold infinities or NaN: no, and it is each of them; yes, and it is only if all elements are NaN;
    None, where that is not known, if at least half of them are.
    `answer` is what the result must be by an outside opinion, in the same storage type: each of its
    elements and of the result may be as far from the reference as the bound says, so they may be
    twice that apart, and `rtol` times the answer more. Without an answer `rtol` is for elements
    without a finite bound: they are held against the reference's value. `allow_unjudged` is the
    share of the elements, 0 to 1, of which nothing may be known. Raises FragirError for shapes or
    arguments that do not fit.
    """
    if not isinstance(cast("object", element), str) or element not in {*FLOATS, *INTEGERS}:
        raise FragirError(f"{element!r} is no type of elements", hint='as in "f16"')
    if rtol is not None and not (rtol >= 0 and math.isfinite(rtol)):
        raise FragirError(f"rtol is {rtol}", hint="give a number from 0 on, as in 1e-3")
    if not 0 <= allow_unjudged <= 1:
        raise FragirError(f"allow_unjudged is {allow_unjudged}", hint="a share is 0 to 1")
    with np.errstate(all="ignore"):
        found = np.asarray(decode(result, element))
        outside = None if answer is None else np.asarray(decode(answer, element))
        for what, array in (("result", found), ("answer", outside)):
            if array is not None and array.shape != reference.value.shape:
                raise FragirError(
                    f"the {what} has shape {array.shape}, not {reference.value.shape}"
                )
        return _compare(reference, found, outside, rtol, allow_unjudged, nan_given)


def _compare(
    reference: Bounded,
    found: Array,
    answer: Array | None,
    rtol: float | None,
    allowed: float,
    nan_given: bool | None,
) -> Comparison:
    value, bound = reference.value.astype(np.float64), reference.bound
    measured = found.astype(np.float64)
    free = np.isinf(bound)
    if not value.size:
        return Comparison(0, 0.0, 0.0, 0, None)
    error, limit = distance_between(measured, value), bound
    wrong = ~(error <= bound) & ~free
    judged = ~free
    target: Floats = value
    if answer is not None or rtol is not None:
        target = value if answer is None else answer.astype(np.float64)
        distance = distance_between(measured, target)
        more = np.where(free, 0.0, 2 * bound) + _relative(target, rtol)
        asked = free if answer is None else np.ones(free.shape, bool)
        missed = asked & ~(distance <= more)
        # what is shown: the reference's opinion where it has one and finds a mistake
        shown = asked & (free | (missed & ~wrong))
        error, limit = np.where(shown, distance, error), np.where(shown, more, limit)
        target = np.where(shown, target, value)
        wrong, judged = wrong | missed, judged | asked
    nan = np.zeros(judged.shape, bool)
    share = {None: 0.5, True: 1.0, False: 0.0}[nan_given]
    if answer is None and reference.nan.mean() >= share:
        nan = reference.nan & ~wrong
        judged = judged & ~nan
    counted = np.where(judged | wrong, error, 0.0)
    bad = bool(wrong.any())
    rank = np.where(wrong, error, -1.0) if bad else counted
    if not counted.any():
        rank = np.where(judged, limit, -1.0)
    place = np.unravel_index(int(np.argmax(rank)), rank.shape)
    nothing = not (bad or judged.any())
    return Comparison(
        mismatches=int(wrong.sum()),
        max_error=math.nan if nothing else float(counted[place]),
        bound=math.nan if nothing else float(limit[place]),
        unbounded=int(free.sum()),
        worst=tuple(int(i) for i in place) if bad else None,
        expected=float(target[place]),
        found=float(measured[place]),
        unjudged=int((~judged & ~wrong).sum()),
        size=int(value.size),
        allowed=allowed,
        nan=int(nan.sum()),
    )


def _relative(target: Floats, rtol: float | None) -> Floats:
    """`rtol` of numbers; infinities and NaN have no neighbourhood."""
    size = np.where(np.isfinite(target), np.abs(target), 0.0)
    return np.zeros(target.shape) if rtol is None else rtol * size
