"""The listings of docs/kernels/main_loops.md are what the compiler and the pinned ptxas make."""

from __future__ import annotations

import re

import pytest

from fragir.toolchain.find import PTXAS, find
from tests.docs.main_loops import CASES, PAGE, listings


def test_the_listings() -> None:
    page = PAGE.read_text("utf-8")
    known = re.search(r"^As ptxas (\d+\.\d+\.\d+) leaves", page, re.MULTILINE)
    assert known is not None
    if find(PTXAS).version != known[1]:
        pytest.skip(f"the page is of ptxas {known[1]}")
    assert page.count("\n### ") == len(CASES)
    for listing in listings(every=4):
        assert listing in page, "run: python -m tests.docs.main_loops"
