"""Every example in the documentation and the docstrings runs."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
from pathlib import Path

import pytest

import fragir.layout

ROOT = Path(__file__).parents[2]
MODULES = [m.name for m in pkgutil.iter_modules(fragir.layout.__path__, "fragir.layout.")]


@pytest.mark.parametrize("name", MODULES)
def test_docstrings(name: str) -> None:
    results = doctest.testmod(importlib.import_module(name))
    assert results.failed == 0


def test_guide() -> None:
    results = doctest.testfile(str(ROOT / "docs" / "layouts.md"), module_relative=False)
    assert results.failed == 0
    assert results.attempted > 20
