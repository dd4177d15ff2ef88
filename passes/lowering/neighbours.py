"""Which elements of a lane lie side by side in memory, wherever its fragments have them."""

from __future__ import annotations

from collections.abc import Sequence

from fragir.layout.modes import Point


def neighbours(constants: Sequence[Point], along: int, least: int, most: int) -> list[list[int]]:
    """Elements in groups of as many as lie side by side along a dimension of memory.

    Groups have up to `most` elements, a power of two, and begin at multiples of their size; they
    come in the order of their first elements. Empty where they would have `least` at most.

    >>> neighbours([(0, 0), (0, 2), (0, 1), (0, 3)], 1, 1, 4)
    [[0, 2, 1, 3]]
    """
    while most > least:
        groups: dict[Point, list[int]] = {}
        for element, place in enumerate(constants):
            begin = (*place[:along], place[along] - place[along] % most, *place[along + 1 :])
            groups.setdefault(begin, []).append(element)
        for group in groups.values():
            group.sort(key=lambda element: constants[element][along])
        if all(
            [constants[e][along] % most for e in group] == list(range(most))
            for group in groups.values()
        ):
            return list(groups.values())
        most //= 2
    return []
