"""The process of a case file: what it is started with, where there is a sandbox and where not."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from fragir.judge import BrokenCaseError, CaseLimits
from fragir.judge.sandbox import prepare

ROOT = Path(__file__).resolve().parents[2]
CASES = f"{ROOT / 'examples/judged/cases.py'}:norms"
#: Stands for bwrap: notes its words, and runs the command behind its options.
FAKE = """#!/bin/sh
echo "$@" >> {log}
{answer}
while [ "$1" != true ] && [ "$1" != {python} ]; do shift; done
exec "$@"
"""


def fake(folder: Path, monkeypatch: pytest.MonkeyPatch, answer: str = "") -> Path:
    log = folder / "log"
    script = folder / "bwrap"
    words = {"log": shlex.quote(str(log)), "python": shlex.quote(sys.executable)}
    script.write_text(FAKE.format(answer=answer, **words))
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return log


def test_a_sandbox_is_used_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = fake(tmp_path, monkeypatch)
    prepared = prepare(CASES, 1, CaseLimits())
    assert prepared.sandbox == "bwrap"
    assert len(prepared.cases) == 6
    tried, ran = (line.split() for line in log.read_text().splitlines())
    assert tried[-1] == "true"
    for option in ("--unshare-all", "--die-with-parent", "--new-session"):
        assert option in ran
    bound = ran[ran.index("--bind") + 1 :][:2]
    assert bound == [ran[-1]] * 2  # the folder of the answer, and nothing else
    assert ran.count("--bind") == 1
    assert ran[ran.index("--ro-bind") + 1 :][:2] == ["/", "/"]


@pytest.mark.parametrize("answer", ["exit 1", "kill -9 $$"])
def test_a_machine_that_allows_no_sandbox(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(tmp_path, monkeypatch, answer)
    assert prepare(CASES, 1, CaseLimits()).sandbox == "none"


def nosy(folder: Path, text: str) -> str:
    """A case file that raises what it has found out."""
    path = folder / "nosy.py"
    path.write_text(f"import os\ndef cases(rng):\n    raise RuntimeError({text})\n    yield\n")
    return f"{path}:cases"


def test_the_environment_is_not_its_business(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FRAGIR_TEST_SECRET", "a secret")
    with pytest.raises(BrokenCaseError, match="RuntimeError: nothing"):
        prepare(nosy(tmp_path, "os.environ.get('FRAGIR_TEST_SECRET', 'nothing')"), 1, CaseLimits())


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="there is no bwrap here")
def test_a_sandbox_holds(tmp_path: Path) -> None:
    if prepare(CASES, 1, CaseLimits()).sandbox == "none":
        pytest.skip("this machine allows no sandbox")
    case = nosy(tmp_path, f"open({str(tmp_path / 'left')!r}, 'w').name")
    with pytest.raises(BrokenCaseError, match="Read-only file system"):
        prepare(case, 1, CaseLimits())
    assert not (tmp_path / "left").exists()


def test_limits(tmp_path: Path) -> None:
    text = "str(__import__('resource').getrlimit(__import__('resource').RLIMIT_AS)[0])"
    with pytest.raises(BrokenCaseError, match=f"RuntimeError: {3 << 30}$"):
        prepare(nosy(tmp_path, text), 1, CaseLimits(20.0, 3 << 30))


def test_the_working_folder_stands_for_no_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "resource.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path not in ("", str(tmp_path))])
    assert len(prepare(CASES, 1, CaseLimits()).cases) == 6
