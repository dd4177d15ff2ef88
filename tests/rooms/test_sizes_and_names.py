"""No file is long without a reason, and a class has a name of its own."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("fragir", "dialects", "passes")
MOST_LINES = 600

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
