"""docs/extending.md: its code is that of a package, its commands print what it says."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

from fragir.passes.stages import DIALECTS, STAGES
from tests.docs.sessions import commands, pattern
from tests.docs.test_docs import Block, blocks
from tests.extending.installed import Result, install, run

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extending.md"
PACKAGE = Path(__file__).with_name("tilekit")
SOURCES = [path.read_text() for path in sorted(PACKAGE.glob("**/*.*")) if path.suffix != ".pyc"]
CODE = blocks(PAGE, "python", "toml")
LINES = [
    pair for b in blocks(PAGE, "console") for pair in commands(b.text, f"{PAGE.name}:{b.line}")
]


def is_program(block: Block) -> bool:
    """What is run, and is no part of the package."""
    return "import fragir" in block.text


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> list[Result]:
    folder = tmp_path_factory.mktemp("page")
    install(PACKAGE, folder / "site")
    shutil.copytree(PACKAGE / "programs", folder / "programs")
    (folder / "examples").symlink_to(ROOT / "examples")
    np.save(folder / "x.npy", np.arange(32, dtype=np.uint32))
    text = (PACKAGE / "programs" / "mean.ptx").read_text().replace("hadd.u32", "hadd.rn.u32")
    (folder / "programs" / "misspelt.ptx").write_text(text)
    programs = [("python", block.text) for block in CODE if is_program(block)]
    assert len(programs) == 1
    found = run(folder / "site", [*(shlex.split(line) for line, _ in LINES), *programs], folder)
    assert [result.code for result in found[len(LINES) :]] == [0]
    return found


@pytest.mark.parametrize("index", range(len(LINES)), ids=[line[:50] for line, _ in LINES])
def test_commands(results: list[Result], index: int) -> None:
    result, (line, expected) = results[index], LINES[index]
    printed = result.out or result.err
    assert re.fullmatch(pattern(expected), printed), f"$ {line}\n{printed}"


def test_the_code_is_that_of_the_package() -> None:
    assert len(CODE) > 6
    for block in CODE:
        if not is_program(block):
            assert any(block.text in source for source in SOURCES), f"line {block.line}"


def test_lists_are_complete() -> None:
    text = PAGE.read_text()
    for names in (sorted(DIALECTS), [stage.name for stage in STAGES]):
        assert ", ".join(f"`{name}`" for name in names) in text
