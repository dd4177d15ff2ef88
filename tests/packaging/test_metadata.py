"""What the package declares agrees with the tree: nothing is forgotten."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path

import pytest

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
