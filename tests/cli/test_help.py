"""Help teaches by example: every command's ends in examples, and each works in a clone."""

from __future__ import annotations

import contextlib
import importlib
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from fragir.cli import main as program
from fragir.cli.command import TaughtCommand, folded_lines
from fragir.cli.main import COMMANDS, GROUPS, main

ROOT = Path(__file__).resolve().parents[2]


def taught(name: str) -> TaughtCommand:
    found: click.Command = importlib.import_module(f"fragir.cli.{name}").main
    assert isinstance(found, TaughtCommand)
    return found


def execute(line: str, folder: Path) -> int:
    """A command line of a shell that may redirect stdout, `fragir` in this process."""
    if "<(" in line:
        fragir = f'fragir() {{ {shlex.quote(sys.executable)} -m fragir.cli.main "$@"; }}'
        home = {**os.environ, "HOME": str(folder), "PYTHONPATH": str(ROOT)}
        shell = ["bash", "-c", f"{fragir}\n{line}"]
        return subprocess.run(shell, env=home, check=False).returncode
    words = shlex.split(line)
    redirected = words[-1] if ">" in words else None
    if redirected is not None:
        words = words[:-2]
    with contextlib.ExitStack() as stack:
        if redirected is not None:
            out = stack.enter_context((folder / redirected).open("w"))
            stack.enter_context(contextlib.redirect_stdout(out))
        if words[0] == "fragir":
            return main(words[1:])
        assert words[0] == "python"
        return subprocess.run([sys.executable, *words[1:]], check=False).returncode


@pytest.mark.usefixtures("kept_cubins")
@pytest.mark.parametrize("name", ["", *sorted(COMMANDS)])
def test_examples_work(
    name: str, in_folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for each in ("examples", "benchmarks"):
        (in_folder / each).symlink_to(ROOT / each)
    monkeypatch.setenv("COLUMNS", "80")
    assert main([*([name] if name else []), "--help"]) == 0
    shown = capfd.readouterr().out
    help_text, _, section = shown.partition("\nExamples:\n")
    assert not re.search(r"^ *(fragir|python) \S.* --", help_text, re.MULTILINE)
    assert max(map(len, section.splitlines())) <= 88
    # what can be pasted into a shell: the lines that are indented by four, put together
    pasted = re.findall(r"^ {4}(?! )((?:.*\\\n)*.*)$", section, re.MULTILINE)
    lines = [re.sub(r" \\\n +", " ", line) for line in pasted]
    examples = taught(name).examples if name else program.EXAMPLES
    assert lines == [line for _, line in examples]
    assert 2 <= len([what for what, _ in examples if what]) <= 4
    before = set(in_folder.iterdir())
    for line in lines:
        assert name in line or line.startswith("python ")
        code = execute(line, in_folder)
        captured = capfd.readouterr()
        assert code == 0, f"$ {line}\n{captured.err}"
    files = {path for path in in_folder.iterdir() if path.is_file()} - before
    assert all(path.stat().st_size for path in files)


def test_commands_are_grouped() -> None:
    names = [name for group in GROUPS.values() for name in group]
    assert len(names) == len(set(names))
    files = {path.stem for path in (ROOT / "fragir" / "cli").glob("*.py")}
    makes = {name for name in files if "@command(" in (ROOT / f"fragir/cli/{name}.py").read_text()}
    assert set(names) == makes - {"command", "gui"}


@pytest.mark.parametrize(
    ("line", "width", "parts"),
    [
        ("a b", 20, ["a b"]),
        (
            "fragir x --one 'a  b' --two c",
            18,
            ["fragir x \\", "    --one 'a  b' \\", "    --two c"],
        ),
        ("fragir --flag --at 1,2 d", 18, ["fragir --flag \\", "    --at 1,2 d"]),
        ("python -c 'one long word'", 12, ["python -c 'one long word'"]),
    ],
)
def test_folded(line: str, width: int, parts: list[str]) -> None:
    """No word is broken, and the shell reads the same words."""
    assert list(folded_lines(line, width)) == parts
    assert shlex.split("\n".join(parts).replace("\\\n", "")) == shlex.split(line)
