"""Golden tests: what passes make of the programs in this folder.

The first line of `NAME.mlir` says what to run, like `// RUN: -p frag-bufferize`; `NAME.out` holds
what must come out. `NAME_errors.mlir` holds programs that are refused, separated by `// -----`;
what stands before the first separator belongs to each. `NAME_errors.out` has a line for each:
line and column in the file, and the message. `pytest tests/golden --update-golden` writes the
`.out` files, to be read before they are committed.

These files pin text: a diff names what has changed. That the text is right is judged elsewhere:
`test_meaning.py` runs what stands in `.out` and holds it against the reference, ptxas assembles
each `.ptx`, and tests/families and tests/properties run what single operations become.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from fragir.cli.opt import FragirOptMain
from fragir.mlir import diagnostics

SEPARATOR = "// -----\n"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write the expected outputs")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix != ".mlir":
        return None
    # pytest's types leave from_parent open
    return GoldenFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


class GoldenFile(pytest.File):
    """One program, or one file of refused programs."""

    def collect(self) -> Iterator[pytest.Item]:
        kind = ErrorsItem if self.path.stem.endswith("_errors") else OutputItem
        yield kind.from_parent(self, name=self.path.stem)  # pyright: ignore[reportUnknownMemberType]


class GoldenItem(pytest.Item):
    """Compares what a file gives with what is beside it."""

    def runtest(self) -> None:
        found, wanted = self.outcome(), self.path.with_suffix(".out")
        if self.config.getoption("--update-golden", default=False):
            wanted.write_text(found)
        assert found == wanted.read_text(), f"{self.path.name} gives something else"

    def outcome(self) -> str:
        raise NotImplementedError

    def arguments(self) -> list[str]:
        """What the first line says."""
        first, _, _ = self.path.read_text().partition("\n")
        assert first.startswith("// RUN: "), f"{self.path.name} starts with // RUN:"
        return first.removeprefix("// RUN: ").split()

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class OutputItem(GoldenItem):
    """The printed module. It must be parseable, and so must what each single pass prints."""

    def outcome(self) -> str:
        text, arguments = self.path.read_text(), self.arguments()
        found = run(text, arguments)
        assert run(found, []) == found, "printed, parsed and printed again, it differs"
        if "-p" in arguments:
            place = arguments.index("-p") + 1
            rest = [*arguments[: place - 1], *arguments[place + 1 :]]
            for name in arguments[place].split(","):
                text = run(text, ["-p", name, *rest])
            assert text == found, "passes one at a time give something else"
        return found


class ErrorsItem(GoldenItem):
    """The message for every program of the file."""

    def outcome(self) -> str:
        shared, *programs = self.path.read_text().split(SEPARATOR)
        lines: list[str] = []
        before = shared.count("\n")
        for program in programs:
            before += 1
            padded = shared + "\n" * (before - shared.count("\n")) + program
            lines.append(refusal(padded, self.arguments()))
            before += program.count("\n")
        return "".join(f"{line}\n" for line in lines)


def run(text: str, arguments: list[str]) -> str:
    """What fragir-opt prints for a program on its standard input."""
    given, out = io.TextIOWrapper(io.BytesIO(text.encode())), io.StringIO()
    with mock.patch.object(sys, "stdin", given), contextlib.redirect_stdout(out):
        FragirOptMain("fragir-opt", arguments).run()
    return out.getvalue()


def refusal(text: str, arguments: list[str]) -> str:
    """Place and words of the error."""
    try:
        run(text, arguments)
    except Exception as error:
        known = diagnostics.from_exception(error, text)
        return f"{known.line}:{known.col}: {known.sentence}"
    return "is accepted"
