"""The public names of docs/api.md: they are there, documented, and none goes without a warning.

`released.txt` has those of the last version, a line each; `deprecated` behind one says that it
warned in that version, so that it may go in the next. `python tests/api/test_names.py` prints the
file anew, for a release.
"""

from __future__ import annotations

import inspect
import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "api.md"
RELEASED = Path(__file__).with_name("released.txt")


def listed() -> dict[str, list[str]]:
    """Module -> its names, as the page says."""
    heads = re.split(r"^## `([\w.]+)`\n\n.*\n\n", PAGE.read_text(), flags=re.MULTILINE)[1:]
    return {
        module: re.findall(r"`(\w+)`", text)
        for module, text in zip(heads[::2], heads[1::2], strict=True)
    }


LISTED = listed()


def released() -> list[tuple[str, str]]:
    """(module, name) of what the last version had and did not say goes."""
    lines = (line.split() for line in RELEASED.read_text().splitlines() if line[0] != "#")
    return [(words[0], words[1]) for words in lines if words[2:] != ["deprecated"]]


def found(module: str, name: str) -> tuple[object, bool]:
    """What a public name is, and whether using it warns."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        value = getattr(import_module(module), name)
    return value, any(each.category is DeprecationWarning for each in told)


@pytest.mark.parametrize("module", LISTED)
def test_listed_names_are_there(module: str) -> None:
    names = LISTED[module]
    assert names == sorted(set(names)), "in the order of the alphabet, each once"
    assert len(names) > 0
    exported = getattr(import_module(module), "__all__", None)
    if exported is not None:
        assert names == sorted(exported), f"{module}.__all__ and docs/api.md"
    for name in names:
        value, warns = found(module, name)
        assert not warns
        if inspect.isclass(value) or inspect.isroutine(value):
            text = value.__doc__ or ""
            assert text, f"{module}.{name} has no docstring"
            assert not text.startswith(f"{name}("), f"{module}.{name} has dataclass's docstring"
    assert import_module(module).__doc__


@pytest.mark.parametrize("module", sorted({module for module, _ in released()}))
def test_nothing_goes_without_a_warning(module: str) -> None:
    """A name that the last version had is still listed, or works with a DeprecationWarning."""
    for each, name in released():
        if each == module and name not in LISTED.get(module, ()):
            value, warns = found(module, name)
            assert value is not None
            assert warns, f"{module}.{name} is not listed any more; fragir.deprecation keeps it"


def test_every_package_with_exports_is_listed() -> None:
    """Apart from those that say of themselves that they are for the project only."""
    packages = {
        ".".join(["fragir", *file.parent.relative_to(ROOT / "fragir").parts])
        for file in (ROOT / "fragir").rglob("__init__.py")
        if "__all__" in file.read_text() and len(file.parent.relative_to(ROOT).parts) <= 2
    }
    assert len(packages) > 6
    assert packages <= set(LISTED)


def test_what_is_imported_on_the_pages_is_listed() -> None:
    """Documentation and examples use public names only."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    used: set[tuple[str, str]] = set()
    for page in pages:
        for module, names in re.findall(r"from (fragir[\w.]*) import ([\w, ]+)", page.read_text()):
            used |= {(module, name.strip()) for name in names.split(",")}
    assert len(used) > 30
    missing = {
        f"{module}.{name}"
        for module, name in used
        if name not in LISTED.get(module, ()) and f"{module}.{name}" not in LISTED
    }
    assert sorted(missing) == []


if __name__ == "__main__":
    print("# Public names of the last version; written by tests/api/test_names.py for a release.")
    for module, names in LISTED.items():
        for name in names:
            print(f"{module} {name}{' deprecated' if found(module, name)[1] else ''}")
