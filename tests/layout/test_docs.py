"""Every example in the documentation and the docstrings runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import fragir.layout

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.walk_packages(fragir.layout.__path__, "fragir.layout.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_guide() -> None:
    text = (ROOT / "docs" / "layouts.md").read_text()
    # To doctest the line that closes a code block would be expected output.
    blocks = re.sub(r"^```.*$", "", text, flags=re.M)
    test = doctest.DocTestParser().get_doctest(blocks, {}, "layouts.md", "docs/layouts.md", 0)
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0
    assert results.attempted > 20
    assert text.count("```pycon") * 2 == len(re.findall(r"^```", text, flags=re.M))
