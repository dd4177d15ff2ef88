"""What starting imports: little, so that a command is there at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

HEAVY = frozenset({"lark", "ml_dtypes", "numpy", "rich", "xdsl"})
COMMAND = ("-m", "fragir.cli.main")


def imported(arguments: Sequence[str]) -> set[str]:
    """The modules that a fresh Python imports for a command line, by `-X importtime`."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def packages(modules: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in modules}


def test_the_helper_sees_imports() -> None:
    assert "numpy" in packages(imported(["-c", "import numpy.linalg"]))


@pytest.mark.parametrize(
    ("arguments", "forbidden"),
    [
        (["-c", "import fragir"], HEAVY | {"click"}),
        ([*COMMAND, "--help"], HEAVY),
        ([*COMMAND, "assemble", "--help"], HEAVY),
        ([*COMMAND, "emulate", "--help"], HEAVY),
        ([*COMMAND, "doctor", "--json"], HEAVY),
    ],
)
def test_nothing_heavy(arguments: list[str], forbidden: frozenset[str]) -> None:
    assert packages(imported(arguments)) & forbidden == set()


def test_import_fragir_is_small() -> None:
    before = imported(["-c", "pass"])
    added = imported(["-c", "import fragir"]) - before
    assert len({name for name in added if name.startswith("fragir")}) <= 3


@pytest.mark.parametrize("room", ["", ".emulator", ".layout", ".ptx", ".reference"])
def test_every_public_name_is_there(room: str) -> None:
    """The names of a stub are what it says, and `import *` brings all of them."""
    code = f"from fragir{room} import *; import fragir{room} as room; print(*sorted(room.__all__))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    stub = Path(__file__).parents[2] / "fragir" / room.removeprefix(".") / "__init__.pyi"
    named = {line.split()[-1] for line in stub.read_text().splitlines() if " import " in line}
    assert named == set(done.stdout.split())


def test_a_product_imports_what_it_needs() -> None:
    """No choice among layouts or schedules, where there is none, and no explanation of one."""
    text = """func.func @f(%a: memref<?x?xf16>, %b: memref<?x?xf16>, %c: memref<?x?xf32>) {
  frag.matmul %a, %b into %c : memref<?x?xf16>, memref<?x?xf16> into memref<?x?xf32>
  func.return
}
"""
    code = f"import fragir; fragir.compile({text!r}, target='sm_80')"
    found = imported(["-c", code])
    rooms = ("fragir.emulator", "fragir.reference", "numpy", "lark")
    files = {
        *("fragir.layout.planning.planner", "fragir.passes.placing.inference"),
        *("fragir.passes.tiling.open_sizes", "fragir.passes.tiling.parts"),
        "fragir.passes.tiling.explained",
    }
    assert {"fragir.passes.placing.relations", "fragir.passes.tiling.choosing"} <= found
    assert found & files == set()
    assert {name for name in found if name.startswith(rooms)} == set()
