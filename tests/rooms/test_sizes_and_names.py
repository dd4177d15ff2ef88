"""A file is a subject: neither long without a reason nor the outline of a neighbour; and a class
has a name of its own."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

import pytest

from tests.rooms.picture import ROOT, graph

ROOMS = ("fragir", "dialects", "passes")
MOST_LINES = 600
# A shorter file that a single neighbour imports is part of that neighbour's subject.
OUTLINE = 100
#: Those that are imported only when they are needed, for what their own imports take.
LATE = {
    "fragir.builder.derived": "methods of tiles that few kernels have",
    "fragir.builder.region_reductions": "reductions by a function, which few kernels have",
    "fragir.cli.exact": "elements of fields beside numbers, which few runs ask for",
    "fragir.cli.expect": "answers from outside",
    "fragir.cli.opt_words": "argparse and xDSL, to complete a word of fragir-opt",
}

# Longer files, and why.
LONG = {
    "fragir/emulator/tensor_cores/maps_data.py": "text: the formulas of the PTX ISA, by section",
}

# Classes of one name, and why.
ALIKE = {
    "AtomicOp": "frag.atomic and ptx.atomic",
    "CopyOp": "frag.copy and ptx.copy",
    "LoadOp": "frag.load and ptx.load",
    "MmaOp": "frag.mma and ptx.mma",
    "MmaSparseOp": "frag.mma_sparse and ptx.mma_sparse",
    "StoreOp": "frag.store and ptx.store",
    "UndefinedOp": "frag.undefined and ptx.undefined",
    "WgmmaOp": "frag.wgmma and ptx.wgmma",
    "Instruction": "a statement of PTX in the syntax tree, and a row of the instruction table",
    "Pointer": "`.ptr` in the syntax tree, and an argument of the emulator: both are public",
    "Program": "PTX as the emulator runs it, and a compiled function of several kernels",
    "Target": "`.target` in the syntax tree, and a GPU's row in the instruction table",
}


@cache
def sources() -> dict[str, str]:
    found: dict[str, str] = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(("fragir/dialects/", "fragir/passes/")):  # the links
                found[name] = path.read_text("utf-8")
    return found


def test_no_file_is_long_without_a_reason() -> None:
    lengths = {name: text.count("\n") for name, text in sources().items()}
    long = {name: lines for name, lines in lengths.items() if lines > MOST_LINES}
    assert {name: lines for name, lines in long.items() if name not in LONG} == {}
    assert set(LONG) <= set(lengths)


def outlines(lines: Mapping[str, int], importers: Mapping[str, set[str]]) -> Iterator[str]:
    """Short modules that nobody imports but one module of the same folder. `lines`: by module,
    of those that are no package.
    """
    for module, count in lines.items():
        neighbours = importers[module]
        if count < OUTLINE and len(neighbours) == 1:
            (neighbour,) = neighbours
            if neighbour in lines and folder(neighbour) == folder(module):
                yield module


def folder(module: str) -> str:
    return module.rpartition(".")[0]


def modules() -> Iterator[tuple[str, str]]:
    """Modules that are no package, and their sources."""
    for module in sorted(graph().modules):
        path = ROOT.joinpath(*module.split(".")).with_suffix(".py")
        if path.exists():
            yield module, path.read_text("utf-8")


def is_public(module: str) -> bool:
    """Whether the package's `__init__.pyi` has names of it."""
    stub = ROOT.joinpath(*folder(module).split("."), "__init__.pyi")
    return stub.exists() and f"from .{module.rpartition('.')[2]} import" in stub.read_text("utf-8")


def test_few_files_are_an_outline() -> None:
    lines = {module: text.count("\n") for module, text in modules() if not is_public(module)}
    assert len(lines) > 400
    found = sorted(
        outlines(lines, {m: graph().find_modules_that_directly_import(m) for m in lines})
    )
    assert found == sorted(LATE), "a short file with one importer, beside it, is a part of that"


def test_what_an_outline_is() -> None:
    lines = {"a.short": 99, "a.long": 100, "a.user": 300, "b.short": 5, "b.other": 50}
    importers = {
        "a.short": {"a.user"},
        "a.long": {"a.user"},
        "a.user": set[str](),
        "b.short": {"a.user"},  # not beside it
        "b.other": {"a.user", "b.short"},
    }
    assert list(outlines(lines, importers)) == ["a.short"]


@cache
def classes() -> dict[str, list[str]]:
    """Classes of modules by name, and where they are."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in sources().items():
        for class_ in re.findall(r"^class ([A-Za-z]\w*)", text, re.MULTILINE):
            found[class_].append(name)
    return found


def test_the_sources_are_seen() -> None:
    assert classes()["Layout"] == ["fragir/layout/layout.py"]
    assert "passes/frag_tile.py" in sources()


@pytest.mark.parametrize("name", sorted(ALIKE))
def test_a_reason_is_needed(name: str) -> None:
    assert len(classes()[name]) > 1


def test_a_class_has_a_name_of_its_own() -> None:
    again = {name: files for name, files in classes().items() if len(files) > 1}
    assert {name: files for name, files in again.items() if name not in ALIKE} == {}
