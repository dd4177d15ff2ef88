"""docs/command-line.md knows every command and every option, and its example works."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

from fragir.cli.main import COMMANDS

Fragir = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "command-line.md").read_text()


def sections() -> dict[str, str]:
    """The text of every command by its name."""
    parts = re.split(r"^## `fragir (\w+)", TEXT, flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def command(name: str) -> click.Command:
    found: click.Command = importlib.import_module(f"fragir.cli.{name}").main
    return found


def test_every_command_has_a_section() -> None:
    assert set(sections()) == set(COMMANDS)


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_option_is_named(name: str) -> None:
    text = sections()[name]
    if name == "check":
        assert "The options of the launch are\nthose of `emulate`" in text
        text += sections()["emulate"]
    options = {o for p in command(name).params if isinstance(p, click.Option) for o in p.opts}
    general = {"--json", "--debug", "--output"}
    assert {o for o in options - general if o not in text} == set()
    written = set(re.findall(r"(?<![\w-])--[a-z-]*[a-z]", sections()[name]))
    assert written - {"--json"} <= options


def test_example(fragir: Fragir, in_folder: Path) -> None:
    """What the example's command leaves in the file; that it works is said by tests/docs."""
    (in_folder / "examples").symlink_to(ROOT / "examples")
    lines = re.findall(r"^    (python -c .*|fragir emulate examples.*)$", TEXT, re.MULTILINE)
    make, emulate = (shlex.split(line) for line in lines)
    subprocess.run([sys.executable, *make[1:]], check=True)
    assert fragir(*emulate[1:]).code == 0
    assert np.load("x.npy").tolist() == list(range(7, 39))
