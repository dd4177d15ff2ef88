"""Loops that go on until nothing changes: with a bound, so that a fault of ours is told, never met
as a compilation that does not end.

Whoever writes such a loop has a reason why it ends; the bound is far beyond what that reason
allows. tests/passes/test_settling.py finds loops in the passes whose end is an equality and that
are not written so.
"""

from __future__ import annotations

from collections.abc import Iterator

MOST_ROUNDS = 10_000


def rounds(what: str, most: int = MOST_ROUNDS) -> Iterator[int]:
    """The numbers of the rounds of a loop that is left once `what` has settled.

    Raises AssertionError where it is not left in `most` rounds: a fault of the pass.

    >>> for number in rounds("halving"):
    ...     if 40 >> number == 0:
    ...         break
    >>> number
    6
    """
    yield from range(most)
    raise AssertionError(f"{what} did not settle in {most} rounds")
