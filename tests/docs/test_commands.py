"""Every command in the README and the docs works as it stands there, in a clone.

A command is a line of a ```sh block, or an indented line that begins with a program's name. Those
of a page are run one after the other in a folder that has what a clone has. `make` is asked what it
would do. (`console` blocks, with outputs, are test_docs.py's.)
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from fragir.cli.main import main
from fragir.cli.opt import main as opt
from tests.docs.sessions import FOLDERS

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = {"extending.md"}  # its commands need a package: tests/extending
PAGES = [
    *(
        path
        for path in sorted((ROOT / "docs").rglob("*.md"))
        if path.name not in INSTALLED and path.parent.name not in FOLDERS  # test_sessions.py's
    ),
    *(ROOT / "README.md", ROOT / "CONTRIBUTING.md"),
]
IN_PROCESS = {"fragir": main, "fragir-opt": opt}
PROGRAMS = (*IN_PROCESS, "python", "make", "source", "dask", "pip")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(rf"^    ((?:{'|'.join(PROGRAMS)}) .*)$", re.MULTILINE)
# Words that stand for something: `fragir COMMAND --help`, addresses that are nobody's (RFC 5737).
_PLACEHOLDER = re.compile(r"(?<![\w.-])[A-Z]{3,}(?![\w.-])|192\.0\.2\.")


def commands(text: str) -> list[str]:
    """The commands of a page, in order."""
    found = [(m.start(1), m[1]) for m in _INDENTED.finditer(_FENCED.sub(_blank, text))]
    for block in _FENCED.finditer(text):
        if block[1] == "sh":
            lines = block[2].replace("\\\n", "").splitlines()  # a command may have several
            found += [(block.start(2), line) for line in lines if line.strip()]
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"\S", " ", match[0])


def words_of(line: str) -> list[str]:
    """A command's words without the comment behind it, be it after `#` or after many spaces."""
    return shlex.split(re.split(r" {3,}", line)[0] if line.startswith("make") else line, True)


BY_PAGE = {page: commands(page.read_text()) for page in PAGES if commands(page.read_text())}


@pytest.mark.parametrize("page", BY_PAGE, ids=lambda page: page.stem)
def test_commands(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    for name in ("examples", "benchmarks", "tests", "docs", "Makefile"):
        (tmp_path / name).symlink_to(ROOT / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FRAGIR_CACHE", str(tmp_path / ".cache"))
    for line in BY_PAGE[page]:
        program, *arguments = words_of(line)
        if ">" in arguments:  # into a file: what would stand there is looked at
            arguments = arguments[: arguments.index(">")]
        assert program in PROGRAMS, line
        if _PLACEHOLDER.search(line.partition("#")[0]) or program in ("dask", "pip"):
            continue
        if program in IN_PROCESS:
            code = IN_PROCESS[program](arguments)
        elif program == "source":  # what `make` has made
            assert arguments == [".venv/bin/activate"]
            assert "VENV := .venv\n" in (ROOT / "Makefile").read_text()
            continue
        else:
            program = sys.executable if program == "python" else "make --dry-run"
            code = subprocess.run([*program.split(), *arguments], cwd=ROOT if "make" in program
                                  else tmp_path, check=False).returncode  # fmt: skip
        captured = capfd.readouterr()
        assert code == 0, f"$ {line}\n{captured.err}"
        written = "-o" in arguments and Path(arguments[arguments.index("-o") + 1]).exists()
        gave = program == sys.executable or captured.out or written
        assert gave, f"$ {line} prints nothing"


def test_commands_are_found() -> None:
    text = "    fragir a b\n\n    not a command\n\n"
    text += "```sh\nmake run   # b\n\nfragir-opt x \\\n  y\n```\n"
    assert commands(text) == ["fragir a b", "make run   # b", "fragir-opt x   y"]
    assert words_of("make run   what it does") == ["make", "run"]
    assert words_of("fragir run 'a b'  # c") == ["fragir", "run", "a b"]
    assert {"make run", "source .venv/bin/activate"} <= {
        " ".join(words_of(line)) for line in BY_PAGE[ROOT / "README.md"]
    }
    assert any("--arg out:x.npy" in line for line in BY_PAGE[ROOT / "docs" / "command-line.md"])
