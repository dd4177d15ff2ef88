"""What benchmarks/emulator.py says of times and answers, and whom it compares."""

from __future__ import annotations

import copy
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


def module(name: str) -> Any:
    """A module beside the benchmark."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        return import_module(name)
    finally:
        sys.path.pop(0)


ANSWER: dict[str, Any] = {
    "results": "a",
    "statistics": {"instructions": {"mma": 6, "add": 4}, "lanes": 320, "mma": 6},
    "findings": [],
    "decoding": 0.5,
}


def measured(wall: list[float], cpu: list[float], *answers: dict[str, Any]) -> Any:
    """What two variants gave, `before` in twice the wall time and three times the CPU time."""
    times = module("measure").Times
    each = {
        "before": times([2 * x for x in wall], [3 * x for x in cpu]),
        "compiled": times(wall, cpu),
    }
    given = {"before": [ANSWER], "compiled": list(answers or [ANSWER])}
    return module("emulator").Measured(each, given)


def test_least_times_and_their_ratios() -> None:
    emulator = module("emulator")
    found = measured([50, 40.04], [12, 15])
    row = emulator.time_row("case", True, found)
    assert (row["before"], row["compiled"]) == ("80.1 (36.0)", "40.0 (12.0)")
    assert (row["checks"], row["equal"]) == ("every", "yes")
    assert emulator.ratio_row("case", False, found, "before")["compiled"] == "2.00 (3.00)"
    checked = measured([90], [24])
    assert emulator.check_row("case", found, checked) == {
        "case": "case",
        "before": 2,
        "compiled": 2,
    }


def test_rates() -> None:
    """10 instructions of 5 warps in 12 ms, half of which is decoding."""
    launch = module("emulator_cases").loop(5)
    row = module("emulator").rate_row("case", launch, 0.25, measured([40], [12]), "compiled")
    assert row["mma_rate"] == pytest.approx(500)
    assert row["lane_rate"] == pytest.approx(0.32 / 12)
    assert row["microseconds"] == pytest.approx(12_000 * 0.5 / 2)
    assert (row["instructions"], row["error"]) == (10, 0.25)


@pytest.mark.parametrize("part", ["results", "statistics", "findings"])
def test_what_differs_in_any_run_is_named(part: str) -> None:
    other = copy.deepcopy(ANSWER)
    if part == "statistics":
        other[part]["instructions"]["add"] = 5
    else:
        other[part] = ["b"]
    assert measured([1], [1], ANSWER, other, ANSWER).differing() == f"not {part}"


def test_cases_are_chosen_by_name() -> None:
    chosen = module("emulator").chosen_cases
    found = chosen(Namespace(quick=False, cases="^loop, .*4 warps"))
    assert [case.name for case in found] == [f"loop, {n} warps" for n in (4, 64, 1024)]
    with pytest.raises(SystemExit, match=r"none of\n  f16 product by hand, 128"):
        chosen(Namespace(quick=False, cases="no such case"))
    with pytest.raises(SystemExit, match=r"--cases \(: "):
        chosen(Namespace(quick=False, cases="("))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone of the repository")
def test_a_revision_is_a_folder_for_a_while() -> None:
    checkout = module("emulator_variants").checkout
    with checkout("HEAD") as folder:
        assert folder != ROOT
        assert (folder / "fragir" / "emulator" / "__init__.py").is_file()
    assert not folder.exists()
    with pytest.raises(SystemExit, match="no-such-revision"), checkout("no-such-revision"):
        pass


def test_a_folder_is_that_folder() -> None:
    with module("emulator_variants").checkout(str(ROOT)) as folder:
        assert folder == ROOT


def test_what_another_folder_imports_is_looked_at(tmp_path: Path) -> None:
    """A folder whose fragir is not what the process has imported is refused."""
    variants = module("emulator_variants")
    with pytest.raises(SystemExit, match="was imported"), variants.variants(tmp_path, ()):
        pass


def test_expected_results() -> None:
    """What a launch should give, against what a loop over threads says."""
    cases = module("emulator_cases")
    launch = cases.memory_loop(16)
    data = [list(range(256)), list(range(256, 512))]
    for _ in range(cases.TURNS):
        data = [[right + 1 for right in [*block[1:], block[0]]] for block in data]
    wanted = np.array(data, np.uint32).ravel()
    assert launch.error([wanted]) == 0
    assert launch.error([wanted + (wanted == wanted[7])]) == 1


def test_a_huge_product_in_small() -> None:
    """Its first and last 128 rows, by another core; memory where /proc tells of it."""
    table = module("emulator_huge").huge(256, ("compiled", "numpy"))
    whole, *parts = table.rows
    assert whole["mma"] == 256**3 // (16 * 8 * 16)
    assert [(row["what"], row["mma"], row["equal"]) for row in parts] == [
        ("rows 0 to 127", whole["mma"] // 2, "yes"),
        ("rows 128 to 255", whole["mma"] // 2, "yes"),
    ]
    if Path("/proc/self/clear_refs").exists():
        assert all(1 < row["peak"] < 2000 for row in table.rows)
