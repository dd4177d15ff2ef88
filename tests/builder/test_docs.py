"""Every example of docs/python.md runs and prints what is written, and nothing is left out."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from fragir.builder import KernelBuilder
from fragir.builder.functions import FUNCTIONS

PAGE = Path(__file__).resolve().parents[2] / "docs" / "python.md"
TEXT = PAGE.read_text()


def test_examples() -> None:
    # to doctest the line that closes a code block would be expected output
    blocks = re.sub(r"^```.*$", "", TEXT, flags=re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(blocks, {}, PAGE.name, str(PAGE), 0)
    results = doctest.DocTestRunner().run(test)
    assert results.failed == 0
    assert results.attempted > 25


def test_every_function_is_named() -> None:
    words = set(re.findall(r"`([^`\n]+)`", TEXT)) | set(re.findall(r"`k\.(\w+)", TEXT))
    assert {name for name in FUNCTIONS if name.isidentifier()} - words <= {"neg", "abs"}


def test_every_method_is_named() -> None:
    methods = {name for name in vars(KernelBuilder) if not name.startswith("_")}
    methods |= {
        name
        for base in KernelBuilder.__mro__[1:-1]
        for name in vars(base)
        if not name.startswith("_")
    }
    found = set(re.findall(r"\bk\.(\w+)", TEXT)) | set(re.findall(r"`(\w+)`", TEXT))
    assert methods - found == set()
