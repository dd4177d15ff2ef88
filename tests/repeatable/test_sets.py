"""No source goes through a set in its own order."""

from __future__ import annotations

from pathlib import Path

import pytest

from .sets import set_walks

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("fragir", "dialects", "passes")

WALKS = """
def said(words: set[str], given: dict[str, int], key) -> str:
    found = {word for word in words if word}
    for word in found:  # 4
        print(word)
    first = next(iter(words - {"a"}))  # 6
    least = min(words, key=key)  # 7
    other = [*found, *sorted(found)]  # 8
    table = {word: 1 for word in given.keys() - found}  # 9
    return ", ".join(words | {"b"})  # 10
"""
NONE = """
WORDS = frozenset(("a", "b"))

def said(words: set[str], given: dict[str, int]) -> str:
    for word in given:
        if word in words and any(len(each) > 2 for each in words):
            print(len(words), max(words), {*words, word}, sorted(words - WORDS))
    return ", ".join(word for word in given if word in WORDS)

def other(words: list[str]) -> list[str]:
    return [*words]
"""


@pytest.mark.parametrize("room", ROOMS)
def test_no_source_shows_the_order_of_a_set(room: str) -> None:
    """Sort it, or keep what is looked through in a dict or list; `# any order` where none shows."""
    files = sorted((ROOT / room).rglob("*.py"))
    assert len(files) > 10
    found = [f"{p.relative_to(ROOT)}:{n}" for p in files for n in set_walks(p)]
    assert found == []


def test_finds_what_it_should(tmp_path: Path) -> None:
    file = tmp_path / "walks.py"
    file.write_text(WALKS)
    assert list(set_walks(file)) == [4, 6, 7, 8, 9, 10]
    file.write_text(NONE)
    assert list(set_walks(file)) == []
