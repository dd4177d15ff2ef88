"""Every example of docs/instructions.md is executed."""

from __future__ import annotations

import doctest
from pathlib import Path


def test_examples() -> None:
    page = Path(__file__).parents[2] / "docs" / "instructions.md"
    lines = page.read_text().splitlines()
    # A closing fence would be read as expected output.
    text = "\n".join("" if line.startswith("```") else line for line in lines)
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    results = doctest.DocTestRunner().run(test)
    assert results.attempted > 40
    assert results.failed == 0
