"""The how-to pages: each is done from its first block to its last, as a reader would."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tests.docs.sessions import PAGES, ROOT, Reader, as_it_was, commands, pattern, pieces

TORCH = [page for page in PAGES if any(piece.needs == "torch" for piece in pieces(page))]


@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_page(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("examples", "tests", "results"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.setenv("FRAGIR_CACHE", str(tmp_path / ".cache"))
    monkeypatch.chdir(tmp_path)
    reader = Reader(capfd)
    with as_it_was(tmp_path):
        reader.follow(page)
    assert all(re.search(r"needs (torch|nvcc|a GPU)", why) for why in reader.left_out)


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None, reason="test_page runs them")
def test_blocks_for_torch() -> None:
    """Says in the report which blocks test_page has left out."""
    lines = [f"{p.name}:{b.line}" for p in TORCH for b in pieces(p) if b.needs == "torch"]
    assert lines
    pytest.skip(f"not run, PyTorch is not installed: {', '.join(lines)}")


def test_fences_are_understood() -> None:
    """No block is missed because its first line is written in another way."""
    for page in PAGES:
        opened = re.findall(r"^```", page.read_text("utf-8"), re.MULTILINE)
        assert len(opened) == 2 * len(pieces(page)), page.name


def test_a_wrong_output_is_seen() -> None:
    assert commands("$ a b\nx\ny\n$ c\n", "page") == [("a b", "x\ny\n"), ("c", "")]
    assert re.fullmatch(pattern("a ... c\n...\nz\n"), "a b c\nx\ny\nz\n")
    assert not re.fullmatch(pattern("a ... c\n"), "a b d\n")
