"""Statements that ptxas takes or refuses because of one modifier: the emulator does the same.

`verdicts.txt` holds ptxas's answers (see `verdicts.py`), so that a rule that is dropped or made
weaker in a row of `fragir/emulator/instructions/` is missed here whether or not ptxas is there.
"""

from __future__ import annotations

from collections import Counter

from .test_legality import needs_ptxas, refusal, refused_by_ptxas
from .verdicts import CHUNK, verdicts


def test_the_emulator_judges_as_ptxas_did() -> None:
    wrong = [
        f"{'refused' if taken else 'taken'}: {statement} {reason or ''}"
        for taken, statement in verdicts()
        if taken != ((reason := refusal(statement)) is None)
    ]
    assert wrong == []


def test_every_opcode_has_both() -> None:
    """An empty file would prove nothing."""
    counts = Counter((s.partition(".")[0], taken) for taken, s in verdicts())
    for word in ("ld", "st", "atom", "red", "cp", "mbarrier", "barrier", "fence", "prefetch"):
        assert counts[word, True] >= 1, word
        assert counts[word, False] >= 5, word


@needs_ptxas
def test_ptxas_still_says_so() -> None:
    known = verdicts()
    statements = [s for _, s in known]
    refused: set[str] = set()
    for first in range(0, len(statements), CHUNK):
        refused |= refused_by_ptxas(statements[first : first + CHUNK])
    assert [s for taken, s in known if taken == (s in refused)] == []
