"""Rooms import downward only, and nothing is in a circle: the contracts, and that they are seen."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rooms.picture import PAGE, ROOT, graph, layers, page, rooms_of


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    """What `make check` runs."""
    return subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
    )


def test_the_contracts_are_kept() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources and their contracts, in another folder."""
    folder = tmp_path_factory.mktemp("copy")
    for name in ("fragir", "dialects", "passes"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


IN_A_FUNCTION = "\n\ndef planted() -> None:\n    {}\n"
FOR_TYPES = "\nfrom typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    {}\n"


@pytest.mark.parametrize(
    ("file", "planted", "found"),
    [
        (
            "fragir/layout/modes.py",
            IN_A_FUNCTION.format("import fragir.isa.table"),
            "fragir.layout.modes -> fragir.isa.table",
        ),
        (
            "dialects/elements.py",
            FOR_TYPES.format("from fragir.passes import frag_tile"),
            "fragir.dialects.elements -> fragir.passes.frag_tile",
        ),
        (
            "fragir/emulator/numbers/types.py",
            IN_A_FUNCTION.format("from fragir.layout.modes import Mode"),
            "fragir.emulator.numbers.types -> fragir.layout.modes",
        ),
        (
            "fragir/emulator/numbers/rounding.py",
            IN_A_FUNCTION.format("from fragir.emulator.machine import memory"),
            "fragir.emulator.numbers.rounding -> fragir.emulator.machine.memory",
        ),
        (
            "fragir/ptx/node.py",
            FOR_TYPES.format("from fragir.ptx.tree.operands import Name"),
            ".node -> .tree",
        ),
    ],
    ids=["up, in a function", "up, for types", "sideways", "up, in the emulator", "a circle"],
)
def test_a_planted_import_is_found(copy: Path, file: str, planted: str, found: str) -> None:
    path = copy / file
    before = path.read_text("utf-8")
    path.write_text(before + planted, "utf-8")
    try:
        done = lint(copy)
    finally:
        path.write_text(before, "utf-8")
    assert done.returncode == 1
    assert found in done.stdout


#: Modules that are there to name others: tables of what is imported when it is asked for.
REGISTRIES = ("universe", "dialects.catalogue", "sweeps.catalogue")


def named_modules(source: str) -> Iterator[tuple[int, str]]:
    """Strings that are the name of a module, or of something in one ("module:name"), by lines."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            name = node.value.partition(":")[0]
            if name.startswith("fragir.") and name in graph().modules:
                yield node.lineno, name


def test_no_string_is_an_import_of_what_is_above() -> None:
    """A module that `import_module` gets by a string is no import that the contracts see."""
    order = {room: number for number, room in enumerate(layers()["fragir"])}
    seen: list[str] = []
    for module in sorted(graph().modules - {"fragir"}):
        room = module.split(".")[1]
        path = ROOT.joinpath(*module.split("."))
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for line, name in named_modules(path.read_text("utf-8")):
            seen.append(name)
            above = order[name.split(".")[1]] < order[room]
            assert not above or module.removeprefix("fragir.") in REGISTRIES, (
                f"{path}:{line}: {name}"
            )
    assert "fragir.draw.display" in seen
    assert list(named_modules('import_module("fragir.draw.display")\n"fragir.errors is fine"')) == [
        (1, "fragir.draw.display")
    ]


def circles() -> Iterator[list[str]]:
    """Modules that import each other, by Tarjan's algorithm; a package counts as its `__init__`."""
    imported = {m: sorted(graph().find_modules_directly_imported_by(m)) for m in graph().modules}
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> Iterator[list[str]]:
        order[module] = lowest[module] = len(order)
        stack.append(module)
        for other in imported[module]:
            if other not in order:
                yield from visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], order[other])
        if lowest[module] == order[module]:
            at = stack.index(module)
            if len(stack) > at + 1:
                yield stack[at:]
            del stack[at:]

    for module in sorted(imported):
        if module not in order:
            yield from visit(module)


def test_no_module_is_in_a_circle() -> None:
    assert [sorted(circle) for circle in circles()] == []


def test_nothing_imports_the_package_itself() -> None:
    """`fragir` is the front door; the names of a room's `__init__.pyi` are for other rooms."""
    assert graph().find_modules_that_directly_import("fragir") == set()
    doors = {
        m for m in graph().modules if (ROOT / Path(*m.split("."))).joinpath("__init__.pyi").exists()
    }
    inside = {
        (importer, door)
        for door in doors - {"fragir"}
        for importer in graph().find_modules_that_directly_import(door)
        if importer.startswith(f"{door}.")
    }
    assert inside == set()


@pytest.mark.parametrize("page", ["docs/design.md", "CONTRIBUTING.md"])
@pytest.mark.parametrize("container", sorted(layers()))
def test_every_room_is_named(container: str, page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for room in sorted(rooms_of(container)):
        assert re.search(rf"`(fragir/)?{room}(/|\.py)?`", text), room


def test_the_picture_is_true() -> None:
    text = PAGE.read_text("utf-8")
    assert page(text) == text, "python -m tests.rooms.picture draws it anew"


def shadowed(folder: Path) -> Iterator[str]:
    """The names of a package's stub that a module of it has too, and that are imported late.

    Loading that module, for any other name, would put the module in the name's place.
    """
    for stub in folder.rglob("__init__.pyi"):
        now = imported_names(stub.with_suffix(".py"))
        for name, module in imported_names(stub).items():
            here = stub.parent / name
            is_module = here.with_suffix(".py").is_file() or (here / "__init__.py").is_file()
            if is_module and name not in now and module not in (None, "."):
                yield f"{stub.relative_to(folder)}: {name}"


def imported_names(file: Path) -> dict[str, str | None]:
    """What the file's `from` imports name, with the module that each comes from."""
    return {
        alias.asname or alias.name: node.module
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_no_late_name_is_a_modules(tmp_path: Path) -> None:
    for folder in ("fragir", "dialects", "passes"):
        assert [*shadowed(ROOT / folder)] == []
    (tmp_path / "__init__.py").write_text("import lazy_loader\n")
    (tmp_path / "__init__.pyi").write_text("from .found import found as found\n")
    (tmp_path / "found.py").touch()
    assert [*shadowed(tmp_path)] == ["__init__.pyi: found"]
