"""Whether what a kernel has written is what the reference says: the same function, or near enough.

In this order: as functions of the inputs (`fragir.algebra`), where both could be followed; as
numbers, within the bound that rounding allows (`fragir.judge.rounding`); within the tolerance of
the case. The numbers are looked at in any case: a function may be right, and its result NaN.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fragir.judge.following import Following
from fragir.judge.sandbox import Prepared, Reference
from fragir.judge.verdict import Reason
from fragir.reference.bounded import Bounded, rounded
from fragir.reference.comparison import Comparison, compare
from fragir.reference.formats import FLOATS, INTEGERS, Array, Floats, decode, half_spacing

BOUNDED, UNDECIDED = "bounded", "not decided"
#: For the formats of a case, what the verdict takes for granted.
ROUNDING = "rounding"
TOLERANCE = "tolerance"


@dataclass(frozen=True)
class Equality:
    """Of one case: the word of the verdict, what speaks against it, the assumptions used, and why
    it is not known to be the same function, where it is not."""

    word: str
    reasons: list[Reason]
    assumes: dict[str, str]
    unproved: str | None


def judge_equality(
    prepared: Prepared, written: Sequence[Array], followed: Following | str, number: int
) -> Equality:
    """Holds the outputs of a run, as they are stored, against the reference of case `number`.

    `followed`: the case's data through its kernels, or why that could not be followed.
    """
    case = prepared.case
    proof = _prove(prepared, followed, number)
    reasons, assumes, words = list(proof.reasons), dict(proof.assumes), {proof.word}
    if proof.word == UNDECIDED:  # another function: how far its numbers are is no matter
        return Equality(UNDECIDED, reasons, assumes, None)
    for index, (_, element) in enumerate(case.outputs):
        reference = _reference(prepared, index, element)
        equal = proof.word is not None and element in FLOATS
        if reference is not None:
            if element in FLOATS:
                working, sums, rounding = case.formats
                how = " to the nearest" if rounding == "nearest" else ""
                assumes[ROUNDING] = (
                    f"every operation rounds{how} to {working} or better, sums grow in {sums} or"
                    " better"
                )
            found = compare(reference, written[index], element, nan_given=False)
            words.add(None if equal else BOUNDED)
            reasons += _numbers(found, written[index], element, index, number, equal)
        elif case.rtol is not None:
            assumes[TOLERANCE] = f"the tolerance of the case, {case.rtol:g}, is right"
            words.add(None if equal else BOUNDED)
            reasons += _tolerated(prepared, written[index], index, number)
        else:
            words.add(UNDECIDED)
            why = prepared.unbounded or "no bound is known"
            text = f"output {index}: {why}; a case may give rtol, a tolerance of its own"
            reasons.append(Reason("incomplete", "undecided", text, number))
            reasons += _tolerated(prepared, written[index], index, number, sanity=True)
    weakest = next(word for word in (UNDECIDED, BOUNDED, proof.word) if word in words)
    return Equality(weakest or BOUNDED, reasons, assumes, proof.unproved)


# -- functions -------------------------------------------------------------------------------------

#: A round proves equality but for 2^-20: for functions of degrees up to 2^11 in fields of 2^31.
_BITS = 20


@dataclass(frozen=True)
class _Proof:
    """Whether the outputs are the same functions: the word if they are or are not, and what speaks
    against it; else why that is not known."""

    word: str | None = None
    unproved: str | None = None
    reasons: tuple[Reason, ...] = ()
    assumes: Mapping[str, str] = field(default_factory=dict[str, str])


def _prove(prepared: Prepared, followed: Following | str, number: int) -> _Proof:
    if not any(element in FLOATS for _, element in prepared.case.outputs):
        return _Proof(unproved="integers are compared as numbers")
    if isinstance(followed, str):
        return _Proof(unproved=followed)
    if prepared.functions is None:
        return _Proof(unproved=f"the reference: {prepared.unknown}")
    if followed.opaque:
        lines = ", ".join(str(line) if line else "an output" for line in sorted(followed.opaque))
        text = f"bits of data are used as integers, at {lines}"
        return _Proof(unproved=text, reasons=(Reason("incomplete", "opaque", text, number),))
    best: _Compared | None = None
    for wanted in prepared.functions:
        found = _compare(prepared, followed, wanted)
        if best is None or found.wrong < best.wrong:
            best = found
    assert best is not None
    if not best.wrong:
        if not best.rounds:
            return _Proof(unproved="roots of what is no square were met in every round")
        return _Proof(f"exact (2^-{_BITS * best.rounds})", assumes={DEGREES: _DEGREES})
    if followed.rounded:
        lines = ", ".join(map(str, sorted(followed.rounded)))
        return _Proof(unproved=f"data is made whole numbers, at {lines}")
    if prepared.names:
        names = ", ".join(prepared.names)
        return _Proof(unproved=f"of {names} only the name is known, and it may be approximated")
    index, at = best.first
    got = followed.output(index)
    assert got is not None
    text = (
        f"{best.wrong} of {best.size} elements are another function of the inputs, first"
        f" {_place(at)} of output {index}: it is {got.real[at]:.7g}, the reference gives"
        f" {prepared.results[index][at]:.7g}"
    )
    return _Proof(UNDECIDED, reasons=(Reason("fail", "result", text, number),))


DEGREES = "degrees"
_DEGREES = (
    "functions are quotients of polynomials of degree 2048 or less, and powers of two of such"
)


@dataclass(frozen=True)
class _Compared:
    """`wrong` of `size` elements differ, the first at `first` (output, place); every one was found
    equal in so many `rounds` at least."""

    wrong: int
    size: int
    first: tuple[int, tuple[int, ...]]
    rounds: int


def _compare(prepared: Prepared, followed: Following, wanted: Sequence[Reference]) -> _Compared:
    wrong, size, first, rounds = 0, 0, None, followed.rounds
    for index, reference in enumerate(wanted):
        got = followed.output(index)
        if got is None:
            continue
        # an element of neither field: infinities and NaN are held against each other as numbers
        finite = (np.isfinite(got.real) & np.isfinite(prepared.results[index]))[..., None]
        same = (got.p == reference.p) | ~finite
        differs = (~same & ~(got.doubt | reference.doubt)).any(-1)
        wrong, size = wrong + int(differs.sum()), size + differs.size
        rounds = min(rounds, int(same.sum(-1).min(initial=rounds)))
        if first is None and differs.any():
            first = index, tuple(int(i) for i in np.argwhere(differs)[0])
    return _Compared(wrong, size, first or (0, ()), rounds)


# -- numbers ---------------------------------------------------------------------------------------


def _reference(prepared: Prepared, index: int, element: str) -> Bounded | None:
    """The reference as the output's type can hold it; None where no bound is known."""
    value = prepared.results[index]
    form = FLOATS.get(element)
    if form is None:
        if value.dtype.kind == "f" and not np.array_equal(value, np.rint(value)):
            return None
        whole = INTEGERS[element].wrap(value.astype(np.int64))  # as arithmetic of that type does
        return Bounded(whole, np.zeros(value.shape))
    if prepared.bounds is None:
        return None
    value = value.astype(np.float64)
    reach = np.abs(value) + prepared.bounds[index]
    bound, (working, _, rounding) = prepared.bounds[index], prepared.case.formats
    more: Floats = half_spacing(np.where(np.isfinite(reach), reach, 0.0), form)
    if rounding != "nearest":
        # what is converted may be cut off: twice half a spacing
        bound = bound + np.where(reach > 0, more, 0.0)
    elif FLOATS[working].precision <= form.precision:
        # results have been rounded; what comes of no operation has not
        return Bounded(value, np.where(bound > 0, bound, more))
    return rounded(Bounded(value, bound), form, correct=False)


def _place(at: tuple[int, ...] | None) -> str:
    return f"[{', '.join(map(str, at or ()))}]"


def _numbers(
    found: Comparison, written: Array, element: str, index: int, number: int, equal: bool
) -> Iterator[Reason]:
    """What numbers say; `equal`: it is the same function."""
    if found.mismatches:
        text = (
            f"{found.mismatches} of {found.size} elements of output {index} are farther from the "
            f"reference than rounding explains, farthest {_place(found.worst)}: it is "
            f"{found.found:.7g}, the reference gives {found.expected:.7g}, and the bound is "
            f"{found.bound:.3g}"
        )
        if equal and np.isfinite(decode(written, element)).all():
            text += "; it is the same function: Case(working=...) says what it may round to"
            yield Reason("incomplete", "rounding", text, number)
        else:
            yield Reason("fail", "result", text, number)
    elif found.unjudged:
        text = (
            f"{found.unjudged} of {found.size} elements of output {index} have no finite bound, or "
            "are NaN by the reference"
        )
        yield Reason("incomplete", "undecided", text, number)


#: Where nothing is known of rounding, what no rounding explains: relative to the largest element.
_SANITY = 0.25


def _tolerated(
    prepared: Prepared, written: Array, index: int, number: int, sanity: bool = False
) -> Iterator[Reason]:
    element = prepared.case.outputs[index][1]
    wanted = prepared.results[index].astype(np.float64)
    found = np.asarray(decode(written, element)).astype(np.float64)
    finite = np.isfinite(wanted)
    size = float(np.abs(wanted[finite]).max(initial=0.0))
    tolerance = _SANITY if sanity else prepared.case.rtol or 0.0
    with np.errstate(invalid="ignore"):
        far = np.abs(found - wanted) > tolerance * size
        far |= ~np.isfinite(found)
    wrong = np.where(finite, far, ~((found == wanted) | (np.isnan(found) & np.isnan(wanted))))
    if wrong.any():
        at = tuple(int(i) for i in np.argwhere(wrong)[0])
        yield Reason(
            "fail",
            "result",
            f"{int(wrong.sum())} of {wrong.size} elements of output {index} are off by more than "
            f"{tolerance:g} of the largest, first {_place(at)}: it is {found[at]:.7g}, the "
            f"reference gives {wanted[at]:.7g}",
            number,
        )
    if np.isnan(wanted).any():
        yield Reason("incomplete", "undecided", f"output {index} is NaN by the reference", number)
