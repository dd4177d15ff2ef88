"""Recognising which coordinates of an axis hold something as one condition."""

from __future__ import annotations

from collections.abc import Sequence

from fragir.layout.modes import Condition


def condition_for(axis: str, held: Sequence[bool]) -> Condition | None:
    """The condition that holds for exactly these coordinates 0, 1, ... of an axis, if there is one.

    The smallest divisor and then the smallest modulus are chosen.

    >>> print(condition_for("lane", [lane < 16 for lane in range(32)]))
    lane/16%2==0
    >>> condition_for("lane", [lane in (1, 2, 5) for lane in range(8)])
    """
    held = list(held)
    if True not in held:
        return None
    first = held.index(True)
    for divisor in range(1, len(held) + 1):
        if first % divisor:
            continue
        value = first // divisor
        for modulus in range(value + 1, len(held) // divisor + 2):
            condition = Condition(axis, divisor, modulus, value)
            if [condition(x) for x in range(len(held))] == held:
                return condition
    return None
