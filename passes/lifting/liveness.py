"""Which numbers (of registers, of values) are needed where a block begins and where it ends."""

from __future__ import annotations

from collections.abc import Sequence


def live(
    successors: Sequence[Sequence[int]],
    used: Sequence[int],
    written: Sequence[int],
    at_end: Sequence[int] | None = None,
) -> tuple[list[int], list[int]]:
    """(live at the begin, live at the end) of every block, as sets of bits.

    `used`: read in a block before it is written there; `at_end`: read on the way out of it.
    """
    count = len(successors)
    begins, ends = [0] * count, list(at_end or [0] * count)
    before: list[list[int]] = [[] for _ in range(count)]
    for block, after in enumerate(successors):
        for to in after:
            before[to].append(block)
    work = list(range(count))
    waiting = set(work)
    while work:
        block = work.pop()
        waiting.discard(block)
        for to in successors[block]:
            ends[block] |= begins[to]
        found = used[block] | (ends[block] & ~written[block])
        if found != begins[block]:
            begins[block] = found
            for other in before[block]:
                if other not in waiting:
                    waiting.add(other)
                    work.append(other)
    return begins, ends
