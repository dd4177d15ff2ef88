"""benchmarks/sentryward.py, with a SentryWard that answers what it is told to."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from benchmarks import sentryward
from tests.emulator.faults import faults

FAULTS = {fault.name: fault for fault in faults()}


def stand_in(folder: Path, faulty: str, mended: str) -> str:
    """A command that answers by whether `bar.sync 0;  // mend` stands in the PTX."""
    script = folder / "sentryward"
    script.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "text = open(sys.argv[1]).read()\n"
        f"word = {mended!r} if ';  // mend' in text else {faulty!r}\n"
        "json.load(open(sys.argv[sys.argv.index('--input') + 1]))\n"
        "print(json.dumps({'result': word}) if word else 'nothing')\n"
    )
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("faulty", "mended", "word"),
    [
        ("potential_race", "race_free", "found"),
        ("potential_race", "unsupported", "found"),
        ("not_wellsynced", "potential_race", "alarm at both"),
        ("race_free", "race_free", "missed"),
        ("timeout", "race_free", "no answer"),
        ("", "race_free", "no answer"),
    ],
)
def test_what_an_answer_counts_as(tmp_path: Path, faulty: str, mended: str, word: str) -> None:
    fault = FAULTS["race-copy"]
    command = stand_in(tmp_path, faulty, mended)
    found, words = sentryward.by_sentryward(command, fault, tmp_path)
    assert found.word == word
    assert words == [faulty or "tool_failure", mended]


def test_the_launch_is_that_of_the_fault() -> None:
    document = sentryward.launch_of(FAULTS["race-cluster"])
    assert document["launch"]["cluster_dim"][0] > 1
    assert sentryward.launch_of(FAULTS["race-copy"])["launch"] == {
        "grid_dim": [1, 1, 1],
        "block_dim": [64, 1, 1],
    }


def test_ours() -> None:
    assert sentryward.by_fragir(FAULTS["race-copy"]).word == "found"


def test_a_kernel_of_triton(tmp_path: Path) -> None:
    line = sentryward.of_triton(stand_in(tmp_path, "race_free", ""), "softmax", tmp_path)
    assert line.startswith("| softmax.sm_80 | `pass`, exact (2^-60), every schedule |")
    assert "| `race_free` |" in line
    given = json.loads((tmp_path / "input.json").read_text())
    assert given["arguments"] == [{"parameter": "softmax_param_2", "type": "u32", "value": 250}]


def test_table_and_page() -> None:
    found, missed = sentryward.Pair("found", "clean", 1), sentryward.Pair("clean", "clean", 1)
    text = sentryward.table({"race": [found, missed]}, {"race": [found, found]})
    assert text.splitlines()[-1] == "| all | 2 | 2 | 1 | 1 | 0 |"
    page = f"a {sentryward.MARKS[0]} old {sentryward.MARKS[1]} b"
    new = sentryward.updated(page, "new")
    assert new == f"a {sentryward.MARKS[0]}\n\nnew\n\n{sentryward.MARKS[1]} b"
    assert sentryward.updated(new, "new") == new
