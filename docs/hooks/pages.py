"""What a generator gives: files of the site by their path in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

ROOT = Path(__file__).resolve().parents[2]
Files: TypeAlias = Mapping[str, str]
"""Path in the site's source (`reference/passes.md`) -> text."""


def hidden_from_search(text: str) -> str:
    """A page that the search does not find, for there is a better one to find."""
    return f"---\nsearch:\n  exclude: true\n---\n\n{text}"


def code(text: str) -> str:
    """Text as code within a line, whatever backticks it has."""
    fence = "``" if "`" in text else "`"
    space = " " if "`" in text else ""
    return f"{fence}{space}{text}{space}{fence}"


def fenced(text: str, language: str = "text") -> str:
    """A block of code, in a fence that the code has none of."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; bars may stand in code only."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cells)} |"

    titles = list(head)
    return "\n".join([line(titles), line("---" for _ in titles), *map(line, rows)]) + "\n"
