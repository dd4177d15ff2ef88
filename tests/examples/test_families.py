"""Kernels come in families: each in IR and in Python, tested, and on the family's page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.examples.judged import EXAMPLES

DOCS, TESTS = EXAMPLES.parent / "docs/kernels", EXAMPLES.parent / "tests/examples"
# what has a page and tests of its own
OTHERS = {"in_the_wild", "judged", "notebooks"}
FAMILIES = sorted(p.name for p in EXAMPLES.iterdir() if p.is_dir() and p.name not in OTHERS)
KERNELS = sorted(path for family in FAMILIES for path in (EXAMPLES / family).glob("*.mlir"))
# one script makes the kernels of both
TOGETHER = {"attention/forward_wgmma": "attention/forward"}


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_kernel_is_written_twice_and_tested(kernel: Path) -> None:
    """In IR and in Python; both are judged by the family's tests."""
    family, name = kernel.parent.name, f"{kernel.parent.name}/{kernel.stem}"
    assert (EXAMPLES / f"{TOGETHER.get(name, name)}.py").exists()
    tests = (TESTS / f"test_{family}.py").read_text("utf-8")
    assert re.search(rf"\b{kernel.stem}\b", tests)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_has_a_page(family: str) -> None:
    """Which names every kernel of it."""
    page = (DOCS / f"{family}.md").read_text("utf-8")
    for path in (EXAMPLES / family).glob("*.mlir"):
        words = path.stem.replace("_", "[ _-]")
        assert re.search(words, page, re.IGNORECASE), path.stem


@pytest.mark.parametrize("family", FAMILIES)
def test_scripts_have_their_ir(family: str) -> None:
    for path in (EXAMPLES / family).glob("*.py"):
        assert path.with_suffix(".mlir").exists()
