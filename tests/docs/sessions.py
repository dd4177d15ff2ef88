"""Pages that are read from top to bottom: their blocks share one folder and one Python session.

A block with `title="NAME"` is a file of that name, or, where a checkout has it, lines out of it.
```python and ```pycon blocks are run with the
names of those before them. In ```console blocks a line `$ ...` is a command (fragir, fragir-opt,
python, nvcc, make), and what follows is its output (stdout, or stderr where that is empty), with
`...` as in tests/docs/test_docs.py. ```text blocks are shown and not run. Blocks that need what is
not installed (PyTorch, nvcc, a GPU) are left out and said.
"""

from __future__ import annotations

import doctest
import importlib.util
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fragir import isa
from fragir.cli.main import main
from fragir.cli.opt import main as opt
from fragir.ptx.opcodes.table import OPCODES
from fragir.toolchain import driver

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("how-to", "tutorial")
PAGES = sorted(path for name in FOLDERS for path in (ROOT / "docs" / name).glob("*.md"))
IN_PROCESS = {"fragir": main, "fragir-opt": opt}
OUTSIDE = ("nvcc",)  # run where they are there
LANGUAGES = {"mlir", "ptx", "python", "pycon", "console", "cuda", "sh", "text"}
_FENCE = re.compile(r'^```(\w+)(?: title="([\w./-]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Piece:
    """A block of a page: the line that it begins at, its file's name if it is one."""

    line: int
    language: str
    title: str
    text: str

    @property
    def needs(self) -> str:
        """The module that it needs and a checkout need not have."""
        return "torch" if re.search(r"^(>>> )?import torch$", self.text, re.MULTILINE) else ""


def pieces(page: Path) -> list[Piece]:
    text = page.read_text("utf-8")
    return [
        Piece(text.count("\n", 0, m.start()) + 2, m[1], m[2] or "", m[3])
        for m in _FENCE.finditer(text)
    ]


@dataclass
class Reader:
    """Does what a page says in the current folder, as a reader of it would."""

    capture: Any  # pytest's capfd
    names: dict[str, object] = field(default_factory=lambda: {"__name__": "page"})
    left_out: list[str] = field(default_factory=list[str])

    def follow(self, page: Path) -> None:
        for piece in pieces(page):
            at = f"{page.name}:{piece.line}"
            assert piece.language in LANGUAGES, at
            if piece.title and (ROOT / piece.title).exists():
                assert is_part(piece.text, (ROOT / piece.title).read_text("utf-8")), at
            elif piece.title:
                Path(piece.title).parent.mkdir(parents=True, exist_ok=True)
                Path(piece.title).write_text(piece.text, "utf-8")
            elif piece.needs and importlib.util.find_spec(piece.needs) is None:
                self.left_out.append(f"{at} needs {piece.needs}")
            elif piece.language in ("python", "pycon"):
                self.python(piece, at)
            elif piece.language == "console":
                self.console(piece, at)
            else:
                assert piece.language in ("text", "mlir", "ptx", "sh"), at
                if piece.language == "sh":
                    self.prepared(piece, at)

    def python(self, piece: Piece, at: str) -> None:
        if ">>>" not in piece.text:
            with warnings.catch_warnings():  # an example may leave a file to the collector
                warnings.simplefilter("ignore", ResourceWarning)
                exec(compile(piece.text, at, "exec"), self.names)
            return
        test = doctest.DocTestParser().get_doctest(piece.text, self.names, at, at, 0)
        results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
        self.names.update(test.globs)
        assert results.attempted > 0
        assert results.failed == 0, at

    def console(self, piece: Piece, at: str) -> None:
        """Its commands; without what a first one makes the others of a block are left out too."""
        lines = commands(piece.text, at)
        for program in OUTSIDE:
            asked = any(line.startswith(f"{program} ") for line, _ in lines)
            if asked and shutil.which(program) is None:
                self.left_out.append(f"{at} needs {program}")
                return
        on_gpu = any("--on gpu" in line for line, _ in lines)
        if on_gpu and (reason := driver.available()) is not None:
            self.left_out.append(f"{at} needs a GPU ({reason})")
            return
        for line, expected in lines:
            self.command(line, expected, at)

    def prepared(self, piece: Piece, at: str) -> None:
        """What is done before: make is asked, the file that is activated is what it has made."""
        for line in piece.text.splitlines():
            if line.startswith("source "):
                assert line == "source .venv/bin/activate", at
                assert "VENV := .venv\n" in (ROOT / "Makefile").read_text("utf-8")
            else:
                assert line.startswith("make "), f"{at}: {line}"
                self.command(line, "...\n", at)

    def command(self, line: str, expected: str, at: str) -> None:
        program, *arguments = shell_words(line)
        target = Path(arguments[-1]) if ">" in arguments[-2:-1] else None
        arguments = arguments if target is None else arguments[:-2]
        assert program in (*IN_PROCESS, *OUTSIDE, "python", "make"), f"{at}: {line}"
        self.capture.readouterr()
        if program in (*OUTSIDE, "make"):  # make is asked what it would do
            words = [program, *(["--dry-run"] if program == "make" else []), *arguments]
            folder = ROOT if program == "make" else None
            done = subprocess.run(words, check=False, capture_output=True, text=True, cwd=folder)
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code = script(arguments) if program == "python" else IN_PROCESS[program](arguments)
            out, err = self.capture.readouterr()
        if target is not None:
            assert code == 0, f"{at}: $ {line}\n{err}"
            target.write_text(out, "utf-8")
            out = ""
        printed = out or err  # findings are on stdout, errors on stderr
        failed = f"{at}: $ {line}\n{printed}\n{err}"
        assert re.fullmatch(pattern(expected), printed), failed
        assert code == 0 or re.search(r"error|FAIL|missed|remark", expected), failed


def shell_words(line: str) -> list[str]:
    """A command's words. What a shell would take for more than words is an error, but `> FILE`."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    seen, found = list(lexer), shlex.split(line)
    assert seen == found, f"{line}: a shell reads {seen}"
    assert not {"|", "&", ";", "<", "(", ")"} & set(found), line
    return found


def is_part(excerpt: str, text: str) -> bool:
    """Whether lines stand one behind the other in a text, with others between where `...` is."""
    wanted = "\n".join(line.strip() for line in excerpt.strip().splitlines())
    found = "\n".join(line.strip() for line in text.splitlines())
    parts = [re.escape(part) for part in wanted.split("\n...\n")]
    return re.search(r"^" + r"$.*^".join(parts) + r"$", found, re.MULTILINE | re.DOTALL) is not None


def pictures(page: Path) -> list[Path]:
    """The pictures that a page shows, next to it."""
    shown = re.findall(r"\]\((images/[\w.-]+\.svg)\)", page.read_text("utf-8"))
    return [page.parent / name for name in shown]


def script(arguments: list[str]) -> int:
    before = sys.argv
    sys.argv = arguments
    try:
        if arguments[0] == "-m":
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(arguments[0], run_name="__main__")
    except SystemExit as left:
        return int(left.code or 0)
    finally:
        sys.argv = before
    return 0


def commands(text: str, at: str) -> list[tuple[str, str]]:
    """(command, what it prints) in order; a command goes on behind a backslash."""
    parts = re.split(r"^\$ ((?:.*\\\n)*.*)\n", text, flags=re.MULTILINE)
    assert not parts[0].strip(), f"{at} begins with no `$ ` line"
    lines = [line.replace("\\\n", "") for line in parts[1::2]]
    return list(zip(lines, parts[2::2], strict=True))


def pattern(expected: str) -> str:
    """A regular expression for an output in which `...` stands for anything."""
    lines = [
        r"(?:.*\n)*" if line.strip() == "..." else re.escape(line).replace(r"\.\.\.", ".*") + r"\n"
        for line in expected.splitlines()
    ]
    return "".join(lines)


@contextmanager
def as_it_was(folder: Path) -> Generator[None]:
    """Instructions, targets, opcodes and modules that a page adds are gone behind it."""
    opcodes = list(OPCODES.rows)
    modules = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        with isa.using(isa.current()):
            yield
    finally:
        sys.path.remove(str(folder))
        for row in [row for row in OPCODES.rows if row not in opcodes]:
            OPCODES.remove(row)
        for name in set(sys.modules) - modules:
            file = getattr(sys.modules[name], "__file__", None)
            if file is not None and Path(file).is_relative_to(folder):
                del sys.modules[name]
