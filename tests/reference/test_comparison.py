"""Verdicts: PASS, FAIL, and UNJUDGED where nothing can be said."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fragir.errors import FragirError
from fragir.reference import Bounded, compare

INF, NAN = np.inf, np.nan


def reference(values: list[float], bounds: list[float]) -> Bounded:
    return Bounded(np.array(values), np.array(bounds))


def test_without_a_bound_nothing_is_judged() -> None:
    found = compare(
        Bounded(np.full((4, 4), 1.0), np.full((4, 4), INF)),
        np.full((4, 4), 12345.0, np.float32),
        "f32",
    )
    assert (found.verdict, found.passed, found.mismatches) == ("UNJUDGED", False, 0)
    assert (found.unjudged, found.unbounded, found.size) == (16, 16, 16)
    assert math.isnan(found.max_error)
    assert math.isnan(found.bound)


def test_a_share_may_be_unjudged() -> None:
    half = reference([1.0, 2.0, 3.0, 4.0], [0.0, 0.1, INF, INF])
    result = np.array([1.0, 2.05, 9.0, NAN], np.float32)
    assert compare(half, result, "f32").verdict == "UNJUDGED"
    assert compare(half, result, "f32", allow_unjudged=0.49).verdict == "UNJUDGED"
    found = compare(half, result, "f32", allow_unjudged=0.5)
    assert (found.verdict, found.unjudged, found.bound) == ("PASS", 2, 0.1)
    result[0] = 1.5
    found = compare(half, result, "f32", allow_unjudged=1.0)
    assert (found.verdict, found.mismatches, found.worst) == ("FAIL", 1, (0,))
    with pytest.raises(FragirError, match="share"):
        compare(half, result, "f32", allow_unjudged=1.5)


def test_certain_infinities_and_nan_are_judged_by_class() -> None:
    special = reference([INF, -INF, NAN, 1.0], [0, 0, 0, 0])
    good = np.array([INF, -INF, NAN, 1.0], np.float32)
    assert compare(special, good, "f32").passed
    for place, wrong in [(0, -INF), (0, 3e38), (1, NAN), (2, INF), (2, 0.0), (3, NAN)]:
        bad = good.copy()
        bad[place] = wrong
        found = compare(special, bad, "f32")
        assert (found.verdict, found.worst, found.max_error) == ("FAIL", (place,), INF)


def test_nan_of_the_programs_own_making_is_unjudged() -> None:
    """A Cholesky factor of what has none: NaN, and the zeros above it."""
    half = reference([NAN, NAN, 0, 0], [0, 0, 0, 0])
    result = np.array([NAN, NAN, 0, 0], np.float32)
    for given, share, verdict in ((None, 2, "UNJUDGED"), (True, 0, "PASS"), (False, 2, "UNJUDGED")):
        found = compare(half, result, "f32", nan_given=given)
        assert (found.unjudged, found.nan, found.verdict) == (share, share, verdict)
    one = reference([NAN, 1, 0, 0], [0, 0, 0, 0])
    result = np.array([NAN, 1, 0, 0], np.float32)
    assert compare(one, result, "f32").verdict == "PASS"
    assert compare(one, result, "f32", nan_given=False).verdict == "UNJUDGED"
    result[0] = 1
    assert compare(one, result, "f32", nan_given=False).verdict == "FAIL"
    answer = np.array([NAN, 1, 0, 0], np.float32)
    assert compare(one, answer, "f32", answer=answer, nan_given=False).verdict == "PASS"


def test_nan_throughout_says_nothing() -> None:
    """Any mistake is NaN too, unless an answer from outside says that it must be."""
    nothing = reference([NAN, NAN], [0, 0])
    result = np.array([NAN, NAN], np.float32)
    found = compare(nothing, result, "f32")
    assert (found.verdict, found.unjudged, found.unbounded) == ("UNJUDGED", 2, 0)
    assert compare(nothing, result, "f32", rtol=0.1).verdict == "UNJUDGED"
    assert compare(nothing, result, "f32", answer=result).verdict == "PASS"
    found = compare(nothing, np.array([NAN, 1.0], np.float32), "f32")
    assert (found.verdict, found.mismatches) == ("FAIL", 1)


def test_an_answer_from_outside() -> None:
    half = reference([1.0, 2.0, 3.0], [0.25, INF, INF])
    result = np.array([1.125, 20.0, INF], np.float32)
    answer = np.array([0.875, 20.0, INF], np.float32)
    found = compare(half, result, "f32", answer=answer)
    assert (found.verdict, found.unjudged, found.unbounded) == ("PASS", 0, 2)
    # also where the reference is content: 0.625 is more than twice the bound away
    far = np.array([0.5, 20.0, INF], np.float32)
    found = compare(half, result, "f32", answer=far)
    assert (found.verdict, found.worst, found.expected) == ("FAIL", (0,), 0.5)
    near = np.array([0.875, 20.25, INF], np.float32)
    found = compare(half, result, "f32", answer=near)
    assert (found.verdict, found.worst, found.max_error) == ("FAIL", (1,), 0.25)
    assert compare(half, result, "f32", answer=near, rtol=0.0125).passed
    assert not compare(half, result, "f32", answer=near, rtol=0.0123).passed
    # what is beyond its bound fails whatever the answer
    wrong = np.array([1.5, 20.0, INF], np.float32)
    assert compare(half, wrong, "f32", answer=wrong).verdict == "FAIL"
    with pytest.raises(FragirError, match="shape"):
        compare(half, result, "f32", answer=answer[:2])


def test_rtol_without_an_answer() -> None:
    """Elements without a bound are held against the reference's value, the others as ever."""
    half = reference([1.0, 200.0], [0.25, INF])
    assert compare(half, np.array([1.0, 201.0], np.float32), "f32", rtol=0.01).passed
    found = compare(half, np.array([1.0, 203.0], np.float32), "f32", rtol=0.01)
    assert (found.verdict, found.worst, found.bound) == ("FAIL", (1,), 2.0)
    assert not compare(half, np.array([1.5, 200.0], np.float32), "f32", rtol=1.0).passed
    for wrong in (-1.0, NAN, INF):
        with pytest.raises(FragirError, match="rtol"):
            compare(half, np.zeros(2, np.float32), "f32", rtol=wrong)
