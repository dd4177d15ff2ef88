"""Packages that extend fragir, installed beside it, and what the tools then do."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Runs commands one after the other: much faster than a process for each.
_DRIVER = """\
import contextlib, io, json, sys
from fragir.cli import main, opt

def run(program, arguments):
    if program == "python":
        exec(arguments[0], {"__name__": "program"})
        return 0
    return {"fragir": main.main, "fragir-opt": opt.main}[program](arguments)

results = []
for program, *arguments in json.load(sys.stdin):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = run(program, arguments)
        except SystemExit as left:  # --help
            code = left.code
    results.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(results))
"""


@dataclass(frozen=True)
class Result:
    """What a command left behind."""

    code: int
    out: str
    err: str


def install(package: Path, site: Path) -> None:
    """What `pip install --target SITE PACKAGE` leaves, as far as Python looks at it."""
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    files = {str(path.relative_to(package)): path.read_text() for path in package.glob("*/**/*.py")}
    write(site, project["name"], files, project["entry-points"])


def write(
    site: Path, name: str, files: Mapping[str, str], points: Mapping[str, Mapping[str, str]]
) -> None:
    """Installs a package from its files and entry points."""
    for path, text in files.items():
        (site / path).parent.mkdir(parents=True, exist_ok=True)
        (site / path).write_text(text)
    info = site / f"{name}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\n")
    lines: list[str] = []
    for group, entries in points.items():
        lines += [f"[{group}]", *(f"{key} = {value}" for key, value in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def run(site: Path, commands: Sequence[Sequence[str]], folder: Path) -> list[Result]:
    """Runs `fragir ...`, `fragir-opt ...` and `python CODE` where the packages are installed."""
    environment = {**os.environ, "PYTHONPATH": str(site), "FRAGIR_CACHE": str(folder / ".cache")}
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER],
        cwd=folder,
        env=environment,
        input=json.dumps([list(command) for command in commands]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [Result(*each) for each in json.loads(done.stdout)]
