"""Which lines differ between two texts, so that the one becomes the other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Change = Literal["added", "removed", "changed", "renamed"]
_CHANGES: dict[str, Change] = {"insert": "added", "delete": "removed", "replace": "changed"}
_NUMBERS = re.compile(r"(%[A-Za-z_$.-][\w$.-]*?)_\d+\b|(%)\d+\b")
MANY = 10_000
"""Lines from which on those that are frequent are no hold for the comparison."""


@dataclass(frozen=True, slots=True)
class LineChange:
    """Lines `before` of the old text are lines `after` of the new one.

    Both are (first, behind the last), counted from 0, as in `old[first:behind]`. "renamed" are
    lines in which values have other numbers only, as those behind a line that was added.
    """

    change: Change
    before: tuple[int, int]
    after: tuple[int, int]


def differences(old: Sequence[str], new: Sequence[str]) -> tuple[LineChange, ...]:
    """What differs, in the order of the lines; what stands between is alike."""
    return tuple(_found(old, new))


def _found(old: Sequence[str], new: Sequence[str]) -> Iterator[LineChange]:
    plain = [bare(line) for line in old], [bare(line) for line in new]
    matcher = SequenceMatcher(None, *plain, autojunk=len(old) + len(new) > MANY)
    for tag, a, b, c, d in matcher.get_opcodes():
        if tag == "replace":
            yield from _replaced(old, new, (a, b), (c, d))
            continue
        if tag != "equal":
            yield LineChange(_CHANGES[tag], (a, b), (c, d))
            continue
        at = 0
        for same, run in groupby(range(b - a), lambda i: old[a + i] == new[c + i]):
            length = len(list(run))
            if not same:
                where = (a + at, a + at + length), (c + at, c + at + length)
                yield LineChange("renamed", *where)
            at += length


def bare(line: str) -> str:
    """A line without its indentation and the numbers of its values, which the printer gives.

    >>> bare("  %12 = arith.addi %k0, %row_1 : index")
    '% = arith.addi %k0, %row : index'
    """
    return _NUMBERS.sub(r"\1\2", line.lstrip(" "))


def _replaced(
    old: Sequence[str], new: Sequence[str], before: tuple[int, int], after: tuple[int, int]
) -> Iterator[LineChange]:
    """A stretch that was replaced, line by line where operations and operands are the same."""
    (a, b), (c, d) = before, after
    heads = [_head(line) for line in old[a:b]], [_head(line) for line in new[c:d]]
    for tag, i, j, k, m in SequenceMatcher(None, *heads, autojunk=False).get_opcodes():
        kind = "changed" if tag == "equal" else _CHANGES[tag]
        yield LineChange(kind, (a + i, a + j), (c + k, c + m))


def _head(line: str) -> str:
    """What an operation does to what, without its types."""
    return bare(line).partition(" : ")[0]


def counts(found: Sequence[LineChange]) -> dict[Change, int]:
    """How many lines were added, removed, changed and renamed.

    Of a stretch that was replaced by a longer one, as many lines as it had count as changed and
    the rest as added; by a shorter one, the rest as removed.
    """
    total: dict[Change, int] = {"added": 0, "removed": 0, "changed": 0, "renamed": 0}
    for one in found:
        old, new = one.before[1] - one.before[0], one.after[1] - one.after[0]
        total["renamed" if one.change == "renamed" else "changed"] += min(old, new)
        total["added"] += max(0, new - old)
        total["removed"] += max(0, old - new)
    return total


def applied(old: Sequence[str], found: Sequence[LineChange], new: Sequence[str]) -> list[str]:
    """The new text, made of the old one and of those lines of the new one that differ."""
    result: list[str] = []
    at = 0
    for one in found:
        result += old[at : one.before[0]]
        result += new[one.after[0] : one.after[1]]
        at = one.before[1]
    return result + list(old[at:])
