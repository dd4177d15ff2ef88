"""What the package declares agrees with the tree: nothing is forgotten."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

from fragir.cli.main import main

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOMES = {"fragir": "fragir", "fragir.dialects": "dialects", "fragir.passes": "passes"}


def test_every_package_is_listed() -> None:
    """An editable install finds a forgotten one all the same; a wheel does not."""
    found: set[str] = set()
    for package, home in HOMES.items():
        for file in (ROOT / home).rglob("__init__.py"):
            parts = file.parent.relative_to(ROOT / home).parts
            found.add(".".join([package, *parts]))
    assert found == set(PROJECT["tool"]["setuptools"]["packages"])


@pytest.mark.parametrize("name", ["dialects", "passes"])
def test_links(name: str) -> None:
    """Type checkers find `fragir.dialects` and `fragir.passes` through links."""
    link = ROOT / "fragir" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"


def requirements() -> list[str]:
    project = PROJECT["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in extras.values() for line in extra)]


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    entries = [line.split("==") for line in lines if line and not line.startswith("#")]
    return {normal(name): version for name, version in entries}


def test_constraints_pin_every_requirement() -> None:
    """Also that every line of constraints.txt has the form NAME==VERSION: no addresses."""
    pinned = pins()
    for requirement in requirements():
        match = re.match(r"([A-Za-z0-9._-]+)(\[[^\]]*\])?(?:==([0-9.]+))?", requirement)
        assert match is not None
        name, version = normal(match[1]), match[3]
        if name == "fragir":
            continue
        assert name in pinned, f"run `make constraints`: {name} is not pinned"
        if version is not None:
            assert pinned[name] == version
    assert all(re.fullmatch(r"[0-9][0-9A-Za-z.+]*", version) for version in pinned.values())


def test_xdsl_is_pinned_exactly() -> None:
    assert any(re.fullmatch(r"xdsl==\d+\.\d+\.\d+", r) for r in requirements())


def test_nvidia_tools_are_for_linux_only() -> None:
    nvidia = [r for r in requirements() if r.startswith(("nvidia", "cuda"))]
    assert len(nvidia) >= 5
    assert all("sys_platform == 'linux'" in r for r in nvidia)


def test_continuous_integration_runs_what_the_makefile_does() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    assert "make test" in script.read_text()


def test_classifiers_name_the_versions_that_are_tried() -> None:
    """test_lowest.py tries each that is installed."""
    lowest = re.fullmatch(r">=3\.(\d+)", PROJECT["project"]["requires-python"])
    assert lowest is not None
    prefix = "Programming Language :: Python :: 3."
    named = [c.removeprefix(prefix) for c in PROJECT["project"]["classifiers"] if prefix in c]
    first = int(lowest[1])
    assert list(map(int, named)) == list(range(first, first + len(named)))
    assert not any(c.startswith("License ::") for c in PROJECT["project"]["classifiers"])


def test_the_licence_is_the_one_that_is_declared() -> None:
    assert PROJECT["project"]["license"] == "Apache-2.0"
    text = (ROOT / "LICENSE").read_text()
    assert re.match(r"\s*Apache License\s+Version 2\.0, January 2004\s", text)


def test_changelog() -> None:
    """The form of Keep a Changelog: versions with dates, the newest first, and six kinds."""
    text = (ROOT / "CHANGELOG.md").read_text()
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads[0] == "[Unreleased]"
    forms = [re.fullmatch(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)", h) for h in heads[1:]]
    released = [(form[4], *map(int, form.groups()[:3])) for form in forms if form is not None]
    assert len(released) == len(heads) - 1
    assert released == sorted(released, reverse=True)
    assert [r[1:] for r in released] == sorted((r[1:] for r in released), reverse=True)
    version = tuple(map(int, PROJECT["project"]["version"].split(".")))
    assert all(version >= r[1:] for r in released)
    for section in re.split(r"^## .*$", text, flags=re.MULTILINE)[1:]:
        kinds = re.findall(r"^### (.*)$", section, re.MULTILINE)
        assert len(kinds) == len(set(kinds)), "each kind once"
        assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_version_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"fragir {PROJECT['project']['version']}\n"
