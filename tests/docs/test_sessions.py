"""The how-to pages and the tutorial: each is done from its first block to its last, by a reader."""

from __future__ import annotations

import importlib.util
import os
import re
from pathlib import Path

import pytest

from tests.docs.sessions import (
    PAGES,
    ROOT,
    Reader,
    as_it_was,
    commands,
    is_part,
    pattern,
    pictures,
    pieces,
    shell_words,
)

LARGEST = 60_000  # bytes of a picture
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
    for picture in pictures(page):
        if os.environ.get("FRAGIR_REDRAW"):
            picture.write_bytes((tmp_path / picture.name).read_bytes())
        assert (tmp_path / picture.name).read_bytes() == picture.read_bytes(), picture.name
        assert picture.stat().st_size < LARGEST, picture.name
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
    assert commands("$ a \\\n    b\nx\n$ c\n", "page") == [("a     b", "x\n"), ("c", "")]
    assert re.fullmatch(pattern("a ... c\n...\nz\n"), "a b c\nx\ny\nz\n")
    assert not re.fullmatch(pattern("a ... c\n"), "a b d\n")


def test_a_wrong_excerpt_is_seen() -> None:
    text = "one\n  two\nthree\n  four\n"
    assert is_part("two\n...\n  four\n", text)
    assert is_part("one\ntwo\n", text)
    assert not is_part("one\nthree\n", text)
    assert not is_part("tw\n...\nfour\n", text)


def test_commands_are_those_of_a_shell() -> None:
    assert shell_words('fragir sass "A>=1" > x.svg') == ["fragir", "sass", "A>=1", ">", "x.svg"]
    for line in ("fragir sass A>=1", "fragir a | b", "fragir layout lane(1)"):
        with pytest.raises(AssertionError):
            shell_words(line)


def test_every_picture_is_shown() -> None:
    """What no page shows is not kept, for nothing draws it anew."""
    shown = {picture for page in PAGES for picture in pictures(page)}
    kept = {path for page in PAGES for path in (page.parent / "images").glob("*")}
    assert shown == kept
