"""Where the definitions of a register meet: dominators, and their frontiers.

Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm" (2001).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fragir.passes.settling import rounds


def order(successors: Sequence[Sequence[int]]) -> list[int]:
    """Reverse postorder from block 0."""
    found: list[int] = []
    seen = {0}
    stack = [(0, iter(successors[0]))]
    while stack:
        block, rest = stack[-1]
        step = next((s for s in rest if s not in seen), None)
        if step is None:
            stack.pop()
            found.append(block)
        else:
            seen.add(step)
            stack.append((step, iter(successors[step])))
    return found[::-1]


def dominators(successors: Sequence[Sequence[int]], before: Sequence[Sequence[int]]) -> list[int]:
    """The immediate dominator of every block; that of block 0 is itself."""
    ordered = order(successors)
    place = {block: at for at, block in enumerate(ordered)}
    above = {0: 0}

    def meet(a: int, b: int) -> int:
        while a != b:
            while place[a] > place[b]:
                a = above[a]
            while place[b] > place[a]:
                b = above[b]
        return a

    for _ in rounds("the dominators of blocks", 2 + len(successors)):
        changed = False
        for block in ordered[1:]:
            known = [p for p in before[block] if p in above]
            made = known[0]
            for other in known[1:]:
                made = meet(made, other)
            if above.get(block) != made:
                above[block] = made
                changed = True
        if not changed:
            break
    return [above[block] for block in range(len(successors))]


def frontiers(above: Sequence[int], before: Sequence[Sequence[int]]) -> list[set[int]]:
    """The blocks where what each block dominates ends. Nothing leads to block 0."""
    found: list[set[int]] = [set() for _ in above]
    for block, into in enumerate(before):
        if len(into) > 1:
            for runner in into:
                while runner != above[block]:
                    found[runner].add(block)
                    runner = above[runner]
    return found


def meetings(definitions: Iterable[int], frontier: Sequence[set[int]]) -> set[int]:
    """The blocks in which definitions in these blocks meet."""
    found: set[int] = set()
    work = list(definitions)
    while work:
        for block in frontier[work.pop()]:
            if block not in found:
                found.add(block)
                work.append(block)
    return found
