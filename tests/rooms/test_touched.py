"""Which tests a room reaches: names behind doors, modules named by strings, processes, conftest."""

from __future__ import annotations

import pytest

from tests.rooms.touched import Imports, distances, imports, room_of

SOURCES = {
    "fragir": "",
    "fragir.errors": "",
    "fragir.low": "from fragir import errors",
    "fragir.low.inner": "",
    "fragir.high": "def later():\n    from .low.inner import name",
    "fragir.cli.main": 'import_module(f"fragir.cli.{name}")\nNAMES = ("check", "no such")',
    "fragir.cli.check": "import fragir.high",
    "tests.test_door": "import fragir\nfragir.compile()",
    "tests.test_string": 'ROW = "fragir.low.inner:name"',
    "tests.test_process": "import subprocess",
    "tests.test_none": '"""Speaks of fragir.low alone."""',
    "tests.part.conftest": "import fragir.low",
    "tests.part.test_beside": "",
}
MADE = Imports(SOURCES, {"fragir": {"compile": "fragir.high"}}, {"fragir", "fragir.low"})


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("fragir.low", {"fragir", "fragir.errors"}),
        ("fragir.high", {"fragir.low.inner"}),
        ("fragir.cli.main", {"fragir.cli.check"}),
        ("tests.test_door", {"fragir", "fragir.high"}),
        ("tests.test_string", {"fragir.low.inner"}),
        ("tests.test_process", {"fragir.cli.main"}),
        ("tests.test_none", set[str]()),
    ],
)
def test_what_a_module_imports(module: str, imported: set[str]) -> None:
    assert MADE.of(module) == imported


def test_the_nearest_are_told_first() -> None:
    found = distances(["fragir.low"], {module: MADE.of(module) for module in SOURCES})
    assert {m: n for m, n in found.items() if m.startswith("tests.")} == {
        "tests.part.conftest": 1,
        "tests.test_string": 1,
        "tests.part.test_beside": 2,
        "tests.test_door": 2,
        "tests.test_process": 4,
    }


def test_ours() -> None:
    """Checks and commands are named by strings alone, `compile` through the package's door."""
    assert "fragir.emulator.checks.races.races" in imports().of("fragir.emulator.checks.selection")
    assert "fragir.cli.check" in imports().of("fragir.cli.main")
    assert "fragir.compiler" in imports().of("tests.golden.test_lane_text")
    for text in ("emulator/checks", "fragir/emulator/checks/", "fragir/emulator/checks"):
        assert room_of(text) == "fragir.emulator.checks"
    assert room_of("passes/tiling") == "fragir.passes.tiling"
    with pytest.raises(SystemExit, match="there is no room emulator/czechs"):
        room_of("emulator/czechs")
