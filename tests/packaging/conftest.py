"""The package, built once, and an environment with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.building import ROOT, build, copy_tree, run


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("links")
    return build(copy_tree(folder / "tree", links=True))


@pytest.fixture(scope="session")
def environment(built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `bin` of an environment with nothing but the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    run([sys.executable, "-m", "venv", "venv"], folder)
    programs = folder / "venv" / "bin"
    pip = [programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, "--constraint", ROOT / "constraints.txt", built[1]], folder)
    return programs
