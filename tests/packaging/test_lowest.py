"""The lowest versions that pyproject.toml declares work, on every Python that is installed.

An environment for each: the wheel, one for all of them, the lowest version of what it requires,
pytest. There every module is imported, README's commands are run, and tests/cli; on the running
Python with the lowest versions of the extras too, on the others those of tests/cli that can differ.
What is pinned exactly (NVIDIA's tools) is what the running environment has: it is linked, not
installed anew.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

pytestmark = pytest.mark.packaging

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNNING = f"{sys.version_info.major}.{sys.version_info.minor}"
OTHERS = [f"3.{minor}" for minor in range(12, 16) if f"3.{minor}" != RUNNING]
EXTRAS = ("gpu", "sweep")
TOOLS = ("pytest", "pytest-xdist", "jsonschema", "ml-dtypes")
# The files of tests/cli that other interpreters run: where click, numpy's files, rich and Python's
# own library decide what comes out. The rest computes, which is the same everywhere.
OTHERS_RUN = ("rules", "json", "docs", "arguments", "assemble", "emulate", "sources", "doctor")

BATCH = (ROOT / "tests" / "repeatable" / "batch.py", "--one-of", "3")

IMPORT_EVERYTHING = """\
import importlib, pkgutil, warnings
warnings.simplefilter("error")
import fragir
for module in pkgutil.walk_packages(fragir.__path__, "fragir."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)
print(fragir.__file__)
"""


def requirements(python: str, extras: Sequence[str] = ()) -> Iterator[Requirement]:
    """What the project requires on that Python, and these extras of it."""
    optional: dict[str, list[str]] = PROJECT["optional-dependencies"]
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in optional[extra])]
    machine: dict[str, Any] = {**default_environment(), "python_version": python}
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate(machine):
            yield requirement


def lowest(requirement: Requirement) -> str:
    """The one version that the requirement's lower bound names."""
    (specifier,) = requirement.specifier
    assert specifier.operator in (">=", "=="), requirement
    return specifier.version


def is_nvidia(requirement: Requirement) -> bool:
    return requirement.name.startswith("nvidia-")


@cache
def interpreter(version: str) -> Path | None:
    """A Python of that version which can make environments; None where there is none."""
    if version == RUNNING:
        return Path(sys.executable)
    folders = [*os.get_exec_path(), *map(str, Path.home().glob(".pyenv/versions/*/bin"))]
    script = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
    for folder in folders:
        path = Path(folder, f"python{version}")
        if path.is_file() and os.access(path, os.X_OK):
            done = subprocess.run([path, "-c", script], capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.strip() == version:
                return path
    return None


def run(command: Sequence[str | Path], cwd: Path, **environment: str) -> str:
    """Runs a command without what points into the checkout; stdout and stderr."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL", "FRAGIR"))
    }
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**kept, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout[-5000:]}"
    return done.stdout


def linked(folder: Path) -> Path:
    """A folder for `sys.path` with NVIDIA's tools, as they are installed here, and nothing else."""
    wanted = {
        canonicalize_name(each.name)
        for each in (
            *requirements(RUNNING),
            *requirements(RUNNING, ("disassembler", "ptxas12")),
        )
        if is_nvidia(each)
    }
    folder.mkdir()
    for distribution in distributions():
        if canonicalize_name(distribution.name) in wanted:
            information = _information(distribution)
            (folder / information.name).symlink_to(information)
            home = information.parent / "nvidia"
            if not (folder / "nvidia").exists():
                (folder / "nvidia").symlink_to(home)
            assert (folder / "nvidia").resolve() == home.resolve()
    return folder


def _information(distribution: Distribution) -> Path:
    """The `.dist-info` of an installed package."""
    record = next(file for file in distribution.files or () if file.name == "METADATA")
    return Path(str(distribution.locate_file(record))).parent


@pytest.fixture(scope="module", params=[RUNNING, *OTHERS])
def environment(
    request: pytest.FixtureRequest,
    built: tuple[Path, Path],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Path]:
    """A version of Python and the `bin` of an environment with the lowest versions."""
    version: str = request.param
    base = interpreter(version)
    if base is None:
        pytest.skip(f"no Python {version} is installed")
    folder = tmp_path_factory.mktemp("lowest")
    run([base, "-m", "venv", "--without-pip", "venv"], folder)
    python = folder / "venv" / "bin" / "python"
    extras = EXTRAS if version == RUNNING else ()
    low: dict[str, str] = {
        canonicalize_name(each.name): lowest(each)
        for each in requirements(version, extras)
        if not is_nvidia(each)
    }
    constraints = folder / "constraints.txt"
    constraints.write_text("".join(_others(low)))
    options = ["--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    install = [sys.executable, "-m", "pip", "--python", python, "install", *options]
    pinned = [f"{name}=={number}" for name, number in low.items()]
    run([*install, "--constraint", constraints, *pinned, *TOOLS], folder)
    run([*install, "--no-deps", built[1]], folder)
    site = run([python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], folder)
    tools = linked(folder / "tools")
    Path(site.strip(), "nvidia-tools.pth").write_text(f"{tools}\n")
    found = run([python, "-c", VERSIONS, *low], folder).split()
    assert [_release(each) for each in found] == [_release(each) for each in low.values()]
    return version, python.parent


VERSIONS = """\
import sys
from importlib.metadata import version
print(*map(version, sys.argv[1:]))
"""


def _release(version: str) -> tuple[int, ...]:
    """2 and 2.0.0 are one version."""
    numbers = [int(part) for part in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _others(low: dict[str, str]) -> Iterator[str]:
    """The lines of constraints.txt for what is not at its lowest; dask follows distributed."""
    for line in (ROOT / "constraints.txt").read_text().splitlines(keepends=True):
        name = canonicalize_name(line.partition("==")[0])
        if not line.startswith("#") and name not in low and name != "dask":
            yield line


def test_imports(environment: tuple[str, Path], tmp_path: Path) -> None:
    place = run([environment[1] / "python", "-c", IMPORT_EVERYTHING], tmp_path)
    assert not Path(place.strip()).is_relative_to(ROOT)


def test_core(environment: tuple[str, Path], built: tuple[Path, Path], tmp_path: Path) -> None:
    """The compiled core is one library for every Python."""
    script = "from fragir.emulator.native.library import core; print(core())"
    wanted = "numpy" if built[1].stem.endswith("-any") else "compiled"
    assert run([environment[1] / "python", "-c", script], tmp_path).split() == [wanted]


def test_readme(environment: tuple[str, Path], tmp_path: Path) -> None:
    """Every `fragir` command of the README; tests/docs compares what they print."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = re.findall(r"^\$ (fragir .*)$", (ROOT / "README.md").read_text(), re.M)
    assert len(commands) >= 5
    for line in commands:
        program, *words = shlex.split(line)
        command = [environment[1] / program, *words]
        if words[0] == "check":  # it finds a race, which makes the exit code 1
            with pytest.raises(AssertionError, match=r"error +race"):
                run(command, tmp_path, FRAGIR_CACHE="off")
        else:
            assert run(command, tmp_path, FRAGIR_CACHE="off") or "-o" in words


@pytest.fixture(scope="module")
def outputs() -> dict[str, str]:
    """What the tree makes of many inputs on the running Python: a digest of each."""
    return json.loads(run([sys.executable, *BATCH], ROOT))


def test_same_outputs(
    environment: tuple[str, Path], outputs: dict[str, str], tmp_path: Path
) -> None:
    """PTX, messages and findings, byte for byte; click words its own refusals."""
    found: dict[str, str] = json.loads(run([environment[1] / "python", "-P", *BATCH], tmp_path))
    assert found.keys() == outputs.keys()
    different = [name for name in outputs if found[name] != outputs[name]]
    assert [name for name in different if name not in ("help", "a wrong option")] == []


def test_command_line(environment: tuple[str, Path], tmp_path: Path) -> None:
    """tests/cli, with the tests of this tree and the package of the environment."""
    version, programs = environment
    folder = ROOT / "tests" / "cli"
    files = [folder / f"test_{name}.py" for name in OTHERS_RUN]
    chosen = [folder] if version == RUNNING else files
    command = [programs / "python", "-P", "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
    command += ["-o", "pythonpath="]  # the package is the installed one, not the tree's
    said = run([*command, "--rootdir", ROOT, *chosen], tmp_path)
    passed = re.search(r"(\d+) passed", said)
    assert passed is not None
    assert int(passed[1]) > (400 if version == RUNNING else 200)


def test_extras(environment: tuple[str, Path], tmp_path: Path) -> None:
    """What the extras' lowest versions are used for starts; there need be no GPU."""
    version, programs = environment
    if version != RUNNING:
        pytest.skip(f"the extras are tried on Python {RUNNING}")
    script = "from fragir.toolchain import driver; print(driver.available() or 'a GPU')"
    said = run([programs / "python", "-c", script], tmp_path)
    assert "not installed" not in said
    only = "only=mma.sync.aligned.m8n8k4.row.col.f64.*"
    sweep = [programs / "fragir", "sweep", "validation", "--set", only, "--workers", "1"]
    assert run([*sweep, "-o", "results.jsonl"], tmp_path)
