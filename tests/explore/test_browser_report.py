"""A run says whether tests in a browser ran, and `.ci/run` says it last and ends as `make` does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.browser import NO_BROWSER, summary

ROOT = Path(__file__).resolve().parents[2]


def report(
    outcome: str, when: str = "call", *, marked: bool = True, why: str = ""
) -> pytest.TestReport:
    words = ("tests/x.py", 1, f"Skipped: {why}") if why else None
    keywords = {"browser": 1} if marked else {}
    return pytest.TestReport("x", ("x", 1, "x"), keywords, outcome, words, when)  # type: ignore[arg-type]


def test_what_is_said() -> None:
    passed = [report("passed", when) for when in ("setup", "call", "teardown")]
    assert summary([*passed, *passed, report("failed")]) == (
        "browser tests: 2 passed, 1 failed, 0 skipped"
    )
    skipped = [report("skipped", "setup", why=NO_BROWSER)] * 3
    assert summary(skipped) == f"browser tests: 0 passed, 0 failed, 3 skipped ({NO_BROWSER})"
    assert summary([report("passed", marked=False)]) is None


def ci(folder: Path, make: str, *programs: str) -> subprocess.CompletedProcess[str]:
    """`.ci/run` where there are a `make` and these programs, and of apt-get one that fails."""
    tools = folder / "bin"
    tools.mkdir()
    for name in ("bash", "cat", "dirname", "env", "id", "mktemp", "rm", "timeout"):
        (tools / name).symlink_to(str(shutil.which(name)))
    for name, script in (("make", make), ("apt-get", "exit 1"), *((p, "exit 0") for p in programs)):
        (tools / name).write_text(f"#!/usr/bin/env bash\n{script}\n")
        (tools / name).chmod(0o755)
    environment = {"PATH": str(tools), "TMPDIR": str(folder)}
    return subprocess.run(
        [str(ROOT / ".ci" / "run")], env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("code", [0, 3])
def test_ci_says_it_last(tmp_path: Path, code: int) -> None:
    line = "browser tests: 2 passed, 0 failed, 0 skipped"
    make = (
        f'echo "$@"; echo "{line}" > "$FRAGIR_BROWSER_REPORT"; echo "5 passed in 1s"; exit {code}'
    )
    done = ci(tmp_path, make, "chromium")
    assert (done.returncode, done.stderr) == (code, "")
    assert done.stdout.splitlines() == ["test", "5 passed in 1s", line]


def test_ci_goes_on_without_a_browser(tmp_path: Path) -> None:
    done = ci(tmp_path, "exit 2")
    assert (done.returncode, done.stderr) == (2, "")
    *before, last = done.stdout.splitlines()
    assert last == "browser tests: none ran, the run ended before them"
    root = ["chromium could not be installed; tests in a browser are skipped"]
    assert before == (root if os.getuid() == 0 else [])
