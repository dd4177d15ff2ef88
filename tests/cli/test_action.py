"""action.yml: its steps as GitHub runs them, in a folder of their own."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fragir.cli import action
from fragir.errors import FragirError
from fragir.judge.sarif import log

yaml: Any = pytest.importorskip("yaml", reason="PyYAML is not installed")
ROOT = Path(__file__).resolve().parents[2]
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
NORM = (ROOT / "examples/judged/norm.ptx").read_text("utf-8")
STORE = "    st.global.f32 [%rd5], %f3;\n"
CASE = """
import numpy as np
from fragir.judge import Case, KernelCall

def cases(rng):
    x = rng.normal(size=(2, 40)).astype(np.float32)
    y = np.empty_like(x)
    eps = float(np.float32(1e-5))
    call = KernelCall("norm", [x, y, 40, eps], grid=2, block=32)
    norm = lambda x: x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps)
    yield Case(call, inputs=[x], outputs=[y], reference=norm)
"""


def step_environment(step: dict[str, Any], inputs: dict[str, str]) -> dict[str, str]:
    """What GitHub puts in place of `${{ inputs.NAME }}`, defaults too."""
    found: dict[str, str] = {}
    for name, text in step["env"].items():
        (key,) = re.findall(r"^\$\{\{ inputs\.(\w+) \}\}$", text)
        default: str = ACTION["inputs"][key].get("default", "")
        found[name] = inputs.get(key, default)
    return found


def run_step(step: dict[str, Any], folder: Path, inputs: dict[str, str]) -> Any:
    """As a runner does: bash with -e and pipefail, the files of outputs and of the summary."""
    assert step["shell"] == "bash"
    github = {
        "GITHUB_ACTION_PATH": str(ROOT),
        "GITHUB_OUTPUT": str(folder / "output"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
        "RUNNER_TEMP": str(folder / "temp"),
    }
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
        cwd=folder / "work",
        env={**os.environ, **github, **step_environment(step, inputs)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout with two kernels and a case, and where the first step installs to."""
    (tmp_path / "work" / "kernels").mkdir(parents=True)
    (tmp_path / "work/kernels/good.ptx").write_text(NORM)
    (tmp_path / "work/kernels/bad.ptx").write_text(NORM.replace(STORE, ""))
    (tmp_path / "work/case.py").write_text(CASE)
    programs = tmp_path / "temp/fragir/bin"
    programs.mkdir(parents=True)
    script = f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {sys.executable} "$@"\n'
    (programs / "python").write_text(script)
    (programs / "python").chmod(0o755)
    return tmp_path


def outputs(folder: Path) -> dict[str, str]:
    lines = (folder / "output").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


INSTALL, JUDGE = ACTION["runs"]["steps"]


def test_the_action_is_one_of_githubs() -> None:
    assert ACTION["runs"]["using"] == "composite"
    assert {"kernels", "cases", "sarif", "version"} <= set(ACTION["inputs"])
    used = {name for step in (INSTALL, JUDGE) for name in step["env"]}
    assert {f"INPUT_{name.upper()}" for name in ACTION["inputs"]} == used
    for name, one in ACTION["outputs"].items():
        assert one["value"] == f"${{{{ steps.judge.outputs.{name} }}}}"
    for step in (INSTALL, JUDGE):  # an input is never part of a shell's text
        assert "${{" not in step["run"]
    assert not any("uses" in step for step in ACTION["runs"]["steps"])


@pytest.mark.parametrize(("version", "wanted"), [("", str(ROOT)), ("fragir==1; x", "fragir==1; x")])
def test_what_is_installed(folder: Path, version: str, wanted: str) -> None:
    """The commands of the first step, by a Python that notes them."""
    noted = folder / "noted"
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {shlex.quote(str(noted))}\n')
    python.chmod(0o755)
    (folder / "temp/fragir/bin/python").write_bytes(python.read_bytes())
    done = run_step(INSTALL, folder, {"python": str(python), "version": version})
    assert done.returncode == 0, done.stderr
    words = noted.read_text().splitlines()
    assert words[:3] == ["-m", "venv", str(folder / "temp/fragir")]
    assert words[3:6] == ["-m", "pip", "install"]
    assert words[-1] == wanted


def test_good_and_bad_kernels(folder: Path) -> None:
    inputs = {"kernels": "kernels/*.ptx\n", "cases": "case.py:cases", "seed": "3"}
    done = run_step(JUDGE, folder, inputs)
    assert done.returncode == 1, done.stderr
    said = outputs(folder)
    assert said["verdict"] == "fail"
    assert json.loads(said["verdicts"]) == {
        **{"pass": 1, "fail": 1, "incomplete": 0},
        **{"unsupported": 0, "no verdict": 0},
    }
    sarif = json.loads((folder / "work" / said["sarif"]).read_text())
    (run,) = sarif["runs"]
    assert run["properties"]["verdicts"] == {"kernels/bad.ptx": "fail", "kernels/good.ptx": "pass"}
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert {one["ruleId"] for one in run["results"]} == set(rules) == {"unwritten"}
    results = (folder / "work" / said["results"]).read_text().splitlines()
    assert [json.loads(line)["verdict"]["seed"] for line in results] == [3, 3]
    table = (folder / "summary.md").read_text()
    assert "| kernels/good.ptx | case.py:cases | pass | exact (2^-60) | every |" in table
    assert "| kernels/bad.ptx | case.py:cases | fail |" in table

    done = run_step(
        JUDGE, folder, {**inputs, "kernels": "kernels/good.ptx", "sarif": "other.sarif"}
    )
    assert done.returncode == 0
    assert outputs(folder)["sarif"] == "other.sarif"
    assert (folder / "work/other.sarif").exists()


def test_a_broken_case_is_no_verdict(folder: Path) -> None:
    (folder / "work/broken.py").write_text("def cases(rng):\n    yield 1 / 0\n")
    inputs = {"kernels": "kernels/good.ptx", "cases": "broken.py:cases", "accept": "incomplete"}
    done = run_step(JUDGE, folder, inputs)
    assert done.returncode == 1
    assert json.loads(outputs(folder)["verdicts"])["no verdict"] == 1
    sarif = json.loads((folder / "work/fragir.sarif").read_text())
    (found,) = sarif["runs"][0]["results"]
    assert (found["ruleId"], found["level"]) == ("no verdict", "error")
    assert "ZeroDivisionError" in found["message"]["text"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "0 lines of kernels"),
        ({"kernels": "a\nb\nc", "cases": "x:y\nx:z"}, "3 lines of kernels and 2 of cases"),
        ({"kernels": "none/*.ptx", "cases": "x:y"}, "no file is called none/*.ptx"),
        ({"kernels": "kernels/good.ptx", "cases": "x:y", "seed": "-1"}, "'-1' is no seed"),
        ({"kernels": "kernels/good.ptx", "cases": "x:y", "accept": "all"}, "no verdict all"),
    ],
)
def test_wrong_inputs(
    folder: Path,
    inputs: dict[str, str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(folder / "work")
    given = {f"INPUT_{name.upper()}": text for name, text in inputs.items()}
    assert action.main(given) == 2
    said = capsys.readouterr().out
    assert said.startswith("::error::")
    assert message in said


def test_cases_of_their_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "work")
    given = {"INPUT_KERNELS": "kernels/good.ptx\n kernels/bad.ptx", "INPUT_CASES": "a:b\nc:d\n"}
    assert [(one["kernel"], one["case"]) for one in action.lines(given)] == [
        ("kernels/good.ptx", "a:b"),
        ("kernels/bad.ptx", "c:d"),
    ]
    with pytest.raises(FragirError):
        action.lines({**given, "INPUT_CASES": "a:b\nc:d\ne:f"})


def test_names_of_others_are_no_markup() -> None:
    one = {"kernel": "a|b.ptx", "case": "`c`:<d>", "verdict": None, "error": "e\n| f"}
    table = action.summary([one]).splitlines()
    assert len(table) == 5
    assert len(re.findall(r"(?<!\\)\|", table[-1])) == 8
    assert "<" not in table[-1]


def test_a_log_of_one_kernel_and_of_none() -> None:
    assert log([], "1")["runs"][0]["results"] == []
    assert log([("k.ptx", None, "e")], "1")["runs"][0]["properties"] == {"verdict": "no verdict"}
