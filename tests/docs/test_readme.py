"""The first screen: its pictures are what their commands make."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fragir.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "README.md").read_text("utf-8")
# a picture, its caption, and the command that draws it
PICTURES = re.findall(r"^!\[.+\]\((\S+\.svg)\)\n\n\*.+\*\n`(fragir .+)`$", TEXT, re.M)
LIMIT = 60_000  # bytes of a picture


def test_there_is_one_of_a_layout_and_one_of_a_conversion() -> None:
    assert [shlex.split(command)[1] for _, command in PICTURES] == ["layout", "convert"]
    assert TEXT.count("![") == len(PICTURES)


@pytest.mark.parametrize(("file", "command"), PICTURES)
def test_pictures(file: str, command: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)[1:]) == 0
    drawn = capfd.readouterr().out
    assert (ROOT / file).read_text("utf-8") == drawn
    assert len(drawn.encode()) < LIMIT
    ElementTree.fromstring(drawn)
    assert "prefers-color-scheme:dark" in drawn  # colours for a page that is light or dark
